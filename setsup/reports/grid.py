"""Grids of images whose rows and columns have names, such as what was retrieved for some queries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.reports.page import (
    INK,
    MARGIN,
    PADDING,
    SKIP,
    SOFT,
    Page,
    Tracks,
    cell_for,
    check_measures,
    lines_height,
)
from setsup.reports.text_layout import Style, text_width, wrap_text

__all__ = ["check_picture", "image_grid", "rows_of_images"]

_NAMES: tuple[Style, Style] = ((13, INK), (13, SOFT))
_WIDEST = 180  # pixels of the names of rows
_LINES = 3


def image_grid(
    images: Sequence[Sequence[npt.NDArray[Any] | None]] | npt.NDArray[Any],
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    title: str = "",
    *,
    queries: Sequence[npt.NDArray[Any]] | npt.NDArray[Any] | None = None,
    tile: int | None = None,
    scale: int = 1,
) -> Image.Image:
    r"""Lay images out in rows and columns with names.

    As figure 5b of "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak
    supervision", arXiv 2103.03240: a query a row, and its nearest neighbour among each digit in the columns.

    Parameters
    ----------
    images : (rows, columns, height, width, channels) uint8, or nested sequences of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; images may differ in size, and columns and rows are as wide and as high as
        their largest. None leaves a place grey.
    row_labels : sequence of str, one per row, or none
        Written in front of the rows.
    column_labels : sequence of str, one per column, or none
        Written above the columns.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    queries : (rows, height, width, channels) uint8, optional
        An image a row that is shown framed in front of it.
    tile : int, optional
        Longer side of a thumbnail in pixels, at scale 1. Without it, a few images are shown larger than many.
    scale : int
        Factor of the resolution, as of :func:`contact_sheet`.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When an array is not an image, rows differ in length, labels or queries differ in number, `tile` is not from 8
        to 4096, or `scale` not from 1 to 8.

    Examples
    --------
    >>> import numpy as np
    >>> digits = np.zeros((2, 10, 28, 28, 1), np.uint8)
    >>> image_grid(digits, ["first", "second"], [str(digit) for digit in range(10)], queries=digits[:, 0]).mode
    'RGB'

    """
    check_arguments(image_grid, locals(), DataError)
    check_measures(tile, scale)
    rows = rows_of_images(images)
    framed = None if queries is None else list(queries)
    columns = _check_columns(rows, row_labels, column_labels, framed)
    shown = [image for row in (framed or [], *rows) for image in row if image is not None]
    for number, image in enumerate(shown):
        check_picture(image, f"image {number} of the grid")
    cell = cell_for(shown, tile)
    tracks = Tracks.around(cell, rows)
    if framed:
        first = Tracks.around(cell, [[query] for query in framed])
        tracks = Tracks(cell, tracks.widths, list(map(max, tracks.heights, first.heights)))
        first = Tracks(cell, first.widths, tracks.heights)
    names = [wrap_text(label, _WIDEST, _NAMES, _LINES) for label in row_labels]
    heads = [
        wrap_text(label, width, _NAMES, _LINES) for label, width in zip(column_labels, tracks.widths, strict=False)
    ]
    front = max((text_width(text, size) + PADDING for lines in names for text, (size, _) in lines), default=0)
    indent = front + (first.width + PADDING if framed else 0)
    head = max((lines_height(lines) + SKIP for lines in heads), default=0)
    card, height = 2 * PADDING + indent + tracks.width, 2 * PADDING + head + tracks.height
    page = Page(card + 2 * MARGIN, height, title, cell, scale)
    page.card(MARGIN, page.top, card, height)
    left, top = MARGIN + PADDING, page.top + PADDING + head
    for column, lines in enumerate(heads):
        x = left + indent + tracks.place(0, column).left
        # the last line stands next to the images
        page.write(x, top - SKIP - lines_height(lines), lines, centred=tracks.widths[column])
    for number, row in enumerate(rows):
        if names:
            cell_box = tracks.place(number, 0)
            page.write(left, top + cell_box.top + (cell_box.height - lines_height(names[number])) // 2, names[number])
        if framed:
            box = first.middle(framed[number], number, 0).moved(left + front, top)
            page.frame(box.left, box.top, (box.width, box.height))
            page.fill(framed[number], box)
        for column, image in enumerate(row):
            page.fill(image, tracks.middle(image, number, column).moved(left + indent, top))
    return page.image


def rows_of_images(images: Any) -> list[list[Any]]:
    """Rows as lists; DataError where one is none, as those of an array of one axis."""
    try:
        return [list(row) for row in images]
    except TypeError:
        raise DataError(
            f"images must be a list of rows of images, not an array of shape {np.shape(images)}; pass one row as "
            "[images]"
        ) from None


def check_picture(image: Any, name: str) -> None:
    """Raise a DataError where an array is not an image."""
    shape: tuple[int, ...] = getattr(image, "shape", ())
    dtype = getattr(image, "dtype", type(image).__name__)
    if dtype != np.uint8 or len(shape) != 3 or shape[2] not in (1, 3, 4) or 0 in shape:
        raise DataError(
            f"{name} must be a uint8 array of shape (height, width, 1, 3 or 4), not {dtype} of shape {shape}; batches "
            "for networks have other dtypes, and channels first"
        )


def _check_columns(
    rows: Sequence[Any], row_labels: Sequence[str], column_labels: Sequence[str], queries: Sequence[Any] | None
) -> int:
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or 0 in lengths:
        raise DataError(
            f"the rows of a grid must have the same length, 1 or more, not {sorted(lengths) or 'none'}; pad with None"
        )
    columns = lengths.pop()
    for name, given, wanted in (
        ("row labels", len(row_labels) or None, len(rows)),
        ("column labels", len(column_labels) or None, columns),
        ("queries", None if queries is None else len(queries), len(rows)),
    ):
        if given not in (None, wanted):
            raise DataError(f"a grid of {len(rows)} rows and {columns} columns requires {wanted} {name}, not {given}")
    return columns
