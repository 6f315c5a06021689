"""Output of the subcommands: lines, tables and JSON on standard output."""

import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import isfinite
from typing import IO, TYPE_CHECKING, Any

from setsup.errors import SetsupError
from setsup_cli.encoding import is_encodable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "console",
    "finite",
    "output_errors",
    "say",
    "say_licence",
    "say_prose",
    "show_json",
    "show_result",
    "show_table",
    "write",
]

_PIPED = 160
"""Width of a table that is not printed to a terminal."""

_WORD = 24
"""Length above which a word of a table may be broken."""


@contextmanager
def output_errors() -> Iterator[None]:
    """Raise one sentence if standard output cannot be written."""
    try:
        yield
    except OSError as error:
        # otherwise Python reports the error again when it closes the stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise SetsupError(f"cannot write to standard output: {error.strerror or error}") from error


def write(text: str) -> None:
    """Write a text to standard output, and flush it."""
    with output_errors():
        sys.stdout.write(text)
        sys.stdout.flush()


def say(text: str = "") -> None:
    """Print a line."""
    write(f"{text}\n")


def say_prose(text: str, piped: int | None = None) -> None:
    """Print a paragraph, wrapped to the terminal, or to ``piped`` columns if it is piped."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else piped
    if width is not None:
        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    say(text)


def say_licence(licence: Mapping[str, str | None]) -> None:
    """Print the licence of a dataset, and what must be signed."""
    say_prose(f"licence: {' · '.join(filter(None, map(licence.get, ('name', 'url', 'note'))))}")
    if licence["sign"]:
        say_prose(f"to be signed: {licence['sign']}")


def show_json(value: Any) -> None:
    """Print one JSON value: numbers that are not finite as null, characters that cannot be encoded as escapes."""
    dumps = partial(json.dumps, finite(value), indent=2, allow_nan=False)
    text = dumps(ensure_ascii=False)
    say(text if is_encodable(text) else dumps())


def show_result(as_json: bool, about: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Print a result: one JSON value, or lines."""
    if as_json:
        show_json(about)
        return
    for line in lines:
        say(line)


def finite(value: Any) -> Any:
    """A JSON value whose numbers that are not finite are null."""
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def console(file: IO[str], width: int | None = None) -> "Console":
    """A console of rich that writes to a file what standard output would show.

    Colors, bold letters and the like are for terminals, and wherever FORCE_COLOR is set and not empty; NO_COLOR and
    TERM=dumb turn them off.
    """
    from rich.console import Console

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    styled = not plain and (sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR")))
    return Console(
        file=file, force_terminal=styled, color_system="auto" if styled else None, highlight=False, width=width
    )


def _column_widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths that fit: the widest columns give way, none below its longest word, which rich does not see to."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [min(max(len(word) for cell in column for word in cell.split(" ")), _WORD) for column in columns]
    least[0] = widths[0]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        free = [number for number, wide in enumerate(widths) if wide > least[number]]
        if not free:
            break
        widths[max(free, key=widths.__getitem__)] -= 1
    return widths


def show_table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print a table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    listed = [heads, *rows]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    watched = sys.stdout.isatty()
    # rendered first: rich exits by itself where standard output is closed
    printed = io.StringIO()
    shown = console(printed, None if watched else _PIPED)
    widths = _column_widths(listed, shown.width)
    for number, head in enumerate(heads):
        longest = max(len(word) for row in listed for word in row[number].split(" "))
        table.add_column(
            head,
            justify="right" if head in right else "left",
            no_wrap=number == 0,
            overflow="fold",
            min_width=min(longest, _WORD),
            max_width=widths[number],
        )
    for row in listed[1:]:
        # Text: brackets are not markup
        table.add_row(*(Text(cell) for cell in row))
    shown.print(table)
    for line in printed.getvalue().splitlines():
        say(line.rstrip())
