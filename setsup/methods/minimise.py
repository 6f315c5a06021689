"""A step of one of several optimisers, in methods that optimise manually."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule

__all__ = ["minimise"]


def minimise(method: "LightningModule", optimiser: Any, loss: Tensor) -> None:
    """Take a step of an optimiser, by the gradient of one loss alone."""
    optimiser.zero_grad()
    method.manual_backward(loss)
    optimiser.step()
