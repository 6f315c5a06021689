"""How textures go on outside 0 … 1, for whoever samples them; see :class:`~setsup.scenes.Material`."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Floats, Reals
from setsup.scenes.meshes.mesh import Material, Wrap

__all__ = ["WRAPS", "folded", "wraps_of"]

WRAPS: tuple[Wrap, ...] = ("repeat", "clamp", "mirror")
"""Names of the numbers that :func:`wraps_of` gives."""


def wraps_of(materials: Iterable[Material]) -> npt.NDArray[np.uint8] | None:
    """Numbers of the wraps of materials, (m, 2), across and upwards; None where all textures repeat."""
    found = np.array([[WRAPS.index(one) for one in own.wrap] for own in materials], np.uint8).reshape(-1, 2)
    return found if found.any() else None


def folded(place: Array, wrap: npt.NDArray[np.uint8]) -> Reals | Floats:
    """Texture coordinates of one axis, of floats, brought within 0 … 1 (both excluded) but for those that repeat.

    Examples
    --------
    >>> folded(np.array([1.25, 1.25, 1.25, -3.0]), np.array([0, 1, 2, 1], np.uint8)).round(6).tolist()
    [1.25, 1.0, 0.75, 0.0]

    """
    turned = 1 - np.abs(np.mod(place, 2) - 1)
    least = np.finfo(place.dtype).epsneg
    inner = np.clip(np.where(wrap == WRAPS.index("mirror"), turned, place), least, 1 - least)
    return np.where(wrap == 0, place, inner)
