"""Grids of images whose rows and columns have names, such as what was retrieved for some queries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.reports.lettering import Lines, Style, text_width, wrap_text
from setsup.reports.page import INK, MARGIN, PADDING, SKIP, SOFT, Page, cell_for, lines_height

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
) -> Image.Image:
    r"""Lay images out in rows and columns with names.

    As figure 5b of "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak
    supervision", arXiv 2103.03240: a query a row, and its nearest neighbour among each digit in the columns.

    Parameters
    ----------
    images : (rows, columns, height, width, channels) uint8, or nested sequences of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; images may differ in size. None leaves a place grey.
    row_labels : sequence of str, one a row, or none
        Written in front of the rows.
    column_labels : sequence of str, one a column, or none
        Written above the columns.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    queries : (rows, height, width, channels) uint8, optional
        An image a row that is shown framed in front of it.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When an array is no image, rows differ in length, or there are not as many labels or queries.

    Examples
    --------
    >>> import numpy as np
    >>> found = np.zeros((2, 10, 28, 28, 1), np.uint8)
    >>> image_grid(found, ["first", "second"], [str(digit) for digit in range(10)], queries=found[:, 0]).mode
    'RGB'

    """
    check_arguments(image_grid, locals(), DataError)
    rows = rows_of_images(images)
    framed = None if queries is None else list(queries)
    columns = _check_columns(rows, row_labels, column_labels, framed)
    shown = [image for row in (framed or [], *rows) for image in row if image is not None]
    for number, image in enumerate(shown):
        check_picture(image, f"image {number} of the grid")
    cell = cell_for(shown)
    names = [wrap_text(label, _WIDEST, _NAMES, _LINES) for label in row_labels]
    heads = [wrap_text(label, cell.width, _NAMES, _LINES) for label in column_labels]
    front = max((text_width(text, size) + PADDING for lines in names for text, (size, _) in lines), default=0)
    first = front + (cell.width + PADDING if framed else 0)
    head = max((lines_height(lines) + SKIP for lines in heads), default=0)
    card, height = 2 * PADDING + first + cell.span(columns), 2 * PADDING + head + cell.rise(len(rows))
    page = Page(card + 2 * MARGIN, height, title, cell)
    page.card(MARGIN, page.top, card, height)
    left, top = MARGIN + PADDING, page.top + PADDING + head
    for column, lines in enumerate(heads):
        _write_head(page, left + first + cell.corner(0, column)[0], top - SKIP, lines)
    for number, row in enumerate(rows):
        y = top + cell.corner(number, 0)[1]
        if names:
            page.write(left, y + (cell.height - lines_height(names[number])) // 2, names[number])
        if framed:
            page.frame(left + front, y)
            page.place(framed[number], left + front, y)
        for column, image in enumerate(row):
            page.place(image, left + first + cell.corner(0, column)[0], y)
    return page.image


def rows_of_images(images: Any) -> list[list[Any]]:
    """Rows as lists; DataError where one is none, as those of an array of one axis."""
    try:
        return [list(row) for row in images]
    except TypeError:
        raise DataError(
            f"images must be rows of images, not an array {np.shape(images)}; one row is given as [images]"
        ) from None


def check_picture(image: Any, name: str) -> None:
    """Raise a DataError where an array is no image."""
    shape: tuple[int, ...] = getattr(image, "shape", ())
    dtype = getattr(image, "dtype", type(image).__name__)
    if dtype != np.uint8 or len(shape) != 3 or shape[2] not in (1, 3, 4) or 0 in shape:
        raise DataError(
            f"{name} must be (height, width, 1, 3 or 4) uint8, not {shape} {dtype}; "
            "a network's batch has other numbers, and channels first"
        )


def _write_head(page: Page, left: int, bottom: int, lines: Lines) -> None:
    """Write lines in the middle of a column, the last of them next to the images."""
    top = bottom - lines_height(lines)
    for text, style in lines:
        indent = (page.cell.width - text_width(text, style[0])) // 2
        top = page.write(left + indent, top, [(text, style)])


def _check_columns(
    rows: Sequence[Any], row_labels: Sequence[str], column_labels: Sequence[str], queries: Sequence[Any] | None
) -> int:
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or 0 in lengths:
        raise DataError(f"a grid needs rows of one length from 1 on, not {sorted(lengths) or 'none'}; pad with None")
    columns = lengths.pop()
    for name, given, wanted in (
        ("row labels", len(row_labels) or None, len(rows)),
        ("column labels", len(column_labels) or None, columns),
        ("queries", None if queries is None else len(queries), len(rows)),
    ):
        if given not in (None, wanted):
            raise DataError(f"a grid of {len(rows)} rows and {columns} columns needs {wanted} {name}, not {given}")
    return columns
