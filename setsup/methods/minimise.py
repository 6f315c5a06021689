"""A step of one of several optimisers, in methods that optimise manually."""

from typing import Any

from lightning.pytorch import LightningModule
from torch import Tensor

__all__ = ["minimise"]


def minimise(method: LightningModule, optimiser: Any, loss: Tensor) -> None:
    """Take a step of an optimiser, by the gradient of one loss alone."""
    optimiser.zero_grad()
    method.manual_backward(loss)
    optimiser.step()
