"""Sheets of orbits: the canonical image and members of each, and beneath them what methods make of these."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from PIL import Image

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.reports.grid import check_picture, rows_of_images
from setsup.reports.page import (
    CAPTIONS,
    GUTTER,
    INK,
    MARGIN,
    NOTES,
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

__all__ = ["orbit_sheet"]

_LABELS: tuple[Style, Style] = ((13, INK), (13, SOFT))
_WIDEST = 200  # pixels of the names of rows
_HEADS = ("canonical", "members")


def orbit_sheet(
    images: Sequence[Sequence[Sequence[npt.NDArray[Any] | None]]],
    captions: Sequence[str],
    row_labels: Sequence[Sequence[str]],
    title: str = "",
    *,
    canonical: bool = True,
    tile: int | None = None,
    scale: int = 1,
) -> Image.Image:
    r"""Lay orbits out as blocks, one below the other: members in the first row, what becomes of them in further ones.

    Parameters
    ----------
    images : nested sequences of (height, width, channels) uint8: orbits, rows, columns
        Grey, sRGB or sRGB with alpha; images may differ in size. All rows have equally many columns; None leaves a
        place grey.
    captions : sequence of str, one per orbit
        Above each block; lines after ``\n`` are softer.
    row_labels : sequences of str: orbits, rows
        In front of the rows.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    canonical : bool
        Whether the first column is that of canonical images: it stands apart, and the image in the first row is framed.
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
        When an array is not an image, rows differ in length, captions or labels differ in number, `tile` is not from 8
        to 4096, or `scale` not from 1 to 8.

    Examples
    --------
    >>> import numpy as np
    >>> orbit = np.zeros((2, 5, 28, 28, 1), np.uint8)
    >>> orbit_sheet([orbit, orbit], ["digit 0", "digit 1"], [["", "rectified"]] * 2).mode
    'RGB'

    """
    check_arguments(orbit_sheet, locals(), DataError)
    check_measures(tile, scale)
    blocks = [rows_of_images(orbit) for orbit in images]
    _check_blocks(blocks, captions, row_labels)
    cell = cell_for([image for block in blocks for row in block for image in row if image is not None], tile)
    fitted = [Tracks.around(cell, block) for block in blocks]
    widths = [max(column) for column in zip(*(tracks.widths for tracks in fitted), strict=True)]
    if canonical:
        widths[0] = max(widths[0], text_width(_HEADS[0], NOTES[0][0]))
    tracks = [Tracks(cell, widths, track.heights) for track in fitted]
    labels = [[wrap_text(label, _WIDEST, _LABELS, 3) for label in rows] for rows in row_labels]
    written = [line for rows in labels for lines in rows for line in lines]
    front = max((text_width(text, size) + PADDING for text, (size, _) in written), default=0)
    card = 2 * PADDING + front + tracks[0].width + PADDING * canonical
    heads = [wrap_text(caption, card - 2 * PADDING, CAPTIONS) for caption in captions]
    above = lines_height(wrap_text(_HEADS[0], _WIDEST, NOTES)) + SKIP
    heights = [
        2 * PADDING + lines_height(head) + above + track.height + SKIP
        for head, track in zip(heads, tracks, strict=True)
    ]
    page = Page(card + 2 * MARGIN, sum(heights) + GUTTER * (len(blocks) - 1), title, cell, scale)
    top = page.top
    for block, head, names, track, height in zip(blocks, heads, labels, tracks, heights, strict=True):
        page.card(MARGIN, top, card, height)
        below = page.write(MARGIN + PADDING, top + PADDING, head) + SKIP
        _draw_block(page, block, names, track, MARGIN + PADDING, below, front, canonical)
        top += height + GUTTER
    return page.image


def _draw_block(
    page: Page,
    block: Sequence[Sequence[npt.NDArray[Any] | None]],
    names: Sequence[Any],
    tracks: Tracks,
    left: int,
    top: int,
    front: int,
    canonical: bool,
) -> None:
    start = left + front
    apart = [PADDING * (canonical and column > 0) for column in range(len(tracks.widths))]
    for column, word in enumerate(_HEADS if canonical else _HEADS[1:]):
        if column < len(tracks.widths):
            page.write(start + apart[column] + tracks.place(0, column).left, top, wrap_text(word, _WIDEST, NOTES))
    top += lines_height(wrap_text(_HEADS[0], _WIDEST, NOTES)) + SKIP
    for number, (row, lines) in enumerate(zip(block, names, strict=True)):
        cell_box = tracks.place(number, 0)
        page.write(left, top + cell_box.top + (cell_box.height - lines_height(lines)) // 2, lines)
        for column, image in enumerate(row):
            if canonical and not column and number and image is None:
                continue  # nothing is missing where only members have something beneath them
            box = tracks.middle(image, number, column).moved(start + apart[column], top)
            page.fill(image, box)
            if canonical and number == column == 0 and image is not None:
                page.frame(box.left, box.top, (box.width, box.height))


def _check_blocks(
    blocks: Sequence[Sequence[Sequence[Any]]], captions: Sequence[str], row_labels: Sequence[Sequence[str]]
) -> None:
    lengths = {len(row) for block in blocks for row in block}
    if len(lengths) != 1 or 0 in lengths or not all(blocks):
        raise DataError(
            f"the rows of orbits must have the same length, 1 or more, not {sorted(lengths) or 'none'}; pad with None"
        )
    for name, given in (("captions", captions), ("row labels", row_labels)):
        if len(given) != len(blocks):
            raise DataError(f"a sheet of {len(blocks)} orbits requires {len(blocks)} {name}, not {len(given)}")
    for number, (block, names) in enumerate(zip(blocks, row_labels, strict=True)):
        if len(names) != len(block):
            raise DataError(
                f"orbit {number} of the sheet must have one label for each of the {len(block)} rows, not {len(names)}"
            )
        for image in (image for row in block for image in row if image is not None):
            check_picture(image, f"an image of orbit {number}")
