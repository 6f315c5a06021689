"""Sheets that show themselves in notebooks, and their files: PNG, PDF and SVG."""

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from setsup.checks import check_path
from setsup.errors import DataError, abbreviate, did_you_mean
from setsup.files.atomic import written
from setsup.files.disk import need_writable
from setsup.files.expand_user import expanded
from setsup.files.outputs import mark_png
from setsup.reports.page import CARD, EDGE, EMPTY, FRAME, PAPER, Mark, Page
from setsup.reports.text_layout import font, text_width

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["FORMATS", "Sheet"]

_DOTS = 150  # an inch of a PDF page: a sheet of 1,400 pixels is 9.3 inches wide
_FAMILY = "Aileron, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_LOOKS = {
    "card": (0.5, f'rx="6" fill="{CARD}" stroke="{EDGE}"'),
    "frame": (1.0, f'fill="none" stroke="{FRAME}" stroke-width="2"'),
    "empty": (0.0, f'fill="{EMPTY}"'),
    "dash": (0.0, f'fill="{FRAME}"'),
}
"""How far the line of a rectangle is within its box, and how it looks."""
_UNPRINTED = dict.fromkeys([*range(32), 0xFFFE, 0xFFFF], " ")  # XML has no place for them


class Sheet:
    r"""A finished sheet: it displays itself in notebooks and is saved as PNG, PDF or SVG.

    Attributes
    ----------
    image : PIL.Image.Image
        The sheet, RGB.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> sheet = setsup.show(shapes, [0, 1, 2])
    >>> sheet.image.mode, sheet.encode("png")[:4]
    ('RGB', b'\x89PNG')

    """

    def __init__(self, page: Page) -> None:
        self.image: Image = page.image
        self._title, self._marks, self._scale = page.title, tuple(page.marks), page.scale

    def save(self, path: Path | str) -> None:
        """Write the sheet; equal sheets have equal bytes.

        Parameters
        ----------
        path : Path or str
            A file ending in ``.png``, ``.pdf`` or ``.svg``; an older one is replaced. The text of an SVG is text; a PDF
            is one image at 150 dots per inch.

        Raises
        ------
        DataError
            When the suffix is another one, or the disk refuses.

        """
        file = expanded(check_path(path, "where a sheet is saved", DataError))
        suffix = file.suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            known = ", ".join(f".{name}" for name in FORMATS)
            raise DataError(
                f"a sheet must be saved as {known}, not as {abbreviate(file.name)}; change the suffix of the file"
            )
        content = self.encode(suffix)
        need_writable(file)
        with written(file) as part:
            part.write_bytes(content)

    def encode(self, format: str) -> bytes:
        """Content of a file.

        Parameters
        ----------
        format : str
            ``"png"``, ``"pdf"`` or ``"svg"``.

        """
        if not isinstance(format, str) or format not in FORMATS:
            raise DataError(f"unknown format of a sheet: {abbreviate(format)}{did_you_mean(format, FORMATS)}")
        return FORMATS[format](self)

    def _repr_png_(self) -> bytes:
        """Content for notebooks."""
        return self.encode("png")

    def __repr__(self) -> str:
        """Show the size."""
        return f"Sheet({self.image.width:,} × {self.image.height:,} pixels)"


def _png(sheet: Sheet) -> bytes:
    return mark_png(_encoded(sheet.image, "PNG", compress_level=7))  # 5 % larger than level 9, in a tenth of its time


def _pdf(sheet: Sheet) -> bytes:
    # without dates, and without the name of a file, so that equal sheets are equal files
    named = {"title": sheet._title.partition("\n")[0] or "contact sheet", "creationDate": None, "modDate": None}
    return _encoded(sheet.image, "PDF", resolution=_DOTS, quality=95, subsampling=0, **named)


def _svg(sheet: Sheet) -> bytes:
    width, height = (side // sheet._scale for side in sheet.image.size)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family={quoteattr(_FAMILY)}>'
    )
    title = _xml(sheet._title.partition("\n")[0] or "contact sheet")
    lines = [head, f"<title>{title}</title>", f'<rect width="{width}" height="{height}" fill="{PAPER}"/>']
    return "\n".join([*lines, *map(_svg_mark, sheet._marks), "</svg>", ""]).encode()


def _svg_mark(mark: Mark) -> str:
    left, top, width, height = mark.box.left, mark.box.top, mark.box.width, mark.box.height
    if mark.kind == "text":
        text, (size, color) = mark.content
        # the width that the layout reckoned with, whatever font the viewer has
        return (
            f'<text x="{left}" y="{top + font(size).getmetrics()[0]}" font-size="{size}" fill="{color}" '
            f'textLength="{text_width(text, size)}" lengthAdjust="spacingAndGlyphs">{_xml(text)}</text>'
        )
    if mark.kind == "image":
        data = base64.b64encode(_encoded(mark.content, "PNG", compress_level=7)).decode()
        return f'<image x="{left}" y="{top}" width="{width}" height="{height}" href="data:image/png;base64,{data}"/>'
    inset, look = _LOOKS[mark.kind]
    return (
        f'<rect x="{left + inset:g}" y="{top + inset:g}" width="{width - 2 * inset:g}" height="{height - 2 * inset:g}" '
        f"{look}/>"
    )


def _xml(text: str) -> str:
    return escape(text.translate(_UNPRINTED))


def _encoded(image: "Image", kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


FORMATS: dict[str, Callable[[Sheet], bytes]] = {"png": _png, "pdf": _pdf, "svg": _svg}
"""Formats of files, by their suffixes."""
