"""The published images of ABC's pose experiment as one dataset, each release read where it lies."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Pixels, Rows
from setsup.checks import check_choice, check_number
from setsup.datasets import images
from setsup.datasets.base import BaseDataset
from setsup.datasets.benchmarks import cars196, compcars, imagenet_a, pascal3d, shapenet_renderings
from setsup.datasets.dataset import Dataset, Modality
from setsup.errors import DamagedFile, DataError
from setsup.files.expand_user import expanded
from setsup.random import fold, permute, stream_key
from setsup_papers.abc.pose.datasets.abc_pose.cropping import box_margin, crop_photo, crop_rendering
from setsup_papers.abc.pose.datasets.abc_pose.factors import (
    CATEGORIES,
    HIGHEST,
    POSE,
    Part,
    compute_rotations,
    pose_table,
)

__all__ = ["AbcPose", "open"]

_NAME = "abc-pose"
_LOOKUP = {"car": ("0182", "0183"), "chair": ("0047", "0048")}
"""Records whose views codebooks are made of."""
_CHAIRS = 1000  # of Pascal3D+ for training
_KNOWN = "truncated == False and occluded == False and difficult == False"

_log = logging.getLogger("setsup")

Size = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Images:
    """Rows of one release, and how one of them is cut out."""

    source: Any
    rows: npt.NDArray[np.int64]
    part: Part
    cut: Callable[[Any, int, Size, Size], Pixels]


class AbcPose(BaseDataset):
    """Renderings and photographs of cars and chairs, each cut to its object; made by :func:`open`.

    Factors: ``category``; ``source``, rendering or real; ``object``, the model of ShapeNet, unknown for photographs;
    ``azimuth``, ``elevation`` and ``theta`` in degrees as in Pascal3D+, unknown for photographs of the training; and
    ``split``. Modalities: ``image``, (h, w, 4) uint8 sRGB and alpha, the box stretched to the middle, with a margin
    around it; ``rotation``, (3, 3) float32, from the object axes of Pascal3D+ to the camera, NaN where the pose is
    unknown.

    Parameters
    ----------
    parts : sequence
        Rows of each release.
    names : sequence of str
        Of the objects.
    size, margin : (rows, columns)
        Pixels of the box, and around it on each side.
    root : Path, optional
        Where the backgrounds are looked for.

    """

    name = _NAME
    cpu_bound = True

    def __init__(
        self, parts: Sequence[_Images], names: Sequence[str], size: Size, margin: Size, root: Path | None
    ) -> None:
        self._parts, self._size, self._margin, self._root = tuple(parts), size, margin, root
        self._firsts = np.cumsum([0, *(len(part.rows) for part in parts)])
        self.factors = pose_table([part.part for part in parts], names)
        shape = (size[0] + 2 * margin[0], size[1] + 2 * margin[1], 4)
        self.modalities = {
            "image": Modality(shape, "uint8", color="srgb"),
            "rotation": Modality((3, 3), "float32"),
        }

    def backgrounds(self, count: int, side: int) -> Pixels:
        """Images of ImageNet-A for what lies behind renderings.

        `count` is how many at most, chosen once, `side` the pixels that each side has at least; images are twice as
        large as the box, unless `side` is larger. Returns (k, height, width, 3) uint8.
        """
        high = max(side, 2 * self._size[0], 2 * self._size[1])
        dataset = imagenet_a.open(_release_folder(self._root, "imagenet-a"), (high, high))
        rows = _chosen("backgrounds", len(dataset), count)
        return np.asarray(dataset.fetch(rows, ["image"])["image"])

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        if name == "rotation":
            return compute_rotations(self.factors, rows)
        places = np.searchsorted(self._firsts, rows, side="right") - 1

        def put(slot: int) -> None:
            part = self._parts[places[slot]]
            row = int(part.rows[rows[slot] - self._firsts[places[slot]]])
            out[slot] = part.cut(part.source, row, self._size, self._margin)

        images.parallel(put, range(len(rows)))
        return out


def open(
    root: Path | str | None = None,
    size: tuple[int, int] = (128, 128),
    margin: float = 0.1,
    category: Literal["car", "chair"] | None = None,
) -> AbcPose:
    """Open the releases of the experiment as one dataset.

    Parameters
    ----------
    root : Path, str or None
        Folder with folders named as the releases are: ``shapenet-renderings``, ``pascal3d``, for cars ``compcars`` and
        ``cars196`` or one of them, and ``imagenet-a`` for backgrounds. None for the usual places of each.
    size : (height, width)
        Pixels of the object's box.
    margin : float
        What lies around the box on each side, as a share of its sides, 0 to 1, rounded up to pixels. Without a margin
        boxes are cut out as the published evaluation does: interpolated without smoothing, and renderings with the
        colours that the file has under transparent pixels. With one they are smoothed where they shrink, and black
        where they are transparent.
    category : str, optional
        ``"car"`` or ``"chair"``, whose releases alone must be there; both by default.

    Raises
    ------
    DataError
        A release is not there (with how to get it) or damaged, or an option is out of range.

    """
    high, wide = images.check_size(size)
    check_number(margin, "margin", DataError, 0, 1)
    around = (box_margin(high, margin), box_margin(wide, margin))
    if category is not None:
        check_choice(category, CATEGORIES, "category", DataError)
    folder = None if root is None else expanded(root)
    renderings = shapenet_renderings.open(_release_folder(folder, "shapenet-renderings"))
    posed = pascal3d.open(_release_folder(folder, "pascal3d"))
    names = list(renderings.factors["object"].levels or ())
    parts: list[_Images] = []
    for kind in CATEGORIES if category is None else (category,):
        lookup = f"record in {_LOOKUP[kind]!r}"
        seen = f"category == {kind!r} and elevation < {HIGHEST[kind]!r}"
        parts.append(_renderings(renderings, kind, "train", f"{seen} and not ({lookup})"))
        parts += _training_photos(posed, kind, folder)
        parts.append(_renderings(renderings, kind, "codebook", f"{seen} and {lookup}"))
        tests = posed.factors.rows(f"abc == {kind!r}")
        if not len(tests):
            raise DataError(
                f"pascal3d contains no object of the list {kind}_test.txt; copy ABC's lists next to the release, or to "
                "its subfolder abc_lists"
            )
        pose = np.stack([posed.factors.codes(name, tests) for name in POSE], axis=1).astype(np.float32)
        parts.append(_Images(posed, tests, Part(kind, "real", "test", _unknown(tests), pose), _photo))
    return AbcPose(parts, [str(name) for name in names], (high, wide), around, folder)


def _renderings(dataset: Dataset, category: str, split: str, where: str) -> _Images:
    rows = dataset.factors.rows(where)
    if not len(rows):
        raise DataError(
            f"shapenet-renderings contains no view for the {split} part of {category}s ({where}); fetch the missing "
            "files"
        )
    angles = [dataset.factors.codes(name, rows) for name in ("azimuth", "elevation")]
    pose = np.stack([*angles, np.zeros(len(rows))], axis=1).astype(np.float32)
    objects = dataset.factors.codes("object", rows).astype(np.int64)
    return _Images(dataset, rows, Part(category, "rendering", split, objects, pose), _rendering)


def _training_photos(posed: Dataset, category: str, root: Path | None) -> list[_Images]:
    """Photographs without annotations: CompCars and Cars196, or chairs of Pascal3D+."""
    if category == "chair":
        rows = posed.factors.rows(f"category == 'chair' and split == 'train' and {_KNOWN}")
        sources = [(posed, rows[_chosen("chairs", len(rows), _CHAIRS)])]
    else:
        sources = []
        for opened, name in ((compcars.open, "compcars"), (cars196.open, "cars196")):
            try:
                dataset = opened(_release_folder(root, name))
            except DamagedFile:
                raise
            except DataError as error:
                _log.warning("abc-pose omits %s: %s", name, error)
                missing = error
            else:
                sources.append((dataset, np.arange(len(dataset))))
        if not sources:
            raise DataError(f"abc-pose requires photographs of cars from compcars or cars196: {missing}")
    return [
        _Images(source, rows, Part(category, "real", "train", _unknown(rows), _no_pose(rows)), _photo)
        for source, rows in sources
    ]


def _chosen(stream: str, among: int, count: int) -> npt.NDArray[np.int64]:
    """Some of so many rows, in their order, chosen once."""
    key = fold(stream_key(0, f"abc-pose {stream}"), 0)
    return np.sort(permute(key, among, np.arange(min(count, among))))


def _release_folder(root: Path | None, name: str) -> Path | None:
    """Folder of a release below the root, or the root."""
    return None if root is None else root / name if (root / name).exists() else root


def _unknown(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.full(len(rows), -1, np.int64)


def _no_pose(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    return np.full((len(rows), 3), np.nan, np.float32)


def _rendering(source: Any, row: int, size: Size, margin: Size) -> Pixels:
    return crop_rendering(source.fetch([row], ["image"])["image"][0], size, margin)


def _photo(source: Any, row: int, size: Size, margin: Size) -> Pixels:
    box = source.fetch([row], ["box"])["box"][0]
    return crop_photo(source.photo(row), box, size, margin)
