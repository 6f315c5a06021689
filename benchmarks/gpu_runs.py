"""Paper-sized runs, in the order of their value: each stay on a GPU trains on where the one before it stopped.

Runs are in the folder ``runs-gpu``, with a checkpoint every minute; bring it along to the next machine. A run that is
trained is evaluated. Of each run ``summary.json`` is what is committed: its configuration, its metrics and a digest of
its weights. MNIST has to be there; presets of Shapes3D take their substitute where the published file is not.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.devices import attempt, device, need_none, published
from benchmarks.measure import Spread, shrunk, sized
from benchmarks.rows import Row
from benchmarks.run import Unfinished
from setsup.files import written

__all__ = ["rows", "stay"]

TOPIC = "gpu_runs"
RUNS = sized(
    (
        "orbits/mnist-oj",
        "orbits/mnist-ot",
        "orbits/mnist-ex",
        "abc/fig4d-1024",
        "pixels/colors-inf-100",
        "dcodr/shapes3d-norec",
    ),
    ("multiview/shapes3d",),
)
"""Presets, the most valuable first."""
SECONDS = 420.0
"""Of a stay, with its evaluations."""
FOLDER = Path("runs-gpu")


def rows(full: bool) -> Iterator[Row]:
    import tempfile

    from setsup.experiments import find_preset
    from setsup.experiments.preset import smoke

    device()
    end, left, lacking = time.monotonic() + SECONDS, [], []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name) if shrunk() else FOLDER
        for preset in (smoke(find_preset(run)) if shrunk() else find_preset(run) for run in RUNS):
            if (given := _data(preset)) is None:
                lacking.append(preset.name)
                continue
            with attempt(preset.name, failed):
                run, finished = stay(preset, folder / preset.name / "seed-0", end - time.monotonic(), *given)
                if run is not None:
                    yield from _told(run)
                if not finished:
                    left.append(preset.name)
    need_none(failed)
    if left:
        raise Unfinished(f"{', '.join(left)}: bring {FOLDER} along, and run it again")
    if lacking:
        raise RuntimeError(f"{', '.join(lacking)} need MNIST: run setsup fetch mnist, or set SETSUP_DATA")


def stay(
    preset: Any, folder: Path, seconds: float, root: Path | None = None, substitute: bool = False
) -> tuple[Any, bool]:
    """Train on for at most so many seconds, then evaluate; the run, None before it began, and whether all is done."""
    from setsup.experiments import RunConfig, evaluate, open_run, train

    small = preset.name.startswith("abc/")  # networks whose time is not that of products
    config = RunConfig(precision="float32" if small else "bf16", checkpoint_minutes=1)
    done = False
    if seconds > 0:
        with _stopped_after(seconds) as stopped:
            try:
                run = train(preset, folder, root=root, substitute=substitute, config=config)
                evaluate(run, root=root)
                done = True
            except KeyboardInterrupt:
                if not stopped():
                    raise
    if not (folder / "last.ckpt").exists():
        return None, done
    run = open_run(folder, preset)
    _summarise(run)
    return run, done


@contextmanager
def _stopped_after(seconds: float) -> Iterator[Callable[[], bool]]:
    """Send this process the signal to stop after so many seconds; a training writes its checkpoint first."""
    fired = threading.Event()

    def fire() -> None:
        fired.set()
        os.kill(os.getpid(), signal.SIGTERM)

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)  # outside of the steps of a training, which handles it itself
    timer = threading.Timer(seconds, fire)
    timer.daemon = True
    timer.start()
    try:
        yield fired.is_set
    finally:
        timer.cancel()
        signal.signal(signal.SIGTERM, before)


def _data(preset: Any) -> tuple[Path | None, bool] | None:
    """Where the data of a preset are, and whether it trains on its substitute; None where neither is there."""
    from setsup.errors import DataError

    root = published("mnist" if "mnist" in preset.data.name else preset.data.name)
    try:
        preset.open_data(root)
        return root, False
    except DataError:
        return None if preset.data.substitute is None else (None, True)


def _told(run: Any) -> Iterator[Row]:
    """How far a run is, and what was measured on it."""
    summary = json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))
    steps, total, name = summary["steps"], run.preset.steps, run.preset.name
    data = ", on the substitute" if run.substitute else ""
    said = f"{steps:,} of {total:,} steps", "weights, sha256", summary["weights_sha256"][:16]
    yield Row(TOPIC, f"{name}{data}", *said, Spread.of([100 * steps / total]), "%")
    for measure, value in _numbers(summary["evaluations"]):
        said = f"{value:.4g}", f"after {steps:,} steps", ""
        yield Row(TOPIC, f"{name}{data}: {measure}", *said, Spread.of([value]), "")


def _numbers(results: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Numbers of evaluations by dotted names, without lists."""
    for name, value in results.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", number) for inner, number in _numbers(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, float(value)


def _summarise(run: Any) -> None:
    """Write what is committed of a run."""
    from setsup.experiments.result_cache import digest_weights

    progress = run.progress()
    content = {
        "run": {key: value for key, value in run.description.items() if key != "root"},
        "steps": progress.steps,
        "seconds": round(progress.seconds, 1),
        "metrics": run.metrics(),
        "evaluations": {name: entry["values"] for name, entry in run.results().items()},
        "weights_sha256": digest_weights(run.weights()[1]),
    }
    with written(run.folder / "summary.json") as part:
        part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
