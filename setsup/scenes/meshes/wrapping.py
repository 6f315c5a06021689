"""How textures go on outside 0 … 1, for whoever samples them; see :class:`~setsup.scenes.Material`."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Floats, Reals
from setsup.scenes.meshes.mesh import Material, Wrap

__all__ = ["WRAPS", "folded", "wrap_numbers"]

WRAPS: tuple[Wrap, ...] = ("repeat", "clamp", "mirror")
"""Names of the numbers that :func:`wrap_numbers` gives."""


def wrap_numbers(materials: Iterable[Material]) -> npt.NDArray[np.uint8] | None:
    """Numbers of the wraps of materials, (m, 2), across and upwards; None where all textures repeat."""
    wraps = np.array([[WRAPS.index(axis) for axis in own.wrap] for own in materials], np.uint8).reshape(-1, 2)
    return wraps if wraps.any() else None


def folded(coordinate: Array, wrap: npt.NDArray[np.uint8]) -> Reals | Floats:
    """Texture coordinates of one axis, of floats, brought within 0 … 1 (both excluded) but for those that repeat.

    Examples
    --------
    >>> folded(np.array([1.25, 1.25, 1.25, -3.0]), np.array([0, 1, 2, 1], np.uint8)).round(6).tolist()
    [1.25, 1.0, 0.75, 0.0]

    """
    turned = 1 - np.abs(np.mod(coordinate, 2) - 1)
    least = np.finfo(coordinate.dtype).epsneg
    inner = np.clip(np.where(wrap == WRAPS.index("mirror"), turned, coordinate), least, 1 - least)
    return np.where(wrap == 0, coordinate, inner)
