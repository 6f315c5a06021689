"""Maps of MOVi's frames in setsup's conventions, from the integers that are published.

Convention
----------
Published: depth is the distance from the camera's centre, over ``depth_range``; flow is (row, column), over its range,
of the movement to the next frame, and for ``backward_flow`` of the movement from the frame before to this one, both in
the direction of time [1]_; normals are in the world, n = v / 65535 · 2 − 1. The camera looks along −z, with x right and
y up. Maps of a release that is n times smaller than the rendered images have every n-th pixel of these, from the
(n − 1) // 2-th, while images have the mean of n × n pixels.

References
----------
.. [1] ``kubric/renderer/blender_utils.py`` and issue 152 of github.com/google-research/kubric.

"""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.formats.protobuf import packed_integers
from setsup.errors import DamagedFile

__all__ = ["camera_normals", "exact_flow", "from_range", "poses", "z_factors"]

_MOST = 65535


def from_range(values: Array, limits: Array) -> npt.NDArray[np.float32]:
    """Numbers of a range (2,) that were stored as 0 to 65535."""
    low, high = np.asarray(limits, np.float64)
    found: npt.NDArray[np.float32] = (values / _MOST * (high - low) + low).astype(np.float32)
    return found


def z_factors(side: int, native: int, focal: float) -> npt.NDArray[np.float64]:
    """Factors (side, side) from the distance of each pixel's point to its depth along the optical axis.

    `focal` in pixels of the release.
    """
    step = native // side
    at = (np.arange(side) * step + (step - 1) // 2 - (native - 1) / 2) / step / focal
    return 1 / np.sqrt(1 + at**2 + at[:, None] ** 2)


def exact_flow(content: bytes, side: int, limits: Array, label: str) -> npt.NDArray[np.float32]:
    """Flow (side, side, 2) of one frame: x to the right, y down, pixels."""
    values = packed_integers(np.frombuffer(content, np.uint8))
    if len(values) != 2 * side * side or values.max() > _MOST:
        raise DamagedFile(f"{label} is not a flow of {side} × {side} pixels of 16 bits")
    return from_range(values.reshape(side, side, 2)[..., ::-1], limits)


def camera_normals(values: Array, rotation: Array) -> npt.NDArray[np.float32]:
    """Unit vectors (h, w, 3) in the camera's frame, 0 where the published vector is 0.

    `rotation` (3, 3) is that of the pose.
    """
    normals = values / (_MOST / 2) - 1
    length = np.linalg.norm(normals, axis=-1, keepdims=True)
    unit = np.divide(normals, length, out=np.zeros_like(normals), where=length > 0.5)
    turned: npt.NDArray[np.float32] = (unit @ rotation).astype(np.float32)
    return turned


def poses(positions: Array, quaternions: Array) -> npt.NDArray[np.float64]:
    """Matrices (..., 4, 4) from the frame of a body to the world, of positions (..., 3) and quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True), -1, 0).astype(float)
    rotation = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        *(2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        *(2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    ]
    found = np.zeros((*np.shape(w), 4, 4))
    found[..., :3, :3] = np.stack(rotation, axis=-1).reshape(*np.shape(w), 3, 3)
    found[..., :3, 3], found[..., 3, 3] = positions, 1
    return found
