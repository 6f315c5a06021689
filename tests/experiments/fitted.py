"""Presets whose method takes the shape of its images from the data, and whose settings have short names."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from lightning.pytorch import LightningModule

from setsup.errors import SetsupError
from setsup.experiments import Data, Measured, Preset, TrainedRun
from setsup.samplers import OrbitSampler

__all__ = ["HALVED", "PRESETS", "WHOLE", "FlatSettings", "Halve", "Orbits"]


class Flat(LightningModule):
    """One dense layer over all numbers of an image."""

    def __init__(self, image: tuple[int, int, int], width: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(math.prod(image), width)

    def embed(self, batch: Any) -> torch.Tensor:
        found: torch.Tensor = self.layer(batch["image"].flatten(2).float() / 255)
        return found

    def loss(self, batch: Any) -> torch.Tensor:
        return self.embed(batch).var(dim=1).mean()

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        return self.loss(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 1e-3)


@dataclass(frozen=True, kw_only=True)
class FlatSettings:
    """Settings of :class:`Flat`.

    Attributes
    ----------
    image : tuple of int, optional
        Shape of its images.
    hidden : int, optional
        Nothing reads it, and no data complete it.

    """

    orbit: tuple[str, ...] = field(default=("shape",), metadata={"option": "orbit"})
    image: tuple[int, int, int] | None = None
    width: int = 2
    hidden: int | None = None

    def fit_to(self, batch: Any) -> "FlatSettings":
        return replace(self, image=self.image or tuple(batch["image"].shape[-3:]))

    def build(self, table: Any, generator: torch.Generator) -> Flat:
        if self.image is None:
            raise SetsupError("the shape of images is not known")
        return Flat(self.image, self.width)


@dataclass(frozen=True, kw_only=True)
class Orbits:
    """Settings of orbits.

    Attributes
    ----------
    orbit : tuple of str
        Factors that members share.
    canonical : str, optional
        The canonical member.

    """

    orbit: tuple[str, ...] = field(default=("shape",), metadata={"option": "orbit"})
    canonical: str | None = field(default=None, metadata={"option": "canonical"})
    size: int = 3

    def build(self, dataset: Any, seed: int) -> OrbitSampler:
        parts: dict[str, Any] = {"sets": 2, "size": self.size, "seed": seed, "values": "independent"}
        return OrbitSampler(dataset.factors, self.orbit, canonical=self.canonical, **parts)

    def shrunk(self) -> "Orbits":
        return replace(self, size=2)


@dataclass(frozen=True)
class Halve:
    """Every other row and column of pixels."""

    def build(self, dataset: Any, seed: int) -> Any:
        return _halve


def _halve(batch: Any) -> Any:
    return {**batch, "image": batch["image"][..., ::2, ::2]}


@dataclass(frozen=True)
class Length:
    """How many numbers the untrained and the trained layer have."""

    def measure(self, trained: TrainedRun) -> Measured:
        layers = {"trained": trained.method, "untrained": trained.untrained}
        return Measured({name: one.layer.weight.numel() for name, one in layers.items()})  # type: ignore[union-attr, operator]


WHOLE = Preset(
    name="fitted/whole",
    shows="nothing",
    data=Data("shapes3d-procedural", where="scale == 0.75 and floor_hue == 0.5 and orientation == 0"),
    sampler=Orbits(),
    method=FlatSettings(),
    steps=2,
    evaluations={"length": Length()},
)
HALVED = replace(WHOLE, name="fitted/halved", augmentation=Halve(), eval_transform=Halve())
PRESETS = [WHOLE, HALVED]
