"""Charts of several measures of the same labels, one below the other."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from setsup.checks import check_arguments, check_mapping
from setsup.errors import DataError, near
from setsup.reports.charts import EDGE, LABEL, TICK, canvas, drawn, letters, shorten, style_axes
from setsup.reports.colors import DISTINCT
from setsup.reports.page import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bar_panels"]

_LONGEST = 60  # letters of a name in the legend, which is as wide as the chart

Panel = Mapping[str, Mapping[str, float]]


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
    title : str
        May be empty.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When there is no bar, a number is not finite, or a reference belongs to no measure or label.
    SetsupError
        When matplotlib is not installed.

    Examples
    --------
    >>> found = {"pixels": {"hue": 0.9, "shape": 0.3}, "network": {"hue": 0.4, "shape": 0.8}}
    >>> bar_panels({"probe": found, "neighbours": found}, references={"probe": {"hue": 0.1, "shape": 0.25}}).mode
    'RGB'

    """
    check_arguments(bar_panels, {"title": title, "reference": reference}, DataError)
    series = list(dict.fromkeys(name for panel in _checked(panels).values() for name in panel))
    labels = list(dict.fromkeys(label for panel in panels.values() for one in panel.values() for label in one))
    _check_references(references or {}, panels, labels)
    pitch = 1 / (len(series) + 0.9)
    slot = max(0.17 / pitch, 0.085 * max(len(shorten(label)) for label in labels) + 0.15)
    width = float(np.clip(slot * len(labels) + 1.2, 5.2, 16))
    figure = canvas(width, 1.35 * len(panels) + 0.3 * len(series) + 0.8, title)
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    handles: dict[str, Any] = {}
    chance = None
    for axes, (measure, panel) in zip(rows, panels.items(), strict=True):
        style_axes(axes, "", "", grid="y")
        axes.set_title(letters(measure), fontsize=LABEL, color=INK, loc="left")
        for place, name in enumerate(series):
            shift = (place - (len(series) - 1) / 2) * pitch
            at = [labels.index(label) + shift for label in panel.get(name, {})]
            heights = list(panel.get(name, {}).values())
            handles[name] = axes.bar(at, heights, 0.94 * pitch, color=DISTINCT[place % len(DISTINCT)], linewidth=0)
        if marks := (references or {}).get(measure):
            chance = _mark(axes, marks, labels, len(series) * pitch / 2 + 0.04)
        axes.axhline(0, color=EDGE, linewidth=0.8)
        axes.set_xlim(-0.55, len(labels) - 0.45)
    rows[-1].set_xticks(range(len(labels)), [letters(shorten(label)) for label in labels])
    for axes in rows:
        axes.tick_params(axis="x", length=0, labelcolor=INK, labelsize=LABEL)
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


def _mark(axes: "Axes", marks: Mapping[str, float], labels: list[str], half: float) -> Any:
    at = np.array([labels.index(label) for label in marks], dtype=np.float64)
    return axes.hlines(list(marks.values()), at - half, at + half, colors=INK, linewidth=1.2, linestyles=(0, (3, 1.5)))


def _checked(panels: Mapping[str, Panel]) -> Mapping[str, Panel]:
    bars = 0
    for measure, panel in check_mapping(panels, "panels", DataError).items():
        for name, one in check_mapping(panel, f"the panel {measure!r}", DataError).items():
            for label, height in check_mapping(one, f"the bars of {name!r}", DataError).items():
                bars += 1
                if not np.isfinite(height):
                    raise DataError(f"the bar {label!r} of {name!r} in {measure!r} is not finite: leave it out")
    if not bars:
        raise DataError("a chart of bars needs at least one bar, and no panel has any")
    return panels


def _check_references(
    references: Mapping[str, Mapping[str, float]], panels: Mapping[str, Panel], labels: list[str]
) -> None:
    for measure, marks in references.items():
        if measure not in panels:
            raise DataError(f"references belong to no panel {measure!r}{near(measure, panels)}")
        for label, height in marks.items():
            if label not in labels or not np.isfinite(height):
                raise DataError(
                    f"the reference {height!r} of {label!r} must be finite, and of a label{near(label, labels)}"
                )
