"""Sheets of triplets: one triplet a row, its roles as heads of the columns."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from PIL import Image

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.reports.grid import check_picture, rows_of_images
from setsup.reports.page import (
    GUTTER,
    MARGIN,
    NOTES,
    PADDING,
    SKIP,
    Page,
    Tracks,
    cell_for,
    check_measures,
    lines_height,
)
from setsup.reports.text_layout import fit_text

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
    scale: int = 1,
) -> Image.Image:
    r"""Lay triplets out in rows, numbered as in their draw.

    Parameters
    ----------
    images : (triplets, 3, height, width, channels) uint8, or nested sequences of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; images may differ in size, and columns and rows are as wide and as high as
        their largest.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    limit : int
        Triplets shown.
    width : int
        Pixels the sheet may be wide, at scale 1.
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
        When an array is not an image, a row does not have three, `tile` is not from 8 to 4096, or
        `scale` not from 1 to 8.

    Examples
    --------
    >>> import numpy as np
    >>> triplet_sheet(np.zeros((32, 3, 64, 64, 3), np.uint8), "triplets").mode
    'RGB'

    """
    check_arguments(triplet_sheet, locals(), DataError)
    check_measures(tile, scale)
    return triplet_page(images, title, limit, width, tile, scale).image


def triplet_page(
    images: Sequence[Sequence[npt.NDArray[Any]]] | npt.NDArray[Any],
    title: str,
    limit: int = 64,
    width: int = 1400,
    tile: int | None = None,
    scale: int = 1,
) -> Page:
    """Lay triplets out as :func:`triplet_sheet` does, without looking at all arguments."""
    rows = rows_of_images(images[:limit])
    wrong = next((len(row) for row in rows if len(row) != len(_HEADS)), None)
    if wrong is not None:
        raise DataError(f"a triplet must have {len(_HEADS)} images ({', '.join(_HEADS)}), not {wrong}")
    for number, row in enumerate(rows):
        for image, name in zip(row, _HEADS, strict=True):
            check_picture(image, f"the {name} of triplet {number}")
    cell = cell_for([image for row in rows for image in row], tile)
    columns = Tracks.around(cell, rows).widths or [cell.width] * len(_HEADS)
    card = 2 * PADDING + _NUMBER + Tracks(cell, columns, ()).width
    across = max(1, min((width - 2 * MARGIN + GUTTER) // (card + GUTTER), -(-len(rows) // _ROWS)))
    # as many full rows of cards as there are, all equally long
    per_card = max(1, -(-len(rows) // across)) if len(rows) <= across * 2 * _ROWS else _ROWS
    cards = [
        Tracks(cell, columns, Tracks.around(cell, rows[start : start + per_card]).heights)
        for start in range(0, len(rows), per_card)
    ]
    head = fit_text("head", cell.width, NOTES)
    above = 2 * PADDING + lines_height(head) + SKIP
    lines = [cards[start : start + across] for start in range(0, len(cards), across)]
    heights = [above + max(tracks.height for tracks in line) for line in lines]
    title += f"\n… and {len(images) - limit:,} triplets more" if len(images) > limit else ""
    full = 2 * MARGIN + min(across, max(len(cards), 1)) * (card + GUTTER) - GUTTER
    page = Page(full, sum(heights) + GUTTER * (len(lines) - 1), title, cell, scale)
    top, first = page.top, 0
    for line, height in zip(lines, heights, strict=True):
        for at, tracks in enumerate(line):
            left = MARGIN + at * (card + GUTTER)
            page.card(left, top, card, height)
            _draw_card(page, tracks, rows[first : first + per_card], left + PADDING, top + PADDING, first)
            first += per_card
        top += height + GUTTER
    return page


def _draw_card(page: Page, tracks: Tracks, rows: list[list[npt.NDArray[Any]]], left: int, top: int, first: int) -> None:
    start = left + _NUMBER
    for column, head in enumerate(_HEADS):
        box = tracks.place(0, column)
        below = page.write(start + box.left, top - 2, fit_text(head, box.width, NOTES)) + 2 + SKIP
    for number, row in enumerate(rows):
        box = tracks.place(number, 0)
        page.write(left, below + box.top + box.height // 2 - 9, fit_text(str(first + number), _NUMBER, NOTES))
        for column, picture in enumerate(row):
            page.fill(picture, tracks.middle(picture, number, column).moved(start, below))
