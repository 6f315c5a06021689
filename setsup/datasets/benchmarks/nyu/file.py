"""What lies in ``nyu_depth_v2_labeled.mat``: arrays, names of scenes and of classes; checked when it is opened."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.datasets.benchmarks.nyu.classes import UNLABELLED
from setsup.datasets.formats.h5.cells import read_cells
from setsup.datasets.formats.h5.images import h5_errors, h5_open
from setsup.datasets.formats.matlab.h5 import MatlabStack
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.stored import code_dtype

__all__ = ["SIZE", "STORED", "Contents", "Stored", "make_table", "open_file", "open_stack", "read_contents", "table"]

SIZE = (480, 640)
"""Height and width of all pictures."""


class Stored(NamedTuple):
    """An array of the file: its name there, and what one row of it is."""

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
    """What is read when the file is opened: for each row a text, and the names of the classes, from 0 on."""

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
        raise DamagedFile(f"{path} is a MAT v5 file, but the published one is MAT v7.3 (HDF5)")
    return h5_open(path)


def open_stack(path: Path, content: Any, modality: str) -> MatlabStack:
    """Get one array of the open file, its shape and type checked."""
    stored = STORED[modality]
    return MatlabStack(path, content, stored.key, stored.shape, stored.dtype)


def read_contents(path: Path) -> Contents:
    """Check the file, and read what is not pictures."""
    with h5_errors(path), open_file(path) as content:
        counts = {stored.key: open_stack(path, content, name).shape[0] for name, stored in STORED.items()}
        texts = {name: read_cells(path, content, name) for name in ("scenes", "sceneTypes", "rawRgbFilenames")}
        counts |= {name: len(found) for name, found in texts.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
            raise DamagedFile(f"{path} has {listed}; they must be as many")
        if not texts["scenes"]:
            raise DamagedFile(f"{path} has no pictures")
        scenes, types, names = texts.values()
        return Contents(scenes, types, names, (UNLABELLED, *read_cells(path, content, "names")))


def table(contents: Contents, split: npt.NDArray[np.uint8]) -> FactorTable:
    """Make the factor table.

    `split` (rows,) uint8.
    """
    pairs = set(zip(contents.scenes, contents.scene_types, strict=True))
    one_type = len(pairs) == len(set(contents.scenes))
    parts = ("train", "test")
    return make_table(
        [
            ("scene", contents.scenes, {"within": "scene_type" if one_type else None}),
            ("scene_type", contents.scene_types, {}),
            ("split", [parts[code] if code < 2 else "" for code in split.tolist()], {"role": "split", "levels": parts}),
            ("raw_rgb", contents.raw_rgb, {"role": "key"}),
        ]
    )


def make_table(columns: Iterable[tuple[str, Sequence[str], Mapping[str, Any]]]) -> FactorTable:
    """Make a table of nominal factors."""
    factors, codes = [], {}
    for name, texts, more in columns:
        levels = more.get("levels") or tuple(sorted(set(texts) - {""})) or ("unknown",)
        dtype = code_dtype(len(levels))
        number = {"": np.iinfo(dtype).max, **{text: code for code, text in enumerate(levels)}}
        factors.append(Factor(name, Kind.NOMINAL, **{**more, "levels": levels}))
        codes[name] = np.array([number[text] for text in texts], dtype)
    return FactorTable(factors, codes)
