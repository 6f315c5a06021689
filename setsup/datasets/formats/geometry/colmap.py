"""COLMAP's sparse models in their binary form: cameras, and the images with their poses.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from setsup.errors import DamagedFile, abbreviate

__all__ = [
    "OBSERVATION",
    "ColmapCamera",
    "ColmapImage",
    "add_camera",
    "add_image",
    "camera_model",
    "read_cameras",
    "read_images",
    "read_pose",
]

OBSERVATION = 24
"""Bytes of a point of an image in ``images.bin``: x and y, float64, and the number of its 3D point, int64."""

_COUNT = struct.Struct("<Q")
_CAMERA = struct.Struct("<iiQQ")
_IMAGE = struct.Struct("<i7di")
_NAME = 256  # bytes in which a name ends
_MOST = 1 << 20  # cameras or images
_MOST_POINTS = 1 << 32  # of an image
_LARGE = 1e9  # for a parameter of a camera
_SMALL = 1e-6  # for a focal length, pixels
_FAR = 1e30  # for a translation, which still fits into float32
_FIX = "write the model again"
# how many parameters, and places of fx, fy, cx, cy; those behind them are OpenCV's k1, k2, p1, p2, k3, k4, k5, k6
_MODELS = MappingProxyType(
    {
        "SIMPLE_PINHOLE": (3, (0, 0, 1, 2)),
        "PINHOLE": (4, (0, 1, 2, 3)),
        "SIMPLE_RADIAL": (4, (0, 0, 1, 2)),
        "RADIAL": (5, (0, 0, 1, 2)),
        "OPENCV": (8, (0, 1, 2, 3)),
        "FULL_OPENCV": (12, (0, 1, 2, 3)),
    }
)
_NUMBERS = (
    *("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "OPENCV_FISHEYE", "FULL_OPENCV", "FOV"),
    *("SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE", "THIN_PRISM_FISHEYE", "RAD_TAN_THIN_PRISM_FISHEYE"),
    *("SIMPLE_DIVISION", "DIVISION", "SIMPLE_FISHEYE", "FISHEYE", "EUCM", "EQUIRECTANGULAR"),
)
"""Camera models by their numbers in binary files."""


@dataclass(frozen=True, slots=True, eq=False)
class ColmapCamera:
    """A camera: its image's size, ``fx, fy, cx, cy`` in pixels, and OpenCV's distortion.

    `distortion` (8,) is ``k1, k2, p1, p2, k3, k4, k5, k6``; the last four are 0 but for the model FULL_OPENCV.
    """

    model: str
    height: int
    width: int
    lens: npt.NDArray[np.float64]
    distortion: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ColmapImage:
    """An image: its number, that of its camera, its pose (4, 4), and where in the file its observations are: bytes."""

    number: int
    camera: int
    pose: npt.NDArray[np.float64]
    start: int
    length: int


def read_cameras(content: bytes, label: str) -> dict[int, ColmapCamera]:
    """Read ``cameras.bin``: cameras by number; DataError for models that are not pinholes, radial or OpenCV's."""
    cameras: dict[int, ColmapCamera] = {}
    at = _COUNT.size
    for _ in range(_count(content, label)):
        if at + _CAMERA.size > len(content):
            raise _cut_off(label)
        number, code, width, height = _CAMERA.unpack_from(content, at)
        model = camera_model(_NUMBERS[code] if 0 <= code < len(_NUMBERS) else str(code), f"{label}: camera {number}")
        count, _ = _MODELS[model]
        at += _CAMERA.size
        if at + 8 * count > len(content):
            raise _cut_off(label)
        add_camera(cameras, number, model, (width, height), np.frombuffer(content, "<f8", count, at), label)
        at += 8 * count
    return cameras


def camera_model(name: str, label: str) -> str:
    """Refuse a camera model that is not supported, by its name."""
    if name not in _MODELS:
        raise DamagedFile(
            f"{label} has the camera model {name}; supported models are {', '.join(_MODELS)}", "undistort the images"
        )
    return name


