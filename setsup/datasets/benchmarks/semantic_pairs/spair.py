"""SPair-71k: 70,958 pairs of 1,800 photographs of objects of 18 categories, with keypoints.

Convention
----------
Keypoints and boxes are used as published, as its evaluations do: a keypoint (x, y) is the pixel in column x and row y,
counted from 0. Boxes are (left, top, right, bottom).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from setsup.arrays import Array, Reals
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.keypoint_images import KeypointImages
from setsup.datasets.adapters.missing_files import present_files
from setsup.datasets.benchmarks.semantic_pairs.spair_pairs import LEVELS, SPLITS, PairLines, read_levels, read_lines
from setsup.datasets.formats.json_text import is_finite, read_json
from setsup.datasets.images import check_size
from setsup.datasets.keypoint_pairs import PairList
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, abbreviate
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["SPair", "open", "read_annotation"]

Annotation = tuple[Reals, list[float], dict[str, Any]]

KEYPOINTS = 30
"""Keypoints of an annotation; a category has a subset of them, and an object a subset of those."""

_ANNOTATIONS = r"ImageAnnotation/(?P<name>[^/]+/[^/]+)\.json"
_HOLDS = {
    r"ImageAnnotation/[^/]+/[^/]+\.json": "ImageAnnotation",
    r"JPEGImages/[^/]+/[^/]+\.jpg": "JPEGImages",
    r"Layout/large/(?:trn|val|test)\.txt": "Layout/large",
}
_ARCHIVES = ("SPair-71k.tar", "SPair-71k.zip")
_MOST = 1 << 20  # bytes of an annotation
_FARTHEST = 1_000_000  # pixels
_BOUNDS = f"at most {_FARTHEST:,} pixels"
_DIRECTIONS = 8
_FLAGS = ("truncated", "occluded", "difficult")


class SPair(KeypointImages):
    """Photographs of SPair-71k, as returned by :func:`open`.

    A row is an image, which belongs to one category. Rows are sorted by category and name. ``published_pairs`` are the
    pairs of the large layout in its order, with the factors ``split``, ``category``, ``viewpoint`` and ``scale`` (easy,
    medium, hard), ``truncation`` and ``occlusion`` (none, source, target, both).

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    size : (height, width), optional
        Of the images.

    """

    def __init__(self, members: MemberIndex, size: tuple[int, int] | None = None) -> None:
        names = members.matching(_ANNOTATIONS)[1]["name"].to_pylist()
        rows, places = present_files(members, "images", [f"JPEGImages/{name}.jpg" for name in names])
        self._names = [names[row] for row in rows.tolist()]
        self._members = members
        read = [_read(members, f"ImageAnnotation/{name}.json") for name in self._names]
        self._lines = read_lines(members, self._names)
        points, boxes = (np.array([one[part] for one in read], np.float64) for part in (0, 1))
        factors = _table(self._names, [one[2] for one in read], self._lines)
        images = MemberImages(members, places, upright=False)
        super().__init__("spair-71k", factors, images, points, boxes, size)

    @per_process
    def published_pairs(self) -> PairList:
        """Pairs of the large layout; the first use reads all pair annotations and caches their levels."""
        lines = self._lines
        levels = read_levels(self._members, lines, self._known_points())
        columns: list[tuple[Factor, Array]] = [
            (Factor("split", Kind.NOMINAL, SPLITS, role="split"), lines.splits),
            (self.factors["category"], self.factors.codes("category", lines.rows[:, 0])),
        ]
        for name, words in LEVELS.items():
            kind = Kind.ORDINAL if "easy" in words else Kind.NOMINAL
            columns.append((Factor(name, kind, words), levels[name].astype(np.int64)))
        return PairList(lines.rows, table_of(columns))


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> SPair:
    """Open SPair-71k.

    Parameters
    ----------
    root : Path, str or None
        The unpacked release, a zip or tar of it, or a folder that contains one of them; None for the default folders.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and cut out the centre; keypoints and boxes
        follow.

    Returns
    -------
    SPair

    Raises
    ------
    DataError
        When the files are missing (the message shows how to get them), or an annotation is damaged.

    Notes
    -----
    These files are read::

        Layout/large/<trn|val|test>.txt            lines NUMBER-SOURCE-TARGET:CATEGORY
        PairAnnotation/<trn|val|test>/<line>.json  src_kps, trg_kps, viewpoint_variation, scale_variation, truncation,
                                                   occlusion
        ImageAnnotation/<category>/<photo>.json    bndbox, kps, category, azimuth_id, pose, truncated, occluded,
                                                   difficult
        JPEGImages/<category>/<photo>.jpg

    """
    size = check_size(size)
    return SPair(find_members("spair-71k", root, _HOLDS, _ARCHIVES), size)


def _read(members: MemberIndex, name: str) -> Annotation:
    member = members.place(name)
    label, folder = members.label(member), name.split("/")[1]
    annotation = read_annotation(members.read(member, _MOST), label)
    if (category := annotation[2].get("category", folder)) != folder:
        raise DamagedFile(f"{label}: 'category' is {abbreviate(category)}; expected {folder!r}, as its folder")
    return annotation


def read_annotation(content: bytes, label: str) -> Annotation:
    """Keypoints (30, 2) float64, NaN for missing ones, the box, and everything else of an image."""
    read = read_json(content, label)
    if not isinstance(read, dict):
        raise DamagedFile(f"{label} contains {abbreviate(read)}; expected an object")
    box, keypoints = read.get("bndbox"), read.get("kps")
    if not isinstance(box, list) or len(box) != 4 or not all(map(_is_coordinate, box)):
        raise DamagedFile(f"{label}: 'bndbox' is {abbreviate(box)}; expected four numbers, {_BOUNDS}")
    if box[2] < box[0] or box[3] < box[1]:
        raise DamagedFile(f"{label}: 'bndbox' is {abbreviate(box)}; expected right ≥ left and bottom ≥ top")
    if not isinstance(keypoints, dict):
        raise DamagedFile(f"{label}: 'kps' is {abbreviate(keypoints)}; expected an object")
    points = np.full((KEYPOINTS, 2), np.nan)
    for key, point in keypoints.items():
        if re.fullmatch(r"[0-9]|[12][0-9]", key) is None:
            raise DamagedFile(
                f"{label}: 'kps' has the key {abbreviate(key)}; expected numbers from 0 to {KEYPOINTS - 1}"
            )
        if point is None:
            continue
        if not isinstance(point, list) or len(point) != 2 or not all(map(_is_coordinate, point)):
            raise DamagedFile(
                f"{label}: keypoint {key} is {abbreviate(point)}; expected null or two numbers, {_BOUNDS}"
            )
        points[int(key)] = point
    for flag in _FLAGS:
        if read.get(flag) not in (0, 1):
            raise DamagedFile(f"{label}: {flag!r} is {abbreviate(read.get(flag))}; expected 0 or 1")
    direction = read.get("azimuth_id")
    if type(direction) is not int or not 0 <= direction < _DIRECTIONS:
        raise DamagedFile(f"{label}: 'azimuth_id' is {abbreviate(direction)}; expected a number from 0 to 7")
    if not isinstance(read.get("pose"), str):
        raise DamagedFile(f"{label}: 'pose' is {abbreviate(read.get('pose'))}; expected a text")
    return points, box, read


def _is_coordinate(value: Any) -> TypeGuard[float]:
    return is_finite(value) and abs(value) <= _FARTHEST


def _table(names: Sequence[str], read: Sequence[dict[str, Any]], lines: PairLines) -> FactorTable:
    """Factors of the images."""
    splits = np.full(len(names), -1, np.int64)
    splits[lines.rows[:, 0]] = splits[lines.rows[:, 1]] = lines.splits  # images of the splits are disjoint
    category, photo = ([name.split("/")[part] for name in names] for part in (0, 1))
    poses = [one["pose"] if one["pose"] != "Unspecified" else None for one in read]
    columns: list[tuple[Factor, Array]] = [
        nominal("category", category),
        nominal("pose", poses, levels=("Frontal", "Left", "Rear", "Right")),
        (
            Factor("azimuth", Kind.NOMINAL, tuple(range(_DIRECTIONS))),
            np.array([one["azimuth_id"] for one in read], np.int64),
        ),
    ]
    columns += [
        (Factor(flag, Kind.NOMINAL, (False, True)), np.array([one[flag] == 1 for one in read])) for flag in _FLAGS
    ]
    columns += [
        nominal("photo", photo, role="key"),
        (Factor("split", Kind.NOMINAL, SPLITS, role="split"), splits),
    ]
    return table_of(columns)
