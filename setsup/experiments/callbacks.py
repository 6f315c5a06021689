"""What happens beside the steps of a training: lines of metrics, checkpoints, noise by step, a bar."""

import csv
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from setsup.errors import SetsupError
from setsup.experiments.preset import Preset
from setsup.experiments.run import CHECKPOINT, finite
from setsup.files.atomic import written
from setsup.random import fold, stream_key

__all__ = ["Bar", "Keeper", "Noise", "Settings"]

_FLUSH = 50  # steps whose metrics are held: reading one of a GPU waits for it
_GLANCE = 0.5  # seconds between two looks at the images of a bar, for the same reason
_GLANCES = 60  # over so many looks the speed is a mean


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

    def __init__(self, preset: Preset, folder: Path) -> None:
        self._preset, self._folder, self._metrics = preset, folder, folder / "metrics.jsonl"
        self._held: list[tuple[int, dict[str, torch.Tensor]]] = []
        self._counts: list[int | torch.Tensor] = []
        self._last: dict[str, torch.Tensor] = {}
        self._before: dict[int, Any] = {}
        self._seconds, self._images, self._since, self._saved = 0.0, 0, 0.0, 0
        self.stopped: int | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Drop what no checkpoint holds, and take the signals."""
        if trainer.is_global_zero:
            _keep_lines(self._metrics, trainer.global_step)
            for name in ("run", "factors", "metrics", "last"):
                for left in self._folder.glob(f".{name}-*.tmp.*"):
                    left.unlink()  # by a run that was killed while it wrote
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        self._since, self._saved = time.perf_counter(), trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Hold the step's metrics; keep a checkpoint when it is time."""
        step = trainer.global_step
        found = {name: value.detach() for name, value in trainer.callback_metrics.items()}
        # what an earlier step logged, and this one did not, is there still, at its place in memory
        places = {name: value.data_ptr() for name, value in self._last.items()}
        fresh = {name: value for name, value in found.items() if places.get(name) != value.data_ptr()}
        self._held.append((step, fresh))
        self._last = found
        self._counts.append(_images(batch))
        if trainer.strategy.reduce_boolean_decision(self.stopped is not None, all=False):
            self.stopped = self.stopped or signal.SIGTERM  # another rank was asked to
            trainer.should_stop = True
        # with two optimisers a batch is two steps: counts may be passed over
        last = trainer.should_stop or step >= self._preset.steps
        if last or step - self._saved >= self._preset.checkpoint_every:
            self._save(trainer, last=last)
        elif len(self._held) >= _FLUSH:
            self._write(trainer)

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

    def _save(self, trainer: Trainer, last: bool) -> None:
        self._write(trainer)
        if last and trainer.is_global_zero:
            _write_csv(self._metrics)  # first: when the checkpoint is there, the run is finished
        with ExitStack() as stack:
            # all ranks take part in gathering a checkpoint, one writes it
            part = stack.enter_context(written(self._folder / CHECKPOINT)) if trainer.is_global_zero else Path("unused")
            trainer.save_checkpoint(part)
        self._saved = trainer.global_step

    def _write(self, trainer: Trainer) -> None:
        """Write the means over ranks of what was held, and count images."""
        values = [value for _, logged in self._held for value in logged.values()]
        means = iter(trainer.strategy.reduce(torch.stack(values)).tolist() if values else ())
        # read now and not at every step: a GPU would be waited for
        images = torch.as_tensor(sum(self._counts), device=trainer.strategy.root_device)
        self._images += int(trainer.strategy.reduce(images, reduce_op="sum"))
        self._counts.clear()
        if trainer.is_global_zero:
            with self._metrics.open("a", encoding="utf-8") as lines:
                for step, logged in self._held:
                    line = {"step": step, **dict(zip(logged, map(finite, means), strict=False))}
                    lines.write(json.dumps(line) + "\n")
                lines.flush()
                os.fsync(lines.fileno())  # no checkpoint outlives the lines of its steps
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
    """A bar on a terminal, in steps, with images a second and the time left.

    Images are those of this process, slots without one left out, times the number of processes.
    """

    def __init__(self, steps: int) -> None:
        self._steps, self._at = steps, 0
        self._stack = ExitStack()
        self._advance: Callable[[int, str], None] | None = None
        self._counts: list[int | torch.Tensor] = []
        self._looks: deque[tuple[float, int]] = deque(maxlen=_GLANCES)
        self._speed = ""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin where the run goes on."""
        self._at = trainer.global_step
        if trainer.is_global_zero and sys.stderr is not None and sys.stderr.isatty():
            self._advance = self._stack.enter_context(_bar(self._steps - self._at))
            self._looks.append((time.perf_counter(), 0))

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Move on by the steps of a batch."""
        if self._advance is None:
            return
        self._counts.append(_images(batch))
        now, (before, images) = time.perf_counter(), self._looks[-1]
        if now - before >= _GLANCE:
            images += int(sum(self._counts)) * trainer.world_size
            self._counts.clear()
            self._looks.append((now, images))
            since, had = self._looks[0]
            self._speed = f"{(images - had) / (now - since):,.0f} images/s"
        self._advance(trainer.global_step - self._at, self._speed)
        self._at = trainer.global_step

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Take the bar away."""
        self._stack.close()
        self._advance = None

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Take the bar away after an error, too."""
        self.teardown(trainer, pl_module, "fit")


@contextmanager
def _bar(steps: int) -> Iterator[Callable[[int, str], None]]:
    """A bar in steps, beside which stands what is said of their speed."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    name, speed = TextColumn("{task.description}"), TextColumn("{task.fields[speed]}")
    columns = name, BarColumn(), MofNCompleteColumn(), speed, TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("training", total=steps, speed="")
        yield lambda done, said: bars.update(task, advance=done, speed=said)


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
