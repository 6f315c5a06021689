"""Results of runs as a page asks for them: cells beside those of a paper, and verdicts on its claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setsup.experiments.report.cells import heads_of, row_kinds, table_rows
from setsup.experiments.report.filled import FilledReport
from setsup.experiments.report.registry import reports_of
from setsup.experiments.runs.run import Run
from setsup.pages.answers import Answer, Query, json_answer

__all__ = ["ResultsSource", "as_tables"]


@dataclass
class ResultsSource:
    """Reports of some runs that answer; with ``bare``, they name no place of this machine."""

    runs: Sequence[Run]
    bare: bool = False

    def about(self) -> Mapping[str, Any]:
        """What it is."""
        return {"kind": "results"}

    def answer(self, query: Query) -> Answer:
        """Answer a question about the results; evaluations are read each time, since they may be measured meanwhile."""
        query.choice("q", ("tables",))
        tables = [as_tables(one) for one in reports_of(self.runs)]
        return json_answer({"reports": _bare(tables, self.runs) if self.bare else tables})


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
        "heads": heads_of(filled),
        "rows": rows,
        "verdicts": [{"holds": one.holds, "lines": one.lines} for one in filled.verdicts],
        "notes": [*(line for one in filled.compared for line in one.lines), *filled.notes],
        "commands": [*needs, *dict.fromkeys(filled.commands.values())],
    }


def _bare(value: Any, runs: Sequence[Run]) -> Any:
    """The same with the names of folders in place of their paths."""
    if isinstance(value, dict):
        return {key: _bare(one, runs) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_bare(one, runs) for one in value]
    if isinstance(value, str):
        for run in runs:
            for folder in (run.folder.resolve(), run.folder.absolute(), run.folder):
                value = value.replace(str(folder), run.folder.name)
        return value.replace(str(Path.home()), "~")
    return value
