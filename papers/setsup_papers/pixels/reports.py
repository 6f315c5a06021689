"""Reports on the first experiment of single-pixel contrast: accuracy over the weight of the losses and the norm."""

import math
from collections.abc import Mapping
from typing import Any

from setsup.experiments.report import Claim, Column, Means, Report, Row
from setsup.experiments.report.criteria import has
from setsup_papers.pixels.presets import FEATURES, LONG, NORMS, PAPER, WEIGHTS, named

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


def _label(norm: str, within: float) -> str:
    return f"{norm}, λ = {within:g}"


def _gap(says: str, tested: str, within: float, least: float = -math.inf, most: float = math.inf) -> Claim:
    """Accuracy out of distribution is so far below that in distribution, for each norm at a λ."""
    rows = tuple(_label(norm, within) for norm in NORMS)

    def test(means: Means) -> tuple[bool | None, str]:
        pairs = {row: (means[row][_ID], means[row][_OOD]) for row in rows if has(means, row, (_ID, _OOD))}
        if not pairs:
            return None, f"needs runs of {' or '.join(rows)}"
        listed = (f"{row}: {inside.words(3)} and {outside.words(3)}" for row, (inside, outside) in pairs.items())
        return all(least <= inside.mean - outside.mean <= most for inside, outside in pairs.values()), "; ".join(listed)

    return Claim(says=says, tested=tested, rows=rows, criterion=test)


_CLAIMS = (
    _gap(
        "With the loss within pairs alone, λ = 1, features ignore the color.",
        "accuracy out of distribution is at most 0.05 below that in distribution",
        within=1.0,
        most=0.05,
    ),
    _gap(
        "With more weight on the loss between pairs, features represent the color.",
        "at λ = 0.3 accuracy out of distribution is at least 0.5 below that in distribution",
        within=0.3,
        least=0.5,
    ),
)


def _report(name: str, shows: str, source: str, rows: Mapping[str, str], **more: Any) -> Report:
    """Accuracies and distances of some presets, by the labels of their rows."""
    return Report(
        name=f"pixels/{name}",
        shows=shows,
        source=source,
        evaluations=("labels", "swap"),
        rows=tuple(Row(preset, label) for label, preset in rows.items()),
        columns=_COLUMNS,
        digits=3,
        **more,
    )


def _colors(end: str = "", words: str = "", size: str = "") -> Report:
    """The sweep of λ and norms, on presets whose names end so."""
    by_cell = {
        (_label(norm, within), key): accuracy
        for norm, rows in _PUBLISHED.items()
        for within, accuracies in zip(WEIGHTS, rows, strict=True)
        for key, accuracy in zip((_ID, _OOD), accuracies, strict=True)
    }
    return _report(
        f"colors{end}",
        f"digits classified by features of pixels, by norm and λ{words}",
        f"first experiment of {PAPER}, published run records{size}",
        {_label(norm, within): f"{named(norm, within)}{end}" for norm in NORMS for within in WEIGHTS},
        references={"the paper": by_cell},
        claims=_CLAIMS,
    )


REPORTS = [
    _colors(),
    _colors("-small", ", small", "; widths 16, 32, 32, 2,000 steps of 64 images: not the paper's size"),
    _report(
        "features",
        "the same over the number of features of a pixel, λ = 1",
        f"second sweep of the first experiment of {PAPER}",
        {f"{count} features": f"{named('inf', 1.0)}-d{count}" for count in FEATURES},
    ),
    _report(
        "long",
        f"the same after 100,000 steps, λ = {LONG:g}, by norm",
        f"further runs of the first experiment of {PAPER}",
        {_label(norm, LONG): f"{named(norm, LONG)}-long" for norm in NORMS},
    ),
]
"""All reports."""
