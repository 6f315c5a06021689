"""Sheets of triplets: one triplet a row, its roles as heads of the columns."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from PIL import Image

from setsup.errors import DataError
from setsup.reports.lettering import fitted
from setsup.reports.page import GUTTER, MARGIN, NOTES, PADDING, SKIP, Cell, Page, cell_for, lines_height

__all__ = ["triplet_sheet"]

_ROWS = 8
_NUMBER = 26


def triplet_sheet(
    images: Sequence[Sequence[npt.NDArray[Any]]] | npt.NDArray[Any],
    title: str = "",
    *,
    heads: Sequence[str] = ("anchor", "positive", "negative"),
    limit: int = 64,
    width: int = 1400,
) -> Image.Image:
    r"""Lay triplets out in rows, numbered as in their draw.

    Parameters
    ----------
    images : (triplets, 3, height, width, channels) uint8, or nested sequences of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; images may differ in size.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    heads : sequence of str
        Names of the columns.
    limit : int
        Triplets shown.
    width : int
        Pixels the sheet may be wide.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When an array is no image, or a row has more or fewer images than there are heads.

    Examples
    --------
    >>> import numpy as np
    >>> triplet_sheet(np.zeros((32, 3, 64, 64, 3), np.uint8), "triplets").mode
    'RGB'

    """
    rows = [list(row) for row in images[:limit]]
    if any(len(row) != len(heads) for row in rows):
        raise DataError(f"a sheet with the heads {list(heads)} needs {len(heads)} images a row")
    cell = cell_for([image for row in rows for image in row])
    card = 2 * PADDING + _NUMBER + cell.span(len(heads))
    across = max(1, min((width - 2 * MARGIN + GUTTER) // (card + GUTTER), -(-len(rows) // _ROWS)))
    # as many full rows of cards as there are, all equally long
    per_card = max(1, -(-len(rows) // across)) if len(rows) <= across * 2 * _ROWS else _ROWS
    cards = [rows[start : start + per_card] for start in range(0, len(rows), per_card)]
    lines = -(-len(cards) // across)
    head = fitted("head", cell.width, NOTES)
    height = 2 * PADDING + lines_height(head) + SKIP + cell.rise(per_card)
    title += f"\n… and {len(images) - limit:,} triplets more" if len(images) > limit else ""
    full = 2 * MARGIN + min(across, max(len(cards), 1)) * (card + GUTTER) - GUTTER
    page = Page(full, lines * (height + GUTTER) - GUTTER, title, cell)
    for number, chunk in enumerate(cards):
        line, place = divmod(number, across)
        left, top = MARGIN + place * (card + GUTTER), page.top + line * (height + GUTTER)
        page.card(left, top, card, height)
        _draw_card(page, chunk, heads, left + PADDING, top + PADDING, number * per_card)
    return page.image


def _draw_card(
    page: Page, rows: list[list[npt.NDArray[Any]]], heads: Sequence[str], left: int, top: int, first: int
) -> None:
    places = [left + _NUMBER + page.cell.span(column + 1) - page.cell.width for column in range(len(heads))]
    for head, x in zip(heads, places, strict=True):
        below = page.write(x, top - 2, fitted(head, page.cell.width, NOTES))
    for number, row in enumerate(rows):
        y = below + 2 + SKIP + _row_top(page.cell, number)
        page.write(left, y + page.cell.height // 2 - 9, fitted(str(first + number), _NUMBER, NOTES))
        for picture, x in zip(row, places, strict=True):
            page.place(picture, x, y)


def _row_top(cell: Cell, row: int) -> int:
    return cell.rise(row + 1) - cell.height
