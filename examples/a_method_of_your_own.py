"""A method of your own: half of a set finds its other half.

setsup train a_method_of_your_own.py. Needs: pip install ".[torch,train]".
"""

from dataclasses import dataclass

import lightning
import numpy as np
import torch
from torch import nn

from setsup import FactorTable
from setsup.evaluation import nearest
from setsup.experiments import Data, Measured, Preset, Sets, TrainedRun
from setsup.methods.networks import OverImages


class Halves(lightning.LightningModule):
    """Learns what the images of a set share."""

    def __init__(self, settings: "HalvesSettings") -> None:
        super().__init__()
        self.settings = settings
        layers = nn.AvgPool2d(8), nn.Flatten(), nn.Linear(192, 128), nn.ReLU(), nn.Linear(128, settings.width)
        self.encoder = OverImages(3, 64, 64, nn.Sequential(*layers))

    def embed(self, batch: dict) -> torch.Tensor:
        return nn.functional.normalize(self.encoder(batch["image"]), dim=-1)  # (sets, size, width)

    def loss(self, batch: dict) -> torch.Tensor:
        first, second = self.embed(batch).unflatten(1, (2, -1)).mean(2).unbind(1)  # (sets, width) each
        own = torch.arange(len(first), device=self.device)
        return nn.functional.cross_entropy(first @ second.T / self.settings.temperature, own)

    def training_step(self, batch: dict, number: int) -> torch.Tensor:
        self.log("loss", loss := self.loss(batch))
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), self.settings.rate)


@dataclass(frozen=True)
class HalvesSettings:
    """Settings of the method, such as --method.rate 1e-3."""

    width: int = 32
    temperature: float = 0.1
    rate: float = 1e-2

    def build(self, table: FactorTable, generator: torch.Generator) -> Halves:
        return Halves(self)


@dataclass(frozen=True)
class Neighbours:
    """How often the nearest other image has the same value of a factor."""

    factors: tuple[str, ...]
    samples: int = 2_000

    def measure(self, trained: TrainedRun) -> Measured:
        rows = trained.sample(self.samples)
        embedded = trained.embed(rows=rows)
        found = nearest(embedded, embedded, own=np.arange(len(rows)))[0][:, 0]
        codes = {name: trained.dataset.factors.codes(name, rows) for name in self.factors}
        return Measured({name: np.mean(of == of[found]) for name, of in codes.items()})


PRESETS = [
    Preset(
        name="mine/halves",
        shows="inactive factors of sets are found, active ones are lost",
        data=Data("shapes3d-procedural"),
        sampler=Sets(inactive=("wall_hue", "floor_hue"), size=16, sets=8),
        method=HalvesSettings(),
        steps=100,
        evaluations={"neighbours": Neighbours(("wall_hue", "floor_hue", "object_hue", "shape", "orientation"))},
    )
]
