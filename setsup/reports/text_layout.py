"""Text on images: Pillow's own font, a font of the system for letters it lacks, lines broken to a width."""

import itertools
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from PIL import Image, ImageChops, ImageDraw, ImageFont

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
    "typeset",
    "wrap_text",
]

Style = tuple[int, str]
"""Size in pixels and colour of a line of text."""

Lines = list[tuple[str, Style]]
"""Lines of text, each with its style."""

# the font that comes with Pillow has ASCII and a few signs more
_SIGNS = str.maketrans(
    {"×": "x", "–": "-", "—": "-", "≤": "<=", "≥": ">=", "µ": "u"} | {"‘": "'", "’": "'", "“": '"', "”": '"'}
)
_LETTERS = {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "œ": "oe", "đ": "d", "ı": "i", "ß": "ss"}
_KNOWN = frozenset("…·°±−→")
_MINUS, _ARROW = "−→"  # drawn by the bar of the plus sign, so that they look the same everywhere
_DRAWN = {_MINUS: "+", _ARROW: "+ "}  # each as wide as these letters

_NEGATIVE = re.compile(r"(?<![^\s(\[{=<>≤≥≈±,;:/×])-(?=\.?\d)|(?<=\d[eE])-(?=\d)")
_DEGREES = re.compile(r"(?<=\d)[ \u00a0](?:deg|degrees)\b|(?<=\()(?:deg|degrees)(?=\))")

# common fonts of Linux, macOS and Windows; Pillow knows in which folders each system keeps them
_FONTS = (
    *("DejaVuSans.ttf", "NotoSans-Regular.ttf", "NotoSansCJK-Regular.ttc", "DroidSansFallbackFull.ttf"),
    *("wqy-microhei.ttc", "Arial Unicode.ttf", "Hiragino Sans GB.ttc", "arial.ttf", "msyh.ttc", "malgun.ttf"),
)
_NO_LETTER = "\uffff"  # every font shows its sign for missing letters in its place


@lru_cache(maxsize=8)
def font(size: int) -> ImageFont.FreeTypeFont:
    """Font of a size in pixels."""
    loaded = ImageFont.load_default(size)
    if not isinstance(loaded, ImageFont.FreeTypeFont):  # a Pillow built without FreeType
        raise OSError("Pillow was built without FreeType, so it cannot write text; install the published wheel")
    return loaded


def line_height(size: int) -> int:
    """Pixels from one line of text to the next."""
    return round(size * 1.4)


def typeset(text: str) -> str:
    """Write numbers as they are printed: a minus sign before them instead of a hyphen, and ° for degrees."""
    return _DEGREES.sub("°", _NEGATIVE.sub(_MINUS, text))


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
        candidate = _open(name, 24)
        if candidate is not None and bytes(candidate.getmask(letter)) != bytes(candidate.getmask(_NO_LETTER)):
            return name
    return None


@lru_cache(maxsize=64)
def _open(name: str, size: int) -> ImageFont.FreeTypeFont | None:
    try:
        return ImageFont.truetype(name, size)
    except OSError:
        return None


def _runs(text: str, size: int) -> Iterator[tuple[str, ImageFont.FreeTypeFont]]:
    """Parts of a spelled text, each with its font; a sign that is drawn is a part of its own."""
    for name, letters in itertools.groupby(text, _face_name):
        face = (_open(name, size) if name else None) or font(size)
        if name in _DRAWN:
            yield from ((letter, face) for letter in letters)
        else:
            yield "".join(letters), face


def _face_name(letter: str) -> str | None:
    if letter in _DRAWN:
        return letter
    return None if _own(letter) else _system_font(letter)


