"""Steps of a training: of a method with one loss, and of one of several optimisers that a method steps itself."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from setsup.loading.batch import Batch

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule

__all__ = ["log_loss", "minimise"]


def log_loss(method: Any, batch: Batch, batch_idx: int) -> Tensor:
    """The ``training_step`` of a method: its ``loss(batch)``, logged as ``loss``."""
    loss: Tensor = method.loss(batch)
    method.log("loss", loss)
    return loss


def minimise(method: "LightningModule", optimiser: Any, loss: Tensor) -> None:
    """Take a step of an optimiser, by the gradient of one loss alone."""
    optimiser.zero_grad()
    method.manual_backward(loss)
    optimiser.step()
