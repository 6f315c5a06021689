"""Reports on the tables of DCoDR's paper and on its figures, of the paper's size."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from setsup.experiments.report import Column, Report, Row
from setsup.experiments.report.report import Reference
from setsup_papers.dcodr import claims, tables
from setsup_papers.dcodr.benchmarks import BENCHMARKS, PAPER
from setsup_papers.dcodr.presets import ENDS, FIGURE_4

__all__ = ["PROBED", "PROBED_BESIDE", "REPORTS", "References", "published"]

_VARIANTS = {
    "no domain negatives": "-no-domain-negatives",
    "no positives": "-no-positives",
    "no pre-training": "-no-pre-training",
    "SimSiam augmentations": "-simsiam",
    "complete": "",
}
"""Rows of table 3."""

_NAMES = {one.title: one.name for one in BENCHMARKS.values()}
_DOMAIN, _IDEAL, _ATTRIBUTES = "domain", "ideal", "informativeness"
_ALL, _ATTAINABLE = "all", "attainable"
_LANDMARKS = "landmarks: L1"

PROBED = (Column(_DOMAIN, "domain, lower is better"), Column(_IDEAL, "ideal"), Column(_ATTRIBUTES, "attributes"))
"""Columns of a report on probes."""

PROBED_BESIDE = tuple(Column(f"probes: {one.key}", one.name) for one in PROBED)
"""The same in a report on probes and other evaluations."""

References = dict[tuple[str, str], Reference]
"""Numbers by the labels of rows and the keys of columns."""


def _row(dataset: str, method: str, variant: str = "", label: str = "") -> Row:
    """A method on a dataset."""
    return Row(f"dcodr/{_NAMES[dataset]}{ENDS[method]}{variant}", label or method)


def _report(table: str, shows: str, evaluation: str, rows: Iterable[Row], **more: Any) -> Report:
    """Of the paper's size."""
    number = table.partition("-")[0].replace("table", "table ").replace("fig", "figure ")
    options: dict[str, Any] = {"source": f"{number} of {PAPER}", "digits": 3} | more
    return Report(name=f"dcodr/{table}", shows=shows, evaluations=(evaluation,), rows=tuple(rows), **options)


def published(numbers: Mapping[str, Iterable[Reference]], keys: Iterable[str], front: str = "") -> References:
    """Numbers of a table, of the paper or what is optimal, by labels and keys."""
    keys = tuple(keys)
    return {
        (f"{front}{label}", key): value for label, row in numbers.items() for key, value in zip(keys, row, strict=True)
    }


def _references(said: References, optimal: References | None = None) -> dict[str, References]:
    return {"the paper": said, **({"optimal": optimal} if optimal else {})}


def _augmentations() -> Report:
    rows = (
        _row("Cars3D", "DCoDR-norec", "-blur", "Gaussian blur"),
        _row("Cars3D", "DCoDR-norec", "-horizontal-flip", "horizontal flip"),
    )
    said = published(tables.BLUR_AGAINST_FLIP, (_DOMAIN, _ATTRIBUTES))
    shows = "DCoDR-norec with one augmentation on Cars3D"
    more: dict[str, Any] = {"columns": PROBED, "references": _references(said), "claims": (claims.FLIP,)}
    return _report("table1", shows, "probes", rows, **more)


def _invariance() -> Report:
    rows: list[Row] = []
    said: References = {}
    for dataset, numbers in tables.INVARIANCE.items():
        rows += [_row(dataset, method, label=f"{dataset}, {method}") for method in ENDS]
        values = _LANDMARKS if dataset == "CelebA" else f"probes: {_ATTRIBUTES}"
        said |= published(numbers, (f"probes: {_DOMAIN}", values), f"{dataset}, ")
    columns = (*PROBED_BESIDE, Column(_LANDMARKS, "landmarks, L1 error"))
    # the optimum has no preset: it stands beside the last method of each dataset
    optimal: References = {}
    for dataset, (domain, best) in tables.OPTIMAL.items():
        key = _LANDMARKS if dataset == "CelebA" else f"probes: {_ATTRIBUTES}"
        optimal |= {(f"{dataset}, DCoDR", f"probes: {_DOMAIN}"): domain, (f"{dataset}, DCoDR", key): best}
    return Report(
        name="dcodr/table2",
        shows="how well the domain and the attributes can be read: all methods on four datasets",
        source=f"table 2 of {PAPER}",
        evaluations=("probes", "landmarks"),
        rows=tuple(rows),
        columns=columns,
        digits=3,
        references=_references(said, optimal),
        claims=claims.INVARIANCE,
    )


def _variants() -> Report:
    rows: list[Row] = []
    said: References = {}
    for method, numbers in tables.VARIANTS.items():
        rows += [_row("SmallNORB", method, _VARIANTS[name], f"{method}, {name}") for name in numbers]
        said |= published(numbers, (_DOMAIN, _ATTRIBUTES), f"{method}, ")
    shows = "what parts of DCoDR do, on SmallNORB"
    more: dict[str, Any] = {"columns": PROBED, "references": _references(said), "claims": (claims.NEGATIVES,)}
    return _report("table3", shows, "probes", rows, **more)


