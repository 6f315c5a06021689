"""Maps of a value over two settings, such as accuracy over labelled images and orbits."""

from collections.abc import Mapping

import numpy as np
from PIL import Image

from setsup.experiments.report.filled import FilledReport
from setsup.reports.charts import LABEL, TICK, canvas, drawn, letters, style_axes
from setsup.reports.colors import sequential_colors
from setsup.reports.page import INK

__all__ = ["find_cells", "heat"]

Cells = dict[float, dict[float, float]]
"""Of rows, of columns."""

_CELL = 0.42  # inches of a cell that has its number written into it


def find_cells(filled: FilledReport) -> dict[str, Cells]:
    """By label, what the map of a report shows: values of a curve by its place, by a value of the runs.

    Runs that differ in more than their data are not on it. Of two with the same value the first is: the paper's setting
    stands before others.
    """
    heat_map = filled.report.heat
    cells: dict[str, Cells] = {}
    if heat_map is None:
        return cells
    for line in filled.lines:
        if heat_map.curve in line.curves and heat_map.key in line.values and all(map(_of_data, line.differs)):
            x, mean, _ = line.curves[heat_map.curve]
            row = dict(zip(x, mean, strict=True))
            cells.setdefault(line.row.label, {}).setdefault(line.values[heat_map.key].mean, row)
    return cells


def _of_data(difference: str) -> bool:
    return difference.startswith(("data.", "datasets.", "substitute: "))


def heat(
    values: Mapping[float, Mapping[float, float]],
    limits: tuple[float, float],
    *,
    x_label: str = "",
    y_label: str = "",
    title: str = "",
) -> Image.Image:
    """Cells by row, then by column, both ascending and each with its value; of those without one nothing is drawn.

    Colours run from the lower to the upper limit, so that maps with the same limits may be compared.
    """
    rows, columns = sorted(values), sorted({position for row in values.values() for position in row})
    cells = np.array([[values[row].get(column, np.nan) for column in columns] for row in rows])
    low, high = limits if limits[0] < limits[1] else (limits[0] - 0.5, limits[1] + 0.5)
    figure = canvas(max(4.6, _CELL * len(columns) + 1.3), max(2.2, _CELL * len(rows) + 1.3), title)
    axes = figure.subplots()
    style_axes(axes, x_label, y_label)
    share = np.clip((cells - low) / (high - low), 0, 1)
    colors = np.ones((*cells.shape, 3))
    known = np.isfinite(cells)
    colors[known] = sequential_colors(256)[np.round(share[known] * 255).astype(int)]
    axes.imshow(colors, origin="lower", aspect="auto", interpolation="nearest")
    dark = colors @ [0.3, 0.6, 0.1] < 0.5
    for row, column in zip(*np.nonzero(known), strict=True):
        axes.text(
            column,
            row,
            f"{cells[row, column]:.2f}".replace("0.", ".", 1),
            ha="center",
            va="center",
            fontsize=TICK - 1,
            color="white" if dark[row, column] else INK,
        )
    for axis, places in ((axes.xaxis, columns), (axes.yaxis, rows)):
        axis.set_ticks(range(len(places)), [letters(f"{position:,g}") for position in places])
    axes.tick_params(length=0, labelcolor=INK, labelsize=LABEL - 1)
    return drawn(figure)
