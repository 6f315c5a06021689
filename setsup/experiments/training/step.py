"""What a training step gives: its loss, and how many images it had."""

from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch import Trainer

__all__ = ["copy_finite", "count_images", "find_loss"]


def find_loss(trainer: Trainer, outputs: Any) -> torch.Tensor | None:
    """Loss of a step: what the step returned, or logged under that name; None if it did neither."""
    loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
    if isinstance(loss, torch.Tensor):
        divided = trainer.accumulate_grad_batches  # by Lightning
        return loss.detach() if divided == 1 else loss.detach() * divided
    loss = trainer.callback_metrics.get("loss")
    return None if loss is None else loss.detach()


def copy_finite(loss: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event | None]:
    """Whether a loss is finite; on a GPU without waiting for it, with the event of its arrival on the CPU."""
    good = loss.isfinite().all()
    if not loss.is_cuda:
        return good, None
    here, copied = good.to("cpu", non_blocking=True), torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record()
    return here, copied


def count_images(batch: Any) -> int | torch.Tensor:
    """Images of a batch; on a GPU as a tensor there, without waiting for it."""
    images: int | torch.Tensor = batch["mask"].sum() if "mask" in batch else batch["indices"].numel()
    return images
