"""Smaller pages that look the same: without the whitespace of templates and the markup that no style or reader uses."""

import re
from typing import Any

__all__ = ["on_post_page", "shrunk"]

_KEPT = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
_NEW_LINES = re.compile(r"\s*\n\s*")
# mkdocstrings puts the path of a type into a tooltip, also of `optional`, which is a word and not a type
_TOOLTIP = re.compile(r'<span title="[\w.]+">([^<]*)</span>')
# names in code have the color of code
_NAME = re.compile(r'<span class="[nw]">([^<]*)</span>')
_SAME = re.compile(r'<span class="(\w+)">([^<]*)</span><span class="\1">')


def on_post_page(output: str, **_: Any) -> str:
    """Shrink a page before it is written."""
    return shrunk(output)


def shrunk(page: str) -> str:
    """HTML that a browser shows like the page.

    >>> shrunk('<p>a\\n\\n   b</p>\\n <pre>a\\n\\n  <span class="n">b</span><span class="p">(</span></pre>')
    '<p>a\\nb</p>\\n<pre>a\\n\\n  b<span class="p">(</span></pre>'
    """
    parts = _KEPT.split(page)
    outside, kept = parts[::3], parts[1::3]
    outside = [_TOOLTIP.sub(r"\1", _NEW_LINES.sub("\n", part)) for part in outside]
    kept = [_code(part) if part.startswith("<pre") else part for part in kept]
    return "".join(part for pair in zip(outside, [*kept, ""], strict=True) for part in pair)


def _code(listing: str) -> str:
    listing, merged = _NAME.sub(r"\1", listing), 1
    while merged:
        listing, merged = _SAME.subn(r'<span class="\1">\2', listing)
    return listing
