"""Matrices of cameras from numbers of lists: intrinsics of lenses, and the rotations that rounded ones stand for."""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Floats, Reals

__all__ = ["lens_matrices", "nearest_rotations"]

_TURNED = 1e-2  # how far a matrix times its transpose may be from that of a rotation


def lens_matrices(lenses: npt.ArrayLike) -> Floats:
    """Intrinsics (n, 3, 3) float32 of lenses (n, 4): ``fx, fy, cx, cy``, NaN where unknown.

    Examples
    --------
    >>> lens_matrices([[50, 60, 31.5, 23.5]])[0].tolist()
    [[50.0, 0.0, 31.5], [0.0, 60.0, 23.5], [0.0, 0.0, 1.0]]

    """
    numbers = np.asarray(lenses, np.float64).reshape(-1, 4)
    matrices = np.zeros((len(numbers), 3, 3), np.float32)
    matrices[:, [0, 1, 0, 1], [0, 1, 2, 2]] = numbers
    matrices[:, 2, 2] = np.where(np.isnan(numbers[:, 0]), np.nan, 1)
    return matrices


def nearest_rotations(matrices: Reals) -> tuple[Reals, Bools]:
    """The rotation nearest to each of n matrices (n, 3, 3), and which of them are rotations but for rounding.

    The others are NaN.

    Examples
    --------
    >>> turns, sound = nearest_rotations(np.stack([np.eye(3) * 1.001, np.diag([1.0, 1, -1])]))
    >>> turns[0].round(6).tolist(), sound.tolist()
    ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [True, False])

    """
    with np.errstate(all="ignore"):
        off = np.abs(matrices @ matrices.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        sound = np.asarray((off < _TURNED) & (np.linalg.det(matrices) > 0))
    rotations = np.full(matrices.shape, np.nan)
    left, _, right = np.linalg.svd(matrices[sound])
    rotations[sound] = left @ right
    return rotations, sound
