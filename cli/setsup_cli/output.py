"""What the verbs print: lines, tables and JSON on standard output."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["say", "show_json", "show_table", "warn"]

_PIPED = 160
"""Columns of a table that goes to a file or another program."""


def say(text: str = "") -> None:
    """Print a line as it is."""
    sys.stdout.write(f"{text}\n")


def warn(text: str) -> None:
    """Print a line on standard error, beside the results."""
    sys.stderr.write(f"setsup: {text}\n")


def show_json(value: Any) -> None:
    """Print one JSON value."""
    say(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def show_table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print a table.

    Parameters
    ----------
    heads : sequence of str
        Heads of the columns.
    rows : iterable of sequences of str
        One text a column.
    right : sequence of str
        Heads of columns whose texts end at the right, such as numbers.

    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if head in right else "left", no_wrap=number == 0, overflow="fold")
    for row in rows:
        # Text: brackets in a name are no style
        table.add_row(*(Text(cell) for cell in row))
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _PIPED)
    # captured, since rich has ways of its own when the reader has gone
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        say(line.rstrip())
