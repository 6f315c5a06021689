"""What cameras, meshes and scenes ask of the numbers they are given."""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Reals
from setsup.checks import check_array
from setsup.errors import SetsupError

__all__ = ["check_color", "check_numbers", "check_rotation"]


def check_color(values: npt.ArrayLike, what: str) -> tuple[int, int, int]:
    """Three bytes of sRGB."""
    color = _array(values)
    if color.shape != (3,) or color.dtype.kind not in "iu" or color.min() < 0 or color.max() > 255:
        raise SetsupError(f"{what} must be three bytes of sRGB, 0 to 255, not {_one_line(values)}")
    red, green, blue = color.tolist()
    return red, green, blue


def check_numbers(values: npt.ArrayLike, shape: tuple[int, ...], what: str) -> Reals:
    """Finite numbers of a shape, as a read-only copy; −0 becomes 0, so that what is equal has equal digests.

    `values` array of float.
    """
    numbers: Reals = _array(values, np.float64) + 0.0
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise SetsupError(f"{what} must be {' × '.join(map(str, shape))} finite numbers, not {_one_line(values)}")
    numbers.setflags(write=False)
    return numbers


def check_rotation(values: npt.ArrayLike, what: str) -> Reals:
    """Matrix of a rotation, (3, 3), as a read-only copy; otherwise as :func:`check_numbers`."""
    rotation = check_numbers(values, (3, 3), what)
    with np.errstate(over="ignore", invalid="ignore"):
        square = rotation @ rotation.T
    if not np.allclose(square, np.eye(3), atol=1e-6) or np.linalg.det(rotation) < 0:
        raise SetsupError(f"{what} must be a rotation matrix (orthogonal, with determinant 1), not {rotation.tolist()}")
    return rotation


def _one_line(values: object) -> str:
    return " ".join(repr(values).split())[:200]


def _array(values: npt.ArrayLike, dtype: type | None = None) -> Array:
    """Values as an array; an empty one where numpy refuses them: ragged lists, tensors with a gradient."""
    try:
        return check_array(values, "values", SetsupError, dtype)
    except SetsupError:
        return np.empty(0)
