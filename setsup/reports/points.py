"""Points of a plane as charts, coloured by factors."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_array
from setsup.errors import DataError
from setsup.factors.factor import Factor, Kind
from setsup.random import permute, stream_key
from setsup.reports.charts import (
    LABEL,
    TICK,
    canvas,
    chart,
    drawn,
    few_ticks,
    legend,
    letters,
    number,
    shorten,
    style_axes,
)
from setsup.reports.colors import UNKNOWN, Names, PointColors, color_points
from setsup.reports.page import INK, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_points", "scatter", "scatter_panels"]


@chart
def scatter(
    points: npt.ArrayLike,
    values: npt.ArrayLike,
    factor: Factor | None = None,
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
) -> Image.Image:
    """Points of a plane, coloured by a factor.

    The levels of a nominal factor have distinct colours and a legend; of more than 20 levels, the most frequent have.
    Ordinal and continuous factors run from dark to light, and cyclic ones around a circle of hues, beside a bar. Both
    axes have the same scale. Points are drawn in a shuffled order, so that no level hides another by coming last.

    As figure 3a and b of "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with
    weak supervision", arXiv 2103.03240.

    Parameters
    ----------
    points : (n, 2) numbers
        As principal components or a map give them.
    values : (n,) integers, numbers or text
        Codes of the factor's levels, -1 where unknown, as :meth:`setsup.factors.FactorTable.codes` gives them; or the
        numbers of a continuous one, NaN where unknown. Unknown ones are grey. Without a factor, text, integers
        and truth values are names, and other numbers continuous.
    factor : Factor, optional
        Says of which kind the values are.

    Raises
    ------
    DataError
        When shapes disagree, a point is not finite, or a code is of no level.

    Examples
    --------
    >>> from setsup.factors import Kind
    >>> hue = Factor("hue", Kind.CYCLIC, (0.0, 0.25, 0.5, 0.75), unit="turn", period=1.0)
    >>> scatter([[0, 0], [1, 0], [1, 1], [0, 1]], [0, 1, 2, 3], hue, title="a square").mode
    'RGB'

    """
    check_arguments(scatter, {"factor": factor, "title": title, "x_label": x_label, "y_label": y_label}, DataError)
    check_array(points, "points", DataError)
    check_array(values, "values", DataError)
    placed = check_points(points)
    checked, known_factor = _check_values(values, factor, len(placed))
    figure = canvas(8.2, 6.4, title)
    axes = figure.subplots()
    style_axes(axes, x_label, y_label)
    colors = color_points(checked, known_factor)
    _draw_points(axes, placed, colors, 1.0)
    _draw_key(axes, colors, "" if factor is None else colors.name)
    return drawn(figure)


@chart
def scatter_panels(
    points: npt.ArrayLike,
    factors: Sequence[Factor],
    values: Mapping[str, npt.ArrayLike],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
) -> Image.Image:
    """The same points in one panel a factor, coloured by it; otherwise as :func:`scatter`.

    Parameters
    ----------
    points : (n, 2) numbers
        As principal components or a map give them.
    factors : sequence of Factor
        One panel each, in this order.
    values : mapping of str to (n,) array
        Codes or numbers of each factor by its name, as :meth:`setsup.factors.FactorTable.all_codes` or the
        ``factors`` of a batch give them; it may have more.

    Raises
    ------
    DataError
        When shapes disagree, a point is not finite, a code is of no level, or there are no values of a factor.

    Examples
    --------
    >>> from setsup.factors import FactorTable, Kind
    >>> grid = FactorTable([Factor("x", Kind.ORDINAL, (1, 2, 3)), Factor("y", Kind.ORDINAL, (1, 2))])
    >>> codes = grid.all_codes(range(6))
    >>> scatter_panels(np.stack([codes["x"], codes["y"]], axis=1), grid.factors, codes).mode
    'RGB'

    """
    check_arguments(scatter_panels, {"title": title, "x_label": x_label, "y_label": y_label}, DataError)
    check_array(points, "points", DataError)
    placed = check_points(points)
    missing = [factor.name for factor in factors if factor.name not in values]
    if missing or not factors:
        raise DataError(f"panels require {'values of ' + ' and '.join(missing) if missing else 'at least one factor'}")
    checked = [_check_values(values[factor.name], factor, len(placed))[0] for factor in factors]
    across = len(factors) if len(factors) <= 3 else min(4, math.ceil(math.sqrt(len(factors))))
    down = -(-len(factors) // across)
    names = max(len(factor) if factor.kind is Kind.NOMINAL else 0 for factor in factors)
    figure = canvas(4.3 * across, (4.4 if names > 14 else 3.4) * down + (0.3 if title else 0), title)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for at, axes in enumerate(panels):
        if at >= len(factors):
            axes.set_visible(False)
            continue
        style_axes(axes, x_label if at + across >= len(factors) else "", "" if at % across else y_label)
        colors = color_points(checked[at], factors[at])
        axes.set_title(letters(colors.name), fontsize=LABEL, color=INK, loc="left", pad=6)
        _draw_points(axes, placed, colors, 0.5)
        _draw_key(axes, colors, most=16)
    return drawn(figure)


def check_points(points: npt.ArrayLike) -> Reals:
    """Points (n, 2) float64; DataError where they are of another shape, or not finite."""
    given = np.asarray(points)
    if given.ndim != 2 or given.shape[1:] != (2,) or not len(given) or given.dtype.kind not in "iufb":
        raise DataError(
            f"points must be a non-empty numeric array of shape (n, 2), one row per point, not {given.dtype} of shape "
            f"{given.shape}; project embeddings first"
        )
    reals = given.astype(np.float64)
    finite = np.isfinite(reals).all(axis=1)
    if not finite.all():
        raise DataError(f"points: row {int(np.argmin(finite))} of {len(reals):,} is not finite; omit such rows")
    return reals


def _check_values(values: npt.ArrayLike, factor: Factor | None, rows: int) -> tuple[npt.NDArray[np.generic], Factor]:
    """Codes (rows,) int64 or numbers (rows,) float64, and their factor.

    `values` (rows,) integers, numbers or text.
    """
    given, name = np.asarray(values), "values" if factor is None else f"values of {factor.name!r}"
    if given.shape != (rows,) or given.dtype.kind not in "iufbU":
        raise DataError(
            f"{name} must be a numeric array of shape ({rows:,},), one value for each point, not "
            f"{given.dtype} of shape {given.shape}"
        )
    if factor is None:
        if given.dtype.kind == "f":
            factor = Factor("value", Kind.CONTINUOUS)
        else:
            levels, given = np.unique(given, return_inverse=True)
            factor = Factor("value", Kind.NOMINAL, tuple(levels.tolist()))
    if given.dtype.kind == "U":
        raise DataError(f"{name} must be codes of its levels, not strings; convert them with Factor.code")
    if factor.levels is None:
        numbers = given.astype(np.float64)
        if np.isinf(numbers).any():
            raise DataError(f"{name}: row {int(np.isinf(numbers).argmax())} is infinite; use NaN for unknown values")
        return numbers, factor
    if given.dtype.kind == "f" or not ((given >= -1) & (given < len(factor))).all():
        raise DataError(
            f"{name} must be codes from 0 to {len(factor) - 1}, or -1 where unknown, as FactorTable.codes returns them"
        )
    return given.astype(np.int64), factor


def _draw_points(axes: "Axes", placed: Reals, colors: PointColors, scale: float) -> None:
    """Draw points (n, 2); ``scale`` makes their marks larger."""
    size = scale * float(np.clip(20_000 / len(placed), 3, 30))
    unknown = placed[~colors.known]
    axes.scatter(unknown[:, 0], unknown[:, 1], s=size, c=UNKNOWN, linewidths=0, marker="o")
    shown, shown_colors = placed[colors.known], colors.colors[colors.known]
    if len(shown):
        order = permute(np.uint64(stream_key(0, "scatter")), len(shown), np.arange(len(shown)))
        axes.scatter(
            shown[order, 0], shown[order, 1], s=size, c=shown_colors[order], linewidths=0, marker="o", alpha=0.85
        )
    axes.margins(0.04)
    axes.set_aspect("equal", adjustable="datalim")
    few_ticks(axes)


def _draw_key(axes: "Axes", colors: PointColors, name: str = "", most: int = 32) -> None:
    """Explain the colours to the right of the axes, names in so many letters at most."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.lines import Line2D

    key = colors.key
    if isinstance(key, Names):
        names = _disambiguate([text for text, _ in key.levels], most) + [text for text, _ in key.rest]
        style: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5.5, "markeredgewidth": 0}
        marks = [
            Line2D([], [], color=color, label=letters(text), **style)
            for text, (_, color) in zip(names, key.levels + key.rest, strict=True)
        ]
        legend(axes, marks, name)
        return
    # beside the axes themselves, whatever else stands in their column of panels
    beside = axes.inset_axes((1.03, 0.05, 0.035, 0.9))
    mappable = ScalarMappable(Normalize(key.low, key.high), ListedColormap(key.colors))
    bar = axes.figure.colorbar(mappable, cax=beside)
    bar.outline.set(edgecolor="white", linewidth=0.0)
    bar.ax.tick_params(
        labelsize=TICK, labelcolor=SOFT, color=SOFT, length=0 if key.ticks else 3, pad=4, direction="out"
    )
    if key.ticks is None:
        bar.ax.yaxis.set_major_formatter(lambda value, _: number(value))
    else:
        bar.set_ticks([position for position, _ in key.ticks], labels=[letters(text) for _, text in key.ticks])
        bar.minorticks_off()
    name = "; ".join(filter(None, [name, "" if colors.known.all() else "unknown: grey"]))
    bar.set_label(letters(name), fontsize=LABEL, color=INK, labelpad=6)


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
    return next((position for position, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
