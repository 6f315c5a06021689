"""Pixels of two recorded RGB-D frames that show the same point: where depth images are all there is.

A pixel of frame 1 with depth stands for a point X. It is taken for visible in frame 2 when the depth that frame 2 has
at the pixel nearest to X's projection is that of X, within a tolerance. That is a guess, while
:func:`setsup.correspondence.spatial` decides: use it wherever there is a mesh.

References
----------
.. [1] J. Shotton et al., "Scene Coordinate Regression Forests for Camera Relocalization in RGB-D Images", CVPR 2013:
   points of the world from depth and pose, which two frames share.

"""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_number
from setsup.correspondence import planar
from setsup.correspondence.pixel_pairs import (
    NO_SURFACE,
    OCCLUDED,
    OUTSIDE,
    UNKNOWN,
    VISIBLE,
    PixelPairs,
    check_pixels,
)
from setsup.errors import DataError, SetsupError
from setsup.scenes.camera import Camera

__all__ = ["compare_depth", "from_depth", "recorded_camera"]


_TURNED = 0.1  # how far the determinant of a recorded rotation may be from 1


def from_depth(
    depth1: npt.ArrayLike,
    depth2: npt.ArrayLike,
    camera1: Camera,
    camera2: Camera,
    pixels: npt.ArrayLike | None = None,
    *,
    tolerance: float = 0.01,
    absolute: float = 0.0,
    instances1: npt.ArrayLike | None = None,
) -> PixelPairs:
    """Partners in frame 2 of pixels of frame 1, by depth alone.

    Parameters
    ----------
    depth1, depth2 : (h, w) float, metres
        Along the axis of each camera, of the sizes of their images; 0, negative, or NaN where nothing was measured.
    camera1, camera2 : Camera
        Those of the frames, in one world; see :func:`recorded_camera`.
    pixels : (n, 2) float, optional
        Pixels (x, y) of frame 1; all of them, row after row, by default. Depth is that of the nearest pixel, half-way
        places going to the even one; nothing is interpolated, as that would invent surfaces across edges.
    tolerance : float
        Depths z of a point and d of frame 2 are the same when ``|z − d| ≤ max(tolerance · z, absolute)``.
    absolute : float, metres
        Least difference that counts; the step of the sensor's depth, at least.
    instances1 : (h, w) int, optional
        Number of the thing that each pixel of frame 1 shows; without it, instances are −1.

    Returns
    -------
    PixelPairs
        One per pixel, as :func:`setsup.correspondence.spatial` returns; OCCLUDED also where frame 2 shows something
        farther than the point, and UNKNOWN where it measured nothing.

    Raises
    ------
    SetsupError
        When an image has another size than its camera's, or a number is out of range.

    Notes
    -----
    What to expect, measured beside :func:`setsup.correspondence.spatial` on renderings of a furnished room: 12 pairs of
    views of 256² pixels and 50°, 0.9 to 3.6 m apart, depth of 1.1 to 6.1 m; 326,712 pixels that are visible in view 2
    and 208,248 that are hidden there. *Wrong* is the share of pairs called visible that are not, *missed* that of truly
    visible pixels that were not found. The noise of poses is 5 mm and 0.2° about each axis, in both views (standard
    deviations).

    ====================  ==============  ==============  ==============
    wrong / missed        0.001           0.01            0.05
    ====================  ==============  ==============  ==============
    exact                 0.2 % / 44 %    0.8 % / 2.6 %   6.3 % / 1.7 %
    depth rounded to mm   0.2 % / 44 %    0.8 % / 2.6 %   6.3 % / 1.7 %
    noise of poses        1.8 % / 89 %    2.1 % / 25 %    6.7 % / 5.3 %
    ====================  ==============  ==============  ==============

    Surfaces seen at an angle are missed below a tolerance of some 0.01, since depth changes within a pixel; things that
    stand closer to what is behind them than the tolerance are wrongly seen through, and both sides of a thinner board
    taken for one. The places of partners are exact where depth and poses are; rounding to mm moves them by 0.015 px
    (median; 99 %: 0.08 px), the noise of poses by 2.2 px (5 px), and no tolerance tells.

    Examples
    --------
    >>> from setsup.correspondence import Status
    >>> camera = Camera.look_at((0, 0, 0), (0, 1, 0), height=48, width=64, focal_length=60)
    >>> beside = Camera.look_at((0.5, 0, 0), (0.5, 1, 0), height=48, width=64, focal_length=60)
    >>> wall = np.full((48, 64), 2.0)  # seen straight on by both
    >>> pairs = from_depth(wall, wall, camera, beside, [[31, 23], [2, 23]])
    >>> pairs.points2.round(9).tolist(), [Status(status).name for status in pairs.status]
    ([[16.0, 23.0], [-13.0, 23.0]], ['VISIBLE', 'OUTSIDE'])

    """
    check_arguments(from_depth, locals(), DataError)
    map1, map2 = _image(depth1, camera1, "depth1"), _image(depth2, camera2, "depth2")
    for name, value in (("tolerance", tolerance), ("absolute", absolute)):
        check_number(value, name, SetsupError, 0)
    at = camera1.pixels() if pixels is None else check_pixels(pixels)
    seen = np.flatnonzero(planar.inside(at, camera1.height, camera1.width))
    depth = np.full(len(at), np.nan)
    depth[seen] = _sample(map1, at[seen])
    with np.errstate(invalid="ignore"):
        depth[~(depth > 0)] = np.nan
    xyz = camera1.centre + depth[:, None] * camera1.rays(at)
    points2, towards = camera2.project(xyz)
    status = np.where(np.isfinite(depth), OUTSIDE, NO_SURFACE)
    there = np.flatnonzero(planar.inside(points2, camera2.height, camera2.width))
    status[there] = compare_depth(map2, points2[there], towards[there], tolerance, absolute)
    instance = np.full(len(at), -1, np.int32)
    if instances1 is not None:
        numbers = np.asarray(instances1)
        if numbers.shape != map1.shape or numbers.dtype.kind not in "iu":
            raise SetsupError(
                f"instances1 must be an integer array of shape {map1.shape}, not {numbers.dtype} of shape "
                f"{numbers.shape}"
            )
        known = seen[status[seen] != NO_SURFACE]
        instance[known] = _sample(numbers, at[known])
    return PixelPairs(at, points2, xyz, instance, status)


