"""Results of runs as a page asks for them: cells beside those of a paper, and verdicts on its claims."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setsup.experiments.report.cells import row_kinds, table_heads, table_rows
from setsup.experiments.report.filled import FilledReport
from setsup.experiments.report.registry import fill_reports
from setsup.experiments.runs.run import Run
from setsup.pages.answers import Answer, Query, json_answer
from setsup.pages.places import Places

__all__ = ["ResultsSource", "as_tables", "passed_on"]


@dataclass
class ResultsSource:
    """Reports of some runs that answer; with ``places``, they name none of this machine."""

    runs: Sequence[Run]
    places: Places | None = None

    def about(self) -> Mapping[str, Any]:
        """What it is."""
        return {"kind": "results"}

    def answer(self, query: Query) -> Answer:
        """Answer a question about the results; evaluations are read each time, since they may be measured meanwhile."""
        query.choice("q", ("tables",))
        tables = [as_tables(filled) for filled in fill_reports(self.runs)]
        if self.places is not None:
            folders = [run.folder for run in self.runs]
            tables = [passed_on(table, folders, self.places) for table in tables]
        return json_answer({"reports": tables})


def as_tables(filled: FilledReport) -> dict[str, Any]:
    """A report as a page shows it: the words that ``setsup report`` prints."""
    report = filled.report
    about = ", ".join(filter(None, (report.source, f"in {report.unit}" if report.unit else "")))
    rows = [{"cells": cells, "kind": kind} for cells, kind in zip(table_rows(filled), row_kinds(filled), strict=True)]
    needs = dict.fromkeys(command for line in filled.lines for command in line.needs)
    return {
        "name": report.name,
        "shows": report.shows,
        "about": about[:1].upper() + about[1:],
        "heads": table_heads(filled),
        "rows": rows,
        "verdicts": [{"holds": verdict.holds, "lines": verdict.lines} for verdict in filled.verdicts],
        "notes": [*(line for compared in filled.compared for line in compared.lines), *filled.notes],
        "commands": [*needs, *dict.fromkeys(filled.commands.values())],
    }


def passed_on(table: Mapping[str, Any], folders: Iterable[Path], places: Places) -> dict[str, Any]:
    """The same without places of this machine; `folders` are those of runs, which its words may name."""
    known = list(folders)
    commands = [shlex.join(map(places.word, shlex.split(command))) for command in table["commands"]]
    verdicts = [
        {**verdict, "lines": [places.text(line, known) for line in verdict["lines"]]} for verdict in table["verdicts"]
    ]
    notes = [places.sentence(places.text(note, known)) for note in table["notes"]]
    return {**table, "verdicts": verdicts, "notes": notes, "commands": commands}
