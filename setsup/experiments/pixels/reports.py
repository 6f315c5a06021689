"""Reports on the first experiment of single-pixel contrast: accuracy over the weight of the losses and the norm."""

from collections.abc import Callable, Mapping

from setsup.experiments.pixels.presets import FEATURES, LONG, NORMS, PAPER, WEIGHTS, named
from setsup.experiments.report import Claim, Column, Means, Report, Row
from setsup.experiments.report.criteria import has

__all__ = ["REPORTS"]

_ID, _OOD, _RATIO = "ID", "OOD", "ratio"
_COLUMNS = (
    Column(_ID, "in distribution"),
    Column(_OOD, "out of distribution"),
    Column("colour swapped"),
    Column("random pixels"),
    Column(_RATIO, "of the two"),
)

_PUBLISHED: Mapping[str, tuple[tuple[tuple[float, float], tuple[float, float]], ...]] = {
    "inf": (
        ((0.720, 0.010), (0.717, 0.007)),
        ((0.835, 0.045), (0.159, 0.177)),
        ((0.847, 0.005), (0.101, 0.002)),
        ((0.830, 0.047), (0.224, 0.247)),
        ((0.851, 0.003), (0.100, 0.002)),
        ((0.851, 0.004), (0.099, 0.001)),
        ((0.783, 0.064), (0.375, 0.258)),
    ),
    "l1": (
        ((0.720, 0.004), (0.721, 0.003)),
        ((0.731, 0.004), (0.733, 0.003)),
        ((0.850, 0.004), (0.101, 0.002)),
        ((0.851, 0.003), (0.100, 0.002)),
        ((0.850, 0.006), (0.098, 0.002)),
        ((0.848, 0.006), (0.099, 0.001)),
        ((0.552, 0.032), (0.524, 0.035)),
    ),
    "l2": (
        ((0.726, 0.006), (0.725, 0.004)),
        ((0.725, 0.006), (0.727, 0.003)),
        ((0.728, 0.007), (0.729, 0.005)),
        ((0.802, 0.056), (0.355, 0.308)),
        ((0.839, 0.035), (0.166, 0.188)),
        ((0.849, 0.005), (0.101, 0.001)),
        ((0.623, 0.137), (0.401, 0.171)),
    ),
}
"""Accuracies in and out of distribution over λ, with their spread over ten seeds, of the published run records."""

_NEAR, _FAR = 0.05, 0.5


def _label(norm: str, within: float) -> str:
    return f"{norm}, λ = {within:g}"


_INVARIANT = tuple(_label(norm, 1.0) for norm in NORMS)
_COLORED = tuple(_label(norm, 0.3) for norm in NORMS)


def _ignored(means: Means) -> tuple[bool | None, str]:
    """Whether accuracies in and out of distribution are near each other at λ = 1."""
    return _compared(means, _INVARIANT, lambda gap: gap <= _NEAR)


def _used(means: Means) -> tuple[bool | None, str]:
    """Whether they are far from each other at λ = .3."""
    return _compared(means, _COLORED, lambda gap: gap >= _FAR)


def _compared(means: Means, rows: tuple[str, ...], holds: Callable[[float], bool]) -> tuple[bool | None, str]:
    found = [label for label in rows if has(means, label, (_ID, _OOD))]
    if not found:
        return None, f"needs runs of {' or '.join(rows)}"
    words = (f"{label}: {means[label][_ID].words(3)} and {means[label][_OOD].words(3)}" for label in found)
    return all(holds(means[label][_ID].mean - means[label][_OOD].mean) for label in found), "; ".join(words)


_CLAIMS = (
    Claim(
        says="With the loss within pairs alone, λ = 1, features ignore the colour.",
        tested=f"accuracy out of distribution is at most {_NEAR:g} below that in distribution",
        rows=_INVARIANT,
        criterion=_ignored,
    ),
    Claim(
        says="With more weight on the loss between pairs, features hold the colour.",
        tested=f"at λ = 0.3 accuracy out of distribution is at least {_FAR:g} below that in distribution",
        rows=_COLORED,
        criterion=_used,
    ),
)


def _report(small: bool) -> Report:
    end = "-small" if small else ""
    size = "; widths 16, 32, 32, 2,000 steps of 64 images: not the paper's size" if small else ""
    cells = [(norm, within) for norm in NORMS for within in WEIGHTS]
    said = {
        (_label(norm, within), key): pair[place]
        for norm in NORMS
        for within, pair in zip(WEIGHTS, _PUBLISHED[norm], strict=True)
        for place, key in enumerate((_ID, _OOD))
    }
    return Report(
        name=f"pixels/colors{end}",
        shows=f"digits classified by features of pixels, by norm and λ{', small' if small else ''}",
        source=f"first experiment of {PAPER}, published run records{size}",
        evaluations=("labels", "swap"),
        rows=tuple(Row(f"{named(norm, within)}{end}", _label(norm, within)) for norm, within in cells),
        columns=_COLUMNS,
        digits=3,
        references={"the paper": said},
        claims=_CLAIMS,
    )


REPORTS = [
    *(_report(small) for small in (False, True)),
    Report(
        name="pixels/features",
        shows="the same over the number of features of a pixel, λ = 1",
        source=f"second sweep of the first experiment of {PAPER}",
        evaluations=("labels", "swap"),
        rows=tuple(Row(f"{named('inf', 1.0)}-d{count}", f"{count} features") for count in FEATURES),
        columns=_COLUMNS,
        digits=3,
    ),
    Report(
        name="pixels/long",
        shows=f"the same after 100,000 steps, λ = {LONG:g}, by norm",
        source=f"further runs of the first experiment of {PAPER}",
        evaluations=("labels", "swap"),
        rows=tuple(Row(f"{named(norm, LONG)}-long", _label(norm, LONG)) for norm in NORMS),
        columns=_COLUMNS,
        digits=3,
    ),
]
"""All reports."""
