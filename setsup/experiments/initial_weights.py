"""Weights that a training starts from: those of another run, or of a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from lightning.pytorch import LightningModule

from setsup.errors import DataError, SetsupError
from setsup.experiments.preset import Preset
from setsup.experiments.result_cache import digest_weights
from setsup.experiments.runs.checkpoint import open_checkpoint, trained_steps
from setsup.experiments.runs.run_folder import default_folder, read_description
from setsup.experiments.weights import misfit
from setsup.files.expand_user import expanded
from setsup.methods.networks.files import load_state
from setsup.methods.networks.published import is_published, published_place, weights_file

__all__ = ["InitialWeights", "read_initial", "start_from", "unfetched"]


class InitialWeights(NamedTuple):
    """Weights by name, where they are, and the SHA-256 of names, types, shapes and values."""

    path: Path
    weights: Mapping[str, torch.Tensor]
    digest: str


def read_initial(preset: Preset, folder: Path, seed: int, substitute: bool) -> InitialWeights | None:
    """Read the weights that a preset starts from, for a run in a folder; None if it starts from none.

    So does a shrunk preset that names published weights: its networks are others, and nothing is downloaded for it.
    """
    if preset.initial_run is None or (preset.shrunk and is_published(preset.initial_run)):
        return None
    path = _find(preset, preset.initial_run, folder, seed, substitute)
    weights = _of_run(preset, path) if path.is_dir() else _tensors(path)
    return InitialWeights(path, weights, digest_weights(weights))


def unfetched(preset: Preset) -> str | None:
    """Name of the published weights that a preset starts from, if a training would have to fetch them."""
    name = preset.initial_run
    if name is None or preset.shrunk or not is_published(name) or published_place(name).is_file():
        return None
    return name


def start_from(method: LightningModule, initial: InitialWeights) -> None:
    """Give a method its initial weights: by its ``load_initial(weights)``, or else as a state dict of equal names."""
    own = getattr(method, "load_initial", None)
    if callable(own):
        try:
            own(dict(initial.weights))
        except SetsupError:
            raise
        except (KeyError, RuntimeError) as error:
            if f"loading state_dict for {type(method).__name__}:" in str(error):  # all weights, and not some of them
                raise _unfit(method, initial, misfit(method.state_dict(), initial.weights)) from None
            # torch says which weights do not fit below a first line without them
            reason = " ".join(str(error).split("\n", 2)[:2]).replace("\t", "").strip()
            raise _unfit(method, initial, f"{type(error).__name__}: {reason}") from None
        return
    try:
        method.load_state_dict(dict(initial.weights))
    except RuntimeError:
        raise _unfit(method, initial, misfit(method.state_dict(), initial.weights)) from None


def _unfit(method: LightningModule, initial: InitialWeights, reason: str) -> SetsupError:
    name = type(method).__name__
    return SetsupError(
        f"{name} cannot start from {initial.path} ({reason}); pass a run with the same networks, or define "
        f"{name}.load_initial(weights) to choose the weights to load"
    )


def _find(preset: Preset, name: str, folder: Path, seed: int, substitute: bool) -> Path:
    """The folder of a run, or a file, of a published name too; absolute, so that a run resumes from any folder."""
    if is_published(name):
        try:
            return weights_file(name).absolute()
        except DataError as error:
            raise DataError(f"{error}; pass --initial-run PATH") from error
    path = expanded(name)
    if path.exists():
        return path.absolute()
    below = default_folder(preset.name, seed, substitute, preset.shrunk)
    beside = default_folder(name, seed, substitute, preset.shrunk)
    parts = folder.absolute().parts
    top = Path(*parts[: -len(below.parts)]) if parts[-len(below.parts) :] == below.parts else Path.cwd() / "runs"
    if not (top / beside).exists():
        raise DataError(
            f"{preset.name} starts from a run of {name!r} with seed {seed}, but {top / beside} does not exist; train "
            "that preset first, or pass a run folder or a file of weights as --initial-run"
        )
    return top / beside


def _of_run(preset: Preset, folder: Path) -> dict[str, torch.Tensor]:
    """Weights of a finished run, whose preset need not be known here."""
    try:
        asked = read_description(folder)["settings"].get("steps")
        checkpoint = open_checkpoint(folder, checked=True)[1]
    except DataError as error:
        raise DataError(f"{preset.name} cannot start from {folder}: {error}") from None
    steps = trained_steps(checkpoint)
    if not isinstance(asked, int) or steps < asked:
        raise SetsupError(
            f"{preset.name} starts from {folder}, which has completed {steps:,} of {asked:,} steps; finish that "
            "run first"
        )
    weights: dict[str, torch.Tensor] = checkpoint["state_dict"]
    return weights


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    state = load_state(path)
    if not state or not all(isinstance(weight, torch.Tensor) for weight in state.values()):
        raise DataError(
            f"{path} contains no named weights; pass a file with a state_dict, or with a dict that contains one"
        )
    return dict(state)
