"""Surface normals of a depth image: a plane is fitted around every pixel, in inverse depth, by least squares.

Convention
----------
Pixels are numbered from 0 and have their centres on the integers: column u and row v of a point (x, y, z) in front of
the camera are u = fx·x/z + cx and v = fy·y/z + cy. Camera frame: x right, y down, z forward, metres. Depth is z, not
the length of the ray. Normals have length 1 and face the camera; undefined normals are 0, like missing depth.

Method
------
Points of a plane n·p = d satisfy 1/z = (n_x (u − cx)/fx + n_y (v − cy)/fy + n_z) / d: inverse depth is linear in the
pixel. So an ordinary least-squares fit of three numbers to the inverse depths of a window determines the plane; it is
exact for planes, however tilted. Inverse depth is proportional to the disparity that structured-light and stereo
cameras measure, whose noise does not depend on the distance (Khoshelham and Elberink, "Accuracy and Resolution of
Kinect Depth Data for Indoor Mapping Applications", Sensors 12, 2012), so all pixels of the window have equal weight.
Pixels whose inverse depth differs from that of the centre by more than 5 % are excluded: they lie behind an edge.

Error
-----
With noise of standard deviation s in 1/z, each of n_x/d and n_y/d has the standard deviation f·s / √(Σ (Δu)²), the sum
going over the window: for f = 519 pixels and 9 × 9 pixels 22·s. On a wall at 2 m that faces the camera, 1 cm of noise
in the depth tilts normals by 9° (root mean square), 2 mm by 1.8°. Where two surfaces meet, and across an edge of less
than 5 % of the depth, normals turn over the width of the window.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats
from setsup.errors import DataError

__all__ = ["Intrinsics", "surface_normals"]


_MISSING = np.float32(-1e6)  # far from every inverse depth, and finite: 0 times it is 0
_JUMP = np.float32(0.05)
_BAND = 32  # rows at a time, so that what is summed stays in the processor's cache
_MOST_RADIUS = 7  # up to which the sums that tell points on a line are exact in float32


class Intrinsics(NamedTuple):
    """Pinhole camera: focal lengths and principal point in pixels, with 0 at the centre of the first pixel."""

    fx: float
    fy: float
    cx: float
    cy: float


def surface_normals(depth: npt.ArrayLike, intrinsics: Intrinsics, radius: int = 4) -> Floats:
    """Surface normals of a depth image.

    Parameters
    ----------
    depth : (height, width) floating point, metres
        Distance along the optical axis. Values that are not positive and finite count as missing.
    intrinsics : Intrinsics
        The camera.
    radius : int, pixels
        From 1 to 7; the window has 2·radius + 1 pixels per side. A larger window reduces noise and smooths edges.

    Returns
    -------
    (height, width, 3) float32
        Unit vectors (x, y, z) that face the camera; 0 if the depth is missing or the window has fewer than three usable
        pixels that are not on one line.

    Raises
    ------
    DataError
        The depth does not have two axes, or the radius is out of range.

    Examples
    --------
    >>> wall = np.full((5, 6), 2.0)
    >>> camera = Intrinsics(500.0, 500.0, 2.5, 2.0)
    >>> normal = surface_normals(wall, camera)[2, 3]
    >>> normal.tolist()  # it looks at the camera
    [0.0, 0.0, -1.0]

    """
    z = np.asarray(depth)
    if z.ndim != 2 or z.dtype.kind != "f":
        raise DataError(
            f"depth must be a floating-point array of shape (height, width), not {z.dtype} of shape {z.shape}"
        )
    if not 1 <= radius <= _MOST_RADIUS:
        raise DataError(f"radius must be from 1 to {_MOST_RADIUS} pixels, not {radius}")
    height, width = z.shape
    inverse = np.full((height + 2 * radius, width + 2 * radius), _MISSING)
    inside = inverse[radius : radius + height, radius : radius + width]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        np.divide(1, z, out=inside, where=z > 0, casting="unsafe")
    inside[~((inside > 0) & np.isfinite(inside))] = _MISSING
    normals = np.empty((height, width, 3), np.float32)
    for top in range(0, height, _BAND):
        bottom = min(top + _BAND, height)
        normals[top:bottom] = _of_band(inverse[top : bottom + 2 * radius], intrinsics, radius, top)
    return normals


def _of_band(inverse: Floats, intrinsics: Intrinsics, radius: int, top: int) -> Floats:
    """Normals of the rows from ``top`` on; ``inverse`` has ``radius`` more pixels on every side."""
    fx, fy, cx, cy = map(np.float32, intrinsics)
    height, width = (size - 2 * radius for size in inverse.shape)
    centre = inverse[radius : radius + height, radius : radius + width]
    across, down, offset = _slopes(inverse, radius)
    column = np.arange(width, dtype=np.float32) - cx
    row = (np.arange(top, top + height, dtype=np.float32) - cy)[:, np.newaxis]
    fitted = centre + offset
    normals = np.stack([across * fx, down * fy, fitted - across * column - down * row], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # scaled first, so that squares of very small or large numbers stay numbers
        normals /= np.abs(normals).max(axis=-1, keepdims=True)
        normals /= -np.sqrt(np.einsum("...i,...i", normals, normals))[..., np.newaxis]
    normals[~(np.isfinite(normals).all(axis=-1) & (fitted > 0) & (centre > 0))] = 0
    normals += 0  # which makes 0 of −0
    return normals


def _slopes(inverse: Floats, radius: int) -> tuple[Floats, Floats, Floats]:
    """Fit the plane: change of inverse depth per column and per row, and its value less that of the centre; or NaN."""
    height, width = (size - 2 * radius for size in inverse.shape)
    centre = inverse[radius : radius + height, radius : radius + width]
    limit = np.abs(centre) * _JUMP
    # sums over the window of the weight w, which is 0 or 1, and of t, the inverse depth less that of the centre
    w0, wu, wv, wuu, wuv, wvv, t0, tu, tv = np.zeros((9, height, width), np.float32)
    difference, weight, scaled = np.empty((3, height, width), np.float32)
    for v in range(-radius, radius + 1):
        r0, ru, ruu, s0, su = np.zeros((5, height, width), np.float32)
        for u in range(-radius, radius + 1):
            np.subtract(inverse[radius + v :, radius + u :][:height, :width], centre, out=difference)
            np.less_equal(np.abs(difference, out=weight), limit, out=weight, casting="unsafe")
            difference *= weight
            r0 += weight
            s0 += difference
            if u:
                ru += np.multiply(weight, np.float32(u), out=scaled)
                ruu += np.multiply(scaled, np.float32(u), out=scaled)
                su += np.multiply(difference, np.float32(u), out=scaled)
        w0, wu, wuu, t0, tu = w0 + r0, wu + ru, wuu + ruu, t0 + s0, tu + su
        wv, wuv, wvv, tv = wv + v * r0, wuv + v * ru, wvv + v * v * r0, tv + v * s0
    uu, vv, uv = w0 * wuu - wu * wu, w0 * wvv - wv * wv, w0 * wuv - wu * wv
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ut, vt = w0 * tu - wu * t0, w0 * tv - wv * t0
        determinant = uu * vv - uv * uv
        # 0 for points on one line: their sums are small integers, and exact
        determinant[determinant < 1] = np.nan
        across, down = (vv * ut - uv * vt) / determinant, (uu * vt - uv * ut) / determinant
        return across, down, (t0 - across * wu - down * wv) / w0
