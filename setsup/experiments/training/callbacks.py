"""Callbacks of a training besides checkpoints: random seeds per step, settings for loggers, a progress bar."""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from setsup.experiments.training.step import count_images, find_loss
from setsup.progress import Advance, progress
from setsup.random import fold, stream_key

__all__ = ["NoiseScaleCallback", "ProgressCallback", "SettingsCallback"]

_TOGETHER = 100  # counts of images that are added up
_RECENT = 30.0  # seconds over which the speed is averaged, at least since the last update


class NoiseScaleCallback(Callback):
    """Seeds torch's generators before every step by (seed, step, rank), so that dropout and the like resume."""

    def __init__(self, seed: int) -> None:
        self._key = stream_key(seed, "noise")

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Seed torch on the CPU and on all GPUs."""
        torch.manual_seed(int(fold(int(fold(self._key, trainer.global_step)), trainer.global_rank)))


class SettingsCallback(Callback):
    """Logs the settings of the run: tables of runs have a column for each setting.

    TensorBoard shows a row only for a run with metrics next to its settings: at the end of each training it gets what
    was logged last, under names such as ``last/loss``.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Log them before Lightning logs that there are none."""
        for logger in trainer.loggers:
            logger.log_hyperparams(self._settings)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log TensorBoard's row."""
        found = {f"last/{name}": float(value) for name, value in trainer.callback_metrics.items()}
        for logger in trainer.loggers:
            if found and isinstance(logger, TensorBoardLogger):
                logger.log_hyperparams(self._settings, found, trainer.global_step)


class ProgressCallback(Callback):
    """Shows progress in steps, with images per second, the loss, and the remaining time.

    Images are those of this process, without padding, times the number of processes.
    """

    def __init__(self, steps: int) -> None:
        self._steps, self._at, self._world = steps, 0, 1
        self._stack = ExitStack()
        self._advance: Advance | None = None
        self._loss: torch.Tensor | None = None
        self._validated: torch.Tensor | None = None
        self._counts: list[int | torch.Tensor] = []
        self._looks: deque[tuple[float, int]] = deque()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start where the run resumes."""
        self._at, self._world = trainer.global_step, trainer.world_size
        if trainer.is_global_zero:
            shown = progress(self._steps - self._at, "training", "steps", self._note)
            self._advance = self._stack.enter_context(shown)
            self._looks.append((time.perf_counter(), 0))

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Advance by the steps of a batch."""
        if self._advance is None:
            return
        self._loss = find_loss(trainer, outputs)
        self._validated = trainer.callback_metrics.get("validation/loss")
        self._counts.append(count_images(batch))
        if len(self._counts) >= _TOGETHER:  # on a GPU, without waiting for the sum
            self._counts = [sum(self._counts)]
        self._advance(trainer.global_step - self._at)
        self._at = trainer.global_step

    def _note(self) -> str:
        now, images = time.perf_counter(), self._looks[-1][1] + int(sum(self._counts)) * self._world
        self._counts.clear()
        self._looks.append((now, images))
        while len(self._looks) > 2 and now - self._looks[1][0] > _RECENT:
            self._looks.popleft()
        since, before = self._looks[0]
        speed = f"{(images - before) / (now - since):,.0f} images/s"
        losses = {"loss": self._loss, "validation": self._validated}
        shown = (f"{name} {float(value.float().mean()):.4g}" for name, value in losses.items() if value is not None)
        return ", ".join([speed, *shown])

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Remove the bar."""
        self._stack.close()
        self._advance = None

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Remove the bar after an error too."""
        self.teardown(trainer, pl_module, "fit")
