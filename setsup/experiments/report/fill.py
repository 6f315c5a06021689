"""Filling a report with results: means and spreads over seeds, and a verdict on each claim of the paper.

Nothing here reads a file: results come as plain values.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from setsup.errors import DataError
from setsup.experiments.report import Claim, Column, Report, Row, Spread
from setsup.experiments.report.compare import compare
from setsup.experiments.report.filled import Curve, FilledReport, Line, Verdict

__all__ = ["Result", "fill"]


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run, as a report reads it.

    Attributes
    ----------
    preset : str
        Of the row it belongs to.
    seed : int
        Of the run.
    folder : str
        Of the run.
    substitute : str
        Dataset that replaced the published one; empty if none did.
    precision : str
        Of the networks.
    changed : tuple of str
        Other differences from the preset, in words; such runs are shown, but prove nothing.
    values : mapping of str to float
        By name.
    curves : mapping of str to (x, y)
        By name.
    pictures : tuple of Path
        Files.
    needs : tuple of str
        Commands that produce missing results.

    """

    preset: str
    seed: int
    folder: str
    substitute: str = ""
    precision: str = "float32"
    changed: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    pictures: tuple[Path, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def differs(self) -> tuple[str, ...]:
        """All differences from the paper's setting."""
        data = (f"substitute: {self.substitute}",) if self.substitute else ()
        return (*data, *((self.precision,) if self.precision != "float32" else ()), *self.changed)


def fill(
    report: Report, results: Iterable[Result], seeds: Mapping[str, int], notes: Sequence[str] = ()
) -> FilledReport:
    """Fill a report with results."""
    collected = sorted(results, key=lambda result: (len(result.changed) > 0, len(result.differs), result.seed))
    all_notes = list(notes)
    lines: list[Line] = []
    shown: set[Path] = set()
    for row in report.rows:
        groups: dict[tuple[str, ...], list[Result]] = {}
        for result in collected:
            if result.preset == row.preset:
                groups.setdefault(result.differs, []).append(result)
        if not any(not group[0].changed and not group[0].substitute for group in groups.values()):
            lines.append(Line(row=row))
        for group in groups.values():
            lines.append(_summarise(report, row, _one_per_seed(group, all_notes), shown))
            shown |= {path for _, path in lines[-1].pictures}
    keys = dict.fromkeys(key for line in lines for key in line.values)
    return FilledReport(
        report,
        report.columns or tuple(map(Column, keys)),
        tuple(lines),
        seeds,
        tuple(_test(claim, lines, seeds) for claim in report.claims),
        {line.row.label: f"setsup train {line.row.preset}" for line in lines if not line.run},
        tuple(dict.fromkeys(all_notes)),
        () if report.resplits is None else tuple(compare(report.resplits, lines)),
    )


def _one_per_seed(group: Sequence[Result], notes: list[str]) -> list[Result]:
    """One result per seed, preferably an evaluated one: two runs of one seed tell nothing about the spread."""
    kept: dict[int, Result] = {}
    for result in sorted(group, key=lambda result: (bool(result.needs), result.folder)):
        first = kept.setdefault(result.seed, result)
        if first is not result and not result.needs:
            notes.append(f"{result.folder} is omitted: {first.folder} already has seed {result.seed}")
    return sorted(kept.values(), key=lambda result: result.seed)


def _summarise(report: Report, row: Row, group: Sequence[Result], shown: set[Path]) -> Line:
    """The line of runs that differ in their seeds only, without images that an earlier line has."""
    values: dict[str, list[float]] = {}
    for result in group:
        for key, value in _select_values(report, row, result).items():
            values.setdefault(key, []).append(value)
    measured = [result for result in group if result.values or result.curves or result.pictures]
    first = group[0]
    return Line(
        row=row,
        differs=first.differs,
        comparable=not first.changed,
        substitute=first.substitute,
        precision=first.precision,
        seeds=tuple(result.seed for result in measured),
        folders=tuple(result.folder for result in measured),
        values={key: _spread(numbers) for key, numbers in values.items()},
        curves=_average_curves(row, measured),
        pictures=tuple((result.seed, path) for result in measured for path in result.pictures if path not in shown),
        needs=tuple(command for result in group for command in result.needs),
    )


def _select_values(report: Report, row: Row, result: Result) -> dict[str, float]:
    """Values of a row by the keys of columns."""
    own = {key.removeprefix(row.part): value for key, value in result.values.items() if key.startswith(row.part)}
    if not report.columns:
        return own
    selected = {column.key: own[column.key] for column in report.columns if column.at is None and column.key in own}
    for column in report.columns:
        curve = result.curves.get(row.part + column.key)
        if column.at is not None and curve is not None:
            at, (x, y) = column.at * row.scale, curve
            if 0 < min(x) <= at <= max(x):
                selected[column.key] = float(np.interp(math.log(at), np.log(x), y))
    return selected


def _average_curves(row: Row, measured: Sequence[Result]) -> dict[str, Curve]:
    names = dict.fromkeys(name for result in measured for name in result.curves if name.startswith(row.part))
    averages: dict[str, Curve] = {}
    for name in names:
        having = [result for result in measured if name in result.curves]
        x = list(having[0].curves[name][0])
        for other in having[1:]:
            if list(other.curves[name][0]) != x:
                raise DataError(
                    f"the curves {name!r} of {having[0].folder} and {other.folder} have different axes although their "
                    "settings agree; evaluate both runs again with `setsup eval`"
                )
        spreads = [_spread(heights) for heights in zip(*(result.curves[name][1] for result in having), strict=True)]
        averages[name.removeprefix(row.part)] = (
            [position / row.scale for position in x],
            [spread.mean for spread in spreads],
            [spread.sd or 0.0 for spread in spreads] if len(having) > 1 else None,
        )
    return averages


def _spread(values: Sequence[float]) -> Spread:
    if not all(map(math.isfinite, values)):
        return Spread(math.nan, None, len(values))
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


def _test(claim: Claim, lines: Sequence[Line], seeds: Mapping[str, int]) -> Verdict:
    """Test a claim by runs on the published data or else by those on the substitute, never by both at once."""
    missing = ""
    for substitute in (False, True):
        used: dict[str, Line] = {}  # of each row the first line: that in full precision, if there is one
        for line in lines:
            concerned = not claim.rows or line.row.label in claim.rows
            if concerned and line.comparable and line.values and bool(line.substitute) is substitute:
                used.setdefault(line.row.label, line)
        means = {
            label: {key: spread for key, spread in line.values.items() if math.isfinite(spread.mean)}
            for label, line in used.items()
        }
        holds, measured = claim.criterion(means)
        if holds is not None:
            return Verdict(claim, holds, measured, _describe(used.values(), substitute, seeds))
        missing = missing or measured
    return Verdict(claim, None, missing, "")


def _describe(used: Iterable[Line], substitute: bool, seeds: Mapping[str, int]) -> str:
    """How runs differ from the paper's setting, in words."""
    lines = list(used)
    notes = ["on the substitute dataset"] if substitute else []
    notes += sorted({line.precision for line in lines if line.precision != "float32"})
    least, asked = min((len(line.seeds), seeds.get(line.row.preset, 1)) for line in lines)
    if least < asked:
        notes.append(f"{least} of {asked} seeds")
    return ", ".join(notes)
