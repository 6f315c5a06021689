"""Points of a plane as charts: coloured by factors, or as the images that they stand for."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_array
from setsup.errors import DataError, brief
from setsup.factors.factor import Factor, Kind
from setsup.reports.charts import LABEL, canvas, drawn, few_ticks, letters, style_axes
from setsup.reports.colouring import assign_colours, check_values, draw_key, draw_points
from setsup.reports.grid import check_picture
from setsup.reports.page import INK
from setsup.reports.palette import OTHERS
from setsup.reports.thumbnails import cell_size, thumbnail

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["image_scatter", "scatter", "scatter_panels"]

_INSET = 8  # dots between an image and the edge, which new ticks may move a little


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
    title, x_label, y_label : str
        May be empty.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When shapes disagree, a point is not finite, or a code is of no level.
    SetsupError
        When matplotlib is not installed.

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
    placed = _check_points(points)
    checked, known_factor = check_values(values, factor, len(placed))
    figure = canvas(8.2, 6.4, title)
    axes = figure.subplots()
    style_axes(axes, x_label, y_label)
    colouring = assign_colours(checked, known_factor)
    draw_points(axes, placed, colouring, 1.0)
    draw_key(axes, colouring, "" if factor is None else colouring.name)
    return drawn(figure)


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
    title, x_label, y_label : str
        May be empty.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When shapes disagree, a point is not finite, a code is of no level, or there are no values of a factor.
    SetsupError
        When matplotlib is not installed.

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
    placed = _check_points(points)
    missing = [factor.name for factor in factors if factor.name not in values]
    if missing or not factors:
        raise DataError(f"panels need the values of {' and '.join(missing) or 'at least one factor'}; none are given")
    checked = [check_values(values[factor.name], factor, len(placed))[0] for factor in factors]
    across = len(factors) if len(factors) <= 3 else min(4, math.ceil(math.sqrt(len(factors))))
    down = -(-len(factors) // across)
    names = max(len(factor) if factor.kind is Kind.NOMINAL else 0 for factor in factors)
    figure = canvas(4.3 * across, (4.4 if names > 14 else 3.4) * down + (0.3 if title else 0), title)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for place, axes in enumerate(panels):
        if place >= len(factors):
            axes.set_visible(False)
            continue
        style_axes(axes, x_label if place + across >= len(factors) else "", "" if place % across else y_label)
        colouring = assign_colours(checked[place], factors[place])
        axes.set_title(letters(colouring.name), fontsize=LABEL, color=INK, loc="left", pad=6)
        draw_points(axes, placed, colouring, 0.5)
        draw_key(axes, colouring, most=16)
    return drawn(figure)


def _check_points(points: npt.ArrayLike) -> Reals:
    given = np.asarray(points)
    if given.ndim != 2 or given.shape[1:] != (2,) or not len(given) or given.dtype.kind not in "iufb":
        raise DataError(
            f"points must be numbers (n, 2), one row a point, not {given.dtype} {given.shape}; project embeddings first"
        )
    reals = given.astype(np.float64)
    finite = np.isfinite(reals).all(axis=1)
    if not finite.all():
        raise DataError(f"points: row {int(np.argmin(finite))} of {len(reals):,} is not finite; leave out such rows")
    return reals


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
    title, x_label, y_label : str
        May be empty.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When there are not as many images as points, an array is no image, or a point is not finite.
    SetsupError
        When matplotlib is not installed.

    Examples
    --------
    >>> image_scatter([[0, 0], [1, 1]], np.zeros((2, 28, 28, 1), np.uint8), title="two").mode
    'RGB'

    """
    check_arguments(image_scatter, {"title": title, "x_label": x_label, "y_label": y_label}, DataError)
    if not isinstance(images, Sequence | np.ndarray):
        raise DataError(f"images must be a list of images, not {brief(images)}")
    check_array(points, "points", DataError)
    placed = _check_points(points)
    if len(images) != len(placed):
        raise DataError(f"{len(placed):,} points need as many images, not {len(images):,}")
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
