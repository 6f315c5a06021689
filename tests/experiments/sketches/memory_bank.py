"""Contrastive multiview coding, sketched after Tian et al. (arXiv 1906.05849): L against ab, with memory banks.

Two encoders. The positive and the negatives of a view are rows of the other view's bank, which several processes update
at the rows of their own batches.
"""

from dataclasses import dataclass
from typing import Any

import lightning
import numpy as np
import torch
from torch import Tensor, nn

from setsup import EpochSampler, FactorTable
from setsup.datasets import Dataset
from setsup.experiments import Data, Preset
from setsup.experiments.evaluations import Retrieval
from setsup.loading.views import ColorViews
from setsup.methods.rows import RowState
from setsup.random import fold, randint_below, stream_key, uniform

OTHER = {"L": "ab", "ab": "L"}


@dataclass(frozen=True)
class Rows:
    """Each row once an epoch."""

    size: int = 16

    def build(self, dataset: Dataset, seed: int) -> EpochSampler:
        return EpochSampler(dataset.factors, self.size, seed=seed)


@dataclass(frozen=True)
class Lab:
    """Views L and ab of the same pixels."""

    def build(self, dataset: Dataset, seed: int) -> ColorViews:
        return ColorViews("lab")


class Banks(lightning.LightningModule):
    """Noise-contrastive estimation with a bank of features for each view."""

    def __init__(self, rows: int, width: int, negatives: int, temperature: float, rate: float, seed: int) -> None:
        super().__init__()
        self.rows, self.negatives, self.temperature, self.rate = rows, negatives, temperature, rate
        self.keys = {name: stream_key(seed, name) for name in (*OTHER, "negatives")}
        self.encoders = nn.ModuleDict()
        self.banks = nn.ModuleDict()
        for name, channels in (("L", 1), ("ab", 2)):
            layers = nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64 * channels, 32), nn.ReLU(), nn.Linear(32, width)
            self.encoders[name] = nn.Sequential(*layers)
            self.banks[name] = RowState(rows, width, initial=lambda at, key=self.keys[name]: features(at, key, width))
        self.register_buffer("normalisers", torch.zeros(2))  # Z of each view, 0 before the first batch
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    def embed(self, batch: Any) -> dict[str, Tensor]:
        found = {name: encoder(batch[name].flatten(0, 1)) for name, encoder in self.encoders.items()}
        return {name: nn.functional.normalize(z, dim=-1).unflatten(0, batch["mask"].shape) for name, z in found.items()}

    def loss(self, batch: Any) -> Tensor:
        rows, found = batch["indices"].flatten(), []
        noise = self.negatives / self.rows  # m · Pn
        for at, (name, z) in enumerate(self.embed(batch).items()):
            scores = self.banks[OTHER[name]].scores(z.flatten(0, 1), self.candidates(rows))
            ratios = (scores / self.temperature).exp()
            if not self.normalisers[at]:
                self.normalisers[at] = self.rows * self.all_gather(ratios.detach().mean()).mean()
            p = ratios / self.normalisers[at].clone()  # the other one may be set before the backward pass
            positive = (p[:, 0] / (p[:, 0] + noise + 1e-7)).log()
            found.append(-positive - (noise / (p[:, 1:] + noise + 1e-7)).log().sum(1))
        return torch.stack(found).sum(0).mean()

    def candidates(self, rows: Tensor) -> Tensor:
        """The row itself and its negatives, (n, 1 + negatives): functions of the step and the row, not of the rank."""
        keys = fold(fold(self.keys["negatives"], int(self.updates)), rows.cpu().numpy())
        drawn = randint_below(fold(keys[:, None], np.arange(self.negatives)), self.rows)
        return torch.cat([rows[:, None], torch.from_numpy(drawn).to(rows)], 1)

    def training_step(self, batch: Any, number: int) -> Tensor:
        loss = self.loss(batch)
        self.log("loss", loss)
        rows = batch["indices"]
        for name, z in self.embed(batch).items():
            moved = (self.banks[name].gather(rows) + z.detach()) / 2  # momentum 0.5
            self.banks[name].update(rows, nn.functional.normalize(moved, dim=-1))
        self.updates += 1
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), self.rate, momentum=0.9, weight_decay=1e-4)


def features(rows: Tensor, key: int, width: int) -> Tensor:
    """Initial features of rows, (n, width): uniform, of length about 1."""
    bits = fold(fold(key, rows.numpy())[:, None], np.arange(width))
    return torch.from_numpy(2 * uniform(bits) - 1).float() * (3 / width) ** 0.5


@dataclass(frozen=True)
class BanksSettings:
    """Settings of the method."""

    width: int = 16
    negatives: int = 64
    temperature: float = 0.07
    rate: float = 0.03

    def build(self, table: FactorTable, generator: torch.Generator) -> Banks:
        seed = generator.initial_seed() % 2**63
        return Banks(len(table), self.width, self.negatives, self.temperature, self.rate, seed)


PRESETS = [
    Preset(
        name="sketch/memory-bank",
        shows="views of one image are near",
        data=Data("shapes3d-procedural", where="scale == 0.75 and floor_hue == 0 and shape == 'cube'"),
        sampler=Rows(),
        augmentation=Lab(),
        eval_transform=Lab(),
        method=BanksSettings(),
        steps=10,
        evaluations={name: Retrieval(factors=("wall_hue",), samples=200, embedding=name) for name in OTHER},
    )
]
