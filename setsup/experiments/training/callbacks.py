"""Callbacks of a training besides checkpoints: random seeds, clipped gradients, settings for loggers, a bar."""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from setsup.errors import SetsupError
from setsup.experiments.training.counting import StepCounter
from setsup.experiments.training.step import count_images, find_loss
from setsup.progress import Advance, progress
from setsup.random import fold, stream_key

__all__ = ["ClipCallback", "NoiseScaleCallback", "ProgressCallback", "SettingsCallback"]

_TOGETHER = 100  # counts of images that are added up
_RECENT = 30.0  # seconds over which the speed is averaged, at least since the last update


class NoiseScaleCallback(Callback):
    """Seeds torch's generators before every draw by (seed, draw, rank), so that dropout and the like resume."""

    def __init__(self, seed: int, counter: StepCounter) -> None:
        self._key, self._counter = stream_key(seed, "noise"), counter

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Seed torch on the CPU and on all GPUs."""
        torch.manual_seed(int(fold(int(fold(self._key, self._counter.draws)), trainer.global_rank)))


class ClipCallback(Callback):
    """Clips the gradients of each optimiser's parameters, in automatic and in manual optimisation.

    Lightning calls it after gradients were averaged over ranks and unscaled; its own clipping refuses manual
    optimisation.
    """

    def __init__(self, name: str, norm: float | None = None, value: float | None = None) -> None:
        self._name, self._norm, self._value = name, norm, value

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """Clip them."""
        if trainer.precision == "16-mixed" and getattr(optimizer, "_step_supports_amp_scaling", False):
            raise SetsupError(
                f"{self._name}: a fused {type(optimizer).__name__} unscales its gradients within the step, too late to "
                "clip them; create it without fused=True, or train with --precision bf16"
            )
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if self._norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self._norm)
        if self._value is not None:
            torch.nn.utils.clip_grad_value_(parameters, self._value)


class SettingsCallback(Callback):
    """Logs the settings of the run: tables of runs have a column for each setting.

    TensorBoard shows a row only for a run with metrics next to its settings: at the end of each training it gets what
    was logged last, under names such as ``last/loss``.
    """

    def __init__(self, settings: Mapping[str, Any], counter: StepCounter) -> None:
        self._settings, self._counter = dict(settings), counter

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Log them before Lightning logs that there are none."""
        for logger in trainer.loggers:
            logger.log_hyperparams(self._settings)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log TensorBoard's row."""
        last = {f"last/{name}": float(value) for name, value in trainer.callback_metrics.items()}
        for logger in trainer.loggers:
            if last and isinstance(logger, TensorBoardLogger):
                logger.log_hyperparams(self._settings, last, self._counter.steps)


class ProgressCallback(Callback):
    """Shows progress in steps, with images per second, the loss, and the remaining time.

    Images are those of this process, without padding, times the number of processes.
    """

    def __init__(self, counter: StepCounter) -> None:
        self._counter, self._at, self._world = counter, 0, 1
        self._stack = ExitStack()
        self._advance: Advance | None = None
        self._loss: torch.Tensor | None = None
        self._validated: torch.Tensor | None = None
        self._counts: list[int | torch.Tensor] = []
        self._looks: deque[tuple[float, int]] = deque()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start where the run resumes."""
        self._at, self._world = self._counter.steps, trainer.world_size
        if trainer.is_global_zero:
            shown = progress(trainer.max_steps - self._at, "training", "steps", self._note)
            self._advance = self._stack.enter_context(shown)
            self._looks.append((time.perf_counter(), 0))

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Advance at the end of a step."""
        if self._advance is None:
            return
        self._loss = find_loss(trainer, outputs)
        self._validated = trainer.callback_metrics.get("validation/loss")
        self._counts.append(count_images(batch))
        if len(self._counts) >= _TOGETHER:  # on a GPU, without waiting for the sum
            self._counts = [sum(self._counts)]
        self._advance(self._counter.steps - self._at)
        self._at = self._counter.steps

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
