"""Methods whose loss changes all that validation must restore, and presets that validate them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import nn

from setsup.datasets import Dataset
from setsup.experiments import Preset, Validation
from setsup.experiments.sets import Sets
from setsup.experiments.training.monitoring.held_out import HeldOut
from setsup.experiments.training.monitoring.validation import open_validation
from setsup.experiments.weights import build_trained
from setsup_papers.abc.method import ABC
from setsup_papers.abc.settings import ABCObjective
from tests.experiments.small import FEW, PLAIN, Pooled

__all__ = ["GATHERING", "VALIDATED", "Restless", "hold_out"]


class Restless(ABC):
    """Its loss writes to buffers, puts others in their place, draws random numbers, and logs."""

    def __init__(self, gather: bool = False) -> None:
        layers = nn.Sequential(nn.BatchNorm1d(192), nn.Dropout(0.3), nn.Linear(192, 3))
        super().__init__(ABCObjective(rate=1e-3), layers)
        self.pooled, self.gather = Pooled(), gather
        self.teacher = nn.Parameter(torch.ones(3), requires_grad=False)
        self.mean: torch.Tensor
        self.register_buffer("counts", torch.zeros(2))
        self.register_buffer("mean", torch.zeros(3))

    def embed(self, batch: Any) -> torch.Tensor:
        images = self.pooled(batch["image"])
        found: torch.Tensor = self.encoder(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        return found

    def loss(self, batch: Any) -> torch.Tensor:
        found = super().loss(batch)
        self.counts += 1
        noise = torch.randn(3)  # another one in each process, and buffers may not differ
        self.mean = 0.9 * self.mean + noise * (not self.gather)
        self.teacher.mul_(0.99)
        if self.gather:
            found = found + 0 * self.all_gather(found.detach()).sum()
        self.log("noise", self.mean.sum())
        return found * (1 + 0.01 * torch.rand(())) + 0 * self.teacher.sum()


@dataclass(frozen=True)
class RestlessSettings:
    """Whether all processes take part in its loss."""

    gather: bool = False

    def build(self, table: Any, generator: torch.Generator) -> Restless:
        return Restless(self.gather)


VALIDATED = replace(
    PLAIN,
    name="small/validated",
    method=RestlessSettings(),
    sampler=Sets(inactive=("wall_hue",), size=4),
    data=replace(PLAIN.data, where=FEW),
    validation=Validation(every=5, draws=3, knn=("shape",), rows=60),
)
GATHERING = replace(
    VALIDATED,
    name="small/gathering",
    method=RestlessSettings(gather=True),
    steps=6,
    checkpoint_every=2,
    validation=replace(VALIDATED.validation, every=3),
)


def hold_out(preset: Preset, method: LightningModule, dataset: Dataset, *, substitute: bool = False) -> HeldOut | None:
    """What a training of a preset on a dataset, with the seed 0, would be validated on."""
    assert preset.sampler is not None
    trained = build_trained(preset, method, 0, Path(), table=dataset.factors, substitute=substitute)
    trained.dataset = dataset
    return open_validation(preset.validation, trained, preset.sampler)
