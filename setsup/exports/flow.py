"""Optical flow as files: ``.flo`` of Middlebury and MPI-Sintel, and the PNG files of KITTI.

Flow is (h, w, 2): u to the right and v down, in pixels.

References
----------
.. [1] S. Baker et al., "A Database and Evaluation Methodology for Optical Flow", IJCV 2011, and the code on
   https://vision.middlebury.edu/flow: the format ``.flo``.
.. [2] M. Menze, A. Geiger, "Object Scene Flow for Autonomous Vehicles", CVPR 2015, and the development kit of KITTI
   2015: flow in PNG files of three channels of 16 bits.

"""

import struct

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Numbers
from setsup.checks import check_array
from setsup.errors import SetsupError
from setsup.exports.png import encode_png

__all__ = ["FARTHEST_FLO", "UNKNOWN", "encode_flo", "encode_kitti_flow", "kitti_valid"]

UNKNOWN = 1e10
"""What ``.flo`` has for both numbers of a pixel whose flow is unknown."""

FARTHEST_FLO = 1e9
"""Pixels; readers of ``.flo`` take larger numbers as unknown."""

_MAGIC = 202021.25
_STEPS = 64  # of a pixel, in KITTI's files
_ZERO = 1 << 15


def encode_flo(flow: npt.ArrayLike) -> bytes:
    """Encode flow as a ``.flo`` file.

    The file has the number 202021.25 as float32, width and height as int32, and row after row the pairs (u, v) as
    float32; all little-endian.

    Parameters
    ----------
    flow : (h, w, 2) float
        Pixels; not finite, or from 1e9 on, where it is unknown.

    Returns
    -------
    bytes
        The content of the file. Unknown flow is 1e10 in both numbers.

    Raises
    ------
    SetsupError
        When the array has another shape.

    Examples
    --------
    >>> content = encode_flo([[[1.5, -2.0], [float("nan"), 0.0]]])
    >>> content[:4], content[4:12].hex(), np.frombuffer(content, "<f4", offset=12).tolist()
    (b'PIEH', '0200000001000000', [1.5, -2.0, 10000000000.0, 10000000000.0])

    """
    values = _checked(flow)
    with np.errstate(over="ignore"):
        content = values.astype("<f4")
    with np.errstate(invalid="ignore"):
        unknown = ~(np.abs(content) < FARTHEST_FLO).all(axis=2)
    content[unknown] = UNKNOWN
    height, width = unknown.shape
    return struct.pack("<fii", _MAGIC, width, height) + content.tobytes()


def encode_kitti_flow(flow: npt.ArrayLike, valid: npt.ArrayLike | None = None) -> bytes:
    r"""Encode flow as a PNG file of KITTI: three channels of 16 bits, exact to 1/128 pixel.

    The first channel is round(64 u + 2¹⁵), the second the same of v, and the third 1 where the flow is valid. All are 0
    elsewhere.

    Parameters
    ----------
    flow : (h, w, 2) float
        Pixels.
    valid : (h, w) bool, optional
        Pixels whose flow is written; all by default. Flow that is not finite, or of 512 pixels or more in u or v, is
        never valid: it does not fit the file.

    Returns
    -------
    bytes
        The content of the file.

    Raises
    ------
    SetsupError
        When an array has another shape.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> content = encode_kitti_flow([[[1.5, -2.0], [600.0, 0.0]]])
    >>> content[:4], len(Image.open(io.BytesIO(content)).getbands())
    (b'\x89PNG', 3)

    """
    values = _checked(flow)
    shown = kitti_valid(values)
    if valid is not None:
        asked = check_array(valid, "valid", SetsupError)
        if asked.dtype != bool or asked.shape != shown.shape:
            raise SetsupError(
                f"valid must be a boolean array of shape {shown.shape}, that of the image, not {asked.dtype} of shape "
                f"{asked.shape}"
            )
        shown = shown & asked
    pixels = np.zeros((*shown.shape, 3), np.uint16)
    pixels[shown, :2] = _steps(values[shown])
    pixels[..., 2] = shown
    return encode_png(pixels)


def kitti_valid(flow: Numbers) -> Bools:
    """Where flow (h, w, 2) fits a file of KITTI."""
    with np.errstate(invalid="ignore", over="ignore"):
        steps = _steps(flow)
        return np.asarray(((steps > 0) & (steps < 2 * _ZERO)).all(axis=-1))


def _steps(flow: Numbers) -> Array:
    return np.asarray(np.rint(_STEPS * np.asarray(flow, np.float64) + _ZERO))


def _checked(flow: npt.ArrayLike) -> Array:
    values = check_array(flow, "flow", SetsupError)
    if values.ndim != 3 or values.shape[2] != 2 or not values.size or values.dtype.kind not in "fiu":
        raise SetsupError(
            f"flow must be numbers of shape (height, width, 2), u and v in pixels, not {values.dtype} of shape "
            f"{values.shape}"
        )
    return values
