"""Charts of curves: a loss over steps, a score over sizes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.arrays import Reals
from setsup.checks import check_arguments
from setsup.errors import DataError, did_you_mean
from setsup.reports.charts import canvas, chart, drawn, is_finite, legend, letters, shorten, style_axes
from setsup.reports.colors import DISTINCT
from setsup.reports.page import SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["curves"]

_DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (9, 3)), (0, (2, 3)), (0, (5, 2, 1, 2, 1, 2)))
_MARKED = 12  # points of a curve that are few enough to be marked
_SHORT = 6  # letters of a number that stands at such a point
_NOISY = 500  # and so many that they are drawn finely


@chart
def curves(
    series: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    log_x: bool = False,
    x_label: str = "",
    y_label: str = "",
    bands: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    references: Mapping[str, float] | None = None,
    title: str = "",
) -> Image.Image:
    """Curves over one axis: a loss over steps, information over the scale of noise, a score over sizes of sets.

    As figures 3c, 3d, S2 and S3 of "Learning ABCs: Approximate Bijective Correspondence for isolating factors of
    variation with weak supervision", arXiv 2103.03240.

    Parameters
    ----------
    series : mapping of name to (x, y), each (n,) numbers
        Joined in the order in which they stand; those of up to 12 points are marked.
    log_x : bool
        Whether the axis is logarithmic. It has its ticks at the points where these are few and round.
    bands : mapping of name to (low, high), each (n,) numbers, optional
        Spread around the curve of that name.
    references : mapping of name to float, optional
        Horizontal lines. One named as a series has its colour.

    Raises
    ------
    DataError
        When shapes disagree, a number is not finite, a band belongs to no series, or x is not positive on a
        logarithmic axis.

    Examples
    --------
    >>> sizes = [4, 16, 64, 256, 1024]
    >>> curves({"shape": (sizes, [0.2, 0.7, 1.2, 1.3, 1.3])}, log_x=True, references={"shape": 1.386}).mode
    'RGB'

    """
    check_arguments(curves, locals(), DataError)
    lines = {name: _check_curve(name, x, y, log_x) for name, (x, y) in series.items()}
    if not lines:
        raise DataError("a line chart requires at least one curve")
    spreads = {name: _check_band(name, low, high, lines) for name, (low, high) in (bands or {}).items()}
    for name, height in (references or {}).items():
        if not is_finite(height):
            raise DataError(f"reference {name!r} must be a finite number, not {height!r}")
    figure = canvas(7.6, 4.6, title)
    axes = figure.subplots()
    if log_x:
        axes.set_xscale("log")
    style_axes(axes, x_label, y_label, grid="both")
    colors = {name: DISTINCT[index % len(DISTINCT)] for index, name in enumerate(lines)}
    handles: list[Any] = []
    for name, (low, high) in spreads.items():
        axes.fill_between(lines[name][0], low, high, color=colors[name], alpha=0.18, linewidth=0)
    for name, (x, y) in lines.items():
        style: dict[str, Any] = {"linestyle": "-", "linewidth": 1.6 if len(x) < _NOISY else 0.9, "markersize": 4.5}
        style["marker"] = "o" if len(x) <= _MARKED else ""
        handles += axes.plot(x, y, color=colors[name], label=_label(name), **style)
    unmatched = 0
    for name, height in (references or {}).items():
        dash = _DASHES[0 if name in lines else unmatched % len(_DASHES)]
        line = axes.axhline(height, color=colors.get(name, SOFT), linewidth=1.2, linestyle=dash)
        if name not in lines:
            unmatched += 1
            line.set_label(_label(name))
            handles.append(line)
    axes.margins(x=0.03, y=0.06)
    if log_x:
        _log_ticks(axes, np.unique(np.concatenate([x for x, _ in lines.values()])))
    if len(handles) > 1:
        legend(axes, handles)
    return drawn(figure)


def _label(name: str) -> str:
    return letters(shorten(name)) or " "  # an empty one would be replaced


def _log_ticks(axes: "Axes", xs: Reals) -> None:
    from matplotlib.ticker import FixedLocator, LogLocator

    few = len(xs) <= _MARKED and (np.diff(np.log(xs)) > np.log(xs[-1] / xs[0]) / 16).all()
    few = few and all(len(f"{tick:g}") <= _SHORT for tick in xs)  # 0.00316228 would run into its neighbour
    axes.xaxis.set_major_locator(FixedLocator(xs.tolist()) if few else LogLocator(numticks=9))


def _check_curve(name: str, x: npt.ArrayLike, y: npt.ArrayLike, log_x: bool) -> tuple[Reals, Reals]:
    xs, heights = _check_line(name, x), _check_line(name, y)
    if len(xs) != len(heights):
        raise DataError(f"x and y of curve {name!r} must have the same length, not {len(xs):,} and {len(heights):,}")
    if log_x and xs.min() <= 0:
        raise DataError(
            f"curve {name!r} contains x={xs.min():g}, which a logarithmic axis cannot show; omit that point"
        )
    return xs, heights


def _check_band(
    name: str, low: npt.ArrayLike, high: npt.ArrayLike, lines: Mapping[str, tuple[Reals, Reals]]
) -> tuple[Reals, Reals]:
    if name not in lines:
        raise DataError(f"band {name!r} requires a curve of the same name{did_you_mean(name, lines)}")
    below, above = _check_line(name, low), _check_line(name, high)
    if not len(below) == len(above) == len(lines[name][0]):
        raise DataError(
            f"band of {name!r} must have one low and one high value for each of the {len(lines[name][0]):,} points of "
            f"its curve, not {len(below):,} and {len(above):,}"
        )
    return below, above


def _check_line(name: str, numbers: npt.ArrayLike) -> Reals:
    given = np.asarray(numbers)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iufb":
        raise DataError(
            f"curve {name!r} must be a non-empty numeric array of shape (n,), not {given.dtype} of shape {given.shape}"
        )
    finite = np.isfinite(given)
    if not finite.all():
        raise DataError(f"curve {name!r} is not finite at point {int(np.argmin(finite))}; omit such points")
    return given.astype(np.float64)
