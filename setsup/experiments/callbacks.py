"""What happens beside the steps of a training: lines of metrics, checkpoints, noise by step, a bar."""

import json
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from setsup.experiments.run import Run
from setsup.files.atomic import written
from setsup.progress import progress
from setsup.random import fold, stream_key

__all__ = ["Bar", "Keeper", "Noise"]

_FLUSH = 50  # steps whose metrics are held: reading one of a GPU waits for it


class Noise(Callback):
    """Seeds torch's generators before every step by (seed, step, rank): dropout and the like resume with the run."""

    def __init__(self, seed: int) -> None:
        self._key = stream_key(seed, "noise")

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Seed torch on the CPU and on all GPUs."""
        torch.manual_seed(int(fold(int(fold(self._key, trainer.global_step)), trainer.global_rank)))


class Keeper(Callback):
    """Keeps a line of metrics a step, a checkpoint every so many steps, and one more when the run is stopped.

    Metrics are everything that the method logs. A signal to stop (Ctrl-C, SIGTERM) lets the step end first; a second
    one does not wait. Lines of steps that no checkpoint holds are dropped when the run goes on: they come again.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._metrics = run, Path(run.folder) / "metrics.jsonl"
        self._held: list[tuple[int, dict[str, torch.Tensor]]] = []
        self._before: dict[int, Any] = {}
        self._seconds = run.seconds()
        self._since = 0.0
        self.stopped: int | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Drop what no checkpoint holds, and take the signals."""
        if trainer.is_global_zero:
            _keep_lines(self._metrics, trainer.global_step)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        self._since = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Hold the step's metrics; keep a checkpoint when it is time."""
        step = trainer.global_step
        logged = {name: value.detach() for name, value in trainer.callback_metrics.items()}
        self._held.append((step, logged))
        if trainer.strategy.reduce_boolean_decision(self.stopped is not None, all=False):
            trainer.should_stop = True
        if step % self._run.preset.checkpoint_every == 0 or step == self._run.preset.steps or trainer.should_stop:
            self._save(trainer)
        elif len(self._held) >= _FLUSH:
            self._write(trainer)

    def state_dict(self) -> dict[str, Any]:
        """Seconds of training so far, for the checkpoint."""
        return {"seconds": self._seconds + time.perf_counter() - self._since}

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _save(self, trainer: Trainer) -> None:
        self._write(trainer)
        with ExitStack() as stack:
            # all ranks take part in gathering a checkpoint, one writes it
            part = stack.enter_context(written(self._run.checkpoint)) if trainer.is_global_zero else Path("unused")
            trainer.save_checkpoint(part)

    def _write(self, trainer: Trainer) -> None:
        if trainer.is_global_zero:
            with self._metrics.open("a") as lines:
                for step, logged in self._held:
                    row = {"step": step, **{name: value.item() for name, value in logged.items()}}
                    lines.write(json.dumps(row) + "\n")
        self._held.clear()

    def _stop(self, number: int, frame: Any) -> None:
        if self.stopped is not None:
            raise KeyboardInterrupt
        self.stopped = number


class Bar(Callback):
    """A bar on a terminal, in images, with their rate and the time left."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._stack = ExitStack()
        self._advance: Callable[[int], None] | None = None

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Move on by the step's images."""
        images = batch["indices"].numel() * trainer.world_size
        if self._advance is None:
            if not trainer.is_global_zero:
                return
            left = self._steps - trainer.global_step + 1
            self._advance = self._stack.enter_context(progress(left * images, "training", "images"))
        self._advance(images)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Take the bar away."""
        self._stack.close()
        self._advance = None


def _keep_lines(metrics: Path, steps: int) -> None:
    """Drop the lines of steps after `steps`, and what a killed run left of a line."""
    kept = []
    if metrics.exists():
        for line in metrics.read_text().splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                break
            if row["step"] <= steps:
                kept.append(line)
    with written(metrics) as part:
        part.write_text("".join(f"{line}\n" for line in kept))
