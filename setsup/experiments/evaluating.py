"""Evaluating a run: its preset's measurements, kept in the run folder."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from setsup.checks import check_arguments
from setsup.errors import FactorError, SetsupError, near, need
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
        When the preset trains something else, has no such evaluation, or one of them names factors, in an attribute
        ``factors``, that what was trained on does not have, or libraries, in an attribute ``needs``, that are not
        installed: said before the first is measured.

    """
    check_arguments(evaluate, locals())
    preset = preset or run.preset
    check_asked(run, preset, only, root)
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


def check_asked(run: Run, preset: Preset, only: Collection[str] = (), root: Path | str | None = None) -> None:
    """Raise SetsupError unless a preset trains what a run holds, and has the evaluations and factors that are named."""
    if differing := run.changed(preset):
        listed = ", ".join(f"{name} {old!r} instead of {new!r}" for name, (old, new) in differing.items())
        raise SetsupError(f"{preset.name} trains something else than {run.folder} holds: {listed}{_advice(differing)}")
    for name in only:
        if name not in preset.evaluations:
            raise SetsupError(f"{preset.name} has no evaluation {name!r}{near(name, preset.evaluations)}")
    chosen = {name: one for name, one in preset.evaluations.items() if not only or name in only}
    for name, one in chosen.items():
        need(f"the evaluation {name!r} of {preset.name} needs", *_texts(one, "needs"))
    if run.preset.data is None:
        return
    asked = {name: _texts(one, "factors") for name, one in chosen.items()}
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


def _texts(evaluation: Evaluation, attribute: str) -> tuple[str, ...]:
    """Names of factors or libraries that an evaluation says it is of or needs, as those of setsup do."""
    found = getattr(evaluation, attribute, ())
    return found if isinstance(found, tuple) and all(isinstance(name, str) for name in found) else ()


def _advice(differing: Mapping[str, tuple[Any, Any]]) -> str:
    """How a preset of the user's own gets the settings of a run, where these are all that differs."""
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
    return f"; a preset in a file of yours is given what the run has by replace(preset, {', '.join(words)})"
