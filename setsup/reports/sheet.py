"""Contact sheets: sets of images as blocks, to be understood at a glance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.reports.justified import Box, justified, shown_aspect
from setsup.reports.page import (
    CAPTIONS,
    GAP,
    GUTTER,
    MARGIN,
    NOTES,
    PADDING,
    SKIP,
    Cell,
    Page,
    cell_for,
    check_measures,
    lines_height,
)
from setsup.reports.text_layout import Lines, wrap_text

__all__ = ["contact_page", "contact_sheet"]

Pictures = Sequence[npt.NDArray[Any]] | npt.NDArray[Any]
"""Images (n, height, width, channels) uint8, or n images of different sizes."""

_ASPECT = 2.0  # width by height of a sheet
_SHAPE = 1.5  # and of the images of a block
_RAGGED = 0.75  # what a last row that is not full costs
_NARROW = 300  # a caption in a narrower block breaks into many lines
_NARROWEST = 220
_TRIMMED = 0.02  # of an image that may be cropped without a mark


@dataclass(frozen=True, slots=True)
class _Block:
    """One set as it will be shown: None stands for a padded position."""

    pictures: list[npt.NDArray[Any] | None]
    canonical: npt.NDArray[Any] | None
    caption: Lines
    note: Lines

    def head(self) -> int:
        """Height above the images, in pixels."""
        return lines_height(self.caption) + SKIP * bool(self.caption)

    def foot(self) -> int:
        """Height of what is written below the images, in pixels."""
        return lines_height(self.note) + SKIP * bool(self.note)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where images stand in a block: in rows and columns, or in rows of one height if their shapes differ.

    ``height`` is that of the rows, 0 for columns; ``front`` the width of what stands before the images.
    """

    cell: Cell
    columns: int
    across: int
    inner: int
    front: int
    height: int

    def boxes(self, pictures: Sequence[npt.NDArray[Any] | None]) -> list[Box]:
        """Place of each image, from the first one's corner."""
        if self.height:
            aspects = [1.0 if image is None else shown_aspect(image.shape[1], image.shape[0]) for image in pictures]
            return justified(aspects, self.inner - self.front, self.height, GAP)
        corners = (self.cell.corner(*divmod(slot, self.columns)) for slot in range(len(pictures)))
        return [Box(x, y, self.cell.width, self.cell.height) for x, y in corners]

    def rise(self, boxes: Sequence[Box]) -> int:
        """Height of the images, which is that of one row at least."""
        return max([self.height or self.cell.height, *(box.top + box.height for box in boxes)])

    def before(self, block: _Block) -> int:
        """Height of what stands before the images."""
        return 0 if block.canonical is None else self.cell.size_of(block.canonical)[1]


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
    scale: int = 1,
) -> Image.Image:
    r"""Lay sets of images out as blocks with captions.

    Equal arguments give equal images. Images of one shape stand in rows and columns: small ones are enlarged by whole
    factors, large ones reduced. Images of several shapes stand in rows of equal height without gaps; there, an image
    wider than 3:1 or taller than 2:5 is cropped at its ends, which dashes mark.

    Parameters
    ----------
    images : (sets, size, height, width, channels) uint8, or nested sequences of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; images may differ in size.
    captions : sequence of str, one per set
        The first line stands out, those after ``\n`` are softer.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    mask : (sets, size) bool, optional
        False for padded positions, which are greyed out.
    canonical : (sets, height, width, channels) uint8, optional
        An image a set that is shown framed in front of it.
    sizes : sequence of int, one per set, optional
        Members of each set, where `images` holds only the first of them.
    limit : int
        Thumbnails shown of a set; how many more there are is written below.
    width : int
        Pixels the sheet may be wide, at scale 1.
    tile : int, optional
        Longer side of a thumbnail in pixels, at scale 1; of images of several shapes, the height of a row, about.
        Without it, a few images are shown larger than many.
    scale : int
        Factor of the resolution: 2 gives twice the pixels each way, text and thumbnails drawn anew from the images,
        for dense displays and for print.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When an array is not an image, captions, masks and images disagree in number, `tile` is not from 8 to 4096, or
        `scale` not from 1 to 8.

    Examples
    --------
    >>> import numpy as np
    >>> sheet = contact_sheet(np.zeros((2, 32, 64, 64, 3), np.uint8), ["left", "right"], "two sets")
    >>> sheet.width <= 1400, sheet.mode
    (True, 'RGB')

    """
    if hasattr(images, "fetch"):
        raise DataError('a contact sheet requires images; pass dataset.fetch(draw.indices)["image"]')
    check_arguments(contact_sheet, locals(), DataError)
    check_measures(tile, scale)
    return contact_page(images, captions, title, mask, canonical, sizes, limit, width, tile, scale).image


