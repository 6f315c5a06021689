"""Colours of points by a factor, each kind in its way, and the key that explains them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.errors import DataError
from setsup.factors.factor import Factor, Kind, Level
from setsup.random import permute, stream_key
from setsup.reports.charts import LABEL, TICK, few_ticks, legend, letters, number, shorten
from setsup.reports.page import INK, SOFT
from setsup.reports.palette import DISTINCT, OTHERS, UNKNOWN, cyclic_colours, rgb, sequential_colours
from setsup.reports.words import number_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Colouring", "Names", "Ramp", "assign_colours", "check_values", "draw_key", "draw_points"]


_SMOOTH = 256
_LABELLED = 9  # levels named beside a ramp
_NAME = 12  # letters of a level there


@dataclass(frozen=True, slots=True)
class Names:
    """A key of names: (name, colour) of levels, and of what has no name."""

    levels: list[tuple[str, str]]
    rest: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Ramp:
    """A key that is a bar of colours (k, 3) from ``low`` to ``high``, with (place, label) ticks or ticks of its own."""

    colours: Reals
    low: float
    high: float
    ticks: list[tuple[float, str]] | None


@dataclass(frozen=True, slots=True)
class Colouring:
    """Colours (n, 3) float64 of points, which of them (n,) bool are known, and the key."""

    colours: Reals
    known: npt.NDArray[np.bool_]
    key: Names | Ramp
    name: str


def check_values(values: npt.ArrayLike, factor: Factor | None, rows: int) -> tuple[npt.NDArray[np.generic], Factor]:
    """Codes (rows,) int64 or numbers (rows,) float64, and their factor.

    `values` (rows,) integers, numbers or text.
    """
    given, name = np.asarray(values), "values" if factor is None else f"values of {factor.name!r}"
    if given.shape != (rows,) or given.dtype.kind not in "iufbU":
        raise DataError(f"{name} must be numbers ({rows:,},), one for each point, not {given.dtype} {given.shape}")
    if factor is None:
        if given.dtype.kind == "f":
            factor = Factor("value", Kind.CONTINUOUS)
        else:
            levels, given = np.unique(given, return_inverse=True)
            factor = Factor("value", Kind.NOMINAL, tuple(levels.tolist()))
    if given.dtype.kind == "U":
        raise DataError(f"{name} must be codes of its levels, not text; see Factor.code")
    if factor.levels is None:
        numbers = given.astype(np.float64)
        if np.isinf(numbers).any():
            raise DataError(f"{name}: row {int(np.isinf(numbers).argmax())} is infinite; write NaN for what is unknown")
        return numbers, factor
    if given.dtype.kind == "f" or not ((given >= -1) & (given < len(factor))).all():
        raise DataError(
            f"{name} must be codes from 0 to {len(factor) - 1}, or -1 where unknown, as FactorTable.codes gives them"
        )
    return given.astype(np.int64), factor


def assign_colours(values: npt.NDArray[np.generic], factor: Factor) -> Colouring:
    """Colour points by their values, from :func:`check_values`.

    Names have distinct colours, orders run from dark to light, cycles around a circle of hues.
    """
    words = factor.name.replace("_", " ")
    name = f"{words} ({factor.unit})" if factor.unit else words
    if factor.levels is None:
        return _continuous(values.astype(np.float64), factor.period, name)
    codes = values.astype(np.int64)
    if factor.kind is Kind.NOMINAL:
        return _nominal(codes, factor.levels, name)
    steps = np.arange(len(factor))
    cyclic = factor.kind is Kind.CYCLIC
    of_level = cyclic_colours(steps / len(factor)) if cyclic else sequential_colours(len(factor))
    every = -(-len(factor) // _LABELLED)
    ticks = [(code + 0.5, shorten(_named(factor.levels[code]), _NAME)) for code in steps[::every].tolist()]
    return Colouring(of_level[codes], codes >= 0, Ramp(of_level, 0.0, len(factor), ticks), name)


def draw_points(axes: "Axes", placed: Reals, colouring: Colouring, scale: float) -> None:
    """Draw points (n, 2); ``scale`` makes their marks larger."""
    size = scale * float(np.clip(20_000 / len(placed), 3, 30))
    unknown = placed[~colouring.known]
    axes.scatter(unknown[:, 0], unknown[:, 1], s=size, c=UNKNOWN, linewidths=0, marker="o")
    shown, colours = placed[colouring.known], colouring.colours[colouring.known]
    if len(shown):
        order = permute(np.uint64(stream_key(0, "scatter")), len(shown), np.arange(len(shown)))
        axes.scatter(shown[order, 0], shown[order, 1], s=size, c=colours[order], linewidths=0, marker="o", alpha=0.85)
    axes.margins(0.04)
    axes.set_aspect("equal", adjustable="datalim")
    few_ticks(axes)


def draw_key(axes: "Axes", colouring: Colouring, name: str = "", most: int = 32) -> None:
    """Explain the colours to the right of the axes, names in so many letters at most."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.lines import Line2D

    key = colouring.key
    if isinstance(key, Names):
        names = _disambiguate([text for text, _ in key.levels], most) + [text for text, _ in key.rest]
        style: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5.5, "markeredgewidth": 0}
        marks = [
            Line2D([], [], color=colour, label=letters(text), **style)
            for text, (_, colour) in zip(names, key.levels + key.rest, strict=True)
        ]
        legend(axes, marks, name)
        return
    # beside the axes themselves, whatever else stands in their column of panels
    beside = axes.inset_axes((1.03, 0.05, 0.035, 0.9))
    mappable = ScalarMappable(Normalize(key.low, key.high), ListedColormap(key.colours))
    bar = axes.figure.colorbar(mappable, cax=beside)
    bar.outline.set(edgecolor="white", linewidth=0.0)
    bar.ax.tick_params(
        labelsize=TICK, labelcolor=SOFT, color=SOFT, length=0 if key.ticks else 3, pad=4, direction="out"
    )
    if key.ticks is None:
        bar.ax.yaxis.set_major_formatter(lambda value, _: number(value))
    else:
        bar.set_ticks([place for place, _ in key.ticks], labels=[letters(text) for _, text in key.ticks])
        bar.minorticks_off()
    name = "; ".join(filter(None, [name, "" if colouring.known.all() else "unknown: grey"]))
    bar.set_label(letters(name), fontsize=LABEL, color=INK, labelpad=6)


