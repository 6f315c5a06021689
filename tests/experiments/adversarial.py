"""A method with two optimisers, each with its schedule, stepped by hand, as in adversarial training."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from lightning.pytorch import LightningModule
from torch import nn
from torch.nn.functional import dropout

from setsup.experiments.optimisation import SGD, Adam, OneCycle, StepDecay, optimise
from tests.experiments.small import Pooled

__all__ = ["Adversarial", "AdversarialSettings"]


class Adversarial(LightningModule):
    """One network reads how bright an image is from its embedding; the other embeds so that it fails, and spreads."""

    seen: ClassVar[list[Any]] = []
    """Rows of each draw."""

    def __init__(self, settings: "AdversarialSettings") -> None:
        super().__init__()
        self.automatic_optimization = False
        self.settings = settings
        self.encoder, self.reader = nn.Sequential(Pooled(), nn.Linear(192, 4)), nn.Linear(4, 1)

    def embed(self, batch: Any) -> torch.Tensor:
        found: torch.Tensor = self.encoder(batch["image"])
        return found

    def losses(self, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """That of the reader, and that of the encoder."""
        embedded = dropout(self.embed(batch), 0.2)
        bright = batch["image"].float().mean((-1, -2, -3))[..., None] / 255
        read = ((self.reader(embedded.detach()) - bright) ** 2).mean()
        fooled = (embedded.std() - 1) ** 2 - ((self.reader(embedded) - bright) ** 2).mean()
        return read, fooled

    def training_step(self, batch: Any, batch_idx: int) -> None:
        self.seen.append(batch["indices"].numpy().copy())
        # the reader twice for each step of the encoder: Lightning counts three steps of optimisers, or one
        turns = ("reader",) if batch_idx % 2 else ("reader", "encoder", "reader")
        optimisers = dict(zip(("reader", "encoder"), self.optimizers(), strict=True))
        for turn in turns:
            loss = dict(zip(("reader", "encoder"), self.losses(batch), strict=True))[turn]
            optimisers[turn].zero_grad()
            self.manual_backward(loss)
            optimisers[turn].step()
            self.log(turn, loss)
        for schedule in self.lr_schedulers():
            schedule.step()

    def configure_optimizers(self) -> Any:
        steps = self.trainer.estimated_stepping_batches
        assert steps == self.trainer.max_steps
        return [
            optimise(self.reader.parameters(), self.settings.reader, self.settings.decay),
            optimise(self.encoder.parameters(), self.settings.encoder, self.settings.cycle, steps=steps),
        ]


@dataclass(frozen=True)
class AdversarialSettings:
    """An optimiser and a schedule for each network."""

    reader: SGD = SGD(rate=0.1, momentum=0.9)  # noqa: RUF009
    encoder: Adam = Adam(rate=1e-2)  # noqa: RUF009
    decay: StepDecay = StepDecay(factor=0.5, every=3)  # noqa: RUF009
    cycle: OneCycle = OneCycle()  # noqa: RUF009

    def build(self, table: Any, generator: torch.Generator) -> Adversarial:
        return Adversarial(self)
