"""Cell arrays of strings in MATLAB files of version 7.3, which are HDF5.

Convention
----------
A cell array is a dataset of references to objects of the same file; a string is a dataset of UTF-16 codes; an empty
string contains its dimensions instead and has the attribute ``MATLAB_empty``. Axes are in the reverse order of
MATLAB's, so cells are in MATLAB's (column-major) order.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from setsup.datasets.formats.h5.images import check_storage, h5_dataset, h5_errors
from setsup.errors import DamagedFile, DataError

__all__ = ["read_cells"]

_LONGEST = 256  # characters; a small file could claim texts of any length that were never written


def read_cells(path: Path, file: Any, name: str) -> list[str]:
    """Read a cell array of strings."""
    import h5py

    cells = h5_dataset(path, file, name)
    with h5_errors(path):
        if h5py.check_ref_dtype(cells.dtype) is not h5py.Reference:
            raise DataError(
                f"{path}: {name!r} has dtype {cells.dtype} and shape {cells.shape}; expected a cell array of strings"
            )
        size = path.stat().st_size
        if (cells.size or 0) * cells.dtype.itemsize > size:
            raise DataError(
                f"{path}: {name!r} specifies {cells.size:,} cells, more than a file of {size:,} bytes can contain"
            )
        known: dict[str, str] = {}
        texts = []
        for cell, reference in enumerate(np.asarray(cells[()]).reshape(-1)):
            text = _text(path, file, reference, f"cell {cell} of {name!r}")
            size -= 2 * len(text)
            if size < 0:
                raise DamagedFile(f"{path}: the strings of {name!r} are longer than the file")
            texts.append(known.setdefault(text, text))
    return texts


def _text(path: Path, file: Any, reference: Any, what: str) -> str:
    # h5py's lower level: there are thousands of texts, and its datasets cost four times as much to make as to read
    import h5py

    try:
        stored = h5py.h5r.dereference(reference, file.id) if reference else None
    except (ValueError, KeyError, RuntimeError, OSError):
        stored = None
    if not isinstance(stored, h5py.h5d.DatasetID):
        raise DamagedFile(f"{path}: {what} refers to an object that is not in the file")
    shape, dtype = stored.shape, stored.dtype
    if dtype == np.uint64 and h5py.h5a.exists(stored, b"MATLAB_empty"):
        return ""
    if dtype != np.uint16 or math.prod(shape) > _LONGEST:
        raise DataError(
            f"{path}: {what} has dtype {dtype} and shape {shape}; expected a string of at most {_LONGEST} characters"
        )
    described = stored.get_create_plist()
    if described.get_layout() not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS) or described.get_external_count():
        check_storage(path, h5py.Dataset(stored), what)
    codes = np.empty(shape, "<u2")
    stored.read(h5py.h5s.ALL, h5py.h5s.ALL, codes)
    try:
        return codes.tobytes().decode("utf-16-le")
    except UnicodeDecodeError:
        raise DamagedFile(f"{path}: {what} is not valid UTF-16 text") from None
