"""Evaluating a run: its preset's measurements, kept in the run folder."""

from collections.abc import Callable, Collection
from pathlib import Path

from setsup.errors import SetsupError, near
from setsup.experiments.preset import Evaluation, Measured, Preset
from setsup.experiments.run import EVALUATION, Run
from setsup.experiments.settings import about
from setsup.experiments.trained import load_trained
from setsup.files.disk import need_writable

__all__ = ["check_asked", "evaluate"]


def evaluate(
    run: Run,
    preset: Preset | None = None,
    *,
    only: Collection[str] = (),
    root: Path | str | None = None,
    device: str | None = None,
    begun: Callable[[str, Evaluation], None] | None = None,
) -> dict[str, Measured]:
    """Measure a run, and keep what was found in its folder.

    Several figures of a paper often rest on one training: the evaluations of any preset that trains the same can be
    asked for.

    Parameters
    ----------
    run : Run
        Trained, at least in part.
    preset : Preset, optional
        Whose evaluations are made; the run's own by default.
    only : collection of str
        Names of evaluations; all by default.
    root : Path or str, optional
        Folder of the published files; the one that the run was trained from by default.
    device : str, optional
        Where networks run: a GPU where there is one, by default.
    begun : callable, optional
        Called with the name and the settings of each evaluation right before it is made, to say what follows.

    Returns
    -------
    dict
        What was found, by evaluation.

    Raises
    ------
    DataError
        When the run's folder cannot be written, its checkpoint is damaged, or data is missing.
    SetsupError
        When the preset trains something else, or has no such evaluation.

    """
    preset = preset or run.preset
    check_asked(run, preset, only)
    need_writable(run.folder / EVALUATION)
    trained = load_trained(run, root=root, device=device, preset=preset)
    found = {}
    for name, evaluation in preset.evaluations.items():
        if not only or name in only:
            if begun is not None:
                begun(name, evaluation)
            found[name] = evaluation.measure(trained)
            run.keep(name, found[name], about(evaluation))
    return found


def check_asked(run: Run, preset: Preset, only: Collection[str] = ()) -> None:
    """Raise SetsupError unless a preset trains what a run holds, and has the evaluations that are named."""
    if differing := run.changed(preset):
        listed = ", ".join(f"{name} {old!r} instead of {new!r}" for name, (old, new) in differing.items())
        raise SetsupError(f"{preset.name} trains something else than {run.folder} holds: {listed}")
    for name in only:
        if name not in preset.evaluations:
            raise SetsupError(f"{preset.name} has no evaluation {name!r}{near(name, preset.evaluations)}")