def contact_page(
    images: Sequence[Pictures] | npt.NDArray[Any],
    captions: Sequence[str],
    title: str,
    mask: npt.ArrayLike | None,
    canonical: Pictures | None,
    sizes: Sequence[int] | None,
    limit: int = 64,
    width: int = 1400,
    tile: int | None = None,
    scale: int = 1,
    framed: int = 0,
) -> Page:
    """Lay sets of images out as :func:`contact_sheet` does, without looking at all arguments.

    The first ``framed`` images of each set get a frame.
    """
    _check_numbers(len(images), captions=captions, canonical=canonical, sizes=sizes)
    used = _used(images, mask)
    shown = [
        [image if use else None for image, use in zip(row[:limit], uses, strict=False)]
        for row, uses in zip(images, used, strict=True)
    ]
    everything = [image for row in (*images, () if canonical is None else canonical) for image in row[:limit]]
    plan = _plan(shown, canonical, cell_for(everything, tile), width)
    blocks = []
    for number, pictures in enumerate(shown):
        members = sum(used[number]) if sizes is None else sizes[number]
        more = members - sum(picture is not None for picture in pictures)
        caption = wrap_text(captions[number], plan.inner, CAPTIONS)
        note = wrap_text(f"… and {more:,} more", plan.inner, NOTES) if more > 0 else []
        blocks.append(_Block(pictures, None if canonical is None else canonical[number], caption, note))
    return _drawn(blocks, title, plan, scale, framed)


def _used(images: Sequence[Pictures] | npt.NDArray[Any], mask: npt.ArrayLike | None) -> list[list[bool]]:
    """Whether each position holds a member."""
    if mask is None:
        return [[True] * len(pictures) for pictures in images]
    used = np.asarray(mask, dtype=bool)
    if used.ndim != 2 or len(used) != len(images) or any(len(pictures) > used.shape[1] for pictures in images):
        raise DataError(
            f"the mask of a contact sheet must have the shape (sets, size), not {used.shape} for {len(images)} sets"
        )
    rows: list[list[bool]] = used.tolist()
    return rows


def _check_numbers(sets: int, **parts: Any) -> None:
    for name, part in parts.items():
        if part is not None and len(part) != sets:
            raise DataError(f"a contact sheet of {sets} sets requires {sets} entries in {name}, not {len(part)}")


def _plan(
    shown: Sequence[Sequence[npt.NDArray[Any] | None]], canonical: Pictures | None, cell: Cell, width: int
) -> _Plan:
    pictures = [picture for row in shown for picture in row if picture is not None]
    height = 0 if _alike(pictures, cell) else _row_height(pictures, cell)
    before = [] if canonical is None else [cell.size_of(picture)[0] if height else cell.width for picture in canonical]
    front = max(before, default=-PADDING) + PADDING
    usual = cell
    if height:
        aspects = [shown_aspect(picture.shape[1], picture.shape[0]) for picture in pictures]
        usual = Cell(round(height * sum(aspects) / len(aspects)), height, cell.target)
    # one thumbnail has room at least
    width = max(width, usual.width + front + 2 * (MARGIN + PADDING))
    columns, across = _layout(max(len(shown), 1), max(map(len, shown), default=0) or 1, usual, width, front)
    return _Plan(cell, columns, across, max(usual.span(columns) + front, _NARROWEST), front, height)


