"""Orbit triplets, sketched after Tacchetti et al. (arXiv 1703.04775), section 3: what an orbit's images share is near.

Orbits are rooms seen from all sides: all factors but the orientation are equal. Every pair of one orbit in a batch is
an anchor and a positive; the negative is the nearest image of another orbit that is farther than the positive.
"""

from dataclasses import dataclass
from typing import Any

import lightning
import numpy as np
import torch
from torch import nn

from setsup import FactorTable, OrbitSampler
from setsup.datasets import Dataset
from setsup.evaluation import nearest
from setsup.experiments import Data, Measured, Preset, TrainedRun
from setsup.methods.networks import OverImages

ORBIT = ("floor_hue", "wall_hue", "object_hue", "scale", "shape")


@dataclass(frozen=True)
class Orbits:
    """Some orbits a step, and some of their images."""

    sets: int = 8
    size: int = 4

    def build(self, dataset: Dataset, seed: int) -> OrbitSampler:
        return OrbitSampler(dataset.factors, ORBIT, sets=self.sets, size=self.size, seed=seed)


class OrbitTriplets(lightning.LightningModule):
    """Triplet loss over all pairs of a batch, with semi-hard negatives from one matrix of distances."""

    def __init__(self, width: int, margin: float, rate: float) -> None:
        super().__init__()
        self.margin, self.rate = margin, rate
        layers = nn.AvgPool2d(4), nn.Flatten(), nn.Linear(768, 128), nn.ReLU(), nn.Linear(128, width)
        self.encoder = OverImages(3, 64, 64, nn.Sequential(*layers))

    def embed(self, batch: Any) -> torch.Tensor:
        return nn.functional.normalize(self.encoder(batch["image"]), dim=-1)

    def loss(self, batch: Any) -> torch.Tensor:
        embedded, mask = self.embed(batch).flatten(0, 1), batch["mask"]
        orbit = torch.arange(len(mask), device=self.device)[:, None].expand_as(mask).flatten()
        here = mask.flatten()
        distances = torch.cdist(embedded, embedded).square()
        same = orbit[:, None] == orbit
        anchor, positive = (same & here[:, None] & here & ~torch.eye(len(orbit), dtype=torch.bool)).nonzero().T
        to_positive, to_others = distances[anchor, positive], distances[anchor]
        negative = ~same[anchor] & here
        farther = to_others.masked_fill(~negative | (to_others <= to_positive[:, None]), torch.inf).amin(1)
        farthest = to_others.masked_fill(~negative, -torch.inf).amax(1)
        to_negative = torch.where(farther.isfinite(), farther, farthest)
        return (to_positive + self.margin - to_negative).relu().mean()

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), self.rate)


@dataclass(frozen=True)
class OrbitTripletsSettings:
    """Settings of the method."""

    width: int = 32
    margin: float = 0.2
    rate: float = 1e-3

    def build(self, table: FactorTable, generator: torch.Generator) -> OrbitTriplets:
        return OrbitTriplets(self.width, self.margin, self.rate)


@dataclass(frozen=True)
class OneShot:
    """Accuracy of the nearest of one labelled image a class, averaged over re-splits."""

    factor: str = "wall_hue"
    samples: int = 400
    splits: int = 10

    def measure(self, trained: TrainedRun) -> Measured:
        rows = trained.sample(self.samples)
        embedded, labels = trained.embed(rows=rows), trained.dataset.factors.codes(self.factor, rows)
        dice = np.random.default_rng(trained.seed)
        found = []
        for _ in range(self.splits):
            one = np.array([dice.choice(np.flatnonzero(labels == label)) for label in np.unique(labels)])
            rest = np.setdiff1d(np.arange(len(rows)), one)
            hit = labels[one][nearest(embedded[rest], embedded[one])[0][:, 0]]
            found.append(np.mean(hit == labels[rest]))
        return Measured({"one-shot accuracy": float(np.mean(found)), "spread": float(np.std(found))})


PRESETS = [
    Preset(
        name="sketch/orbit-triplets",
        shows="orbits: images of a room from all sides",
        data=Data("shapes3d-procedural", where="scale == 0.75 and shape == 'cube'"),
        sampler=Orbits(),
        method=OrbitTripletsSettings(),
        steps=10,
        evaluations={"oneshot": OneShot()},
    )
]
