"""Charts of training and evaluation: bars and curves.

Every chart is an RGB image, and equal arguments give equal images. What they are drawn with, matplotlib, is imported
when the first is drawn.
"""

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_mapping
from setsup.errors import DataError, near
from setsup.reports.charts import EDGE, LABEL, canvas, drawn, legend, letters, shorten, style_axes
from setsup.reports.colors import DISTINCT
from setsup.reports.page import INK, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bars", "curves"]

Bar = tuple[float, float | None]
"""Mean, and its spread where there is one."""

_DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (9, 3)), (0, (2, 3)), (0, (5, 2, 1, 2, 1, 2)))
_MARKS = "DsoP^v"  # of the sources of references
_BESIDE = 0.28  # of a bar's width, from its middle, where error bars of its own stand
_MARKED = 12  # points of a curve that are few enough to be marked
_SHORT = 6  # letters of a number that stands at such a point
_WIDEST = 11.0  # inches of bars above which their labels are slanted
_NOISY = 500  # and so many that they are drawn finely


def bars(
    groups: Mapping[str, Mapping[str, Bar]],
    *,
    unit: str = "",
    ceilings: Mapping[str, float] | None = None,
    references: Mapping[str, Mapping[str, Mapping[str, Bar]]] | None = None,
    title: str = "",
) -> Image.Image:
    """Bars side by side in groups, with error bars.

    As figure 4 of "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak
    supervision", arXiv 2103.03240: information on each factor, one series a setting.

    Parameters
    ----------
    groups : mapping of series to mapping of label to (mean, spread)
        A series has one colour and up to one bar at each label; the spread, half the length of the error bar, may be
        None. Labels stand in the order in which they first occur.
    unit : str
        Of all numbers, written at the axis.
    ceilings : mapping of label to float, optional
        The most there can be, a line across the label's bars.
    references : mapping of source to mapping of series to mapping of label to (mean, spread), optional
        Numbers to compare bars with, such as those that ``"the paper"`` published: a mark a source on the right part
        of the bar, with an error bar where there is a spread, or in the bar's place where there is none. What is the
        same for all series, such as chance, is a dashed line across them.
    title : str
        May be empty.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When there is no bar, a number is not finite, a spread is negative, a ceiling belongs to no label, or a
        reference to no series or label.
    SetsupError
        When matplotlib is not installed.

    Examples
    --------
    >>> found = {"one set": {"hue": (0.1, 0.02), "shape": (1.2, None)}, "two sets": {"shape": (1.3, 0.1)}}
    >>> bars(found, unit="nats", ceilings={"hue": 2.303, "shape": 1.386}).mode
    'RGB'

    """
    check_arguments(bars, {"unit": unit, "title": title}, DataError)
    for named, bars_of in check_mapping(groups, "groups", DataError).items():
        check_mapping(bars_of, f"the bars of {named!r}", DataError)
    if ceilings is not None:
        check_mapping(ceilings, "ceilings", DataError)
    labels = list(dict.fromkeys(label for series in groups.values() for label in series))
    _check_bars(groups, labels, ceilings or {})
    beside = {} if references is None else references
    _check_references(beside, groups, labels)
    pitch = 1 / (len(groups) + 0.9)
    slot = max(0.17 / pitch, 0.085 * max(len(shorten(label)) for label in labels) + 0.15)
    slanted = slot * len(labels) > _WIDEST
    width = len(labels) * (max(0.17 / pitch, 0.3) if slanted else slot)
    figure = canvas(float(np.clip(width + 2.6, 5.2, 16)), 4.4, title)
    axes = figure.subplots()
    style_axes(axes, "", unit, grid="y")
    handles: list[Any] = []
    for place, (name, series) in enumerate(groups.items()):
        shift = (place - (len(groups) - 1) / 2) * pitch
        handles.append(_bar_series(axes, series, labels, shift, 0.94 * pitch, DISTINCT[place % len(DISTINCT)]))
        handles[-1].set_label(_label(name))
    if ceilings:
        at, heights = np.array([(labels.index(label), ceiling) for label, ceiling in ceilings.items()]).T
        half = len(groups) * pitch / 2 + 0.04
        handles.append(axes.hlines(heights, at - half, at + half, colors=INK, linewidth=1.4, label="ceiling"))
    places = {series: (place - (len(groups) - 1) / 2 + _BESIDE) * pitch for place, series in enumerate(groups)}
    marks = itertools.cycle(_MARKS)
    for name, numbers in beside.items():
        if len(groups) > 1 and _is_shared(numbers, groups):
            handles.append(_dashes(axes, next(iter(numbers.values())), labels, len(groups) * pitch / 2 + 0.04))
        else:
            handles.append(_marks(axes, numbers, labels, places, next(marks)))
        handles[-1].set_label(_label(name))
    axes.axhline(0, color=EDGE, linewidth=0.8)
    axes.margins(y=0.06)
    axes.set_xlim(-0.55, len(labels) - 0.45)
    axes.set_xticks(range(len(labels)), [letters(shorten(label)) for label in labels])
    axes.tick_params(axis="x", length=0, labelcolor=INK, labelsize=LABEL, labelrotation=35 if slanted else 0)
    if slanted:
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    if len(handles) > 1:
        legend(axes, handles)
    return drawn(figure)


