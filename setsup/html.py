"""Small static HTML for notebooks: no script, no colors but the notebook's own, and every text escaped."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from html import escape
from typing import TypeVar

__all__ = ["block", "counted", "facts", "image_row", "lines", "never_raises", "table", "text"]

T = TypeVar("T")

_LONGEST = 80  # letters of a text
_LINE = "1px solid rgba(128, 128, 128, 0.35)"  # seen on light and on dark pages
_CELL = f"text-align: left; vertical-align: top; padding: 2px 12px 2px 0; border: none; border-bottom: {_LINE}"


def text(value: object, longest: int = _LONGEST) -> str:
    """Escape a value for HTML; what is long is cut.

    Examples
    --------
    >>> text("<b>size</b>")
    '&lt;b&gt;size&lt;/b&gt;'

    """
    found = str(value)
    cut = found if len(found) <= longest else found[: longest - 1] + "…"
    return escape(_printable(cut))


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a number of things, such as ``1 row`` and ``2,000 rows``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def block(title: object, *parts: str) -> str:
    """Put parts, which are HTML, below a title, which is text."""
    return f'<div style="margin: 4px 0"><strong>{text(title)}</strong>{"".join(parts)}</div>'


def facts(values: Iterable[object]) -> str:
    """Write short texts on one line."""
    return f'<div style="opacity: 0.75">{" · ".join(text(value) for value in values if value)}</div>'


def lines(value: str) -> str:
    """Keep the line breaks and spaces of a text."""
    kept = "\n".join(escape(_printable(line)) for line in value.splitlines())
    return f'<pre style="white-space: pre-wrap; margin: 4px 0">{kept}</pre>'


def _printable(value: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in value)


def table(heads: Sequence[object], rows: Sequence[Sequence[object]], more: int = 0, what: str = "rows") -> str:
    """Make a table of texts, and say how many rows there are more."""
    made = ["".join(f'<th style="{_CELL}">{text(head)}</th>' for head in heads)] if any(heads) else []
    made += ["".join(f'<td style="{_CELL}">{text(cell, 160)}</td>' for cell in row) for row in rows]
    content = "".join(f'<tr style="background: none">{row}</tr>' for row in made)
    rest = facts([f"… and {more:,} more {what}"]) if more > 0 else ""
    return f'<table style="border-collapse: collapse; margin: 4px 0; font-size: 90%">{content}</table>{rest}'


def image_row(sources: Iterable[str], height: int) -> str:
    """Show images, given as data URIs, side by side."""
    style = f"height: {height}px; display: inline-block; margin: 4px 4px 0 0"
    return "<div>" + "".join(f'<img style="{style}" alt="" src="{escape(one)}">' for one in sources) + "</div>"


def never_raises(make: Callable[[T], str]) -> Callable[[T], str]:
    """Fall back to the type's name where an object cannot be shown, so that a notebook prints no traceback."""

    @wraps(make)
    def made(shown: T) -> str:
        try:
            return make(shown)
        except Exception:
            return block(type(shown).__name__)

    return made
