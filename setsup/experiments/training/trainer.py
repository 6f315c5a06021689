"""Lightning's Trainer for a preset, and the ways of running one that it does not have."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.profilers import AdvancedProfiler, Profiler, PyTorchProfiler, SimpleProfiler

from setsup.errors import SetsupError
from setsup.experiments.training.config import RunConfig

__all__ = ["build_trainer", "quiet"]

_PRECISION = {"float32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}
_STRATEGY = {"auto": "auto", "ddp": "ddp", "ddp-unused": "ddp_find_unused_parameters_true"}
_PROFILER: dict[str, Callable[..., Profiler]] = {
    "simple": SimpleProfiler,
    "advanced": AdvancedProfiler,
    "pytorch": PyTorchProfiler,
}


class _Trainer(Trainer):
    """Its `max_steps`, and so `estimated_stepping_batches`, are the steps of the preset.

    Lightning would compare the limit with the steps of all optimisers in manual optimisation, so there its loop has
    none.
    """

    def __init__(self, steps: int, **options: object) -> None:
        self._steps = steps
        super().__init__(max_steps=steps, **options)  # type: ignore[arg-type]

    @property
    def max_steps(self) -> int:
        """Steps of the training."""
        return self._steps


class _InPlace(TorchCheckpointIO):
    """Writes checkpoints where they are asked for; Lightning's own writes to TMPDIR first, and moves the file."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write one."""
        with Path(path).open("wb") as file:  # of a path torch does not say that the disk is full
            torch.save(checkpoint, file)


def build_trainer(steps: int, accumulate: int, folder: Path, config: RunConfig, callbacks: list[Callback]) -> Trainer:
    """Build the Trainer of a run; SetsupError for what it cannot be run with here."""
    # under SLURM Lightning would write its own checkpoints, and prefer them to those of the run
    slurm = SLURMEnvironment.detect() and not TorchElasticEnvironment.detect()
    try:
        trainer = _Trainer(
            steps,
            accumulate_grad_batches=accumulate,
            accelerator=config.accelerator,
            devices=config.devices,
            num_nodes=config.nodes,
            strategy=_STRATEGY[config.strategy],
            sync_batchnorm=config.sync_batchnorm,
            precision=_PRECISION[config.precision],
            profiler=_build_profiler(config, folder),
            callbacks=callbacks,
            plugins=[_InPlace(), *([SLURMEnvironment(auto_requeue=False)] if slurm else [])],
            logger=False,
            default_root_dir=folder,
            log_every_n_steps=0,  # CheckpointCallback logs what it writes to metrics.jsonl
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
    except MisconfigurationException as error:
        reason = " ".join(str(error).split())
        asked = (
            f"accelerator {config.accelerator}, devices {config.devices}, nodes {config.nodes} and strategy "
            f"{config.strategy}"
        )
        raise SetsupError(f"Lightning cannot train with {asked}: {reason}") from error
    if trainer.strategy.root_device.type == "cpu":
        _need_cpu(config)
    return trainer


def _need_cpu(config: RunConfig) -> None:
    """Raise SetsupError for what needs a GPU."""
    if config.precision == "fp16":
        raise SetsupError("precision fp16 requires a GPU, but this training runs on the CPU; use bf16 or float32")
    if config.sync_batchnorm:
        raise SetsupError("sync_batchnorm requires GPUs, but this training runs on the CPU; omit it")


def _build_profiler(config: RunConfig, folder: Path) -> Profiler | None:
    if config.profiler is None:
        return None
    return _PROFILER[config.profiler](dirpath=folder / "profile", filename=config.profiler)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress Lightning's hints."""
    logs = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [log.level for log in logs]
    with warnings.catch_warnings():
        known = "num_workers|isinstance.treespec|GPU available but not used|functional.all_gather is deprecated|Keeper"
        known += "|AMP with fp16 is not supported"
        warnings.filterwarnings("ignore", message=f".*({known}).*")
        for log in logs:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for log, level in zip(logs, levels, strict=True):
                log.setLevel(level)
