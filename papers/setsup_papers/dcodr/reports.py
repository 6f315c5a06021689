"""Reports on the tables of DCoDR's paper and on its figures: of the paper's size, and of the small runs beside it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from setsup.experiments.report import Column, Report, Row
from setsup.experiments.report.report import Reference
from setsup_papers.dcodr import claims, tables
from setsup_papers.dcodr.benchmarks import BENCHMARKS, PAPER, Benchmark
from setsup_papers.dcodr.presets import COMPARED, ENDS, FIGURE_4, TABLE_1

__all__ = ["REPORTS"]

_NAMES = {benchmark.title: benchmark.name for benchmark in BENCHMARKS.values()}
_OWN = ("DCoDR-norec", "DCoDR")
_SHUFFLED = {method: f"{method}, no domain negatives" for method in _OWN}

_DOMAIN, _IDEAL, _ATTRIBUTES = "domain", "ideal", "informativeness"
_ALL, _ATTAINABLE = "all", "attainable"
_LANDMARKS = "landmarks: L1"
_READ = (f"probes: {_DOMAIN}", f"probes: {_ATTRIBUTES}")

_PROBED = (Column(_DOMAIN, "domain, lower is better"), Column(_IDEAL, "ideal"), Column(_ATTRIBUTES, "attributes"))
"""Columns of a report on probes."""

_PROBED_BESIDE = tuple(Column(f"probes: {column.key}", column.name) for column in _PROBED)
"""The same in a report on probes and other evaluations."""

_References = dict[tuple[str, str], Reference]
"""Numbers by the labels of rows and the keys of columns."""


@dataclass(frozen=True, slots=True)
class _Size:
    """What reports of a size of experiments are called, and what they say of it."""

    end: str = ""
    shows: str = ""
    source: str = ""
    paper: str = "the paper"

    def row(self, dataset: str, end: str, label: str) -> Row:
        """An experiment on a dataset."""
        return Row(f"dcodr/{dataset}{end}{self.end}", label)

    def report(self, name: str, shows: str, where: str, evaluations: str, rows: Iterable[Row], **more: Any) -> Report:
        """A report; `published` are the paper's numbers, and `evaluations` words."""
        if published := more.pop("published", None):
            more["references"] = {self.paper: published, **more.get("references", {})}
        return Report(
            name=f"dcodr/{name}{self.end}",
            shows=f"{shows}{self.shows}",
            source=f"{where} of {PAPER}{self.source}",
            evaluations=tuple(evaluations.split()),
            rows=tuple(rows),
            **{"digits": 3, **more},
        )


_PAPER = _Size()
_SMALL = _Size(
    end="-small",
    shows=", small",
    source="; small networks, no pre-training, few steps: not the paper's size",
    paper="the paper, its size",
)


def _published(numbers: Mapping[str, Iterable[Reference]], keys: Iterable[str], front: str = "") -> _References:
    """Numbers of a table, of the paper or what is optimal, by labels and keys."""
    keys = tuple(keys)
    return {
        (f"{front}{label}", key): value for label, row in numbers.items() for key, value in zip(keys, row, strict=True)
    }


def _methods(dataset: str, front: str = "") -> list[Row]:
    """All methods on a dataset."""
    return [_PAPER.row(_NAMES[dataset], end, f"{front}{method}") for method, end in ENDS.items()]


def _table_1(size: _Size) -> Report:
    rows = [
        size.row("cars3d", f"-norec-{name}", label)
        for name, label in zip(TABLE_1, tables.BLUR_AGAINST_FLIP, strict=True)
    ]
    published = _published(tables.BLUR_AGAINST_FLIP, (_DOMAIN, _ATTRIBUTES))
    shows = "DCoDR-norec with one augmentation on Cars3D"
    return size.report(
        "table1", shows, "table 1", "probes", rows, columns=_PROBED, published=published, claims=(claims.FLIP,)
    )


def _table_2() -> Report:
    rows: list[Row] = []
    published: _References = {}
    for dataset, numbers in tables.INVARIANCE.items():
        rows += _methods(dataset, f"{dataset}, ")
        published |= _published(numbers, (_READ[0], _second(dataset)), f"{dataset}, ")
    # the optimum has no preset: it stands beside the last method of each dataset
    optimal: _References = {}
    for dataset, best in tables.OPTIMAL.items():
        optimal |= _published({"DCoDR": best}, (_READ[0], _second(dataset)), f"{dataset}, ")
    return _PAPER.report(
        "table2",
        "accuracy of the domain and the attributes: all methods on four datasets",
        "table 2",
        "probes landmarks",
        rows,
        columns=(*_PROBED_BESIDE, Column(_LANDMARKS, "landmarks, L1 error")),
        published=published,
        references={"optimal": optimal},
        claims=claims.compared(tuple(tables.INVARIANCE)),
    )


