"""``setsup info``: shows the card of a dataset, or the columns of a table of the user's own."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setsup.errors import DataError, SetsupError
from setsup.files import Manifest
from setsup.files.manifests.hosts import list_hosts
from setsup.files.manifests.packages import find_manifest
from setsup_cli.cards import print_card
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import DEFAULT, OUTPUT, RAI, Source, flag, option
from setsup_cli.parsing.source import find_source, given_words, open_source, source_words, word_options
from setsup_cli.parsing.values import describe_options
from setsup_cli.suggestions import advise, sample_command

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.factors import Factor
    from setsup.opening import SourceKind
    from setsup.shards.layout import Catalogue

__all__ = ["HELP", "Options", "run"]

HELP = """\
Counts, the first row and further attributes are shown only if the files of the dataset are on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Source):
    """Options of the subcommand."""

    croissant: Annotated[
        bool, flag("Print the dataset's description in Croissant 1.1 (JSON-LD) instead.", group=OUTPUT)
    ] = False
    rai: Annotated[Path | None, option("FILE.yaml", f"With --croissant, {RAI}", group=OUTPUT)] = None


def run(options: Options) -> int:
    """Print the card."""
    if options.croissant and options.split is not None:
        raise DataError("--croissant describes the whole dataset, and takes no --split; omit one of them")
    source, kind = find_source(options)
    manifest = find_manifest(str(source)) if kind == "benchmark" else None
    try:
        dataset = _opened(options, manifest)
        closed = ""
    except SetsupError as error:
        # a card without its data is still a card
        if (
            manifest is None
            or options.relist
            or any(
                given is not None
                for given in (options.root, options.split, options.index, options.option, options.pattern)
            )
        ):
            raise
        dataset, closed = None, str(error)
    if options.croissant:
        from setsup_cli.croissant import describe

        say(describe(source, dataset, manifest, options.rai).rstrip("\n"))
        return 0
    if options.rai is not None:
        raise DataError("--rai is an option of --croissant; add --croissant, or omit --rai")
    card = {**_about(manifest), **_of_shards(dataset), **_content(dataset, manifest)}
    card |= {"source": str(source), "options": _options(source, kind)}
    card["published"] = _published(dataset, manifest, given_words(options, source, kind)) if dataset else None
    if options.json:
        show_json({**card, "opened": dataset is not None, "why_not": closed or None})
    else:
        print_card(card, closed)
        if (command := _next(options, dataset, manifest)) is not None:
            advise(options, command)
    return 0


def _next(options: Options, dataset: "Dataset | None", manifest: Manifest | None) -> str | None:
    """A command that draws from the dataset, or that gets its files."""
    if dataset is None:
        return f"setsup fetch {manifest.name}" if manifest is not None and manifest.files else None

    words = [] if options.table is None else ["--table", str(options.table)]
    words += source_words(options)
    command = sample_command(options.dataset or DEFAULT, dataset.factors, words=words)
    return None if command.startswith("setsup info ") else command


def _opened(options: Options, manifest: Manifest | None) -> "Dataset | None":
    if manifest is not None and manifest.name == "table":
        return None  # it stands for the user's own files
    return open_source(options)


def _published(
    dataset: "Dataset", manifest: Manifest | None, options: Mapping[str, Any]
) -> dict[str, int | bool] | None:
    """Samples of the whole release that are there, and those that were published; None where that is not known."""
    from setsup.datasets.published import count_published

    counts = None if manifest is None else count_published(dataset, manifest, options)
    if counts is None:
        return None
    return {"samples": counts.fewest, "here": counts.there, "complete": counts.complete}


def _options(source: Path | str, kind: "SourceKind") -> list[str] | None:
    """What ``--option`` takes, for which no file is needed; None where what opens the source cannot be imported."""
    with suppress(SetsupError):
        return describe_options(word_options(source, kind))
    return None


