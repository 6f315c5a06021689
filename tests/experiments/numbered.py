"""A dataset whose images are the numbers of their rows, and methods that embed what tests want them to."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule

from setsup.datasets import Dataset, Modality, fetch_request
from setsup.experiments import TrainedRun
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["Numbered", "OneHot", "RowNumbers", "trained"]


class Numbered(Dataset):
    """Rows of factors drawn at random, each image of two pixels, a row's number in base 256."""

    def __init__(self, rows: int = 4_000, seed: int = 0, name: str = "numbered") -> None:
        dice = np.random.default_rng(seed)
        levels = {"colour": 2, "shape": 4, "size": 3}
        factors = [Factor(factor, Kind.NOMINAL, tuple(range(count))) for factor, count in levels.items()]
        split = Factor("split", Kind.NOMINAL, ("train", "test"), role="split")
        columns = {factor: dice.integers(0, count, rows) for factor, count in levels.items()}
        self.name = name
        self.factors = FactorTable([*factors, split], columns | {"split": np.arange(rows) % 2})
        self.modalities = {"image": Modality((1, 2, 1), "uint8", color="grey")}
        self.fetched = 0

    def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        rows, names = fetch_request(self, indices, modalities)
        self.fetched += rows.size
        return {name: np.stack(divmod(rows, 256), -1).astype(np.uint8)[..., None, :, None] for name in names}


class OneHot(LightningModule):
    """Embeds a factor as a vector of 0 and, where its level is, a length."""

    def __init__(self, factor: str = "shape", levels: int = 4, length: float = 1.0, temperature: float = 1.0) -> None:
        super().__init__()
        self.factor, self.levels, self.length = factor, levels, length
        self.similarity, self.temperature = "l2sq", temperature

    def embed(self, batch: Any) -> torch.Tensor:
        return self.length * torch.nn.functional.one_hot(batch["factors"][self.factor].long(), self.levels).float()


class RowNumbers(LightningModule):
    """Embeds an image as the number that it shows."""

    def embed(self, batch: Any) -> torch.Tensor:
        assert not torch.is_grad_enabled()
        assert not self.training
        return batch["image"].float().flatten(2) @ torch.tensor([[256.0], [1.0]])


@dataclass(frozen=True)
class Held:
    """Data that are there already."""

    whole: Dataset
    opened: list[Any] = field(default_factory=list)
    modalities: tuple[str, ...] | None = None
    substitute: str | None = None

    @property
    def name(self) -> str:
        return self.whole.name

    def open(self, root: Any = None, *, substitute: bool = False, split: str | None = None) -> Dataset:
        self.opened.append((root, substitute, split))
        return self.whole if split is None else self.whole.where(f"split == '{split}'")


def trained(method: LightningModule, dataset: Dataset, **options: Any) -> TrainedRun:
    """The method as if it had been trained on the dataset."""
    parts: dict[str, Any] = {"name": "small/held", "method": method.eval(), "seed": 0, "folder": Path("nowhere")}
    return TrainedRun(**parts | {"data": Held(dataset)} | options)
