"""Reports on the orbit papers, each written once for both sizes of its runs; and what single settings change."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from setsup.experiments.report import Claim, Column, HeatMap, Means, Report, Resplits, Row
from setsup.experiments.report.criteria import has
from setsup.experiments.report.report import Spread
from setsup_papers.orbits.presets import COMPARED, PRESETS

__all__ = ["PAPER", "REPORTS"]

PAPER = (
    '"Trading robust representations for sample complexity through self-supervised visual experience", NeurIPS 2018, '
    'with "Discriminate-and-rectify encoders", arXiv 1703.04775'
)
_SIZE = "; half width, 5,000 orbits, 1,000 steps of 128 images: not the paper's size"
"""Of small runs on digits."""

_NAMES = [preset.name for preset in PRESETS]

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
_ACCURACY = (Column(_KEY, "one label per class"), Column(f"{_KEY}: spread", "± over re-splits"))
_DIGITS = (*_ACCURACY, Column("original only", "labelled: originals"))
_VIDEOS = (
    *(Column(key) for key in ("1 label", "5 labels", "20 labels")),
    Column("orbits", "orbits trained on", unit="orbits"),
)

_Values = Mapping[str, tuple[float, float | None]]
_TABLE2: Mapping[str, Mapping[str, _Values]] = {
    "mnist": {
        _KEY: {
            "ST": (0.97, 0.02),
            "OJ": (0.67, 0.05),
            "EX": (0.44, 0.06),
            "OT": (0.37, 0.04),
            "OE": (0.40, 0.05),
            "ST-STN": (0.97, 0.01),
            "OT-STN": (0.34, 0.03),
        }
    },
    "even-odd": {
        _KEY: {"ST": (0.49, 0.08), "OJ": (0.59, 0.08), "EX": (0.55, 0.07), "OT": (0.52, 0.07), "OE": (0.54, 0.07)}
    },
    "norb": {
        _KEY: {"ST": (0.67, 0.13), "OJ": (0.59, 0.12), "EX": (0.58, 0.11), "OT": (0.55, 0.12), "OE": (0.54, 0.11)}
    },
    "multi-pie": {
        "AUC": {"ST": (0.99, None), "OJ": (0.95, 0.01), "EX": (0.89, 0.01), "OT": (0.92, 0.01), "OE": (0.87, 0.02)},
        "top-1": {"ST": (0.99, None), "OJ": (0.91, 0.01), "EX": (0.71, 0.04), "OT": (0.93, 0.02), "OE": (0.83, 0.02)},
    },
}
"""Published values by dataset, column and method."""

_UNSUPERVISED = ("OJ", "EX", "OT", "OE")


def _best(means: Means) -> tuple[bool | None, str]:
    """Whether OJ is above every other method without labels, by more than two standard errors over seeds."""
    if not all(has(means, label, (_KEY,)) and means[label][_KEY].n > 1 for label in _UNSUPERVISED):
        return None, f"needs two seeds or more of each of {', '.join(_UNSUPERVISED)}"
    own, *others = (means[label][_KEY] for label in _UNSUPERVISED)
    listed = ", ".join(f"{label} {means[label][_KEY].words(3)}" for label in _UNSUPERVISED)
    return all(own.mean - other.mean > 2 * _error(own, other) for other in others), listed


def _error(first: Spread, second: Spread) -> float:
    """Standard error of the difference of two means."""
    return math.hypot(*(value.sd / math.sqrt(value.n) for value in (first, second) if value.sd is not None))


_CLAIM = Claim(
    says="With the same images, the orbit joint loss needs fewer labels than its parts and exemplars (table 2).",
    tested="OJ is above EX, OT and OE by more than two standard errors over seeds",
    rows=_UNSUPERVISED,
    criterion=_best,
)
_RESPLITS = Resplits(_KEY, "OJ")
"""Figure 3, and the tests of table 2."""


def _report(name: str, shows: str, source: str, evaluation: str, end: str, **more: Any) -> Report:
    """A report on presets of the papers' size, or on those whose names end in ``-small``."""
    title = f"{shows}, small" if end else shows
    return Report(name=f"orbits/{name}{end}", shows=title, source=source, evaluations=(evaluation,), digits=3, **more)


def _methods(name: str, shows: str, evaluation: str, columns: tuple[Column, ...], end: str, **more: Any) -> Report:
    """All methods on a benchmark, beside what the papers publish."""
    published = _TABLE2.get(name, {})
    cells = {(label, key): value for key, values in published.items() for label, value in values.items()}
    where = "table 2" if published else "the experiment on videos, which gives figures only,"
    presets = {label: f"orbits/{name}-{method}{end}" for method, label in _LABELS.items()}
    return _report(
        name,
        shows,
        f"{where} of {PAPER}{_SIZE if end and columns is _DIGITS else ''}",
        evaluation,
        end,
        rows=tuple(Row(preset, label) for label, preset in presets.items() if preset in _NAMES),
        columns=columns,
        references={"the paper": cells} if cells else {},
        **more,
    )


def _reports(end: str) -> Iterator[Report]:
    """One for each benchmark."""
    tested: dict[str, Any] = {"claims": (_CLAIM,), "resplits": _RESPLITS}
    yield _methods("mnist", "one-shot accuracy on affine MNIST", "oneshot", _DIGITS, end, **tested)
    yield _methods("even-odd", "trained on even digits, one-shot on odd ones", "oneshot", _DIGITS, end, **tested)
    yield _methods("norb", "one-shot accuracy on SmallNORB", "oneshot", _ACCURACY, end, resplits=_RESPLITS)
    faces = (Column("AUC"), Column("top-1"))
    yield _methods("multi-pie", "verification and retrieval of faces", "verification", faces, end)
    heat = HeatMap("accuracy", "orbits", "accuracy")
    axes = {"x_label": "labelled images per class", "y_label": "accuracy"}
    yield _methods("video", "accuracy against labelled faces per person", "samples", _VIDEOS, end, heat=heat, **axes)


def _map(end: str) -> Report:
    return _report(
        "fig2",
        "t-SNE of orbits of digits, colored by class and by orbit",
        f"figure 2 of {PAPER}: images only{_SIZE if end else ''}",
        "map",
        end,
        rows=(
            *(Row(f"orbits/mnist-{method}{end}", _LABELS[method]) for method in COMPARED),
            Row(f"orbits/mnist-oj{end}", "pixels", "pixels: "),
        ),
        columns=(
            Column("nearest: orbit", "nearest image: same orbit"),
            Column("nearest: class", "nearest other orbit: same class"),
        ),
    )


def _comparisons() -> Iterator[Row]:
    """Each method as it is, and then with one setting changed."""
    for end in COMPARED:
        small = f"orbits/mnist-{end}-small"
        yield Row(small, _LABELS[end])
        for name in _NAMES:
            if name.startswith(f"{small}-"):
                yield Row(name, f"{_LABELS[end]} {name.removeprefix(f'{small}-').replace('-', ' ')}")


REPORTS = [
    *_reports(""),
    *_reports("-small"),
    _map(""),
    _map("-small"),
    Report(
        name="orbits/compared-small",
        shows="what single settings change in small runs on affine MNIST",
        source=f"no table of {PAPER}{_SIZE}",
        evaluations=("oneshot",),
        rows=tuple(_comparisons()),
        columns=_DIGITS,
        digits=3,
    ),
]
"""All reports."""
