"""Poses of rendered views, and the cropping of KeypointNet's renderings in ABC's pose protocol.

Convention
----------
A rotation R maps object coordinates to those of a camera with x to the right, y up, and looking along −z (OpenGL). Its
third row is therefore the direction from the object towards the camera, in object coordinates. The renderings have y-up
object coordinates; Pascal3D+ has z up and the front of an object at −y. The columns of ``TO_PASCAL3D`` are the
Pascal3D+ axes in y-up coordinates: the front is +x, Pascal3D+'s x is −z.

Azimuth and elevation are those of Pascal3D+, in degrees: azimuth 0 looks at the front (the camera is at +x of the y-up
coordinates), azimuth 90 has the camera at −z; elevation is the angle above the horizontal plane. Without a roll
``R·TO_PASCAL3D = Rx(−(90° − elevation))·Rz(−azimuth)``.
"""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Reals
from setsup.errors import DataError

__all__ = ["TO_PASCAL3D", "azimuth_elevation", "crop_to_alpha", "interpolate", "to_pascal3d"]


TO_PASCAL3D = np.array([[0, -1, 0], [0, 0, 1], [-1, 0, 0]], np.float32)
"""(3, 3) float32: takes Pascal3D+ object coordinates into the y-up coordinates of the renderings."""
TO_PASCAL3D.flags.writeable = False


def to_pascal3d(rotation: npt.ArrayLike) -> Array:
    """Change the object axes of rotations from y-up to those of Pascal3D+.

    Parameters
    ----------
    rotation : (..., 3, 3) float
        y-up object coordinates to camera coordinates.

    Returns
    -------
    (..., 3, 3) float, of the same dtype
        Pascal3D+ object coordinates to camera coordinates: ``rotation @ TO_PASCAL3D``.

    Raises
    ------
    DataError
        When the last two axes are not 3 long.

    Examples
    --------
    >>> to_pascal3d([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]]).tolist()  # seen from the front, at the height of the object
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]

    """
    matrices = _rotations(rotation)
    # −z, −x, y of the old axes: the product with TO_PASCAL3D, without its rounding
    turned = matrices[..., [2, 0, 1]]
    turned[..., :2] = 0.0 - turned[..., :2]
    return turned


def azimuth_elevation(rotation: npt.ArrayLike) -> tuple[Array, Array]:
    """Angles from which views look at an object; a roll of the camera does not change them.

    Parameters
    ----------
    rotation : (..., 3, 3) float
        y-up object coordinates to camera coordinates.

    Returns
    -------
    azimuth : (...) float, degrees
        From 0 to below 360; meaningless where the elevation is ±90.
    elevation : (...) float, degrees
        From −90 to 90.

    Raises
    ------
    DataError
        When the last two axes are not 3 long.

    Examples
    --------
    >>> azimuth, elevation = azimuth_elevation([[-1.0, 0, 0], [0, 1, 0], [0, 0, -1]])  # the camera at −z
    >>> float(azimuth), float(elevation)
    (90.0, 0.0)

    """
    matrices = _rotations(rotation)
    x, y, z = (matrices[..., 2, axis].astype(np.float64) for axis in range(3))
    azimuth = np.rad2deg(np.arctan2(0.0 - z, x)).astype(matrices.dtype) % matrices.dtype.type(360)
    # an angle just below 0 becomes 360 in rounding
    azimuth = np.where(azimuth >= 360, 0, azimuth).astype(matrices.dtype)
    return azimuth, np.rad2deg(np.arctan2(y, np.hypot(x, z))).astype(matrices.dtype)


def crop_to_alpha(image: Array, size: tuple[int, int] = (128, 128)) -> Array:
    """Crop the box around the pixels that are not transparent and stretch it to a size, as in ABC's pose protocol.

    Row i of the result is taken, by linear interpolation, at ``(H − 1)/H·(top + i·(bottom − top)/(height − 1))``, with
    the first and the last row of the box; columns likewise. (The factor comes from the published protocol, which
    divides the box by the size of the image and multiplies it by the size minus 1.) Colors of transparent pixels are
    used unchanged.

    Parameters
    ----------
    image : (H, W, 4) uint8 or float
        Alpha last; a pixel belongs to the object where it is above 0 (uint8) or 1e-6 (float).
    size : (height, width), pixels
        Size of the result, each at least 2.

    Returns
    -------
    (height, width, 4), of the same dtype
        uint8 is rounded; pass the image divided by 255 as float32 to reproduce the protocol exactly.

    Raises
    ------
    DataError
        When the image has no alpha channel, or is completely transparent.

    Examples
    --------
    >>> image = np.zeros((8, 8, 4), np.uint8)
    >>> image[2:5, 1:7] = 200
    >>> crop_to_alpha(image, (16, 16)).shape
    (16, 16, 4)

    """
    if image.ndim != 3 or image.shape[2] != 4:
        raise DataError(f"image must have the shape (H, W, 4), with alpha, not {image.shape}")
    if len(size) != 2 or min(size) < 2:
        raise DataError(f"size must be (height, width), each at least 2 pixels, not {size!r}")
    whole = image.dtype.kind in "ui"
    solid = image[..., 3] > (0 if whole else 1e-6)
    if not solid.any():
        raise DataError("the image is completely transparent, so there is no object to crop; exclude the image")
    rows, columns = np.flatnonzero(solid.any(axis=1)), np.flatnonzero(solid.any(axis=0))
    pixels = image.astype(np.float32)
    for axis, there in enumerate((rows, columns)):
        length = pixels.shape[axis]
        pixels = interpolate(pixels, np.linspace(there[0], there[-1], size[axis]) * ((length - 1) / length), axis)
    return np.rint(pixels).astype(image.dtype) if whole else pixels.astype(image.dtype)


def interpolate(pixels: Array, places: Reals, axis: int) -> Array:
    """Pixels between those of an image, linearly along an axis; `places` (k,) from 0, the middle of the first one."""
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, pixels.shape[axis] - 1)
    share = (places - below).astype(np.float32).reshape([-1 if here == axis else 1 for here in range(3)])
    return np.asarray(pixels.take(below, axis) * (1 - share) + pixels.take(above, axis) * share)


def _rotations(rotation: npt.ArrayLike) -> Array:
    matrices = np.asarray(rotation)
    if matrices.shape[-2:] != (3, 3):
        raise DataError(f"rotations must have the shape (…, 3, 3), not {matrices.shape}")
    return matrices if matrices.dtype.kind == "f" else matrices.astype(np.float64)
