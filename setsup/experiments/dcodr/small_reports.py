"""Reports on small runs of DCoDR, beside what the paper has at its own size."""

from collections.abc import Iterator

from setsup.experiments.dcodr import claims, tables
from setsup.experiments.dcodr.datasets import BENCHMARKS, PAPER, Benchmark
from setsup.experiments.dcodr.presets import TABLE_1
from setsup.experiments.dcodr.small_presets import COMPARED
from setsup.experiments.dcodr.tables import METHODS
from setsup.experiments.report import Column, Report, Row
from setsup.experiments.report.report import Reference

__all__ = ["REPORTS"]

_SIZE = "; small networks, no pre-training, few steps: not the paper's size"
_ENDS = {"LORD": "-lord", "DRNET": "-drnet", "ML-VAE": "-ml-vae", "DCoDR-norec": "-norec", "DCoDR": ""}
_SHUFFLED = {
    f"{method}, no domain negatives": f"{_ENDS[method]}-no-domain-negatives" for method in ("DCoDR-norec", "DCoDR")
}

_DOMAIN, _ATTRIBUTES, _FOUND = "probes: domain", "probes: informativeness", "retrieval: all"
_COLUMNS = (
    Column(_DOMAIN, "domain, lower is better"),
    Column("probes: ideal", "ideal"),
    Column(_ATTRIBUTES, "attributes"),
    Column(_FOUND, "nearest image: all attributes"),
    Column("retrieval: attainable", "attainable"),
)

_Said = dict[tuple[str, str], Reference]


def _numbers(dataset: str) -> dict[str, _Said]:
    """Numbers of the paper on the genuine dataset at its size, and those of SmallNORB without parts."""
    said: _Said = {}
    for method in METHODS:
        domain, attributes = tables.INVARIANCE[dataset][method]
        said[method, _DOMAIN], said[method, _ATTRIBUTES] = domain, attributes
        said[method, _FOUND] = tables.RETRIEVAL[dataset][method][0]
    parts: _Said = {}
    for method, rows in tables.VARIANTS.items():
        for label, name in ((method, "no pre-training"), (f"{method}, no domain negatives", "no domain negatives")):
            parts[label, _DOMAIN], parts[label, _ATTRIBUTES] = rows[name]
    return {
        "the paper, its size": said,
        "the paper, its size, SmallNORB without pre-training, or without domain negatives": parts,
    }


def _compared(benchmark: Benchmark) -> Report:
    rows = [*((_ENDS[method], method) for method in METHODS), *((end, label) for label, end in _SHUFFLED.items())]
    pairs = tuple((method, f"{method}, no domain negatives") for method in ("DCoDR-norec", "DCoDR"))
    return Report(
        name=f"dcodr/{benchmark.name}-small",
        shows=f"invariance, attributes and retrieval of all methods on {benchmark.title}, small",
        source=f"tables 2, 3 and 4 of {PAPER}{_SIZE}",
        evaluations=("probes", "retrieval"),
        rows=tuple(Row(f"dcodr/{benchmark.name}{end}-small", label) for end, label in rows),
        columns=_COLUMNS,
        digits=3,
        references=_numbers(benchmark.title),
        claims=(*claims.compared(("",)), claims.without_negatives(pairs, _DOMAIN)),
    )


def _factors(benchmark: Benchmark) -> Report:
    """Every attribute, read and retrieved."""
    rows = [*((_ENDS[method], method) for method in METHODS), *((end, label) for label, end in _SHUFFLED.items())]
    read = tuple(Column(f"probes: {name}", f"{name.replace('_', ' ')}, read") for name in benchmark.attributes)
    found = tuple(Column(f"retrieval: {name}", f"{name.replace('_', ' ')}, nearest") for name in benchmark.attributes)
    return Report(
        name=f"dcodr/{benchmark.name}-factors-small",
        shows=f"every attribute of {benchmark.title}, read and of the nearest image, small",
        source=f"tables 8 to 11 of {PAPER}{_SIZE}",
        evaluations=("probes", "retrieval"),
        rows=tuple(Row(f"dcodr/{benchmark.name}{end}-small", label) for end, label in rows),
        columns=(Column(_DOMAIN, "domain"), *read, *found),
        digits=3,
    )


def _augmentations() -> Report:
    rows = tuple(
        Row(f"dcodr/cars3d-norec-{name}-small", label)
        for name, label in zip(TABLE_1, tables.BLUR_AGAINST_FLIP, strict=True)
    )
    said: _Said = {}
    for label, (domain, attributes) in tables.BLUR_AGAINST_FLIP.items():
        said[label, "domain"], said[label, "informativeness"] = domain, attributes
    return Report(
        name="dcodr/table1-small",
        shows="DCoDR-norec with one augmentation on Cars3D, small",
        source=f"table 1 of {PAPER}{_SIZE}",
        evaluations=("probes",),
        rows=rows,
        columns=(Column("domain", "domain, lower is better"), Column("ideal"), Column("informativeness", "attributes")),
        digits=3,
        references={"the paper, its size": said},
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
