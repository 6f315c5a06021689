"""What all sheets share: colours, measures, cards, and images in cells."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from PIL import Image, ImageDraw

from setsup.reports.lettering import Lines, Style, draw_text, line_height, wrap_text
from setsup.reports.thumbnails import cell_size, thumbnail

__all__ = ["Cell", "Mark", "Page", "cell_for", "lines_height"]

MARGIN, GUTTER, PADDING, GAP, SKIP = 24, 16, 14, 3, 8
PAPER, CARD, EDGE, EMPTY, FRAME = "#f2f4f6", "#ffffff", "#dde2e7", "#e9ecef", "#c2410c"
INK, SOFT = "#1f2933", "#66727f"
TITLES: tuple[Style, Style] = ((22, INK), (14, SOFT))
CAPTIONS: tuple[Style, Style] = ((15, INK), (13, SOFT))
NOTES: tuple[Style, Style] = ((13, SOFT), (13, SOFT))


@dataclass(frozen=True, slots=True)
class Cell:
    """Measures of all thumbnails of a sheet, in pixels."""

    width: int
    height: int
    target: int

    def span(self, columns: int) -> int:
        """Width of so many thumbnails side by side."""
        return columns * (self.width + GAP) - GAP

    def rise(self, rows: int) -> int:
        """Height of so many thumbnails one above the other."""
        return rows * (self.height + GAP) - GAP

    def corner(self, row: int, column: int) -> tuple[int, int]:
        """Left and top of a thumbnail, from those of the first."""
        return column * (self.width + GAP), row * (self.height + GAP)


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing on a page, in pixels: ``card``, ``frame``, ``empty`` cell, ``image``, or a line of ``text``."""

    kind: str
    left: int
    top: int
    width: int
    height: int
    content: Any = None
    """The image, or the text and its style."""


def cell_for(pictures: Iterable[npt.NDArray[Any]], tile: int | None = None) -> Cell:
    """Choose the size of all thumbnails: a few images are shown larger than many."""
    shapes = [picture.shape for picture in pictures]
    target = tile or (128 if len(shapes) <= 24 else 64)
    return Cell(*cell_size(shapes, target), target)


class Page:
    """A sheet that is being drawn; ``marks`` records what is on it, for formats that keep text as text."""

    def __init__(self, width: int, height: int, title: str, cell: Cell) -> None:
        header = wrap_text(title, width - 2 * MARGIN, TITLES) if title else []
        self.cell = cell
        self.top = MARGIN + lines_height(header) + (12 if header else 0)
        self.image = Image.new("RGB", (width, self.top + height + MARGIN), PAPER)
        self._draw = ImageDraw.Draw(self.image)
        self.title, self.marks = title, list[Mark]()
        self.write(MARGIN, MARGIN - 4, header)

    def card(self, left: int, top: int, width: int, height: int) -> None:
        """Draw the card on which a block stands."""
        self.marks.append(Mark("card", left, top, width, height))
        self._draw.rounded_rectangle((left, top, left + width - 1, top + height - 1), 6, fill=CARD, outline=EDGE)

    def frame(self, x: int, y: int) -> None:
        """Draw a frame around a cell."""
        self.marks.append(Mark("frame", x, y, self.cell.width, self.cell.height))
        self._draw.rectangle((x - 3, y - 3, x + self.cell.width + 2, y + self.cell.height + 2), outline=FRAME, width=2)

    def place(self, pixels: npt.NDArray[Any] | None, x: int, y: int) -> None:
        """Put an image in the middle of its cell; None greys the cell out."""
        if pixels is None:
            self.marks.append(Mark("empty", x, y, self.cell.width, self.cell.height))
            self._draw.rectangle((x, y, x + self.cell.width - 1, y + self.cell.height - 1), fill=EMPTY)
            return
        image = thumbnail(pixels, self.cell.target)
        left, top = (self.cell.width - image.width) // 2, (self.cell.height - image.height) // 2
        self.marks.append(Mark("image", x + left, y + top, *image.size, image))
        self.image.paste(image, (x + left, y + top))

    def write(self, left: int, top: int, lines: Lines) -> int:
        """Write lines and give the height below them."""
        for text, style in lines:
            self.marks.append(Mark("text", left, top, 0, line_height(style[0]), (text, style)))
            draw_text(self._draw, left, top, text, style)
            top += line_height(style[0])
        return top


def lines_height(lines: Lines) -> int:
    """Pixels so many lines take."""
    return sum(line_height(size) for _, (size, _) in lines)
