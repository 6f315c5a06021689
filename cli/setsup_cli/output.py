"""What the verbs print: lines, tables and JSON on standard output."""

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
from pathlib import Path
from typing import Any

from setsup.errors import DataError, SetsupError
from setsup.files.disk import need_writable
from setsup_cli.letters import is_encodable

__all__ = ["check_picture", "output_errors", "say", "say_licence", "say_prose", "show_json", "show_table", "write"]

_PIPED = 160
"""Columns of a table that goes to a file or another program."""

_WORD = 24
"""Letters from which on a word of a table may be broken."""


@contextmanager
def output_errors() -> Iterator[None]:
    """Say in one sentence why standard output cannot be written."""
    try:
        yield
    except OSError as error:
        # without this Python complains once more when it closes the stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise SetsupError(f"standard output cannot be written: {error.strerror or error}") from error


def write(text: str) -> None:
    """Write a text, and all that was written before, to standard output."""
    with output_errors():
        sys.stdout.write(text)
        sys.stdout.flush()


def say(text: str = "") -> None:
    """Print a line as it is."""
    write(f"{text}\n")


def say_prose(text: str, piped: int | None = None) -> None:
    """Print a paragraph: on a terminal its lines are broken between words, elsewhere after ``piped`` columns if any."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else piped
    if width is not None:
        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    say(text)


def check_picture(path: Path) -> None:
    """Refuse a file that no picture can be written to, before there is one."""
    if path.suffix.lower() != ".png":
        raise DataError(f"--out {path} must be a picture: give it the ending .png")
    need_writable(path)


def say_licence(licence: Mapping[str, str | None]) -> None:
    """Print the terms of a data set, and what must be signed for it."""
    say_prose(f"licence: {' · '.join(filter(None, map(licence.get, ('name', 'url', 'note'))))}")
    if licence["sign"]:
        say_prose(f"to be signed: {licence['sign']}")


def show_json(value: Any) -> None:
    """Print one JSON value: numbers that are not finite as null, and escapes for what cannot be encoded."""
    dumps = partial(json.dumps, _finite(value), indent=2, allow_nan=False)
    text = dumps(ensure_ascii=False)
    say(text if is_encodable(text) else dumps())


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def show_table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print a table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [heads, *rows]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for number, head in enumerate(heads):
        longest = max(len(word) for row in listed for word in row[number].split(" "))
        table.add_column(
            head,
            justify="right" if head in right else "left",
            no_wrap=number == 0,
            overflow="fold",
            min_width=min(longest, _WORD),
        )
    for row in listed[1:]:
        # Text: brackets in a name are no style
        table.add_row(*(Text(cell) for cell in row))
    watched = sys.stdout.isatty()
    # into a text first, since rich has ways of its own when the reader has gone
    printed = io.StringIO()
    Console(file=printed, force_terminal=watched, highlight=False, width=None if watched else _PIPED).print(table)
    for line in printed.getvalue().splitlines():
        say(line.rstrip())
