"""A report with the results of runs: lines of a table, and a verdict on each claim of the paper."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from setsup.experiments.report import Claim, Column, Report, Row, Spread
from setsup.experiments.report.resplits import Compared
from setsup.experiments.runs.json_files import finite

__all__ = ["Curve", "FilledReport", "Line", "Verdict"]

Curve = tuple[list[float], list[float], list[float] | None]
"""x, mean, and standard deviation over seeds if there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Runs of one row that differ in their seeds only.

    Attributes
    ----------
    row : Row
        Which.
    differs : tuple of str
        Differences from the preset in words; none for the published data in full precision.
    comparable : bool
        Whether only the substitute dataset or the precision differ, so that claims can be tested.
    substitute : str
        Dataset that replaced the published one; empty if none did.
    precision : str
        Of the networks.
    seeds : tuple of int
        Of the runs that were evaluated.
    folders : tuple of str
        Theirs.
    values : mapping of str to Spread
        By the keys of columns.
    curves : mapping of str to (x, mean, sd)
        By name, each a list of numbers, sd None for one seed; x in units of the row's scale.
    pictures : tuple of (seed, Path)
        Images that the evaluations drew.
    needs : tuple of str
        Commands that produce missing results.

    """

    row: Row
    differs: tuple[str, ...] = ()
    comparable: bool = True
    substitute: str = ""
    precision: str = "float32"
    seeds: tuple[int, ...] = ()
    folders: tuple[str, ...] = ()
    values: Mapping[str, Spread] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    pictures: tuple[tuple[int, Path], ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def run(self) -> bool:
        """Whether there is any run."""
        return bool(self.seeds or self.needs or self.differs)

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON, without its row."""
        return {
            "differs": list(self.differs),
            "comparable": self.comparable,
            "substitute": self.substitute or None,
            "precision": self.precision,
            "seeds": list(self.seeds),
            "folders": list(self.folders),
            "values": {
                key: {"mean": finite(value.mean), "sd": value.sd, "n": value.n} for key, value in self.values.items()
            },
            "curves": {
                name: {"x": x, "mean": list(map(finite, mean)), "sd": None if sd is None else list(map(finite, sd))}
                for name, (x, mean, sd) in self.curves.items()
            },
            "pictures": [{"seed": seed, "file": str(path)} for seed, path in self.pictures],
            "needs": list(self.needs),
        }


class Verdict(NamedTuple):
    """Whether a claim holds (None: not tested), the numbers, and on what; `on` is empty for the paper's setting."""

    claim: Claim
    holds: bool | None
    found: str
    on: str

    @property
    def lines(self) -> tuple[str, str, str]:
        """The verdict with the claim, the criterion, and the numbers."""
        word = {None: "not tested", True: "holds", False: "does not hold"}[self.holds]
        return (
            f"{word}{f' ({self.on})' if self.on else ''}: {self.claim.says}",
            f"criterion: {self.claim.tested}",
            f"{'' if self.holds is None else 'found: '}{self.found}",
        )

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        claim = {"says": self.claim.says, "tested": self.claim.tested}
        return {**claim, "holds": self.holds, "found": self.found, "on": self.on}


@dataclass(frozen=True, slots=True)
class FilledReport:
    """A report with the results of runs.

    Attributes
    ----------
    report : Report
        Which.
    columns : tuple of Column
        Those of the report, or by default one for each value found.
    lines : tuple of Line
        In the order of the rows; the first line of a row has the runs of the paper's setting, if any.
    seeds : mapping of str to int
        Number of seeds of each preset in the paper.
    verdicts : tuple of Verdict
        One for each claim.
    commands : mapping of str to str
        Commands that run a row without a run on the published data, by its label.
    notes : tuple of str
        Notes on omitted runs.
    compared : tuple of Compared
        Rows over shared re-splits, of a report on these: once for each way to run that compares.

    """

    report: Report
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    seeds: Mapping[str, int]
    verdicts: tuple[Verdict, ...]
    commands: Mapping[str, str]
    notes: tuple[str, ...]
    compared: tuple[Compared, ...] = ()

    @property
    def not_run(self) -> str:
        """Heading of the commands: a report with one preset's own name compares with no paper."""
        if not self.report.evaluations:
            return "not run"
        alone = len(self.report.rows) == 1 and self.report.rows[0].label == self.report.name
        return "not run with the preset's own settings" if alone else "not run as in the paper"

    @property
    def measured(self) -> bool:
        """Whether any cell of the table was measured."""
        return any(math.isfinite(value.mean) for line in self.lines for value in line.values.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON; numbers that are not finite become null."""
        report = self.report
        return {
            "report": report.name,
            "shows": report.shows,
            "source": report.source,
            "unit": report.unit,
            "columns": [
                {"key": column.key, "label": column.name, "ceiling": column.ceiling} for column in self.columns
            ],
            "rows": [self._row_dict(row) for row in report.rows],
            "cited": {label: dict(values) for label, values in report.cited.items()},
            "claims": [verdict.to_dict() for verdict in self.verdicts],
            "resplits": [compared.to_dict() for compared in self.compared],
            "notes": list(self.notes),
        }

    def _row_dict(self, row: Row) -> dict[str, Any]:
        references = self.report.references.items()
        return {
            "label": row.label,
            "preset": row.preset,
            "seeds": self.seeds.get(row.preset),
            "references": {
                who: {key: value for (label, key), value in by_cell.items() if label == row.label}
                for who, by_cell in references
            },
            "lines": [line.to_dict() for line in self.lines if line.row is row and line.run],
            "command": self.commands.get(row.label),
        }
