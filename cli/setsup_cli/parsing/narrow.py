"""Help for narrow terminals: each option on a line of its own, its description indented below."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cyclopts.help import DefaultFormatter

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

__all__ = ["NARROW", "NarrowFormatter"]

NARROW = 70
"""Columns below which names beside descriptions leave too little room for both."""

_INDENT = 4


class NarrowFormatter(DefaultFormatter):
    """Panels without frames and columns."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print a panel."""
        if not panel.entries:
            return
        title = getattr(panel.title, "plain", panel.title)
        lines = [f"{title}:"]
        for entry in panel.entries:
            lines += _wrapped(_names(entry), console.width, 2)
            lines += _wrapped(_words(entry), console.width, _INDENT)
        for line in [*lines, ""]:
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def _names(entry: "HelpEntry") -> str:
    return " ".join(filter(None, (*entry.names, *entry.shorts, entry.metavar)))


def _words(entry: "HelpEntry") -> str:
    description = entry.description
    text = getattr(description, "primary_renderable", description)
    said = [str(getattr(text, "plain", text) or "").strip()]
    said += [f"[default: {entry.default}]"] if entry.default is not None else []
    said += ["[required]"] if entry.required else []
    return " ".join(filter(None, said))


def _wrapped(text: str, width: int, indent: int) -> Iterator[str]:
    """Lines of whole words; only a word that is longer than a line is longer than it."""
    yield from textwrap.wrap(
        text,
        max(width - 1, indent + 1),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2 * (indent < _INDENT)),
        break_long_words=False,
        break_on_hyphens=False,
    )
