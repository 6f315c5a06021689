"""``setsup index``: indexes the samples and factors of existing WebDataset tars."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from setsup.errors import listed
from setsup.files import readable_size
from setsup_cli.output import show_result
from setsup_cli.parsing.arguments import Common, option
from setsup_cli.stopping import sigterm_as_interrupt
from setsup_cli.suggestions import advise, sample_command

if TYPE_CHECKING:
    from setsup.shards.external.indexing import Indexed

__all__ = ["HELP", "Options", "run"]

HELP = """\
Example: `setsup index photos`, a folder of tars. Images and .npy arrays become modalities; the fields of KEY.json, the
text of KEY.cls and the folders in keys become factors. Some fields are left out: lists, fields of mixed types, and
strings or integers with too many distinct values (more than 4,096, and more than half of the number of rows). The
output says why. The index (index.parquet) and the catalogue (shards.json) are written to the folder of the tars, or to
--out. Run the command again after you change or add tars: it reads all of them again and keeps the factors as
shards.json describes them, so you can correct their kinds there. For shards written by `setsup shard`, it restores a
damaged or missing shards.json, index.parquet or README.md, byte for byte if backup.parquet exists."""

_MOST = 12  # names that are listed


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    url: Annotated[
        str,
        option("URL", "Folder or address of tars, a single tar, or a pattern: https://…/data-{000000..000099}.tar."),
    ] = field(kw_only=False)
    out: Annotated[
        str | None,
        option("FOLDER|URL", "Output folder of the index, if the folder of the tars is read-only.", alias="-o"),
    ] = None


def run(options: Options) -> int:
    """Index, and say what was found."""
    from setsup.shards.external.indexing import write_external_index

    with sigterm_as_interrupt():
        about = _about(write_external_index(options.url, options.out))
    show_result(options.json, about, _words(about))
    advise(options, about["next"])
    return 0


# -- output ------------------------------------------------------------------------------------------------------------


def _about(indexed: "Indexed") -> dict[str, Any]:
    """The output of --json."""
    from setsup.shards.opening import open_shards

    catalogue = indexed.catalogue
    beside = [] if indexed.index is None else [f"index={indexed.index!r}"]
    opened = open_shards(indexed.url, index=indexed.index)
    return {
        "url": indexed.url,
        "index": indexed.index,
        "name": catalogue.name,
        "samples": catalogue.rows,
        "tars": len(catalogue.shards),
        "bytes": sum(shard.size for shard in catalogue.shards),
        "factors": {factor.name: len(factor) or None for factor in catalogue.factors},
        "modalities": {
            name: {"extension": member.extension, "shape": list(member.modality.shape), "dtype": member.modality.dtype}
            for name, member in catalogue.members.items()
        },
        "left_out": dict(indexed.left_out),
        "not_read": list(indexed.not_fetched),
        "restored": list(indexed.restored),
        "notes": list(indexed.notes),
        "open": f"setsup.open_shards({', '.join([repr(indexed.url), *beside])})",
        "next": sample_command(indexed.url, opened.factors, index=indexed.index),
    }


def _words(about: Mapping[str, Any]) -> Iterator[str]:
    tars = f"{about['tars']:,} tar{'s' * (about['tars'] != 1)}"
    yield f"{about['name']}: {about['samples']:,} samples in {tars}, {readable_size(about['bytes'])}"
    if about["restored"]:
        yield f"restored: {listed(about['restored'], _MOST)}"
    yield from about["notes"]
    factors = [f"{name} {levels or '~'}" for name, levels in about["factors"].items()]
    yield f"factors: {listed(factors, _MOST)}"
    modalities = [
        f"{name} ({_shape(images['shape'])} {images['dtype']}, .{images['extension']})"
        for name, images in about["modalities"].items()
    ]
    yield f"modalities: {listed(modalities, _MOST) or 'none'}"
    for name, why in about["left_out"].items():
        yield f"omitted: {name}: {why}"
    if about["not_read"]:
        yield f"not read: {listed([f'.{suffix}' for suffix in about['not_read']], _MOST)}"
    yield about["open"]


def _shape(shape: list[int | None]) -> str:
    return " × ".join(str(length or "any") for length in shape) or "one"
