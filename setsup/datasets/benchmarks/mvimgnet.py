"""MVImgNet: frames of videos around 219,188 objects of 238 categories, with cameras by COLMAP.

Convention
----------
``<category>/<sequence>/images/*.jpg`` are the frames of a sequence, and ``<category>/<sequence>/sparse/0`` is its
COLMAP model (:mod:`setsup.datasets.formats.geometry.colmap`), with its own axes and scale. Intrinsics exclude the lens
distortion, which is stored next to them.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Places, Rows
from setsup.datasets.adapters.camera_matrices import lens_matrices
from setsup.datasets.adapters.camera_paths import pose_factors
from setsup.datasets.adapters.colmap_tracks import ColmapModels, ColmapTracks
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.cached_arrays import cached_array, release_state
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.geometry.colmap import read_cameras, read_images
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import text_of
from setsup.progress import progress

__all__ = ["open"]

_IMAGE = r"(?P<category>[0-9]+)/(?P<sequence>[^/]+)/images/(?P<image>[^/]+\.(?i:jpe?g|png))"
_MODEL = r"(?P<category>[0-9]+)/(?P<sequence>[^/]+)/sparse/0/images\.bin"
_HOLDS = {
    r"[0-9]+/[^/]+/images/[^/]+\.(?i:jpe?g|png)": "<category>/<sequence>/images/*.jpg",
    r"[0-9]+/[^/]+/sparse/0/images\.bin": "<category>/<sequence>/sparse/0/images.bin",
}
_ARCHIVES = ("MVImgNet", "mvimgnet", "MVImgNet.zip")
_PACKED = r"mvi_[0-9]+\.(?:zip|tar)"
_NAMES = "mvimgnet_category.txt"
_MOST = 1 << 24
_EDITION = 3
_ENTRY = np.dtype(
    [
        ("pose", np.float32, (4, 4)),
        ("lens", np.float32, 4),
        ("distortion", np.float32, 4),
        ("size", np.int32, 2),
        ("observations", np.int64, 2),
        ("absent", np.int32),
    ]
)

_log = logging.getLogger("setsup")


class MvImgNetFrames(ColmapTracks):
    """Frames of sequences, with the 3D points that each frame observes; those without a camera observe none."""

    pair_factors = ("category", "sequence")
    """Factors in which the views of a scene agree."""


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> MvImgNetFrames:
    """Open MVImgNet: the folder with any of its zips, packed or unpacked, or one zip.

    Rows are the frames, sorted by file name. Factors: ``category``, its name if ``mvimgnet_category.txt`` is next to
    the categories, else its number; ``sequence`` (within the category: one object); the key ``frame``, its position
    among the images of the sequence; and ``azimuth``, ``elevation`` and ``distance`` of the camera about the sequence's
    own axis (:mod:`setsup.datasets.adapters.camera_paths`).

    Modalities: ``image``; ``pose``, camera to world, NaN for frames that COLMAP did not place; ``intrinsics`` and
    ``distortion``, OpenCV's k1, k2, p1, p2.

    Methods ``observations(row)``, ``observed(row)`` and ``points(row)`` give the 3D points of the models
    (:mod:`setsup.datasets.adapters.colmap_tracks`).

    `size` (height, width), optional: images are resized to cover this size and cropped about their centre, and
    intrinsics follow.

    Raises
    ------
    DataError
        When the release is missing, or a COLMAP model is damaged or has an unsupported camera.

    References
    ----------
    .. [1] Yu, Xu, Zhang, Liu, Ye, Wu, Yan, Zhu, Xiong, Liang, Chen, Cui, Han, "MVImgNet: A Large-scale Dataset of
       Multi-view Images", CVPR 2023.

    """
    size = check_size(size)
    release = find_members("mvimgnet", root, _HOLDS, _ARCHIVES, parts=_PACKED)
    places, groups = release.matching(_IMAGE)
    names = _names(release)
    _warn_nameless(release, names, groups)
    category, number = _coded(groups["category"], lambda text: names.get(int(text), text))
    sequence, instance = _coded(groups["sequence"])
    starts = np.flatnonzero(np.append(True, (np.diff(number) != 0) | (np.diff(instance) != 0)))
    of_row = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(places))))
    models = _models(release, groups, starts)
    cameras = _cameras(release, places, groups, starts, of_row, models)
    _warn_absent(release, cameras)
    _warn_empty(release, groups, starts)
    frame = np.arange(len(places)) - starts[of_row]
    factors = [
        (Factor("category", Kind.NOMINAL, category), number),
        (Factor("sequence", Kind.NOMINAL, sequence, within="category"), instance),
        (Factor("frame", Kind.ORDINAL, tuple(range(int(frame.max()) + 1)), within="sequence", role="key"), frame),
        *pose_factors(np.asarray(cameras["pose"]), of_row),
    ]
    intrinsics = lens_matrices(cameras["lens"])
    more = {"distortion": (Modality((4,), "float32"), np.asarray(cameras["distortion"]))}
    sizes = np.asarray(cameras["size"], np.int64)
    # cameras are those of the pixels as they are stored
    files, poses = MemberImages(release, places, upright=False), np.asarray(cameras["pose"])
    binary = np.zeros((len(models), 2), bool)
    tracks = ColmapModels(release, models[:, 1:], binary, of_row, np.asarray(cameras["observations"]))
    table = table_of(factors)
    return MvImgNetFrames("mvimgnet", table, files, poses, intrinsics, sizes, size, more=more, models=tracks)


def _coded(texts: Any, name: Callable[[str], str] = str) -> tuple[tuple[str, ...], Rows]:
    """Levels of texts, a pyarrow array, by what each stands for, and their codes."""
    encoded = texts.dictionary_encode()
    named = [name(text) for text in encoded.dictionary.to_pylist()]
    levels = sorted(set(named))
    code = {level: number for number, level in enumerate(levels)}
    return tuple(levels), np.array([code[each] for each in named])[np.asarray(encoded.indices)]


def _models(release: MemberIndex, groups: Mapping[str, Any], starts: Rows) -> Places:
    """Places of the cameras, images and points of each sequence's model, (n, 3); −1 for none."""
    columns = (groups[name].take(starts).to_pylist() for name in ("category", "sequence"))
    folders = [f"{category}/{sequence}" for category, sequence in zip(*columns, strict=True)]
    kinds = ("cameras", "images", "points3D")
    return np.stack([release.places([f"{folder}/sparse/0/{kind}.bin" for folder in folders]) for kind in kinds], 1)


