"""Weights of a run's checkpoint, loaded into its method."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule

from setsup.checks import check_arguments
from setsup.errors import SetsupError
from setsup.experiments.configs import build_method
from setsup.experiments.preset import Preset
from setsup.experiments.runs.run import Run
from setsup.experiments.trained_run import TrainedRun

__all__ = ["build_trained", "load_trained", "load_weights", "misfit"]


def load_trained(
    run: Run, *, root: Path | str | None = None, device: str | None = None, preset: Preset | None = None
) -> TrainedRun:
    """Load the method of a run, with the weights of its checkpoint.

    Parameters
    ----------
    run : Run
        Trained, at least in part.
    root : Path or str, optional
        Folder of the published files; the one that the run was trained from by default.
    device : str, optional
        Where networks run: a GPU if there is one, by default.
    preset : Preset, optional
        One that trains the same, for its evaluations; the run's by default.

    Raises
    ------
    DataError
        When there is no checkpoint, or it is damaged.
    SetsupError
        When the weights are not those of the preset's networks.

    """
    check_arguments(load_trained, locals())
    # a preset that trains the same may say that the files lie elsewhere: what the run was given last counts
    preset = run.preset if preset is None else run.complete(replace(preset, data=run.preset.data))
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if preset.method is None:
        return TrainedRun(preset.name, LightningModule(), run.seed, run.folder, device=device)
    root = root or run.description.get("root")
    run.state()  # says what is missing before anything is opened
    table = run.factors(root)
    method = build_method(preset.method, table, run.seed)
    load_weights(method, run)
    parts: dict[str, Any] = {"root": root, "substitute": run.substitute, "device": device, "table": table}
    parts["precision"] = run.description["config"]["precision"]
    return build_trained(preset, method.eval().to(device), run.seed, run.folder, **parts)


def build_trained(preset: Preset, method: LightningModule, seed: int, folder: Path, **parts: Any) -> TrainedRun:
    """A method as evaluations get it, with all that they read of its preset; `parts` are further attributes."""
    return TrainedRun(
        preset.name,
        method,
        seed,
        folder,
        data=preset.data,
        config=preset.method,
        datasets=preset.datasets,
        missing=preset.missing,
        eval_transform=preset.eval_transform,
        augmentation=preset.augmentation,
        **parts,
    )


def load_weights(method: LightningModule, run: Run) -> Path:
    """Load a run's weights into a method and return the path of the checkpoint; SetsupError names what does not fit."""
    path, weights = run.weights()
    try:
        method.load_state_dict(weights)
    except (RuntimeError, TypeError):  # whose sentences have many lines
        since = "the file of the preset has changed since the training; " if run.file_changed else ""
        raise SetsupError(
            f"the weights in {path} do not fit the method of {run.preset.name} "
            f"({misfit(method.state_dict(), weights)}); {since}restore the method that the weights were trained with, "
            "or train again in another folder"
        ) from None
    return path


def misfit(expected: Mapping[str, Any], weights: object) -> str:
    """The first weight of a method that a checkpoint does not fit, in words."""
    if not isinstance(weights, Mapping):
        return "they are unnamed"
    for name, wanted in expected.items():
        if name not in weights:
            return f"{name} is missing"
        shapes = [_shape(weights[name]), _shape(wanted)]
        if None not in shapes and shapes[0] != shapes[1]:
            return f"{name} has the shape {shapes[0]} in the file, and {shapes[1]} in the method"
    more = [name for name in weights if name not in expected]
    return f"the method has no {more[0]!r}" if more else "they belong to another kind of method"


def _shape(weight: object) -> tuple[int, ...] | None:
    if isinstance(weight, torch.Tensor) and not torch.nn.parameter.is_lazy(weight):
        return tuple(weight.shape)
    return None
