"""Reports on small runs of DCoDR, beside what the paper has at its own size."""

from collections.abc import Iterator

from setsup.experiments.report import Column, Report, Row
from setsup_papers.dcodr import claims, tables
from setsup_papers.dcodr.benchmarks import BENCHMARKS, PAPER, Benchmark
from setsup_papers.dcodr.presets import ENDS, TABLE_1
from setsup_papers.dcodr.reports import PROBED, PROBED_BESIDE, References, published
from setsup_papers.dcodr.small_presets import COMPARED

__all__ = ["REPORTS"]

_SIZE = "; small networks, no pre-training, few steps: not the paper's size"
_OWN = ("DCoDR-norec", "DCoDR")
_SHUFFLED = {method: f"{method}, no domain negatives" for method in _OWN}

_DOMAIN, _ATTRIBUTES, _FOUND = "probes: domain", "probes: informativeness", "retrieval: all"
_COLUMNS = (
    *PROBED_BESIDE,
    Column(_FOUND, "nearest image: all attributes"),
    Column("retrieval: attainable", "attainable"),
)


def _rows(benchmark: Benchmark) -> tuple[Row, ...]:
    """All methods, and DCoDR without negatives of the domain."""
    ends = ENDS | {label: f"{ENDS[method]}-no-domain-negatives" for method, label in _SHUFFLED.items()}
    return tuple(Row(f"dcodr/{benchmark.name}{end}-small", label) for label, end in ends.items())


def _numbers(dataset: str) -> dict[str, References]:
    """Numbers of the paper on the genuine dataset at its size, and those of SmallNORB without parts."""
    said = published(tables.INVARIANCE[dataset], (_DOMAIN, _ATTRIBUTES))
    said |= published(tables.RETRIEVAL[dataset], (_FOUND,))
    parts: References = {}
    for method, rows in tables.VARIANTS.items():
        some = {method: rows["no pre-training"], _SHUFFLED[method]: rows["no domain negatives"]}
        parts |= published(some, (_DOMAIN, _ATTRIBUTES))
    return {
        "the paper, its size": said,
        "the paper, its size, SmallNORB without pre-training, or without domain negatives": parts,
    }


def _compared(benchmark: Benchmark) -> Report:
    return Report(
        name=f"dcodr/{benchmark.name}-small",
        shows=f"invariance, attributes and retrieval of all methods on {benchmark.title}, small",
        source=f"tables 2, 3 and 4 of {PAPER}{_SIZE}",
        evaluations=("probes", "retrieval"),
        rows=_rows(benchmark),
        columns=_COLUMNS,
        digits=3,
        references=_numbers(benchmark.title),
        claims=(*claims.compared(("",)), claims.without_negatives(tuple(_SHUFFLED.items()), _DOMAIN)),
    )


def _factors(benchmark: Benchmark) -> Report:
    """Every attribute, read and retrieved."""
    read = tuple(Column(f"probes: {name}", f"{name.replace('_', ' ')}, read") for name in benchmark.attributes)
    found = tuple(Column(f"retrieval: {name}", f"{name.replace('_', ' ')}, nearest") for name in benchmark.attributes)
    return Report(
        name=f"dcodr/{benchmark.name}-factors-small",
        shows=f"every attribute of {benchmark.title}, read and of the nearest image, small",
        source=f"tables 8 to 11 of {PAPER}{_SIZE}",
        evaluations=("probes", "retrieval"),
        rows=_rows(benchmark),
        columns=(Column(_DOMAIN, "domain"), *read, *found),
        digits=3,
    )


def _augmentations() -> Report:
    rows = tuple(
        Row(f"dcodr/cars3d-norec-{name}-small", label)
        for name, label in zip(TABLE_1, tables.BLUR_AGAINST_FLIP, strict=True)
    )
    return Report(
        name="dcodr/table1-small",
        shows="DCoDR-norec with one augmentation on Cars3D, small",
        source=f"table 1 of {PAPER}{_SIZE}",
        evaluations=("probes",),
        rows=rows,
        columns=PROBED,
        digits=3,
        references={"the paper, its size": published(tables.BLUR_AGAINST_FLIP, ("domain", "informativeness"))},
        claims=(claims.FLIP,),
    )


def _duration() -> Report:
    ends = {"LORD, first stage": "-lord-latent", "LORD, second stage": "-lord", "DCoDR": "", "DCoDR-norec": "-norec"}
    rows = [
        Row(f"dcodr/{name}{end}-small", f"{BENCHMARKS[name].title}, {label}")
        for name in COMPARED
        for label, end in ends.items()
    ]
    return Report(
        name="dcodr/table5-small",
        shows="duration of an epoch, small; on the machine of each run",
        source=f"table 5 of {PAPER}{_SIZE}",
        evaluations=("time",),
        rows=tuple(rows),
        columns=(
            Column("seconds per epoch", unit="seconds"),
            Column("seconds per step", unit="seconds"),
            Column("images per second", unit="images per second"),
        ),
        digits=2,
        claims=(claims.faster(tuple(BENCHMARKS[name].title for name in COMPARED)),),
    )


def _reports() -> Iterator[Report]:
    yield from (_compared(BENCHMARKS[name]) for name in COMPARED)
    yield from (_factors(BENCHMARKS[name]) for name in COMPARED)
    yield _augmentations()
    yield _duration()


REPORTS = list(_reports())
"""All small reports."""
