"""Training a preset: one call from settings to a run folder, which resumes where it was stopped."""

import logging
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import torch
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, LightningModule, Trainer

from setsup.checks import check_arguments
from setsup.datasets import Dataset
from setsup.errors import SetsupError, need
from setsup.experiments.checkpoint import has_checkpoint
from setsup.experiments.configs import SamplerConfig, build_method, build_transform
from setsup.experiments.preset import Preset
from setsup.experiments.run import Run
from setsup.experiments.run_folder import begin
from setsup.experiments.settings import flatten, training_settings
from setsup.experiments.training.callbacks import NoiseScaleCallback, ProgressCallback, SettingsCallback
from setsup.experiments.training.checkpointing import CheckpointCallback
from setsup.experiments.training.checks import need_runnable
from setsup.experiments.training.config import RunConfig
from setsup.experiments.training.loggers import build_logger, end_run, need_logger, run_identity
from setsup.experiments.training.trial import try_first_draw
from setsup.experiments.weights import load_weights
from setsup.files.disk import disk_errors, make_folder
from setsup.loading.lightning import LightningBatches

__all__ = ["build_batches", "build_trainer", "prepare", "quiet", "train"]

_PRECISION = {"float32": "32-true", "bf16": "bf16-mixed"}


def train(
    preset: Preset,
    folder: Path | str,
    *,
    seed: int = 0,
    root: Path | str | None = None,
    substitute: bool = False,
    config: RunConfig | None = None,
    on_start: Callable[[Run], None] | None = None,
) -> Run:
    """Train a preset, or resume its run.

    A run that is killed loses at most ``preset.checkpoint_every`` steps, one that gets a signal to stop none. Its
    draws, augmentation and noise are functions of (seed, step), so an interrupted run has the same result.

    Parameters
    ----------
    preset : Preset
        What to train.
    folder : Path or str
        Run folder; see :class:`Run`.
    seed : int
        0 ≤ seed < 2⁶⁴.
    root : Path or str, optional
        Folder of the published files.
    substitute : bool
        Train on the preset's substitute dataset; all results of the run say so.
    config : RunConfig, optional
        Devices, precision and the like.
    on_start : callable, optional
        Called with the run after all checks, before training starts.

    Returns
    -------
    Run

    Raises
    ------
    SetsupError
        When the folder holds another run, another process trains in it, data are missing, settings do not fit each
        other, the loss is no longer finite, or several devices train a method whose state they do not share.
    KeyboardInterrupt
        When it got a signal to stop, after the checkpoint was written.

    """
    check_arguments(train, locals())
    folder, config = Path(folder), config or RunConfig()
    if preset.method is None:
        run = begin(folder, preset, seed, root=root, substitute=substitute, config=asdict(config))
        if on_start is not None:
            on_start(run)
        return run
    # all checks come first, so that a preset with errors leaves no folder behind
    first = not has_checkpoint(folder)
    dataset, batches, method = prepare(preset, seed, config, root=root, substitute=substitute, try_draw=first)
    if config.compile:
        for network in method.children():
            network.compile()
    with ExitStack() as stack:
        stack.enter_context(quiet())
        stack.enter_context(torch.random.fork_rng(devices=[]))
        about = {"preset": preset.name, "seed": seed, "substitute": substitute}
        settings = about | {"smoke": preset.shrunk} | flatten(preset) | flatten(config)
        lasting = training_settings(flatten(preset), substitute)
        del lasting["steps"]  # a run that is trained longer is the same run
        identity = run_identity(folder, about | lasting)
        checkpoints = CheckpointCallback(
            preset,
            folder,
            allow_nonfinite=config.allow_nonfinite,
            keep_every=config.keep_every,
            keep_best=config.keep_best,
        )
        shown = ProgressCallback(preset.steps), SettingsCallback(settings)
        trainer = build_trainer(preset, folder, config, [NoiseScaleCallback(seed), checkpoints, *shown])
        stack.push(lambda error, *_: end_run(identity, failed=error is not None))
        if trainer.is_global_zero:
            stack.enter_context(_lock(folder))
        run = begin(folder, preset, seed, root=root, substitute=substitute, config=asdict(config))
        if trainer.is_global_zero:
            run.save_factors(dataset.factors)
        if on_start is not None:
            on_start(run)
        if run.finished:
            return run
        # Lightning loads the weights once more, but explains less if they do not fit
        resumed = str(load_weights(method, run)) if has_checkpoint(folder) else None
        title, at = f"{preset.name} seed {seed}", run.progress().steps
        trainer.loggers = [build_logger(name, title, folder, identity, at) for name in config.log]
        try:
            trainer.fit(method, datamodule=batches, ckpt_path=resumed, weights_only=True)
        except SystemExit as end:
            if isinstance(end.__context__, KeyboardInterrupt):  # Lightning's answer to a second Ctrl-C
                raise KeyboardInterrupt from None
            raise
    if checkpoints.stopped is not None and not run.finished:
        raise KeyboardInterrupt(signal.Signals(checkpoints.stopped).name)
    return run


