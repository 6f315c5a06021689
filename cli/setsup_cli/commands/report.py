"""``setsup report``: compares the results of runs with a paper's figure or table, and checks its claims."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

from setsup.errors import need
from setsup.files.expand_user import expanded
from setsup_cli.advice import advise, advise_command
from setsup_cli.encoders import invariance, knowledge, orbits
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.parsing.arguments import Common, option
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.values import check_image
from setsup_cli.places import Force, moved, write_image

if TYPE_CHECKING:
    from setsup.experiments.report.filled import FilledReport, Line

__all__ = ["HELP", "Options", "resolve_options", "run"]

HELP = """\
Examples: `setsup report` lists the reports; `setsup report abc/fig4a` reads the runs in ./runs, prints means and
standard deviations over seeds, and the commands of missing runs. Runs on a substitute dataset, in another precision or
with other settings are listed in separate lines.

`setsup report factors DATASET --encoder A --encoder B RUNS ...` shows what frozen encoders, and runs, know about each
factor of a dataset; `setsup report orbits DATASET RUNS ... --orbit FACTOR ... --encoder A` whether the members of an
orbit are together in their embeddings; `setsup report invariance DATASET RUNS ... --domain FACTOR ...` whether the
domain can be read from them. `setsup report factors --help` and the like list their options."""

_ENCODERS = {module.NAME: module for module in (knowledge, orbits, invariance)}
"""Reports on encoders, which have options of their own."""
_DEFAULT = Path("runs")
_WIDE = 8
"""Number of columns above which the table is transposed."""
_PIPED, _GAP, _HEAD = 160, 3, 24
"""Characters of a line without a terminal, between two columns, and of a heading before it wraps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    report: Annotated[
        str | None, option("[REPORT]", "A report that `setsup report` lists, or a preset of `setsup train`.")
    ] = field(default=None, kw_only=False)
    runs: Annotated[
        tuple[Path, ...] | None, option("[RUNS ...]", "Folders of runs, searched recursively.", "./runs")
    ] = field(default=None, kw_only=False)
    out: Annotated[Path | None, option("FILE.png", "Plot the report into this file.", alias="-o")] = None
    force: Force = False


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Options of the reports on encoders, which have their own."""
    word = next((word for word in words if not word.startswith("-")), "")
    return _ENCODERS[word].SUBCOMMAND if word in _ENCODERS else subcommand


def run(options: "Options | knowledge.Options | orbits.Options | invariance.Options") -> int:
    """Read runs, and print and plot their results; or list the reports."""
    if isinstance(options, knowledge.Options):
        return knowledge.run(options)
    if isinstance(options, orbits.Options):
        return orbits.run(options)
    if isinstance(options, invariance.Options):
        return invariance.run(options)
    from setsup.experiments.report.registry import find_report, report_on, reports

    if options.report is None:
        listed = reports()
        if options.json:
            show_json(
                [{"name": name, "shows": report.shows, "source": report.source} for name, report in listed.items()]
            )
        else:
            rows = [[name, report.shows] for name, report in listed.items()]
            show_table(["report", "what it shows"], [*rows, *([name, one.SHOWS] for name, one in _ENCODERS.items())])
            advise_command(options, ["setsup", "report", next(iter(listed))])
        return 0
    out = None if options.out is None else expanded(options.out)
    if out is not None:
        need("--out needs", "matplotlib")
        check_image(out)
    report = find_report(options.report)
    folders = options.runs or ((_DEFAULT,) if _DEFAULT.is_dir() else ())
    filled = report_on(report, folders)
    if out is not None:
        from setsup.experiments.report.picture import draw_report

        asked, out = out, write_image(draw_report(filled), out, force=options.force)
    if options.json:
        show_json({**filled.to_dict(), "picture": None if out is None else str(out)})
        return 0
    looked = "looked below ./runs" if folders else "looked for ./runs, which is not here"
    _print(filled, "" if options.runs else f"{looked}; name other folders: setsup report {options.report} FOLDER")
    if out is not None:
        say()
        for line in (*moved(asked, out), str(out)):
            say(line)
    needs = [*filled.commands.values(), *(command for line in filled.lines for command in line.needs)]
    if needs:
        advise(options, needs[0])
    elif out is None:
        named = [*(options.runs or ()), "--out", f"{options.report.replace('/', '-')}.png"]
        advise_command(options, ["setsup", "report", options.report, *named])
    return 0


def _print(filled: "FilledReport", looked: str) -> None:
    report = filled.report
    say(f"{report.name}: {report.shows}")
    if report.source:
        say_prose(f"{report.source[0].upper()}{report.source[1:]}.")
    say_prose(f"{f'{report.unit}; m' if report.unit else 'M'}eans ± standard deviations over seeds.")
    say()
    _print_values(filled)
    _print_missing(filled, looked)
    if filled.verdicts:
        say()
        say("what the paper says:")
    for verdict in filled.verdicts:
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
    columns, lines = filled.columns, _lines(filled)
    heads = ["", "run", *(column.name for column in columns), "seeds"]
    if any(column.ceiling is not None for column in columns):
        ceilings = ["" if column.ceiling is None else f"{column.ceiling:.2f}" for column in columns]
        lines.append(["ceiling", "", *ceilings, ""])
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


def _lines(filled: "FilledReport") -> list[list[str]]:
    """Label of the row where it is new, what was run, values, seeds."""
    from setsup.experiments.report.report import reference_words

    found = []
    for row in filled.report.rows:
        label = row.label
        for who, said in filled.report.references.items():
            values = [said.get((row.label, column.key), "") for column in filled.columns]
            if any(value != "" for value in values):
                words = [reference_words(value, filled.report.digits) for value in values]
                found.append([label, who, *words, ""])
                label = ""
        for line in filled.lines:
            if line.row is row:
                found.append([label, *_cells(line, filled)])
                label = ""
    return found


def _cells(line: "Line", filled: "FilledReport") -> list[str]:
    digits = filled.report.digits
    values = [line.values[column.key].words(digits) if column.key in line.values else "" for column in filled.columns]
    what = ", ".join(line.differs) or ("ours" if line.run else "not run")
    if line.run and not line.seeds:
        what += ", not measured"
    return [what, *values, f"{len(line.seeds)} of {filled.seeds[line.row.preset]}"]


def _print_missing(filled: "FilledReport", looked: str) -> None:
    """Commands for what is missing, and where runs were looked for, if no folder was named."""
    if filled.commands:
        say()
        say("not run as in the paper:")
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