def _bar_series(
    axes: "Axes", series: Mapping[str, Bar], labels: list[str], shift: float, width: float, colour: str
) -> Any:
    at = np.array([labels.index(label) for label in series]) + shift
    drawn_bars = axes.bar(at, [mean for mean, _ in series.values()], width, color=colour, linewidth=0)
    spread = [(x, *bar) for x, bar in zip(at.tolist(), series.values(), strict=True) if bar[1] is not None]
    if spread:
        x, mean, half = np.array(spread).T
        axes.errorbar(x, mean, half, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2.5, capthick=1.0)
    return drawn_bars


def _is_shared(beside: Mapping[str, Mapping[str, Bar]], groups: Mapping[str, Any]) -> bool:
    numbers = list(beside.values())
    return beside.keys() == groups.keys() and all(
        one == numbers[0] and all(spread is None for _, spread in one.values()) for one in numbers
    )


def _dashes(axes: "Axes", numbers: Mapping[str, Bar], labels: list[str], half: float) -> Any:
    at = np.array([labels.index(label) for label in numbers], dtype=np.float64)
    heights = [mean for mean, _ in numbers.values()]
    axes.hlines(heights, at - half, at + half, colors="white", linewidth=2.6)
    return axes.hlines(heights, at - half, at + half, colors=INK, linewidth=1.2, linestyles=(0, (3, 1.5)))


def _marks(
    axes: "Axes",
    beside: Mapping[str, Mapping[str, Bar]],
    labels: list[str],
    places: Mapping[str, float],
    mark: str,
) -> Any:
    """Marks of one source with their spreads; white edges part them from bars of any colour."""
    points = [
        (labels.index(label) + places[series], mean, spread)
        for series, numbers in beside.items()
        for label, (mean, spread) in numbers.items()
    ]
    for x, mean, spread in points:
        if spread is not None:
            axes.errorbar(x, mean, spread, fmt="none", ecolor="white", elinewidth=3.0, capsize=3.2, capthick=3.0)
            axes.errorbar(x, mean, spread, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2.5, capthick=1.0)
    style: dict[str, Any] = {"marker": mark, "markersize": 6.5, "markeredgewidth": 1.0, "zorder": 4}
    (found,) = axes.plot(
        [x for x, _, _ in points],
        [mean for _, mean, _ in points],
        linestyle="",
        color=INK,
        markeredgecolor="white",
        **style,
    )
    return found


def _check_references(
    references: Mapping[str, Mapping[str, Mapping[str, Bar]]], groups: Mapping[str, Any], labels: list[str]
) -> None:
    for source, beside in check_mapping(references, "references", DataError).items():
        for series, numbers in check_mapping(beside, f"the references of {source!r}", DataError).items():
            if series not in groups:
                raise DataError(f"references of {source!r} belong to no series {series!r}{near(series, groups)}")
            wrong = next((label for label in numbers if label not in labels), None)
            if wrong is not None:
                raise DataError(f"references of {source!r} belong to no label {wrong!r}{near(wrong, labels)}")
        _check_bars({f"{source}, {series}": numbers for series, numbers in beside.items()}, labels, {})