def prepare(
    preset: Preset,
    seed: int,
    config: RunConfig,
    *,
    root: Path | str | None = None,
    substitute: bool = False,
    try_draw: bool = True,
) -> tuple[Dataset, LightningBatches, LightningModule]:
    """Open the data of a preset, and build its batches and its method; SetsupError for what does not fit."""
    if preset.data is None or preset.sampler is None or preset.method is None:  # all three are
        raise SetsupError(f"{preset.name} trains nothing")
    for name in config.log:
        need_logger(name)
    if isinstance(preset.augmentation, str):
        need(f"the augmentation {preset.augmentation!r} needs", "kornia")
    dataset = preset.data.open(root, substitute=substitute)
    batches = build_batches(preset, preset.sampler, dataset, seed, config)
    if try_draw:
        try_first_draw(preset, preset.sampler, preset.method, dataset, seed)
    method = build_method(preset.method, dataset.factors, seed)
    need_runnable(method)
    return dataset, batches, method


def build_batches(
    preset: Preset, sampler: SamplerConfig, dataset: Dataset, seed: int, config: RunConfig
) -> LightningBatches:
    """Build the batches that a preset trains on."""
    transform = build_transform(preset.augmentation, seed)
    return LightningBatches(dataset, sampler.build(dataset.factors, seed), transform=transform, workers=config.workers)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a folder; the system releases the lock when this process dies."""
    from filelock import FileLock, Timeout

    make_folder(folder)
    lock = FileLock(folder / "train.lock")
    try:
        with disk_errors(folder):
            lock.acquire(blocking=False)
    except Timeout:
        raise SetsupError(f"another process trains in {folder}: wait for it, or give another --out") from None
    try:
        yield
    finally:
        (folder / "train.lock").unlink(missing_ok=True)  # still held: who waits makes a new one
        with suppress(OSError):
            folder.rmdir()  # nothing was trained
        lock.release()


def build_trainer(preset: Preset, folder: Path, config: RunConfig, callbacks: list[Callback]) -> Trainer:
    """Build Lightning's trainer; SetsupError for devices that are not there."""
    # under SLURM Lightning would write its own checkpoints, and prefer them to those of the run
    slurm = SLURMEnvironment.detect() and not TorchElasticEnvironment.detect()
    try:
        return Trainer(
            max_steps=preset.steps,
            accelerator=config.accelerator,
            devices=config.devices,
            num_nodes=config.nodes,
            precision=_PRECISION[config.precision],  # type: ignore[arg-type]
            callbacks=callbacks,
            plugins=[SLURMEnvironment(auto_requeue=False)] if slurm else None,
            logger=False,
            default_root_dir=folder,
            log_every_n_steps=0,  # CheckpointCallback logs what it writes to metrics.jsonl
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
    except MisconfigurationException as error:
        reason = " ".join(str(error).split())
        asked = f"accelerator {config.accelerator}, devices {config.devices} and nodes {config.nodes}"
        raise SetsupError(f"Lightning cannot train with {asked}: {reason}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress Lightning's hints."""
    logs = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [log.level for log in logs]
    with warnings.catch_warnings():
        known = "num_workers|isinstance.treespec|GPU available but not used|functional.all_gather is deprecated|Keeper"
        warnings.filterwarnings("ignore", message=f".*({known}).*")
        for log in logs:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for log, level in zip(logs, levels, strict=True):
                log.setLevel(level)
