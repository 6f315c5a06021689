"""Checks of what a training would lose silently: state that ranks do not share, values that are not finite."""

from collections.abc import Iterator, Mapping

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch.nn.modules.batchnorm import _NormBase

from setsup.errors import SetsupError
from setsup.experiments.result_cache import digest_weights
from setsup.methods.rows import RowState
from setsup.methods.rows.saving import saving_without_rows

__all__ = [
    "need_equal_state",
    "need_runnable",
    "need_step_metrics",
    "need_step_schedules",
    "nonfinite_state",
]


def need_runnable(method: LightningModule, accumulate: int = 1) -> None:
    """Raise SetsupError if a method has hooks that are never called, or settings that it would not follow."""
    if accumulate > 1 and not method.automatic_optimization:
        raise SetsupError(
            f"{type(method).__name__} steps its optimisers itself (automatic_optimization = False), so gradients "
            f"of {accumulate} draws cannot be accumulated; train with --accumulate 1 and draw more sets"
        )
    if is_overridden("validation_step", method):
        raise SetsupError(
            f"{type(method).__name__} has a validation_step, which setsup does not call; remove it, define "
            "loss(batch), and set the preset's validation=Validation(every=…), which computes that loss on "
            "held-out rows"
        )


def need_step_schedules(trainer: Trainer, method: LightningModule) -> None:
    """Raise SetsupError if a scheduler waits for the end of an epoch: training is one epoch."""
    if not method.automatic_optimization:
        return  # the method steps its schedulers itself
    for config in trainer.lr_scheduler_configs:
        if config.frequency > 1 and trainer.accumulate_grad_batches > 1:
            raise SetsupError(
                f"the scheduler {type(config.scheduler).__name__} of {type(method).__name__} would step at the wrong "
                f"times with --accumulate: Lightning counts its frequency {config.frequency} in draws; return it with "
                "frequency 1 and lengths in steps"
            )
        if config.interval != "step":
            raise SetsupError(
                f"the scheduler {type(config.scheduler).__name__} of {type(method).__name__} would never step: its "
                f"interval is {config.interval!r}, but training is counted in steps; return it from "
                'configure_optimizers as {"scheduler": …, "interval": "step"}, with lengths in steps'
            )


def need_step_metrics(trainer: Trainer, method: LightningModule) -> None:
    """Raise SetsupError if a metric is logged at the end of epochs only."""
    for metric in (trainer._results or {}).values():  # Lightning has no public way to ask how a metric is logged
        if not metric.meta.on_step:
            name = metric.meta.name
            raise SetsupError(
                f"{type(method).__name__} logs {name!r} with on_step=False, so the metric would be lost: metrics are "
                f"written per step, and training has no epochs; log it with self.log({name!r}, …, on_step=True)"
            )


def need_equal_state(trainer: Trainer, method: LightningModule) -> None:
    """Raise SetsupError if state differs between ranks, since checkpoints hold the first rank's only.

    This compares buffers in checkpoints, and parameters that are not trained. Running statistics of normalisation
    layers estimate the same quantity on each rank, so the first rank's will do; state by row is divided among ranks.
    """
    if trainer.world_size == 1:
        return
    kept = list(_untrained_state(method))
    digests = [int.from_bytes(bytes.fromhex(digest_weights({name: value}))[:8], signed=True) for name, value in kept]
    gathered = trainer.strategy.all_gather(torch.tensor(digests, device=trainer.strategy.root_device))
    differ = (gathered != gathered[:1]).any(0).tolist() if kept else []
    for (name, _), differs in zip(kept, differ, strict=True):
        if differs:
            raise SetsupError(
                f"{name} of {type(method).__name__} differs between the {trainer.world_size} devices that train "
                "together, but a checkpoint contains the value of the first device only; train on one device "
                "(--devices 1 --nodes 1), or write the same value on all devices"
            )


def _untrained_state(method: LightningModule) -> Iterator[tuple[str, torch.Tensor]]:
    statistics = {
        f"{path}.{name}" if path else name
        for path, module in method.named_modules()
        if isinstance(module, _NormBase)
        for name, _ in module.named_buffers(recurse=False)
    }
    trained = {name for name, parameter in method.named_parameters() if parameter.requires_grad}
    with saving_without_rows():  # which would be gathered from all ranks
        kept = method.state_dict()
    for name, value in kept.items():
        if isinstance(value, torch.Tensor) and name not in statistics | trained:
            yield name, value


def nonfinite_state(trainer: Trainer, method: LightningModule) -> str | None:
    """Name of a trained parameter that is not finite, or whose state in an optimiser is not; None if all are."""
    names: dict[torch.Tensor, str] = {
        parameter: name for name, parameter in method.named_parameters() if parameter.requires_grad
    }
    checked = [(name, parameter.detach()) for parameter, name in names.items()]
    for optimiser in trainer.optimizers:
        for parameter, state in optimiser.state.items():
            tensors = state.values() if isinstance(state, Mapping) else ()
            checked += [
                (f"the optimiser's state of {names.get(parameter, 'a parameter')}", tensor)
                for tensor in tensors
                if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()
            ]
    if (name := _nonfinite_rows(trainer, method)) is not None:
        return name
    if not checked:
        return None
    device = trainer.strategy.root_device
    finite = torch.stack([tensor.isfinite().all().to(device) for _, tensor in checked]).tolist()  # read at once
    return next((name for (name, _), good in zip(checked, finite, strict=True) if not good), None)


def _nonfinite_rows(trainer: Trainer, method: LightningModule) -> str | None:
    """Name of state by row that is not finite on any rank; all ranks ask together, since each has other rows."""
    states = [(name, part) for name, part in method.named_modules() if isinstance(part, RowState)]
    if not states:
        return None
    device = trainer.strategy.root_device
    spoilt = torch.stack([~part.finite().to(device) for _, part in states]).long()
    counts = trainer.strategy.reduce(spoilt, reduce_op="sum").tolist()
    return next((name for (name, _), count in zip(states, counts, strict=True) if count), None)
