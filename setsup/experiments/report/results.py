"""Reading the evaluations of runs for reports, with the differences of each run from its preset in words."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

from setsup.checks import check_path
from setsup.errors import DataError, SetsupError
from setsup.experiments.preset import Preset, smoke
from setsup.experiments.report.fill import Result
from setsup.experiments.runs.json_files import peek_json
from setsup.experiments.runs.results import EVALUATION
from setsup.experiments.runs.run import DIGEST, FILE, Run
from setsup.experiments.runs.run_folder import open_run
from setsup.experiments.settings import describe, difference, fill_defaults
from setsup.files.disk import need_regular

__all__ = ["OpenedRun", "open_runs", "own_file", "select_results"]


@dataclass(frozen=True)
class OpenedRun:
    """A run folder, the name of its preset, and the run in it, or why it cannot be opened."""

    folder: Path
    name: str
    run: Run | SetsupError

    @cached_property
    def results(self) -> dict[str, Any]:
        """Of all evaluations of the run, read once for all reports."""
        return {} if isinstance(self.run, SetsupError) else self.run.results()


def open_runs(folders: Iterable[Path | str], presets: Mapping[str, Preset]) -> list[OpenedRun]:
    """Open all runs in some folders; of presets in files of the user's own, those of the presets that are given."""
    given = {preset.name: preset for preset in presets.values()}
    opened = []
    for folder in _run_folders(folders):
        name = ""
        try:
            name, own = _read_name(folder)
            preset = given.get(name)
            if own and (preset is None or preset.digest is None):  # no file is run for the report of others
                raise SetsupError(f"the preset {name!r} of the run is defined in your own file; pass that file")
            opened.append(OpenedRun(folder, name, open_run(folder, preset)))
        except SetsupError as error:
            opened.append(OpenedRun(folder, name, error))
    return opened


def own_file(name: str, folders: Iterable[Path | str]) -> str | None:
    """The user's own file that holds the preset of a name, by a run of it in some folders; None without one.

    SetsupError where it is not there any more.
    """
    runs = (folder for folder in _run_folders(folders) if _read_name(folder) == (name, True))
    return next((open_run(folder).preset.file for folder in runs), None)


def select_results(
    presets: Mapping[str, Preset], evaluations: Sequence[str], runs: Iterable[OpenedRun]
) -> tuple[list[Result], list[str]]:
    """Select the results of a report from runs, with notes on runs that were left out.

    A run belongs to every preset that trains the same, or else to the preset of its name.
    """
    results, notes = [], []
    own = {preset.name for preset in presets.values()}
    for opened in runs:
        folder, run = opened.folder, opened.run
        if isinstance(run, SetsupError):
            if isinstance(run, DataError) or opened.name in own:  # others are of presets that are not known here
                notes.append(f"{folder} is omitted: {run}")
            continue
        try:
            same = {called: preset for called, preset in presets.items() if _trains_the_same(run, preset)}
            named = {called: preset for called, preset in presets.items() if preset.name == run.preset.name}
            if (same or named) and run.file_changed:
                notes.append(
                    f"{folder}: the file of {run.preset.name} has changed since this run was trained, so its "
                    "method may differ from the current one"
                )
            for called, preset in (same or named).items():
                results.append(_result(run, opened.results, called, preset, evaluations))
        except SetsupError as error:
            notes.append(f"{folder} is omitted: {error}")
    return results, notes


def _trains_the_same(run: Run, preset: Preset) -> bool:
    """Whether a run is one of a preset; what most others differ in is compared first, since all of it takes long."""
    preset, own = smoke(preset) if run.preset.shrunk else preset, run.preset
    quick = [
        (candidate.steps, type(candidate.method), candidate.data and candidate.data.name) for candidate in (preset, own)
    ]
    return quick[0] == quick[1] and not run.difference(preset)


def _run_folders(folders: Iterable[Path | str]) -> Iterator[Path]:
    by_path: dict[Path, Path] = {}
    for given in folders:
        folder = check_path(given, "each of the folders", DataError)
        if not folder.is_dir():
            raise DataError(f"{folder} does not exist; pass a run folder, or a folder that contains runs")
        for file in sorted(folder.glob("**/run.json")):
            by_path.setdefault(file.parent.resolve(), file.parent)
    yield from by_path.values()


def _read_name(folder: Path) -> tuple[str, bool]:
    """Name of a run's preset, and whether that is in a file of the user's own."""
    need_regular(folder / "run.json")
    description = peek_json(folder / "run.json")
    if "preset" not in description:
        return "", False  # opening the run says what is wrong with it
    return str(description["preset"]), not {DIGEST, FILE}.isdisjoint(description)


