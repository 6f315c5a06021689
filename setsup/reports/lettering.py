"""Text on images: Pillow's own font, a font of the system for letters it lacks, lines broken to a width."""

import itertools
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from PIL import ImageDraw, ImageFont

__all__ = [
    "Lines",
    "Style",
    "draw_text",
    "fit_text",
    "font",
    "legible",
    "line_height",
    "plain",
    "text_width",
    "wrap_text",
]

Style = tuple[int, str]
"""Size in pixels and colour of a line of text."""

Lines = list[tuple[str, Style]]
"""Lines of text, each with its style."""

# the font that comes with Pillow has ASCII and a few signs more
_SIGNS = str.maketrans(
    {"×": "x", "−": "-", "–": "-", "—": "-", "≤": "<=", "≥": ">=", "→": "->", "µ": "u"}
    | {"‘": "'", "’": "'", "“": '"', "”": '"'}
)
_LETTERS = {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "œ": "oe", "đ": "d", "ı": "i", "ß": "ss"}
_KNOWN = frozenset("…·°±")

# common fonts of Linux, macOS and Windows; Pillow knows in which folders each system keeps them
_FONTS = (
    *("DejaVuSans.ttf", "NotoSans-Regular.ttf", "NotoSansCJK-Regular.ttc", "DroidSansFallbackFull.ttf"),
    *("wqy-microhei.ttc", "Arial Unicode.ttf", "Hiragino Sans GB.ttc", "arial.ttf", "msyh.ttc", "malgun.ttf"),
)
_NO_LETTER = "\uffff"  # every font shows its sign for missing letters in its place


@lru_cache(maxsize=8)
def font(size: int) -> ImageFont.FreeTypeFont:
    """Font of a size in pixels."""
    found = ImageFont.load_default(size)
    if not isinstance(found, ImageFont.FreeTypeFont):  # a Pillow built without FreeType
        raise OSError("Pillow was built without FreeType and cannot write text; install the published wheel")
    return found


def line_height(size: int) -> int:
    """Pixels from one line of text to the next."""
    return round(size * 1.4)


def plain(text: str) -> str:
    """Spell a text with the letters that fonts here have; what cannot be spelled becomes a question mark."""
    return "".join(_spell(letter) for letter in unicodedata.normalize("NFC", text).translate(_SIGNS))


def legible(text: str) -> bool:
    """Whether a text is written with all its letters, so that no other text looks the same."""
    wanted = unicodedata.normalize("NFC", text).translate(_SIGNS)
    return all(letter.isspace() or _spell(letter) == letter for letter in wanted)


def _own(letter: str) -> bool:
    return " " <= letter <= "~" or letter in _KNOWN


def _spell(letter: str) -> str:
    if _own(letter):
        return letter
    if letter.isspace() or not letter.isprintable():
        return " "
    if _system_font(letter):
        return letter
    base = "".join(part for part in unicodedata.normalize("NFKD", letter) if " " <= part <= "~")
    return _LETTERS.get(letter, base) or "?"


@lru_cache(maxsize=4096)
def _system_font(letter: str) -> str | None:
    """Find the first of the common fonts that is installed and has a letter."""
    for name in _FONTS:
        found = _open(name, 24)
        if found is not None and bytes(found.getmask(letter)) != bytes(found.getmask(_NO_LETTER)):
            return name
    return None


@lru_cache(maxsize=64)
def _open(name: str, size: int) -> ImageFont.FreeTypeFont | None:
    try:
        return ImageFont.truetype(name, size)
    except OSError:
        return None


def _runs(text: str, size: int) -> Iterator[tuple[str, ImageFont.FreeTypeFont]]:
    """Parts of a spelled text, each with its font."""
    for name, letters in itertools.groupby(text, lambda letter: None if _own(letter) else _system_font(letter)):
        yield "".join(letters), (_open(name, size) if name else None) or font(size)


def draw_text(draw: ImageDraw.ImageDraw, left: int, top: int, text: str, style: Style) -> None:
    """Write a spelled line of text; all its fonts stand on the line of Pillow's own."""
    size, colour = style
    x, line = float(left), top + font(size).getmetrics()[0]
    for part, face in _runs(text, size):
        draw.text((x, line), part, fill=colour, font=face, anchor="ls")
        x += face.getlength(part)


def text_width(text: str, size: int) -> int:
    """Pixels a line of text takes."""
    return int(sum(face.getlength(part) for part, face in _runs(text, size)) + 0.999)


def wrap_text(text: str, width: int, styles: tuple[Style, Style], most: int = 4) -> Lines:
    """Break a text into lines that fit."""
    lines: Lines = []
    for number, paragraph in enumerate(text.split("\n")):
        style = styles[min(number, 1)]
        lines += [(line, style) for line in _broken(paragraph, width, style[0], most)]
    return lines


def fit_text(text: str, width: int, styles: tuple[Style, Style]) -> Lines:
    """Make one line of a text, cut with an ellipsis where it does not fit."""
    return wrap_text(" ".join(text.split()), width, styles, most=1)


def _broken(text: str, width: int, size: int, most: int) -> list[str]:
    words, lines = [plain(word) for word in text.split(" ") if word], [""]
    while words:
        word = words.pop(0)
        longer = f"{lines[-1]} {word}".lstrip()
        if text_width(longer, size) <= width:
            lines[-1] = longer
        elif len(lines) == most or not lines[-1]:
            # the last line, or one word that is wider than a line
            lines[-1] = _cut(longer, width, size)
            if len(lines) == most:
                break
        else:
            lines.append("")
            words.insert(0, word)
    return [line for line in lines if line]


def _cut(text: str, width: int, size: int) -> str:
    while text and text_width(f"{text.rstrip(' ,;')}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip(' ,;')}…"
