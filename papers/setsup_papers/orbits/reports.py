"""Reports on table 2 of the orbit papers: digits, and what single settings change."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from setsup.experiments.report import Claim, Column, HeatMap, Means, Report, Resplits, Row
from setsup.experiments.report.criteria import has
from setsup.experiments.report.report import Spread
from setsup_papers.orbits import presets, views
from setsup_papers.orbits.presets import COMPARED, PAPER

__all__ = ["REPORTS"]

_Values = Mapping[str, tuple[float, float | None]]
_Published = Mapping[str, _Values]

_NAMES = [preset.name for preset in (*presets.PRESETS, *views.PRESETS)]

_LABELS = {
    "st": "ST",
    "oj": "OJ",
    "ex": "EX",
    "ot": "OT",
    "oe": "OE",
    "ae": "AE",
    "st-stn": "ST-STN",
    "ot-stn": "OT-STN",
}
"""In the order of the table; AE is not in it."""

_KEY = "any member"
_COLUMNS = (
    Column(_KEY, "one label per class"),
    Column(f"{_KEY}: spread", "± over re-splits"),
    Column("original only", "labelled: originals"),
)

_DIGITS: _Values = {
    "ST": (0.97, 0.02),
    "OJ": (0.67, 0.05),
    "EX": (0.44, 0.06),
    "OT": (0.37, 0.04),
    "OE": (0.40, 0.05),
    "ST-STN": (0.97, 0.01),
    "OT-STN": (0.34, 0.03),
}
_EVEN_ODD: _Values = {
    "ST": (0.49, 0.08),
    "OJ": (0.59, 0.08),
    "EX": (0.55, 0.07),
    "OT": (0.52, 0.07),
    "OE": (0.54, 0.07),
}
_NORB: _Values = {
    "ST": (0.67, 0.13),
    "OJ": (0.59, 0.12),
    "EX": (0.58, 0.11),
    "OT": (0.55, 0.12),
    "OE": (0.54, 0.11),
}
_FACES: _Published = {
    "AUC": {"ST": (0.99, None), "OJ": (0.95, 0.01), "EX": (0.89, 0.01), "OT": (0.92, 0.01), "OE": (0.87, 0.02)},
    "top-1": {"ST": (0.99, None), "OJ": (0.91, 0.01), "EX": (0.71, 0.04), "OT": (0.93, 0.02), "OE": (0.83, 0.02)},
}
_TRAINED_ON = Column("orbits", "orbits trained on", unit="orbits")
_RESPLITS = Resplits(_KEY, "OJ")
"""Figure 3, and the tests of table 2."""
_UNSUPERVISED = ("OJ", "EX", "OT", "OE")
_SIZE = "; half width, 5,000 orbits, 1,000 steps of 128 images: not the paper's size"


def _best(means: Means) -> tuple[bool | None, str]:
    """Whether OJ is above every other method without labels, by more than two standard errors over seeds."""
    if not all(has(means, label, (_KEY,)) and means[label][_KEY].n > 1 for label in _UNSUPERVISED):
        return None, f"needs two seeds or more of each of {', '.join(_UNSUPERVISED)}"
    own, *others = (means[label][_KEY] for label in _UNSUPERVISED)
    words = ", ".join(f"{label} {means[label][_KEY].words(3)}" for label in _UNSUPERVISED)
    return all(own.mean - other.mean > 2 * _error(own, other) for other in others), words


def _error(first: Spread, second: Spread) -> float:
    """Standard error of the difference of two means."""
    return math.hypot(*(one.sd / math.sqrt(one.n) for one in (first, second) if one.sd is not None))


_CLAIM = Claim(
    says="With the same images, the orbit joint loss needs fewer labels than its parts and exemplars (table 2).",
    tested="OJ is above EX, OT and OE by more than two standard errors over seeds",
    rows=_UNSUPERVISED,
    criterion=_best,
)


def _report(
    dataset: str,
    shows: str,
    evaluation: str,
    columns: tuple[Column, ...],
    published: _Published,
    small: bool,
    **more: Any,
) -> Report:
    """All methods on a dataset, beside what the paper publishes by column and method."""
    end = "-small" if small else ""
    rows = {label: f"orbits/{dataset}-{method}{end}" for method, label in _LABELS.items()}
    said = {(label, key): value for key, values in published.items() for label, value in values.items()}
    where = "table 2" if published else "the experiment on videos, which gives figures only,"
    return Report(
        name=f"orbits/{dataset}{end}",
        shows=f"{shows}{', small' if small else ''}",
        source=f"{where} of {PAPER}{_SIZE if small and columns is _COLUMNS else ''}",
        evaluations=(evaluation,),
        rows=tuple(Row(name, label) for label, name in rows.items() if name in _NAMES),
        columns=columns,
        digits=3,
        references={"the paper": said} if said else {},
        **more,
    )


def _reports(small: bool) -> Iterator[Report]:
    """One for each dataset."""
    tested: dict[str, Any] = {"claims": (_CLAIM,), "resplits": _RESPLITS}
    digits = "one-shot accuracy on affine MNIST"
    yield _report("mnist", digits, "oneshot", _COLUMNS, {_KEY: _DIGITS}, small, **tested)
    odd = "trained on even digits, one-shot on odd ones"
    yield _report("even-odd", odd, "oneshot", _COLUMNS, {_KEY: _EVEN_ODD}, small, **tested)
    toys = "one-shot accuracy on SmallNORB"
    yield _report("norb", toys, "oneshot", _COLUMNS[:2], {_KEY: _NORB}, small, resplits=_RESPLITS)
    faces = "verification and retrieval of faces"
    yield _report("multi-pie", faces, "verification", (Column("AUC"), Column("top-1")), _FACES, small)
    counts = tuple(Column(key) for key in ("1 label", "5 labels", "20 labels"))
    heat = HeatMap("accuracy", _TRAINED_ON.key, "accuracy")
    axes = {"x_label": "labelled images per class", "y_label": "accuracy"}
    videos = "accuracy against labelled faces per person"
    yield _report("video", videos, "samples", (*counts, _TRAINED_ON), {}, small, heat=heat, **axes)


def _comparisons() -> Iterator[Row]:
    """Each method as it is, and then with one setting changed."""
    for end in COMPARED:
        small = f"orbits/mnist-{end}-small"
        yield Row(small, _LABELS[end])
        for name in _NAMES:
            if name.startswith(f"{small}-"):
                yield Row(name, f"{_LABELS[end]} {name.removeprefix(f'{small}-').replace('-', ' ')}")


def _maps(small: bool) -> Report:
    end = "-small" if small else ""
    return Report(
        name=f"orbits/fig2{end}",
        shows=f"t-SNE of orbits of digits, coloured by class and by orbit{', small' if small else ''}",
        source=f"figure 2 of {PAPER}: images only{_SIZE if small else ''}",
        evaluations=("map",),
        rows=(
            *(Row(f"orbits/mnist-{method}{end}", _LABELS[method]) for method in COMPARED),
            Row(f"orbits/mnist-oj{end}", "pixels", "pixels: "),
        ),
        columns=(
            Column("nearest: orbit", "nearest image: same orbit"),
            Column("nearest: class", "nearest other orbit: same class"),
        ),
        digits=3,
    )


REPORTS = [
    *(report for small in (False, True) for report in _reports(small)),
    *(_maps(small) for small in (False, True)),
    Report(
        name="orbits/compared-small",
        shows="what single settings change in small runs on affine MNIST",
        source=f"no table of {PAPER}{_SIZE}",
        evaluations=("oneshot",),
        rows=tuple(_comparisons()),
        columns=_COLUMNS,
        digits=3,
    ),
]
"""All reports."""
