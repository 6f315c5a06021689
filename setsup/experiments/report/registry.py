"""Find a report by its name, and fill it with what runs found.

Reports stand beside presets: another package offers them as ``REPORTS`` in the module that holds its ``PRESETS``, and
so does a file of the user's own. Where a preset has none, one of all that its evaluations find is made.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError, near
from setsup.experiments.preset import Preset
from setsup.experiments.registry import find_preset, in_file, modules_of_others, own_modules, presets, run_file
from setsup.experiments.report import Report, Row
from setsup.experiments.report.findings import Findings, fill
from setsup.experiments.report.results import read_results

__all__ = ["find_report", "report_on", "reports"]


def reports() -> dict[str, Report]:
    """All reports of installed packages by name, those of setsup first.

    Examples
    --------
    >>> reports()["abc/fig4a"].unit
    'nats'

    """
    found: dict[str, Report] = {}
    for module, where in (*own_modules(), *modules_of_others()):
        for report in _reports_in(module, where):
            found.setdefault(report.name, report)
    return found


def find_report(name: str) -> Report:
    """The report of a name.

    Parameters
    ----------
    name : str
        Of a report, or as for :func:`~setsup.experiments.find_preset`: the report that the preset is a row of is
        found, or one is made of all that its evaluations find.

    Raises
    ------
    SetsupError, DataError
        When there is neither report nor preset of that name.

    Examples
    --------
    >>> find_report("abc/fig4a-random").name
    'abc/fig4a'
    >>> find_report("abc/augmentation").evaluations
    ('information',)

    """
    check_arguments(find_report, locals(), DataError)
    file = in_file(name)
    if file is None:
        known, named = reports(), name
        if named not in known and named not in presets():
            close = near(named, [*known, *presets()])
            raise SetsupError(f"there is no report {named!r}{close} (`setsup report` lists them)")
    else:
        path, named = file
        module = run_file(path)
        known = {report.name: _of_file(report, module, path) for report in _reports_in(module, str(path))}
        if not named and len(known) == 1:
            return next(iter(known.values()))
    rows_of = {row.preset: report for report in reversed(known.values()) for row in report.rows}
    return known.get(named) or rows_of.get(name) or _of_preset(name, find_preset(name))


def report_on(report: Report, folders: Iterable[Path | str] = ()) -> Findings:
    """Fill a report with what runs found.

    Parameters
    ----------
    report : Report
        Which.
    folders : iterable of Path or str
        Of runs, or with runs somewhere below; those of other presets are passed over.

    Returns
    -------
    Findings

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
    known = {row.preset: find_preset(row.preset) for row in report.rows}
    results, notes = read_results(known, report.evaluations, map(Path, folders))
    return fill(report, results, {name: preset.seeds for name, preset in known.items()}, notes)


def _of_file(report: Report, module: object, path: Path) -> Report:
    """The report with the presets of its file as they are named from elsewhere."""
    inside = {preset.name for preset in getattr(module, "PRESETS", ()) if isinstance(preset, Preset)}
    rows = (replace(row, preset=f"{path}:{row.preset}") if row.preset in inside else row for row in report.rows)
    return replace(report, rows=tuple(rows))


def _of_preset(name: str, preset: Preset) -> Report:
    return Report(
        name=preset.name,
        shows=preset.shows,
        source="all that its evaluations find",
        evaluations=tuple(preset.evaluations),
        rows=(Row(name, preset.name),),
        digits=3,
    )


def _reports_in(module: object, where: str) -> list[Report]:
    found = getattr(module, "REPORTS", ())
    listed = list(found) if isinstance(found, Iterable) else [found]
    if not all(isinstance(report, Report) for report in listed):
        raise SetsupError(f"REPORTS of {where} must be a sequence of setsup.experiments.Report")
    return listed
