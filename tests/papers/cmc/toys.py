"""Small data of several views, and methods on them, for the evaluations of encoders of views."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setsup.experiments.configs import build_method
from setsup.experiments.data import Data
from setsup.experiments.trained_run import TrainedRun
from setsup.random import fold, stream_key, uniform


@dataclass(frozen=True)
class Boxes:
    """Crops of a side at keyed places, or the middle; the view ``grey`` is the mean of the colours, in 0 … 1."""

    size: int
    centre: bool = False

    def build(self, dataset: Any, seed: int) -> Any:
        def transform(batch: dict[str, Any]) -> dict[str, Any]:
            height, width = batch["image"].shape[-2:]
            key = fold(stream_key(seed, "boxes"), int(batch["step"]))
            part = np.array([0.5, 0.5]) if self.centre else uniform(fold(key, np.arange(2)))
            y, x = (int(share * (side - self.size + 0.999)) for share, side in zip(part, (height, width), strict=True))
            cut = slice(y, y + self.size), slice(x, x + self.size)
            found = {**batch, "image": batch["image"][..., *cut]}
            if "labels" in batch:
                found["labels"] = batch["labels"][..., *cut]
            found["grey"] = found["image"].float().mean(2, keepdim=True) / 255
            return found

        return transform


def run_of(path: Path, config: Any, size: int, folder: Path, **more: Any) -> TrainedRun:
    """An untrained run on a file of arrays."""
    data = Data(str(path), **more)
    method = build_method(config, data.open().factors, 0).eval()
    how: Any = {"augmentation": Boxes(size), "eval_transform": Boxes(size, centre=True)}
    return TrainedRun("cmc/toy", method, 0, folder, data=data, config=config, **how)
