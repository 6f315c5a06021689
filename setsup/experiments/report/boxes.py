"""Box plots: how values of each row are distributed over re-splits."""

import math
from collections.abc import Mapping, Sequence

from PIL import Image

from setsup.reports.charts import LABEL, canvas, drawn, letters, style_axes
from setsup.reports.colors import DISTINCT
from setsup.reports.page import INK

__all__ = ["boxes"]


def boxes(samples: Mapping[str, Sequence[float]], *, unit: str = "", title: str = "") -> Image.Image:
    """A box a row: quartiles and median; whiskers to the farthest values within 1.5 interquartile ranges, others dots.

    As figure 3 of "Trading robust representations for sample complexity through self-supervised visual experience",
    NeurIPS 2018. Values that are not finite are left out. Labels may have several lines.
    """
    known = {label: [value for value in values if math.isfinite(value)] for label, values in samples.items()}
    figure = canvas(max(5.2, 0.75 * len(known) + 1.4), 4.4, title)
    axes = figure.subplots()
    style_axes(axes, "", unit, grid="y")
    places = range(len(known))
    drawn_boxes = axes.boxplot(
        list(known.values()),
        positions=list(places),
        widths=0.55,
        patch_artist=True,
        manage_ticks=False,
        medianprops={"color": INK, "linewidth": 1.4},
        whiskerprops={"color": INK, "linewidth": 0.9},
        capprops={"color": INK, "linewidth": 0.9},
        boxprops={"edgecolor": INK, "linewidth": 0.9},
        flierprops={"marker": "o", "markersize": 3.5, "markerfacecolor": INK, "markeredgewidth": 0},
    )
    for position, box in enumerate(drawn_boxes["boxes"]):
        box.set_facecolor(DISTINCT[position % len(DISTINCT)])
    axes.set_xlim(-0.6, len(known) - 0.4)
    axes.set_xticks(list(places), ["\n".join(map(letters, label.split("\n"))) for label in known])
    axes.tick_params(axis="x", length=0, labelcolor=INK, labelsize=LABEL)
    return drawn(figure)
