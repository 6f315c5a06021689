"""Open a user's own captures: images with cameras by COLMAP, or in ``transforms.json``."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from setsup.arrays import Places
from setsup.checks import check_arguments, check_number
from setsup.datasets.adapters.camera_frames import FrameMaps
from setsup.datasets.adapters.camera_matrices import lens_matrices
from setsup.datasets.adapters.frame_maps import read_mask
from setsup.datasets.adapters.image_sources import MemberImages, as_stored
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.images import check_size, header
from setsup.datasets.own.captures.colmap import open_models
from setsup.datasets.own.captures.depth import read_depth
from setsup.datasets.own.captures.finding import CAMERA_FILES, find_incomplete, find_models, find_transforms, join
from setsup.datasets.own.captures.frames import CaptureFrames, capture_table
from setsup.datasets.own.captures.transforms import Frame, read_transforms
from setsup.errors import DamagedFile, DataError, advice, short
from setsup.files import open_members
from setsup.files.archives.members import MemberIndex
from setsup.files.expand_user import expanded
from setsup.files.roots import some

__all__ = ["open_capture"]

_log = logging.getLogger("setsup")
_MOST = 1 << 28  # bytes of a JSON
_SUFFIXES = (".png", ".jpg", ".jpeg", ".PNG", ".JPG", ".JPEG")  # of paths that NeRF lists without one
_MAPS = ("depth", "mask")
_MILLIMETRES = 0.001


def open_capture(
    folder: Path | str,
    size: tuple[int, int] | None = None,
    cameras: Literal["colmap", "transforms"] | None = None,
    images: str | None = None,
    undistort: bool = True,
    depth_scale: float = _MILLIMETRES,
) -> CaptureFrames:
    """Open captures: images with cameras by COLMAP, or in ``transforms.json``.

    The folder is a capture, or contains captures. COLMAP models, binary or text, are in ``sparse/0``, ``sparse/1``, …,
    in ``sparse``, or in the folder itself; newer files ``rigs`` and ``frames`` repeat the poses of images and are not
    read. Other cameras are in NeRF's ``transforms_train.json``, ``transforms_val.json`` and ``transforms_test.json``,
    or in ``transforms.json`` of instant-ngp or nerfstudio.

    Factors: ``scene``, the capture or the model; the key ``frame``, its position within the scene by name, or in the
    order of the file; ``azimuth``, ``elevation`` and ``distance`` of the camera about the scene's centre, unknown where
    cameras look away from it (:func:`setsup.datasets.adapters.camera_paths.around_upright`); and ``split``, where there
    are files or lists of splits.

    Modalities: ``image``, with one, three or four channels as the files have; ``pose``, camera to world;
    ``intrinsics``; and, where frames have some, ``object_mask``, 255 where it is not black, and ``depth`` along the
    optical axis, 0 where unknown. Camera coordinates are x right, y down, z forward, and centres of pixels are
    integers: docs/datasets/captures.md.

    Parameters
    ----------
    folder : Path or str
        The folder, or a zip or tar of it.
    size : (height, width), optional
        Resize every image until it just covers this size, and crop the centre; cameras and maps follow.
    cameras : "colmap" or "transforms", optional
        Which cameras are read, where there are both.
    images : str, optional
        Folder of the images of COLMAP models, relative to the capture, such as ``"images_4"``; by default ``images``
        and others. Where images are smaller than the cameras say, by one ratio, intrinsics follow.
    undistort : bool
        Undistort images, maps and observations, with the same intrinsics; pixels without a source are 0. Else images
        are as the lens shows them, and ``distortion`` is a modality: OpenCV's k1, k2, p1, p2, k3, k4, k5, k6.
    depth_scale : float
        Unit of 16-bit depth, and of depth in ``.npy`` files, where the file does not say ``integer_depth_scale``; the
        default is nerfstudio's.

    Returns
    -------
    CaptureFrames
        With COLMAP models, :class:`setsup.datasets.own.captures.colmap.ColmapFrames`.

    Raises
    ------
    DataError
        When there are no cameras, cameras of both kinds, no images, or a camera that is not supported; when a file is
        damaged or lists an image twice.

    """
    check_arguments(open_capture, locals(), DataError)
    path = expanded(folder)
    size = check_size(size)
    depth_scale = check_number(depth_scale, "depth_scale", DataError, positive=True)
    files = open_members(path)
    name = path.resolve().name or "capture"
    models = find_models(files) if cameras != "transforms" else {}
    lists = find_transforms(files) if cameras != "colmap" else {}
    if models and lists:
        choices = " or ".join(
            advice(f"cameras={kind!r}", f"--option cameras={kind}") for kind in ("colmap", "transforms")
        )
        raise DataError(f"{folder} contains COLMAP models and transforms.json; choose the cameras with {choices}")
    incomplete = find_incomplete(files) if cameras != "transforms" else {}
    if models:
        for lack in incomplete.values():
            _log.warning("%s; it is left out", lack)
        return open_models(name, files, models, images, size, undistort)
    if not lists and incomplete:
        raise DataError(f"{next(iter(incomplete.values()))}; write the model again, or add the file")
    if not lists:
        raise DataError(f"{folder} has no cameras; expected {CAMERA_FILES}; pass the folder that contains them")
    if images is not None:
        raise DataError(
            f"{folder}: images={images!r} is an option of COLMAP models, but {next(iter(lists)) or '.'} has "
            "transforms.json, which lists the paths of images; omit it"
        )
    return _open_lists(name, files, lists, size, undistort, depth_scale)


def _open_lists(
    name: str,
    files: MemberIndex,
    lists: Mapping[str, Mapping[str, str]],
    size: tuple[int, int] | None,
    undistort: bool,
    depth_scale: float,
) -> CaptureFrames:
    frames: list[Frame] = []
    scene: list[int] = []
    places: dict[str, list[int]] = {kind: [] for kind in ("image", *_MAPS)}
    splits: list[str | None] = []
    lost: dict[str, list[str]] = {kind: [] for kind in places}
    for number, (capture, of_splits) in enumerate(lists.items()):
        for split, file in of_splits.items():
            place = files.place(file)
            label = files.label(place)
            read = read_transforms(files.read(place, _MOST), label, partial(_size_of, files, capture, label))
            images = _find(files, capture, [frame.path for frame in read], label)
            lost["image"] += [frame.path for frame, image in zip(read, images.tolist(), strict=True) if image < 0]
            read = [frame for frame, image in zip(read, images.tolist(), strict=True) if image >= 0]
            frames += read
            scene += [number] * len(read)
            splits += [split or frame.split for frame in read]
            places["image"] += images[images >= 0].tolist()
            for kind in _MAPS:
                paths = [getattr(frame, kind) for frame in read]
                found = _find(files, capture, paths, label).tolist()
                places[kind] += found
                lost[kind] += [path for path, one in zip(paths, found, strict=True) if path is not None and one < 0]
    warn_left_out(files.source, "images", lost["image"], len(lost["image"]) + len(frames))
    for kind in _MAPS:
        if lost[kind]:
            _log.warning(
                "%s: %s listed %s files are missing (%s); their images have no %s",
                *(files.source, f"{len(lost[kind]):,}", kind, some([short(path) for path in lost[kind]]), kind),
            )
    poses = np.array([frame.pose for frame in frames], np.float32)
    present, scenes = np.unique(scene, return_inverse=True)
    names = [capture.rstrip("/") or name for capture in lists]
    scales = [depth_scale if frame.depth_scale is None else frame.depth_scale for frame in frames]
    image, depth, mask = (np.array(of_kind, np.int64) for of_kind in places.values())
    maps = {
        "depth": FrameMaps(files, depth, "float32", partial(read_depth, np.array(scales, np.float32))),
        "object_mask": FrameMaps(files, mask, "uint8", read_mask),
    }
    return CaptureFrames(
        name,
        capture_table([names[number] for number in present.tolist()], scenes, poses, splits),
        # cameras are those of the pixels as they are stored
        MemberImages(files, image, upright=False),
        poses,
        lens_matrices([frame.lens for frame in frames]),
        np.array([frame.size for frame in frames], np.int64),
        np.array([frame.distortion for frame in frames]),
        size,
        undistort,
        {kind: each for kind, each in maps.items() if (each.places >= 0).any()},
    )


def _find(files: MemberIndex, capture: str, paths: Sequence[str | None], label: str) -> Places:
    """Places of files that a list names, relative to its folder, −1 for none."""
    found = np.full(len(paths), -1)
    named = np.flatnonzero([path is not None for path in paths])
    names = [_inner(files, capture, path, label) for path in paths if path is not None]
    for suffix in ("", *_SUFFIXES):
        missing = np.flatnonzero(found[named] < 0)
        if len(missing):
            found[named[missing]] = files.places([names[at] + suffix for at in missing.tolist()])
    return found


def _inner(files: MemberIndex, capture: str, path: str, label: str) -> str:
    """Name of a file that a list names, relative to its folder."""
    inner = join(capture, path)
    if inner is None:
        raise DamagedFile(
            f"{label}: the path {path!r} leads out of {files.source}; expected one relative to the file",
            "open the folder that contains both, or make paths relative",
        )
    return inner


def _size_of(files: MemberIndex, capture: str, label: str, path: str) -> tuple[int, int]:
    """Height and width of an image, as it is stored."""
    [place] = _find(files, capture, [path], label).tolist()
    if place < 0:
        raise DamagedFile(
            f"{label}: {path} is missing, and the file does not say its h and w", "add the image, or h and w"
        )
    head = header(as_stored(files, place), files.label(place))
    return head.height, head.width
