"""Homographies of the image plane: 3 × 3 matrices that take pixels of one image to pixels of another.

Pixels are (x, y), x to the right and y down. Their centres are integers, so that an image of W × H pixels covers
−½ … W − ½ and −½ … H − ½. A matrix takes (x, y, 1) of the source to a multiple of (x′, y′, 1) of the result; the
multiple is positive on the side of the horizon where the image is. A function given arrays of shape (...) returns
matrices (..., 3, 3) of float64.

References
----------
.. [1] R. Hartley, A. Zisserman, "Multiple View Geometry in Computer Vision", 2nd edition, 2004, sections 2.3 and 4.1.

"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError

__all__ = [
    "about_centre",
    "carried",
    "compose",
    "crop",
    "fit",
    "flip_x",
    "flip_y",
    "four_points",
    "inside",
    "resize",
    "rotation",
    "scaling",
    "shear",
    "translate",
    "turning",
]


def translate(x: npt.ArrayLike, y: npt.ArrayLike) -> Reals:
    """Move what an image shows by x to the right and y down, in pixels.

    Examples
    --------
    >>> carried([[0, 0]], translate(3, 0.5))
    array([[3. , 0.5]])

    """
    return _matrix([[1, 0, x], [0, 1, y], [0, 0, 1]])


def crop(left: npt.ArrayLike, top: npt.ArrayLike) -> Reals:
    """Cut out a box: pixel (left, top) becomes pixel (0, 0).

    Examples
    --------
    >>> carried([[5, 7]], crop(4, 7))
    array([[1., 0.]])

    """
    return translate(-np.asarray(left, dtype=np.float64), -np.asarray(top, dtype=np.float64))


def fit(
    left: npt.ArrayLike,
    top: npt.ArrayLike,
    box_height: npt.ArrayLike,
    box_width: npt.ArrayLike,
    height: npt.ArrayLike,
    width: npt.ArrayLike,
) -> Reals:
    """Cut out a box and resize it to height × width pixels.

    Parameters
    ----------
    left, top : (...) numbers
        First pixel of the box, whole or not; the box begins half a pixel before its centre.
    box_height, box_width : (...) numbers
        Extent of the box in pixels, positive.
    height, width : (...) numbers
        Pixels of the result: the edges of the box become −½ and width − ½, −½ and height − ½.

    Examples
    --------
    >>> carried([[3.5, 0], [7.5, 0]], fit(4, 0, 4, 4, 8, 8))
    array([[-0.5,  0.5],
           [ 7.5,  0.5]])

    """
    across = np.asarray(width, dtype=np.float64) / np.asarray(box_width, dtype=np.float64)
    down = np.asarray(height, dtype=np.float64) / np.asarray(box_height, dtype=np.float64)
    first_x, first_y = np.asarray(left, dtype=np.float64), np.asarray(top, dtype=np.float64)
    return _matrix([[across, 0, (0.5 - first_x) * across - 0.5], [0, down, (0.5 - first_y) * down - 0.5], [0, 0, 1]])


def resize(height: npt.ArrayLike, width: npt.ArrayLike, to_height: npt.ArrayLike, to_width: npt.ArrayLike) -> Reals:
    """Resize an image: −½ … width − ½ becomes −½ … to_width − ½, and so for the height.

    Examples
    --------
    >>> carried([[0, 0], [1, 1]], resize(2, 2, 4, 4))
    array([[0.5, 0.5],
           [2.5, 2.5]])

    """
    return fit(0, 0, height, width, to_height, to_width)


def flip_x(width: npt.ArrayLike) -> Reals:
    """Mirror left and right: x becomes width − 1 − x.

    Examples
    --------
    >>> carried([[0, 3]], flip_x(10))
    array([[9., 3.]])

    """
    return _matrix([[-1, 0, np.asarray(width, dtype=np.float64) - 1], [0, 1, 0], [0, 0, 1]])


def flip_y(height: npt.ArrayLike) -> Reals:
    """Mirror top and bottom: y becomes height − 1 − y.

    Examples
    --------
    >>> carried([[0, 3]], flip_y(10))
    array([[0., 6.]])

    """
    return _matrix([[1, 0, 0], [0, -1, np.asarray(height, dtype=np.float64) - 1], [0, 0, 1]])


def rotation(degrees: npt.ArrayLike) -> Reals:
    """Rotate about pixel (0, 0), counterclockwise.

    Examples
    --------
    >>> carried([[1, 0]], rotation(90)).round(9) + 0.0
    array([[ 0., -1.]])

    """
    angle = np.deg2rad(np.asarray(degrees, dtype=np.float64))
    cos, sin = np.cos(angle), np.sin(angle)
    return _matrix([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])


def shear(amount: npt.ArrayLike) -> Reals:
    """Shear about pixel (0, 0): x becomes x + amount · y.

    Examples
    --------
    >>> carried([[0, 2]], shear(0.25))
    array([[0.5, 2. ]])

    """
    return _matrix([[1, amount, 0], [0, 1, 0], [0, 0, 1]])


def scaling(x: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Reals:
    """Enlarge about pixel (0, 0), by x in both directions or by x and y.

    Examples
    --------
    >>> carried([[1, 1]], scaling(2))
    array([[2., 2.]])

    """
    return _matrix([[x, 0, 0], [0, x if y is None else y, 0], [0, 0, 1]])


def about_centre(matrices: npt.ArrayLike, height: npt.ArrayLike, width: npt.ArrayLike) -> Reals:
    """Make matrices that act about pixel (0, 0) act about the centre of a height × width image.

    Examples
    --------
    >>> carried([[2, 1]], about_centre(rotation(180), 3, 5)).round(9)
    array([[2., 1.]])

    """
    x, y = (np.asarray(width, dtype=np.float64) - 1) / 2, (np.asarray(height, dtype=np.float64) - 1) / 2
    return compose(crop(x, y), matrices, translate(x, y))


def four_points(source: npt.ArrayLike, target: npt.ArrayLike) -> Reals:
    """Homography that takes four points to four others, no three of them in line.

    Parameters
    ----------
    source, target : (..., 4, 2)
        Pixels (x, y), in the same order.

    Raises
    ------
    SetsupError
        When three of four points lie in line, or the horizon passes between them.

    Examples
    --------
    >>> square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> carried([[0.5, 0.5]], four_points(square, [[0, 0], [2, 0], [2, 2], [0, 2]])).round(9)
    array([[1., 1.]])

    """
    before, after = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if before.shape[-2:] != (4, 2) or after.shape[-2:] != (4, 2) or _in_line(before) or _in_line(after):
        raise SetsupError(
            "a homography requires four points (x, y) and their four images, no three of which are collinear"
        )
    before, after = np.broadcast_arrays(before, after)
    (x, y), (u, v) = ((points[..., 0], points[..., 1]) for points in (before, after))
    ones, zeros = np.ones_like(x), np.zeros_like(x)
    # u·(g x + h y + 1) = a x + b y + c, and so for v: two rows a point for a … h ([1]_, equation 4.3, last entry 1)
    rows_u = np.stack([x, y, ones, zeros, zeros, zeros, -u * x, -u * y], axis=-1)
    rows_v = np.stack([zeros, zeros, zeros, x, y, ones, -v * x, -v * y], axis=-1)
    wanted = np.concatenate([u, v], axis=-1)[..., None]
    entries = np.linalg.solve(np.concatenate([rows_u, rows_v], axis=-2), wanted)[..., 0]
    matrices = np.concatenate([entries, ones[..., :1]], axis=-1).reshape(*entries.shape[:-1], 3, 3)
    depth = (matrices[..., 2:, :2] * before).sum(axis=-1) + 1
    if not (np.all(depth > 0, axis=-1) | np.all(depth < 0, axis=-1)).all():
        raise SetsupError(
            "the quadrilateral of the four points folds over itself; pass the points and their images in the same order"
        )
    return np.asarray(matrices * np.sign(depth[..., :1, None]))


def _in_line(points: Reals) -> bool:
    """Whether three of any four points (..., 4, 2) lie in line."""
    sides = points[..., [[1, 2], [1, 3], [2, 3], [2, 3]], :] - points[..., [[0], [0], [0], [1]], :]
    area = sides[..., 0, 0] * sides[..., 1, 1] - sides[..., 0, 1] * sides[..., 1, 0]
    extent = np.ptp(points, axis=-2).max(axis=-1, keepdims=True)
    return not (np.abs(area) > 1e-9 * extent**2).all()  # also when one is NaN


def compose(*matrices: npt.ArrayLike) -> Reals:
    """One matrix for several, the first applied first; leading axes broadcast.

    Examples
    --------
    >>> carried([[1, 0]], compose(translate(1, 0), scaling(3)))
    array([[6., 0.]])

    """
    product = np.eye(3)
    for matrix in matrices:
        product = np.asarray(matrix, dtype=np.float64) @ product
    return product


def carried(points: npt.ArrayLike, matrices: npt.ArrayLike) -> Reals:
    """Map points with matrices.

    Parameters
    ----------
    points : (..., n, 2)
        Pixels (x, y) of the source.
    matrices : (..., 3, 3)
        Leading axes broadcast against those of the points.

    Returns
    -------
    (..., n, 2) float64: pixels of the result; NaN for a point on the horizon or beyond

    Raises
    ------
    SetsupError
        When the last axes are not n × 2 and 3 × 3.

    Examples
    --------
    >>> carried([[0, 0], [9, 0]], flip_x(10))
    array([[9., 0.],
           [0., 0.]])

    """
    check_arguments(carried, locals(), DataError)
    at, by = np.asarray(points, dtype=np.float64), np.asarray(matrices, dtype=np.float64)
    if at.ndim < 2 or at.shape[-1] != 2 or by.shape[-2:] != (3, 3):
        raise SetsupError(f"points must have shape (..., n, 2) and matrices (..., 3, 3), not {at.shape} and {by.shape}")
    moved = at @ np.swapaxes(by[..., :2], -1, -2) + by[..., None, :, 2]
    depth = moved[..., 2:]
    return np.asarray(moved[..., :2] / np.where(depth > 0, depth, np.nan))


def inside(points: npt.ArrayLike, height: float | npt.ArrayLike, width: float | npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether points lie on an image: −½ ≤ x < width − ½ and −½ ≤ y < height − ½.

    Parameters
    ----------
    points : (..., 2)
        Pixels (x, y); NaN is outside.
    height, width : (...) numbers
        Of the image.

    Returns
    -------
    (...) bool

    Examples
    --------
    >>> inside([[-0.5, 0], [9.5, 0], [3, 4]], 5, 10)
    array([ True, False,  True])

    """
    check_arguments(inside, locals(), DataError)
    at = np.asarray(points, dtype=np.float64)
    if at.shape[-1] != 2:
        raise DataError(f"points must have shape (..., 2), the pixels (x, y), not {at.shape}")
    x, y = at[..., 0], at[..., 1]
    across, down = np.asarray(width, dtype=np.float64), np.asarray(height, dtype=np.float64)
    return np.asarray((x >= -0.5) & (x < across - 0.5) & (y >= -0.5) & (y < down - 0.5))


