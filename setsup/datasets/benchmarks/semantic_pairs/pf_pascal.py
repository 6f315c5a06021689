"""PF-PASCAL: pairs of photographs of PASCAL VOC with keypoints and boxes.

Convention
----------
Keypoints and boxes are used as published, as its evaluations do: a keypoint (x, y) is compared with the pixel in column
x and row y, counted from 0. Boxes are (left, top, right, bottom).
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Array, Reals, Rows
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.keypoint_images import KeypointImages
from setsup.datasets.adapters.missing_files import present_files, warn_left_out
from setsup.datasets.benchmarks.semantic_pairs.lists import find_list, read_rows
from setsup.datasets.formats.matlab.mat import read_mat
from setsup.datasets.images import check_size
from setsup.datasets.keypoint_pairs import PairList
from setsup.errors import DamagedFile, DataError, abbreviate
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded
from setsup.files.texts import content_of, label_of

__all__ = ["CATEGORIES", "PFPascal", "Pair", "open", "read_annotation", "read_pairs"]

CATEGORIES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable", "dog"),
    *("horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)
"""Categories in the order of their numbers in the lists, from 1."""

_ANNOTATIONS = r"Annotations/(?P<name>[^/]+/[^/]+)\.mat"
_HOLDS = {r"Annotations/[^/]+/[^/]+\.mat": "Annotations", r"JPEGImages/[^/]+\.jpg": "JPEGImages"}
_ARCHIVES = ("PF-dataset-PASCAL.zip", "PF-dataset-PASCAL.tar")
_LISTS = {
    "train": ("trn_pairs.csv", "train_pairs_pf_pascal.csv"),
    "val": ("val_pairs.csv", "val_pairs_pf_pascal.csv"),
    "test": ("test_pairs.csv", "test_pairs_pf_pascal.csv"),
}
_MOST, _MOST_LIST = 1 << 22, 1 << 26  # bytes of an annotation, and of a list
_MOST_KEYPOINTS = 1 << 10


class Pair(NamedTuple):
    """A line of a list: image 1, image 2, number of the category from 0, and whether both are mirrored in training."""

    source: str
    target: str
    category: int
    flip: bool


class PFPascal(KeypointImages):
    """Photographs of PF-PASCAL, as returned by :func:`open`.

    A row is an annotated object of a category; rows are sorted by category and name of the image. ``published_pairs``
    are those of the lists that exist, with the factors ``split``, ``category`` and ``flip``: whether training mirrors
    both images, which setsup does not.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    lists : mapping of str to list of Pair
        Pairs by split.
    size : (height, width), optional
        Of the images.

    """

    keypoint_scale = "img"

    def __init__(self, members: MemberIndex, lists: dict[str, list[Pair]], size: tuple[int, int] | None = None) -> None:
        names = members.matching(_ANNOTATIONS)[1]["name"].to_pylist()
        photos = [name.split("/")[1] for name in names]
        rows, places = present_files(members, "images", [f"JPEGImages/{photo}.jpg" for photo in photos])
        names = [names[row] for row in rows.tolist()]
        read = []
        for name in names:
            member = members.place(f"Annotations/{name}.mat")
            read.append(read_annotation(members.read(member, _MOST), members.label(member)))
        points = np.full((len(read), max(len(one) for one, _ in read), 2), np.nan)
        for row, (one, _) in enumerate(read):
            points[row, : len(one)] = one
        category, photo = ([name.split("/")[part] for name in names] for part in (0, 1))
        factors = table_of([nominal("category", category), nominal("photo", photo, role="key")])
        images = MemberImages(members, places, upright=False)
        super().__init__("pf-pascal", factors, images, points, np.array([box for _, box in read], np.float64), size)
        self.published_pairs = self._list_pairs(members, lists, names)

    def _list_pairs(self, members: MemberIndex, lists: dict[str, list[Pair]], names: list[str]) -> PairList:
        number = {name: row for row, name in enumerate(names)}
        rows, splits, flips, missing = list[list[int]](), list[int](), list[bool](), list[str]()
        for code, pairs in enumerate(lists.values()):
            for pair in pairs:
                both = [f"{CATEGORIES[pair.category]}/{image}" for image in (pair.source, pair.target)]
                if absent := [name for name in both if name not in number]:
                    missing += absent
                    continue
                rows.append([number[name] for name in both])
                splits.append(code)
                flips.append(pair.flip)
        total = sum(map(len, lists.values()))
        if missing:
            warn_left_out(members.source, "listed images", [f"Annotations/{name}.mat" for name in missing], 2 * total)
        index: Rows = np.array(rows, np.int64).reshape(-1, 2)
        columns: list[tuple[Factor, Array]] = [
            (Factor("split", Kind.NOMINAL, tuple(_LISTS), role="split"), np.array(splits, np.int64)),
            (self.factors["category"], self.factors.codes("category", index[:, 0])),
            (Factor("flip", Kind.NOMINAL, (False, True), role="key"), np.array(flips, bool)),
        ]
        return PairList(index, table_of(columns))


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> PFPascal:
    """Open PF-PASCAL.

    Parameters
    ----------
    root : Path, str or None
        The unpacked release ``PF-dataset-PASCAL``, its zip or a tar, or a folder that contains one of them; None for
        the default folders. The lists ``trn_pairs.csv``, ``val_pairs.csv`` and ``test_pairs.csv`` (or
        ``train_pairs_pf_pascal.csv`` and so on) are read from there or from the folder around it, those that exist.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and cut out the centre; keypoints and boxes
        follow.

    Returns
    -------
    PFPascal

    Raises
    ------
    DataError
        When the files or all lists are missing (the message shows how to get them), or a file is damaged.

    """
    size = check_size(size)
    path = None if root is None else expanded(root)
    members = find_members("pf-pascal", path, _HOLDS, _ARCHIVES)
    lists: dict[str, list[Pair]] = {split: [] for split in _LISTS}
    for split, files in _LISTS.items():
        place = find_list(members, "pf-pascal", path, files)
        if place is not None:
            lists[split] = read_pairs(content_of(place, _MOST_LIST, "a list of pairs"), label_of(place))
    if not any(lists.values()):
        raise DataError(
            f"pf-pascal: {members.source} has no test_pairs.csv, val_pairs.csv or trn_pairs.csv, in or beside it; run "
            "`setsup fetch pf-pascal`, which says where the lists are"
        )
    return PFPascal(members, lists, size)


def read_annotation(content: bytes, label: str) -> tuple[Reals, list[float]]:
    """Keypoints (n, 2) float64, NaN for missing ones, and the box of an annotation."""
    read = read_mat(content, label, ["kps", "bbox"], _MOST)
    points, boxes = (_numbers(read[name], name, label) for name in ("kps", "bbox"))
    if points.ndim != 2 or points.shape[1] != 2 or not 0 < len(points) <= _MOST_KEYPOINTS:
        raise DamagedFile(f"{label}: 'kps' has the shape {points.shape}; expected (n, 2), n from 1 to 1,024")
    if np.isinf(points).any():
        raise DamagedFile(f"{label}: 'kps' contains infinity")
    if boxes.ndim != 2 or boxes.shape[1] != 4 or not len(boxes):
        raise DamagedFile(f"{label}: 'bbox' has the shape {boxes.shape}; expected (1, 4)")
    box: list[float] = boxes[0].tolist()
    if not np.isfinite(box).all() or box[2] < box[0] or box[3] < box[1]:
        raise DamagedFile(f"{label}: 'bbox' is {box}; expected left, top, right ≥ left and bottom ≥ top")
    points[np.isnan(points).any(axis=1)] = np.nan
    return points, box


def read_pairs(content: bytes, label: str) -> list[Pair]:
    """Read a list: ``source_image,target_image,class`` and further columns, of which ``flip`` is read."""
    heads, rows = read_rows(content, label, 3)
    flip = heads.index("flip") if "flip" in heads else None
    pairs = []
    for number, row in enumerate(rows, 2):
        source, target = (path.rpartition("/")[2].rpartition(".")[0] for path in row[:2])
        category = _integer(row[2])
        if category is None or not 1 <= category <= len(CATEGORIES):
            raise DamagedFile(f"{label}: line {number} has the class {abbreviate(row[2])}; expected 1 to 20")
        mirrored = 0 if flip is None or flip >= len(row) else _integer(row[flip])
        if mirrored not in (0, 1):
            raise DamagedFile(f"{label}: line {number} has the flip {abbreviate(row[flip or 0])}; expected 0 or 1")
        pairs.append(Pair(source, target, category - 1, mirrored == 1))
    return pairs


def _numbers(value: Any, name: str, label: str) -> Reals:
    if value.dtype.kind not in "iuf":
        raise DamagedFile(f"{label}: {name!r} is an array of {value.dtype}; expected numbers")
    return np.array(value, np.float64)


def _integer(text: str) -> int | None:
    """A small integer, also written as 3.0."""
    text = text.strip().removesuffix(".0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else None
