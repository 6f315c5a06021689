"""Validation during a training, which the training does not notice."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn

from setsup.errors import SetsupError, require_modules
from setsup.experiments.configs import SamplerConfig
from setsup.experiments.embedding_batch import evaluation_mode
from setsup.experiments.trained_run import TrainedRun
from setsup.experiments.training.counting import StepCounter
from setsup.experiments.training.monitoring.held_out import SEED, HeldOut, open_held_out
from setsup.experiments.validation import Validation
from setsup.methods.rows import RowState, UnseenRows
from setsup.random import fold

__all__ = ["ValidationCallback", "open_validation"]

_PREFIX = "validation/"


def open_validation(asked: Validation, trained: TrainedRun, sampler: SamplerConfig) -> HeldOut | None:
    """Open what a method is validated on, None where nothing is asked; SetsupError for what cannot be measured."""
    if not asked.every:
        return None
    method = trained.method
    if asked.draws and (
        not callable(getattr(type(method), "loss", None)) or isinstance(getattr(method, "loss", None), nn.Module)
    ):
        raise SetsupError(
            f"validation requires {type(method).__name__}.loss(batch), which does not exist; define it to return a "
            "number, or compute only knn or probe with --validation.draws 0"
        )
    if asked.probe:
        require_modules("--validation.probe needs", "sklearn")
    return open_held_out(asked, trained, sampler)


class ValidationCallback(Callback):
    """Measures held-out data every so many steps, and logs it as metrics of the step.

    It comes before what writes metrics and checkpoints, so that no checkpoint has a step whose validation is missing.
    All ranks measure the same draws and rows, since a method may gather tensors from all of them in its loss; the
    results of the first rank count, where running statistics are those of the checkpoint.
    """

    def __init__(self, held_out: HeldOut, counter: StepCounter, precision: str = "float32") -> None:
        self._held_out, self._counter, self._precision = held_out, counter, precision

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let state by row have its values before a validation is the first to read them."""
        for part in pl_module.modules():
            if isinstance(part, RowState):
                part.finite()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Measure at the end of a step, when it is due."""
        if self._counter.within_step or self._counter.steps % self._held_out.asked.every:
            return
        values = {_PREFIX + name: value for name, value in self._measure(trainer, pl_module).items()}
        if trainer.world_size > 1:
            values = trainer.strategy.broadcast(values)
        for name, value in values.items():
            pl_module.log(name, value, on_step=True, on_epoch=False)

    def _measure(self, trainer: Trainer, method: LightningModule) -> dict[str, float]:
        device = trainer.strategy.root_device
        with _undisturbed(method, device) as logged:
            with torch.no_grad(), trainer.precision_plugin.val_step_context():
                losses = [_loss(method, batch, number) for number, batch in enumerate(self._held_out.batches(device))]
            # what the method logs in its loss is a mean over the draws that logged it
            means = {name: _mean(values) for name, values in logged.items()}
            means |= {"loss": _mean(losses)} if losses else {}
            return means | self._held_out.accuracies(method, str(device), self._precision)


def _loss(method: Any, batch: dict[str, Any], number: int) -> float:
    """The loss of a draw, under noise that is always the same."""
    torch.manual_seed(int(fold(SEED, number)))
    try:
        loss = method.loss(batch)
    except UnseenRows as error:
        raise SetsupError(
            f"{type(method).__name__}.loss looks up rows outside its training data; validate on training data, or "
            "compute only knn or probe with --validation.draws 0"
        ) from error
    if not isinstance(loss, torch.Tensor | float | int) or (isinstance(loss, torch.Tensor) and loss.numel() != 1):
        raise SetsupError(
            f"{type(method).__name__}.loss returned {type(loss).__name__} {tuple(getattr(loss, 'shape', ()))}, "
            "but validation requires a single number; return only the loss"
        )
    return float(loss)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.nan


@contextmanager
def _undisturbed(method: LightningModule, device: torch.device) -> Iterator[dict[str, list[float]]]:
    """Evaluation mode for a while; then modes, buffers, untrained parameters and random numbers are as before.

    Yields what the method logs meanwhile, which is no metric of the training.
    """
    logged: dict[str, list[float]] = {}

    def log(name: str, value: Any, *_: Any, **__: Any) -> None:
        if isinstance(value, torch.Tensor | float | int):
            logged.setdefault(name, []).append(float(value))

    kept: list[tuple[Any, str, torch.Tensor, torch.Tensor]] = [
        (held, name, value, value.detach().clone())
        for part in method.modules()
        for held in (part._buffers, part._parameters, part.__dict__)  # the last has state by row
        for name, value in held.items()
        if isinstance(value, torch.Tensor) and not value.requires_grad
    ]
    devices = [device] if device.type == "cuda" else []
    method.__dict__["log"] = log
    try:
        with evaluation_mode(method), torch.random.fork_rng(devices=devices):
            yield logged
    finally:
        del method.__dict__["log"]
        for held, name, value, content in kept:
            held[name] = value  # where the method put another tensor in its place
            with torch.no_grad():
                value.copy_(content)
