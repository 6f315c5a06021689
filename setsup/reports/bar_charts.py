"""Charts of bars in groups: one chart with spreads and references, or a panel for each of several measures."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_mapping
from setsup.errors import DataError, did_you_mean
from setsup.reports.charts import (
    EDGE,
    LABEL,
    TICK,
    canvas,
    chart,
    drawn,
    is_finite,
    legend,
    letters,
    shorten,
    style_axes,
)
from setsup.reports.colors import DISTINCT
from setsup.reports.page import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bar_panels", "bars"]

Bar = tuple[float, float | None]
"""Mean, and its spread where there is one."""

Panel = Mapping[str, Mapping[str, float]]
"""Heights of bars by series and label."""

_MARKS = "DsoP^v"  # of the sources of references
_BESIDE = 0.28  # of a bar's width, from its middle, where error bars of its own stand
_WIDEST = 11.0  # inches of bars above which their labels are slanted
_LONGEST = 60  # letters of a name in the legend of panels, which is as wide as the chart
_SPREAD: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 1.0, "capsize": 2.5, "capthick": 1.0}
_DASHED: dict[str, Any] = {"colors": INK, "linewidth": 1.2, "linestyles": (0, (3, 1.5))}


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where bars stand: a group of them around each label, one a series; groups are 1 apart."""

    labels: list[str]
    series: int

    @classmethod
    def around(cls, panels: Iterable[Mapping[str, Mapping[str, Any]]], series: int) -> "_Layout":
        """Labels in the order in which they first occur."""
        return cls(list(dict.fromkeys(label for panel in panels for bars in panel.values() for label in bars)), series)

    @property
    def pitch(self) -> float:
        """From one bar of a group to the next."""
        return 1 / (self.series + 0.9)

    @property
    def half(self) -> float:
        """From the middle of a group to the end of a line across it."""
        return self.series * self.pitch / 2 + 0.04

    @property
    def slot(self) -> float:
        """Inches from one group to the next, so that their labels have room side by side."""
        return max(0.17 / self.pitch, 0.085 * max(len(shorten(label)) for label in self.labels) + 0.15)

    def shift(self, number: int, beside: float = 0.0) -> float:
        """From the middle of a group to the bar of a series, or to a part of its width beside that."""
        return (number - (self.series - 1) / 2 + beside) * self.pitch

    def at(self, labels: Iterable[str], shift: float = 0.0) -> Reals:
        """Places of labels."""
        return np.array([self.labels.index(label) for label in labels], dtype=np.float64) + shift

    def draw_bars(self, axes: "Axes", labels: Iterable[str], heights: Iterable[float], number: int) -> Any:
        """Draw the bars of a series in its color."""
        color = DISTINCT[number % len(DISTINCT)]
        return axes.bar(self.at(labels, self.shift(number)), list(heights), 0.94 * self.pitch, color=color, linewidth=0)

    def draw_lines(self, axes: "Axes", labels: Iterable[str], heights: Iterable[float], **style: Any) -> Any:
        """Draw lines across the groups of labels."""
        at = self.at(labels)
        return axes.hlines(list(heights), at - self.half, at + self.half, **style)

    def name_labels(self, axes: "Axes") -> None:
        """Write the labels below the last axes."""
        axes.set_xticks(range(len(self.labels)), [letters(shorten(label)) for label in self.labels])

    def style(self, axes: "Axes", slanted: bool = False) -> None:
        """Draw the line at 0, and labels without ticks."""
        axes.axhline(0, color=EDGE, linewidth=0.8)
        axes.set_xlim(-0.55, len(self.labels) - 0.45)
        axes.tick_params(axis="x", length=0, labelcolor=INK, labelsize=LABEL, labelrotation=35 if slanted else 0)