def _cameras(
    release: MemberIndex, places: Places, groups: Mapping[str, Any], starts: Rows, of_row: Rows, models: Places
) -> Array:
    """Pose, lens, distortion, size and observations of each image; NaN, 1 × 1 and none where it has no camera."""
    models = models[:, :2]
    there = np.flatnonzero((models >= 0).all(axis=1))

    def make() -> Array:
        cameras = np.zeros(len(of_row), _ENTRY)
        for name in ("pose", "lens", "distortion"):
            cameras[name] = np.nan
        cameras["size"] = 1
        firsts = np.append(starts, len(of_row))
        with progress(len(there), "reading cameras of mvimgnet", "sequences") as advance:
            for sequence in there.tolist():
                start, stop = firsts[sequence : sequence + 2].tolist()
                images = groups["image"].slice(start, stop - start).to_pylist()
                rows = dict(zip(images, range(start, stop), strict=True))
                cameras["absent"][start] = _read(release, models[sequence], rows, cameras)
                advance(1)
        return cameras

    state = release_state(release, np.concatenate([places, models[there].reshape(-1)]))
    return cached_array("cameras", [_EDITION, "mvimgnet", state], _ENTRY, len(of_row), make)


def _warn_absent(release: MemberIndex, cameras: Array) -> None:
    """Warn of images that models have a camera of and that are missing."""
    absent = int(cameras["absent"].sum())
    if absent:
        total = absent + int(np.count_nonzero(~np.isnan(cameras["lens"][:, 0])))
        _log.warning(
            "%s: %s of the %s images that have cameras in its COLMAP models are missing; they are left out",
            *(release.source, f"{absent:,}", f"{total:,}"),
        )


