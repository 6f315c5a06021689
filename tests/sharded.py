"""A data set with a modality and a factor of every sort, whose arrays are a formula of the row."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets import Dataset, Modality, fetch_request
from setsup.factors import Factor, FactorTable, Kind

MODALITIES = {
    "image": Modality((6, 5, 3), "uint8", color="srgb"),
    "mask": Modality((6, 5, 1), "uint8", color="grey"),
    "cutout": Modality((None, None, 4), "uint8", color="srgb"),
    "pair": Modality((3, 4, 2), "uint8", color="red-green"),
    "depth": Modality((6, 5), "float32", unit="m"),
    "points": Modality((None, 3), "float64", unit="m"),
    "weight": Modality((), "int16"),
}
FACTORS = [
    Factor("category", Kind.NOMINAL, ("Stühle", "机", 'a "b"\\\n{}')),
    Factor("instance", Kind.ORDINAL, (3, 7, 12), within="category"),
    Factor("hue", Kind.CYCLIC, (0.0, 0.25, 0.5), unit="turn", period=1.0),
    Factor("lit", Kind.NOMINAL, (False, True)),
    Factor("yaw", Kind.CONTINUOUS, unit="deg", period=360.0),
    Factor("__url__; DROP", Kind.NOMINAL, ("a", "b"), role="split"),
]


class Varied(Dataset):
    """Rows whose arrays follow from their numbers; ``broken`` is one that cannot be fetched."""

    name = "varied"

    def __init__(self, rows: int = 50, names: Iterable[str] = tuple(MODALITIES), broken: int | None = None) -> None:
        dice = np.random.default_rng(rows)
        codes = {one.name: dice.integers(-1, len(one), rows) for one in FACTORS if not one.continuous}
        yaw = dice.normal(0, 90, rows).astype(np.float32)
        yaw[::7] = np.nan
        self.factors = FactorTable(FACTORS, {**codes, "yaw": yaw})
        self.modalities = {name: MODALITIES[name] for name in names}
        self._broken = broken

    def row(self, row: int, name: str) -> npt.NDArray[Any]:
        """One array."""
        kind = MODALITIES[name]
        shape = [2 + (row + axis) % 4 if size is None else size for axis, size in enumerate(kind.shape)]
        dice = np.random.default_rng([row, len(name)])
        return np.asarray(dice.normal(100, 50, shape)).clip(0, 255).astype(kind.dtype)

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, npt.NDArray[Any]]:
        rows, names = fetch_request(self, indices, modalities)
        if self._broken is not None and (rows == self._broken).any():
            raise RuntimeError(f"row {self._broken} is broken")
        found = {}
        for name in names:
            each = [self.row(row, name) for row in rows.reshape(-1).tolist()]
            found[name] = np.stack(each).reshape(rows.shape + each[0].shape)
        return found


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones too."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
