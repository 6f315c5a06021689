"""Annotations of NAVI: a list of images for each scene of each object.

Convention
----------
As published [1]_, a point X of the object's scan, in millimetres, is at R X + t in the frame of the camera, with R by
the quaternion ``q`` (w, x, y, z), which need not be of length 1: x points right, y down and z forward. In the published
code this follows from the projection, whose y axis is not inverted, and from images that are read from OpenGL with the
lowest row first. The focal length is in pixels of the image as a viewer shows it (turned as its EXIF data say), and the
principal point is (⌊W/2⌋, ⌊H/2⌋) from the image's corner, so that it is half a pixel less in coordinates whose integers
are centres of pixels.

Here the world is the frame of the scan, in metres, and a pose maps the camera's frame to it.

References
----------
.. [1] ``data_util.py``, ``transformations.py`` and ``gl/`` of github.com/google/navi, of version 1.5 of the data.

"""

from typing import Any, NamedTuple

import numpy as np

from setsup.datasets.formats.json_text import read_json
from setsup.errors import DamagedFile
from setsup.files.archives.members import MemberIndex

__all__ = ["Annotated", "read_scene"]

_MOST = 1 << 28
_MILLIMETRE = 1e-3
_LARGEST = 1 << 15  # pixels a side


class Annotated(NamedTuple):
    """One image: names, and its camera in setsup's convention.

    `pose` (4, 4), camera to object, metres, and `intrinsics` (3, 3), pixels, are nested lists; `size` is (height,
    width), pixels.
    """

    file: str
    camera: str
    split: str
    occluded: bool
    pose: list[list[float]]
    intrinsics: list[list[float]]
    size: tuple[int, int]


def read_scene(release: MemberIndex, place: int) -> list[Annotated]:
    """Read the images of a scene, sorted by file name; DamagedFile if they do not match the published format."""
    label = release.label(place)
    entries = read_json(release.read(place, _MOST), label)
    if not isinstance(entries, list):
        raise DamagedFile(f"{label} is not a list of annotations of images")
    found = []
    for number, entry in enumerate(entries):
        try:
            found.append(_annotated(entry))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())[:100]
            raise DamagedFile(f"{label}: image {number} does not match the published format: {why}") from error
    names = [entry.file for entry in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DamagedFile(f"{label} lists the image {twice!r} more than once")
    return sorted(found, key=lambda entry: entry.file)


def _annotated(entry: dict[str, Any]) -> Annotated:
    height, width = (_whole(side) for side in entry["image_size"])
    camera = entry["camera"]
    focal = float(camera["focal_length"])
    if not 0 < focal < np.inf:
        raise ValueError(f"focal_length must be above 0, not {focal}")
    file = entry["filename"]
    if not isinstance(file, str) or not file or "/" in file:
        raise ValueError(f"filename must be the name of a file, not {file!r}")
    k = [[focal, 0.0, width // 2 - 0.5], [0.0, focal, height // 2 - 0.5], [0.0, 0.0, 1.0]]
    return Annotated(
        file,
        str(camera.get("camera_model") or ""),
        str(entry.get("split") or ""),
        bool(entry.get("occluded", False)),
        _pose(camera["q"], camera["t"]),
        k,
        (height, width),
    )


def _pose(q: Any, t: Any) -> list[list[float]]:
    """Pose (4, 4) of the camera in the object's frame, metres."""
    quaternion, shift = np.array(q, np.float64).reshape(4), np.array(t, np.float64).reshape(3) * _MILLIMETRE
    norm = float(np.linalg.norm(quaternion))
    if not (1e-6 < norm < np.inf and np.isfinite(shift).all()):
        raise ValueError(f"q must be a quaternion other than 0, and t three finite numbers, not {q} and {t}")
    w, x, y, z = quaternion / norm
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.T, -rotation.T @ shift
    listed: list[list[float]] = pose.tolist()
    return listed


def _whole(side: Any) -> int:
    if isinstance(side, bool) or int(side) != side or not 0 < side <= _LARGEST:
        raise ValueError(f"image_size must be two integers from 1 to {_LARGEST:,}, not {side}")
    return int(side)
