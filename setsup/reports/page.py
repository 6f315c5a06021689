"""What all sheets share: colours, measures, cards, and images in cells."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from PIL import Image, ImageDraw

from setsup.checks import check_integer
from setsup.errors import DataError
from setsup.reports.justified import Box
from setsup.reports.text_layout import Lines, Style, draw_text, line_height, text_width, wrap_text
from setsup.reports.thumbnails import cell_size, filled, fit_size

__all__ = ["Cell", "Mark", "Page", "Tracks", "cell_for", "check_measures", "lines_height"]

MARGIN, GUTTER, PADDING, GAP, SKIP = 24, 16, 14, 3, 8
PAPER, CARD, EDGE, EMPTY, FRAME = "#f2f4f6", "#ffffff", "#dde2e7", "#e9ecef", "#c2410c"
INK, SOFT = "#1f2933", "#66727f"
TITLES: tuple[Style, Style] = ((22, INK), (14, SOFT))
CAPTIONS: tuple[Style, Style] = ((15, INK), (13, SOFT))
NOTES: tuple[Style, Style] = ((13, SOFT), (13, SOFT))
_DASH = 4  # pixels of a dash along the side at which an image is cropped


@dataclass(frozen=True, slots=True)
class Cell:
    """Measures of all thumbnails of a sheet, in pixels; with ``exact``, their longer side is the target."""

    width: int
    height: int
    target: int
    exact: bool = False

    def span(self, columns: int) -> int:
        """Width of so many thumbnails side by side."""
        return columns * (self.width + GAP) - GAP

    def rise(self, rows: int) -> int:
        """Height of so many thumbnails one above the other."""
        return rows * (self.height + GAP) - GAP

    def corner(self, row: int, column: int) -> tuple[int, int]:
        """Left and top of a thumbnail, from those of the first."""
        return column * (self.width + GAP), row * (self.height + GAP)

    def size_of(self, pixels: npt.NDArray[Any]) -> tuple[int, int]:
        """Width and height of the thumbnail of an image."""
        return fit_size(pixels.shape[1], pixels.shape[0], self.target, self.exact)

    def middle(self, pixels: npt.NDArray[Any]) -> Box:
        """Place of an image in the middle of the cell."""
        width, height = self.size_of(pixels)
        return Box((self.width - width) // 2, (self.height - height) // 2, width, height)


def cell_for(pictures: Iterable[npt.NDArray[Any]], tile: int | None = None) -> Cell:
    """Choose the size of all thumbnails, if it is not given: a few images are shown larger than many."""
    shapes = [picture.shape for picture in pictures]
    target = tile or (128 if len(shapes) <= 24 else 64)
    return Cell(*cell_size(shapes, target, tile is not None), target, tile is not None)


@dataclass(frozen=True, slots=True)
class Tracks:
    """Columns and rows of a grid, each as wide and as high as its largest image, in pixels."""

    cell: Cell
    widths: Sequence[int]
    heights: Sequence[int]

    @classmethod
    def around(cls, cell: Cell, rows: Sequence[Sequence[npt.NDArray[Any] | None]]) -> "Tracks":
        """Fit columns and rows to images; those without any are as large as a cell."""
        sizes = [[None if image is None else cell.size_of(image) for image in row] for row in rows]
        widths = [max((size[0] for size in column if size), default=cell.width) for column in zip(*sizes, strict=True)]
        return cls(cell, widths, [max((size[1] for size in row if size), default=cell.height) for row in sizes])

    @property
    def width(self) -> int:
        """Width of all columns."""
        return sum(self.widths) + GAP * (len(self.widths) - 1)

    @property
    def height(self) -> int:
        """Height of all rows."""
        return sum(self.heights) + GAP * (len(self.heights) - 1)

    def place(self, row: int, column: int) -> Box:
        """Place of a row and a column, from that of the first."""
        left, top = sum(self.widths[:column]) + GAP * column, sum(self.heights[:row]) + GAP * row
        return Box(left, top, self.widths[column], self.heights[row])

    def middle(self, image: npt.NDArray[Any] | None, row: int, column: int) -> Box:
        """Place of an image in the middle of its row and column."""
        box = self.place(row, column)
        if image is None:
            return box
        width, height = self.cell.size_of(image)
        return Box(box.left + (box.width - width) // 2, box.top + (box.height - height) // 2, width, height)


def check_measures(tile: int | None, scale: int) -> None:
    """Check the size of thumbnails and the resolution of a sheet."""
    if tile is not None:
        check_integer(tile, "tile, the side of a thumbnail in pixels,", DataError, 8, 4096)
    check_integer(scale, "scale, the factor of a sheet's resolution,", DataError, 1, 8)


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing on a page: ``card``, ``frame``, ``empty`` cell, ``dash``, ``image``, or a line of ``text``."""

    kind: str
    box: Box
    content: Any = None
    """The image, or the text and its style."""


