"""Sheets of triplets: one triplet a row, its roles as heads of the columns."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from PIL import Image

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.reports.grid import check_picture, rows_of_images
from setsup.reports.lettering import fit_text
from setsup.reports.page import GUTTER, MARGIN, NOTES, PADDING, SKIP, Page, cell_for, lines_height

__all__ = ["triplet_page", "triplet_sheet"]

_HEADS = ("anchor", "positive", "negative")
_ROWS = 8
_NUMBER = 26


def triplet_sheet(
    images: Sequence[Sequence[npt.NDArray[Any]]] | npt.NDArray[Any],
    title: str = "",
    *,
    limit: int = 64,
    width: int = 1400,
    tile: int | None = None,
) -> Image.Image:
    r"""Lay triplets out in rows, numbered as in their draw.

    Parameters
    ----------
    images : (triplets, 3, height, width, channels) uint8, or nested sequences of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; images may differ in size.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    limit : int
        Triplets shown.
    width : int
        Pixels the sheet may be wide.
    tile : int, optional
        Pixels of the longer side of a thumbnail, as in :func:`contact_sheet`.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When an array is no image, or a row does not have three.

    Examples
    --------
    >>> import numpy as np
    >>> triplet_sheet(np.zeros((32, 3, 64, 64, 3), np.uint8), "triplets").mode
    'RGB'

    """
    check_arguments(triplet_sheet, locals(), DataError)
    return triplet_page(images, title, limit=limit, width=width, tile=tile).image


def triplet_page(
    images: Sequence[Sequence[npt.NDArray[Any]]] | npt.NDArray[Any],
    title: str = "",
    *,
    limit: int = 64,
    width: int = 1400,
    tile: int | None = None,
) -> Page:
    """Lay triplets out as :func:`triplet_sheet` does."""
    rows = rows_of_images(images[:limit])
    wrong = next((len(row) for row in rows if len(row) != len(_HEADS)), None)
    if wrong is not None:
        raise DataError(f"a triplet has {len(_HEADS)} images ({', '.join(_HEADS)}), not {wrong}")
    for number, row in enumerate(rows):
        for image, name in zip(row, _HEADS, strict=True):
            check_picture(image, f"the {name} of triplet {number}")
    cell = cell_for([image for row in rows for image in row], tile)
    card = 2 * PADDING + _NUMBER + cell.span(len(_HEADS))
    across = max(1, min((width - 2 * MARGIN + GUTTER) // (card + GUTTER), -(-len(rows) // _ROWS)))
    # as many full rows of cards as there are, all equally long
    per_card = max(1, -(-len(rows) // across)) if len(rows) <= across * 2 * _ROWS else _ROWS
    cards = [rows[start : start + per_card] for start in range(0, len(rows), per_card)]
    lines = -(-len(cards) // across)
    head = fit_text("head", cell.width, NOTES)
    height = 2 * PADDING + lines_height(head) + SKIP + cell.rise(per_card)
    title += f"\n… and {len(images) - limit:,} triplets more" if len(images) > limit else ""
    full = 2 * MARGIN + min(across, max(len(cards), 1)) * (card + GUTTER) - GUTTER
    page = Page(full, lines * (height + GUTTER) - GUTTER, title, cell)
    for number, chunk in enumerate(cards):
        line, place = divmod(number, across)
        left, top = MARGIN + place * (card + GUTTER), page.top + line * (height + GUTTER)
        page.card(left, top, card, height)
        _draw_card(page, chunk, left + PADDING, top + PADDING, number * per_card)
    return page


def _draw_card(page: Page, rows: list[list[npt.NDArray[Any]]], left: int, top: int, first: int) -> None:
    cell, start = page.cell, left + _NUMBER
    for column, head in enumerate(_HEADS):
        below = page.write(start + cell.corner(0, column)[0], top - 2, fit_text(head, cell.width, NOTES)) + 2 + SKIP
    for number, row in enumerate(rows):
        middle = below + cell.corner(number, 0)[1] + cell.height // 2
        page.write(left, middle - 9, fit_text(str(first + number), _NUMBER, NOTES))
        for column, picture in enumerate(row):
            x, y = cell.corner(number, column)
            page.place(picture, start + x, below + y)
