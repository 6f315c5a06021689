"""A method as a user has it in a file, whose optimiser and schedules are settings."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from lightning.pytorch import LightningModule

from setsup.experiments import Data, Preset, Sets
from setsup.experiments.optimisation import AdamW, OneCycle, ParameterGroup, StepDecay, optimise

__all__ = ["PRESETS"]


class Scheduled(LightningModule):
    """A backbone, and a head with a rate and a schedule of its own; its loss is the variance within sets."""

    def __init__(self, settings: "ScheduledSettings") -> None:
        super().__init__()
        self.settings, self.backbone, self.head = settings, torch.nn.Linear(784, 4), torch.nn.Linear(4, 2)

    def embed(self, batch: Any) -> torch.Tensor:
        found: torch.Tensor = self.head(self.backbone(batch["image"].flatten(2).float() / 255))
        return found

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = self.embed(batch).var(dim=1).mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        settings = self.settings
        head = replace(settings.optimiser, rate=settings.head_rate)
        groups = [
            ParameterGroup(self.backbone.parameters()),
            ParameterGroup(self.head.parameters(), head, settings.head_schedule),
        ]
        return optimise(groups, settings.optimiser, settings.schedule, steps=self.trainer.estimated_stepping_batches)


@dataclass(frozen=True)
class ScheduledSettings:
    """Settings of :class:`Scheduled`."""

    optimiser: AdamW = AdamW(rate=1e-3)  # noqa: RUF009
    schedule: OneCycle = OneCycle(warmup=0.25)  # noqa: RUF009
    head_rate: float = 0.1
    head_schedule: StepDecay = StepDecay(at=(3, 5))  # noqa: RUF009

    def build(self, table: Any, generator: torch.Generator) -> Scheduled:
        return Scheduled(self)


PRESETS = [
    Preset(
        name="own/scheduled",
        shows="rates that follow schedules",
        data=Data("mnist", "train"),
        sampler=Sets(inactive=("digit",), size=4),
        method=ScheduledSettings(),
        steps=8,
        checkpoint_every=4,
    )
]
