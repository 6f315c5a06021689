"""Presets that train in a second: tiny networks on rendered shapes."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from setsup.experiments import Data, Preset
from setsup.experiments.sets import Sets
from setsup_papers.abc.method import ABC
from setsup_papers.abc.settings import ABCObjective

__all__ = ["ACCUMULATED", "AUGMENTED", "DROPOUT", "HALVED", "PLAIN", "PRESETS", "Pooled", "Tiny"]


class Pooled(nn.Module):
    """Means of 8 × 8 blocks: (..., 3, 64, 64) uint8 → (..., 192) float32 in [0, 1]."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        blocks = images.float().unflatten(-1, (8, 8)).unflatten(-3, (8, 8)) / 255
        return blocks.mean((-1, -3)).flatten(-3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiny:
    """ABC over two dense layers with dropout between them."""

    dropout: float = 0.0
    objective: Literal["correspondence", "double", "augmentation"] = "correspondence"
    rate: float = 1e-3
    halve_every: int | None = None

    def build(self, table: Any, generator: torch.Generator) -> ABC:
        """The method of a run."""
        # with ReLU, or a bias at the end, some gradients are 0 but for rounding, which Adam would make steps of
        layers = nn.Linear(192, 16), nn.Linear(16, 4, bias=False)
        with torch.no_grad():
            layers[0].weight.uniform_(-0.4, 0.4, generator=generator)
            layers[0].bias.zero_()
            layers[1].weight.uniform_(-1, 1, generator=generator)
        encoder = nn.Sequential(Pooled(), layers[0], nn.Tanh(), nn.Dropout(self.dropout), layers[1])
        return ABC(ABCObjective(objective=self.objective, rate=self.rate, halve_every=self.halve_every), encoder)


FEW = "orientation == 0 and scale == 0.75"
"""Rows that are rendered fast: of four rooms, in all colours."""


def _preset(name: str, **changed: Any) -> Preset:
    parts: dict[str, Any] = {
        "shows": "nothing",
        "data": Data("shapes3d-procedural"),
        "sampler": Sets(inactive=("wall_hue",), size=4, where=FEW),
        "method": Tiny(),
        "steps": 30,
        "checkpoint_every": 7,
    }
    return Preset(name=name, **parts | changed)


PLAIN = _preset("small/plain")
DROPOUT = _preset("small/dropout", method=Tiny(dropout=0.3))
HALVED = _preset("small/halved", method=Tiny(dropout=0.3, halve_every=4))
ACCUMULATED = _preset("small/accumulated", method=Tiny(dropout=0.3, halve_every=4), accumulate=3)
AUGMENTED = _preset(
    "small/augmented",
    sampler=Sets(inactive=(), sets=1, size=4, where=FEW),
    augmentation="abc-shapes3d",
    method=Tiny(objective="augmentation"),
)
PRESETS = [PLAIN, DROPOUT, HALVED, ACCUMULATED, AUGMENTED]