def _check_bars(groups: Mapping[str, Mapping[str, Bar]], labels: list[str], ceilings: Mapping[str, float]) -> None:
    if not labels:
        raise DataError("a chart of bars needs at least one bar, and no series has any")
    for name, series in groups.items():
        for label, (mean, spread) in series.items():
            if not _is_finite(mean) or not (spread is None or (_is_finite(spread) and spread >= 0)):
                raise DataError(
                    f"the bar {label!r} of {name!r} must be a finite mean and a spread from 0 on or None, "
                    f"not {mean!r} and {spread!r}; leave it out where it is unknown"
                )
    for label, ceiling in ceilings.items():
        if label not in labels or not _is_finite(ceiling):
            raise DataError(f"the ceiling {ceiling!r} of {label!r} must be finite, and of a label{near(label, labels)}")


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)


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
    x_label, y_label : str
        May be empty.
    bands : mapping of name to (low, high), each (n,) numbers, optional
        Spread around the curve of that name.
    references : mapping of name to float, optional
        Horizontal lines. One named as a series has its colour.
    title : str
        May be empty.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When shapes disagree, a number is not finite, a band belongs to no series, or x is not positive on a
        logarithmic axis.
    SetsupError
        When matplotlib is not installed.

    Examples
    --------
    >>> sizes = [4, 16, 64, 256, 1024]
    >>> curves({"shape": (sizes, [0.2, 0.7, 1.2, 1.3, 1.3])}, log_x=True, references={"shape": 1.386}).mode
    'RGB'

    """
    check_arguments(curves, locals(), DataError)
    lines = {name: _check_curve(name, x, y, log_x) for name, (x, y) in series.items()}
    if not lines:
        raise DataError("a chart of curves needs at least one curve, and none is given")
    spreads = {name: _check_band(name, low, high, lines) for name, (low, high) in (bands or {}).items()}
    for name, height in (references or {}).items():
        if not _is_finite(height):
            raise DataError(f"the reference {name!r} must be a finite number, not {height!r}")
    figure = canvas(7.6, 4.6, title)
    axes = figure.subplots()
    if log_x:
        axes.set_xscale("log")
    style_axes(axes, x_label, y_label, grid="both")
    colours = {name: DISTINCT[place % len(DISTINCT)] for place, name in enumerate(lines)}
    handles: list[Any] = []
    for name, (low, high) in spreads.items():
        axes.fill_between(lines[name][0], low, high, color=colours[name], alpha=0.18, linewidth=0)
    for name, (x, y) in lines.items():
        style: dict[str, Any] = {"linestyle": "-", "linewidth": 1.6 if len(x) < _NOISY else 0.9, "markersize": 4.5}
        style["marker"] = "o" if len(x) <= _MARKED else ""
        handles += axes.plot(x, y, color=colours[name], label=_label(name), **style)
    foreign = 0
    for name, height in (references or {}).items():
        dash = _DASHES[0 if name in lines else foreign % len(_DASHES)]
        line = axes.axhline(height, color=colours.get(name, SOFT), linewidth=1.2, linestyle=dash)
        if name not in lines:
            foreign += 1
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


def _log_ticks(axes: "Axes", places: Reals) -> None:
    from matplotlib.ticker import FixedLocator, LogLocator

    few = len(places) <= _MARKED and (np.diff(np.log(places)) > np.log(places[-1] / places[0]) / 16).all()
    few = few and all(len(f"{place:g}") <= _SHORT for place in places)  # 0.00316228 would run into its neighbour
    axes.xaxis.set_major_locator(FixedLocator(places.tolist()) if few else LogLocator(numticks=9))


def _check_curve(name: str, x: npt.ArrayLike, y: npt.ArrayLike, log_x: bool) -> tuple[Reals, Reals]:
    places, heights = _check_line(name, x), _check_line(name, y)
    if len(places) != len(heights):
        raise DataError(f"the curve {name!r} has {len(places):,} x and {len(heights):,} y; give as many of both")
    if log_x and places.min() <= 0:
        raise DataError(
            f"the curve {name!r} has x={places.min():g}, which has no place on a logarithmic axis; leave it out"
        )
    return places, heights


def _check_band(
    name: str, low: npt.ArrayLike, high: npt.ArrayLike, lines: Mapping[str, tuple[Reals, Reals]]
) -> tuple[Reals, Reals]:
    if name not in lines:
        raise DataError(f"the band {name!r} belongs to no curve{near(name, lines)}")
    below, above = _check_line(name, low), _check_line(name, high)
    if not len(below) == len(above) == len(lines[name][0]):
        raise DataError(
            f"the band of {name!r} has {len(below):,} low and {len(above):,} high numbers, "
            f"and its curve {len(lines[name][0]):,} points; give as many"
        )
    return below, above


def _check_line(name: str, numbers: npt.ArrayLike) -> Reals:
    given = np.asarray(numbers)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iufb":
        raise DataError(f"the curve {name!r} must be numbers (n,), at least one, not {given.dtype} {given.shape}")
    finite = np.isfinite(given)
    if not finite.all():
        raise DataError(f"the curve {name!r} is not finite at point {int(np.argmin(finite))}; leave such points out")
    return given.astype(np.float64)
