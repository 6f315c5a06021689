"""Methods with state by row of the training data: memory banks as CMC has them, and learned codes as LORD."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import nn

from setsup.methods.rows import RowCodes, RowState
from setsup.random import fold
from tests.experiments.small import PLAIN, Pooled

__all__ = ["BANKS", "CODES", "FORGOTTEN", "Banks", "Codes"]

SIZE, NEGATIVES = 4, 6


def initial(rows: torch.Tensor) -> torch.Tensor:
    """Numbers from -0.5 to 0.5 that are functions of the row."""
    found = [fold(7, rows.numpy().astype("uint64") * SIZE + place) for place in range(SIZE)]
    return torch.stack([torch.from_numpy((bits >> 40).astype("float32")) / 2**24 - 0.5 for bits in found], 1)


class Banks(LightningModule):
    """Two encoders, of the red channel and of the two others, and a bank of past features of each."""

    def __init__(self, rows: int, generator: torch.Generator) -> None:
        super().__init__()
        self.pooled, self.rows = Pooled(), rows
        self.red, self.others = nn.Linear(64, SIZE, bias=False), nn.Linear(128, SIZE, bias=False)
        with torch.no_grad():
            for layer in (self.red, self.others):
                layer.weight.uniform_(-1, 1, generator=generator)
        self.red_bank, self.others_bank = (RowState(rows, SIZE, initial=initial) for _ in range(2))

    def embed(self, batch: Any) -> dict[str, torch.Tensor]:
        channels = self.pooled(batch["image"]).unflatten(-1, (3, 64))
        found = {"red": self.red(channels[..., 0, :]), "others": self.others(channels[..., 1:, :].flatten(-2))}
        return {name: nn.functional.normalize(one, dim=-1) for name, one in found.items()}

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        own = batch["indices"].flatten()
        numbers = own.numpy().astype("uint64")[:, None] * 1000 + torch.arange(NEGATIVES).numpy().astype("uint64")
        others = torch.from_numpy((fold(3, numbers) % self.rows).astype("int64"))
        table = torch.cat([own[:, None], others], 1)
        found = {name: one.flatten(0, 1) for name, one in self.embed(batch).items()}
        pairs = [(found["red"], self.others_bank), (found["others"], self.red_bank)]
        losses = [nn.functional.cross_entropy(bank.scores(one, table) / 0.1, own * 0) for one, bank in pairs]
        for (one, _), bank in zip(pairs, (self.red_bank, self.others_bank), strict=True):
            bank.update(own, nn.functional.normalize(0.5 * bank.gather(own) + 0.5 * one, dim=1))
        loss = sum(losses)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


class Codes(LightningModule):
    """A code for each image, and a layer from codes to images."""

    def __init__(self, rows: int, generator: torch.Generator, forgotten: bool) -> None:
        super().__init__()
        self.pooled, self.layer = Pooled(), nn.Linear(SIZE, 192)
        with torch.no_grad():
            self.layer.weight.uniform_(-1, 1, generator=generator)
            self.layer.bias.zero_()
        self.content = RowCodes(rows, SIZE, rate=0.01, initial=initial)
        self.forgotten = forgotten

    def embed(self, batch: Any) -> torch.Tensor:
        return self.content(batch["indices"])

    def loss(self, batch: Any) -> torch.Tensor:
        return (self.layer(self.content(batch["indices"])) - self.pooled(batch["image"])).square().mean()

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        if not self.forgotten:
            self.content.step()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


@dataclass(frozen=True)
class BanksSettings:
    """None."""

    def build(self, table: Any, generator: torch.Generator) -> Banks:
        return Banks(len(table), generator)


@dataclass(frozen=True)
class CodesSettings:
    """Whether the step of the codes is forgotten."""

    forgotten: bool = False

    def build(self, table: Any, generator: torch.Generator) -> Codes:
        return Codes(len(table), generator, self.forgotten)


BANKS = replace(PLAIN, name="small/banks", method=BanksSettings(), steps=12, checkpoint_every=6)
CODES = replace(PLAIN, name="small/codes", method=CodesSettings(), steps=12, checkpoint_every=6)
FORGOTTEN = replace(CODES, name="small/forgotten", method=CodesSettings(forgotten=True))
