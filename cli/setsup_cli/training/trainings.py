"""Trains in sequence or side by side, and says what comes of it."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from setsup.errors import DataError, SetsupError
from setsup_cli.training.describing import result_json
from setsup_cli.training.train_args import Training

if TYPE_CHECKING:
    from setsup.experiments import Run
    from setsup.experiments.runs.run import Progress
    from setsup.experiments.training.dry_run import Plan

__all__ = ["check", "check_draws", "check_parallel", "default_parallel", "train_beside", "train_one"]

OnBegin = Callable[["Run", "Progress"], None]


def train_one(one: Training, on_begin: OnBegin | None = None) -> dict[str, Any]:
    """Train, and return the results for JSON."""
    from setsup.experiments import train

    begun: list[tuple[Run, Progress]] = []

    def begin(run: "Run") -> None:
        begun.append((run, run.progress()))  # before it is trained
        if on_begin is not None:
            on_begin(*begun[0])

    parts: dict[str, Any] = {"root": one.root, "substitute": one.substitute, "config": one.config}
    try:
        with _as_asked(one, begun):
            run = train(one.preset, one.folder, seed=one.seed, on_start=begin, **parts)
    except KeyboardInterrupt:
        if not begun:
            raise
        at = f"at step {begun[0][0].progress().steps:,} of {one.preset.steps:,}"
        raise KeyboardInterrupt(f"{at}; run the same command to resume") from None
    return result_json(one, run, begun[0][1])


def check(one: Training, *, data: bool = True) -> "Plan | None":
    """Raise what a training would raise before it begins; without `data`, what its folder says."""
    from setsup.experiments.runs.run_folder import check_begin
    from setsup.experiments.training.dry_run import dry_run

    parts: dict[str, Any] = {"root": one.root, "substitute": one.substitute}
    with _as_asked(one):
        if data:
            return dry_run(one.preset, one.folder, seed=one.seed, config=one.config, **parts)
        check_begin(one.folder, one.preset, one.seed, config=asdict(one.config), **parts)
    return None


def check_draws(one: Training) -> None:
    """Raise what is wrong with the data of a training, or with the factors that it names; torch is not imported."""
    from setsup.experiments.training.preflight import check_draws as check_preset

    with _as_asked(one):
        check_preset(one.preset, one.seed, root=one.root, substitute=one.substitute)


@contextmanager
def _as_asked(one: Training, begun: Sequence[object] = ()) -> Iterator[None]:
    """Name options in errors of samplers, and the substitute in those of data, unless the training has begun."""
    from setsup.samplers.spelling import PYTHON_NAMES, spelled_as_options

    sampler = one.preset.sampler
    names: list[str] = [member.name for member in fields(sampler)] if is_dataclass(sampler) else []
    try:
        with spelled_as_options({PYTHON_NAMES.get(name, name): f"--sampler.{name}" for name in names}):
            yield
    except DataError as error:
        other = None if begun or one.substitute or one.preset.data is None else one.preset.data.substitute
        if other is None:
            raise
        raise DataError(f"{error}; or --substitute trains on {other}") from None


# -- side by side ------------------------------------------------------------------------------------------------------


def check_parallel(one: Training, processes: int) -> None:
    """Raise SetsupError unless trainings can run side by side."""
    if processes < 1:
        raise SetsupError(f"--parallel must be 1 or more, not {processes}")
    if processes > 1 and one.config.devices * one.config.nodes > 1:
        raise SetsupError(
            f"--parallel {processes} trains runs side by side, each on one device: leave out --parallel, --devices or "
            "--nodes"
        )


def default_parallel(one: Training) -> int:
    """One run per GPU where there are several, and each run trains on one; 1 on a CPU."""
    import torch

    single = one.config.devices == one.config.nodes == 1 and one.config.accelerator != "cpu"
    return max(torch.cuda.device_count(), 1) if single else 1


def train_beside(trainings: Sequence[Training], processes: int) -> list[dict[str, Any]]:
    """Train in several processes; the results in order, ``{"error": …}`` for a training that failed.

    Each process computes with its share of this one's threads, and on a GPU of its own where there are several.
    """
    import torch

    from setsup import jobs

    threads = max(1, torch.get_num_threads() // processes)
    with TemporaryDirectory(prefix="setsup-") as places:
        common = {"threads": threads, "gpus": _gpus(), "processes": processes, "places": places}
        units = [jobs.Unit(str(one.folder), {**_portable(one), **common}) for one in trainings]
        try:
            return jobs.run(_train_unit, units, processes=processes, what="training", counted="runs")
        except KeyboardInterrupt:
            raise KeyboardInterrupt("; run the same command to resume from the last checkpoints") from None


def _portable(one: Training) -> dict[str, Any]:
    """A training as plain values: presets in a file of the user's own are found there again."""
    from setsup.experiments.settings import flatten

    about = {"name": one.name, "shrunk": one.preset.shrunk, "settings": flatten(one.preset)}
    return about | {**one._asdict(), "preset": None, "config": asdict(one.config)}


def _train_unit(data: dict[str, Any]) -> dict[str, Any]:
    """Train in a worker process."""
    if len(data["gpus"]) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = data["gpus"][_place(data["places"], data["processes"]) % len(data["gpus"])]
    import torch

    from setsup.experiments import RunConfig, find_preset, smoke
    from setsup.experiments.settings import put

    torch.set_num_threads(data["threads"])
    logging.getLogger("setsup").setLevel(logging.WARNING)  # no progress bar among those of others
    preset = find_preset(data["name"])
    preset = put(smoke(preset) if data["shrunk"] else preset, data["settings"])
    config = RunConfig(**data["config"])
    one = Training(data["name"], preset, Path(data["folder"]), data["seed"], data["root"], data["substitute"], config)
    try:
        return train_one(one)
    except SetsupError as error:
        return {"error": str(error)}


def _gpus() -> list[str]:
    """GPUs that this process sees, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    known = os.environ.get("CUDA_VISIBLE_DEVICES")
    return known.split(",") if known else [str(number) for number in range(torch.cuda.device_count())]


_held: list[tuple[int, Any]] = []


def _place(folder: str, places: int) -> int:
    """A number below `places` that no other process has; this one keeps it, and the system frees it at its end."""
    from filelock import FileLock, Timeout

    while not _held:
        for number in range(places):
            lock = FileLock(Path(folder, f"{number}.lock"))
            with suppress(Timeout):
                lock.acquire(blocking=False)
                _held.append((number, lock))
                break
    return _held[0][0]