@chart
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

    Raises
    ------
    DataError
        When there is no bar, a number is not finite, a spread is negative, a ceiling belongs to no label, or a
        reference to no series or label.

    Examples
    --------
    >>> scores = {"one set": {"hue": (0.1, 0.02), "shape": (1.2, None)}, "two sets": {"shape": (1.3, 0.1)}}
    >>> bars(scores, unit="nats", ceilings={"hue": 2.303, "shape": 1.386}).mode
    'RGB'

    """
    check_arguments(bars, {"unit": unit, "title": title}, DataError)
    for named, bars_of in check_mapping(groups, "groups", DataError).items():
        check_mapping(bars_of, f"the bars of {named!r}", DataError)
    if ceilings is not None:
        check_mapping(ceilings, "ceilings", DataError)
    layout = _Layout.around([groups], len(groups))
    _check_bars(groups, layout.labels, ceilings or {})
    sources = {} if references is None else references
    _check_references(sources, groups, layout.labels)
    slanted = layout.slot * len(layout.labels) > _WIDEST
    width = len(layout.labels) * (max(0.17 / layout.pitch, 0.3) if slanted else layout.slot)
    figure = canvas(float(np.clip(width + 2.6, 5.2, 16)), 4.4, title)
    axes = figure.subplots()
    style_axes(axes, "", unit, grid="y")
    handles: list[Any] = []
    for index, (name, series) in enumerate(groups.items()):
        handles.append(layout.draw_bars(axes, series, [mean for mean, _ in series.values()], index))
        handles[-1].set_label(letters(shorten(name)) or " ")  # an empty one would be replaced
        for x, (mean, spread) in zip(layout.at(series, layout.shift(index)), series.values(), strict=True):
            if spread is not None:
                axes.errorbar(x, mean, spread, **_SPREAD)
    if ceilings:
        handles.append(layout.draw_lines(axes, ceilings, ceilings.values(), colors=INK, linewidth=1.4, label="ceiling"))
    shifts = {series: layout.shift(index, _BESIDE) for index, series in enumerate(groups)}
    marks = itertools.cycle(_MARKS)
    for name, numbers in sources.items():
        if len(groups) > 1 and _is_shared(numbers, groups):
            shared = next(iter(numbers.values()))
            heights = [mean for mean, _ in shared.values()]
            layout.draw_lines(axes, shared, heights, colors="white", linewidth=2.6)
            handles.append(layout.draw_lines(axes, shared, heights, **_DASHED))
        else:
            handles.append(_draw_marks(axes, numbers, layout, shifts, next(marks)))
        handles[-1].set_label(letters(shorten(name)) or " ")
    axes.margins(y=0.06)
    layout.name_labels(axes)
    layout.style(axes, slanted)
    if slanted:
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    if len(handles) > 1:
        legend(axes, handles)
    return drawn(figure)


def _is_shared(beside: Mapping[str, Mapping[str, Bar]], groups: Mapping[str, Any]) -> bool:
    numbers = list(beside.values())
    return beside.keys() == groups.keys() and all(
        drawn == numbers[0] and all(spread is None for _, spread in drawn.values()) for drawn in numbers
    )


def _draw_marks(
    axes: "Axes",
    numbers: Mapping[str, Mapping[str, Bar]],
    layout: _Layout,
    shifts: Mapping[str, float],
    mark: str,
) -> Any:
    """Draw marks of one source with their spreads; white edges part them from bars of any color."""
    points = [
        (float(x), mean, spread)
        for series, bars_of_series in numbers.items()
        for x, (mean, spread) in zip(layout.at(bars_of_series, shifts[series]), bars_of_series.values(), strict=True)
    ]
    for x, mean, spread in points:
        if spread is not None:
            axes.errorbar(x, mean, spread, fmt="none", ecolor="white", elinewidth=3.0, capsize=3.2, capthick=3.0)
            axes.errorbar(x, mean, spread, **_SPREAD)
    style: dict[str, Any] = {"marker": mark, "markersize": 6.5, "markeredgewidth": 1.0, "zorder": 4}
    (drawn_marks,) = axes.plot(
        [x for x, _, _ in points],
        [mean for _, mean, _ in points],
        linestyle="",
        color=INK,
        markeredgecolor="white",
        **style,
    )
    return drawn_marks


def _check_references(
    references: Mapping[str, Mapping[str, Mapping[str, Bar]]], groups: Mapping[str, Any], labels: list[str]
) -> None:
    for source, beside in check_mapping(references, "references", DataError).items():
        for series, numbers in check_mapping(beside, f"the references of {source!r}", DataError).items():
            if series not in groups:
                raise DataError(f"references of {source!r}: unknown series {series!r}{did_you_mean(series, groups)}")
            wrong = next((label for label in numbers if label not in labels), None)
            if wrong is not None:
                raise DataError(f"references of {source!r}: unknown label {wrong!r}{did_you_mean(wrong, labels)}")
        _check_bars({f"{source}, {series}": numbers for series, numbers in beside.items()}, labels, {})


def _check_bars(groups: Mapping[str, Mapping[str, Bar]], labels: list[str], ceilings: Mapping[str, float]) -> None:
    if not labels:
        raise DataError("a bar chart requires at least one bar, but all series are empty")
    for name, series in groups.items():
        for label, (mean, spread) in series.items():
            if not is_finite(mean) or not (spread is None or (is_finite(spread) and spread >= 0)):
                raise DataError(
                    f"bar {label!r} of {name!r} must have a finite mean and a spread of None or 0 or more, not "
                    f"{mean!r} and {spread!r}; omit the bar if its value is unknown"
                )
    for label, ceiling in ceilings.items():
        if label not in labels or not is_finite(ceiling):
            raise DataError(
                f"the ceiling {ceiling!r} of {label!r} must be finite and belong to a "
                f"label{did_you_mean(label, labels)}"
            )


@chart
def bar_panels(
    panels: Mapping[str, Panel],
    *,
    references: Mapping[str, Mapping[str, float]] | None = None,
    reference: str = "chance",
    title: str = "",
) -> Image.Image:
    """Panels of bars in groups, one below the other: a panel a measure, a group a label, a colour a series.

    Parameters
    ----------
    panels : mapping of measure to mapping of series to mapping of label to float
        All panels have the labels and the colours of all, in the order in which they first occur; a bar may be missing.
    references : mapping of measure to mapping of label to float, optional
        A line across the label's bars.
    reference : str
        What these lines are, for the legend.

    Raises
    ------
    DataError
        When there is no bar, a number is not finite, or a reference belongs to no measure or label.

    Examples
    --------
    >>> scores = {"pixels": {"hue": 0.9, "shape": 0.3}, "network": {"hue": 0.4, "shape": 0.8}}
    >>> bar_panels({"probe": scores, "neighbours": scores}, references={"probe": {"hue": 0.1, "shape": 0.25}}).mode
    'RGB'

    """
    check_arguments(bar_panels, {"title": title, "reference": reference}, DataError)
    series = list(dict.fromkeys(name for panel in _check_panels(panels).values() for name in panel))
    layout = _Layout.around(panels.values(), len(series))
    _check_panel_references(references or {}, panels, layout.labels)
    width = float(np.clip(layout.slot * len(layout.labels) + 1.2, 5.2, 16))
    figure = canvas(width, 1.35 * len(panels) + 0.3 * len(series) + 0.8, title)
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    handles: dict[str, Any] = {}
    chance = None
    for axes, (measure, panel) in zip(rows, panels.items(), strict=True):
        style_axes(axes, "", "", grid="y")
        axes.set_title(letters(measure), fontsize=LABEL, color=INK, loc="left")
        for index, name in enumerate(series):
            heights = panel.get(name, {})
            handles[name] = layout.draw_bars(axes, heights, heights.values(), index)
        if lines := (references or {}).get(measure):
            chance = layout.draw_lines(axes, lines, lines.values(), **_DASHED)
    layout.name_labels(rows[-1])
    for axes in rows:
        layout.style(axes)
    entries = [*handles.items(), *([] if chance is None else [(reference, chance)])]
    figure.legend(
        [handle for _, handle in entries],
        [letters(shorten(name, _LONGEST)) or " " for name, _ in entries],
        loc="outside lower left",
        ncols=1,
        fontsize=TICK,
        labelcolor=INK,
        frameon=False,
        handlelength=1.4,
    )
    return drawn(figure)


def _check_panels(panels: Mapping[str, Panel]) -> Mapping[str, Panel]:
    bars = 0
    for measure, panel in check_mapping(panels, "panels", DataError).items():
        for name, group in check_mapping(panel, f"the panel {measure!r}", DataError).items():
            for label, height in check_mapping(group, f"the bars of {name!r}", DataError).items():
                bars += 1
                if not np.isfinite(height):
                    raise DataError(f"bar {label!r} of {name!r} in {measure!r} is not finite; omit the bar")
    if not bars:
        raise DataError("a bar chart requires at least one bar, but all panels are empty")
    return panels


def _check_panel_references(
    references: Mapping[str, Mapping[str, float]], panels: Mapping[str, Panel], labels: list[str]
) -> None:
    for measure, marks in references.items():
        if measure not in panels:
            raise DataError(f"references: unknown panel {measure!r}{did_you_mean(measure, panels)}")
        for label, height in marks.items():
            if label not in labels or not np.isfinite(height):
                raise DataError(
                    f"the reference {height!r} of {label!r} must be finite and belong to a "
                    f"label{did_you_mean(label, labels)}"
                )
