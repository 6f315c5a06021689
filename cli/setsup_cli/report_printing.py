"""Prints reports with the results of runs: tables, verdicts, and what was not run."""

import sys
from collections.abc import Iterable
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from setsup_cli.output import say, say_prose, show_table

if TYPE_CHECKING:
    from setsup.experiments.report.filled import FilledReport

__all__ = ["print_missing", "print_report"]

_WIDE = 8
"""Number of columns above which the table is transposed."""
_PIPED, _GAP, _HEAD = 160, 3, 24
"""Characters of a line without a terminal, between two columns, and of a heading before it wraps."""


def print_report(filled: "FilledReport", looked: str | None) -> None:
    """Print a report; `looked` is where runs were looked for, None to leave out what was not run."""
    report = filled.report
    say(f"{report.name}: {report.shows}")
    if report.source:
        say_prose(f"{report.source[0].upper()}{report.source[1:]}.")
    say_prose(f"{f'{report.unit}; m' if report.unit else 'M'}eans ± standard deviations over seeds.")
    say()
    _print_values(filled)
    if looked is not None:
        print_missing(filled, looked)
    verdicts = [verdict for verdict in filled.verdicts if looked is not None or verdict.holds is not None]
    if verdicts:
        say()
        say("claims:")
    for verdict in verdicts:
        for indent, line in zip(("  ", "    ", "    "), verdict.lines, strict=True):
            say_prose(indent + line)
    for compared in filled.compared:
        if compared.lines:
            say()
        for at, line in enumerate(compared.lines):
            say_prose(line if at == 0 else f"  {line}")
    if filled.notes:
        say()
    for note in filled.notes:
        say_prose(note)


def _print_values(filled: "FilledReport") -> None:
    """A line for each way a row was run, or a column where the values of a line are too many."""
    from setsup.experiments.report.cells import table_heads, table_rows

    columns, heads, lines = filled.columns, table_heads(filled), table_rows(filled)
    width = get_terminal_size().columns if sys.stdout.isatty() else _PIPED
    labels, what, *values = (list(cells) for cells in zip(heads, *lines, strict=True))
    words = [word for cell in what for word in cell.split(" ")]  # only what was run may be broken into lines
    if len(columns) > _WIDE or sum(_width(cells) + _GAP for cells in (labels, words, *values)) > width + _GAP:
        _print_sideways(heads[2:], lines, width)
    else:
        show_table(heads, lines, right=heads[2:])


def _print_sideways(names: list[str], lines: list[list[str]], width: int) -> None:
    """A column for each line that has values, as many a table as fit; what has none stands below."""
    filled: list[list[str]] = []
    empty: list[list[str]] = []
    label = ""
    for cells in lines:
        label = cells[0] or label
        (filled if any(cells[2:-1]) else empty).append([": ".join(filter(None, (label, cells[1]))), *cells[2:]])
    # what no line has a value of would be a line of blanks
    kept = [at for at in range(len(names)) if any(cells[1 + at] for cells in filled)]
    names, filled = [names[at] for at in kept], [[cells[0], *(cells[1 + at] for at in kept)] for cells in filled]
    tables: list[list[list[str]]] = []
    left = 0
    for cells in filled:
        taken = min(_width(cells), _HEAD) + _GAP
        left -= taken
        if left < 0:
            tables.append([])
            left = width - _width(names) - taken
        tables[-1].append(cells)
    for number, some in enumerate(tables):
        if number:
            say()
        heads = ["", *(cells[0] for cells in some)]
        show_table(heads, [[name, *(cells[1 + at] for cells in some)] for at, name in enumerate(names)], heads[1:])
    if filled and empty:
        say()
    for cells in empty:
        say_prose(f"{cells[0]}, {cells[-1]} seeds")


def _width(cells: Iterable[str]) -> int:
    return max(map(len, cells))


def print_missing(filled: "FilledReport", looked: str) -> None:
    """Commands for what is missing, and where runs were looked for, if no folder was named."""
    if filled.commands:
        say()
        say(f"{filled.not_run}:")
        for command in dict.fromkeys(filled.commands.values()):
            say(f"  {command}")
        if looked:
            say(looked)
    needs = dict.fromkeys(command for line in filled.lines for command in line.needs)
    if needs:
        say()
        say("not measured:")
        for command in needs:
            say(f"  {command}")
