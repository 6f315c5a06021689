"""A method as a user has it in a file: one dense layer with dropout, on the toy MNIST of the tests."""

import os
import signal
from dataclasses import dataclass, replace
from typing import Any

import torch
from lightning.pytorch import LightningModule

from setsup.experiments import Data, Measured, Preset, Sets, TrainedRun

__all__ = ["PRESETS"]


class Dense(LightningModule):
    """Its loss is the variance within sets."""

    def __init__(self, settings: "DenseSettings", generator: torch.Generator) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(784, settings.width)
        torch.nn.init.normal_(self.layer.weight, std=0.05, generator=generator)
        torch.nn.init.zeros_(self.layer.bias)
        self.rate = settings.rate

    def embed(self, batch: Any) -> torch.Tensor:
        found: torch.Tensor = self.layer(batch["image"].flatten(2).float() / 255)
        return found

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        name, _, step = os.environ.get("STOP", "").partition(" ")
        if name and self.global_step == int(step):
            os.kill(os.getpid(), getattr(signal, name))
        loss = torch.nn.functional.dropout(self.embed(batch)).var(dim=1).mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), self.rate)


@dataclass(frozen=True)
class DenseSettings:
    """Settings of :class:`Dense`, and some that nothing reads.

    Attributes
    ----------
    width : int
        Numbers of an ``embedding`` [1]_.
    rate : float
        Of the optimiser.
    bias, flag : bool
        Truth.

    References
    ----------
    .. [1] Nobody.

    """

    width: int = 3
    rate: float = 0.1
    bias: bool = False
    flag: bool = True
    betas: tuple[float, float] = (0.9, 0.99)
    words: tuple[str, ...] = ("a", "b")
    note: str | None = "some"
    pairs: tuple[tuple[int, int], ...] = ((1, 2),)

    def build(self, table: Any, generator: torch.Generator) -> Dense:
        return Dense(self, generator)


@dataclass(frozen=True)
class Spread:
    """Standard deviation of embeddings, and numbers that are none."""

    samples: int = 50
    scale: float = 1.0

    def measure(self, trained: TrainedRun) -> Measured:
        found = trained.embed(rows=trained.sample(self.samples)).std() * self.scale
        return Measured(values={"deviation": found, "nothing": float("nan")}, curves={"line": ([0, 1], [0.5, found])})


@dataclass(frozen=True)
class Count:
    """Rows; nothing can be set."""

    def measure(self, trained: TrainedRun) -> Measured:
        return Measured({"rows": len(trained.dataset)})


@dataclass(frozen=True)
class Moved:
    """An augmentation with settings: brightness times a number."""

    times: float = 0.5

    def build(self, dataset: Any, seed: int) -> Any:
        return _Times(self.times)


@dataclass(frozen=True)
class _Times:
    times: float

    def __call__(self, batch: Any) -> Any:
        return {**batch, "image": (batch["image"] * self.times).to(torch.uint8)}


_MEAN = Preset(
    name="own/mean",
    shows="what one layer learns",
    data=Data("mnist", "train"),
    sampler=Sets(inactive=("digit",), size=4),
    method=DenseSettings(),
    steps=20,
    checkpoint_every=6,
    evaluations={"spread": Spread(), "second": Spread(samples=20)},
)

PRESETS = [
    _MEAN,
    replace(_MEAN, name="own/twin", shows="the same training, measured otherwise", evaluations={"third": Spread(7)}),
    replace(_MEAN, name="own/other", method=DenseSettings(width=5)),
    replace(_MEAN, name="own/stand", data=Data("shapes3d", "train", substitute="mnist")),
    replace(_MEAN, name="own/unmeasured", evaluations={}),
    replace(_MEAN, name="own/count", evaluations={"count": Count(), "spread": Spread(20)}),
    replace(_MEAN, name="own/wide", method=DenseSettings(width=7), evaluations={"spread": Spread(20)}),
    replace(_MEAN, name="own/moved", augmentation=Moved()),
]
