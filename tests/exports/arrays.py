"""A rendered dataset of random arrays, so that layouts are tested without a renderer."""

from typing import Any

import numpy as np

from setsup.datasets.base import BaseDataset
from setsup.datasets.dataset import Modality, of_row
from setsup.factors import Factor, FactorTable, Kind
from setsup.scenes import Camera

SIZE = (12, 16)
NAMES = {0: "floor", 3: "chair", 9: "chair", 10: ""}
SLOTS = 11


class RandomRenders(BaseDataset):
    """Two rooms of five frames, in an order that is not that of the frames."""

    def __init__(self, channels: int = 3, seed: int = 0, frames: int = 5) -> None:
        rng, rows = np.random.default_rng(seed), 2 * frames
        self.name = "rendered rooms"
        room = Factor("room", Kind.NOMINAL, ("attic", "café/1"))
        frame = Factor("frame", Kind.ORDINAL, tuple(range(frames)))
        order = rng.permutation(rows)
        self.factors = FactorTable([room, frame], {"room": order // frames, "frame": order % frames})
        self.pair_factors = ("room",)
        self.classes = {"labels": ("nothing", "ground", "seat", "other")}
        self.instance_names = dict(NAMES)
        instances = rng.choice([-1, 0, 3, 9, 10], (rows, *SIZE)).astype(np.int32)
        whole = rng.random((rows, *SIZE, SLOTS)) < 0.2
        for number in NAMES:
            whole[..., number] |= instances == number
        poses = np.full((rows, SLOTS, 4, 4), np.nan)
        self.cameras = []
        for row in range(rows):
            k = [[20 + row, 0, 7.25], [0, 21 + row, 5.5], [0, 0, 1]]
            self.cameras.append(Camera(*SIZE, k, _turn(rng), rng.normal(size=3)))
            for number in NAMES:
                poses[row, number] = np.eye(4)
                poses[row, number, :3, :3], poses[row, number, :3, 3] = _turn(rng), rng.normal(size=3)
        self.arrays: dict[str, np.ndarray[Any, Any]] = {
            "image": rng.integers(0, 256, (rows, *SIZE, channels), np.uint8),
            "depth": np.where(instances < 0, 0, rng.uniform(1, 6, (rows, *SIZE))).astype(np.float32),
            "instances": instances,
            "labels": np.array([1, 0, 0, 2, 0, 0, 0, 0, 0, 2, 3, 0], np.uint8)[instances],
            "mask": np.packbits(whole, axis=-1, bitorder="little"),
            "object_poses": poses,
            "exact_flow": rng.uniform(-20, 20, (rows, *SIZE, 2)).astype(np.float32),
            "flow_status": rng.integers(0, 4, (rows, *SIZE), np.uint8),
        }
        self.arrays["exact_flow"][self.arrays["flow_status"] == 3] = np.nan
        self.modalities = {name: Modality(a.shape[1:], a.dtype.name) for name, a in self.arrays.items()}
        self.whole = whole

    def without(self, *names: str) -> "RandomRenders":
        """The same without some modalities."""
        for name in names:
            del self.modalities[name]
        return self

    @of_row
    def camera(self, row: int) -> Camera:
        return self.cameras[row]

    @of_row
    def names(self, row: int) -> dict[int, str]:
        return self.instance_names

    def _read(self, name: str, rows: Any, out: Any) -> Any:
        return self.arrays[name][rows]


def _turn(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q
