"""``setsup info``: the card of a data set, or what a table of the user's own holds."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from setsup.errors import SetsupError
from setsup.files import Manifest, load_manifest, manifest_names, readable_size
from setsup_cli.arguments import Image, Json, Kinds, MaybeDataset, Root, Split, Table
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.source import DEFAULT, open_source

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.factors import Factor

__all__ = ["HELP", "Options", "run"]

HELP = "Counts and a sample are shown where the files are here; the rest needs no files."

_LEVELS_SHOWN = 16


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    dataset: MaybeDataset = None
    table: Table = None
    image: Image = None
    kinds: Kinds = None
    root: Root = None
    split: Split = None
    json: Json = False


def run(options: Options) -> int:
    """Print the card."""
    name = options.dataset or DEFAULT
    manifest = load_manifest(name) if options.table is None and name in manifest_names() else None
    try:
        dataset = _opened(options, manifest)
        closed = ""
    except SetsupError as error:
        # a card without its data is still a card
        if manifest is None or options.root is not None or options.split is not None:
            raise
        dataset, closed = None, str(error)
    card = {**_about(manifest), **_content(dataset, manifest)}
    if options.json:
        show_json({**card, "opened": dataset is not None, "why_not": closed or None})
    else:
        _print(card, closed)
    return 0


def _opened(options: Options, manifest: Manifest | None) -> "Dataset | None":
    if manifest is not None and manifest.name == "table":
        return None  # it stands for the user's own files
    return open_source(options.dataset, options.root, options.table, options.image, options.kinds or (), options.split)


def _about(manifest: Manifest | None) -> dict[str, Any]:
    """What the manifest alone knows."""
    if manifest is None:
        return {}
    return {
        "name": manifest.name,
        "title": manifest.title,
        "description": manifest.description,
        "homepage": manifest.homepage,
        "bytes": manifest.size,
        "licence": asdict(manifest.licence),
        "citation": manifest.citation,
        "splits": [asdict(split) for split in manifest.splits],
        "files": [file.path for file in manifest.files],
        "steps": list(manifest.steps),
    }


def _content(dataset: "Dataset | None", manifest: Manifest | None) -> dict[str, Any]:
    """Factors and pictures: of the data where they are here, else as the manifest describes them."""
    if dataset is None:
        factors = [] if manifest is None else [{**asdict(factor), "counts": None} for factor in manifest.factors]
        kinds = [] if manifest is None else [asdict(kind) for kind in manifest.modalities]
        return {"samples": manifest and manifest.samples, "factors": factors, "modalities": kinds, "sample": None}
    described = {factor.name: factor.description for factor in manifest.factors} if manifest else {}
    factors = []
    for factor in dataset.factors.factors:
        counts = None if factor.continuous else dataset.factors.counts(factor.name).tolist()
        known = {**_factor(factor), "description": described.get(factor.name, ""), "counts": counts}
        factors.append(known)
    return {
        "name": dataset.name,
        "samples": len(dataset.factors),
        "factors": factors,
        "modalities": [{"name": name, **asdict(kind)} for name, kind in dataset.modalities.items()],
        "sample": dataset.factors.row(0) if len(dataset.factors) else None,
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


def _print(card: dict[str, Any], closed: str) -> None:
    say(f"{card['name']}" + (f": {card['title']}" if card.get("title") else ""))
    if card.get("description"):
        say_prose(card["description"], piped=100)
    say()
    samples = "any number of" if card["samples"] is None else f"{card['samples']:,}"
    shapes = "; ".join(f"{kind['name']} {_shape(kind)}" for kind in card["modalities"])
    say_prose(
        f"{samples} samples"
        + (f", {readable_size(card['bytes'])} to fetch" if card.get("bytes") else "")
        + f"; {shapes}"
    )
    if card["factors"]:
        say()
        heads = ["factor", "kind", "levels", "values", "rows a level"]
        show_table(heads, [_cells(factor, card["sample"]) for factor in card["factors"]], right=("levels",))
    for split in card.get("splits", ()):
        say_prose(_split_words(split))
    if card["sample"] is not None:
        from setsup.reports.words import number_words

        say_prose(f"row 0: {', '.join(f'{name} = {number_words(value)}' for name, value in card['sample'].items())}")
    if card.get("licence"):
        licence = card["licence"]
        say()
        say_prose(f"licence: {' · '.join(licence[part] for part in ('name', 'url', 'note', 'sign') if licence[part])}")
    if card.get("homepage"):
        say(f"home: {card['homepage']}")
    if card.get("citation"):
        say()
        say(card["citation"].strip())
    if closed:
        say()
        say_prose(f"not opened: {closed}")


def _split_words(split: dict[str, Any]) -> str:
    words = f"split {split['name']}"
    if split["rows"] is not None:
        words += f", rows {split['rows'][0]:,} to {split['rows'][1] - 1:,}"
    if split["where"]:
        words += f", where {split['where']}"
    if split["parts"]:
        words += f", with parts {' and '.join(name for name, _ in split['parts'])}"
    return words + (f": {split['description']}" if split["description"] else "")


def _shape(kind: dict[str, Any]) -> str:
    lengths = " × ".join("any" if length is None else str(length) for length in kind["shape"])
    return " ".join(part for part in (lengths, kind["dtype"], kind["color"]) if part)


def _cells(factor: dict[str, Any], sample: dict[str, Any] | None) -> list[str]:
    from setsup.reports.words import number_words

    levels, counts = factor["levels"], factor["counts"]
    listed = isinstance(levels, list | tuple)
    shown = [number_words(level) for level in levels[:_LEVELS_SHOWN]] if listed else []
    values = ", ".join(shown) + (" …" if listed and len(levels) > _LEVELS_SHOWN else "")
    if not shown:
        values = factor["description"]
    elif factor["unit"]:
        values += f" {factor['unit']}"
    rows = ""
    if counts:
        rows = f"{counts[0]:,}" if len(set(counts)) == 1 else f"{min(counts):,} to {max(counts):,}"
    number = str(len(levels)) if listed else "" if levels is None else str(levels)
    kind = factor["kind"] + (f" ({factor['role']})" if factor["role"] != "variation" else "")
    kind += f" within {factor['within']}" if factor["within"] else ""
    return [factor["name"], kind, number, values, rows]