def _second(dataset: str) -> str:
    """Second number of table 2: CelebA has landmarks in place of attributes."""
    return _LANDMARKS if dataset == "CelebA" else _READ[1]


def _table_3() -> Report:
    ends = {
        "no domain negatives": "-no-domain-negatives",
        "no positives": "-no-positives",
        "no pre-training": "-no-pre-training",
        "SimSiam augmentations": "-simsiam",
        "complete": "",
    }
    rows: list[Row] = []
    published: _References = {}
    for method, numbers in tables.VARIANTS.items():
        rows += [_PAPER.row("smallnorb", f"{ENDS[method]}{ends[name]}", f"{method}, {name}") for name in numbers]
        published |= _published(numbers, (_DOMAIN, _ATTRIBUTES), f"{method}, ")
    negatives = claims.without_negatives({f"{method}, complete": _SHUFFLED[method] for method in _OWN})
    shows = "ablations of DCoDR on SmallNORB"
    return _PAPER.report(
        "table3", shows, "table 3", "probes", rows, columns=_PROBED, published=published, claims=(negatives,)
    )


def _table_4() -> Report:
    rows: list[Row] = []
    published: _References = {}
    for dataset, numbers in tables.RETRIEVAL.items():
        rows += _methods(dataset, f"{dataset}, ")
        published |= _published(numbers, (_ALL,), f"{dataset}, ")
    columns = (Column(_ALL, "all attributes of the nearest image"), Column(_ATTAINABLE, "attainable"))
    shows = "whether the nearest image has the attributes of the query"
    return _PAPER.report("table4", shows, "table 4", "retrieval", rows, columns=columns, published=published)


_SECONDS = Column("seconds per epoch", unit="seconds")
_IMAGES = Column("images per second", unit="images per second")


def _durations(size: _Size, datasets: Iterable[str]) -> list[Row]:
    ends = {"LORD, first stage": "-lord-latent", "LORD, second stage": "-lord", "DCoDR": "", "DCoDR-norec": "-norec"}
    return [
        size.row(_NAMES[dataset], end, f"{dataset}, {label}") for dataset in datasets for label, end in ends.items()
    ]


def _table_5() -> Report:
    published: _References = {}
    for dataset, numbers in tables.HOURS.items():
        for method, (hours,) in numbers.items():
            if method == "LORD":  # the paper has one number for both stages
                published[f"{dataset}, LORD, first stage", "hours"] = f"{hours:g}, both stages"
            else:
                published[f"{dataset}, {method}", "hours"] = hours
    return _PAPER.report(
        "table5",
        "duration of the training; ours on the machine of each run",
        "table 5",
        "time",
        _durations(_PAPER, tables.HOURS),
        columns=(Column("hours", "hours of 200 epochs", unit="hours"), _SECONDS, _IMAGES),
        digits=1,
        published=published,
        claims=(claims.faster(tuple(tables.HOURS)),),
    )


def _small_table_5() -> Report:
    datasets = tuple(BENCHMARKS[name].title for name in COMPARED)
    report = _SMALL.report(
        "table5",
        "",
        "table 5",
        "time",
        _durations(_SMALL, datasets),
        columns=(_SECONDS, Column("seconds per step", unit="seconds"), _IMAGES),
        digits=2,
        claims=(claims.faster(datasets),),
    )
    return replace(report, shows="duration of an epoch, small; on the machine of each run")


def _transforms(table: str, column: int, key: str, shown: str) -> Report:
    """Tables 6 and 7: transforms, on three datasets."""
    rows: list[Row] = []
    published: _References = {}
    for number, dataset in enumerate(tables.APPENDIX_DATASETS, 1):
        for transform, numbers in tables.AUTOENCODERS.items():
            label = f"{dataset}, {transform.replace('-', ' ')}"
            rows.append(Row(f"dcodr/{_NAMES[dataset]}", label, f"{transform}: "))
            published[label, key] = numbers[number][column]
    shows = f"how much a transform changes the reconstructions of an autoencoder, {shown}"
    where = table.replace("table", "table ")
    return _PAPER.report(table, shows, where, "transforms", rows, columns=(Column(key),), digits=4, published=published)


def _by_attribute(
    table: str, dataset: str, shows: str, evaluation: str, numbers: tuple[tuple[str, ...], tables.Numbers]
) -> Report:
    """Tables 8 to 12: every attribute, and what is attainable."""
    keys, by_method = numbers
    references = {"optimal": _published({"DCoDR": by_method["optimal"]}, keys)} if "optimal" in by_method else {}
    columns = [Column(key, key.replace("_", " ")) for key in keys]
    columns.append(Column(_IDEAL if evaluation == "probes" else _ATTAINABLE))
    return _PAPER.report(
        table,
        shows,
        table.partition("-")[0].replace("table", "table "),
        evaluation,
        _methods(dataset),
        columns=tuple(columns),
        published=_published({method: by_method[method] for method in ENDS}, keys),
        references=references,
    )


