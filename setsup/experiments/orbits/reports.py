"""Reports on table 2 of the orbit papers: digits, and what single settings change."""

import math
from collections.abc import Iterator

from setsup.experiments.orbits import presets, views
from setsup.experiments.orbits.presets import COMPARED, PAPER
from setsup.experiments.report import Claim, Column, HeatMap, Means, Report, Resplits, Row
from setsup.experiments.report.criteria import has
from setsup.experiments.report.report import Spread

__all__ = ["REPORTS"]

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

_DIGITS = {
    "ST": (0.97, 0.02),
    "OJ": (0.67, 0.05),
    "EX": (0.44, 0.06),
    "OT": (0.37, 0.04),
    "OE": (0.40, 0.05),
    "ST-STN": (0.97, 0.01),
    "OT-STN": (0.34, 0.03),
}
_EVEN_ODD = {"ST": (0.49, 0.08), "OJ": (0.59, 0.08), "EX": (0.55, 0.07), "OT": (0.52, 0.07), "OE": (0.54, 0.07)}
_NORB: dict[str, tuple[float, float | None]] = {
    "ST": (0.67, 0.13),
    "OJ": (0.59, 0.12),
    "EX": (0.58, 0.11),
    "OT": (0.55, 0.12),
    "OE": (0.54, 0.11),
}
_FACES: dict[str, dict[str, tuple[float, float | None]]] = {
    "AUC": {"ST": (0.99, None), "OJ": (0.95, 0.01), "EX": (0.89, 0.01), "OT": (0.92, 0.01), "OE": (0.87, 0.02)},
    "top-1": {"ST": (0.99, None), "OJ": (0.91, 0.01), "EX": (0.71, 0.04), "OT": (0.93, 0.02), "OE": (0.83, 0.02)},
}
_TRAINED_ON = Column("orbits", "orbits trained on", unit="orbits")
_RESPLITS = Resplits(_KEY, "OJ")
"""Figure 3, and the tests of table 2."""
_SMALL = "half width, 5,000 orbits, 1,000 steps of 128 images: not the paper's size"


def _best(means: Means) -> tuple[bool | None, str]:
    """Whether OJ is above every other method without labels, by more than two standard errors over seeds."""
    tested = [label for label in ("OJ", "EX", "OT", "OE") if has(means, label, (_KEY,)) and means[label][_KEY].n > 1]
    if "OJ" not in tested or len(tested) == 1:
        return None, "needs full runs of OJ and another method, two seeds or more of each"
    own, *others = (means[label][_KEY] for label in tested)
    words = ", ".join(f"{label} {means[label][_KEY].words(3)}" for label in tested)
    return all(own.mean - other.mean > 2 * _error(own, other) for other in others), words


def _error(first: Spread, second: Spread) -> float:
    """Standard error of the difference of two means."""
    return math.hypot(*(one.sd / math.sqrt(one.n) for one in (first, second) if one.sd is not None))


_CLAIM = Claim(
    says="With the same images, the orbit joint loss needs fewer labels than its parts and exemplars (table 2).",
    tested="OJ is above EX, OT and OE by more than two standard errors, of those with two seeds or more",
    rows=("OJ", "EX", "OT", "OE"),
    criterion=_best,
)


def _table(dataset: str, shows: str, published: dict[str, tuple[float, float]], small: bool) -> Report:
    end = "-small" if small else ""
    rows = {label: f"orbits/{dataset}-{method}{end}" for method, label in _LABELS.items()}
    return Report(
        name=f"orbits/{dataset}{end}",
        shows=f"{shows}{', small' if small else ''}",
        source=f"table 2 of {PAPER}{f'; {_SMALL}' if small else ''}",
        evaluations=("oneshot",),
        rows=tuple(Row(name, label) for label, name in rows.items() if name in _NAMES),
        columns=_COLUMNS,
        digits=3,
        references={"the paper": {(label, _KEY): value for label, value in published.items()}},
        claims=(_CLAIM,),
        resplits=_RESPLITS,
    )


def _views(dataset: str, shows: str, evaluation: str, keys: tuple[str, ...], small: bool) -> Report:
    """Toys, faces and videos, whose small runs differ in more than digits do: see the presets."""
    end = "-small" if small else ""
    rows = {label: f"orbits/{dataset}-{method}{end}" for method, label in _LABELS.items()}
    tables: dict[str, dict[str, dict[str, tuple[float, float | None]]]]
    tables = {"norb": {_KEY: _NORB}, "multi-pie": _FACES}
    published = tables.get(dataset, {})
    said = {(label, key): value for key, values in published.items() for label, value in values.items()}
    return Report(
        name=f"orbits/{dataset}{end}",
        shows=f"{shows}{', small' if small else ''}",
        source=f"{'table 2' if published else 'the experiment on videos, which gives figures only,'} of {PAPER}",
        evaluations=(evaluation,),
        rows=tuple(Row(name, label) for label, name in rows.items() if name in _NAMES),
        columns=(*(Column(key) for key in keys), *((_TRAINED_ON,) if dataset == "video" else ())),
        digits=3,
        references={"the paper": said} if said else {},
        resplits=_RESPLITS if dataset == "norb" else None,
        heat=HeatMap("accuracy", _TRAINED_ON.key, "accuracy") if dataset == "video" else None,
        x_label="labelled images per class" if dataset == "video" else "",
        y_label="accuracy" if dataset == "video" else "",
    )


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
        source=f"figure 2 of {PAPER}: images only{f'; {_SMALL}' if small else ''}",
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
    *(_table("mnist", "one-shot accuracy on affine MNIST", _DIGITS, small) for small in (False, True)),
    *(_table("even-odd", "trained on even digits, one-shot on odd ones", _EVEN_ODD, small) for small in (False, True)),
    *(
        _views(dataset, shows, evaluation, keys, small)
        for dataset, shows, evaluation, keys in (
            ("norb", "one-shot accuracy on SmallNORB", "oneshot", (_KEY, f"{_KEY}: spread")),
            ("multi-pie", "verification and retrieval of faces", "verification", ("AUC", "top-1")),
            ("video", "accuracy against labelled faces per person", "samples", ("1 label", "5 labels", "20 labels")),
        )
        for small in (False, True)
    ),
    *(_maps(small) for small in (False, True)),
    Report(
        name="orbits/compared-small",
        shows="what single settings change in small runs on affine MNIST",
        source=f"no table of {PAPER}; {_SMALL}",
        evaluations=("oneshot",),
        rows=tuple(_comparisons()),
        columns=_COLUMNS,
        digits=3,
    ),
]
"""All reports."""