class Page:
    """A sheet that is being drawn. All measures are those at scale 1; `scale` multiplies the pixels.

    ``marks`` records what is on it, for formats that keep text as text.
    """

    def __init__(self, width: int, height: int, title: str, cell: Cell, scale: int = 1) -> None:
        header = wrap_text(title, width - 2 * MARGIN, TITLES) if title else []
        self.cell = cell
        self.scale = scale
        self.top = MARGIN + lines_height(header) + (12 if header else 0)
        self.image = Image.new("RGB", (width * scale, (self.top + height + MARGIN) * scale), PAPER)
        self._draw = ImageDraw.Draw(self.image)
        self.title, self.marks = title, list[Mark]()
        self.write(MARGIN, MARGIN - 4, header)

    def card(self, left: int, top: int, width: int, height: int) -> None:
        """Draw the card on which a block stands."""
        corners = self._mark("card", Box(left, top, width, height))
        self._draw.rounded_rectangle(corners, 6 * self.scale, fill=CARD, outline=EDGE, width=self.scale)

    def frame(self, x: int, y: int, size: tuple[int, int] | None = None) -> None:
        """Draw a frame around a cell, or around something of another size."""
        width, height = size or (self.cell.width, self.cell.height)
        around = self._mark("frame", Box(x - 3, y - 3, width + 6, height + 6))
        self._draw.rectangle(around, outline=FRAME, width=2 * self.scale)

    def place(self, pixels: npt.NDArray[Any] | None, x: int, y: int) -> None:
        """Put an image in the middle of its cell; None greys the cell out."""
        cell = self.cell
        self.fill(pixels, (Box(0, 0, cell.width, cell.height) if pixels is None else cell.middle(pixels)).moved(x, y))

    def fill(self, pixels: npt.NDArray[Any] | None, box: Box, cropped: bool = False) -> None:
        """Put an image into a box, which it fills; None greys the box out.

        Dashes show at which sides a `cropped` image goes on.
        """
        if pixels is None:
            self._draw.rectangle(self._mark("empty", box), fill=EMPTY)
            return
        scale = self.scale
        image = filled(pixels, box.width * scale, box.height * scale)
        self.image.paste(image, self._mark("image", box, image)[:2])
        if cropped:
            self._dashes(box, upright=pixels.shape[1] * box.height > pixels.shape[0] * box.width)

    def write(self, left: int, top: int, lines: Lines, centred: int = 0) -> int:
        """Write lines and give the height below them; `centred` in so many pixels, if any."""
        scale = self.scale
        for text, (size, color) in lines:
            indent = (centred * scale - text_width(text, size * scale)) // 2 if centred else 0
            self._mark("text", Box(left + indent // scale, top, 0, line_height(size)), (text, (size, color)))
            draw_text(self._draw, left * scale + indent, top * scale, text, (size * scale, color))
            top += line_height(size)
        return top

    def _mark(self, kind: str, box: Box, content: Any = None) -> tuple[int, int, int, int]:
        """Record a mark, and give its corners in pixels, both included."""
        self.marks.append(Mark(kind, box, content))
        scale = self.scale
        right, bottom = box.left + box.width, box.top + box.height
        return box.left * scale, box.top * scale, right * scale - 1, bottom * scale - 1

    def _dashes(self, box: Box, upright: bool) -> None:
        along, across = (box.height, box.width) if upright else (box.width, box.height)
        for side in (0, across - 2):
            for start in range(0, along, 2 * _DASH):
                long = min(_DASH, along - start)
                dash = Box(side, start, 2, long) if upright else Box(start, side, long, 2)
                self._draw.rectangle(self._mark("dash", dash.moved(box.left, box.top)), fill=FRAME)


def lines_height(lines: Lines) -> int:
    """Pixels so many lines take."""
    return sum(line_height(size) for _, (size, _) in lines)
