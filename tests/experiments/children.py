"""Runs in processes of their own, that can be killed: a script which imports all once and forks for every order.

It reads orders from its input, JSON, one a line, and answers each with one line: how the process ended, as
:attr:`subprocess.Popen.returncode` says it.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from setsup.experiments import RunConfig, evaluate, open_run, train
from setsup.experiments.evaluations import FactorInformation, NoiseSweep, Probes
from setsup.experiments.result_cache import PartStore, digest, plain
from setsup.experiments.training import checkpointing
from setsup.experiments.training.checkpointing import CheckpointCallback
from setsup.experiments.training.monitoring import held_out
from tests.experiments.resumable import METHODS
from tests.experiments.small import PLAIN, PRESETS
from tests.experiments.validated import VALIDATED

__all__ = ["BOTH", "MEASURED", "STOPPED", "part_name"]

_SOME: Any = {"factors": ("wall_hue", "object_hue"), "samples": 288, "sigma": 0.1}
MEASURED = replace(
    PLAIN,
    evaluations={
        "noise": NoiseSweep(**_SOME, scales=12, steps=12),
        "probe": NoiseSweep(**_SOME, scales=3, steps=12, estimator="probe"),
        "near": FactorInformation(**_SOME, estimator="neighbours"),
        "linear": Probes(factors=("wall_hue", "shape", "object_hue"), samples=288, knn=(1, 5), c=(0.1, 1.0)),
    },
)
"""Evaluations of many parts."""
BOTH = {
    "noise": NoiseSweep(**_SOME, scales=4, steps=12, estimator="probe"),
    "linear": Probes(factors=("wall_hue", "shape"), samples=288),
}
"""Evaluations of a run that is killed in its training, too."""

STOPPED = 75
"""How a process ends that was asked to stop, and did."""


def cut_off(number: int, share: float) -> None:
    """Kill this process while it writes its checkpoint of a number, when so much of the file is there."""
    whole, seen = checkpointing.written, iter(range(1, 1 << 20))

    @contextmanager
    def written(path: Path) -> Iterator[Path]:
        with whole(path) as part:
            yield part
            last = path.suffix == ".ckpt" and next(seen) == number
            if last and share < 1:
                os.truncate(part, int(share * part.stat().st_size))
                os.kill(os.getpid(), signal.SIGKILL)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpointing.written = written


def send(step: int, numbers: list[int]) -> None:
    """Send this process signals in the middle of a step, the first being 1: after the gradients of its first draw."""
    left = list(numbers)

    def on_after_backward(self: CheckpointCallback, trainer: Any, pl_module: Any) -> None:
        if self._counter.steps + 1 == step:
            while left:
                os.kill(os.getpid(), left.pop(0))

    CheckpointCallback.on_after_backward = on_after_backward  # type: ignore[method-assign]


def kill_in_validation(number: int) -> None:
    """Kill this process in its validation of a number, the first being 1."""
    whole, seen = held_out.HeldOut.accuracies, iter(range(1, 1 << 20))

    def accuracies(*arguments: Any) -> Any:
        found = whole(*arguments)
        if next(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    held_out.HeldOut.accuracies = accuracies


def part_name(part: str, settings: Any, item: str) -> str:
    """Name of an item of a part, as a line of a log."""
    return f"{part} {digest(plain(settings))} {item}"


def log_parts(log: Path) -> None:
    """Append a line for each item of a part that is computed."""
    whole = PartStore.parts

    def parts(self: PartStore, name: str, settings: Any, items: Any, compute: Any) -> Any:
        def logged(some: Any) -> Any:
            found = compute(some)
            with log.open("a") as file:
                file.writelines(part_name(name, settings, item) + "\n" for item in some)
            return found

        return whole(self, name, settings, items, logged)

    PartStore.parts = parts  # type: ignore[method-assign]


def work(order: dict[str, Any]) -> int:
    """Train as ordered; how the process ends."""
    known = METHODS if order.get("brief") else [*PRESETS, VALIDATED]
    preset = {preset.name: preset for preset in known}[order["preset"]]
    if "first" in order:
        preset = replace(preset, initial_run=order["first"])
    if "cut_off" in order:
        cut_off(*order["cut_off"])
    if "send" in order:
        send(*order["send"])
    if "validate" in order:
        kill_in_validation(order["validate"])
    if "log" in order:
        log_parts(Path(order["log"]))
        evaluate(open_run(order["folder"], MEASURED), MEASURED, device="cpu")
        return 0
    checkpointing._FLUSH = order.get("flush", checkpointing._FLUSH)
    try:
        config = RunConfig(workers=order.get("workers", 0), accelerator="cpu")
        run = train(preset, order["folder"], seed=order.get("seed", 0), config=config)
        if order.get("measured"):
            evaluate(run, replace(preset, evaluations=BOTH), device="cpu")
    except KeyboardInterrupt:
        return STOPPED
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    """Follow orders until there are no more."""
    with tempfile.TemporaryDirectory() as folder:  # what the first checkpoint imports takes longer than a run
        train(replace(VALIDATED, steps=5), Path(folder, "validated"), config=RunConfig(workers=0))
        run = train(PLAIN, Path(folder, "run"), config=RunConfig(workers=0))
        evaluate(run, MEASURED, only=["linear"], device="cpu")
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            sys.stdin.close()
            os._exit(work(order))
        if "seconds" in order:
            threading.Timer(order["seconds"], os.kill, (child, signal.SIGKILL)).run()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
