"""Evaluating a run: its preset's evaluations, saved in the run folder."""

import math
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from setsup.checks import check_arguments
from setsup.errors import FactorError, SetsupError, did_you_mean, require_modules
from setsup.experiments.evaluation import Evaluation, Measured
from setsup.experiments.former_names import former_module
from setsup.experiments.preset import Preset
from setsup.experiments.result_cache import PartStore, digest, digest_weights
from setsup.experiments.runs.results import drop_keys
from setsup.experiments.runs.run import Run
from setsup.experiments.settings import describe, drop_added, flatten, training_settings
from setsup.experiments.trained_run import TrainedRun
from setsup.experiments.weights import load_trained
from setsup.files.disk import need_writable

__all__ = ["PARTS", "check_evaluations", "evaluate", "identify"]

PARTS = "evaluation"
"""Folder of a run that holds the parts of its evaluations."""

_CONTEXT = ("data", "datasets", "method", "augmentation", "eval_transform")
"""Settings of a preset that evaluations depend on, besides the weights."""


def evaluate(
    run: Run,
    preset: Preset | None = None,
    *,
    only: Collection[str] = (),
    root: Path | str | None = None,
    device: str | None = None,
    again: bool = False,
    on_start: Callable[[str, Evaluation], None] | None = None,
    on_stored: Callable[[str, Evaluation], None] | None = None,
) -> dict[str, Measured]:
    """Evaluate a run, and save the results in its folder.

    Several figures of a paper often share a training: the run can be evaluated by any preset that trains the same.

    What was measured before, on the same weights with the same settings, is returned as it was saved. An evaluation
    that was interrupted resumes at the first of its parts that was not done; see :meth:`TrainedRun.part`.

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
        Where networks run: a GPU if there is one, by default. It is not among the settings: results agree up to
        rounding.
    again : bool
        Whether to measure again what was measured before, and to remove the parts of these evaluations first.
    on_start : callable, optional
        Called with the name and the settings of each evaluation, before it starts.
    on_stored : callable, optional
        Called with the name and the settings of each evaluation that was measured before.

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
    preset = run.complete(preset)
    need_writable(run.results_path)
    chosen = {name: evaluation for name, evaluation in preset.evaluations.items() if not only or name in only}
    if again:
        _forget(run, chosen)
    trained = load_trained(run, root=root, device=device, preset=preset)
    context = _context(run, preset, trained, root)
    results = {}
    for name, evaluation in chosen.items():
        about = context | {"measure": identify(evaluation)}
        key = digest(about | {"evaluation": drop_added(evaluation, describe(evaluation))})
        if (stored := _stored(run, name, key)) is not None:
            results[name] = stored
            if on_stored is not None:
                on_stored(name, evaluation)
            continue
        if on_start is not None:
            on_start(name, evaluation)
        trained.store = PartStore(run.folder / PARTS / name, about)
        results[name] = evaluation.measure(trained)
        run.save(name, results[name], describe(evaluation), key)
    return results


def _context(run: Run, preset: Preset, trained: TrainedRun, root: Path | str | None) -> dict[str, Any]:
    """What all evaluations of a run depend on, as JSON values."""
    every = drop_added(preset, flatten(preset))
    settings = {name: value for name, value in every.items() if name.partition(".")[0] in _CONTEXT}
    # where the data lie does not matter, and the preset may say it otherwise than the run
    settings = training_settings(settings, run.substitute) | {
        name: value for name, value in settings.items() if name.partition(".")[0] in ("datasets", "eval_transform")
    }
    return {
        "weights": digest_weights(trained.method.state_dict()),
        "seed": run.seed,
        "substitute": run.substitute,
        "precision": trained.precision,
        "table": None if preset.data is None else run.factors(root).fingerprint,
        "preset_file_sha256": sorted({source.digest for source in (run.preset, preset) if source.digest is not None}),
        "settings": settings,
    }


def identify(evaluation: Evaluation) -> dict[str, Any]:
    """Class of an evaluation, and its version, an integer that is raised when its results change."""
    kind = type(evaluation)
    return {"class": f"{former_module(kind.__module__)}.{kind.__qualname__}", "version": getattr(kind, "version", 0)}


def _forget(run: Run, names: Collection[str]) -> None:
    """Remove the parts of evaluations; what was saved of them stays until it is replaced, but is not returned."""
    for name in names:
        shutil.rmtree(run.folder / PARTS / name, ignore_errors=True)
    drop_keys(run.results_path, names)


def _stored(run: Run, name: str, key: str) -> Measured | None:
    """Result of an evaluation with a key, if it was saved at the same step, and is complete."""
    from PIL import Image

    entry = run.results().get(name)
    if not isinstance(entry, dict) or entry.get("key") != key or entry.get("steps") != run.progress().steps:
        return None
    try:
        pictures = {}
        for file in entry["pictures"]:
            with Image.open(run.folder / Path(file).name) as picture:
                picture.load()
                pictures[file.removeprefix(f"{name}-").removesuffix(f"{run.suffix}.png")] = picture.copy()
        curves = {title: (_reals(x), _reals(y)) for title, (x, y) in entry["curves"].items()}
        return Measured(dict(zip(entry["values"], _reals(entry["values"].values()), strict=True)), curves, pictures)
    except (OSError, KeyError, TypeError, ValueError, AttributeError, SyntaxError):
        return None  # edited, or an image was removed: it is measured again


def _reals(values: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def check_evaluations(run: Run, preset: Preset, only: Collection[str] = (), root: Path | str | None = None) -> None:
    """Raise SetsupError unless a preset trains the same as a run, and has the named evaluations and factors."""
    if differing := run.difference(preset):
        listed = ", ".join(f"{name} {old!r} instead of {new!r}" for name, (old, new) in differing.items())
        raise SetsupError(
            f"{preset.name} differs from the preset of the run {run.folder}: {listed}{_advice(differing)}"
        )
    for name in only:
        if name not in preset.evaluations:
            raise SetsupError(f"{preset.name} has no evaluation named {name!r}{did_you_mean(name, preset.evaluations)}")
    chosen = {name: evaluation for name, evaluation in preset.evaluations.items() if not only or name in only}
    for name, evaluation in chosen.items():
        require_modules(f"the evaluation {name!r} of {preset.name} needs", *_names(evaluation, "needs"))
    if run.preset.data is None:
        return
    asked = {name: _names(evaluation, "factors") for name, evaluation in chosen.items()}
    if not any(asked.values()):
        return
    table = run.factors(root)
    for name, factors in asked.items():
        for factor in factors:
            if factor not in table:
                raise FactorError(
                    f"evaluation {name!r} of {preset.name} uses the factor {factor!r}, which the training data of "
                    f"{run.folder} do not have{did_you_mean(factor, table.names)}"
                )


def _names(evaluation: Evaluation, attribute: str) -> tuple[str, ...]:
    """Names in an attribute of an evaluation, `factors` or `needs`."""
    names = getattr(evaluation, attribute, ())
    return names if isinstance(names, tuple) and all(isinstance(name, str) for name in names) else ()


def _advice(differing: Mapping[str, tuple[Any, Any]]) -> str:
    """How to give a preset of the user's own the settings of a run, if nothing else differs."""
    if not all(name == "steps" or (name.count(".") == 1 and not name.startswith("data.")) for name in differing):
        return ""  # another method or other data
    given: dict[str, list[str]] = {}
    for name, (_, held) in differing.items():
        head, dot, inner = name.partition(".")
        value = tuple(held) if isinstance(held, list) else held
        given.setdefault(head, []).append(f"{inner}={value!r}" if dot else repr(value))
    changes = (
        f"{head}=replace(preset.{head}, {', '.join(values)})" if head != "steps" else f"steps={values[0]}"
        for head, values in given.items()
    )
    return f"; give a preset in your own file the settings of the run with replace(preset, {', '.join(changes)})"
