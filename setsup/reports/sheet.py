"""Contact sheets: sets of images as blocks, to be understood at a glance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.reports.lettering import Lines, wrap_text
from setsup.reports.page import CAPTIONS, GAP, GUTTER, MARGIN, NOTES, PADDING, SKIP, Cell, Page, cell_for, lines_height

__all__ = ["contact_page", "contact_sheet"]

Pictures = Sequence[npt.NDArray[Any]] | npt.NDArray[Any]
"""Images (n, height, width, channels) uint8, or n images of different sizes."""

_ASPECT = 2.0  # width by height of a sheet
_SHAPE = 1.5  # and of the images of a block
_RAGGED = 0.75  # what a last row that is not full costs
_NARROW = 300  # a caption in a narrower block breaks into many lines
_NARROWEST = 220


@dataclass(frozen=True, slots=True)
class _Block:
    """One set as it will be drawn: None stands for a padded slot."""

    pictures: list[npt.NDArray[Any] | None]
    canonical: npt.NDArray[Any] | None
    caption: Lines
    note: Lines

    def head(self) -> int:
        """Height above the images, in pixels."""
        return lines_height(self.caption) + SKIP * bool(self.caption)

    def body(self, columns: int, cell: Cell) -> int:
        """Height of the images and what is written below them, in pixels."""
        rows = max(1, -(-len(self.pictures) // columns))
        return cell.rise(rows) + lines_height(self.note) + SKIP * bool(self.note)


def contact_sheet(
    images: Sequence[Pictures] | npt.NDArray[Any],
    captions: Sequence[str],
    title: str = "",
    *,
    mask: npt.ArrayLike | None = None,
    canonical: Pictures | None = None,
    sizes: Sequence[int] | None = None,
    limit: int = 64,
    width: int = 1400,
    tile: int | None = None,
) -> Image.Image:
    r"""Lay sets of images out as blocks with captions.

    Equal arguments give equal images. Small images are enlarged by whole factors, large ones reduced.

    Parameters
    ----------
    images : (sets, size, height, width, channels) uint8, or nested sequences of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; images may differ in size.
    captions : sequence of str, one a set
        The first line stands out, those after ``\n`` are softer.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    mask : (sets, size) bool, optional
        False for padded slots, which are greyed out.
    canonical : (sets, height, width, channels) uint8, optional
        An image a set that is shown framed in front of it.
    sizes : sequence of int, one a set, optional
        Members of each set, where `images` holds only the first of them.
    limit : int
        Thumbnails shown of a set; how many more there are is written below.
    width : int
        Pixels the sheet may be wide.
    tile : int, optional
        Pixels of the longer side of a thumbnail; small images grow by whole factors up to it. 128 for up to 24 images,
        else 64.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When an array is no image, or captions, masks and images disagree in number.

    Examples
    --------
    >>> import numpy as np
    >>> sheet = contact_sheet(np.zeros((2, 32, 64, 64, 3), np.uint8), ["left", "right"], "two sets")
    >>> sheet.width <= 1400, sheet.mode
    (True, 'RGB')

    """
    if hasattr(images, "fetch"):
        raise DataError('a contact sheet is made of images: give it dataset.fetch(draw.indices)["image"]')
    check_arguments(contact_sheet, locals(), DataError)
    return contact_page(
        images, captions, title, mask=mask, canonical=canonical, sizes=sizes, limit=limit, width=width, tile=tile
    ).image


def contact_page(
    images: Sequence[Pictures] | npt.NDArray[Any],
    captions: Sequence[str],
    title: str = "",
    *,
    mask: npt.ArrayLike | None = None,
    canonical: Pictures | None = None,
    sizes: Sequence[int] | None = None,
    limit: int = 64,
    width: int = 1400,
    tile: int | None = None,
) -> Page:
    """Lay sets of images out as :func:`contact_sheet` does."""
    _check_numbers(len(images), captions=captions, canonical=canonical, sizes=sizes)
    used = _used(images, mask)
    shown = [
        [image if use else None for image, use in zip(row[:limit], uses, strict=False)]
        for row, uses in zip(images, used, strict=True)
    ]
    cell = cell_for([image for row in (*images, () if canonical is None else canonical) for image in row[:limit]], tile)
    front = 0 if canonical is None else cell.width + PADDING
    columns, across = _layout(max(len(shown), 1), max(map(len, shown), default=0) or 1, cell, width, front)
    inner = max(cell.span(columns) + front, _NARROWEST)
    blocks = []
    for number, pictures in enumerate(shown):
        members = sum(used[number]) if sizes is None else sizes[number]
        more = members - sum(picture is not None for picture in pictures)
        caption = wrap_text(captions[number], inner, CAPTIONS)
        note = wrap_text(f"… and {more:,} more", inner, NOTES) if more > 0 else []
        blocks.append(_Block(pictures, None if canonical is None else canonical[number], caption, note))
    return _drawn(blocks, title, columns, across, cell, front)


def _used(images: Sequence[Pictures] | npt.NDArray[Any], mask: npt.ArrayLike | None) -> list[list[bool]]:
    """Whether each slot holds a member."""
    if mask is None:
        return [[True] * len(pictures) for pictures in images]
    used = np.asarray(mask, dtype=bool)
    if used.ndim != 2 or len(used) != len(images) or any(len(pictures) > used.shape[1] for pictures in images):
        raise DataError(f"the mask of a contact sheet must be (sets, size), not {used.shape} for {len(images)} sets")
    rows: list[list[bool]] = used.tolist()
    return rows


def _check_numbers(sets: int, **parts: Any) -> None:
    for name, part in parts.items():
        if part is not None and len(part) != sets:
            raise DataError(f"a contact sheet of {sets} sets needs as many {name}, not {len(part)}")


def _layout(sets: int, size: int, cell: Cell, width: int, front: int) -> tuple[int, int]:
    """Thumbnails a row and blocks a row that fill a pleasant page with few empty places."""
    best, found = math.inf, (1, 1)
    for across in range(1, min(sets, 6) + 1):
        card = (width - 2 * MARGIN + GUTTER) // across - GUTTER
        if across > 1 and card < _NARROWEST + 2 * PADDING:
            break
        room = card - 2 * PADDING - front
        for columns in range(1, min((room + GAP) // (cell.width + GAP), size) + 1):
            inner = max(cell.span(columns) + front, _NARROWEST)
            rows, lines = -(-size // columns), -(-sets // across)
            aspect = across * (inner + 2 * PADDING + GUTTER) / (lines * (cell.rise(rows) + 2 * PADDING + GUTTER + 50))
            # the page and each block have a pleasant shape, with few empty places in the last rows of both
            shape = (columns * (cell.width + GAP)) / (rows * (cell.height + GAP))
            cost = abs(math.log(aspect / _ASPECT)) + abs(math.log(shape / _SHAPE))
            cost += (rows * columns > size) * (_RAGGED + 4 * (1 - size / (rows * columns)))
            cost += 3 * (1 - sets / (lines * across))
            # captions need some room, and a few small sets are compared best side by side
            cost += max(0, _NARROW - inner) / 100 + (across == 1 and 2 <= sets <= 4 and size <= 32)
            if cost < best - 1e-9:
                best, found = cost, (columns, across)
    return found


def _drawn(blocks: list[_Block], title: str, columns: int, across: int, cell: Cell, front: int) -> Page:
    card = max(cell.span(columns) + front, _NARROWEST) + 2 * PADDING
    rows = [_trim(blocks[start : start + across], columns) for start in range(0, len(blocks), across)]
    # neighbours begin their images at the same height, however long their captions are
    heads = [max(block.head() for block in row) for row in rows]
    bodies = [max(block.body(columns, cell) for block in row) for row in rows]
    heights = [head + body + 2 * PADDING for head, body in zip(heads, bodies, strict=True)]
    width = 2 * MARGIN + min(across, max(len(blocks), 1)) * (card + GUTTER) - GUTTER
    page = Page(width, sum(heights) + GUTTER * max(len(rows) - 1, 0), title, cell)
    top = page.top
    for row, head, height in zip(rows, heads, heights, strict=True):
        for place, block in enumerate(row):
            left = MARGIN + place * (card + GUTTER)
            page.card(left, top, card, height)
            page.write(left + PADDING, top + PADDING - 2, block.caption)
            _draw_pictures(page, block, left + PADDING, top + PADDING + head, columns, front)
        top += height + GUTTER
    return page


def _trim(blocks: list[_Block], columns: int) -> list[_Block]:
    """Leave out the last rows of images where none of the neighbours has any."""
    last = max(
        (slot for block in blocks for slot, picture in enumerate(block.pictures) if picture is not None), default=0
    )
    return [replace(block, pictures=block.pictures[: (last // columns + 1) * columns]) for block in blocks]


def _draw_pictures(page: Page, block: _Block, left: int, top: int, columns: int, front: int) -> None:
    if block.canonical is not None:
        page.frame(left, top)
        page.place(block.canonical, left, top)
    rows = max(1, -(-len(block.pictures) // columns))
    for slot, picture in enumerate(block.pictures):
        x, y = page.cell.corner(*divmod(slot, columns))
        page.place(picture, left + front + x, top + y)
    page.write(left + front, top + page.cell.rise(rows) + SKIP, block.note)
