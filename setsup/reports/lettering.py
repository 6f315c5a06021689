"""Text on pictures: Pillow's own font, its missing letters replaced, lines broken to a width."""

import unicodedata
from functools import lru_cache

from PIL import ImageFont

__all__ = ["Lines", "Style", "fitted", "font", "line_height", "plain", "wrapped"]

Style = tuple[int, str]
"""Size in pixels and colour of a line of text."""

Lines = list[tuple[str, Style]]
"""Lines of text, each with its style."""

# the font that comes with Pillow has ASCII and a few signs more
_REPLACED = str.maketrans(
    {"×": "x", "−": "-", "–": "-", "—": "-", "≤": "<=", "≥": ">=", "→": "->", "µ": "u", "ß": "ss"}
    | {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "œ": "oe", "đ": "d", "ı": "i"}
    | {"‘": "'", "’": "'", "“": '"', "”": '"'}
)
_KNOWN = frozenset("…·°±")


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
    """Spell a text with the letters the font has; what cannot be spelled becomes a question mark.

    Examples
    --------
    >>> plain("café, 2 × 32")
    'cafe, 2 x 32'

    """
    spelled = unicodedata.normalize("NFC", text).translate(_REPLACED)
    return "".join(letter if letter in _KNOWN else _spelled(letter) for letter in spelled)


def _spelled(letter: str) -> str:
    if " " <= letter <= "~":
        return letter
    if letter.isspace() or not letter.isprintable():
        return " "
    base = "".join(part for part in unicodedata.normalize("NFKD", letter) if " " <= part <= "~")
    return base or "?"


def text_width(text: str, size: int) -> int:
    """Pixels a line of text takes."""
    return int(font(size).getlength(text) + 0.999)


def wrapped(text: str, width: int, styles: tuple[Style, Style], most: int = 4) -> Lines:
    """Break a text into lines that fit.

    Parameters
    ----------
    text : str
        Paragraphs parted by line ends; the first has the first style, the others the second. Words that a no-break
        space joins stay together.
    width : int
        Pixels.
    styles : tuple of Style
        Of the first paragraph, and of the others.
    most : int
        Lines a paragraph; a longer one ends in an ellipsis.

    Returns
    -------
    list of (line, style)

    """
    lines: Lines = []
    for number, paragraph in enumerate(text.split("\n")):
        style = styles[min(number, 1)]
        lines += [(line, style) for line in _broken(paragraph, width, style[0], most)]
    return lines


def fitted(text: str, width: int, styles: tuple[Style, Style]) -> Lines:
    """Make one line of a text, cut with an ellipsis where it does not fit."""
    return wrapped(" ".join(text.split()), width, styles, most=1)


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
