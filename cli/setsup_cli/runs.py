"""Runs that verbs are given: how they are opened, and what is said of each before anything else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from setsup.errors import SetsupError

if TYPE_CHECKING:
    from setsup.experiments import Preset, Run

__all__ = ["CHANGED", "check_device", "evaluated", "number", "opened", "words_about"]

CHANGED = "the file that holds its preset is another than it was trained with; what follows is by its code as it is now"
"""Said of a run whose method may have been another."""


def opened(folder: Path, preset: str | None = None) -> "Run":
    """Open a run."""
    from setsup.experiments import open_run

    return open_run(folder, None if preset is None else _own(preset, folder))


def evaluated(run: "Run", name: str | None) -> "Preset":
    """The preset whose evaluations are made on a run, by name; the run's own where its file holds it."""
    from setsup.experiments import find_preset, smoke
    from setsup.experiments.registry import split_file_name

    preset, named = run.preset, split_file_name(name or "")
    if name is not None and not (named and not named[1] and _own(name, run.folder)):
        preset = find_preset(name)
    if preset.name == run.preset.name:
        preset = run.preset
    elif run.preset.shrunk:
        preset = smoke(preset)
    if not preset.evaluations:
        raise SetsupError(
            f"{preset.name} has no evaluations; `setsup embed {run.folder}` gives its embeddings, and --preset another "
            "preset that trains the same"
        )
    return preset


def _own(name: str, folder: Path) -> "Preset | None":
    """The preset of the run in a folder, where a file of presets holds it."""
    from setsup.experiments import find_preset
    from setsup.experiments.registry import import_file, split_file_name

    if (named := split_file_name(name)) is None:
        return None
    import_file(named[0])  # what is wrong with the file is said of it
    try:
        return find_preset(f"{named[0]}:{json.loads((folder / 'run.json').read_text(encoding='utf-8'))['preset']}")
    except (OSError, ValueError, KeyError, TypeError, SetsupError):
        return None  # what is wrong with the run is said when it is opened


def words_about(run: "Run") -> Iterator[str]:
    """Lines that say what a run is, and why its numbers may not be a paper's."""
    steps, preset = run.progress().steps, run.preset
    yield f"{run.folder}: {preset.name}, seed {run.seed}" + (f", {steps:,} steps" if preset.method else "")
    if not run.finished:
        yield f"NOT FINISHED: {preset.steps:,} steps are asked for"
    if run.substitute and preset.data is not None:
        yield f"trained on {preset.data.substitute}, a SUBSTITUTE for {preset.data.name}"
    if run.file_changed:
        yield f"FILE CHANGED: {CHANGED}"
    if preset.shrunk:
        yield "shrunk by --smoke, to see that it runs: what it finds means nothing"


def check_device(name: str | None) -> None:
    """Refuse a device that is not here."""
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SetsupError(f"--device {name} is not to be had here: {reason}") from None


def number(value: float | None) -> str:
    """Four digits of a number of a run; none is kept of what was not finite."""
    return "nan" if value is None else f"{value:.4g}"
