"""NAVI: photographs of scanned objects, with camera, mask and depth of the object.

Convention
----------
The world of a row is the frame of its object's scan, in metres, so all images of an object share one world,
whatever their background; see :mod:`setsup.datasets.benchmarks.navi.annotations`. Depth is along the optical axis, of
the object alone: a PNG of 16 bits stores v = 65535 · 10 / d for a depth of d millimetres, and 0 where there is none.
The resolution is d² / 655,350 mm: 0.4 mm at half a metre.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Reals, Rows, Size
from setsup.checks import check_integer
from setsup.datasets.adapters.boxes import crop as crop_box
from setsup.datasets.adapters.camera_frames import CameraFrames, FrameMaps
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.adapters.frame_maps import fit_map, read_mask
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import present_files
from setsup.datasets.benchmarks.navi.annotations import Annotated, read_scene
from setsup.datasets.dataset import of_row
from setsup.datasets.formats.depth_images import decode_depth, deep_size
from setsup.datasets.formats.source import Source, source_content
from setsup.datasets.images import check_size, decode
from setsup.datasets.originals import Original, refuse_changed
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.scenes.camera import Camera

__all__ = ["open"]

_SCENE = r"wild_set|multiview[-_][^/]+|video[-_][^/]+"
_HOLDS = {rf"[^/]+/(?:{_SCENE})/annotations\.json": "<object>/<scene>/annotations.json"}
_ARCHIVES = ("navi", "navi_v1.5", "navi_v1", "navi_v1.0", "navi.zip", "navi.tar", "navi_v1.5.tar", "navi_v1.tar")
_KINDS = ("wild_set", "multiview", "video")
_SPLITS = ("train", "val")
_STEPS = 65535 * 10  # of the disparity in 1/mm


def open(
    root: Path | str | None = None,
    size: tuple[int, int] | None = None,
    crop: tuple[int, int] | None = None,
    every: int = 1,
) -> "NaviFrames":
    """Open NAVI [1]_: the folder with a folder for each object, of version 1.0 or 1.5.

    Rows are the annotated images whose file exists, by object, scene and file name. Factors: ``object``; ``scene``
    (within the object), such as ``wild_set`` or ``multiview-00-pixel_5``; ``kind``: ``wild_set`` (other backgrounds,
    light and poses), ``multiview`` or ``video``; the key ``file`` (within the scene), its name without the ending;
    ``camera``; ``occluded``, whether the object is partly occluded; and the published ``split``, train or val.

    Modalities: ``image``; ``pose``, camera to the object's scan, metres; ``intrinsics``; and, if available,
    ``object_mask``, 255 for the object's pixels, and ``depth``, metres, 0 beside the object. Views of a scene agree in
    ``object`` and ``scene``; ``scene=["object"]`` compares all images of an object.

    Parameters
    ----------
    root : Path or str, optional
        The folder; where `setsup fetch` puts files by default.
    size : (height, width), optional
        Images are resized to cover this size and cropped about their centre, intrinsics follow, masks and depth take
        the nearest pixel.
    crop : (height, width), optional
        Instead of `size`: the smallest window of this aspect ratio around the object is resized to this size. The
        object is where depth is known. A window that would extend beyond the image is shifted into it; an object larger
        than the largest such window is cut off. probe3d [2]_ uses ``(512, 512)``.
    every : int
        Keep every `every`-th row, from the first: probe3d uses every fourth image of ``wild_set``.

    Raises
    ------
    DataError
        When the release is missing, an annotation is damaged, or both `size` and `crop` are given.

    References
    ----------
    .. [1] V. Jampani et al., "NAVI: category-agnostic image collections with high-quality 3D shape and pose
       annotations", NeurIPS 2023 datasets and benchmarks.
    .. [2] M. El Banani et al., "Probing the 3D awareness of visual foundation models", CVPR 2024;
       ``evals/datasets/navi.py`` of its code.

    """
    size, crop = check_size(size), check_size(crop, "crop")
    if size is not None and crop is not None:
        raise DataError("size and crop cannot be combined; pass crop alone for windows around the objects")
    check_integer(every, "every", DataError, 1)
    release = find_members("navi", root, _HOLDS, _ARCHIVES)
    annotated, columns = _read(release)
    folders = [f"{each}/{scene}" for each, scene in zip(columns["object"], columns["scene"], strict=True)]
    paths = [f"{top}/images/{entry.file}" for top, entry in zip(folders, annotated, strict=True)]
    rows, places = present_files(release, "images", paths)
    rows, places = rows[::every], places[::every]
    kept = [annotated[row] for row in rows.tolist()]
    factors = _factors({name: [column[row] for row in rows.tolist()] for name, column in columns.items()}, kept)
    maps = {}
    for name, folder, dtype, read, unit in (
        ("object_mask", "masks", "uint8", read_mask, ""),
        ("depth", "depth", "float32", _depth, "m"),
    ):
        pngs = [f"{folders[row]}/{folder}/{Path(annotated[row].file).stem}.png" for row in rows.tolist()]
        known = release.places(pngs)
        if (known >= 0).any():
            maps[name] = FrameMaps(release, known, dtype, read, unit)
    images = MemberImages(release, places)
    poses, lenses = (np.array([getattr(each, name) for each in kept]) for name in ("pose", "intrinsics"))
    sizes = np.array([each.size for each in kept], np.int64).reshape(-1, 2)
    return NaviFrames(table_of(factors), images, poses, lenses, sizes, size, crop, maps)


class NaviFrames(CameraFrames):
    """Whole frames, or frames cropped about the object.

    `poses` (n, 4, 4) and `intrinsics` (n, 3, 3) float64; `sizes` (n, 2) int64; `size` or `crop` (height, width).
    """

    pair_factors = ("object", "scene")
    """Factors in which the views of a scene agree."""

    def __init__(
        self,
        factors: Any,
        images: MemberImages,
        poses: npt.NDArray[np.float64],
        intrinsics: npt.NDArray[np.float64],
        sizes: Rows,
        size: Size | None,
        crop: Size | None,
        maps: dict[str, FrameMaps],
    ) -> None:
        self._crop: Size | None = None  # until the files are known to fit
        self._exact = poses
        self._windows: Reals | None = None
        lenses = intrinsics.astype(np.float32)
        super().__init__("navi", factors, images, poses.astype(np.float32), lenses, sizes, size, maps)
        self._crop = crop
        if crop is not None:
            if "depth" not in maps:
                raise DataError("the release of navi has no depth, by which objects are cropped; omit crop")
            for name in ("image", *maps):
                whole = self.modalities[name]
                self.modalities[name] = replace(whole, shape=(*crop, *whole.shape[2:]))

    @of_row
    def camera(self, row: int) -> Camera:
        """The camera of a row's image as it is fetched."""
        one = np.array([row])
        height, width = self._fetched_size(one)
        pose = self._exact[row]
        rotation = pose[:3, :3].T
        return Camera(height, width, self._fitted(one)[0].astype(np.float64), rotation, -rotation @ pose[:3, 3])

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None for other modalities."""
        if name == "image":
            refuse_changed(self.name, crop=self._crop)
        return super().originals(rows, name)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the windows that this process has computed."""
        return {**super().__getstate__(), "_windows": None}

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        crop = self._crop
        if name != "image" or crop is None:
            return super()._read(name, rows, out)
        filled = np.empty((len(rows), *crop, 3), np.uint8) if out is None else out

        def take(distinct: Rows) -> list[tuple[Source, str, Reals]]:
            windows = self._sides(distinct)
            return [(*item, sides) for item, sides in zip(self._images.take(distinct), windows, strict=True)]

        def put(item: tuple[Source, str, Reals], slot: int) -> None:
            filled[slot] = crop_box(decode(item[0], item[1], 3), item[2], crop)

        read_distinct(rows, [filled], take, put)
        return filled

    def _fetched_size(self, rows: Rows) -> tuple[int, int]:
        return super()._fetched_size(rows) if self._crop is None else self._crop

    def _fitted(self, rows: Rows) -> npt.NDArray[np.float32]:
        if self._crop is None:
            return super()._fitted(rows)
        lenses = self._scaled(rows)[0].astype(np.float64)
        sides = self._sides(rows)
        scale = np.array(self._crop[::-1]) / (sides[:, 2:] - sides[:, :2])
        lenses[:, :2, 2] += 0.5 - sides[:, :2]
        lenses[:, :2] *= scale[:, :, None]
        lenses[:, :2, 2] -= 0.5
        return lenses.astype(np.float32)

    def _fit_map(self, pixels: Array, row: int) -> Array:
        if self._crop is None:
            return super()._fit_map(pixels, row)
        left, top, right, bottom = self._sides(np.array([row]))[0].tolist()
        x, y = (
            np.minimum((low + (np.arange(count) + 0.5) * (high - low) / count).astype(np.int64), side - 1)
            for low, high, count, side in zip(
                (left, top), (right, bottom), self._crop[::-1], pixels.shape[1::-1], strict=True
            )
        )
        return np.asarray(pixels[y[:, None], x])

    def _sides(self, rows: Rows) -> Reals:
        """Edges (left, top, right, bottom) of the windows of rows, in pixels of the files; each is found once."""
        if self._windows is None:
            self._windows = np.full((len(self), 4), np.nan)
        known = self._windows
        for row in np.unique(rows[np.isnan(known[rows, 0])]).tolist():
            known[row] = self._window(row)
        return np.asarray(known[rows])

    def _window(self, row: int) -> list[float]:
        maps = self._maps["depth"]
        path = self.paths([row])[0]
        if maps.places[row] < 0:
            raise DataError(f"navi: row {row} ({path}) has no depth, by which its object is cropped; omit crop")
        ((source, label),) = maps.images.take(np.array([row]))
        size = tuple(self._own_sizes(np.array([row]))[0].tolist())
        known = maps.read(source, label, row, size) > 0
        if not known.any():
            raise DataError(f"navi: {label} has no pixel of the object to crop about; leave out the row")
        (top, bottom), (left, right) = (
            (at[0], at[-1] + 1) for at in (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
        )
        return window_around((left, top, right, bottom), size, self._crop or size)


def window_around(box: tuple[float, float, float, float], size: Size, shape: Size) -> list[float]:
    """The smallest window with the aspect ratio of `shape` around a box, within an image of a size.

    Boxes and windows are edges (left, top, right, bottom), pixels; `size` and `shape` are (height, width).

    Examples
    --------
    >>> window_around((10, 20, 30, 60), (100, 100), (8, 8))
    [0.0, 20.0, 40.0, 60.0]
    >>> window_around((10, 0, 30, 90), (90, 60), (8, 8))
    [0.0, 15.0, 60.0, 75.0]

    """
    left, top, right, bottom = map(float, box)
    scale = max((bottom - top) / shape[0], (right - left) / shape[1])
    scale = min(scale, size[0] / shape[0], size[1] / shape[1])
    height, width = scale * shape[0], scale * shape[1]
    first = [
        min(max((low + high - length) / 2, 0.0), side - length)
        for low, high, length, side in ((left, right, width, size[1]), (top, bottom, height, size[0]))
    ]
    return [*first, first[0] + width, first[1] + height]


def _read(release: MemberIndex) -> tuple[list[Annotated], dict[str, list[str]]]:
    """Annotations of all scenes, in the order of objects, scenes and files, and their objects and scenes."""
    places, groups = release.matching(rf"(?P<object>[^/]+)/(?P<scene>{_SCENE})/annotations\.json")
    names = list(zip(groups["object"].to_pylist(), groups["scene"].to_pylist(), places.tolist(), strict=True))
    annotated: list[Annotated] = []
    columns: dict[str, list[str]] = {"object": [], "scene": []}
    for each, scene, place in sorted(names):
        found = read_scene(release, place)
        annotated += found
        columns["object"] += [each] * len(found)
        columns["scene"] += [scene] * len(found)
    if not annotated:
        raise DamagedFile(f"{release.label(int(places[0]))} and the others list no images")
    return annotated, columns


def _factors(columns: dict[str, list[str]], entries: list[Annotated]) -> list[tuple[Factor, Array]]:
    kinds = [next(kind for kind in _KINDS if scene.startswith(kind)) for scene in columns["scene"]]
    splits = [_SPLITS.index(entry.split) if entry.split in _SPLITS else -1 for entry in entries]
    return [
        nominal("object", columns["object"]),
        nominal("scene", columns["scene"], within="object"),
        (Factor("kind", Kind.NOMINAL, _KINDS), np.array([_KINDS.index(kind) for kind in kinds], np.int64)),
        nominal("file", [Path(entry.file).stem for entry in entries], within="scene", role="key"),
        nominal("camera", [entry.camera for entry in entries]),
        (Factor("occluded", Kind.NOMINAL, (False, True)), np.array([entry.occluded for entry in entries], np.int64)),
        (Factor("split", Kind.NOMINAL, _SPLITS, role="split"), np.array(splits, np.int64)),
    ]


def _depth(source: Source, label: str, row: int, size: tuple[int, int]) -> Array:
    """Depth in metres, (height, width) float32, of the size of the image; 0 for none."""
    stored = deep_size(source_content(source))
    disparity = decode_depth(source, label, stored or size).astype(np.float64)
    with np.errstate(divide="ignore"):
        depth = np.where(disparity > 0, _STEPS / disparity * 1e-3, 0.0)
    return fit_map(depth.astype(np.float32), size, label)