def add_camera(
    cameras: dict[int, ColmapCamera],
    number: int,
    model: str,
    size: tuple[int, int],
    numbers: npt.NDArray[np.float64],
    label: str,
) -> None:
    """Check a camera's size (width, height) and parameters, and add it to those that were read before."""
    count, lens = _MODELS[model]
    width, height = size
    sides = 0 < width < 1 << 16 and 0 < height < 1 << 16
    if len(numbers) != count or not (
        sides and (np.abs(numbers) < _LARGE).all() and (numbers[list(lens[:2])] > _SMALL).all()
    ):
        raise DamagedFile(
            f"{label}: camera {number} has {width} × {height} pixels (width × height) and the parameters "
            f"{abbreviate(numbers.tolist())}; expected sides from 1 to 65,535 and {count} finite parameters, the focal "
            "lengths positive"
        )
    if number in cameras:
        raise DamagedFile(f"{label} lists the camera {number} twice; expected each number once", _FIX)
    distortion = np.zeros(8)
    distortion[: count - max(lens) - 1] = numbers[max(lens) + 1 :]
    cameras[number] = ColmapCamera(model, height, width, numbers[list(lens)] - [0, 0, 0.5, 0.5], distortion)


def read_images(read: Callable[[int, int], bytes], label: str) -> dict[str, ColmapImage]:
    """Read ``images.bin``: the images by name.

    ``read(offset, length)`` returns bytes of the file, fewer at its end. The observations of the images, which make up
    most of the file, are not read.
    """
    images: dict[str, ColmapImage] = {}
    names: dict[int, str] = {}
    at = _COUNT.size
    for _ in range(_count(read(0, _COUNT.size), label)):
        head = read(at, _IMAGE.size + _NAME)
        end = head.find(b"\0", _IMAGE.size)
        if end < 0 or end + 9 > len(head):
            head = read(at, _IMAGE.size + 2 * _NAME)
            end = head.find(b"\0", _IMAGE.size)
        if end < 0 or end + 9 > len(head):
            raise _cut_off(label)
        number, *numbers, camera = _IMAGE.unpack_from(head)
        (points,) = _COUNT.unpack_from(head, end + 1)
        name = head[_IMAGE.size : end].decode("utf-8", "backslashreplace")
        if points > _MOST_POINTS:
            raise DamagedFile(
                f"{label}: image {abbreviate(name)} specifies {points:,} points, more than the limit of "
                f"{_MOST_POINTS:,}; expected a binary COLMAP model"
            )
        at += end + 9
        image = ColmapImage(number, camera, read_pose(numbers, name, label), at, OBSERVATION * points)
        add_image(images, names, name, image, label)
        at += OBSERVATION * points
    if images and not read(at - 1, 1):
        raise _cut_off(label)
    return images


def add_image(images: dict[str, ColmapImage], names: dict[int, str], name: str, image: ColmapImage, label: str) -> None:
    """Add an image to those that were read before, `images` by name and `names` by number; refuse one of either."""
    if name in images:
        raise DamagedFile(f"{label} lists the image {abbreviate(name)} twice; expected each name once", _FIX)
    other = names.setdefault(image.number, name)
    if other != name:
        raise DamagedFile(
            f"{label} lists the images {abbreviate(other)} and {abbreviate(name)} with the number {image.number}; "
            "expected each number once",
            _FIX,
        )
    images[name] = image


def read_pose(values: Sequence[float], name: str, label: str) -> npt.NDArray[np.float64]:
    """Pose of an image, (4, 4), from its quaternion and translation, which are checked."""
    numbers = np.array(values, np.float64)
    known = (np.abs(numbers) < _FAR).all()
    length = float(np.linalg.norm(numbers[:4])) if known else np.nan
    if not abs(length - 1) < 0.01:
        raise DamagedFile(
            f"{label}: image {abbreviate(name)} has the pose {numbers.tolist()}; expected finite numbers that start "
            "with a unit quaternion",
            _FIX,
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
