"""Images that show a rotation as nine grey values, and methods that read it: embeddings whose nearest pose is known."""

from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule
from scipy.spatial.transform import Rotation

import setsup
from setsup.datasets import Dataset
from tests.experiments.numbered import Held

__all__ = ["ReadsPose", "as_images", "of_rotations", "posed", "random_rotations"]


def random_rotations(count: int, seed: int = 0) -> np.ndarray:
    """Rotations, uniform."""
    return Rotation.random(count, random_state=seed).as_matrix()


def as_images(rotations: np.ndarray) -> np.ndarray:
    """Images (n, 3, 3, 1) uint8."""
    return np.rint(127.5 * (rotations + 1)).astype(np.uint8)[..., None]


def of_rotations(rotations: np.ndarray, name: str = "posed") -> Dataset:
    """A dataset with the modality of rotations."""
    arrays = {"image": as_images(np.nan_to_num(rotations)), "rotation": rotations.astype(np.float32)}
    return setsup.from_arrays(arrays, {"number": np.arange(len(rotations))}, name=name)


class ReadsPose(LightningModule):
    """Embeds an image as the rotation that it shows; the cosine of two is then (tr RᵀS) / 3, least far is nearest."""

    def __init__(self, named: bool = False, turned: bool = False) -> None:
        super().__init__()
        self.named, self.turned = named, turned

    def embed(self, batch: Any) -> Any:
        found = (batch["image"].float() / 127.5 - 1).flatten(2)
        if self.turned:
            found = found * torch.tensor([-1.0, -1.0, 1.0] * 3)
        return {"embedding": found, "rotation": found} if self.named else found


class Settings:
    """Builds a method that exchanges front and back, in place of one without training."""

    def __init__(self, named: bool = False) -> None:
        self.named = named

    def build(self, table: Any, generator: Any) -> LightningModule:
        return ReadsPose(self.named, turned=True)


def posed(codebook: Dataset, test: Dataset, named: bool = False, **options: Any) -> dict[str, Any]:
    """Options of a trained run with both datasets."""
    return {"datasets": {"codebook": Held(codebook), "test": Held(test)}, "config": Settings(named), **options}