@lru_cache(maxsize=8)
def _minus(size: int) -> tuple[Image.Image, int, int]:
    """The bar of the plus sign, and where it begins, to the right of and above the place on the line."""
    left, top, right, bottom = map(int, font(size).getbbox("+", anchor="ls"))
    mask = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(mask).text((-left, -top), "+", fill=255, font=font(size), anchor="ls")
    # what is as dark beside the upright stroke as within it belongs to the bar
    beside = mask.crop((mask.width // 4, 0, mask.width // 4 + 1, mask.height)).resize(mask.size)
    return ImageChops.darker(mask, beside), left, top


@lru_cache(maxsize=8)
def _arrow(size: int) -> tuple[Image.Image, int, int]:
    """The same bar, longer, with a head at its end."""
    bar, left, top = _minus(size)
    column = bar.crop((bar.width // 2, 0, bar.width // 2 + 1, bar.height))
    dark = [value / 255 for value in column.tobytes()]  # the edges of a bar are soft
    width, finer = round(font(size).getlength(_DRAWN[_ARROW])) - 2 * left, 8
    thick = round(sum(dark) * finer)
    middle = finer * sum((row + 0.5) * part for row, part in enumerate(dark)) / sum(dark)
    reach = bar.height * finer * 0.3
    mask = Image.new("L", (width * finer, bar.height * finer))
    draw, tip = ImageDraw.Draw(mask), width * finer - thick
    draw.line([(0, middle), (tip, middle)], fill=255, width=thick)
    draw.line([(tip - reach, middle - reach), (tip, middle), (tip - reach, middle + reach)], 255, thick, joint="curve")
    return mask.resize((width, bar.height), Image.Resampling.BOX), left, top


def draw_text(draw: ImageDraw.ImageDraw, left: int, top: int, text: str, style: Style) -> None:
    """Write a spelled line of text; all its fonts stand on the line of Pillow's own."""
    size, color = style
    x, line = float(left), top + font(size).getmetrics()[0]
    for part, face in _runs(text, size):
        if part in _DRAWN:
            sign, right, up = _minus(size) if part == _MINUS else _arrow(size)
            draw.bitmap((round(x) + right, line + up), sign, fill=color)
        else:
            draw.text((x, line), part, fill=color, font=face, anchor="ls")
        x += _length(part, face)


def text_width(text: str, size: int) -> int:
    """Pixels a line of text takes."""
    return int(sum(_length(part, face) for part, face in _runs(text, size)) + 0.999)


def _length(part: str, face: ImageFont.FreeTypeFont) -> float:
    return face.getlength(_DRAWN.get(part, part))


def wrap_text(text: str, width: int, styles: tuple[Style, Style], most: int = 4) -> Lines:
    """Break a text into lines that fit, its numbers as :func:`typeset` writes them."""
    lines: Lines = []
    for number, paragraph in enumerate(typeset(text).split("\n")):
        style = styles[min(number, 1)]
        lines += [(line, style) for line in _broken(paragraph, width, style[0], most)]
    return lines


def fit_text(text: str, width: int, styles: tuple[Style, Style]) -> Lines:
    """Make one line of a text, cut with an ellipsis where it does not fit."""
    return wrap_text(" ".join(text.split()), width, styles, most=1)


def _broken(text: str, width: int, size: int, most: int) -> list[str]:
    left, lines = [plain(word) for word in text.split(" ") if word], [""]
    while left:
        word = left.pop(0)
        longer = f"{lines[-1]} {word}".lstrip()
        if text_width(longer, size) <= width:
            lines[-1] = longer
        elif " " in word and text_width(word, size) > width:  # held together, but wider than a line
            left[:0] = word.split(" ")
        elif len(lines) == most or not lines[-1]:
            # the last line, or one word that is wider than a line
            lines[-1] = _cut(longer, width, size)
            if len(lines) == most:
                break
        else:
            lines.append("")
            left.insert(0, word)
    return [line.removesuffix(" ·") for line in lines if line]  # what parts two things begins or ends no line


def _cut(text: str, width: int, size: int) -> str:
    while text and text_width(f"{text.rstrip(' ,;')}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip(' ,;')}…"
