"""Evaluating a run: its preset's measurements, saved in the run folder."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from setsup.checks import check_arguments
from setsup.errors import FactorError, SetsupError, near, need
from setsup.experiments.preset import Evaluation, Measured, Preset
from setsup.experiments.run import Run
from setsup.experiments.settings import describe
from setsup.experiments.weights import load_trained
from setsup.files.disk import need_writable

__all__ = ["check_evaluations", "evaluate"]


def evaluate(
    run: Run,
    preset: Preset | None = None,
    *,
    only: Collection[str] = (),
    root: Path | str | None = None,
    device: str | None = None,
    on_start: Callable[[str, Evaluation], None] | None = None,
) -> dict[str, Measured]:
    """Evaluate a run, and save the results in its folder.

    Several figures of a paper often share a training: the run can be evaluated by any preset that trains the same.

    Parameters
    ----------
    run : Run
        Trained, at least in part.
    preset : Preset, optional
        Whose evaluations to make; the run's own by default.
    only : collection of str
        Names of evaluations; all by default.
    root : Path or str, optional
        Folder of the published files; the one that the run was trained from by default.
    device : str, optional
        Where networks run: a GPU if there is one, by default.
    on_start : callable, optional
        Called with the name and the settings of each evaluation, before it starts.

    Returns
    -------
    dict
        Results by evaluation.

    Raises
    ------
    DataError
        When the run's folder cannot be written, its checkpoint is damaged, or data are missing.
    SetsupError
        Before the first evaluation, when the preset trains something else, has no such evaluation, or one of them
        names, in an attribute ``factors``, factors that the training data do not have or, in an attribute ``needs``,
        libraries that are not installed.

    """
    check_arguments(evaluate, locals())
    preset = preset or run.preset
    check_evaluations(run, preset, only, root)
    need_writable(run.results_path)
    trained = load_trained(run, root=root, device=device, preset=preset)
    found = {}
    for name, evaluation in preset.evaluations.items():
        if not only or name in only:
            if on_start is not None:
                on_start(name, evaluation)
            found[name] = evaluation.measure(trained)
            run.save(name, found[name], describe(evaluation))
    return found


def check_evaluations(run: Run, preset: Preset, only: Collection[str] = (), root: Path | str | None = None) -> None:
    """Raise SetsupError unless a preset trains the same as a run, and has the named evaluations and factors."""
    if differing := run.difference(preset):
        listed = ", ".join(f"{name} {old!r} instead of {new!r}" for name, (old, new) in differing.items())
        raise SetsupError(f"{preset.name} trains something else than {run.folder}: {listed}{_advice(differing)}")
    for name in only:
        if name not in preset.evaluations:
            raise SetsupError(f"{preset.name} has no evaluation {name!r}{near(name, preset.evaluations)}")
    chosen = {name: one for name, one in preset.evaluations.items() if not only or name in only}
    for name, one in chosen.items():
        need(f"the evaluation {name!r} of {preset.name} needs", *_names(one, "needs"))
    if run.preset.data is None:
        return
    asked = {name: _names(one, "factors") for name, one in chosen.items()}
    if not any(asked.values()):
        return
    table = run.factors(root)
    for name, factors in asked.items():
        for factor in factors:
            if factor not in table:
                raise FactorError(
                    f"the evaluation {name!r} of {preset.name} names the factor {factor!r}, which "
                    f"{run.folder} was not trained on{near(factor, table.names)}"
                )


def _names(evaluation: Evaluation, attribute: str) -> tuple[str, ...]:
    """Names in an attribute of an evaluation, `factors` or `needs`."""
    found = getattr(evaluation, attribute, ())
    return found if isinstance(found, tuple) and all(isinstance(name, str) for name in found) else ()


def _advice(differing: Mapping[str, tuple[Any, Any]]) -> str:
    """How to give a preset of the user's own the settings of a run, if nothing else differs."""
    if not all(name == "steps" or (name.count(".") == 1 and not name.startswith("data.")) for name in differing):
        return ""  # another method or other data
    given: dict[str, list[str]] = {}
    for name, (_, held) in differing.items():
        head, dot, inner = name.partition(".")
        value = tuple(held) if isinstance(held, list) else held
        given.setdefault(head, []).append(f"{inner}={value!r}" if dot else repr(value))
    words = (
        f"{head}=replace(preset.{head}, {', '.join(values)})" if head != "steps" else f"steps={values[0]}"
        for head, values in given.items()
    )
    return f"; give a preset in your own file the settings of the run with replace(preset, {', '.join(words)})"
