"""Images at the points of a plane that they stand for, as a chart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_array
from setsup.errors import DataError, abbreviate
from setsup.reports.charts import canvas, chart, drawn, few_ticks, style_axes
from setsup.reports.colors import OTHERS
from setsup.reports.grid import check_picture
from setsup.reports.points import check_points
from setsup.reports.thumbnails import cell_size, thumbnail

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["image_scatter"]

_INSET = 8  # dots between an image and the edge, which new ticks may move a little


@chart
def image_scatter(
    points: npt.ArrayLike,
    images: Sequence[npt.NDArray[Any]] | npt.NDArray[Any],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
) -> Image.Image:
    """Images at their points.

    Each image in turn is shown where it covers none before it; a grey dot stands for one that is left out. Fewer
    images are shown larger. The axes have scales of their own, so that images spread over the whole plane.

    As figure 5a of "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak
    supervision", arXiv 2103.03240.

    Parameters
    ----------
    points : (n, 2) numbers
        Middles of the images.
    images : (n, height, width, channels) uint8, or a sequence of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; images may differ in size.

    Raises
    ------
    DataError
        When there are not as many images as points, an array is not an image, or a point is not finite.

    Examples
    --------
    >>> image_scatter([[0, 0], [1, 1]], np.zeros((2, 28, 28, 1), np.uint8), title="two").mode
    'RGB'

    """
    check_arguments(image_scatter, {"title": title, "x_label": x_label, "y_label": y_label}, DataError)
    if not isinstance(images, Sequence | np.ndarray):
        raise DataError(f"images must be a list of images, not {abbreviate(images)}")
    check_array(points, "points", DataError)
    placed = check_points(points)
    if len(images) != len(placed):
        raise DataError(f"{len(placed):,} points require the same number of images, not {len(images):,}")
    for row, image in enumerate(images):
        check_picture(image, f"image {row}")
    target = 64 if len(placed) <= 100 else 32
    width, height = cell_size([image.shape for image in images], target)
    figure = canvas(8.6, 7.2, title)
    axes = figure.subplots()
    style_axes(axes, x_label, y_label)
    few_ticks(axes)
    _widen(axes, placed, (width, height))
    corners = axes.transData.transform(placed)
    corners[:, 1] = figure.bbox.height - corners[:, 1]
    middles = np.round(corners).astype(np.int64)
    shown = _apart(middles, width, height)
    left_out = np.setdiff1d(np.arange(len(placed)), shown)
    axes.scatter(placed[left_out, 0], placed[left_out, 1], s=5, c=OTHERS, linewidths=0, marker="o")
    sheet = drawn(figure)
    for row in shown:
        picture = thumbnail(images[row], target)
        sheet.paste(picture, (int(middles[row, 0]) - picture.width // 2, int(middles[row, 1]) - picture.height // 2))
    return sheet


def _widen(axes: "Axes", placed: Reals, cell: tuple[int, int]) -> None:
    """Give axes limits within which a cell of dots at any point stays inside."""
    low, span = placed.min(axis=0), np.ptp(placed, axis=0)
    low, span = np.where(span > 0, low, low - 0.5), np.where(span > 0, span, 1.0)
    pad = np.zeros(2)
    for _ in range(2):  # the axes have their place only when all is drawn, ticks included
        (left, bottom), (right, top) = low - pad, low + span + pad
        axes.set(xlim=(left, right), ylim=(bottom, top))
        axes.figure.canvas.draw()
        free = np.array(cell) / 2 + _INSET
        pad = span * free / np.maximum([axes.bbox.width - 2 * free[0], axes.bbox.height - 2 * free[1]], 1)


def _apart(middles: npt.NDArray[np.int64], width: int, height: int) -> list[int]:
    """Rows whose cells, of one size, cover none before them; one dot between two."""
    low = middles.min(axis=0)
    across, down = (middles - low).max(axis=0) + 1
    taken = np.zeros((down, across), dtype=bool)
    rows = []
    for row, (x, y) in enumerate((middles - low).tolist()):
        if not taken[y, x]:
            taken[max(0, y - height) : y + height + 1, max(0, x - width) : x + width + 1] = True
            rows.append(row)
    return rows
