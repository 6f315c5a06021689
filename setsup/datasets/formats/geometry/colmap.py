"""COLMAP's sparse models in their binary form: cameras and the poses of images.

Convention
----------
In the files (little-endian), a quaternion (w, x, y, z) and a translation map world to camera coordinates (x right, y
down, z forward), and the centre of the first pixel is at (½, ½). Here a pose maps camera to world coordinates, and
pixels have their centres at integers.

References
----------
.. [1] J. L. Schönberger, J.-M. Frahm, "Structure-from-Motion Revisited", CVPR 2016; colmap.github.io/format.html.

"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from setsup.errors import DamagedFile

__all__ = ["ColmapCamera", "read_cameras", "read_poses"]

_COUNT = struct.Struct("<Q")
_CAMERA = struct.Struct("<iiQQ")
_IMAGE = struct.Struct("<i7di")
_POINT = 24  # bytes of a point of an image
_NAME = 256  # bytes in which a name ends
_MOST = 1 << 20  # cameras or images
_MOST_POINTS = 1 << 32  # of an image
# how many parameters; places of fx, fy, cx, cy, and of k1, k2, p1, p2 among them, −1 for 0
_MODELS = MappingProxyType(
    {
        0: ("SIMPLE_PINHOLE", 3, (0, 0, 1, 2), (-1, -1, -1, -1)),
        1: ("PINHOLE", 4, (0, 1, 2, 3), (-1, -1, -1, -1)),
        2: ("SIMPLE_RADIAL", 4, (0, 0, 1, 2), (3, -1, -1, -1)),
        3: ("RADIAL", 5, (0, 0, 1, 2), (3, 4, -1, -1)),
        4: ("OPENCV", 8, (0, 1, 2, 3), (4, 5, 6, 7)),
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class ColmapCamera:
    """A camera: its image's size, ``fx, fy, cx, cy`` in pixels, and OpenCV's distortion ``k1, k2, p1, p2``."""

    height: int
    width: int
    lens: npt.NDArray[np.float64]
    distortion: npt.NDArray[np.float64]


def read_cameras(content: bytes, label: str) -> dict[int, ColmapCamera]:
    """Read ``cameras.bin``: cameras by number; DataError for models other than pinholes, radial and OpenCV."""
    cameras: dict[int, ColmapCamera] = {}
    at = _COUNT.size
    for _ in range(_count(content, label)):
        if at + _CAMERA.size > len(content):
            raise _cut_off(label)
        number, model, width, height = _CAMERA.unpack_from(content, at)
        if model not in _MODELS:
            known = ", ".join(name for name, *_ in _MODELS.values())
            raise DamagedFile(
                f"{label}: camera {number} has the camera model {model}; supported models are {known}",
                "undistort the images",
            )
        _, count, lens, distortion = _MODELS[model]
        if at + _CAMERA.size + 8 * count > len(content):
            raise _cut_off(label)
        numbers = np.append(np.frombuffer(content, "<f8", count, at + _CAMERA.size), 0.0)
        if not (np.isfinite(numbers).all() and 0 < width < 1 << 16 and 0 < height < 1 << 16):
            raise DamagedFile(
                f"{label}: camera {number} has {width} × {height} pixels (width × height) and the parameters "
                f"{numbers[:-1]}; expected sides from 1 to 65,535 and finite parameters"
            )
        cameras[number] = ColmapCamera(height, width, numbers[list(lens)] - [0, 0, 0.5, 0.5], numbers[list(distortion)])
        at += _CAMERA.size + 8 * count
    return cameras


def read_poses(read: Callable[[int, int], bytes], label: str) -> dict[str, tuple[int, npt.NDArray[np.float64]]]:
    """Read ``images.bin``: the camera's number and the pose (4, 4) of each image by name.

    ``read(offset, length)`` returns bytes of the file, fewer at its end. The points of the images, which make up most
    of the file, are not read.
    """
    poses: dict[str, tuple[int, npt.NDArray[np.float64]]] = {}
    at = _COUNT.size
    for _ in range(_count(read(0, _COUNT.size), label)):
        head = read(at, _IMAGE.size + _NAME)
        end = head.find(b"\0", _IMAGE.size)
        if end < 0 or end + 9 > len(head):
            head = read(at, _IMAGE.size + 2 * _NAME)
            end = head.find(b"\0", _IMAGE.size)
        if end < 0 or end + 9 > len(head):
            raise _cut_off(label)
        _, *numbers, camera = _IMAGE.unpack_from(head)
        (points,) = _COUNT.unpack_from(head, end + 1)
        name = head[_IMAGE.size : end].decode("utf-8", "surrogateescape")
        if points > _MOST_POINTS:
            raise DamagedFile(
                f"{label}: image {name!r} specifies {points:,} points, more than the limit of {_MOST_POINTS:,}; "
                "expected a binary COLMAP model"
            )
        poses[name] = camera, _pose(np.array(numbers), f"{label}: image {name!r}")
        at += end + 9 + _POINT * points
    return poses


def _pose(numbers: npt.NDArray[np.float64], label: str) -> npt.NDArray[np.float64]:
    length = np.linalg.norm(numbers[:4])
    if not (np.isfinite(numbers).all() and abs(length - 1) < 0.01):
        raise DamagedFile(
            f"{label} has the pose {numbers.tolist()}; expected finite numbers that start with a unit quaternion"
        )
    w, x, y, z = numbers[:4] / length
    # from camera to world: the transpose of the quaternion's rotation
    pose = np.eye(4)
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
        [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
    ]
    pose[:3, 3] = -pose[:3, :3] @ numbers[4:]
    return pose


def _count(content: bytes, label: str) -> int:
    if len(content) < _COUNT.size:
        raise _cut_off(label)
    count: int = _COUNT.unpack_from(content)[0]
    if count > _MOST:
        raise DamagedFile(
            f"{label} specifies {count:,} entries, more than the limit of {_MOST:,}; expected a binary COLMAP model"
        )
    return count


def _cut_off(label: str) -> DamagedFile:
    return DamagedFile(f"{label} ends inside an entry: it is truncated, or not a binary COLMAP model")