def turning(matrices: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> Reals:
    """Rotation or reflection nearest to what matrices do to small vectors at a point (x, y).

    It is the orthogonal factor of the polar decomposition of the derivative there, which for two dimensions is
    [[a + d, b − c], [c − b, a + d]] over its norm where the derivative [[a, b], [c, d]] keeps handedness, and
    [[a − d, b + c], [b + c, d − a]] over its norm where it mirrors.

    Parameters
    ----------
    matrices : (..., 3, 3)
        Homographies.
    x, y : (...) numbers
        Pixel of the source.

    Returns
    -------
    (..., 2, 2) float64

    Examples
    --------
    >>> turning(compose(scaling(3, 2), flip_x(8)), 0, 0) + 0.0
    array([[-1.,  0.],
           [ 0.,  1.]])

    """
    by = np.asarray(matrices, dtype=np.float64)
    at = np.stack(np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64)), axis=-1)[..., None, :]
    # the derivative of p′ = (A p + t)/w is (A − p′ hᵀ)/w, and a positive w does not turn it
    derivative = by[..., :2, :2] - np.swapaxes(carried(at, by), -1, -2) * by[..., 2:, :2]
    (a, b), (c, d) = ((derivative[..., row, 0], derivative[..., row, 1]) for row in range(2))
    side = np.where(a * d - b * c < 0, -1.0, 1.0)
    cos, sin = a + side * d, c - side * b
    norm = np.hypot(cos, sin)
    cos, sin = cos / norm, sin / norm
    return _matrix([[cos, -side * sin], [sin, side * cos]])


def _matrix(rows: list[list[Any]]) -> Reals:
    """Matrices of entries that broadcast against each other."""
    entries = np.broadcast_arrays(*(np.asarray(entry, dtype=np.float64) for row in rows for entry in row))
    return np.stack(entries, axis=-1).reshape(*entries[0].shape, len(rows), len(rows[0]))
