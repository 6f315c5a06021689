"""Trains in sequence or side by side, and says what comes of it."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from setsup.errors import DataError, SetsupError, advised_for_command
from setsup_cli.training.describing import result_json
from setsup_cli.training.train_args import Training, unpack

if TYPE_CHECKING:
    from setsup.experiments import Run
    from setsup.experiments.runs.run import Progress
    from setsup.experiments.training.dry_run import Plan

__all__ = ["check", "check_draws", "check_parallel", "default_parallel", "train_beside", "train_one"]

OnBegin = Callable[["Run", "Progress"], None]


def train_one(training: Training, on_begin: OnBegin | None = None) -> dict[str, Any]:
    """Train, and return the results for JSON."""
    from setsup.experiments import train

    begun: list[tuple[Run, Progress]] = []

    def begin(run: "Run") -> None:
        begun.append((run, run.progress()))  # before it is trained
        if on_begin is not None:
            on_begin(*begun[0])

    parts: dict[str, Any] = {"root": training.root, "substitute": training.substitute, "config": training.config}
    try:
        with _as_asked(training, begun):
            run = train(training.preset, training.folder, seed=training.seed, on_start=begin, **parts)
    except KeyboardInterrupt:
        if not begun:
            raise
        at = f"at step {begun[0][0].progress().steps:,} of {training.preset.steps:,}"
        raise KeyboardInterrupt(f"{at}; run the same command to resume") from None
    return result_json(training, run, begun[0][1])


def check(training: Training, *, data: bool = True) -> "Plan | None":
    """Raise what a training would raise before it begins; without `data`, what its folder says."""
    from setsup.experiments.runs.run_folder import check_begin
    from setsup.experiments.training.dry_run import dry_run

    parts: dict[str, Any] = {"root": training.root, "substitute": training.substitute}
    with _as_asked(training):
        if data:
            return dry_run(training.preset, training.folder, seed=training.seed, config=training.config, **parts)
        check_begin(training.folder, training.preset, training.seed, config=asdict(training.config), **parts)
    return None


def check_draws(training: Training) -> None:
    """Raise what is wrong with the data of a training, or with the factors that it names; torch is not imported."""
    from setsup.experiments.training.preflight import check_draws as check_data

    if training.preset.data is None:
        return
    with _as_asked(training):
        data = training.preset.open_training(training.seed, training.root, substitute=training.substitute)
        check_data(data, training.preset.method)


@contextmanager
def _as_asked(training: Training, begun: Sequence[object] = ()) -> Iterator[None]:
    """Name options in errors of samplers, and the substitute in those of data, unless the training has begun."""
    from setsup.samplers.spelling import PYTHON_NAMES

    sampler = training.preset.sampler
    names: list[str] = [member.name for member in fields(sampler)] if is_dataclass(sampler) else []
    try:
        with advised_for_command({PYTHON_NAMES.get(name, name): f"--sampler.{name}" for name in names}):
            yield
    except DataError as error:
        other = (
            None if begun or training.substitute or training.preset.data is None else training.preset.data.substitute
        )
        if other is None:
            raise
        raise DataError(f"{error}; or train on {other} with --substitute") from None


# -- side by side ------------------------------------------------------------------------------------------------------


def check_parallel(training: Training, processes: int) -> None:
    """Raise SetsupError unless trainings can run side by side."""
    if processes < 1:
        raise SetsupError(f"--parallel must be 1 or more, not {processes}")
    if processes > 1 and training.config.devices * training.config.nodes > 1:
        raise SetsupError(
            f"--parallel {processes} trains several runs in parallel, each on one device, and cannot be combined with "
            "--devices or --nodes above 1; omit --parallel, or omit --devices and --nodes"
        )


def default_parallel(training: Training) -> int:
    """One run per GPU where there are several, and each run trains on one; 1 on a CPU."""
    import torch

    single = training.config.devices == training.config.nodes == 1 and training.config.accelerator != "cpu"
    return max(torch.cuda.device_count(), 1) if single else 1


def train_beside(trainings: Sequence[Training], processes: int) -> list[dict[str, Any]]:
    """Train in several processes; the results in order, ``{"error": …}`` for a training that failed.

    Each process computes with its share of this one's threads, and on a GPU of its own where there are several.
    """
    import torch

    from setsup import jobs

    threads = max(1, torch.get_num_threads() // processes)
    with TemporaryDirectory(prefix="setsup-") as locks:
        common = {"threads": threads, "gpus": _gpus(), "processes": processes, "locks": locks}
        units = [jobs.Unit(str(training.folder), {**training.pack(), **common}) for training in trainings]
        try:
            return jobs.run(_train_unit, units, processes=processes, what="training", counted="runs")
        except KeyboardInterrupt:
            raise KeyboardInterrupt("; run the same command to resume from the last checkpoints") from None


def _train_unit(data: dict[str, Any]) -> dict[str, Any]:
    """Train in a worker process."""
    if len(data["gpus"]) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = data["gpus"][
            _take_number(data["locks"], data["processes"]) % len(data["gpus"])
        ]
    import torch

    torch.set_num_threads(data["threads"])
    logging.getLogger("setsup").setLevel(logging.WARNING)  # no progress bar among those of others
    training = unpack(data)
    try:
        return train_one(training)
    except SetsupError as error:
        return {"error": str(error)}


def _gpus() -> list[str]:
    """GPUs that this process sees, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    known = os.environ.get("CUDA_VISIBLE_DEVICES")
    return known.split(",") if known else [str(number) for number in range(torch.cuda.device_count())]


_held: list[tuple[int, Any]] = []


def _take_number(folder: str, count: int) -> int:
    """A number below `count` that no other process has; this one keeps it, and the system frees it at its end."""
    from filelock import FileLock, Timeout

    while not _held:
        for number in range(count):
            lock = FileLock(Path(folder, f"{number}.lock"))
            with suppress(Timeout):
                lock.acquire(blocking=False)
                _held.append((number, lock))
                break
    return _held[0][0]
