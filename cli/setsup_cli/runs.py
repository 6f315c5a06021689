"""Runs that subcommands open, and the lines that describe them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from setsup.errors import SetsupError

if TYPE_CHECKING:
    from setsup.experiments import Preset, Run

__all__ = ["CHANGED", "check_device", "describe_run", "evaluated", "number", "opened"]

CHANGED = "the file of the preset has changed since the training; results use the current code"
"""Note on a run whose method may have been another."""


def opened(folder: Path, preset: str | None = None, checkpoint: str = "last") -> "Run":
    """Open a run, with the weights of its last checkpoint or of one that was kept."""
    from setsup.experiments import open_run

    run = open_run(folder, None if preset is None else _own(preset, folder), checkpoint=checkpoint)
    if run.chosen:
        run.state()  # says which ones there are
    return run


def evaluated(run: "Run", name: str | None) -> "Preset":
    """The preset whose evaluations are run, by name; the run's own if its file has it."""
    from setsup.experiments import find_preset, smoke
    from setsup.experiments.preset_registry import split_file_name

    preset, named = run.preset, split_file_name(name or "")
    if name is not None and not (named and not named[1] and _own(name, run.folder)):
        preset = find_preset(name)
    if preset.name == run.preset.name:
        preset = run.preset
    elif run.preset.shrunk:
        preset = smoke(preset)
    if not preset.evaluations:
        raise SetsupError(
            f"{preset.name} has no evaluations; compute embeddings with `setsup embed {run.folder}`, measure them "
            f"with `setsup report factors DATASET {run.folder}`, or pass --preset NAME to run the evaluations of a "
            "preset with the same training"
        )
    return preset


def _own(name: str, folder: Path) -> "Preset | None":
    """The preset of the run in a folder, if a file of presets has it."""
    from setsup.experiments import find_preset
    from setsup.experiments.preset_registry import import_file, split_file_name
    from setsup.experiments.runs.json_files import read_preset_name

    if (named := split_file_name(name)) is None:
        return None
    import_file(named[0])  # raises what is wrong with the file
    own = read_preset_name(folder)
    try:
        return None if own is None else find_preset(f"{named[0]}:{own}")
    except SetsupError:
        return None  # an error of the run is raised when it is opened


def describe_run(run: "Run") -> Iterator[str]:
    """Lines that describe a run, and why its results may differ from a paper's."""
    steps, preset = run.progress().steps, run.preset
    yield f"{run.folder}: {preset.name}, seed {run.seed}" + (f", {steps:,} steps" if preset.method else "")
    if run.chosen:
        yield f"checkpoint {run.chosen}, of step {steps:,}"
    if not run.finished:
        yield f"NOT FINISHED: the preset has {preset.steps:,} steps"
    if run.substitute and preset.data is not None:
        yield f"trained on {preset.data.substitute}, a SUBSTITUTE for {preset.data.name}"
    if run.file_changed:
        yield f"FILE CHANGED: {CHANGED}"
    if preset.shrunk:
        yield "shrunk by --smoke to test that it runs; the results are meaningless"


def check_device(name: str | None) -> None:
    """Raise an error for an unavailable device."""
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SetsupError(f"--device {name} is not available: {reason}") from None


def number(value: float | None) -> str:
    """Format a number of a run, None for one that was not finite."""
    return "nan" if value is None else f"{value:.4g}"
