"""Lens distortion as OpenCV models it, and images without it.

Convention
----------
A ray (x, y, 1) of the camera falls on the pixel K (x', y', 1). With r² = x² + y²,

    x' = x · (1 + k1 r² + k2 r⁴ + k3 r⁶) / (1 + k4 r² + k5 r⁴ + k6 r⁶) + 2 p1 x y + p2 (r² + 2 x²)
    y' = y · (1 + k1 r² + k2 r⁴ + k3 r⁶) / (1 + k4 r² + k5 r⁴ + k6 r⁶) + p1 (r² + 2 y²) + 2 p2 x y

The coefficients are in OpenCV's order: k1, k2, p1, p2, k3, k4, k5, k6. Beyond the radius at which r' first stops to
grow, a polynomial that was fitted within the image folds back: rays there fall on no pixel.

References
----------
.. [1] D. C. Brown, "Decentering Distortion of Lenses", Photogrammetric Engineering 32 (1966).

"""

import numpy as np
from numpy.polynomial import polynomial

from setsup.arrays import Array, Reals

__all__ = ["distort_rays", "undistort_pixels", "undistort_rays"]

_ROWS = 1 << 18  # pixels of a block of rows
_ROUNDS = 30
_CLOSE = 1e-10
_REAL = 1e-9
_NONE = 1e-12  # a coefficient that changes nothing within an image


def distort_rays(rays: Reals, coefficients: Reals) -> Reals:
    """Where the rays (x, y, 1) of a camera fall, in the plane of K⁻¹ of a pixel.

    `rays` (..., 2); `coefficients` (8,); returns (..., 2), NaN for rays that fall on no pixel.
    """
    x, y = rays[..., 0], rays[..., 1]
    _, _, p1, p2 = coefficients[:4]
    square = x * x + y * y
    radial = np.where(square < _limit(coefficients), _radial(square, coefficients)[0], np.nan)
    seen = np.stack(
        [
            x * radial + 2 * p1 * x * y + p2 * (square + 2 * x * x),
            y * radial + p1 * (square + 2 * y * y) + 2 * p2 * x * y,
        ],
        axis=-1,
    )
    return seen


def undistort_rays(seen: Reals, coefficients: Reals) -> Reals:
    """Invert :func:`distort_rays` by Newton's method; NaN where nothing falls."""
    limit = _limit(coefficients)
    _, _, p1, p2 = coefficients[:4]
    x, y = (np.array(seen[..., axis], np.float64) for axis in (0, 1))
    with np.errstate(all="ignore"):
        # a start beyond the fold would end on its other side
        shrink = np.minimum(1, 0.9 * np.sqrt(limit) / np.maximum(np.hypot(x, y), 1e-300))
        x, y = x * shrink, y * shrink
        for _ in range(_ROUNDS):
            square = x * x + y * y
            radial, slope = _radial(square, coefficients)
            off_x = x * radial + 2 * p1 * x * y + p2 * (square + 2 * x * x) - seen[..., 0]
            off_y = y * radial + p1 * (square + 2 * y * y) + 2 * p2 * x * y - seen[..., 1]
            by_xx = radial + 2 * x * x * slope + 2 * p1 * y + 6 * p2 * x
            by_xy = 2 * x * y * slope + 2 * p1 * x + 2 * p2 * y
            by_yy = radial + 2 * y * y * slope + 6 * p1 * y + 2 * p2 * x
            whole = by_xx * by_yy - by_xy * by_xy
            x, y = x - (by_yy * off_x - by_xy * off_y) / whole, y - (by_xx * off_y - by_xy * off_x) / whole
        rays = np.stack([x, y], axis=-1)
        found = np.isfinite(rays).all(axis=-1) & (x * x + y * y < limit)
        close = np.abs(distort_rays(np.where(found[..., None], rays, 0), coefficients) - seen).max(axis=-1) < _CLOSE
        rays[~(found & close)] = np.nan
    return rays


def undistort_pixels(
    pixels: Array, camera: Reals, coefficients: Reals, target: Reals, size: tuple[int, int], nearest: bool = False
) -> Array:
    """Sample an image, or a map of numbers, as a pinhole camera shows it; 0 where the image has no pixel.

    `pixels` (height, width, ...) as the lens shows them, with the intrinsics `camera` (3, 3) and the distortion
    `coefficients` (8,); `target` (3, 3) and `size` (height, width) are those of the result. Pixels are interpolated
    linearly, or if `nearest` taken from the nearest one.
    """
    from scipy.ndimage import map_coordinates

    height, width = pixels.shape[:2]
    channels = pixels.reshape(height, width, -1)
    result = np.zeros((*size, channels.shape[2]), pixels.dtype)
    step = max(1, _ROWS // size[1])
    columns = np.arange(size[1])
    for top in range(0, size[0], step):
        rows = np.arange(top, min(top + step, size[0]))[:, None]
        y = np.broadcast_to((rows - target[1, 2]) / target[1, 1], (len(rows), size[1]))
        x = (columns - target[0, 2] - target[0, 1] * y) / target[0, 0]
        seen = distort_rays(np.stack([x, y], axis=-1), coefficients)
        u = camera[0, 0] * seen[..., 0] + camera[0, 1] * seen[..., 1] + camera[0, 2]
        v = camera[1, 1] * seen[..., 1] + camera[1, 2]
        inside = (u >= -0.5) & (u < width - 0.5) & (v >= -0.5) & (v < height - 0.5)
        u, v = np.clip(np.where(inside, u, 0), 0, width - 1), np.clip(np.where(inside, v, 0), 0, height - 1)
        block = result[top : top + len(rows)]
        if nearest:
            block[...] = channels[np.rint(v).astype(np.int64), np.rint(u).astype(np.int64)]
        else:
            for channel in range(channels.shape[2]):
                map_coordinates(channels[..., channel], [v, u], block[..., channel], order=1, mode="nearest")
        block[~inside] = 0
    return result.reshape(*size, *pixels.shape[2:])


def _radial(square: Reals, coefficients: Reals) -> tuple[Reals, Reals]:
    """The factor of rays at squared radii, and its derivative by these."""
    above, below = _polynomials(coefficients)
    over, under = polynomial.polyval(square, above), polynomial.polyval(square, below)
    by_over = polynomial.polyval(square, polynomial.polyder(above))
    by_under = polynomial.polyval(square, polynomial.polyder(below))
    with np.errstate(all="ignore"):  # beyond the limit, where nothing is seen
        return over / under, (by_over * under - over * by_under) / (under * under)


def _polynomials(coefficients: Reals) -> tuple[Reals, Reals]:
    k1, k2, _, _, k3, k4, k5, k6 = coefficients.tolist()
    return np.array([1, k1, k2, k3]), np.array([1, k4, k5, k6])


def _limit(coefficients: Reals) -> float:
    """Squared radius of a ray at which the distorted radius stops to grow, or the factor is infinite."""
    above, below = _polynomials(coefficients)
    slope = polynomial.polysub(
        polynomial.polymul(polynomial.polyder(above), below), polynomial.polymul(above, polynomial.polyder(below))
    )
    growth = polynomial.polyadd(polynomial.polymul(above, below), 2 * np.append(0, slope))
    roots = np.concatenate([polynomial.polyroots(polynomial.polytrim(one, _NONE)) for one in (growth, below)])
    real = roots.real[(np.abs(roots.imag) < _REAL * np.maximum(1, np.abs(roots.real))) & (roots.real > 0)]
    return float(real.min()) if len(real) else np.inf
