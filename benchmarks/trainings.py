"""Trainings of presets for so many steps, with the share of the time in which they wait for batches."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.devices import mnist
from benchmarks.measure import shrunk, sized

__all__ = ["Trained", "cases", "train_for"]

_NEXT, _ALL = "train_dataloader_next", "run_training_epoch"
_STL10 = sized(4096, 300)


class Trained(NamedTuple):
    """Steps, seconds with their data, images, and the share of the seconds that the loop waited for a batch."""

    steps: int
    seconds: float
    images: int
    waited: float


def cases(folder: Path) -> dict[str, tuple[Any, Path | None, bool]]:
    """A preset of each paper, where its data are, and whether it trains on its substitute; data are written there."""
    from setsup.experiments import find_preset

    digits = mnist(folder)
    found: dict[str, tuple[Any, Path | None, bool]] = {
        name: (find_preset(name), digits, False) for name in ("abc/mnist", "orbits/mnist-oj", "pixels/colors-inf-100")
    }
    found["dcodr/shapes3d-norec"] = find_preset("dcodr/shapes3d-norec"), None, True
    found["multiview/shapes3d"] = find_preset("multiview/shapes3d"), None, False
    found["cmc/stl10-nce"] = find_preset("cmc/stl10-nce"), _stl10(folder / "stl10"), False
    return found


def train_for(preset: Any, steps: int, folder: Path, root: Path | None, substitute: bool, **config: Any) -> Trained:
    """Train the first steps of a preset; shrunk, four of its smoke test."""
    from setsup.experiments import RunConfig, train
    from setsup.experiments.preset import smoke

    preset = smoke(preset) if shrunk() else replace(preset, steps=min(steps, preset.steps))
    preset = replace(preset, checkpoint_every=preset.steps)
    config = {"workers": "thread", "profiler": "simple", **config}
    run = train(preset, folder, root=root, substitute=substitute, config=RunConfig(**config))
    progress = run.progress()
    seconds = _totals(run.folder / "profile" / "fit-simple.txt")
    return Trained(progress.steps, progress.seconds, progress.images, seconds[_NEXT] / seconds[_ALL])


def _totals(path: Path) -> dict[str, float]:
    """Seconds in the two actions, of Lightning's table of all."""
    lines = ([cell.strip() for cell in line.split("|")] for line in path.read_text(encoding="utf-8").splitlines())
    totals = {cells[1]: float(cells[4]) for cells in lines if len(cells) > 5 and cells[2][:1].isdigit()}
    return {action: sum(value for name, value in totals.items() if name.endswith(action)) for action in (_NEXT, _ALL)}


def _stl10(folder: Path) -> Path:
    """Random pictures in the published format of STL-10."""
    if not folder.exists():
        folder.mkdir(parents=True)
        rng = np.random.default_rng(0)
        for split, count in (("train", 100), ("test", 100), ("unlabeled", _STL10)):
            (folder / f"{split}_X.bin").write_bytes(rng.bytes(count * 3 * 96 * 96))
            if split != "unlabeled":
                (folder / f"{split}_y.bin").write_bytes(bytes(1 + number % 10 for number in range(count)))
    return folder
