"""``transforms.json``: the cameras of captures as NeRF, instant-ngp and nerfstudio write them.

Convention
----------
In the files, ``transform_matrix`` maps camera coordinates (x right, y up, z backward, as OpenGL has them) to the world,
and the centre of the first pixel is at (½, ½). Here a pose maps from x right, y down, z forward, and pixels have their
centres at integers. ``applied_transform``, by which nerfstudio turned the world of COLMAP, is undone; the unit of
lengths is that of the file.

References
----------
.. [1] B. Mildenhall, P. P. Srinivasan, M. Tancik, J. T. Barron, R. Ramamoorthi, R. Ng, "NeRF: Representing Scenes as
   Neural Radiance Fields for View Synthesis", ECCV 2020.
.. [2] T. Müller, A. Evans, C. Schied, A. Keller, "Instant Neural Graphics Primitives with a Multiresolution Hash
   Encoding", ACM Transactions on Graphics 41 (2022).
.. [3] M. Tancik et al., "Nerfstudio: A Modular Framework for Neural Radiance Field Development", SIGGRAPH 2023.

"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Reals
from setsup.datasets.adapters.camera_matrices import nearest_rotations
from setsup.datasets.formats.json_text import is_finite, read_json
from setsup.datasets.own.captures.finding import SPLITS
from setsup.errors import DamagedFile, abbreviate

__all__ = ["Frame", "read_transforms"]

_FIX = "correct the file"
_MODELS = ("OPENCV", "PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL")
_OTHER_LENSES = {  # of instant-ngp
    "is_fisheye": "fisheye",
    "latlong": "equirectangular",
    "equirectangular": "equirectangular",
    "orthographic": "orthographic",
    "ftheta_p0": "f-theta",
}
_DISTORTION = ("k1", "k2", "p1", "p2", "k3")
_LISTED = ("k1", "k2", "k3", "k4", "p1", "p2")  # of nerfstudio's distortion_params
_FAR = 1e30  # which still fits into float32
_LARGE, _SMALL = 1e9, 1e-6
_DEPTH = ("depth_file_path", "depth_path")  # of nerfstudio, and of instant-ngp


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A frame: its files as they are listed, its pose (4, 4), and its camera.

    `lens` is ``fx, fy, cx, cy``, `size` (height, width), `distortion` (8,) as OpenCV orders it; `depth_scale` is the
    unit of its depth, None where the file says none.
    """

    path: str
    depth: str | None
    mask: str | None
    pose: Reals
    lens: Reals
    size: tuple[int, int]
    distortion: Reals
    split: str | None
    depth_scale: float | None


def read_transforms(content: bytes, label: str, size_of: Callable[[str], tuple[int, int]]) -> list[Frame]:
    """Read a file of cameras.

    ``size_of(path)`` gives the height and width of an image; it is called where the file does not say them.
    """
    meta = read_json(content, label)
    frames = meta.get("frames") if isinstance(meta, dict) else None
    if not isinstance(frames, list) or not frames:
        raise DamagedFile(f"{label} has no frames; expected a list 'frames' of cameras, as NeRF has it", _FIX)
    undo = _applied(meta, label)
    splits = _splits(meta, label)
    found: list[Frame] = []
    first: dict[str, int] = {}
    known: tuple[int, int] | None = None  # of the file's images, where it does not say it
    for number, frame in enumerate(frames):
        at = f"{label}: frame {number}"
        if not isinstance(frame, dict):
            raise DamagedFile(f"{at} is {abbreviate(frame)}; expected an object with file_path", _FIX)
        path = _text(frame, "file_path", at)
        if path is None:
            raise DamagedFile(f"{at} has no file_path; expected the path of its image", _FIX)
        if first.setdefault(path, number) != number:
            raise DamagedFile(f"{label}: frames {first[path]} and {number} both have the image {path!r}", _FIX)
        both = _with_distortion({**meta, **frame}, at)
        _check_lens(both, at)
        size = _size(both, at)
        if size is None:
            size = known = known or size_of(path)
        lens, distortion = _lens(both, size, at)
        scale = _number(both, "integer_depth_scale", at)
        depth = next(filter(None, (_text(frame, key, at) for key in _DEPTH)), None)
        mask, pose = _text(frame, "mask_path", at), undo @ _pose(frame.get("transform_matrix"), at)
        found.append(Frame(path, depth, mask, pose, lens, size, distortion, splits.get(path), scale))
    return found


def _pose(matrix: Any, label: str) -> Reals:
    """A pose of the file, with the axes of a camera as they are here."""
    pose = _matrix(matrix, f"{label}: transform_matrix")
    pose[:3, 1:3] *= -1
    return pose


def _matrix(matrix: Any, label: str) -> Reals:
    """A rotation and a translation, (4, 4) of (3, 4) or (4, 4); the nearest rotation to one that was rounded."""
    wide = isinstance(matrix, list) and len(matrix) in (3, 4)
    if not (wide and all(isinstance(row, list) and len(row) == 4 and all(map(is_finite, row)) for row in matrix)):
        raise DamagedFile(f"{label} is {abbreviate(matrix)}; expected 4 rows of 4 finite numbers", _FIX)
    values = np.eye(4)
    values[: len(matrix)] = matrix
    [turn], [sound] = nearest_rotations(values[None, :3, :3])
    last, far = values[3].tolist() == [0, 0, 0, 1], np.abs(values).max() > _FAR
    if far or not (sound and last):
        raise DamagedFile(f"{label} is {abbreviate(matrix)}; expected a rotation and a translation", _FIX)
    values[:3, :3] = turn
    return values


