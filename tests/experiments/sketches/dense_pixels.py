"""Stable single-pixel contrast, sketched after Pogorelyuk et al. (arXiv 2512.04970): a feature for every pixel.

Two views of a room; a pixel and its partner, which shows the same point, have near features, a pixel and a random one
features at distance 1/2. Views are rows of a folder that `setsup render room --matches N` wrote: `--data.name FOLDER`.
"""

from dataclasses import dataclass
from typing import Any

import lightning
import numpy as np
import torch
from torch import nn

import setsup
from setsup.correspondence import PixelPairSampler, stored
from setsup.datasets import Dataset
from setsup.experiments import Data, Measured, Preset, TrainedRun
from setsup.loading.views import SpatialPairs


@dataclass(frozen=True)
class Views:
    """Two views of a room, some rooms a step."""

    pairs: int = 2

    def build(self, dataset: Dataset, seed: int) -> PixelPairSampler:
        return PixelPairSampler(dataset, pairs=self.pairs, seed=seed)


@dataclass(frozen=True)
class Partners:
    """Partners of pixels, which the folder has."""

    keep: float = 0.25

    def build(self, dataset: Dataset, seed: int) -> SpatialPairs:
        return SpatialPairs(dataset, keep=self.keep, match=stored, seed=seed)


class Pixels(lightning.LightningModule):
    """A small network without strides; the within-pair loss with the maximum norm."""

    def __init__(self, width: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.network = nn.Sequential(
            *(nn.Conv2d(3, 16, 5, padding=2), nn.SiLU(), nn.Conv2d(16, 16, 5, padding=2), nn.SiLU()),
            nn.Conv2d(16, width, 1),
        )

    def features(self, images: torch.Tensor) -> torch.Tensor:
        return self.network(images.float() / 255)  # (n, width, h, w)

    def embed(self, batch: Any) -> torch.Tensor:
        images = batch["image"]
        maps = self.features(images.flatten(0, 1)).movedim(1, -1)
        return maps.unflatten(0, images.shape[:2])  # (sets, size, h, w, width)

    def loss(self, batch: Any) -> torch.Tensor:
        first, second = (self.features(batch[name]).flatten(2) for name in ("view_1", "view_2"))
        partner, positive, valid = (batch[name] for name in ("partner", "positive", "valid"))
        second = second.gather(2, partner[:, None].expand_as(first))
        distance = (first - second).abs().amax(1) / 2  # (pairs, pixels)
        share = (positive & valid).sum(1, keepdim=True) / valid.sum(1, keepdim=True)
        return (torch.where(positive, distance, -distance) + distance**2 + (1 - share) / 4)[valid].mean()

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), self.rate, weight_decay=1e-6)


@dataclass(frozen=True)
class PixelsSettings:
    """Settings of the method."""

    width: int = 8
    rate: float = 1e-3

    def build(self, table: setsup.FactorTable, generator: torch.Generator) -> Pixels:
        return Pixels(self.width, self.rate)


@dataclass(frozen=True)
class Matching:
    """How near the pixel with the nearest feature is to the true partner, in pixels; and chance."""

    pairs: int = 2
    pixels: int = 50

    def measure(self, trained: TrainedRun) -> Measured:
        dataset = trained.dataset
        views = PixelPairSampler(dataset, pairs=self.pairs, seed=trained.seed)
        traced = SpatialPairs(dataset, keep=1.0, match=stored, seed=trained.seed)
        batch = next(iter(setsup.loader(dataset, views, transform=traced, workers=0)))
        maps = trained.embed(rows=batch["indices"].flatten().numpy())  # (2 · pairs, h, w, width)
        maps = maps.reshape(self.pairs, 2, -1, maps.shape[-1])
        width = batch["view_1"].shape[-1]
        errors: dict[str, list[float]] = {"nearest feature": [], "chance": []}
        for (first, second), partner, positive in zip(maps, batch["partner"], batch["positive"], strict=True):
            some = np.flatnonzero(positive.numpy())[: self.pixels]
            found = np.abs(first[some, None] - second).max(-1).argmin(1)
            anywhere = np.arange(len(some)) * 7919 % len(second)
            for name, guess in (("nearest feature", found), ("chance", anywhere)):
                offset = np.stack(np.divmod(guess, width)) - np.stack(np.divmod(partner.numpy()[some], width))
                errors[name] += np.hypot(*offset).tolist()
        return Measured({f"{name}: mean error": float(np.mean(found)) for name, found in errors.items()})


PRESETS = [
    Preset(
        name="sketch/dense-pixels",
        shows="features of pixels that show the same point are near",
        data=Data("rooms", modalities=("image",)),
        sampler=Views(),
        augmentation=Partners(),
        method=PixelsSettings(),
        steps=10,
        evaluations={"matching": Matching()},
    )
]
