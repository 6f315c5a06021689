"""The small MATLAB files next to NYU Depth V2: the published split, and the maps of its 894 classes to 40 and 13.

Convention
----------
MATLAB counts from 1. Rows are counted from 0 here; class 0 is "unlabelled", and the others keep their numbers.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.matlab.mat import read_mat
from setsup.errors import DamagedFile, DataError

__all__ = ["UNLABELLED", "Classes", "read_classes13", "read_classes40", "read_split"]

UNLABELLED = "unlabelled"

_LIMIT = 1 << 20  # bytes of each of the files; the largest has 10,474
_TRAIN, _TEST, _NEITHER = 0, 1, 255


@dataclass(frozen=True, slots=True)
class Classes:
    """A coarser set of classes: names, and the coarse class of each finer class.

    `of` (finer classes,) uint8.
    """

    names: tuple[str, ...]
    of: npt.NDArray[np.uint8]


def read_split(path: Path, count: int) -> npt.NDArray[np.uint8]:
    """Read the published split.

    Returns (count,) uint8.
    """
    variables = read_mat(path, str(path), ["trainNdxs", "testNdxs"], _LIMIT)
    codes = np.full(count, _NEITHER, np.uint8)
    for name, code in (("trainNdxs", _TRAIN), ("testNdxs", _TEST)):
        rows = _numbers(path, name, variables[name], 1, count, "images") - 1
        twice = np.flatnonzero(np.bincount(rows, minlength=count) > 1)
        if len(twice):
            raise DamagedFile(f"{path}: {name!r} lists the image {twice[0] + 1} twice")
        both = rows[codes[rows] != _NEITHER]
        if len(both):
            raise DamagedFile(
                f"{path}: the image {both[0] + 1} is in both 'trainNdxs' and 'testNdxs' (images in both: "
                f"{len(both):,}); expected each image in only one part"
            )
        codes[rows] = code
    return codes


def read_classes40(path: Path, count: int) -> Classes:
    """Read the map of the published classes to 40 classes."""
    variables = read_mat(path, str(path), ["mapClass", "className"], _LIMIT)
    return _classes(path, "mapClass", variables["mapClass"], variables["className"], count)


def read_classes13(path: Path, count: int = 40) -> Classes:
    """Read the map of the 40 classes to 13 classes."""
    mapping = read_mat(path, str(path), ["classMapping13"], _LIMIT)["classMapping13"]
    fields = mapping.dtype.names or ()
    if mapping.size != 1 or not {"labels13", "classNames"} <= set(fields):
        raise DamagedFile(f"{path}: 'classMapping13' must be a struct with labels13 and classNames")
    struct = mapping.reshape(-1)[0]
    return _classes(path, "labels13", struct["labels13"], struct["classNames"], count)


def _classes(path: Path, name: str, mapping: Any, cells: Any, count: int) -> Classes:
    names = _names(path, cells)
    codes = _numbers(path, name, mapping, 1, len(names), "classes")
    if len(codes) != count:
        raise DamagedFile(f"{path}: {name!r} maps {len(codes):,} classes; expected {count:,}")
    return Classes((UNLABELLED, *names), np.concatenate([[0], codes]).astype(np.uint8))


def _names(path: Path, cells: Any) -> tuple[str, ...]:
    texts = [str(cell.reshape(-1)[0]) if _is_text(cell) else "" for cell in np.asarray(cells, object).reshape(-1)]
    if not 0 < len(texts) < 255 or "" in texts:
        raise DamagedFile(
            f"{path}: 'names' has {len(texts):,} entries; expected 1 to 254 class names, each a non-empty string"
        )
    return tuple(texts)


def _is_text(cell: Any) -> bool:
    return isinstance(cell, np.ndarray) and cell.dtype.kind == "U" and cell.size == 1


def _numbers(path: Path, name: str, stored: Any, low: int, high: int, what: str) -> npt.NDArray[np.int64]:
    """Whole numbers of a variable, which must lie between `low` and `high`."""
    values = np.asarray(stored)
    if values.dtype.kind not in "uif" or not values.size:
        raise DataError(
            f"{path}: {name!r} has dtype {values.dtype} and shape {values.shape}; expected integers from {low} to "
            f"{high:,} (numbers of {what})"
        )
    values = values.reshape(-1)
    wrong = ~((values >= low) & (values <= high) & (values == np.floor(values)))
    if wrong.any():
        raise DamagedFile(
            f"{path}: {name!r} contains {values[np.argmax(wrong)]:g}; expected integers from {low} to {high:,} "
            f"(numbers of {what})"
        )
    return values.astype(np.int64)