def compare_depth(
    image: npt.NDArray[Any], points: Reals, depth: Reals, tolerance: float, absolute: float
) -> npt.NDArray[np.uint8]:
    """Statuses of points at a depth, by the depth that a frame measured at the pixels nearest to them.

    `image` (h, w), metres; `points` (n, 2), pixels within it; `depth` (n,), metres; returns (n,) uint8: VISIBLE,
    OCCLUDED or UNKNOWN.
    """
    measured = _sample(image, points)
    with np.errstate(invalid="ignore"):
        known = (measured > 0) & (measured < np.inf)
        same = np.abs(measured - depth) <= np.maximum(tolerance * depth, absolute)
    return np.asarray(np.where(known, np.where(same, VISIBLE, OCCLUDED), UNKNOWN))


def recorded_camera(pose: npt.ArrayLike, intrinsics: npt.ArrayLike, height: int, width: int) -> Camera:
    """Make the camera of a recorded frame.

    Parameters
    ----------
    pose : (4, 4) float, metres
        From the camera's frame (x right, y down, z forward) to the world, as trajectories of RGB-D recordings have it
        and the modality ``pose`` of the dataset ``scenenn-frames``. The rotation is made one: recorded ones are
        rounded.
    intrinsics : (3, 3) float, pixels
        The modality ``intrinsics``; pixels are counted at their centres.
    height, width : int
        Of the frame's images.

    Raises
    ------
    SetsupError
        When the pose is none: NaN where a frame was not tracked, or no rotation.

    Examples
    --------
    >>> pose = np.eye(4)
    >>> pose[:3, 3] = 1, 2, 0
    >>> camera = recorded_camera(pose, [[544.5, 0, 320], [0, 544.5, 240], [0, 0, 1]], 480, 640)
    >>> camera.project([1, 2, 3])[0].tolist()
    [320.0, 240.0]

    With a dataset of recorded frames, and two of its rows::

        frames = setsup.load("scenenn-frames")
        got = frames.fetch([12, 40])
        cameras = [recorded_camera(got["pose"][i], got["intrinsics"][i], 480, 640) for i in range(2)]
        pairs = from_depth(got["depth"][0], got["depth"][1], *cameras, tolerance=0.02)

    """
    check_arguments(recorded_camera, locals(), DataError)
    to_world = np.asarray(pose, dtype=np.float64)
    if (
        to_world.shape != (4, 4)
        or not np.isfinite(to_world).all()
        or not np.allclose(to_world[3], (0, 0, 0, 1), atol=1e-6)
    ):
        raise SetsupError(
            f"a camera pose must be a 4 × 4 matrix of finite numbers with the last row 0 0 0 1, not {to_world.tolist()}"
        )
    if not abs(np.linalg.det(to_world[:3, :3]) - 1) <= _TURNED:
        raise SetsupError(
            "the rotation of a camera pose must be an orthogonal matrix with determinant 1, not "
            f"{to_world[:3, :3].tolist()}"
        )
    left, _, right = np.linalg.svd(to_world[:3, :3])
    rotation = (left @ right).T  # the nearest one, and its inverse: from the world to the camera
    return Camera(height, width, np.asarray(intrinsics, np.float64), rotation, -rotation @ to_world[:3, 3])


def _image(depth: npt.ArrayLike, camera: Camera, name: str) -> npt.NDArray[Any]:
    numbers = np.asarray(depth)
    if numbers.shape != (camera.height, camera.width) or numbers.dtype.kind not in "fiu":
        wanted = f"({camera.height}, {camera.width})"
        raise SetsupError(
            f"{name} must be a numeric array of shape {wanted}, the height and width of its camera, not "
            f"{numbers.dtype} of shape {numbers.shape}"
        )
    return numbers


def _sample(image: npt.NDArray[Any], points: Reals) -> npt.NDArray[Any]:
    """Values at the pixels nearest to points within the image."""
    column, row = np.rint(points).astype(np.int64).T
    return np.asarray(image[row, column])
