"""Find a report by its name, and fill it with results of runs.

Another package offers reports as ``REPORTS`` in the module with its ``PRESETS``, and so does a file of the user's own.
A preset without a report gets one of all values of its evaluations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError, close_matches, did_you_mean, suggest
from setsup.experiments.preset import Preset
from setsup.experiments.preset_registry import (
    experiment_modules,
    find_preset,
    import_file,
    presets,
    split_file_name,
)
from setsup.experiments.report import Report, Row
from setsup.experiments.report.fill import fill
from setsup.experiments.report.filled import FilledReport
from setsup.experiments.report.results import OpenedRun, open_runs, own_file, select_results
from setsup.experiments.runs.run import Run

__all__ = ["fill_reports", "find_report", "measured_reports", "report_on", "reports"]


def reports() -> dict[str, Report]:
    """Return the reports of all installed packages by name, setsup's first.

    Examples
    --------
    >>> reports()["abc/fig4a"].unit
    'nats'

    """
    by_name: dict[str, Report] = {}
    for module, where in experiment_modules():
        for report in _check_reports(module, where):
            by_name.setdefault(report.name, report)
    return by_name


def find_report(name: str, runs: Iterable[Path | str] = ()) -> Report:
    """Find a report by name.

    Parameters
    ----------
    name : str
        Of a report, or as for :func:`~setsup.experiments.find_preset`: a report with a row of this preset, or else one
        of all values of its evaluations.
    runs : iterable of Path or str
        Folders with runs: a preset in a file of the user's own is found by its name where one of them was trained from
        that file, which is run.

    Raises
    ------
    SetsupError, DataError
        When there is neither report nor preset of that name, or a folder is missing.

    Examples
    --------
    >>> find_report("abc/fig4a-random").name
    'abc/fig4a'
    >>> find_report("abc/augmentation").evaluations
    ('information',)

    """
    check_arguments(find_report, locals(), DataError)
    file = split_file_name(name)
    if file is None:
        known, named = reports(), name
        if named not in known and named not in presets():
            if (own := own_file(name, runs)) is not None:
                return find_report(f"{own}:{name}")
            begun = [names for names in (known, presets()) if any(name.startswith(named) for name in names)]
            sought = [name for name in begun[0] if name.startswith(named)] if begun else sorted({*known, *presets()})
            close = close_matches(named, sought)
            raise SetsupError(
                f"unknown report {named!r}{suggest(close) if close else did_you_mean(named, sorted(known))} (`setsup "
                "report` lists them; a preset's name works, too; for a report of your own, pass its file, as in "
                "--preset my_method.py)"
            )
    else:
        path, named = file
        module = import_file(path)
        known = {report.name: _name_presets(report, module, path) for report in _check_reports(module, str(path))}
        if not named and len(known) == 1:
            return next(iter(known.values()))
    rows_of = {row.preset: report for report in reversed(known.values()) for row in report.rows}
    return known.get(named) or rows_of.get(name) or _default_report(name, find_preset(name))


def report_on(report: Report, folders: Iterable[Path | str] = ()) -> FilledReport:
    """Fill a report with results of runs.

    Parameters
    ----------
    report : Report
        Which.
    folders : iterable of Path or str
        Of runs, or with runs somewhere below; runs of other presets are ignored.

    Returns
    -------
    FilledReport

    Raises
    ------
    DataError
        When a folder is missing.

    Examples
    --------
    >>> found = report_on(find_report("abc/fig4a"))
    >>> [found.commands[row.label] for row in found.report.rows]
    ['setsup train abc/fig4a', 'setsup train abc/fig4a-random']

    """
    check_arguments(report_on, locals(), DataError)
    known = _find_presets(report)
    return _fill_from(report, known, open_runs(folders, known))


def measured_reports(folders: Iterable[Path | str]) -> list[FilledReport]:
    """Return all reports with a measured value, filled with results of runs.

    Parameters
    ----------
    folders : iterable of Path or str
        Of runs, or with runs somewhere below.

    Returns
    -------
    list of FilledReport
        In the order of :func:`reports`.

    Raises
    ------
    DataError
        When a folder is missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     measured_reports([folder])
    []

    """
    check_arguments(measured_reports, locals(), DataError)
    listed = reports()
    known = {name: _find_presets(report) for name, report in listed.items()}
    runs = open_runs(folders, {name: preset for some in known.values() for name, preset in some.items()})
    filled = (_fill_from(report, known[name], runs) for name, report in listed.items())
    return [report for report in filled if report.measured]


def fill_reports(runs: Sequence[Run]) -> list[FilledReport]:
    """Reports that presets of some runs are rows of, filled with these runs alone; else one of all their values.

    Of a preset in several reports, those that have a value of it are given, or the first where none is measured.
    """
    opened = [OpenedRun(run.folder, run.preset.name, run) for run in runs]
    own = {run.preset.name: run.preset for run in runs}
    by_name: dict[str, FilledReport] = {}
    for name, preset in own.items():
        rows_of = [report for report in reports().values() if any(row.preset == name for row in report.rows)]
        filled = [_fill_from(report, _find_presets(report), opened) for report in rows_of]
        if not rows_of:
            filled = [_fill_from(_default_report(name, preset), {name: preset}, opened)]
        for kept in [kept for kept in filled if kept.measured] or filled[:1]:
            by_name[kept.report.name] = kept
    return list(by_name.values())


def _find_presets(report: Report) -> dict[str, Preset]:
    """By the names in the rows of a report."""
    return {row.preset: find_preset(row.preset) for row in report.rows}


def _fill_from(report: Report, presets: Mapping[str, Preset], runs: Iterable[OpenedRun]) -> FilledReport:
    """The report with what was measured of some of the runs."""
    results, notes = select_results(presets, report.evaluations, runs)
    return fill(report, results, {name: preset.seeds for name, preset in presets.items()}, notes)


def _name_presets(report: Report, module: object, path: Path) -> Report:
    """The report with presets of its own file named by that file."""
    inside = {preset.name for preset in getattr(module, "PRESETS", ()) if isinstance(preset, Preset)}
    rows = (replace(row, preset=f"{path}:{row.preset}") if row.preset in inside else row for row in report.rows)
    return replace(report, rows=tuple(rows))


def _default_report(name: str, preset: Preset) -> Report:
    return Report(
        name=preset.name,
        shows=preset.shows,
        source="all values of its evaluations",
        evaluations=tuple(preset.evaluations),
        rows=(Row(name, preset.name),),
        digits=3,
    )


def _check_reports(module: object, where: str) -> list[Report]:
    offered = getattr(module, "REPORTS", ())
    listed = list(offered) if isinstance(offered, Iterable) else [offered]
    if not all(isinstance(report, Report) for report in listed):
        raise SetsupError(f"REPORTS of {where} must be a sequence of setsup.experiments.Report objects")
    return listed
