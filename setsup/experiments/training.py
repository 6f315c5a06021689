"""Training a preset: one call from settings to a run folder, which goes on where it was stopped."""

import logging
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, LightningModule, Trainer

from setsup.checks import check_arguments
from setsup.datasets import Dataset
from setsup.errors import SetsupError, need
from setsup.experiments.callbacks import Bar, CheckpointCallback, NoiseScaleCallback, Settings
from setsup.experiments.checkpoint import has_checkpoint
from setsup.experiments.checks import need_runnable
from setsup.experiments.loggers import end_run, logger, need_logger, run_identity
from setsup.experiments.preset import Preset
from setsup.experiments.run import Run, begin
from setsup.experiments.settings import check, flat, learned
from setsup.factors import FactorTable
from setsup.files.disk import disk_errors, make_folder
from setsup.loading import Loader
from setsup.loading.batch import Transform
from setsup.loading.lightning import LightningBatches
from setsup.random import stream_key
from setsup.samplers import Sampler

__all__ = ["RunConfig", "fresh_method", "load_weights", "train"]

_PRECISION = {"float32": "32-true", "bf16": "bf16-mixed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How a preset is run. Only devices and nodes change what is learned by more than rounding.

    Attributes
    ----------
    precision : {"float32", "bf16"}
        With ``bf16`` convolutions and products run in bfloat16, weights and losses stay float32.
    devices, nodes : int
        GPUs, or processes where there is none, on each of so many machines. W of them train on W draws a step: another
        experiment than with one, as reports say of such a run.
    accelerator : {"auto", "cpu", "gpu"}
        What trains.
    compile : bool
        Compile the method's networks with ``torch.compile``.
    workers : int or str
        As for :func:`setsup.loader`.
    log : tuple of {"tensorboard", "wandb"}
        Where metrics go beside the run folder.
    allow_nonfinite : bool
        Train on where the loss, or the weights, are no longer finite; a run stops there otherwise.

    """

    precision: Literal["float32", "bf16"] = "float32"
    devices: int = 1
    nodes: int = 1
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    compile: bool = False
    workers: int | str = "auto"
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    allow_nonfinite: bool = False

    def __post_init__(self) -> None:
        """Check them."""
        check(self, asdict(self))
        if self.devices < 1 or self.nodes < 1:
            raise SetsupError(f"at least one device on one node trains, not {self.devices} on {self.nodes}")


def train(
    preset: Preset,
    folder: Path | str,
    *,
    seed: int = 0,
    root: Path | str | None = None,
    stand_in: bool = False,
    how: RunConfig | None = None,
    begun: Callable[[Run], None] | None = None,
) -> Run:
    """Train a preset, or go on where its run was stopped.

    A run that is killed loses at most ``preset.checkpoint_every`` steps, one that is asked to stop none. Its draws,
    augmentation and noise are functions of (seed, step): the resumed run is the one that was not stopped.

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
    stand_in : bool
        Train on the preset's stand-in; everything that is measured on the run says so.
    how : RunConfig, optional
        Devices, precision and the like.
    begun : callable, optional
        Called with the run when all is checked and nothing is trained yet, to say what follows.

    Returns
    -------
    Run

    Raises
    ------
    SetsupError
        When the folder holds another run, another process trains in it, data is missing, settings do not fit each
        other, the loss is no longer finite, or several devices train a method whose state they do not share.
    KeyboardInterrupt
        When it was asked to stop, after the checkpoint was written.

    """
    check_arguments(train, locals())
    folder, how = Path(folder), how or RunConfig()
    if preset.data is None:
        run = begin(folder, preset, seed, root=root, stand_in=stand_in, how=asdict(how))
        if begun is not None:
            begun(run)
        return run
    # before there is a folder: what does not fit leaves none behind
    for name in how.log:
        need_logger(name)
    if isinstance(preset.augmentation, str):
        need(f"the augmentation {preset.augmentation!r} needs", "kornia")
    dataset = preset.data.open(root, stand_in=stand_in)
    data = batches(preset, dataset, seed, how)
    if not has_checkpoint(folder):
        _try(preset, dataset, seed)
    method = fresh_method(preset, dataset.factors, seed)
    need_runnable(method)
    if how.compile:
        for network in method.children():
            network.compile()
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        stack.enter_context(torch.random.fork_rng(devices=[]))
        keeper = CheckpointCallback(preset, folder, allow_nonfinite=how.allow_nonfinite)
        about = {"preset": preset.name, "seed": seed, "stand_in": stand_in}
        settings = Settings(about | {"smoke": preset.shrunk} | flat(preset) | flat(how))
        identity = run_identity(folder, about | learned(flat(preset), stand_in))
        trainer = _trainer(preset, folder, how, [NoiseScaleCallback(seed), keeper, Bar(preset.steps), settings])
        stack.push(lambda error, *_: end_run(identity, failed=error is not None))
        if trainer.is_global_zero:
            stack.enter_context(_alone(folder))
        run = begin(folder, preset, seed, root=root, stand_in=stand_in, how=asdict(how))
        if trainer.is_global_zero:
            run.keep_factors(dataset.factors)
        if begun is not None:
            begun(run)
        if run.finished:
            return run
        # Lightning loads the weights once more, but says less where they do not fit
        resumed = str(load_weights(method, run)) if has_checkpoint(folder) else None
        title, at = f"{preset.name} seed {seed}", run.progress().steps
        trainer.loggers = [logger(name, title, folder, identity, at) for name in how.log]
        try:
            trainer.fit(method, datamodule=data, ckpt_path=resumed, weights_only=True)
        except SystemExit as end:
            if isinstance(end.__context__, KeyboardInterrupt):  # Lightning's answer to a second Ctrl-C
                raise KeyboardInterrupt from None
            raise
    if keeper.stopped is not None and not run.finished:
        raise KeyboardInterrupt(signal.Signals(keeper.stopped).name)
    return run


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a folder; the system lets it go when this process dies."""
    from filelock import FileLock, Timeout

    make_folder(folder)
    lock = FileLock(folder / "train.lock")
    try:
        with disk_errors(folder):
            lock.acquire(blocking=False)
    except Timeout:
        raise SetsupError(f"another process trains in {folder}: let it end, or give another --out") from None
    try:
        yield
    finally:
        (folder / "train.lock").unlink(missing_ok=True)  # still held: who comes next makes a new one
        with suppress(OSError):
            folder.rmdir()  # nothing was begun
        lock.release()


def _trainer(preset: Preset, folder: Path, how: RunConfig, callbacks: list[Callback]) -> Trainer:
    # under SLURM Lightning would keep checkpoints of its own, and prefer them to those of the run
    slurm = SLURMEnvironment.detect() and not TorchElasticEnvironment.detect()
    try:
        return Trainer(
            max_steps=preset.steps,
            accelerator=how.accelerator,
            devices=how.devices,
            num_nodes=how.nodes,
            precision=_PRECISION[how.precision],  # type: ignore[arg-type]
            callbacks=callbacks,
            plugins=[SLURMEnvironment(auto_requeue=False)] if slurm else None,
            logger=False,
            default_root_dir=folder,
            log_every_n_steps=0,  # loggers get from the Keeper what metrics.jsonl gets, by the same steps
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
    except MisconfigurationException as error:
        reason = " ".join(str(error).split())
        asked = f"accelerator {how.accelerator}, devices {how.devices} and nodes {how.nodes}"
        raise SetsupError(f"Lightning cannot train with {asked}: {reason}") from error


def fresh_method(preset: Preset, table: FactorTable, seed: int) -> LightningModule:
    """The untrained method of a seed, for the factors of what is trained on."""
    if preset.learning is None:
        raise SetsupError(f"{preset.name} trains nothing, so there is no method; it is evaluated only")
    key = stream_key(seed, "weights")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(key)  # for layers that are made without the generator
        method = preset.learning.method(table, torch.Generator().manual_seed(key))
    if not callable(getattr(method, "embed", None)):
        raise SetsupError(f"{type(method).__name__} has no embed(batch): it gives (sets, size, d) embeddings")
    return method


def load_weights(method: LightningModule, run: Run) -> Path:
    """Give a method the weights of a run's checkpoint, and say which that is; SetsupError names what does not fit."""
    path, weights = run.weights()
    try:
        method.load_state_dict(weights)
    except (RuntimeError, TypeError):  # whose sentences have many lines
        since = "the file of its preset has changed since: " if run.file_changed else ""
        raise SetsupError(
            f"{path} does not hold what the method of {run.preset.name} expects "
            f"({_misfit(method.state_dict(), weights)}); {since}bring back the method it was trained with, or train "
            "anew in another folder"
        ) from None
    return path


def _misfit(expected: Mapping[str, Any], weights: object) -> str:
    """The first of a method's weights that others do not fit, in words."""
    if not isinstance(weights, Mapping):
        return "no weights by name"
    for name, wanted in expected.items():
        if name not in weights:
            return f"{name} is missing"
        shapes = [_shape(weights[name]), _shape(wanted)]
        if None not in shapes and shapes[0] != shapes[1]:
            return f"{name} is {shapes[0]} there, {shapes[1]} in the method"
    more = [name for name in weights if name not in expected]
    return f"the method has no {more[0]!r}" if more else "of another kind"


def _shape(weight: object) -> tuple[int, ...] | None:
    if isinstance(weight, torch.Tensor) and not torch.nn.parameter.is_lazy(weight):
        return tuple(weight.shape)
    return None


def batches(preset: Preset, dataset: Dataset, seed: int, how: RunConfig) -> LightningBatches:
    """The batches that a preset trains on."""
    sampler, transform = _drawn(preset, dataset, seed)
    return LightningBatches(dataset, sampler, transform=transform, workers=how.workers)


def _drawn(preset: Preset, dataset: Dataset, seed: int) -> tuple[Sampler, Transform | None]:
    """What batches are drawn by, and what is done to them."""
    if preset.drawing is None:
        raise SetsupError(f"{preset.name} draws nothing: give it data, drawing and learning")
    transform = None
    if isinstance(preset.augmentation, str):
        from setsup.loading.transforms import recipe

        transform = recipe(preset.augmentation, seed=seed)
    elif preset.augmentation is not None:
        transform = preset.augmentation.transform(seed)
    return preset.drawing.sampler(dataset.factors, seed), transform


def eval_transform(preset: Preset, seed: int) -> Transform | None:
    """What is done to batches that are embedded: as the preset says, or as the recipe has it that it trains with."""
    asked = preset.augmentation if preset.eval_transform is None else preset.eval_transform
    if isinstance(asked, str):
        from setsup.loading.transforms import evaluation_transform

        return evaluation_transform(asked)
    return None if preset.eval_transform is None or asked is None else asked.transform(seed)


@contextmanager
def batch_has_it(method: LightningModule, batch: Mapping[str, Any]) -> Iterator[None]:
    """Raise SetsupError where a method asks a batch that it embeds for what that does not have."""
    try:
        yield
    except KeyError as error:
        (name,) = error.args[:1] or (None,)
        if not isinstance(name, str) or name in batch:
            raise
        raise SetsupError(
            f"{type(method).__name__}.embed asks for {name!r}, which batches that are evaluated do not have "
            f"({', '.join(batch)}): give the preset an eval_transform that makes it, without randomness"
        ) from error


def _try(preset: Preset, dataset: Dataset, seed: int) -> None:
    """Give the first draw to a method of its own, on the CPU: SetsupError for what does not fit.

    A draw as small as `smoke` has it comes first, and is enough where it fits: a whole one may take gigabytes.
    """
    shrunk = getattr(preset.drawing, "shrunk", None)
    if shrunk is not None:
        with suppress(Exception):  # which may be of so small a draw alone
            return _try_draw(replace(preset, drawing=shrunk()), dataset, seed)
    _try_draw(preset, dataset, seed)


def _try_draw(preset: Preset, dataset: Dataset, seed: int) -> None:
    sampler, transform = _drawn(preset, dataset, seed)
    batch = next(iter(Loader(dataset, sampler, transform=transform, workers=0)), None)
    if batch is None:
        return
    method = fresh_method(preset, dataset.factors, seed).eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Lightning, where something is logged without a Trainer
        for name in ("loss", "embed"):
            try:
                getattr(method, name)(batch)
            except SetsupError:
                raise
            except Exception:  # no loss of a batch; or left to the training, which may be on another device
                continue
            break
        if preset.evaluations:
            _try_embedding(method, Loader(dataset, sampler, transform=eval_transform(preset, seed), workers=0))


def _try_embedding(method: Any, batches: Loader) -> None:
    """Embed a draw as evaluations do: what it lacks then is said before hours of training."""
    batch = next(iter(batches))
    try:
        with batch_has_it(method, batch):
            method.embed(batch)
    except SetsupError:
        raise
    except Exception:  # left to the evaluation, which may be on another device
        return


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Lightning's advertisements of what it found and would like to have."""
    logs = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [log.level for log in logs]
    with warnings.catch_warnings():
        known = "num_workers|isinstance.treespec|GPU available but not used|functional.all_gather is deprecated"
        warnings.filterwarnings("ignore", message=f".*({known}).*")
        for log in logs:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for log, level in zip(logs, levels, strict=True):
                log.setLevel(level)
