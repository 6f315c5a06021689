"""Images that methods with ``rectify`` decode, beside those that they saw."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from setsup.errors import SetsupError
from setsup.experiments.data import image_modality
from setsup.experiments.embedding import embed_all
from setsup.experiments.evaluations.drawn_orbits import DrawnOrbits
from setsup.experiments.trained_run import TrainedRun

__all__ = ["recovery_errors", "rectified"]

Reals = npt.NDArray[np.float32]
Errors = npt.NDArray[np.float64]

_ROWS = 512  # whose images are kept at a time
_LARGEST = {torch.uint8: 255.0, torch.uint16: 65_535.0}


def rectified(trained: TrainedRun, rows: npt.NDArray[np.int64]) -> tuple[Reals, Reals]:
    """Images of rows (n,) as a method sees them, and what it decodes; both (n, C, H, W) float32 in [0, 1].

    SetsupError where the method has no decoder, or gives anything else.
    """
    dataset = trained.dataset
    arrays: dict[str | None, Reals] = {}

    def allocate(name: str | None, shape: tuple[int, ...]) -> Reals:
        return arrays.setdefault(name, np.empty(shape, np.float32))

    pair = Rectification(trained.method, image_modality(dataset))
    embed_all(pair, dataset, rows, allocate, **trained.embedding(dataset))
    return arrays["seen"], arrays["rectified"]


def recovery_errors(trained: TrainedRun, drawn: DrawnOrbits) -> dict[str, Errors]:
    """Mean squared errors per pixel of the canonical image of each drawn orbit, (orbits,) by what is compared with it.

    ``rectified``: what the method decodes of a member; ``input``: the member itself, both averaged over the drawn
    members without the canonical one; ``mean image``: the mean of these members. NaN of orbits without a canonical
    row or other members.
    """
    errors = {name: np.full(len(drawn), np.nan) for name in ("rectified", "input", "mean image")}
    wanted = np.unique(drawn.orbits[drawn.others])
    sizes = np.bincount(drawn.orbits, minlength=len(drawn))[wanted] + 1
    for part in np.split(wanted, np.flatnonzero(np.diff(np.cumsum(sizes) // _ROWS)) + 1):
        rows = np.concatenate([[drawn.canonical[orbit], *drawn.members(orbit)] for orbit in part])
        seen, decoded = rectified(trained, rows)
        at = 0
        for orbit in part:
            canonical, members = seen[at], slice(at + 1, at + 1 + len(drawn.members(orbit)))
            errors["rectified"][orbit] = _error(decoded[members], canonical)
            errors["input"][orbit] = _error(seen[members], canonical)
            errors["mean image"][orbit] = _error(seen[members].mean(axis=0, dtype=np.float64), canonical)
            at = members.stop
    return errors


def _error(images: npt.NDArray[Any], canonical: Reals) -> float:
    return float(np.square(images.astype(np.float64) - canonical).mean())


class Rectification(nn.Module):
    """What a method sees and what it decodes, as two embeddings."""

    def __init__(self, method: nn.Module, modality: str) -> None:
        super().__init__()
        self.method, self.modality = method, modality

    def embed(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        who = f"{type(self.method).__name__}.rectify"
        seen = _unit(batch[self.modality])
        rectify: Callable[[Mapping[str, Any]], Any] = self.method.rectify  # type: ignore[assignment]  # not a Tensor
        given = rectify(batch)
        if not isinstance(given, Tensor) or given.shape != seen.shape:
            form = tuple(given.shape) if isinstance(given, Tensor) else f"a {type(given).__name__}"
            raise SetsupError(
                f"{who} must return one image of the same size for each image, not {form} for images of shape "
                f"{tuple(seen.shape)}"
            )
        for name, images in (("the input images", seen), (f"the output of {who}", given)):
            low, high = images.amin().item(), images.amax().item()
            if not -1e-4 <= low <= high <= 1 + 1e-4:
                raise SetsupError(
                    f"{name} must have values in [0, 1] to compute errors, not from {low:.3g} to {high:.3g}"
                )
        return {"seen": seen, "rectified": given}


def _unit(images: Tensor) -> Tensor:
    largest = _LARGEST.get(images.dtype)
    return images.float() if largest is None else images.float() / largest
