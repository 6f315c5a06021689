"""What runs found, put into a report: means and spreads over seeds, and a verdict on each claim of the paper.

Nothing here reads a file: results come as plain values.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.errors import DataError
from setsup.experiments.report import Claim, Column, Report, Row, Spread
from setsup.experiments.run import finite

__all__ = ["Findings", "Line", "Result", "Verdict", "fill"]

Curve = tuple[list[float], list[float], list[float] | None]
"""x, mean and standard deviation over seeds, if there are several."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one run found, as a report reads it.

    Attributes
    ----------
    preset : str
        Of the row it belongs to.
    seed : int
        Of the run.
    folder : str
        Of the run.
    stand_in : str
        Data set that took the place of the published one; empty where none did.
    precision : str
        ``float32`` or what else networks ran in.
    changed : tuple of str
        What else differs from the preset, in words; such runs are shown, but prove nothing.
    values : mapping of str to float
        By name.
    curves : mapping of str to (x, y)
        By name.
    pictures : tuple of Path
        Files.
    needs : tuple of str
        Commands that make what is missing.

    """

    preset: str
    seed: int
    folder: str
    stand_in: str = ""
    precision: str = "float32"
    changed: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    pictures: tuple[Path, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def differs(self) -> tuple[str, ...]:
        """What is otherwise than in the paper."""
        data = (f"stand-in: {self.stand_in}",) if self.stand_in else ()
        return (*data, *((self.precision,) if self.precision != "float32" else ()), *self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Runs of one row that differ in their seeds only.

    Attributes
    ----------
    row : Row
        Which.
    differs : tuple of str
        How they differ from the preset: nothing, the stand-in or the precision, or more.
    sound : bool
        Whether they differ by no more than stand-in and precision, so that claims are judged by them.
    stand_in : str
        As in :class:`Result`.
    precision : str
        As in :class:`Result`.
    seeds : tuple of int
        Of the runs that were measured.
    folders : tuple of str
        Theirs.
    values : mapping of str to Spread
        By the keys of columns.
    curves : mapping of str to (x, mean, sd)
        By name, each a list of numbers, sd None of one seed; x in units of the row's scale.
    pictures : tuple of (seed, Path)
        What the runs drew.
    needs : tuple of str
        Commands that make what is missing.

    """

    row: Row
    differs: tuple[str, ...] = ()
    sound: bool = True
    stand_in: str = ""
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


class Verdict(NamedTuple):
    """Whether a claim holds (None: not tested), by how much, and on what: no words for the paper's own setting."""

    claim: Claim
    holds: bool | None
    found: str
    on: str

    @property
    def lines(self) -> tuple[str, str, str]:
        """The verdict and the claim, the criterion, and what was found."""
        word = {None: "not tested", True: "holds", False: "does not hold"}[self.holds]
        return (
            f"{word}{f' ({self.on})' if self.on else ''}: {self.claim.says}",
            f"tested here: {self.claim.tested}",
            f"{'' if self.holds is None else 'found: '}{self.found}",
        )


