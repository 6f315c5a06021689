"""Weights that a training starts from: those of another run, or of a file."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning.pytorch import LightningModule

from setsup.errors import DataError, SetsupError
from setsup.experiments.preset import Preset
from setsup.experiments.registry import find_named
from setsup.experiments.run_folder import default_folder, open_run
from setsup.experiments.weights import misfit
from setsup.files.expand_user import expanded
from setsup.methods.networks.files import load_weights_file

__all__ = ["InitialWeights", "read_initial", "start_from"]


class InitialWeights(NamedTuple):
    """Weights by name, where they are, and the SHA-256 of names, types, shapes and values."""

    path: Path
    weights: Mapping[str, torch.Tensor]
    digest: str


def read_initial(preset: Preset, folder: Path, seed: int, substitute: bool) -> InitialWeights | None:
    """Read the weights that a preset starts from, for a run in a folder; None if it starts from none."""
    if preset.initial_run is None:
        return None
    path = _find(preset, preset.initial_run, folder, seed, substitute)
    if path.is_dir():
        run = _open(preset, path)
        if not run.finished:
            steps, asked = run.progress().steps, run.preset.steps
            raise SetsupError(
                f"{preset.name} starts from {path}, which is at step {steps:,} of {asked:,}: finish that run first"
            )
        weights = run.weights()[1]
    else:
        weights = _tensors(path)
    return InitialWeights(path, weights, _digest(weights))


def start_from(method: LightningModule, initial: InitialWeights) -> None:
    """Give a method its initial weights: by its ``load_initial(weights)``, or else as a state dict of equal names."""
    own = getattr(method, "load_initial", None)
    if callable(own):
        try:
            own(dict(initial.weights))
        except SetsupError:
            raise
        except (KeyError, RuntimeError) as error:
            reason = str(error).partition("\n")[0]
            raise _unfit(method, initial, f"{type(error).__name__}: {reason}") from None
        return
    try:
        method.load_state_dict(dict(initial.weights))
    except RuntimeError:
        raise _unfit(method, initial, misfit(method.state_dict(), initial.weights)) from None


def _unfit(method: LightningModule, initial: InitialWeights, reason: str) -> SetsupError:
    name = type(method).__name__
    return SetsupError(
        f"{name} cannot start from {initial.path} ({reason}): name a run of the same networks, or give {name} a "
        "load_initial(weights) that takes what it needs"
    )


def _find(preset: Preset, name: str, folder: Path, seed: int, substitute: bool) -> Path:
    """The folder of a run, or a file; absolute, so that a run can be resumed from any folder."""
    path = expanded(name)
    if path.exists():
        return path.absolute()
    if (other := find_named(name)) is None:
        raise DataError(
            f"{preset.name} starts from {name!r}, which is neither a preset nor a run folder or file of weights: give "
            "--initial-run FOLDER"
        )
    below = default_folder(preset.name, seed, substitute, preset.shrunk)
    beside = default_folder(other.name, seed, substitute, preset.shrunk)
    parts = folder.absolute().parts
    top = Path(*parts[: -len(below.parts)]) if parts[-len(below.parts) :] == below.parts else Path.cwd() / "runs"
    if not (top / beside).exists():
        raise DataError(
            f"{preset.name} starts from a run of {name} with seed {seed}, and {top / beside} is not there: train it "
            f"first, `setsup train {name}`, or give --initial-run FOLDER"
        )
    return top / beside


def _open(preset: Preset, folder: Path) -> Any:
    try:
        return open_run(folder)
    except SetsupError as error:
        raise type(error)(f"{preset.name} cannot start from {folder}: {error}") from None


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    found = load_weights_file(path)
    while isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not found or not all(isinstance(one, torch.Tensor) for one in found.values()):
        raise DataError(f"{path} holds no weights by name: pass the file of a state_dict, or of a dict that has one")
    return dict(found)


def _digest(weights: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 of what the weights are, whatever file they are kept in."""
    found = sha256()
    for name in sorted(weights):
        value = weights[name].detach().cpu().contiguous()
        found.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        if value.numel():
            found.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
