"""The colour policy of all renderers: sRGB in and out, light added up in linear light.

Colours of materials, textures, vertices and pictures are sRGB; lights are factors in linear light, of which 1 shows a
colour as it is. A picture's byte is ``floor(255 · encoded + ½)`` of what :func:`encode` gives for the light that
arrives, cut to 0 … 1.

References
----------
.. [1] IEC 61966-2-1:1999, sRGB.

"""

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
    """Bytes of a picture that receives linear light.

    Examples
    --------
    >>> to_bytes(LINEAR[[0, 1, 128, 255]]).tolist()
    [0, 1, 128, 255]

    """
    return np.floor(255.0 * encode(light) + 0.5).astype(np.uint8)


LINEAR: npt.NDArray[np.float64] = linear(np.arange(256) / 255)
"""(256,) float64: linear light of every byte."""
