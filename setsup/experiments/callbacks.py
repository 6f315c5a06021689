"""What happens beside the steps of a training: lines of metrics, checkpoints, noise by step, a bar."""

import csv
import json
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from setsup.errors import SetsupError
from setsup.experiments.checkpoint import CHECKPOINT, drop_previous, keep_previous
from setsup.experiments.checks import (
    loss_of,
    need_equal_state,
    need_step_metrics,
    need_step_schedules,
    nonfinite_state,
)
from setsup.experiments.preset import Preset
from setsup.experiments.run import finite
from setsup.files.atomic import written
from setsup.progress import Advance, progress
from setsup.random import fold, stream_key

__all__ = ["Bar", "CheckpointCallback", "NoiseScaleCallback", "Settings"]

_FLUSH = 50  # steps whose metrics are held: reading one of a GPU waits for it
_WAIT = 10.0  # seconds after which they are not held, either
_TOGETHER = 100  # counts of images that are added up
_RECENT = 30.0  # seconds over which the speed is a mean, at least since the last look


class NoiseScaleCallback(Callback):
    """Seeds torch's generators before every step by (seed, step, rank): dropout and the like resume with the run."""

    def __init__(self, seed: int) -> None:
        self._key = stream_key(seed, "noise")

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Seed torch on the CPU and on all GPUs."""
        torch.manual_seed(int(fold(int(fold(self._key, trainer.global_step)), trainer.global_rank)))


class CheckpointCallback(Callback):
    """Keeps a line of metrics a step, a checkpoint every so many steps, and one more when the run is stopped.

    Metrics are everything that the method logs; loggers get the same, by the same steps. A signal to stop (Ctrl-C,
    SIGTERM) lets the step end first; a second one does not wait. Lines of steps that no checkpoint holds are dropped
    when the run goes on: they come again. The checkpoint before the last one is kept until the run is finished.

    A checkpoint is what a run goes on from, so none is written of what would be lost or spoilt: weights that are not
    finite, and state that differs between the devices.
    """

    def __init__(self, preset: Preset, folder: Path, *, allow_nonfinite: bool = False) -> None:
        self._preset, self._folder, self._metrics = preset, folder, folder / "metrics.jsonl"
        self._allow_nonfinite = allow_nonfinite
        self._held: list[tuple[int, dict[str, torch.Tensor], set[str]]] = []
        self._losses: list[tuple[int, torch.Tensor, torch.cuda.Event | None]] = []
        self._counts: list[int | torch.Tensor] = []
        self._last: dict[str, torch.Tensor] = {}
        self._before: dict[int, Any] = {}
        self._seconds, self._images, self._since, self._saved = 0.0, 0, 0.0, 0
        self._written = 0.0
        self._whole: Path | None = None
        self._compare = False
        self.stopped: int | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse what would be lost, drop what no checkpoint holds, and take the signals."""
        need_step_schedules(trainer, pl_module)
        self._whole = None if trainer.ckpt_path is None else Path(trainer.ckpt_path)
        if not self._allow_nonfinite and (name := nonfinite_state(trainer, pl_module)) is not None:
            raise SetsupError(
                f"{self._whole or 'the untrained method'} holds what is not finite ({name}): train anew in another "
                "folder, or train on with --allow-nonfinite"
            )
        if trainer.is_global_zero:
            _keep_lines(self._metrics, trainer.global_step)
            for name in ("run", "factors", "metrics", "last", "previous"):
                for left in self._folder.glob(f".{name}-*.tmp.*"):
                    left.unlink()  # by a run that was killed while it wrote
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        self._since, self._saved = time.perf_counter(), trainer.global_step
        self._written = self._since

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Compare the state of ranks once more, before DDP gives them all that of the first.

        What a method does to it at the very end of a step, after this callback's turn, is seen here alone.
        """
        if self._compare:
            need_equal_state(trainer, pl_module)
            self._compare = False

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Hold the step's metrics; keep a checkpoint when it is time."""
        need_step_metrics(trainer, pl_module)
        self._hold(trainer, outputs, batch)
        step = trainer.global_step
        due = len(self._held) >= _FLUSH or time.perf_counter() - self._written >= _WAIT
        stop, due, spoilt = _any_rank(trainer, self.stopped is not None, due, self._nonfinite() is not None)
        if stop:
            self.stopped = self.stopped or signal.SIGTERM  # another rank was asked to
            trainer.should_stop = True
        # with two optimisers a batch is two steps: counts may be passed over
        last = trainer.should_stop or step >= self._preset.steps
        save = last or step - self._saved >= self._preset.checkpoint_every
        if spoilt or ((save or due) and _any_rank(trainer, self._nonfinite(wait=True) is not None)[0]):
            self._write(trainer)
            raise self._spoilt(f"the loss of step {self._nonfinite(wait=True) or step:,}")
        if save:
            self._save(trainer, last=last)
        elif due:
            self._write(trainer)
        self._compare |= batch_idx == 0 or save

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse to go on without draws, which Lightning would do for ever."""
        step = trainer.global_step
        if step < self._preset.steps and not trainer.should_stop:
            raise SetsupError(
                f"the draws of {self._preset.name} end after {step:,} of {self._preset.steps:,} steps: give it fewer "
                "steps, or a sampler that goes on"
            )

    def state_dict(self) -> dict[str, Any]:
        """Seconds and images of training so far, for the checkpoint."""
        return {"seconds": self._seconds + time.perf_counter() - self._since, "images": self._images}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on counting."""
        self._seconds, self._images = state_dict["seconds"], state_dict.get("images", 0)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Give the signals back, before Lightning does."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Give the signals back after an error, too."""
        self.on_train_end(trainer, pl_module)

    def _hold(self, trainer: Trainer, outputs: Any, batch: Any) -> None:
        """Keep on the device what the step logged, whether its loss is finite, and how many images it had."""
        step = trainer.global_step
        found = {name: value.detach() for name, value in trainer.callback_metrics.items()}
        # what an earlier step logged, and this one did not, is there still, at its place in memory
        places = {name: value.data_ptr() for name, value in self._last.items()}
        fresh = {name: value for name, value in found.items() if places.get(name) != value.data_ptr()}
        self._held.append((step, fresh, fresh.keys() & trainer.logged_metrics.keys()))
        self._last = found
        self._counts.append(_images(batch))
        if not self._allow_nonfinite and (loss := loss_of(trainer, outputs)) is not None:
            self._losses.append((step, *_whether_finite(loss)))

    def _nonfinite(self, wait: bool = False) -> int | None:
        """The first step whose loss is known not to be finite; with `wait`, all are known first."""
        while self._losses:
            step, good, copied = self._losses[0]
            if copied is not None and not copied.query():  # type: ignore[no-untyped-call]
                if not wait:
                    break
                copied.synchronize()
            if not good:
                return step
            del self._losses[0]
        return None

    def _spoilt(self, what: str) -> SetsupError:
        kept = f"{self._whole} of step {self._saved:,} is the last good checkpoint" if self._whole else ""
        return SetsupError(
            f"{what} of {self._preset.name} is not finite: {kept or 'there is no checkpoint yet'}; the same command "
            "meets it again, so train with other settings in another folder, such as a smaller rate, or train on with "
            "--allow-nonfinite"
        )

    def _save(self, trainer: Trainer, last: bool) -> None:
        self._write(trainer)
        need_equal_state(trainer, trainer.lightning_module)
        if not self._allow_nonfinite and (name := nonfinite_state(trainer, trainer.lightning_module)) is not None:
            raise self._spoilt(f"after step {trainer.global_step:,} {name}")
        if last and trainer.is_global_zero:
            _write_csv(self._metrics)  # first: when the checkpoint is there, the run is finished
        path = self._folder / CHECKPOINT
        with ExitStack() as stack:
            # all ranks take part in gathering a checkpoint, one writes it
            part = stack.enter_context(written(path)) if trainer.is_global_zero else Path("unused")
            trainer.save_checkpoint(part)
            if trainer.is_global_zero and self._whole == path:  # another one was damaged, and is no loss
                keep_previous(self._folder)
        self._whole, self._saved = path, trainer.global_step
        if self._saved >= self._preset.steps and trainer.is_global_zero:
            drop_previous(self._folder)

    def _write(self, trainer: Trainer) -> None:
        """Write the means over ranks of what was held, and count images."""
        values = [value for _, logged, _ in self._held for value in logged.values()]
        means = iter(trainer.strategy.reduce(torch.stack(values)).tolist() if values else ())
        # read now and not at every step: a GPU would be waited for
        images = torch.as_tensor(sum(self._counts), device=trainer.strategy.root_device)
        self._images += int(trainer.strategy.reduce(images, reduce_op="sum"))
        self._counts.clear()
        self._written = time.perf_counter()
        if trainer.is_global_zero:
            with self._metrics.open("a", encoding="utf-8") as lines:
                for step, logged, told in self._held:
                    found = dict(zip(logged, means, strict=False))
                    lines.write(json.dumps({"step": step, **{name: finite(one) for name, one in found.items()}}) + "\n")
                    for logger in trainer.loggers:
                        logger.log_metrics({name: one for name, one in found.items() if name in told}, step)
                lines.flush()
                os.fsync(lines.fileno())  # no checkpoint outlives the lines of its steps
            for logger in trainer.loggers:
                logger.save()
                if isinstance(logger, TensorBoardLogger):
                    logger.experiment.flush()
        self._held.clear()

    def _stop(self, number: int, frame: Any) -> None:
        if self.stopped is not None:
            raise KeyboardInterrupt
        self.stopped = number


