"""Checkpoints and metrics of a training."""

import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from setsup.errors import SetsupError
from setsup.experiments.runs.checkpoint import (
    CALLBACK,
    CHECKPOINT,
    callback_state,
    drop_previous,
    keep_previous,
    open_checkpoint,
    trained_steps,
)
from setsup.experiments.training.checkpoint_retention import KeptCheckpoints
from setsup.experiments.training.checks import need_equal_state, need_step_metrics, need_step_schedules, nonfinite_state
from setsup.experiments.training.config import RunConfig
from setsup.experiments.training.counting import StepCounter
from setsup.experiments.training.metrics import append_lines, mean_over_draws, truncate_lines, write_csv
from setsup.experiments.training.step import copy_finite, count_images, find_loss
from setsup.files.atomic import written

__all__ = ["CheckpointCallback"]

_FLUSH = 50  # steps whose metrics are buffered: reading one of a GPU waits for it
_WAIT = 10.0  # seconds after which they are written in any case


class CheckpointCallback(Callback):
    """Writes a line of metrics per step, a checkpoint every so many steps, and one more when the run is stopped.

    It does so after all hooks of the end of a step, so that checkpoints have what other callbacks and the method change
    there.
    Metrics are everything that the method logs; loggers get the same, for the same steps. A signal to stop (Ctrl-C,
    SIGTERM) lets the step end first; a second one does not wait. When the run resumes, lines of steps that no
    checkpoint holds are dropped: these steps are trained again. The checkpoint before the last one is kept until the
    run is finished.

    A run resumes from its checkpoints, so none is written with weights that are not finite, or with state that differs
    between devices, which it would lose.
    """

    def __init__(self, name: str, every: int, folder: Path, counter: StepCounter, config: RunConfig) -> None:
        self._name, self._every, self._folder, self._metrics = name, every, folder, folder / "metrics.jsonl"
        self._counter, self._allow_nonfinite = counter, config.allow_nonfinite
        self._kept = KeptCheckpoints(folder, config.keep_every, config.keep_best)
        self._buffer: list[tuple[int, dict[str, torch.Tensor], set[str]]] = []
        self._losses: list[tuple[int, torch.Tensor, torch.cuda.Event | None]] = []
        self._counts: list[int | torch.Tensor] = []
        self._last: dict[str, torch.Tensor] = {}
        self._handlers: dict[int, Any] = {}
        self._seconds, self._images, self._since, self._saved = 0.0, 0, 0.0, 0
        self._written, self._saved_at = 0.0, 0.0
        self._longest = None if config.checkpoint_minutes is None else 60 * config.checkpoint_minutes
        self._good: Path | None = None
        self._ending = False
        self.stopped: int | None = None

    @property
    def state_key(self) -> str:
        """Name of the state in checkpoints."""
        return CALLBACK

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Find the state in checkpoints of earlier versions too."""
        checkpoint["callbacks"][CALLBACK] = callback_state(checkpoint)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Come after the method's own hook, which Lightning calls after those of all callbacks."""
        own = pl_module.on_train_batch_end

        def on_train_batch_end(outputs: Any, batch: Any, batch_idx: int) -> None:
            own(outputs, batch, batch_idx)
            self._end_draw(trainer, outputs, batch, first=batch_idx == 0)

        pl_module.on_train_batch_end = on_train_batch_end  # type: ignore[method-assign]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse what would be lost, drop metrics that no checkpoint holds, and handle signals."""
        need_step_schedules(trainer, pl_module)
        self._good = None if trainer.ckpt_path is None else Path(trainer.ckpt_path)
        if not self._allow_nonfinite and (name := nonfinite_state(trainer, pl_module)) is not None:
            raise SetsupError(
                f"{self._good or 'the method before training'} contains values that are not finite ({name}); train "
                "again in another folder, or continue with --allow-nonfinite"
            )
        if trainer.is_global_zero:
            truncate_lines(self._metrics, self._counter.steps)
            for name in ("run", "config", "factors", "first-batch", "metrics", "last", "previous", "best", "step-*"):
                for left in self._folder.glob(f".{name}-*.tmp.*"):
                    left.unlink()  # by a run that was killed while it wrote
        self._kept.start(self._counter.steps, self._good if trainer.is_global_zero else None)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._stop)
        self._since, self._saved = time.perf_counter(), self._counter.steps
        self._written = self._saved_at = self._since

    def _end_draw(self, trainer: Trainer, outputs: Any, batch: Any, *, first: bool) -> None:
        """Buffer the metrics of a draw; at the end of a step write a checkpoint when it is due, and end the run."""
        need_step_metrics(trainer, trainer.lightning_module)
        self._collect(trainer, outputs, batch)
        if first:
            need_equal_state(trainer, trainer.lightning_module)  # before DDP overwrites it with that of the first rank
        if self._counter.within_step:
            self._ending, trainer.should_stop = self._ending or trainer.should_stop, False  # asked by another callback
            return
        trainer.should_stop = trainer.should_stop or self._ending
        step = self._counter.steps
        due = len(self._buffer) >= _FLUSH or time.perf_counter() - self._written >= _WAIT
        kept = self._kept.due(step, self._buffer[-1][1])
        kept = kept or (self._longest is not None and time.perf_counter() - self._saved_at >= self._longest)
        stop, due, spoilt, kept = _any_rank(trainer, self.stopped is not None, due, self._nonfinite() is not None, kept)
        if stop:
            self.stopped = self.stopped or signal.SIGTERM  # another rank got the signal
            trainer.should_stop = True
        trainer.should_stop = last = trainer.should_stop or step >= trainer.max_steps
        save = last or kept or step - self._saved >= self._every
        if spoilt or ((save or due) and _any_rank(trainer, self._nonfinite(wait=True) is not None)[0]):
            self._write(trainer)
            raise self._nonfinite_error(f"the loss of step {self._nonfinite(wait=True) or step:,}")
        if save:
            self._save(trainer, last=last)
        elif due:
            self._write(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse to continue without draws, which Lightning would do for ever."""
        step = self._counter.steps
        if step < trainer.max_steps and not trainer.should_stop:
            raise SetsupError(
                f"the sampler of {self._name} ended after {step:,} of {trainer.max_steps:,} draws; train for fewer "
                "steps, or use an infinite sampler"
            )

    def state_dict(self) -> dict[str, Any]:
        """Seconds and images of training so far, for the checkpoint."""
        return {"seconds": self._seconds + time.perf_counter() - self._since, "images": self._images} | (
            {"best": best} if (best := self._kept.state()) else {}
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue counting."""
        self._seconds, self._images = state_dict["seconds"], state_dict.get("images", 0)
        self._kept.load_state(state_dict.get("best", {}))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Restore the signal handlers, before Lightning does."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Restore the signal handlers after an error too."""
        self.on_train_end(trainer, pl_module)

    def finish(self) -> None:
        """Complete a finished run that was killed when its last checkpoint had been written."""
        path, checkpoint = open_checkpoint(self._folder)
        self._kept.load_state(callback_state(checkpoint).get("best", {}))
        self._kept.start(trained_steps(checkpoint), path)
        drop_previous(self._folder)

    def _collect(self, trainer: Trainer, outputs: Any, batch: Any) -> None:
        """Keep on the device what a draw logged, whether its loss is finite, and how many images it had."""
        step = self._counter.steps + self._counter.within_step
        logged = {name: value.detach() for name, value in trainer.callback_metrics.items()}
        # metrics of an earlier step that this one did not log are still there, at their place in memory
        places = {name: value.data_ptr() for name, value in self._last.items()}
        fresh = {name: value for name, value in logged.items() if places.get(name) != value.data_ptr()}
        self._buffer.append((step, fresh, fresh.keys() & trainer.logged_metrics.keys()))
        self._last = logged
        self._counts.append(count_images(batch))
        if not self._allow_nonfinite and (loss := find_loss(trainer, outputs)) is not None:
            self._losses.append((step, *copy_finite(loss)))

    def _nonfinite(self, wait: bool = False) -> int | None:
        """The first step whose loss is known not to be finite; with `wait`, after all are known."""
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

    def _nonfinite_error(self, quantity: str) -> SetsupError:
        kept = f"{self._good} of step {self._saved:,} is the last good checkpoint" if self._good else ""
        return SetsupError(
            f"{quantity} of {self._name} is not finite: {kept or 'no checkpoint was saved'}; the same command "
            "would fail again, so train with other settings, such as a smaller learning rate, in another folder, "
            "or continue with --allow-nonfinite"
        )

    def _save(self, trainer: Trainer, last: bool) -> None:
        self._write(trainer)
        need_equal_state(trainer, trainer.lightning_module)
        if not self._allow_nonfinite and (name := nonfinite_state(trainer, trainer.lightning_module)) is not None:
            raise self._nonfinite_error(f"after step {self._counter.steps:,} {name}")
        if trainer.is_global_zero:
            self._kept.compare(self._counter.steps)
        if last and trainer.is_global_zero:
            write_csv(self._metrics)  # first: when the checkpoint is there, the run is finished
        path = self._folder / CHECKPOINT
        with ExitStack() as stack:
            # all ranks take part in gathering a checkpoint, one writes it
            part = stack.enter_context(written(path)) if trainer.is_global_zero else Path("unused")
            trainer.save_checkpoint(part)
            if trainer.is_global_zero and self._good == path:  # otherwise the one there was damaged, and is no loss
                keep_previous(self._folder)
        self._kept.keep(path if trainer.is_global_zero else None, self._counter.steps)
        self._good, self._saved, self._saved_at = path, self._counter.steps, time.perf_counter()
        if self._saved >= trainer.max_steps and trainer.is_global_zero:
            drop_previous(self._folder)

    def _write(self, trainer: Trainer) -> None:
        """Write the buffered metrics as means over the draws of a step and over ranks, and count images."""
        values = [value for _, logged, _ in self._buffer for value in logged.values()]
        means = trainer.strategy.reduce(torch.stack(values)).tolist() if values else []
        # summed here and not at every step, which would wait for a GPU
        images = torch.as_tensor(sum(self._counts), device=trainer.strategy.root_device)
        self._images += int(trainer.strategy.reduce(images, reduce_op="sum"))
        self._counts.clear()
        self._written = time.perf_counter()
        if trainer.is_global_zero:
            steps = mean_over_draws(((step, logged.keys(), names) for step, logged, names in self._buffer), means)
            append_lines(self._metrics, ((step, metrics) for step, metrics, _ in steps))
            for logger in trainer.loggers:
                for step, metrics, names in steps:
                    logger.log_metrics({name: value for name, value in metrics.items() if name in names}, step)
                logger.save()
                if isinstance(logger, TensorBoardLogger):
                    logger.experiment.flush()
        self._buffer.clear()

    def _stop(self, number: int, frame: Any) -> None:
        if self.stopped is not None:
            raise KeyboardInterrupt
        self.stopped = number


def _any_rank(trainer: Trainer, *flags: bool) -> list[bool]:
    """For each flag whether any rank has it."""
    if trainer.world_size == 1:
        return list(flags)
    counts = torch.tensor(flags, dtype=torch.int64, device=trainer.strategy.root_device)
    return [count > 0 for count in trainer.strategy.reduce(counts, reduce_op="sum").tolist()]