@dataclass(frozen=True, slots=True)
class Findings:
    """A report that results were put into.

    Attributes
    ----------
    report : Report
        Which.
    columns : tuple of Column
        Those of the report, or what was found.
    lines : tuple of Line
        In the order of the rows; a row begins with what was run as in the paper, be it nothing.
    seeds : mapping of str to int
        How many seeds each preset is run with in the paper.
    verdicts : tuple of Verdict
        One a claim.
    commands : mapping of str to str
        What runs a row of which there is no run on the published data, by its label.
    notes : tuple of str
        On what was found and left out.

    """

    report: Report
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    seeds: Mapping[str, int]
    verdicts: tuple[Verdict, ...]
    commands: Mapping[str, str]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON keeps it; numbers that are not finite are null."""
        report = self.report
        return {
            "report": report.name,
            "shows": report.shows,
            "source": report.source,
            "unit": report.unit,
            "columns": [
                {"key": column.key, "label": column.name, "ceiling": column.ceiling} for column in self.columns
            ],
            "rows": [
                {
                    "label": row.label,
                    "preset": row.preset,
                    "seeds": self.seeds.get(row.preset),
                    "beside": {
                        who: {key: value for (label, key), value in said.items() if label == row.label}
                        for who, said in report.beside.items()
                    },
                    "lines": [_line_dict(line) for line in self.lines if line.row is row and line.run],
                    "command": self.commands.get(row.label),
                }
                for row in report.rows
            ],
            "claims": [
                {
                    "says": verdict.claim.says,
                    "tested": verdict.claim.tested,
                    "holds": verdict.holds,
                    "found": verdict.found,
                    "on": verdict.on,
                }
                for verdict in self.verdicts
            ],
            "notes": list(self.notes),
        }


def fill(report: Report, results: Iterable[Result], seeds: Mapping[str, int], notes: Sequence[str] = ()) -> Findings:
    """Put results into a report."""
    collected = sorted(results, key=lambda result: (len(result.changed) > 0, len(result.differs), result.seed))
    said = list(notes)
    lines: list[Line] = []
    drawn: set[Path] = set()
    for row in report.rows:
        groups: dict[tuple[str, ...], list[Result]] = {}
        for result in collected:
            if result.preset == row.preset:
                groups.setdefault(result.differs, []).append(result)
        if not any(not group[0].changed and not group[0].stand_in for group in groups.values()):
            lines.append(Line(row=row))
        for group in groups.values():
            distinct = _distinct(group, said)
            lines.append(_line(report, row, distinct, drawn))
            drawn |= {path for _, path in lines[-1].pictures}
    columns = report.columns or tuple(
        Column(key) for key in dict.fromkeys(key for line in lines for key in line.values)
    )
    return Findings(
        report,
        columns,
        tuple(lines),
        seeds,
        tuple(_judged(claim, lines, seeds) for claim in report.claims),
        {line.row.label: f"setsup train {line.row.preset}" for line in lines if not line.run},
        tuple(dict.fromkeys(said)),
    )


def _distinct(group: Sequence[Result], notes: list[str]) -> list[Result]:
    """One result a seed: two runs of one seed tell nothing about the spread. Those that were measured come first."""
    kept: dict[int, Result] = {}
    for result in sorted(group, key=lambda result: (bool(result.needs), result.folder)):
        first = kept.setdefault(result.seed, result)
        if first is not result and not result.needs:
            notes.append(f"{result.folder} is left out: seed {result.seed} is there already, in {first.folder}")
    return sorted(kept.values(), key=lambda result: result.seed)


def _line(report: Report, row: Row, group: Sequence[Result], drawn: set[Path]) -> Line:
    values: dict[str, list[float]] = {}
    for result in group:
        for key, value in _values(report, row, result).items():
            values.setdefault(key, []).append(value)
    measured = [result for result in group if result.values or result.curves or result.pictures]
    return Line(
        row=row,
        differs=group[0].differs,
        sound=not group[0].changed,
        stand_in=group[0].stand_in,
        precision=group[0].precision,
        seeds=tuple(result.seed for result in measured),
        folders=tuple(result.folder for result in measured),
        values={key: _spread(found) for key, found in values.items()},
        curves=_curves(row, measured),
        pictures=tuple((result.seed, path) for result in measured for path in result.pictures if path not in drawn),
        needs=tuple(command for result in group for command in result.needs),
    )


def _values(report: Report, row: Row, result: Result) -> dict[str, float]:
    held = {key.removeprefix(row.part): value for key, value in result.values.items() if key.startswith(row.part)}
    if not report.columns:
        return held
    found = {column.key: held[column.key] for column in report.columns if column.at is None and column.key in held}
    for column in report.columns:
        curve = result.curves.get(row.part + column.key)
        if column.at is not None and curve is not None:
            at, (x, y) = column.at * row.scale, curve
            if 0 < min(x) <= at <= max(x):
                found[column.key] = float(np.interp(math.log(at), np.log(x), y))
    return found


def _curves(row: Row, measured: Sequence[Result]) -> dict[str, Curve]:
    names = dict.fromkeys(name for result in measured for name in result.curves if name.startswith(row.part))
    found: dict[str, Curve] = {}
    for name in names:
        having = [result for result in measured if name in result.curves]
        x = list(having[0].curves[name][0])
        for other in having[1:]:
            if list(other.curves[name][0]) != x:
                raise DataError(
                    f"the curves {name!r} of {having[0].folder} and {other.folder} have unequal axes although their "
                    f"settings agree: measure both anew with `setsup eval`"
                )
        spreads = [_spread(heights) for heights in zip(*(result.curves[name][1] for result in having), strict=True)]
        found[name.removeprefix(row.part)] = (
            [place / row.scale for place in x],
            [spread.mean for spread in spreads],
            [spread.sd or 0.0 for spread in spreads] if len(having) > 1 else None,
        )
    return found


def _spread(values: Sequence[float]) -> Spread:
    if not all(map(math.isfinite, values)):
        return Spread(math.nan, None, len(values))
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


def _judged(claim: Claim, lines: Sequence[Line], seeds: Mapping[str, int]) -> Verdict:
    """By runs on the published data, or else by those on the stand-in: never by both at once."""
    first = ""
    for stand_in in (False, True):
        # a row's runs in full precision, where there are any
        used: dict[str, Line] = {}
        for line in lines:
            spoken_of = not claim.rows or line.row.label in claim.rows
            if spoken_of and line.sound and line.values and bool(line.stand_in) is stand_in:
                used.setdefault(line.row.label, line)
        means = {
            label: {key: spread for key, spread in line.values.items() if math.isfinite(spread.mean)}
            for label, line in used.items()
        }
        holds, found = claim.judge(means)
        if holds is not None:
            return Verdict(claim, holds, found, _on(used.values(), stand_in, seeds))
        first = first or found
    return Verdict(claim, None, first, "")


def _on(used: Iterable[Line], stand_in: bool, seeds: Mapping[str, int]) -> str:
    lines = list(used)
    words = ["on the stand-in"] if stand_in else []
    words += sorted({line.precision for line in lines if line.precision != "float32"})
    least, asked = min((len(line.seeds), seeds.get(line.row.preset, 1)) for line in lines)
    if least < asked:
        words.append(f"{least} of {asked} seeds")
    return ", ".join(words)


def _line_dict(line: Line) -> dict[str, Any]:
    return {
        "differs": list(line.differs),
        "sound": line.sound,
        "stand_in": line.stand_in or None,
        "precision": line.precision,
        "seeds": list(line.seeds),
        "folders": list(line.folders),
        "values": {
            key: {"mean": finite(spread.mean), "sd": spread.sd, "n": spread.n} for key, spread in line.values.items()
        },
        "curves": {
            name: {
                "x": x,
                "mean": [finite(height) for height in mean],
                "sd": None if sd is None else [finite(width) for width in sd],
            }
            for name, (x, mean, sd) in line.curves.items()
        },
        "pictures": [{"seed": seed, "file": str(path)} for seed, path in line.pictures],
        "needs": list(line.needs),
    }
