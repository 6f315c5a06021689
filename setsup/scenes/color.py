"""The colour policy of all renderers: sRGB in and out, light added up in linear light.

Colours of materials, textures, vertices and images are sRGB; lights are factors in linear light, of which 1 shows a
colour as it is. An image's byte is ``floor(255 · encoded + ½)`` of what :func:`encode` gives for the light that
arrives, cut to 0 … 1.

References
----------
.. [1] IEC 61966-2-1:1999, sRGB.

"""

from functools import cache

import numpy as np
import numpy.typing as npt

__all__ = ["LINEAR", "encode", "linear", "to_bytes"]


def linear(encoded: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Linear light, 0 … 1, of sRGB values 0 … 1 ([1]_).

    Examples
    --------
    >>> linear([0.0, 0.5, 1.0]).round(4).tolist()
    [0.0, 0.214, 1.0]

    """
    value = np.asarray(encoded, dtype=np.float64)
    return np.where(value <= 0.04045, value / 12.92, ((np.maximum(value, 0.04045) + 0.055) / 1.055) ** 2.4)


def encode(light: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Encode linear light, cut to 0 … 1, as sRGB values 0 … 1: the inverse of :func:`linear`.

    Examples
    --------
    >>> encode([0.0, 0.214041, 2.0]).round(4).tolist()
    [0.0, 0.5, 1.0]

    """
    value = np.clip(np.asarray(light, dtype=np.float64), 0.0, 1.0)
    return np.where(value <= 0.0031308, 12.92 * value, 1.055 * np.maximum(value, 0.0031308) ** (1 / 2.4) - 0.055)


def to_bytes(light: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Bytes of an image that receives linear light; of float32 by a table, with the same result.

    Examples
    --------
    >>> to_bytes(LINEAR[[0, 1, 128, 255]]).tolist(), to_bytes(np.float32([-1, 0.5, 2])).tolist()
    ([0, 1, 128, 255], [0, 188, 255])

    """
    value = np.asarray(light)
    if value.dtype != np.float32:
        return _rounded(value)
    first, step = _cells()
    value = np.clip(value, np.float32(0), np.float32(1))
    cell = (value * np.float32(_CELLS)).astype(np.int32)  # exact: the number of cells is a power of two
    levels: npt.NDArray[np.uint8] = first.take(cell, mode="clip")
    levels += value >= step.take(cell, mode="clip")
    return levels


LINEAR: npt.NDArray[np.float64] = linear(np.arange(256) / 255)
"""(256,) float64: linear light of every byte."""

_CELLS = 1 << 12  # the bytes next to 0 are 1/3295 apart in linear light: no cell holds two of the steps between bytes


def _rounded(light: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    return np.floor(255.0 * encode(light) + 0.5).astype(np.uint8)


@cache
def _cells() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Byte at the start of each cell of linear light, and from which float32 on it is the next one; inf for never."""
    edges = np.arange(_CELLS + 1, dtype=np.float32) / np.float32(_CELLS)
    first = _rounded(edges)
    last = np.append(edges[1:], np.float32(2))
    low, high = edges.view(np.int32).astype(np.int64), last.view(np.int32).astype(np.int64)
    while (high - low > 1).any():  # positive float32 are ordered as their bits are
        middle = (low + high) // 2
        below = _rounded(middle.astype(np.int32).view(np.float32)) == first
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    step = high.astype(np.int32).view(np.float32)
    return first, np.where(_rounded(step) == first, np.float32(np.inf), step)
