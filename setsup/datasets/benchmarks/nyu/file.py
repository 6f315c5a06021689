"""Content of ``nyu_depth_v2_labeled.mat``: arrays, names of scenes and of classes; checked when it is opened."""

from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.benchmarks.nyu.classes import UNLABELLED
from setsup.datasets.formats.h5.cells import read_cells
from setsup.datasets.formats.h5.images import h5_errors, h5_open
from setsup.datasets.formats.matlab.h5 import MatlabStack
from setsup.errors import DamagedFile
from setsup.factors import FactorTable

__all__ = ["SIZE", "STORED", "Contents", "Stored", "open_file", "open_stack", "read_contents", "table"]

SIZE = (480, 640)
"""Height and width of all images."""


class Stored(NamedTuple):
    """An array of the file: its name, and the shape and dtype of a row."""

    key: str
    shape: tuple[int, ...]
    dtype: str


STORED = MappingProxyType(
    {
        "image": Stored("images", (*SIZE, 3), "uint8"),
        "depth": Stored("depths", SIZE, "float32"),
        "raw_depth": Stored("rawDepths", SIZE, "float32"),
        "labels": Stored("labels", SIZE, "uint16"),
        "instances": Stored("instances", SIZE, "uint8"),
    }
)
"""Modalities that the file holds."""


class Contents(NamedTuple):
    """Content read when the file is opened: the strings of each row, and the names of the classes from 0 on."""

    scenes: list[str]
    scene_types: list[str]
    raw_rgb: list[str]
    classes: tuple[str, ...]


def open_file(path: Path) -> Any:
    """Open the file."""
    try:
        with path.open("rb") as file:
            old = file.read(10) == b"MATLAB 5.0"
    except OSError:
        old = False  # why it cannot be read is said below
    if old:
        raise DamagedFile(f"{path} is a MAT v5 file; expected the published MAT v7.3 file (HDF5)")
    return h5_open(path)


def open_stack(path: Path, content: Any, modality: str) -> MatlabStack:
    """Get one array of the open file, its shape and type checked."""
    stored = STORED[modality]
    return MatlabStack(path, content, stored.key, stored.shape, stored.dtype)


def read_contents(path: Path) -> Contents:
    """Check the file, and read what is not images."""
    with h5_errors(path), open_file(path) as content:
        counts = {stored.key: open_stack(path, content, name).shape[0] for name, stored in STORED.items()}
        texts = {name: read_cells(path, content, name) for name in ("scenes", "sceneTypes", "rawRgbFilenames")}
        counts |= {name: len(values) for name, values in texts.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
            raise DamagedFile(f"{path} has {listed}; expected the same number of each")
        if not texts["scenes"]:
            raise DamagedFile(f"{path} contains no images")
        scenes, types, names = texts.values()
        return Contents(scenes, types, names, (UNLABELLED, *read_cells(path, content, "names")))


def table(contents: Contents, split: npt.NDArray[np.uint8]) -> FactorTable:
    """Make the factor table.

    `split` (rows,) uint8.
    """
    pairs = set(zip(contents.scenes, contents.scene_types, strict=True))
    one_type = len(pairs) == len(set(contents.scenes))
    parts = ("train", "test")
    return table_of(
        [
            nominal("scene", contents.scenes, within="scene_type" if one_type else None),
            nominal("scene_type", contents.scene_types),
            nominal("split", [parts[code] if code < 2 else "" for code in split.tolist()], None, "split", parts),
            nominal("raw_rgb", contents.raw_rgb, role="key"),
        ]
    )
