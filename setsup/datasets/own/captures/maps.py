"""Masks and depth of captures, of the size of their images, or of another one with the same aspect ratio."""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.adapters.camera_paths import scale_intrinsics
from setsup.datasets.formats.depth_images import decode_depth, deep_size
from setsup.datasets.formats.npy import LONGEST_HEAD, npy_head
from setsup.datasets.formats.source import Source, source_content
from setsup.datasets.images import decode
from setsup.errors import DamagedFile

__all__ = ["fit_map", "read_depth", "read_mask"]

_FIX = "replace it, or remove the frame"
_NPY = b"\x93NUMPY"


def read_mask(source: Source, label: str, row: int, size: tuple[int, int]) -> Array:
    """Read a mask: 255 for all pixels that are not black, (height, width) uint8."""
    pixels = decode(source, label, 3).max(axis=2)
    return fit_map((pixels > 0).astype(np.uint8) * np.uint8(255), size, label)


def read_depth(
    scale: npt.NDArray[np.float32], source: Source, label: str, row: int, size: tuple[int, int]
) -> npt.NDArray[np.float32]:
    """Read depth along the optical axis, 0 where unknown: a PNG of one channel of 16 bits, or a ``.npy`` of numbers.

    `scale` (n,) float32 are units for one step of each row's PNG, or for one of each row's ``.npy``.
    """
    content = source_content(source)
    if content.startswith(_NPY):
        values = _values(content, label).astype(np.float32)
    else:
        stored = deep_size(content)
        if stored is None:
            raise DamagedFile(f"{label} is not a PNG of one channel of 16 bits, or a .npy", _FIX)
        values = decode_depth(content, label, stored).astype(np.float32)
    depth = fit_map(values, size, label) * scale[row]
    return np.where(np.isfinite(depth) & (depth > 0), depth, np.float32(0))


def _values(content: bytes, label: str) -> Array:
    dtype, shape, start = npy_head(content[:LONGEST_HEAD], label)
    shape = shape[:2] if shape[2:] == (1,) else shape
    if len(shape) != 2 or len(content) - start != shape[0] * shape[1] * dtype.itemsize or not len(content) - start:
        raise DamagedFile(f"{label} has the shape {shape} in {len(content):,} bytes; expected a whole map", _FIX)
    return np.frombuffer(content, dtype, offset=start).reshape(shape)


def fit_map(pixels: Array, size: tuple[int, int], label: str) -> Array:
    """A map of the size of its image, by nearest neighbor."""
    stored = (pixels.shape[0], pixels.shape[1])
    if stored == size:
        return pixels
    if not scale_intrinsics(np.eye(3)[None], np.array([size]), np.array([stored]))[1][0]:
        raise DamagedFile(
            f"{label} is {stored[0]} × {stored[1]} pixels (height × width); expected {size[0]} × {size[1]}, the size "
            "of its image, or that at another scale",
            _FIX,
        )
    rows, columns = (
        np.minimum((np.arange(length) + 0.5) * old / length, old - 1).astype(np.int64)
        for length, old in zip(size, stored, strict=True)
    )
    return np.asarray(pixels[rows[:, None], columns])
