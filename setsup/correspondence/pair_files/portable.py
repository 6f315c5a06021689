"""Files of numpy that hold Python objects, and that any numpy reads.

Pickles of arrays name a module of numpy whose name changed between versions 1 and 2. Here an array is pickled as the
call that makes it from a list, ``numpy.array``.
"""

import io
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array

__all__ = ["pickle_plain", "write_npz"]

_PROTOCOL = 4  # of Python 3.4 and later
_EPOCH = (1980, 1, 1, 0, 0, 0)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray):
            return np.array, (obj.tolist(), obj.dtype.str)
        return NotImplemented


def pickle_plain(content: Any) -> bytes:
    """Pickle lists, dicts, numbers, strings and arrays, which any numpy reads."""
    file = io.BytesIO()
    _Pickler(file, _PROTOCOL).dump(content)
    return file.getvalue()


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays as ``numpy.savez_compressed`` does, without the time; those of objects are pickled."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as file:
                if array.dtype.hasobject:
                    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
                    file.write(pickle_plain(array))
                else:
                    np.lib.format.write_array(file, array, allow_pickle=False)
