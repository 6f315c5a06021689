"""Training a preset: one call from settings to a run folder, which resumes where it was stopped."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import torch
from lightning.pytorch import Callback

from setsup.checks import check_arguments
from setsup.errors import SetsupError
from setsup.experiments.preset import Preset
from setsup.experiments.preset_registry import need_own_name
from setsup.experiments.runs.checkpoint import has_checkpoint
from setsup.experiments.runs.run import Run
from setsup.experiments.runs.run_folder import begin
from setsup.experiments.settings import flatten, training_settings
from setsup.experiments.training.callbacks import (
    ClipCallback,
    NoiseScaleCallback,
    ProgressCallback,
    SettingsCallback,
)
from setsup.experiments.training.checkpointing import CheckpointCallback
from setsup.experiments.training.config import RunConfig
from setsup.experiments.training.launching import launching, own_process_group, watch_launcher
from setsup.experiments.training.monitoring.first_batch import FirstBatchCallback
from setsup.experiments.training.monitoring.loggers import build_logger, end_run, run_identity
from setsup.experiments.training.monitoring.validation import ValidationCallback
from setsup.experiments.training.preparing import prepare
from setsup.experiments.training.trainer import build_trainer, quiet
from setsup.experiments.weights import load_weights
from setsup.files.disk import disk_errors, make_folder

__all__ = ["train"]


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
        other, a preset in a file of the user's own has the name of an installed one, the loss is no longer finite, or
        several devices train a method whose state they do not share.
    KeyboardInterrupt
        When it got a signal to stop, after the checkpoint was written.

    """
    watch_launcher()
    check_arguments(train, locals())
    folder, config = Path(folder), config or RunConfig()
    need_own_name(preset)
    if preset.method is None:
        run = begin(folder, preset, seed, root=root, substitute=substitute, config=asdict(config))
        if on_start is not None:
            on_start(run)
        return run
    # all checks come first, so that a preset with errors leaves no folder behind
    prepared = prepare(preset, folder, seed, config, root=root, substitute=substitute)
    preset, method, counter = prepared.preset, prepared.method, prepared.counter
    if config.compile:
        for network in method.children():
            network.compile()
    with ExitStack() as stack:
        stack.enter_context(quiet())
        stack.enter_context(torch.random.fork_rng(devices=[]))
        about = {"preset": preset.name, "seed": seed, "substitute": substitute}
        lasting = training_settings(flatten(preset), substitute)
        del lasting["steps"]  # a run that is trained longer is the same run
        identity = run_identity(folder, about | lasting)
        settings = about | {"smoke": preset.shrunk} | flatten(preset) | flatten(config)
        checkpoints = CheckpointCallback(preset.name, preset.checkpoint_every, folder, counter, config)
        callbacks: list[Callback] = [counter, NoiseScaleCallback(seed, counter)]
        if prepared.held_out is not None:  # before the step is saved
            callbacks.append(ValidationCallback(prepared.held_out, counter, config.precision))
        callbacks += [checkpoints, ProgressCallback(counter), SettingsCallback(settings, counter)]
        callbacks.append(FirstBatchCallback(folder, counter, getattr(preset.method, "views", ())))
        if preset.clip_norm is not None or preset.clip_value is not None:
            callbacks.append(ClipCallback(preset.name, preset.clip_norm, preset.clip_value))
        trainer = build_trainer(preset.steps, preset.accumulate, folder, config, callbacks)
        stack.push(lambda error, *_: end_run(identity, failed=error is not None))
        if trainer.is_global_zero:
            stack.enter_context(_lock(folder))
        run = begin(folder, preset, seed, **prepared.about)
        if trainer.is_global_zero:
            run.save_factors(prepared.data.dataset.factors)
        if on_start is not None:
            on_start(run)
        if run.finished:
            if trainer.is_global_zero:
                checkpoints.finish()
            return run
        # Lightning loads the weights once more, but explains less if they do not fit
        resumed = str(load_weights(method, run)) if has_checkpoint(folder) else None
        title, at = f"{preset.name} seed {seed}", run.progress().steps
        log = config.log if trainer.is_global_zero else ()  # two processes cannot create one MLflow database
        trainer.loggers = [build_logger(name, title, folder, identity, at) for name in log]
        stack.enter_context(own_process_group())
        stack.enter_context(launching())
        try:
            trainer.fit(method, datamodule=prepared.batches, ckpt_path=resumed, weights_only=True)
        except SystemExit as end:
            if isinstance(end.__context__, KeyboardInterrupt):  # Lightning's answer to a second Ctrl-C
                raise KeyboardInterrupt from None
            raise
        except RuntimeError as error:
            if "find_unused_parameters" not in str(error):
                raise
            raise SetsupError(
                f"some parameters of {type(method).__name__} received no gradient in a step, but other devices wait "
                "for these gradients; train with --strategy ddp-unused, or on one device"
            ) from error
    if checkpoints.stopped is not None and not run.finished:
        raise KeyboardInterrupt(signal.Signals(checkpoints.stopped).name)
    return run


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
        raise SetsupError(
            f"another process is training in {folder}; wait until it ends, or choose another --out"
        ) from None
    try:
        yield
    finally:
        (folder / "train.lock").unlink(missing_ok=True)  # still held: who waits makes a new one
        with suppress(OSError):
            folder.rmdir()  # nothing was trained
        lock.release()