def _continuous(numbers: Reals, period: float | None, name: str) -> Colouring:
    known = ~np.isnan(numbers)
    shown = np.where(known, numbers, 0.0)
    if period is not None:
        ticks = [(period * part, number(period * part)) for part in (0, 0.25, 0.5, 0.75, 1)]
        ramp = Ramp(cyclic_colours(np.linspace(0, 1, _SMOOTH)), 0.0, period, ticks)
        return Colouring(cyclic_colours(shown / period), known, ramp, name)
    low, high = (float(numbers[known].min()), float(numbers[known].max())) if known.any() else (0.0, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    colours = sequential_colours(_SMOOTH)
    places = np.clip((shown - low) / (high - low) * _SMOOTH, 0, _SMOOTH - 1).astype(np.int64)
    return Colouring(colours[places], known, Ramp(colours, low, high, None), name)


def _nominal(codes: Codes, levels: tuple[Level, ...], name: str) -> Colouring:
    known = codes >= 0
    counts = np.bincount(codes[known], minlength=len(levels))
    present = np.flatnonzero(counts)
    if len(levels) <= len(DISTINCT):
        named, of_level = present, np.array([rgb(colour) for colour in DISTINCT[: len(levels)]])
    else:
        # the most frequent have colours, in the order of levels
        most = len(DISTINCT) - (len(present) > len(DISTINCT))
        named = np.sort(present[np.argsort(-counts[present], kind="stable")[:most]])
        of_level = np.tile(rgb(OTHERS), (len(levels), 1))
        of_level[named] = [rgb(colour) for colour in DISTINCT[: len(named)]]
    shown = [(_named(levels[code]), _hex(of_level[code])) for code in named.tolist()]
    others = [(f"{len(present) - len(named):,} others", OTHERS)] if len(named) < len(present) else []
    unknown = [] if known.all() else [("unknown", UNKNOWN)]
    return Colouring(of_level[codes], known, Names(shown, others + unknown), name)


def _disambiguate(names: list[str], most: int) -> list[str]:
    """Shorten names; where that makes some equal, what all begin and end with goes."""
    short = [shorten(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    start, end = _shared(names), _shared([name[::-1] for name in names])
    return [shorten(f"…{name[start : max(start, len(name) - end)]}…", most) for name in names]


def _shared(names: list[str]) -> int:
    """Letters with which all of some names begin."""
    first, last = min(names), max(names)
    return next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def _named(level: Level) -> str:
    words = number_words(level)
    return words if isinstance(level, str) else words.replace("-", "−")


def _hex(colour: Reals) -> str:
    return "#" + bytes(np.round(colour * 255).astype(np.uint8)).hex()