def _about(manifest: Manifest | None) -> dict[str, Any]:
    """Entries of the manifest."""
    if manifest is None:
        return {}
    return {
        "name": manifest.name,
        "title": manifest.title,
        "description": manifest.description,
        "homepage": manifest.homepage,
        "addresses": _addresses(manifest),
        "bytes": manifest.size,
        "samples_vary": manifest.samples_vary,
        "licence": asdict(manifest.licence),
        "citation": manifest.citation,
        "splits": [asdict(split) for split in manifest.splits],
        "files": [file.path for file in manifest.files],
        "steps": list(manifest.steps),
    }


def _addresses(manifest: Manifest) -> dict[str, Any] | None:
    """What is known of the addresses, the hosts in the order in which they are asked, and the addresses by file."""
    known = manifest.addresses
    if known is None:
        return None
    sources = dict(known.sources)
    return {
        "checked": known.checked,
        "known": known.known,
        "hosts": [
            {"host": host, "files": paths, "seen_in": sources.get(host, "")}
            for host, paths in list_hosts(manifest).items()
        ],
        "urls": {file.path: list(file.urls) for file in manifest.files if file.urls},
    }


def _of_shards(dataset: "Dataset | None") -> dict[str, Any]:
    """Entries of the catalogue of shards; none for another dataset."""
    from setsup.datasets import Selection

    whole: Any = dataset.source if isinstance(dataset, Selection) else dataset
    catalogue: Catalogue | None = getattr(whole, "catalogue", None)
    if catalogue is None:
        return {}
    about = dict(catalogue.about)
    licence = {"name": about.get("licence"), "url": about.get("licence_url"), "note": None, "sign": None}
    return {
        "title": about.get("title", ""),
        "description": about.get("description", ""),
        "homepage": about.get("homepage"),
        "licence": licence if about.get("licence") else None,
        "citation": about.get("citation"),
        "shards": {
            "url": whole.url,
            "number": len(catalogue.shards),
            "bytes": sum(shard.size for shard in catalogue.shards),
            "order": about.get("order"),
            "setsup": catalogue.setsup,
            "members": {name: member.extension for name, member in catalogue.members.items()},
        },
    }


def _content(dataset: "Dataset | None", manifest: Manifest | None) -> dict[str, Any]:
    """Factors and modalities: of the data if the files are here, else as the manifest describes them."""
    if dataset is None:
        factors = [] if manifest is None else [{**asdict(factor), "counts": None} for factor in manifest.factors]
        kinds = [] if manifest is None else [asdict(kind) for kind in manifest.modalities]
        return {
            "samples": manifest and manifest.samples,
            "factors": factors,
            "modalities": kinds,
            **dict.fromkeys(("sample", "beside", "module")),
        }
    from setsup_cli.parsing.extra_attributes import find_extra_attributes

    described = {factor.name: factor.description for factor in manifest.factors} if manifest else {}
    meant = {kind.name: kind.description for kind in manifest.modalities} if manifest else {}
    factors = []
    for factor in dataset.factors.factors:
        counts = None if factor.continuous else dataset.factors.counts(factor.name).tolist()
        known = {**_factor(factor), "description": described.get(factor.name, ""), "counts": counts}
        factors.append(known)
    return {
        "name": dataset.name,
        "samples": len(dataset.factors),
        "factors": factors,
        "modalities": [
            {"name": name, **asdict(kind), "description": meant.get(name, "")}
            for name, kind in dataset.modalities.items()
        ],
        "sample": dataset.factors.row(0) if len(dataset.factors) else None,
        **find_extra_attributes(dataset, manifest),
    }


def _factor(factor: "Factor") -> dict[str, Any]:
    return {
        "name": factor.name,
        "kind": str(factor.kind),
        "levels": None if factor.levels is None else list(factor.levels),
        "unit": factor.unit,
        "period": factor.period,
        "within": factor.within,
        "role": factor.role,
    }
