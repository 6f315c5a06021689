"""Pixels of two views of a scene that show the same point, traced through its geometry.

The ray through a pixel of view 1 meets a point X. X is projected to view 2, and is visible there when the ray from
camera 2 towards it, ``C₂ + t (X − C₂)``, meets nothing before t = 1 − 10⁻⁴, and both cameras see the same side of the
surface. Where placements have moved between the views, X moves with the placement whose surface it is on. No depth
image is read, and no tolerance on depth is needed: all of it is decided in float64 on the triangles (see
:mod:`setsup.correspondence.spatial_rays`).

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), second experiment: rays through pixels, traced back from the second view.

"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup import random
from setsup.arrays import Reals
from setsup.checks import check_arguments, check_number
from setsup.correspondence.pixel_pairs import PixelPairs, check_key, check_pixels
from setsup.correspondence.spatial_tracing import trace
from setsup.errors import DataError, SetsupError
from setsup.scenes.camera import Camera
from setsup.scenes.rays import Rays
from setsup.scenes.scene import Scene

__all__ = ["drawn_pixels", "spatial"]


def spatial(
    scene: Scene | Rays,
    camera1: Camera,
    camera2: Camera,
    pixels: npt.ArrayLike | None = None,
    *,
    fraction: float | None = None,
    key: int | np.uint64 | None = None,
    both_sides: bool = False,
    scene2: Scene | Rays | None = None,
) -> PixelPairs:
    """Partners in view 2 of pixels of view 1.

    Parameters
    ----------
    scene : Scene or Rays
        What both cameras look at; it may be empty. What its rays need is built once, when they are first asked for:
        0.7 s for 225,000 triangles.
    camera1, camera2 : Camera
        The two views; their images may be of different sizes.
    pixels : (n, 2) float, optional
        Pixels (x, y) of view 1, whole or not, also beside the image; all of them, row after row, by default.
    fraction : float, optional
        Instead of ``pixels``: this share of all pixels of view 1, drawn by ``key``; see :func:`drawn_pixels`. Published
        is 1/8.
    key : int or uint64, optional
        From :func:`setsup.random.fold`; with ``fraction`` only.
    both_sides : bool
        Whether a point counts as visible also where camera 2 sees its surface from the other side: a sheet of paper
        from behind. By default it is OCCLUDED there, since the two sides of a sheet or of a thin board look different.
    scene2 : Scene or Rays, optional
        The scene at the time of view 2, with the same placements, meshes and scales, such as
        :func:`setsup.scenes.motion.moved` makes; by default nothing has moved.

    Returns
    -------
    PixelPairs
        One per pixel, in the order of the pixels; points in the world are those of ``scene``. Two views without overlap
        have no visible pair; this is no error.

    Raises
    ------
    SetsupError
        When pixels are not finite (n, 2) numbers, both pixels and a fraction are given, or a fraction without a key; or
        the two scenes have different placements.

    Notes
    -----
    Beside float64 brute force over all triangles, for 2,000,000 pixels of 1,000 random scenes, no pixel is wrongly
    visible or missed, and partners agree to 10⁻⁶ px (99.9 %: 10⁻¹⁰ px). A camera stands at −Rᵀt, which is rounded:
    where that puts it on a surface to the last bits, it may lie before or behind it, and so may a point that is as
    close to the plane of camera 2.

    Examples
    --------
    >>> from setsup.correspondence import Status
    >>> from setsup.scenes import Camera, Mesh, Placement, Scene
    >>> wall = Mesh([[-9, 4, -9], [9, 4, -9], [0, 4, 9]], [[0, 1, 2]])
    >>> camera = Camera.look_at((0, 0, 0), (0, 4, 0), height=48, width=64, focal_length=60)
    >>> beside = Camera.look_at((1, 0, 0), (1, 4, 0), height=48, width=64, focal_length=60)
    >>> pairs = spatial(Scene((Placement(wall),)), camera, beside, [[31.5, 23.5], [2, 23.5]])
    >>> pairs.points2.tolist(), [Status(status).name for status in pairs.status]
    ([[16.5, 23.5], [-13.0, 23.5]], ['VISIBLE', 'OUTSIDE'])

    """
    check_arguments(spatial, locals(), DataError)
    at = _pixels(camera1, pixels, fraction, key)
    traced = trace(_scene(scene), camera1, at)
    points2, status = traced.seen(None if scene2 is None else _scene(scene2), camera2, both_sides=both_sides)
    return PixelPairs(at, points2, traced.xyz, traced.instance, status)


def _scene(given: Scene | Rays) -> Scene:
    return given.scene if isinstance(given, Rays) else given


def drawn_pixels(height: int, width: int, fraction: float, key: int | np.uint64) -> Reals:
    """Draw a share of the pixels of an image: exactly ⌊height · width · fraction⌋ different ones.

    Parameters
    ----------
    height, width : int
        Of the image.
    fraction : float
        0 … 1.
    key : int or uint64
        The first so many of a permutation with this key are drawn.

    Returns
    -------
    (n, 2) float64
        Their centres (x, y), row after row.

    Raises
    ------
    SetsupError
        When the fraction or the key is out of range.

    Examples
    --------
    >>> drawn_pixels(4, 4, 1 / 8, key=0).shape
    (2, 2)

    """
    share = check_number(fraction, "fraction", SetsupError, 0, 1)
    count = math.floor(round(height * width * share, 6))  # 0.29 · 100 is a little less than 29
    word = check_key(key)
    every = height * width
    # of a permutation that is sorted again only its length is left
    chosen = np.arange(every) if count == every else np.sort(random.permute(word, every, np.arange(count)))
    rows, columns = np.divmod(chosen, width)
    return np.stack([columns, rows], axis=-1).astype(np.float64)


def _pixels(camera: Camera, pixels: npt.ArrayLike | None, fraction: float | None, key: Any) -> Reals:
    if fraction is not None:
        if pixels is not None or key is None:
            raise SetsupError(
                "pixels= and fraction= are mutually exclusive, and fraction= requires key=; pass either pixels=, or "
                "fraction= (the share of pixels to draw) and key="
            )
        return drawn_pixels(camera.height, camera.width, fraction, key)
    if key is not None:
        raise SetsupError("key requires fraction, the share of pixels to draw; pass fraction=, or leave out key=")
    if pixels is None:
        return camera.pixels()
    return check_pixels(pixels)
