"""Lists of BOP scenes: cameras of the images, and the objects in them.

Convention
----------
In the files, lengths are millimetres, ``cam_R_w2c`` and ``cam_t_w2c`` map world to camera coordinates (x right, y down,
z forward), ``cam_R_m2c`` and ``cam_t_m2c`` map the coordinates of an object's model to those of the camera, and centres
of pixels are integers. Here lengths are metres, and the pose of a camera maps camera to world coordinates.

References
----------
.. [1] T. Hodaň et al., "BOP: Benchmark for 6D Object Pose Estimation", ECCV 2018;
   github.com/thodan/bop_toolkit, docs/bop_datasets_format.md.

"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np

from setsup.arrays import Array, Reals
from setsup.datasets.adapters.camera_matrices import nearest_rotations
from setsup.datasets.cached_arrays import cached_npy, file_states
from setsup.datasets.formats.json_text import is_finite, read_json
from setsup.datasets.own.bop.finding import BopScene
from setsup.errors import DamagedFile, abbreviate
from setsup.files import cache_folder
from setsup.files.archives.members import MemberIndex

__all__ = ["FIX", "IMAGES", "OBJECTS", "read_annotations", "read_numbered", "read_numbers", "read_rigid"]

IMAGES = np.dtype(
    [
        ("scene", np.int32),
        ("number", np.int64),
        ("k", np.float32, (3, 3)),
        ("pose", np.float32, (4, 4)),
        ("depth_scale", np.float64),
        ("objects", np.int32),
    ]
)
"""An image: position of its scene, its number, K, camera to world (m, NaN where unknown), millimetres of a step of its
depth (NaN where unknown), and the number of its objects, −1 where they are unknown."""

OBJECTS = np.dtype(
    [
        ("image", np.int64),
        ("instance", np.int32),
        ("id", np.int32),
        ("pose", np.float32, (4, 4)),
        ("visib_fract", np.float32),
    ]
)
"""An object: position of its image, its own in the list of that, its model's number, model to camera (m), and its
visible part, NaN where unknown."""

FIX = "correct the file"

_MOST = 1 << 31  # bytes of a list
_CACHED_FROM = 1 << 24  # bytes of all lists, which take a second to read
_MOST_DIGITS = 9
_FAR = 1e12  # for a translation, mm
_LARGE, _SMALL = 1e9, 1e-6  # for K
_VERSION = 1


def read_annotations(files: MemberIndex, scenes: Sequence[BopScene]) -> tuple[Array, Array]:
    """Read the images and objects of all scenes, (n,) :data:`IMAGES` and (m,) :data:`OBJECTS`, in order of both.

    Long lists are read once, then from the cache.
    """
    names = [scene.file(kind) for scene in scenes for kind in ("scene_camera", "scene_gt", "scene_gt_info")]
    places = [place for place in files.places(names).tolist() if place >= 0]
    read = cache(lambda: _read_all(files, scenes))
    if files.sizes[places].sum() < _CACHED_FROM:
        return read()
    made_of = repr((_VERSION, scenes, file_states(files, places))).encode("utf-8", "surrogateescape")
    folder = cache_folder() / "indexes" / "bop" / sha256(made_of).hexdigest()[:32]

    def saved(part: int, dtype: np.dtype[Any]) -> Array:
        file = folder / f"{('images', 'objects')[part]}.npy"
        return cached_npy(file, lambda array: array.dtype == dtype and array.ndim == 1, lambda: read()[part])

    return saved(0, IMAGES), saved(1, OBJECTS)


def _read_all(files: MemberIndex, scenes: Sequence[BopScene]) -> tuple[Array, Array]:
    images, objects, start = [], [], 0
    for number, scene in enumerate(scenes):
        own_images, own_objects = _read_scene(files, scene)
        own_images["scene"], own_objects["image"] = number, own_objects["image"] + start
        images.append(own_images)
        objects.append(own_objects)
        start += len(own_images)
    return np.concatenate(images), np.concatenate(objects)


def _read_scene(files: MemberIndex, scene: BopScene) -> tuple[Array, Array]:
    """Images and objects of a scene."""
    place = files.place(scene.file("scene_camera"))
    label = files.label(place)
    cameras = read_numbered(files.read(place, _MOST), label)
    numbers = sorted(cameras)
    if not numbers:
        raise DamagedFile(f"{label} lists no images; expected an object with a camera for each", FIX)
    images = np.zeros(len(numbers), IMAGES)
    images["number"], images["objects"] = numbers, -1
    turns, shifts, posed = list[list[float]](), list[list[float]](), list[int]()
    for row, number in enumerate(numbers):
        camera, at = cameras[number], f"{label}: image {number}"
        if not isinstance(camera, dict):
            raise DamagedFile(f"{at} is {abbreviate(camera)}; expected an object with cam_K", FIX)
        images["k"][row] = _intrinsics(camera, at)
        images["depth_scale"][row] = _depth_scale(camera, at)
        turn, shift = read_numbers(camera, "cam_R_w2c", 9, at), read_numbers(camera, "cam_t_w2c", 3, at)
        if (turn is None) != (shift is None):
            raise DamagedFile(f"{at} has only one of cam_R_w2c and cam_t_w2c; expected both, or neither", FIX)
        if turn is not None and shift is not None:
            turns.append(turn)
            shifts.append(shift)
            posed.append(row)
    images["pose"] = np.nan
    images["pose"][posed] = np.linalg.inv(
        read_rigid(turns, shifts, lambda at: f"{label}: the camera of image {numbers[posed[at]]}")
    )
    return images, _read_objects(files, scene, images, label)


def _read_objects(files: MemberIndex, scene: BopScene, images: Array, cameras: str) -> Array:
    """Objects of a scene; writes their counts into the images."""
    truth, about = (files.places([scene.file(kind)]).tolist()[0] for kind in ("scene_gt", "scene_gt_info"))
    if truth < 0:
        return np.zeros(0, OBJECTS)
    label = files.label(truth)
    listed = read_numbered(files.read(truth, _MOST), label)
    infos: Mapping[int, Any] = {} if about < 0 else read_numbered(files.read(about, _MOST), files.label(about))
    row_of = {number: row for row, number in enumerate(images["number"].tolist())}
    rows = list[tuple[int, int, int, float]]()
    turns, shifts = list[list[float]](), list[list[float]]()
    for number, entries in sorted(listed.items()):
        if number not in row_of:
            raise DamagedFile(f"{label} has objects of image {number}, which is not in {cameras}", FIX)
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise DamagedFile(f"{label}: image {number} is {abbreviate(entries)}; expected a list of objects", FIX)
        images["objects"][row_of[number]] = len(entries)
        visible = _visible(infos.get(number), len(entries), lambda: f"{files.label(about)}: image {number}")  # noqa: B023
        for instance, entry in enumerate(entries):
            at = f"{label}: object {instance} of image {number}"
            rows.append((row_of[number], instance, _object_id(entry, at), visible[instance]))
            turns.append(_needed(entry, "cam_R_m2c", 9, at))
            shifts.append(_needed(entry, "cam_t_m2c", 3, at))
    objects = np.zeros(len(rows), OBJECTS)
    for name, column in zip(("image", "instance", "id", "visib_fract"), zip(*rows, strict=True), strict=False):
        objects[name] = column

    def named(at: int) -> str:
        image = int(images["number"][objects["image"][at]])
        return f"{label}: object {int(objects['instance'][at])} of image {image}"

    objects["pose"] = read_rigid(turns, shifts, named)
    return objects


def read_rigid(
    turns: Sequence[Sequence[float]], shifts: Sequence[Sequence[float]], named: Callable[[int], str]
) -> Reals:
    """Rotations (n, 9) and translations (n, 3), mm, as (n, 4, 4), m; ``named(i)`` says whose they are.

    Rotations are the nearest ones to those of the file, which are rounded.
    """
    matrices = np.array(turns, np.float64).reshape(-1, 3, 3)
    moved = np.array(shifts, np.float64).reshape(-1, 3)
    rotations, sound = nearest_rotations(matrices)
    sound &= (np.abs(moved) < _FAR).all(axis=1)
    if not sound.all():
        wrong = int(np.argmin(sound))
        raise DamagedFile(
            f"{named(wrong)} has the rotation {abbreviate(list(turns[wrong]))} and the translation "
            f"{abbreviate(list(shifts[wrong]))}; expected a rotation matrix, row by row, and millimetres",
            FIX,
        )
    poses = np.tile(np.eye(4), (len(matrices), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = rotations, moved / 1000
    return poses


def read_numbered(content: bytes, label: str) -> dict[int, Any]:
    """Read a JSON object whose keys are numbers, each once."""
    found = read_json(content, label, unique=True)
    if not isinstance(found, dict):
        raise DamagedFile(f"{label} contains {abbreviate(found)}; expected an object with a key for each number", FIX)
    numbered: dict[int, Any] = {}
    for key, value in found.items():
        if not (key.isascii() and key.isdecimal() and len(key) <= _MOST_DIGITS):
            raise DamagedFile(f"{label} has the key {abbreviate(key)}; expected a number", FIX)
        if int(key) in numbered:
            raise DamagedFile(f"{label} has the number {int(key)} twice; expected each once", FIX)
        numbered[int(key)] = value
    return numbered


def read_numbers(entry: Mapping[str, Any], key: str, count: int, label: str) -> list[float] | None:
    """A list of a given number of numbers, None where there is none."""
    value = entry.get(key)
    if value is None:
        return None
    if not (isinstance(value, list) and len(value) == count and all(map(is_finite, value))):
        raise DamagedFile(f"{label} has {key} = {abbreviate(value)}; expected {count} finite numbers", FIX)
    return value


def _needed(entry: Mapping[str, Any], key: str, count: int, label: str) -> list[float]:
    value = read_numbers(entry, key, count, label)
    if value is None:
        raise DamagedFile(f"{label} has no {key}; expected {count} numbers", FIX)
    return value


def _intrinsics(camera: Mapping[str, Any], label: str) -> Reals:
    if "cam_model" in camera:
        model = camera["cam_model"]
        kind = model.get("projection_model_type") if isinstance(model, dict) else model
        raise DamagedFile(
            f"{label} has the camera model {abbreviate(kind)}; supported are pinholes, with cam_K",
            "undistort the images",
        )
    k = np.array(_needed(camera, "cam_K", 9, label), np.float64).reshape(3, 3)
    plain = k[1, 0] == 0 and k[2].tolist() == [0, 0, 1]
    if not (plain and np.abs(k).max() < _LARGE and k[0, 0] > _SMALL and k[1, 1] > _SMALL):
        raise DamagedFile(
            f"{label} has cam_K = {abbreviate(camera['cam_K'])}; expected fx s cx 0 fy cy 0 0 1, with positive focal "
            "lengths",
            FIX,
        )
    return k


def _depth_scale(camera: Mapping[str, Any], label: str) -> float:
    scale = camera.get("depth_scale")
    if scale is None:
        return np.nan
    if not is_finite(scale) or not 0 < scale < _LARGE:
        raise DamagedFile(f"{label} has depth_scale = {abbreviate(scale)}; expected a positive number", FIX)
    return float(scale)


def _object_id(entry: Mapping[str, Any], label: str) -> int:
    number = entry.get("obj_id")
    if type(number) is not int or not 0 <= number < 10**_MOST_DIGITS:
        raise DamagedFile(f"{label} has obj_id = {abbreviate(number)}; expected the number of a model", FIX)
    return number


def _visible(infos: Any, count: int, named: Callable[[], str]) -> list[float]:
    """Visible parts of the objects of an image, NaN where they are unknown."""
    if infos is None:
        return [np.nan] * count
    if not isinstance(infos, list) or len(infos) != count or not all(isinstance(info, dict) for info in infos):
        held = f"{len(infos)} entries" if isinstance(infos, list) else abbreviate(infos)
        raise DamagedFile(f"{named()} has {held}; expected one for each of the {count} objects in scene_gt", FIX)
    shares = [info.get("visib_fract") for info in infos]
    for share in shares:
        if share is not None and not (is_finite(share) and 0 <= share <= 1):
            raise DamagedFile(f"{named()} has visib_fract = {abbreviate(share)}; expected a number from 0 to 1", FIX)
    return [np.nan if share is None else float(share) for share in shares]