def _applied(meta: Mapping[str, Any], label: str) -> Reals:
    """What takes the file's world to the one before ``applied_transform``."""
    if meta.get("applied_transform") is None:
        return np.eye(4)
    applied = _matrix(meta["applied_transform"], f"{label}: applied_transform")
    scale = _number(meta, "applied_scale", label)
    applied[:3, 3] *= 1 if scale is None else scale
    return np.asarray(np.linalg.inv(applied))


def _splits(meta: Mapping[str, Any], label: str) -> dict[str, str]:
    """Split of each path that nerfstudio's lists name."""
    splits: dict[str, str] = {}
    for split in SPLITS:
        names = meta.get(f"{split}_filenames", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DamagedFile(f"{label}: {split}_filenames is {abbreviate(names)}; expected a list of paths", _FIX)
        for name in names:
            if splits.setdefault(name, split) != split:
                raise DamagedFile(
                    f"{label}: {abbreviate(name)} is in {splits[name]}_filenames and {split}_filenames", _FIX
                )
    return splits


def _with_distortion(both: dict[str, Any], label: str) -> dict[str, Any]:
    """Add the numbers of ``distortion_params``, which count more than those with names."""
    listed = both.get("distortion_params")
    if listed is None:
        return both
    if not (isinstance(listed, list) and len(listed) == len(_LISTED) and all(map(is_finite, listed))):
        raise DamagedFile(
            f"{label} has distortion_params = {abbreviate(listed)}; expected {len(_LISTED)} finite numbers, "
            f"{', '.join(_LISTED)}",
            _FIX,
        )
    return {**both, **dict(zip(_LISTED, listed, strict=True))}


def _check_lens(both: Mapping[str, Any], label: str) -> None:
    """Refuse cameras that are no pinhole with OpenCV's distortion, by name."""
    model = both.get("camera_model", "OPENCV")
    other = next((name for key, name in _OTHER_LENSES.items() if both.get(key)), None)
    if other is None and model not in _MODELS:
        other = model if isinstance(model, str) else abbreviate(model)
    if other is None and _number(both, "k4", label):
        other = f"radial, with k4 = {both['k4']}"
    if other is not None:
        raise DamagedFile(
            f"{label} has the camera model {other}; supported models are {', '.join(_MODELS)} with k1, k2, k3, p1 and "
            "p2",
            "undistort the images",
        )


def _size(both: Mapping[str, Any], label: str) -> tuple[int, int] | None:
    sides = [_number(both, key, label) for key in ("h", "w")]
    height, width = sides
    if height is None or width is None:
        return None
    if not all(side == int(side) and 0 < side < 1 << 16 for side in (height, width)):
        raise DamagedFile(f"{label} has h = {height:g} and w = {width:g}; expected integers from 1 to 65,535", _FIX)
    return int(height), int(width)


def _lens(both: Mapping[str, Any], size: tuple[int, int], label: str) -> tuple[Reals, Reals]:
    """Focal lengths and principal point, with centres of pixels at integers, and the distortion."""
    height, width = size
    fx, fy = _focal(both, "x", width, label), _focal(both, "y", height, label)
    if fx is None and fy is None:
        raise DamagedFile(f"{label} has neither fl_x nor camera_angle_x; expected one of them", _FIX)
    cx, cy = (_number(both, key, label) for key in ("cx", "cy"))
    centre = width / 2 if cx is None else cx, height / 2 if cy is None else cy
    lens = np.array([fx or fy, fy or fx, centre[0] - 0.5, centre[1] - 0.5], np.float64)
    distortion = np.zeros(8)
    distortion[: len(_DISTORTION)] = [_number(both, key, label) or 0 for key in _DISTORTION]
    if max(np.abs(lens).max(), np.abs(distortion).max()) > _LARGE or lens[:2].min() < _SMALL:
        raise DamagedFile(
            f"{label} has a focal length, centre or distortion above {_LARGE:g}, or a focal length below {_SMALL:g}",
            _FIX,
        )
    return lens, distortion


def _focal(both: Mapping[str, Any], axis: str, side: int, label: str) -> float | None:
    degrees, focal, angle = (_number(both, key, label) for key in (f"{axis}_fov", f"fl_{axis}", f"camera_angle_{axis}"))
    if degrees is not None:  # of instant-ngp, where it counts most
        if not 0 < degrees < 180:
            raise DamagedFile(f"{label} has {axis}_fov = {degrees:g}; expected degrees between 0 and 180", _FIX)
        focal = side / (2 * math.tan(math.radians(degrees) / 2))
    elif focal is None and angle is not None:
        if not 0 < angle < math.pi:
            raise DamagedFile(f"{label} has camera_angle_{axis} = {angle:g}; expected radians between 0 and π", _FIX)
        focal = side / (2 * math.tan(angle / 2))
    if focal is not None and not focal > 0:
        raise DamagedFile(f"{label} has fl_{axis} = {focal:g}; expected a positive number of pixels", _FIX)
    return focal


def _number(both: Mapping[str, Any], key: str, label: str) -> float | None:
    value = both.get(key)
    if value is None:
        return None
    if not is_finite(value):
        raise DamagedFile(f"{label} has {key} = {abbreviate(value)}; expected a finite number", _FIX)
    return float(value)


def _text(frame: Mapping[str, Any], key: str, label: str) -> str | None:
    value = frame.get(key)
    if value is not None and not isinstance(value, str):
        raise DamagedFile(f"{label} has {key} = {abbreviate(value)}; expected a path", _FIX)
    return value or None