def _retrieval() -> Report:
    rows: list[Row] = []
    said: References = {}
    for dataset, numbers in tables.RETRIEVAL.items():
        rows += [_row(dataset, method, label=f"{dataset}, {method}") for method in ENDS]
        said |= published(numbers, (_ALL,), f"{dataset}, ")
    columns = (Column(_ALL, "all attributes of the nearest image"), Column(_ATTAINABLE, "attainable"))
    shows = "whether the nearest image has the attributes of the query"
    return _report("table4", shows, "retrieval", rows, columns=columns, references=_references(said))


def _hours() -> Report:
    rows: list[Row] = []
    said: References = {}
    for dataset, numbers in tables.HOURS.items():
        rows.append(Row(f"dcodr/{_NAMES[dataset]}-lord-latent", f"{dataset}, LORD, first stage"))
        rows.append(_row(dataset, "LORD", label=f"{dataset}, LORD, second stage"))
        rows += [_row(dataset, method, label=f"{dataset}, {method}") for method in ("DCoDR", "DCoDR-norec")]
        both = {"LORD, first stage": (f"{numbers['LORD'][0]:g}, both stages",)}
        said |= published(
            {**both, **{method: row for method, row in numbers.items() if method != "LORD"}}, ("hours",), f"{dataset}, "
        )
    columns = (
        Column("hours", "hours of 200 epochs", unit="hours"),
        Column("seconds per epoch", unit="seconds"),
        Column("images per second", unit="images per second"),
    )
    shows = "duration of the training; ours on the machine of each run"
    more: dict[str, Any] = {"columns": columns, "references": _references(said), "claims": (claims.SPEED,)}
    return _report("table5", shows, "time", rows, digits=1, **more)


def _autoencoders(table: str, place: int, key: str, words: str) -> Report:
    """Tables 6 and 7: transforms, on three datasets."""
    rows: list[Row] = []
    said: References = {}
    for at, dataset in enumerate(tables.APPENDIX_DATASETS, 1):
        for transform, numbers in tables.AUTOENCODERS.items():
            label = f"{dataset}, {transform.replace('-', ' ')}"
            rows.append(Row(f"dcodr/{_NAMES[dataset]}", label, f"{transform}: "))
            said[label, key] = numbers[at][place]
    shows = f"how far an autoencoder moves images that are transformed, {words}"
    columns = (Column(key),)
    return _report(table, shows, "transforms", rows, columns=columns, digits=4, references=_references(said))


def _each(
    table: str, dataset: str, shows: str, evaluation: str, numbers: tuple[tuple[str, ...], tables.Numbers]
) -> Report:
    """Tables 8 to 12: every attribute."""
    keys, by_method = numbers
    said = published({method: by_method[method] for method in ENDS}, keys)
    optimal = published({"DCoDR": by_method["optimal"]}, keys) if "optimal" in by_method else None
    columns = [Column(key, key.replace("_", " ")) for key in keys]
    columns.append(Column(_IDEAL if evaluation == "probes" else _ATTAINABLE))
    rows = [_row(dataset, method) for method in ENDS]
    return _report(table, shows, evaluation, rows, columns=tuple(columns), references=_references(said, optimal))


def _figure_4() -> Report:
    rows = [_row("SmallNORB", "DCoDR-norec", f"-{name}", name.replace("-", " ")) for name in FIGURE_4]
    shows = "DCoDR-norec with one augmentation on SmallNORB; a figure, in which the crop is best"
    return _report("fig4", shows, "probes", rows, columns=PROBED, claims=(claims.CROP,))


def _sheets(figure: str, dataset: str) -> Report:
    """Figures 2 and 3: images beside their nearest ones."""
    rows = [_row(dataset, method) for method in ENDS]
    columns = (Column(_ALL, "all attributes of the nearest image"),)
    return _report(figure, f"queries of {dataset} and their nearest images", "retrieval", rows, columns=columns)


def _reports() -> Iterator[Report]:
    yield _augmentations()
    yield _invariance()
    yield _variants()
    yield _retrieval()
    yield _hours()
    yield _autoencoders("table6", 0, "normalised", "divided by how far the transform moves them")
    yield _autoencoders("table7", 1, "unnormalised", "perceptual distance")
    for number, dataset in ((8, "SmallNORB"), (9, "Shapes3D")):
        shows = f"how well each factor of {dataset} can be read"
        yield _each(f"table{number}", dataset, shows, "probes", tables.ATTRIBUTES[dataset])
    for number, dataset in ((10, "SmallNORB"), (11, "Shapes3D"), (12, "Edges2Shoes")):
        shows = f"attributes of the nearest image, {dataset}"
        yield _each(f"table{number}", dataset, shows, "retrieval", tables.RETRIEVED[dataset])
    wide = "attributes of the nearest image, SmallNORB, azimuths within 3 steps in place of 2"
    yield _each("table10-wide", "SmallNORB", wide, "retrieval_wide", tables.RETRIEVED["SmallNORB"])
    yield _figure_4()
    yield from (_sheets("fig2", "SmallNORB"), _sheets("fig3", "Edges2Shoes"))


REPORTS = list(_reports())
"""All reports."""
