"""Depth of captures: PNG of 16 bits, or arrays of numpy."""

import numpy as np

from setsup.arrays import Array, Floats
from setsup.datasets.adapters.frame_maps import fit_depth
from setsup.datasets.formats.depth_images import decode_depth, deep_size
from setsup.datasets.formats.npy import LONGEST_HEAD, npy_head
from setsup.datasets.formats.source import Source, source_content
from setsup.errors import DamagedFile

__all__ = ["read_depth"]

_FIX = "replace it, or remove the frame"
_NPY = b"\x93NUMPY"


def read_depth(scale: Floats, source: Source, label: str, row: int, size: tuple[int, int]) -> Floats:
    """Read depth along the optical axis, 0 where unknown: a PNG of one channel of 16 bits, or a ``.npy`` of numbers.

    `scale` (n,) float32 are units for one step of each row's PNG, or for one of each row's ``.npy``.
    """
    content = source_content(source)
    if content.startswith(_NPY):
        values = _values(content, label)
    else:
        stored = deep_size(content)
        if stored is None:
            raise DamagedFile(f"{label} is not a PNG of one channel of 16 bits, or a .npy", _FIX)
        values = decode_depth(content, label, stored)
    return fit_depth(values, scale[row], size, label)


def _values(content: bytes, label: str) -> Array:
    dtype, shape, start = npy_head(content[:LONGEST_HEAD], label)
    shape = shape[:2] if shape[2:] == (1,) else shape
    if len(shape) != 2 or len(content) - start != shape[0] * shape[1] * dtype.itemsize or not len(content) - start:
        raise DamagedFile(f"{label} has the shape {shape} in {len(content):,} bytes; expected a whole map", _FIX)
    return np.frombuffer(content, dtype, offset=start).reshape(shape)