def _warn_empty(release: MemberIndex, groups: Mapping[str, Any], starts: Rows) -> None:
    """Warn of sequences that have a model and no image."""
    _, models = release.matching(_MODEL)
    images, poses = (
        set(zip(*(columns[name].to_pylist() for name in ("category", "sequence")), strict=True))
        for columns in ({name: groups[name].take(starts) for name in ("category", "sequence")}, models)
    )
    if empty := sorted(poses - images):
        _log.warning(
            "%s: %s of the %s sequences with a COLMAP model have no images, such as %s; they are left out",
            *(release.source, f"{len(empty):,}", f"{len(poses):,}", "/".join(empty[0])),
        )


def _read(release: MemberIndex, model: npt.NDArray[np.int64], rows: dict[str, int], entries: Array) -> int:
    """Read the model of one sequence into the entries of its images, and count those that are missing."""
    camera_place, image_place = model.tolist()
    cameras = read_cameras(release.read(camera_place, _MOST), release.label(camera_place))
    label = release.label(image_place)
    whole: list[bytes] = []

    def stretch(offset: int, length: int) -> bytes:
        part = None if whole else release.stretch(image_place, offset, length)
        if part is None:  # deflated
            whole[:] = whole or [release.read(image_place)]
            part = whole[0][offset : offset + length]
        return part

    absent = 0
    for name, image in read_images(stretch, label).items():
        row = rows.get(name.rpartition("/")[2])
        if row is None:
            absent += 1
            continue
        number = image.camera
        if number not in cameras:
            raise DamagedFile(f"{label}: image {name!r} refers to the camera {number}, which is not in cameras.bin")
        camera = cameras[number]
        if camera.distortion[4:].any():
            raise DamagedFile(
                f"{label}: image {name!r} has the camera model {camera.model}; expected k1, k2, p1 and p2 at most",
                "undistort the images",
            )
        size, observations = (camera.height, camera.width), (image.start, image.length)
        entries[row] = (image.pose, camera.lens, camera.distortion[:4], size, observations, 0)
    return absent


def _names(release: MemberIndex) -> dict[int, str]:
    """Name of each category, if the list exists."""
    if _NAMES not in release:
        return {}
    member = release.place(_NAMES)
    label = release.label(member)
    text = text_of(release.read(member, _MOST), label)
    lines = [line.partition(",") for line in text.splitlines() if line.strip()]
    wrong = next((at for at, (key, _, name) in enumerate(lines, 1) if not (key.isdecimal() and name.strip())), 0)
    if wrong:
        raise DamagedFile(f"{label}: line {wrong} is not of the form 'number,name'")
    if lines and not text.endswith(("\n", "\r")):  # as that of the release does
        key, _, name = lines[-1]
        _log.warning(
            "%s: the last line of %s (%r for category %s) has no line break, so the list may be truncated; fetch it "
            "again",
            *(release.source, _NAMES, name.strip(), key),
        )
    return {int(key): name.strip() for key, _, name in lines}


def _warn_nameless(release: MemberIndex, names: Mapping[int, str], groups: Mapping[str, Any]) -> None:
    """Warn of categories that the list of names lacks."""
    numbers = groups["category"].unique().to_pylist()
    lacking = sorted((text for text in numbers if int(text) not in names), key=int)
    if names and lacking:
        _log.warning(
            "%s: %s lacks %s of the %s categories, such as %s; their levels are numbers",
            *(release.source, _NAMES, len(lacking), len(numbers), lacking[0]),
        )
