"""Methods that keep something for each row that they are trained on, written at different moments of a step."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import nn

from setsup_papers.abc.method import ABC
from setsup_papers.abc.settings import ABCObjective
from tests.experiments.small import PLAIN, Pooled

__all__ = ["BANKED", "NORMED"]


class Banked(ABC):
    """Writes a 1 for every row of a batch, from a step on."""

    def __init__(self, encoder: nn.Module, rows: int, when: str, since: int) -> None:
        super().__init__(ABCObjective(), encoder)
        bank = torch.zeros(rows, 1)
        if when == "parameter":
            self.bank: Any = nn.Parameter(bank, requires_grad=False)
        else:
            self.register_buffer("bank", bank)
        self.when, self.since = when, since

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = super().training_step(batch, batch_idx)
        if self.when != "end":
            self._write(batch)
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.when == "end":
            self._write(batch)

    def _write(self, batch: Any) -> None:
        if self.global_step >= self.since:
            self.bank[batch["indices"].flatten()] = 1


@dataclass(frozen=True)
class BankedSettings:
    """When it writes: during a step, at its very end, or to a parameter that is not trained; and from which step on."""

    when: Literal["step", "end", "parameter"]
    since: int = 0

    def build(self, table: Any, generator: torch.Generator) -> Banked:
        return Banked(nn.Sequential(Pooled(), nn.Linear(192, 2)), len(table), self.when, self.since)


@dataclass(frozen=True)
class Normed:
    """Statistics of batches differ between processes, as they always do."""

    def build(self, table: Any, generator: torch.Generator) -> ABC:
        layers = Pooled(), nn.Flatten(0, 1), nn.BatchNorm1d(192), nn.Unflatten(0, (2, 4)), nn.Linear(192, 2)
        return ABC(ABCObjective(), nn.Sequential(*layers))


_KINDS = [BankedSettings("step"), BankedSettings("end"), BankedSettings("parameter"), BankedSettings("step", since=3)]
BANKED = [
    replace(PLAIN, name=f"small/banked-{kind.when}-{kind.since}", method=kind, steps=8, checkpoint_every=2)
    for kind in _KINDS
]
NORMED = replace(PLAIN, name="small/normed", method=Normed(), steps=4, checkpoint_every=2)
