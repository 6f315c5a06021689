"""``setsup shard``: writes a dataset as WebDataset tars with a factor index, and resumes."""

import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import DataError, SetsupError
from setsup.files import readable_size
from setsup_cli.croissant import croissant_about, croissant_lines
from setsup_cli.output import say, show_result
from setsup_cli.parsing.arguments import Rai, Source, option
from setsup_cli.parsing.source import card_command, check_factors, open_source, rows_where
from setsup_cli.parsing.values import split_names
from setsup_cli.parsing.workers import On, RayAddress, RayGpus, cluster
from setsup_cli.stopping import sigterm_as_interrupt
from setsup_cli.suggestions import advise, sample_command

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.shards.dataset import ShardedDataset
    from setsup.shards.writing.plan import ShardPlan

__all__ = ["HELP", "Options", "run"]

_NO_MODALITIES = {"camera": "cameras", "names": "names of instances"}

HELP = """\
Example: `setsup shard --out shapes --where "object_hue == 0.5" --order by:shape`, which needs no download. Any program
that reads WebDataset can read the shards; `setsup sample shapes --inactive shape` draws from them by factor, and
`setsup.open_shards` opens them in Python. If a command is interrupted, run it again: it resumes, and the output
is identical for any number of processes or machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Source):
    """Options of the subcommand."""

    out: Annotated[
        str | None,
        option(
            "URL",
            "Output folder or address such as s3://bucket/shapes; must be new or written by the same command, which "
            "then resumes.",
            alias="-o",
        ),
    ] = None
    where: Annotated[
        str | None,
        option(
            "EXPRESSION",
            "Write only rows that satisfy an expression, such as \"scale >= 1.0 and shape != 'cube'\"; they are "
            "renumbered.",
        ),
    ] = None
    order: Annotated[
        str,
        option(
            "keep|shuffle|by:FACTOR,...",
            "Order of the rows: unchanged, random, or by factor, so that one read fetches a set.",
        ),
    ] = "keep"
    format: Annotated[
        Literal["png", "webp", "jpeg", "npy"],
        option(
            "png|webp|jpeg|npy",
            "Format of images: PNG, lossless WebP, JPEG of quality 95, or plain arrays. Other modalities are arrays.",
        ),
    ] = "png"
    modalities: Annotated[
        tuple[str, ...] | None, option("NAME ...", "Modalities to write, such as `image depth`.", "all")
    ] = None
    size: Annotated[
        tuple[int, int] | None,
        option(
            "HEIGHT WIDTH",
            "Resize images with antialiasing to cover this size, and crop the centre.",
            "original size",
        ),
    ] = None
    per_shard: Annotated[
        int | None, option("N", "Maximum number of rows per shard.", "268 MB of arrays, up to 100,000 rows")
    ] = None
    seed: Annotated[int, option("N", "Random seed of a shuffle.")] = 0
    rai: Rai = None
    processes: Annotated[int, option("N", "Number of worker processes.")] = 1
    on: On = None
    ray_address: RayAddress = None
    ray_gpus: RayGpus = 0.0


def run(options: Options) -> int:
    """Write and say how it is opened."""
    if options.out is None:
        named = [shlex.quote(options.dataset)] if options.dataset else []
        named += ["--table", shlex.quote(str(options.table))] if options.table else []
        raise DataError(f"--out is required: `{' '.join(['setsup shard', *named, '--out URL'])}`")
    if not options.out:
        raise DataError("--out must be a folder or an address, not ''")
    if options.out.rpartition("::")[2].startswith("memory://"):
        raise DataError(
            f"--out {options.out} is in the memory of this process, which ends with the command; pass a folder, "
            "or the address of a store"
        )
    on = cluster(options.on, options.ray_address, options.ray_gpus)
    dataset = _chosen(options)
    from setsup.shards.stores.opening import open_store
    from setsup.shards.writing.writer import write_shards

    url = open_store(options.out).url  # absolute, as it will be opened
    plan: ShardPlan | None = None
    before = 0

    def on_start(begun: "ShardPlan", there: int) -> None:
        # not earlier: the lock may have been waited for while another job wrote
        nonlocal plan, before
        plan, before = begun, there
        if not options.json:
            say(_what(begun, there, url))

    try:
        with sigterm_as_interrupt():
            written = write_shards(
                dataset,
                options.out,
                order=options.order,
                per_shard=options.per_shard,
                format=options.format,
                modalities=split_names(options.modalities),
                size=options.size,
                seed=options.seed,
                processes=options.processes,
                on=on,
                on_start=on_start,
                rai=options.rai,
            )
    except DataError as error:
        asked, there = options.size, set() if plan is not None else _sizes(url)
        if asked is None or not there - {asked}:
            raise
        sizes = " and ".join(f"{height} × {width}" for height, width in sorted(there))
        raise DataError(f"{error}; the existing images have {sizes} pixels, not {asked[0]} × {asked[1]}") from None
    except KeyboardInterrupt:
        if plan is None:
            raise KeyboardInterrupt("before anything was written") from None
        said = f"at {_there(options.out):,} of {plan.shards:,} shards"
        raise KeyboardInterrupt(f"{said}; run the same command to resume") from None
    about = _about(written, before, _left_out(dataset, written))
    show_result(options.json, about, _words(about))
    advise(options, about["next"])
    return 0


def _chosen(options: Options) -> "Dataset":
    dataset = open_source(options)
    kind, _, named = options.order.partition(":")
    if kind == "by":
        factors = [name.strip() for name in named.split(",") if name.strip()]
        check_factors(factors, dataset.factors, card_command(options))
    return dataset if options.where is None else dataset.select(rows_where(dataset.factors, options.where))


def _sizes(url: str) -> set[tuple[int, int]]:
    """Heights and widths of the images of finished shards at an address."""
    from setsup.shards.opening import open_shards

    with suppress(SetsupError):
        kinds = [kind for kind in open_shards(url).modalities.values() if kind.color and len(kind.shape) == 3]
        return {(kind.shape[0] or 0, kind.shape[1] or 0) for kind in kinds}
    return set()


def _left_out(dataset: "Dataset", written: "Dataset") -> list[str]:
    """What the dataset has for its rows, and the shards do not."""
    return [said for name, said in _NO_MODALITIES.items() if hasattr(dataset, name) and not hasattr(written, name)]


def _there(url: str) -> int:
    """Number of shards at an address; 0 if it cannot be read."""
    from setsup.shards.stores.opening import open_store

    with suppress(SetsupError):
        return sum(name.endswith(".tar") for name in open_store(url).names())
    return 0


# -- output ------------------------------------------------------------------------------------------------------------


def _what(plan: "ShardPlan", there: int, url: str) -> str:
    import numpy as np

    from setsup.shards.layout import VIEW

    kinds = [member.modality for member in plan.members.values() if member != VIEW]
    row = sum(math.prod(size or 0 for size in kind.shape) * np.dtype(kind.dtype).itemsize for kind in kinds)
    size = "" if any(None in kind.shape for kind in kinds) else f", {readable_size(row * plan.rows)} of arrays"
    stored = ", ".join(f"{name} as {member.format}" for name, member in plan.members.items())
    shards = f"{plan.shards:,} shard{'s' * (plan.shards != 1)}"
    done = f"; {there:,} rows exist" if there else ""
    return f"{plan.name}: {plan.rows:,} rows in {shards} ({stored}{size}){done}, to {url}"


def _about(dataset: "ShardedDataset", before: int, left_out: list[str]) -> dict[str, Any]:
    """The output of --json for finished shards."""
    catalogue = dataset.catalogue
    order = catalogue.about.get("order", "")
    preferred = order.removeprefix("by:").split(",") if order.startswith("by:") else ()
    return {
        "url": dataset.url,
        "dataset": dataset.name,
        "rows": len(dataset),
        "written_now": len(dataset) - before,
        "shards": len(catalogue.shards),
        "bytes": sum(shard.size for shard in catalogue.shards),
        "order": order,
        "factors": {factor.name: len(factor) or None for factor in dataset.factors.factors},
        "modalities": {
            name: {
                "shape": list(array.modality.shape),
                "dtype": array.modality.dtype,
                "unit": array.modality.unit,
                "member": f"KEY.{array.extension}",
            }
            for name, array in catalogue.arrays.items()
        },
        **{
            f"{name}s": f"KEY.{member.extension}"
            for name, member in catalogue.members.items()
            if name not in catalogue.arrays
        },
        "left_out": left_out,
        "croissant": croissant_about(dataset.url),
        "open": f"setsup.open_shards({dataset.url!r})",
        "next": sample_command(dataset.url, dataset.factors, preferred),
    }


def _words(about: Mapping[str, Any]) -> Iterator[str]:
    yield f"{readable_size(about['bytes'])}, {about['written_now']:,} rows written now"
    factors = [f"{name} {levels or '~'}" for name, levels in about["factors"].items()]
    yield f"factors: {', '.join(factors)}"
    cameras = [about["cameras"]] if "cameras" in about else []
    members = [*(one["member"] for one in about["modalities"].values()), *cameras, "KEY.json"]
    yield f"members: {', '.join(members)}"
    if about["left_out"]:
        yield f"omitted, because --size changes the images: {', '.join(about['left_out'])}"
    yield from croissant_lines(about["croissant"])
    yield about["open"]
