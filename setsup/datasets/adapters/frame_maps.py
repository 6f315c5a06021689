"""Masks and depth of frames, of the size of their images, or of another one with the same aspect ratio."""

import numpy as np

from setsup.arrays import Array, Floats
from setsup.datasets.adapters.camera_paths import scale_intrinsics
from setsup.datasets.formats.source import Source
from setsup.datasets.images import decode
from setsup.errors import DamagedFile

__all__ = ["fit_depth", "fit_map", "read_mask"]

_FIX = "replace it, or remove the frame"


def read_mask(source: Source, label: str, row: int, size: tuple[int, int]) -> Array:
    """Read a mask: 255 for all pixels that are not black, (height, width) uint8."""
    pixels = decode(source, label, 3).max(axis=2)
    return fit_map((pixels > 0).astype(np.uint8) * np.uint8(255), size, label)


def fit_depth(values: Array, scale: float, size: tuple[int, int], label: str) -> Floats:
    """Depth (height, width) float32 of the size of its image, `scale` times the values; 0 where it is unknown."""
    depth = fit_map(values.astype(np.float32), size, label) * np.float32(scale)
    return np.where(np.isfinite(depth) & (depth > 0), depth, np.float32(0))


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
