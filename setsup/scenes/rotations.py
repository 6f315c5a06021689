"""Rotations as matrices and as vectors, the same on every machine to the last bit: see :mod:`setsup.scenes.portable`.

References
----------
.. [1] R. M. Murray, Z. Li, S. S. Sastry, "A Mathematical Introduction to Robotic Manipulation", 1994, section 2.2:
   rotations as exponentials, by Rodrigues' formula.

"""

import numpy as np

from setsup.arrays import Reals
from setsup.scenes.portable import angle, length, sin_cos

__all__ = ["matrix_product", "rotation_matrix", "rotation_vector"]


def matrix_product(left: Reals, right: Reals) -> Reals:
    """Products of matrices (..., 3, 3), one by one."""
    total = left[..., :, 0, None] * right[..., None, 0, :]
    for inner in (1, 2):
        total = total + left[..., :, inner, None] * right[..., None, inner, :]
    return total


def rotation_matrix(vectors: Reals) -> Reals:
    """Rotations about vectors (..., 3) by their lengths in radians, (..., 3, 3) [1]_."""
    turn = length(vectors)
    axis = vectors / np.where(turn > 0, turn, 1.0)[..., None]
    sine, _ = sin_cos(turn)
    half, _ = sin_cos(0.5 * turn)
    versed = 2 * half * half  # 1 − cos, without its cancellation
    x, y, z = (axis[..., number] for number in range(3))
    result = np.empty((*vectors.shape, 3))
    for row, first in enumerate((x, y, z)):
        for column, second in enumerate((x, y, z)):
            result[..., row, column] = versed * first * second
    for diagonal, (first, second) in enumerate(((y, z), (x, z), (x, y))):
        result[..., diagonal, diagonal] = 1 - versed * (first * first + second * second)
    for row, column, part in ((2, 1, x), (0, 2, y), (1, 0, z)):
        result[..., row, column] += sine * part
        result[..., column, row] -= sine * part
    return result


def rotation_vector(rotations: Reals) -> Reals:
    """Vectors (..., 3) about which rotations (..., 3, 3) turn by their lengths, of at most half a turn."""
    r = rotations
    trace = r[..., 0, 0] + r[..., 1, 1] + r[..., 2, 2]
    # four times each part of the quaternion (w, x, y, z) times each other; the row of the largest part is used
    rows = np.empty((*trace.shape, 4, 4))
    rows[..., 0, 0] = 1 + trace
    for one in range(3):
        two, three = (one + 1) % 3, (one + 2) % 3
        rows[..., 1 + one, 1 + one] = 1 + 2 * r[..., one, one] - trace
        rows[..., 0, 1 + one] = rows[..., 1 + one, 0] = r[..., three, two] - r[..., two, three]
        rows[..., 1 + one, 1 + two] = rows[..., 1 + two, 1 + one] = r[..., one, two] + r[..., two, one]
    largest = np.diagonal(rows, axis1=-2, axis2=-1).argmax(axis=-1)
    parts = np.take_along_axis(rows, largest[..., None, None], axis=-2)[..., 0, :]
    parts = parts / length(parts)[..., None]
    parts = np.where(parts[..., :1] < 0, -parts, parts)
    sine = length(parts[..., 1:])
    return np.asarray(parts[..., 1:] * (2 * angle(sine, parts[..., 0]) / np.where(sine > 0, sine, 1.0))[..., None])
