"""A method as a user has it in a file, which gives a vector and a map for each image."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from tests.cli.own_method import PRESETS as OWN
from tests.cli.own_method import Dense, DenseSettings

__all__ = ["PRESETS"]


class Views(Dense):
    """The vector of its layer, and every second pixel, from two corners."""

    def embed(self, batch: Any) -> Any:
        image = batch["image"][:, :, 0]
        return {"vector": super().embed(batch), "map": torch.stack([image[..., ::2, ::2], image[..., 1::2, 1::2]], -1)}

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss: torch.Tensor = self.embed(batch)["vector"].var(dim=1).mean()
        return loss


@dataclass(frozen=True)
class ViewsSettings(DenseSettings):
    """Those of its layer."""

    def build(self, table: Any, generator: torch.Generator) -> Views:
        return Views(self, generator)


PRESETS = [replace(OWN[0], name="own/views", method=ViewsSettings())]
