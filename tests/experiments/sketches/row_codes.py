"""The first stage of LORD, sketched after Gabbay and Hoshen (arXiv 1906.11796): a code for each training image.

Codes, embeddings of the classes and the generator are optimised together; noise keeps codes from holding what the class
already says. Images that training never saw have no code: a second stage trains an encoder of them.
"""

from dataclasses import dataclass
from typing import Any

import lightning
import torch
from torch import Tensor, nn

from setsup import EpochSampler, FactorTable
from setsup.datasets import Dataset
from setsup.experiments import Data, Preset
from setsup.experiments.evaluations import Probes
from setsup.methods.rows import RowCodes

CLASS = "shape"


@dataclass(frozen=True)
class Rows:
    """Each row once an epoch."""

    size: int = 16

    def build(self, dataset: Dataset, seed: int) -> EpochSampler:
        return EpochSampler(dataset.factors, self.size, seed=seed)


class Lord(lightning.LightningModule):
    """Codes of rows, embeddings of classes, and a generator from both."""

    def __init__(self, table: FactorTable, width: int, sigma: float, decay: float, rate: float) -> None:
        super().__init__()
        self.sigma, self.decay, self.rate = sigma, decay, rate
        self.codes = RowCodes(len(table), width, rate=10 * rate)
        self.classes = nn.Embedding(len(table[CLASS].levels), width)
        self.generator = nn.Sequential(nn.Linear(2 * width, 128), nn.ReLU(), nn.Linear(128, 192), nn.Sigmoid())

    def embed(self, batch: Any) -> Tensor:
        return self.codes(batch["indices"])

    def training_step(self, batch: Any, number: int) -> Tensor:
        codes = self.embed(batch)
        given = torch.cat(
            [codes + self.sigma * torch.randn_like(codes), self.classes(batch["factors"][CLASS].long())], -1
        )
        small = nn.functional.avg_pool2d(batch["image"].flatten(0, 1).float() / 255, 8).flatten(1)
        loss = (self.generator(given).flatten(0, 1) - small).abs().mean() + self.decay * codes.square().mean()
        self.log("loss", loss)
        return loss

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        self.codes.step()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), self.rate)


@dataclass(frozen=True)
class LordSettings:
    """Settings of the method."""

    width: int = 16
    sigma: float = 0.5
    decay: float = 0.001
    rate: float = 1e-3

    def build(self, table: FactorTable, generator: torch.Generator) -> Lord:
        return Lord(table, self.width, self.sigma, self.decay, self.rate)


PRESETS = [
    Preset(
        name="sketch/row-codes",
        shows="codes of images without their class",
        data=Data("shapes3d-procedural", where="scale == 0.75 and floor_hue == 0 and orientation == 0"),
        sampler=Rows(),
        method=LordSettings(),
        steps=30,
        evaluations={"probes": Probes(factors=(CLASS, "wall_hue"), samples=400)},
    )
]
