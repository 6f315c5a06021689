"""Arithmetic whose bits are the same on every machine, for whatever scenes are made of.

Matrix products, lengths of vectors and linear algebra of numpy are those of a BLAS, which has kernels for each kind of
processor; sines and cosines are those of the C library, which has some, too. They differ in the last bits. Additions,
multiplications, divisions and square roots of arrays do not, and everything here is made of these alone.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals

__all__ = ["angle", "length", "product", "sin_cos", "sphere_direction"]


_HALF_TURN_HIGH, _HALF_TURN_LOW = 1.57079632673412561417, 6.07710050650619224932e-11  # of π/2: 33 bits, and the others
_SIN = (1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
        -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01)  # fmt: skip
_COS = (-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
        2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02)  # fmt: skip


def sin_cos(angle: npt.ArrayLike) -> tuple[Reals, Reals]:
    """Sines and cosines, to about one unit in the last place, by the polynomials of fdlibm [1]_.

    `angle` array of float, radians.

    References
    ----------
    .. [1] Sun Microsystems, "Freely Distributable LIBM", k_sin.c and k_cos.c, 1993.

    Examples
    --------
    >>> [float(one) for one in sin_cos(np.pi / 6)]
    [0.49999999999999994, 0.8660254037844387]

    """
    given = np.asarray(angle, np.float64)
    quarter = np.rint(given * (2 / np.pi))
    x = (given - quarter * _HALF_TURN_HIGH) - quarter * _HALF_TURN_LOW
    square = x * x
    sine, cosine = np.zeros_like(x), np.zeros_like(x)
    for sin_factor, cos_factor in zip(_SIN, _COS, strict=True):
        sine, cosine = sine * square + sin_factor, cosine * square + cos_factor
    sine, cosine = x + x * square * sine, 1 - (0.5 * square - square * square * cosine)
    which = quarter.astype(np.int64) % 4
    odd, negative = which % 2 == 1, which >= 2
    turned = np.where(odd, cosine, sine), np.where(odd, -sine, cosine)
    return np.where(negative, -turned[0], turned[0]), np.where(negative, -turned[1], turned[1])


def angle(sine: npt.ArrayLike, cosine: npt.ArrayLike) -> Reals:
    """Angle of 0 … π of a direction in the upper half plane, to about one unit in the last place.

    `sine, cosine` arrays of float, as of one length each that need not be 1; `sine` is not negative; returns radians,
    0 for no length.

    Examples
    --------
    >>> angle([0, 3, 2], [1, 0, -2]).tolist()
    [0.0, 1.5707963267948966, 2.356194490192345]

    """
    y, x = np.broadcast_arrays(np.asarray(sine, np.float64), np.asarray(cosine, np.float64))
    far = np.sqrt(y * y + x * x)
    y, x = y / np.where(far > 0, far, 1.0), np.where(far > 0, x / np.where(far > 0, far, 1.0), 1.0)
    steep = y > np.abs(x)
    ratio = np.where(steep, np.abs(x), y) / np.maximum(np.maximum(y, np.abs(x)), 0.5)
    # within 0.004 [S. Rajan et al., IEEE Signal Processing Magazine 23(3), 2006]; each step cubes the error
    found = ratio * (np.pi / 4 + 0.273 * (1 - ratio))
    found = np.where(steep, np.pi / 2 - found, found)
    found = np.where(x < 0, np.pi - found, found)
    for _ in range(3):
        sines, cosines = sin_cos(found)
        found = found + (y * cosines - x * sines)
    return np.asarray(found)


def sphere_direction(height: float, turn: float) -> Reals:
    """Unit vector (3,) from two numbers of 0 … 1; uniform over the sphere if these are uniform.

    Examples
    --------
    >>> sphere_direction(0.5, 0.25).round(15).tolist()
    [0.0, 1.0, 0.0]

    """
    z, (sine, cosine) = 2 * height - 1, sin_cos(2 * np.pi * turn)
    flat = np.sqrt(max(0.0, 1 - z * z))
    return np.array([flat * cosine, flat * sine, z])


def product(rows: npt.ArrayLike, matrix: npt.ArrayLike) -> Reals:
    """Product of rows (..., n) and a matrix (n, m), or a vector (n,): ``rows @ matrix``, for small n."""
    left, right = np.asarray(rows, np.float64), np.asarray(matrix, np.float64)
    result = np.empty((*left.shape[:-1], *right.shape[1:]))
    for column in np.ndindex(right.shape[1:]):
        # one after the other, and never −0
        total = 0.0 + left[..., 0] * right[(0, *column)]
        for row in range(1, left.shape[-1]):
            total = total + left[..., row] * right[(row, *column)]
        result[(..., *column)] = total
    return result


def length(vectors: npt.ArrayLike) -> Any:
    """Lengths of vectors (..., n), for small n."""
    parts = np.asarray(vectors, np.float64)
    square = parts[..., 0] * parts[..., 0]
    for column in range(1, parts.shape[-1]):
        square = square + parts[..., column] * parts[..., column]
    return np.sqrt(square)