def _alike(pictures: Sequence[npt.NDArray[Any]], cell: Cell) -> bool:
    """Whether every image fills the cell, but for what rounding takes."""
    shapes = {picture.shape[:2] for picture in pictures}
    return all(
        abs(cell.height * width / height - cell.width) < 1 or abs(cell.width * height / width - cell.height) < 1
        for height, width in shapes
    )


def _row_height(pictures: Sequence[npt.NDArray[Any]], cell: Cell) -> int:
    """Height of rows in which most images have about the area that they have in cells."""
    if cell.exact:
        return cell.target
    return round(median(math.sqrt(math.prod(cell.size_of(picture))) for picture in pictures))


def _layout(sets: int, size: int, cell: Cell, width: int, front: int) -> tuple[int, int]:
    """Thumbnails a row and blocks a row that fill a pleasant page with few empty places."""
    best, layout = math.inf, (1, 1)
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
                best, layout = cost, (columns, across)
    return layout


def _drawn(blocks: list[_Block], title: str, plan: _Plan, scale: int, framed: int) -> Page:
    card, across = plan.inner + 2 * PADDING, plan.across
    rows = [blocks[start : start + across] for start in range(0, len(blocks), across)]
    places = [[plan.boxes(pictures) for pictures in _trimmed(row, plan)] for row in rows]
    # neighbours begin their images at the same height, however long their captions are
    heads = [max(block.head() for block in row) for row in rows]
    bodies = [
        max(max(plan.rise(boxes) + block.foot(), plan.before(block)) for block, boxes in zip(row, placed, strict=True))
        for row, placed in zip(rows, places, strict=True)
    ]
    heights = [head + body + 2 * PADDING for head, body in zip(heads, bodies, strict=True)]
    width = 2 * MARGIN + min(across, max(len(blocks), 1)) * (card + GUTTER) - GUTTER
    page = Page(width, sum(heights) + GUTTER * max(len(rows) - 1, 0), title, plan.cell, scale)
    top = page.top
    for row, placed, head, height in zip(rows, places, heads, heights, strict=True):
        for number, (block, boxes) in enumerate(zip(row, placed, strict=True)):
            left = MARGIN + number * (card + GUTTER)
            page.card(left, top, card, height)
            page.write(left + PADDING, top + PADDING - 2, block.caption)
            _draw_pictures(page, block, left + PADDING, top + PADDING + head, boxes, plan, framed)
        top += height + GUTTER
    return page


def _trimmed(blocks: list[_Block], plan: _Plan) -> list[list[npt.NDArray[Any] | None]]:
    """Images without the last rows where none of the neighbours has any."""
    last = max(
        (slot for block in blocks for slot, picture in enumerate(block.pictures) if picture is not None), default=0
    )
    slots = last + 1 if plan.height else (last // plan.columns + 1) * plan.columns
    return [block.pictures[:slots] for block in blocks]


def _draw_pictures(
    page: Page, block: _Block, left: int, top: int, boxes: Sequence[Box], plan: _Plan, framed: int
) -> None:
    if block.canonical is not None:
        size = plan.cell.size_of(block.canonical) if plan.height else None
        page.frame(left, top, size)
        page.fill(block.canonical, Box(left, top, *size)) if size else page.place(block.canonical, left, top)
    for box in boxes[:framed]:
        page.frame(left + plan.front + box.left, top + box.top, (box.width, box.height))
    for picture, box in zip(block.pictures, boxes, strict=False):
        cropped = plan.height > 0 and picture is not None and _is_cropped(picture)
        page.fill(picture, box.moved(left + plan.front, top), cropped)
    page.write(left + plan.front, top + plan.rise(boxes) + SKIP, block.note)


def _is_cropped(picture: npt.NDArray[Any]) -> bool:
    height, width = int(picture.shape[0]), int(picture.shape[1])
    return abs(shown_aspect(width, height) * height / width - 1) > _TRIMMED