def _tables_8_to_12() -> Iterator[Report]:
    for number, dataset in ((8, "SmallNORB"), (9, "Shapes3D")):
        shows = f"accuracy of each factor of {dataset}"
        yield _by_attribute(f"table{number}", dataset, shows, "probes", tables.ATTRIBUTES[dataset])
    for number, dataset in ((10, "SmallNORB"), (11, "Shapes3D"), (12, "Edges2Shoes")):
        shows = f"attributes of the nearest image, {dataset}"
        yield _by_attribute(f"table{number}", dataset, shows, "retrieval", tables.RETRIEVED[dataset])
    wide = "attributes of the nearest image, SmallNORB, azimuths within 3 steps in place of 2"
    yield _by_attribute("table10-wide", "SmallNORB", wide, "retrieval_wide", tables.RETRIEVED["SmallNORB"])


def _figure_4() -> Report:
    rows = [_PAPER.row("smallnorb", f"-norec-{name}", name.replace("-", " ")) for name in FIGURE_4]
    shows = "DCoDR-norec with one augmentation on SmallNORB; a figure, in which the crop is best"
    return _PAPER.report("fig4", shows, "figure 4", "probes", rows, columns=_PROBED, claims=(claims.CROP,))


def _sheets(number: int, dataset: str) -> Report:
    """Figures 2 and 3: images beside their nearest ones."""
    columns = (Column(_ALL, "all attributes of the nearest image"),)
    shows = f"queries of {dataset} and their nearest images"
    return _PAPER.report(f"fig{number}", shows, f"figure {number}", "retrieval", _methods(dataset), columns=columns)


def _paper() -> Iterator[Report]:
    yield from (_table_1(_PAPER), _table_2(), _table_3(), _table_4(), _table_5())
    yield _transforms("table6", 0, "normalised", "divided by how far the transform moves them")
    yield _transforms("table7", 1, "unnormalised", "perceptual distance")
    yield from _tables_8_to_12()
    yield from (_figure_4(), _sheets(2, "SmallNORB"), _sheets(3, "Edges2Shoes"))


# -- small runs only ---------------------------------------------------------------------------------------------------


def _small_rows(benchmark: Benchmark) -> list[Row]:
    """All methods, and DCoDR without negatives of the domain."""
    ends = ENDS | {label: f"{ENDS[method]}-no-domain-negatives" for method, label in _SHUFFLED.items()}
    return [_SMALL.row(benchmark.name, end, label) for label, end in ends.items()]


def _compared(benchmark: Benchmark) -> Report:
    """Beside the paper's numbers on the genuine dataset at its size, and those of SmallNORB without parts."""
    nearest_key = f"retrieval: {_ALL}"
    published = _published(tables.INVARIANCE[benchmark.title], _READ) | _published(
        tables.RETRIEVAL[benchmark.title], (nearest_key,)
    )
    parts: _References = {}
    for method, rows in tables.VARIANTS.items():
        some = {method: rows["no pre-training"], _SHUFFLED[method]: rows["no domain negatives"]}
        parts |= _published(some, _READ)
    columns = (Column(nearest_key, "nearest image: all attributes"), Column(f"retrieval: {_ATTAINABLE}", _ATTAINABLE))
    return _SMALL.report(
        benchmark.name,
        f"invariance, attributes and retrieval of all methods on {benchmark.title}",
        "tables 2, 3 and 4",
        "probes retrieval",
        _small_rows(benchmark),
        columns=(*_PROBED_BESIDE, *columns),
        published=published,
        references={f"{_SMALL.paper}, SmallNORB without pre-training, or without domain negatives": parts},
        claims=(*claims.compared(("",)), claims.without_negatives(_SHUFFLED, _READ[0])),
    )


def _factors(benchmark: Benchmark) -> Report:
    """Every attribute, read and retrieved."""
    read = [Column(f"probes: {name}", f"{name.replace('_', ' ')}, read") for name in benchmark.attributes]
    nearest_columns = [
        Column(f"retrieval: {name}", f"{name.replace('_', ' ')}, nearest") for name in benchmark.attributes
    ]
    shows = f"every attribute of {benchmark.title}, read and of the nearest image"
    columns = (Column(_READ[0], _DOMAIN), *read, *nearest_columns)
    rows = _small_rows(benchmark)
    return _SMALL.report(
        f"{benchmark.name}-factors", shows, "tables 8 to 11", "probes retrieval", rows, columns=columns
    )


def _small() -> Iterator[Report]:
    yield from (_compared(BENCHMARKS[name]) for name in COMPARED)
    yield from (_factors(BENCHMARKS[name]) for name in COMPARED)
    yield from (_table_1(_SMALL), _small_table_5())


REPORTS = [*_paper(), *_small()]
"""All reports."""