class Settings(Callback):
    """Tells loggers what is trained: their tables of runs have a column for each setting.

    TensorBoard has a row only for a run with metrics beside its settings: at the end of each training it gets what was
    logged last, under names such as ``last/loss``.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Tell them, before Lightning writes down that there are none."""
        for logger in trainer.loggers:
            logger.log_hyperparams(self._settings)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Give TensorBoard its row."""
        found = {f"last/{name}": float(value) for name, value in trainer.callback_metrics.items()}
        for logger in trainer.loggers:
            if found and isinstance(logger, TensorBoardLogger):
                logger.log_hyperparams(self._settings, found, trainer.global_step)


class Bar(Callback):
    """Shows progress in steps, with images a second, the loss, and the time left.

    Images are those of this process, slots without one left out, times the number of processes.
    """

    def __init__(self, steps: int) -> None:
        self._steps, self._at, self._world = steps, 0, 1
        self._stack = ExitStack()
        self._advance: Advance | None = None
        self._loss: torch.Tensor | None = None
        self._counts: list[int | torch.Tensor] = []
        self._looks: deque[tuple[float, int]] = deque()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin where the run goes on."""
        self._at, self._world = trainer.global_step, trainer.world_size
        if trainer.is_global_zero:
            shown = progress(self._steps - self._at, "training", "steps", self._note)
            self._advance = self._stack.enter_context(shown)
            self._looks.append((time.perf_counter(), 0))

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Move on by the steps of a batch."""
        if self._advance is None:
            return
        self._loss = loss_of(trainer, outputs)
        self._counts.append(_images(batch))
        if len(self._counts) >= _TOGETHER:  # on a GPU, where nobody waits for the sum
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
        return speed if self._loss is None else f"{speed}, loss {float(self._loss.float().mean()):.4g}"

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Take the bar away."""
        self._stack.close()
        self._advance = None

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Take the bar away after an error, too."""
        self.teardown(trainer, pl_module, "fit")


def _whether_finite(loss: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event | None]:
    """Whether a loss is finite; for one on a GPU, which is not waited for, with the event of its arrival here."""
    good = loss.isfinite().all()
    if not loss.is_cuda:
        return good, None
    here, copied = good.to("cpu", non_blocking=True), torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record()
    return here, copied


def _any_rank(trainer: Trainer, *flags: bool) -> list[bool]:
    """For each flag whether any rank has it."""
    if trainer.world_size == 1:
        return list(flags)
    counts = torch.tensor(flags, dtype=torch.int64, device=trainer.strategy.root_device)
    return [count > 0 for count in trainer.strategy.reduce(counts, reduce_op="sum").tolist()]


def _images(batch: Any) -> int | torch.Tensor:
    """Images of a batch; on a GPU as a tensor there, which nobody waits for."""
    found: int | torch.Tensor = batch["mask"].sum() if "mask" in batch else batch["indices"].numel()
    return found


def _keep_lines(metrics: Path, steps: int) -> None:
    """Drop the lines of steps after `steps`, and what a killed run left of a line."""
    kept = []
    if metrics.exists():
        for line in metrics.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                if json.loads(line)["step"] > steps:
                    break
            except (ValueError, TypeError, KeyError):
                break
            kept.append(line)
    with written(metrics) as part:
        part.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def _write_csv(metrics: Path) -> None:
    """The metrics once more, for spreadsheets."""
    rows = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with written(metrics.with_suffix(".csv")) as part, part.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows(rows)
