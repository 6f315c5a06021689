"""Open a dataset in the BOP format, by image or by object."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from setsup.arrays import Array, Places, Rows
from setsup.checks import check_arguments
from setsup.datasets.adapters.camera_frames import FrameMaps
from setsup.datasets.adapters.camera_paths import angle_factors, around_upright, pose_factors
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.fetching import sample_headers
from setsup.datasets.adapters.frame_maps import read_mask
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.adapters.nested_objects import NestedObjects
from setsup.datasets.dataset import Modality
from setsup.datasets.images import check_size, common_channels
from setsup.datasets.own.bop.annotations import read_annotations
from setsup.datasets.own.bop.dataset import BopFrames, ImageObjects, mask_names
from setsup.datasets.own.bop.depth import read_metres
from setsup.datasets.own.bop.finding import SPLITS, BopScene, dataset_folder, find_scenes
from setsup.datasets.own.bop.targets import target_factors
from setsup.errors import DamagedFile, DataError, advice
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import open_members
from setsup.files.archives.members import MemberIndex
from setsup.files.expand_user import expanded
from setsup.files.roots import some

__all__ = ["open_bop"]

_log = logging.getLogger("setsup")

_IMAGE_ENDINGS = ("png", "jpg", "tif", "jpeg", "tiff")
_DEPTH_ENDINGS = ("png", "tif", "tiff")
_MASKS = {"amodal_mask": "mask", "visible_mask": "mask_visib"}
"""Folders of masks by modality; a batch has a ``mask`` of its own."""
_LOOKED_AT = 16
_MOST_COUNTED = 100  # objects that have a factor of their own

Column = tuple[Factor, Array]


def open_bop(
    folder: Path | str, size: tuple[int, int] | None = None, by: Literal["image", "object"] = "image"
) -> BopFrames:
    """Open a dataset in the BOP format: T-LESS, LM-O, YCB-V, HOPE and others, or your own.

    The folder is a dataset, one of its splits, or one of its scenes.

    Factors: ``scene``, by its folder; ``sensor``, where files are named after several; the key ``frame``, the number of
    the image; ``split`` and ``split_type``, the two parts of a folder's name such as ``train_pbr``; and ``bop19`` and
    others, ``test`` where the image is in ``test_targets_bop19.json``. By image: ``objects``, the number of objects;
    ``obj_5``, the number of those with the number 5, for up to 100 numbers; and ``azimuth``, ``elevation`` and
    ``distance`` of the camera about the scene's centre, unknown where the pose is unknown, or cameras look away from it
    (:func:`setsup.datasets.adapters.camera_paths.around_upright`). By object: ``object``, its number; the key
    ``instance``, its position in the image; ``visib_fract``, the visible part; and ``azimuth``, ``elevation`` and
    ``distance`` of the camera about the origin of its model, whose z points up.

    Modalities: ``image``, with one or three channels; ``pose``, camera to world in metres, NaN where the dataset does
    not have it; ``intrinsics``; and ``depth``, in metres along the optical axis, 0 where unknown. By image, nested and
    padded to the largest number of objects: ``object_ids``, −1 after the last; ``object_poses``, from model to camera,
    and ``visib_fract``, NaN after the last; and, with masks, ``instances``: position of the object that a pixel shows,
    −1 for none. By object: ``object_pose``; ``amodal_mask``, its whole silhouette, and ``visible_mask``, 255 inside.
    Camera coordinates are x right, y down, z forward, and centres of pixels are integers: docs/cameras.md.

    Parameters
    ----------
    folder : Path or str
        The folder, or a zip or tar of it.
    size : (height, width), optional
        Resize every image until it just covers this size, and crop the centre; intrinsics and maps follow.
    by : "image" or "object"
        What a row is: an image, or an object with a known pose in an image.

    Returns
    -------
    BopFrames

    Raises
    ------
    DataError
        When there are no scenes, no images or no objects, or several datasets; when a list is damaged, a matrix is not
        a rotation, or a camera is no pinhole.

    """
    check_arguments(open_bop, locals(), DataError)
    path = expanded(folder)
    size = check_size(size)
    files = open_members(path)
    scenes = find_scenes(files, path)
    if not scenes:
        raise DataError(
            f"{folder} has no scenes; expected folders such as test/000001 with scene_camera.json; pass the folder of "
            "a dataset in the BOP format"
        )
    found = _find(files, scenes)
    name = path.resolve().name or "bop"
    within = files.under(dataset_folder(scenes[0].folder))
    if by == "object":
        return _open_objects(name, files, within, found, size)
    return _open_images(name, files, within, found, size)


@dataclass(frozen=True, slots=True, eq=False)
class _KnownImages:
    """Images that are there, with their objects; ``objects["image"]`` is a position among these images."""

    scenes: tuple[BopScene, ...]
    images: Array
    places: Places
    depths: Places
    colored: bool
    objects: Array


def _find(files: MemberIndex, scenes: Sequence[BopScene]) -> _KnownImages:
    images, objects = read_annotations(files, scenes)
    places, depths = np.full(len(images), -1), np.full(len(images), -1)
    bounds = np.searchsorted(images["scene"], np.arange(len(scenes) + 1))
    lost, unlisted, colored = list[str](), list[str](), False
    for scene, start, stop in zip(scenes, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        numbers = images["number"][start:stop].tolist()
        for kind in ("rgb", "gray"):
            own = _places(files, scene.folder_of(kind), numbers, _IMAGE_ENDINGS)
            colored |= kind == "rgb" and bool((own >= 0).any())
            if len(files.under(scene.folder_of(kind))) > (own >= 0).sum():
                unlisted.append(scene.folder_of(kind))
            places[start:stop] = np.where(places[start:stop] < 0, own, places[start:stop])
        depths[start:stop] = _places(files, scene.folder_of("depth"), numbers, _DEPTH_ENDINGS)
        missing = np.flatnonzero(places[start:stop] < 0)
        lost += [f"{scene.folder_of('rgb')}/{numbers[at]:06d}.png" for at in missing.tolist()]
    warn_left_out(files.source, "images", lost, len(images))
    if unlisted:
        _log.warning(
            "%s has images that scene_camera.json does not list (%s); they are left out", files.source, some(unlisted)
        )
    kept = np.flatnonzero(places >= 0)
    position = np.full(len(images), -1)
    position[kept] = np.arange(len(kept))
    objects = objects[position[objects["image"]] >= 0]
    objects["image"] = position[objects["image"]]
    found = _KnownImages(tuple(scenes), images[kept], places[kept], depths[kept], colored, objects)
    unscaled = np.flatnonzero((found.depths >= 0) & np.isnan(found.images["depth_scale"]))
    if len(unscaled):
        image = found.images[unscaled[0]]
        raise DamagedFile(
            f"{files.label(files.place(scenes[image['scene']].file('scene_camera')))}: image {image['number']} has "
            "depth, but no depth_scale; expected the millimetres of one step",
            "add it, or remove the depth",
        )
    return found


def _places(files: MemberIndex, folder: str, numbers: list[int], endings: Sequence[str]) -> Places:
    """Places of numbered files, −1 for none."""
    found = np.full(len(numbers), -1)
    if len(files.under(folder)):
        for ending in endings:
            missing = np.flatnonzero(found < 0)
            if len(missing):
                found[missing] = files.places([f"{folder}/{numbers[at]:06d}.{ending}" for at in missing.tolist()])
    return found


def _open_images(
    name: str, files: MemberIndex, within: MemberIndex, found: _KnownImages, size: tuple[int, int] | None
) -> BopFrames:
    images, objects = found.images, found.objects
    rows = np.arange(len(images))
    counts = images["objects"].astype(np.int64)
    numbers = np.unique(objects["id"]).tolist()
    nested = NestedObjects(table_of([nominal("object", objects["id"].tolist(), levels=numbers or None)]), counts)
    columns = _frame_factors(found, rows)
    if (counts >= 0).any():
        columns.append(nested.count_factor())
        if 0 < len(numbers) <= _MOST_COUNTED:
            columns += nested.level_counts(["object"], prefix="obj_")
    columns += pose_factors(images["pose"], images["scene"], around_upright, "m")
    columns += _split_factors(within, found, rows)
    values = {"object_ids": objects["id"], "object_poses": objects["pose"], "visib_fract": objects["visib_fract"]}
    about = np.stack([images["scene"], images["number"]], axis=1).astype(np.int64)
    known = ImageObjects(nested, values, found.scenes, about) if (counts >= 0).any() else None
    return _frames(name, files, within, found, rows, table_of(columns), size, {}, {}, known)


def _open_objects(
    name: str, files: MemberIndex, within: MemberIndex, found: _KnownImages, size: tuple[int, int] | None
) -> BopFrames:
    objects = found.objects
    if not len(objects):
        by = advice("by='image'", "--option by=image")
        raise DataError(f"{files.source} has no objects with known poses, in scene_gt.json; open its images with {by}")
    rows = objects["image"]
    most = int(objects["instance"].max()) + 1
    columns = _frame_factors(found, rows)
    columns += [
        (
            Factor("instance", Kind.ORDINAL, tuple(range(most)), within="frame", role="key"),
            objects["instance"].astype(np.int64),
        ),
        nominal("object", objects["id"].tolist()),
        (Factor("visib_fract", Kind.CONTINUOUS), objects["visib_fract"]),
        *_around_objects(objects["pose"].astype(np.float64)),
        *_split_factors(within, found, rows),
    ]
    maps = {}
    for modality, kind in _MASKS.items():
        places = _mask_places(files, found, kind)
        if (places >= 0).any():
            maps[modality] = FrameMaps(files, places, "uint8", read_mask)
    more = {"object_pose": (Modality((4, 4), "float32", unit="m"), objects["pose"])}
    return _frames(name, files, within, found, rows, table_of(columns), size, maps, more, None)


def _frames(
    name: str,
    files: MemberIndex,
    within: MemberIndex,
    found: _KnownImages,
    rows: Rows,
    factors: FactorTable,
    size: tuple[int, int] | None,
    maps: dict[str, FrameMaps],
    more: dict[str, tuple[Modality, Array]],
    objects: ImageObjects | None,
) -> BopFrames:
    """Make the dataset of images `rows`, which may repeat."""
    # cameras are those of the pixels as they are stored
    images = MemberImages(files, found.places[rows], upright=False)
    depths = found.depths[rows]
    if (depths >= 0).any():
        read = partial(read_metres, found.images["depth_scale"][rows])
        maps = {"depth": FrameMaps(files, depths, "float32", read, "m"), **maps}
    poses, intrinsics = found.images["pose"][rows], found.images["k"][rows]
    channels = 3 if found.colored else common_channels(sample_headers(images, _LOOKED_AT))
    return BopFrames(name, factors, images, poses, intrinsics, files, within, size, maps, more, objects, channels)


def _frame_factors(found: _KnownImages, rows: Rows) -> list[Column]:
    """Factors ``scene``, ``sensor`` and ``frame``."""
    scenes, images = found.scenes, found.images[rows]
    names = list(dict.fromkeys(scene.name for scene in scenes))
    codes = np.array([names.index(scene.name) for scene in scenes])
    columns: list[Column] = [(Factor("scene", Kind.NOMINAL, tuple(names)), codes[images["scene"]])]
    if any(scene.sensor for scene in scenes):
        columns.append(_of_scenes("sensor", [scene.sensor for scene in scenes], images["scene"]))
    numbers, frame = np.unique(images["number"], return_inverse=True)
    columns.append((Factor("frame", Kind.ORDINAL, tuple(numbers.tolist()), within="scene", role="key"), frame))
    return columns


def _split_factors(within: MemberIndex, found: _KnownImages, rows: Rows) -> list[Column]:
    """Factors ``split`` and ``split_type``, where folders have them, and those of lists of targets."""
    scenes, images = found.scenes, found.images[rows]
    columns: list[Column] = []
    splits = [scene.split for scene in scenes]
    if any(splits):
        present = [split for split in SPLITS if split in splits]
        columns.append(_of_scenes("split", splits, images["scene"], "split", present))
    if any(scene.split_type for scene in scenes):
        columns.append(_of_scenes("split_type", [scene.split_type for scene in scenes], images["scene"]))
    return columns + target_factors(within, scenes, images["scene"], images["number"])


def _of_scenes(
    name: str, values: Sequence[str], scene: Rows, role: str = "variation", levels: Sequence[str] | None = None
) -> Column:
    """A factor of which each scene has one level."""
    factor, codes = nominal(name, values, role=role, levels=levels)
    return factor, codes[scene]


def _around_objects(poses: Array) -> list[Column]:
    """Angles and distance of the camera about the origin of each model, (n, 4, 4) from model to camera."""
    away = -np.einsum("nji,nj->ni", poses[:, :3, :3], poses[:, :3, 3])
    distance = np.linalg.norm(away, axis=1)
    azimuth = np.rad2deg(np.arctan2(away[:, 1], away[:, 0])).astype(np.float32) % 360
    elevation = np.rad2deg(np.arctan2(away[:, 2], np.hypot(away[:, 0], away[:, 1])))
    return angle_factors(np.stack([azimuth, elevation.astype(np.float32), distance.astype(np.float32)]), "m")


def _mask_places(files: MemberIndex, found: _KnownImages, kind: str) -> Places:
    """Places of the masks of all objects, −1 for none."""
    objects = found.objects
    scene, numbers = (found.images[name][objects["image"]] for name in ("scene", "number"))
    places = np.full(len(objects), -1)
    for code in np.unique(scene).tolist():
        own = np.flatnonzero(scene == code)
        if len(files.under(found.scenes[code].folder_of(kind))):
            names = mask_names(found.scenes[code], kind, numbers[own].tolist(), objects["instance"][own].tolist())
            places[own] = files.places(names)
    return places