def _result(run: Run, entries: Mapping[str, Any], called: str, preset: Preset, evaluations: Sequence[str]) -> Result:
    preset = smoke(preset) if run.preset.shrunk else preset
    measured = {name: _entry(run, name, entry) for name, entry in entries.items() if name in evaluations}
    values: dict[str, float] = {}
    curves: dict[str, tuple[list[float], list[float]]] = {}
    pictures: list[Path] = []
    asked: dict[str, tuple[Any, Any]] = {}
    for name, entry in measured.items():
        front = f"{name}: " if len(evaluations) > 1 else ""
        values |= {front + key: _number(value) for key, value in entry["values"].items()}
        for key, axes in entry["curves"].items():
            x, y = ([_number(value) for value in axis] for axis in axes)
            curves[front + key] = x, y
        pictures += [path for path in (run.folder / Path(file).name for file in entry["pictures"]) if path.exists()]
        if name in preset.evaluations:
            now = describe(preset.evaluations[name])
            then = {"measure": now["measure"]} | fill_defaults(preset.evaluations[name], entry["about"])
            asked |= {f"{name}.{key}": change for key, change in difference(now, then).items()}
    steps = min((entry["steps"] for entry in measured.values()), default=None)
    wanted = run.preset.steps
    done = steps if steps is not None and steps >= wanted else _steps_done(run, steps)
    differing = [f"{name} {_word(old)} → {_word(new)}" for name, (old, new) in (run.difference(preset) | asked).items()]
    if run.preset.shrunk:
        differing = ["smoke", *differing]
    least, most = min(run.draws_per_step), max(run.draws_per_step)
    if most > 1:
        differing.append(f"{most if least == most else f'{least} to {most}'} draws per step")
        if run.synchronised:
            differing.append("sync_batchnorm")
    if steps is not None and steps < done:
        differing.append(f"evaluated after {steps:,} of {wanted:,} steps")
    elif done < wanted:
        differing.append(f"{done:,} of {wanted:,} steps")
    stale = [name for name in evaluations if name not in measured or measured[name]["steps"] < done]
    return Result(
        called,
        run.seed,
        str(run.folder),
        substitute=(run.preset.data.substitute or "") if run.substitute and run.preset.data else "",
        precision=run.description["config"]["precision"],
        changed=tuple(differing),
        values=values,
        curves=curves,
        pictures=tuple(pictures),
        needs=(_command(run, called, preset),) if stale and (done or not wanted) else (),
    )


def _steps_done(run: Run, measured: int | None) -> int:
    """Steps of the checkpoint, or those that were measured if it was removed."""
    return max(run.progress().steps, measured or 0)


def _command(run: Run, called: str, preset: Preset) -> str:
    known = preset.name == run.preset.name and preset.file == run.description.get(FILE)
    other = "" if known else f" --preset {quote(called)}"
    return f"setsup eval {quote(str(run.folder))}{other}"


def _word(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_word, value)) or "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _entry(run: Run, name: str, entry: Any) -> dict[str, Any]:
    """Check an entry that `Run.save` wrote."""
    known = (
        isinstance(entry, dict)
        and {"about", "steps", "values", "curves", "pictures"} <= entry.keys()
        and isinstance(entry["about"], dict)
        and isinstance(entry["steps"], int)
        and _numbers(entry["values"])
        and isinstance(entry["curves"], dict)
        and all(_is_curve(curve) for curve in entry["curves"].values())
        and isinstance(entry["pictures"], list)
        and all(isinstance(file, str) for file in entry["pictures"])
    )
    if not known:
        file = run.folder / EVALUATION
        raise DataError(
            f"{name!r} in {file} is not the result of an evaluation; remove the file, and evaluate again with "
            "`setsup eval`"
        )
    result: dict[str, Any] = entry
    return result


def _numbers(values: Any) -> bool:
    return isinstance(values, dict) and all(isinstance(value, int | float | None) for value in values.values())


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _is_curve(curve: Any) -> bool:
    """Two lists of equally many numbers; heights may be unknown."""
    if not isinstance(curve, list) or len(curve) != 2 or not all(isinstance(axis, list) and axis for axis in curve):
        return False
    x, y = curve
    known = all(isinstance(number, int | float) for number in x) and all(isinstance(at, int | float | None) for at in y)
    return known and len(x) == len(y)
