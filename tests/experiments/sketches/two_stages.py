"""Two stages, sketched after DCoDR (Kahana and Hoshen, arXiv 2203.11284): an encoder that contrasts within domains,
and a generator over the frozen encoder of a first run, which is told the domain.

`setsup train two_stages.py:sketch/encoder`, then `setsup train two_stages.py:sketch/generator` starts from the run of
the same seed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import lightning
import torch
from torch import nn

from setsup import DomainSampler, FactorTable, loader
from setsup.datasets import Dataset
from setsup.experiments import Data, Measured, Preset, TrainedRun
from setsup.experiments.evaluations import Probes
from setsup.methods.networks import OverImages
from setsup.methods.recipes import recipe

DOMAIN = "shape"


@dataclass(frozen=True)
class Domains:
    """Some domains a step, the same number of images of each."""

    sets: int = 4
    size: int = 8

    def build(self, dataset: Dataset, seed: int) -> DomainSampler:
        return DomainSampler(dataset.factors, DOMAIN, sets=self.sets, size=self.size, seed=seed)


def encoder(width: int) -> OverImages:
    """A small encoder of bytes or floats."""
    layers = nn.AvgPool2d(4), nn.Flatten(), nn.Linear(768, 128), nn.ReLU(), nn.Linear(128, width)
    return OverImages(3, 64, 64, nn.Sequential(*layers))


class Stage(lightning.LightningModule):
    """What both stages share."""

    rate = 1e-3

    def embed(self, batch: Any) -> torch.Tensor:
        return nn.functional.normalize(self.encoder(batch["image"]), dim=-1)

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return torch.optim.Adam(trained, self.rate)


class DomainContrast(Stage):
    """An image and its augmented copy are near; other images of its domain are far."""

    def __init__(self, width: int, temperature: float) -> None:
        super().__init__()
        self.encoder, self.temperature = encoder(width), temperature

    def loss(self, batch: Any) -> torch.Tensor:
        images, copies = batch["image"], batch["positive_image"]
        found, positive = (nn.functional.normalize(self.encoder(one), dim=-1) for one in (images, copies))
        negatives = found @ found.mT / self.temperature  # (domains, size, size)
        itself = torch.eye(negatives.shape[-1], dtype=torch.bool)
        near = (found * positive).sum(-1, keepdim=True) / self.temperature
        return (torch.cat([near, negatives.masked_fill(itself, -torch.inf)], -1).logsumexp(-1) - near[..., 0]).mean()


class Generator(Stage):
    """Images from frozen embeddings and their domain."""

    def __init__(self, width: int, domains: int) -> None:
        super().__init__()
        self.encoder = encoder(width).requires_grad_(False)
        self.domains = nn.Embedding(domains, 8)
        self.generator = nn.Sequential(nn.Linear(width + 8, 64), nn.ReLU(), nn.Linear(64, 3 * 8 * 8), nn.Sigmoid())

    def load_initial(self, weights: Mapping[str, torch.Tensor]) -> None:
        self.encoder.load_state_dict({name.removeprefix("encoder."): one for name, one in weights.items()})

    def loss(self, batch: Any) -> torch.Tensor:
        given = torch.cat([self.embed(batch), self.domains(batch["factors"][DOMAIN].long())], -1)
        small = nn.functional.avg_pool2d(batch["image"].flatten(0, 1).float() / 255, 8).flatten(1)
        return (self.generator(given).flatten(0, 1) - small).abs().mean()


@dataclass(frozen=True)
class StageSettings:
    """Settings of either stage."""

    stage: str = "encoder"
    width: int = 16
    temperature: float = 0.2

    def build(self, table: FactorTable, generator: torch.Generator) -> Stage:
        if self.stage == "encoder":
            return DomainContrast(self.width, self.temperature)
        return Generator(self.width, len(table[DOMAIN].levels))


@dataclass(frozen=True)
class Positives:
    """One augmented copy of each image, by one of four operations."""

    def build(self, dataset: Dataset, seed: int) -> Any:
        return recipe("dcodr", seed=seed, size=64)


@dataclass(frozen=True)
class Reconstruction:
    """The generator's error on rows of the training data."""

    def measure(self, trained: TrainedRun) -> Measured:
        sampler = Domains().build(trained.dataset, trained.seed)
        batch = next(iter(loader(trained.dataset, sampler, workers=0)))
        return Measured({"L1": trained.method.loss(batch).item()})


SHAPES = Data("shapes3d-procedural", where="scale == 0.75 and floor_hue == 0")
PRESETS = [
    Preset(
        name="sketch/encoder",
        shows="the shape is removed",
        data=SHAPES,
        sampler=Domains(),
        augmentation=Positives(),
        method=StageSettings(),
        steps=10,
        evaluations={"probes": Probes(factors=(DOMAIN, "wall_hue"), samples=300)},
    ),
    Preset(
        name="sketch/generator",
        shows="images from embeddings and shapes",
        data=SHAPES,
        sampler=Domains(),
        method=StageSettings("generator"),
        initial_run="sketch/encoder",
        steps=10,
        evaluations={"reconstruction": Reconstruction()},
    ),
]
