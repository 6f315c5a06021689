"""PF-WILLOW: 900 pairs of 100 images of objects of 10 kinds, with 10 keypoints each.

Convention
----------
Keypoints are used as published, as its evaluations do: a keypoint (x, y) is compared with the pixel in column x and row
y, counted from 0.
"""

import math
from pathlib import Path

import numpy as np

from setsup.arrays import Reals, Rows
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.keypoint_images import KeypointImages
from setsup.datasets.adapters.missing_files import present_files
from setsup.datasets.benchmarks.semantic_pairs.lists import find_list, read_rows
from setsup.datasets.images import check_size
from setsup.datasets.keypoint_pairs import PairList
from setsup.errors import DamagedFile, DataError, abbreviate
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded
from setsup.files.texts import content_of, label_of

__all__ = ["PFWillow", "open", "read_pairs"]

KEYPOINTS = 10
"""Keypoints of each image."""

_HOLDS = {r"[a-z]+\([^/]+\)/[^/]+\.png": "car(G)/*.png"}
_ARCHIVES = ("PF-dataset.zip", "PF-dataset.tar")
_LISTS = ("test_pairs.csv", "test_pairs_pf.csv")
_MOST = 1 << 26  # bytes of a list

Listed = tuple[list[tuple[str, str]], Reals]


class PFWillow(KeypointImages):
    """Images of PF-WILLOW, as returned by :func:`open`.

    A row is an image of the list; rows are sorted by category and name. ``published_pairs`` are those of the list, with
    the factor ``category``. Keypoints are published for pairs; the modality ``keypoints`` has those of the first pair
    with the image.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    listed : (list of (str, str), (n, 2, 10, 2) float64)
        Result of :func:`read_pairs`.
    size : (height, width), optional
        Of the images.

    """

    keypoint_scale = "keypoints"

    def __init__(self, members: MemberIndex, listed: Listed, size: tuple[int, int] | None = None) -> None:
        pairs, points = listed
        names = sorted({name for pair in pairs for name in pair})
        kept, places = present_files(members, "images", names)
        names = [names[row] for row in kept.tolist()]
        number = {name: row for row, name in enumerate(names)}
        both = [at for at, pair in enumerate(pairs) if pair[0] in number and pair[1] in number]
        rows: Rows = np.array([[number[name] for name in pairs[at]] for at in both], np.int64).reshape(-1, 2)
        self._pairs = points[both]
        self._of_pair = {(row1, row2): at for at, (row1, row2) in reversed(list(enumerate(rows.tolist())))}
        first = np.full((len(names), KEYPOINTS, 2), np.nan)
        for part in (1, 0):
            first[rows[::-1, part]] = self._pairs[::-1, part]
        category, photo = ([name.split("/")[part] for name in names] for part in (0, 1))
        photo = [name.rpartition(".")[0] for name in photo]
        factors = table_of([nominal("category", category), nominal("photo", photo, role="key")])
        images = MemberImages(members, places, upright=False)
        super().__init__("pf-willow", factors, images, first, None, size)
        codes = factors.codes("category", rows[:, 0])
        self.published_pairs = PairList(rows, table_of([(factors["category"], codes)]))

    def _shared(self, row1: int, row2: int) -> tuple[Reals, Reals]:
        if (row1, row2) in self._of_pair:
            first, second = self._pairs[self._of_pair[row1, row2]]
            return first, second
        if (row2, row1) in self._of_pair:
            second, first = self._pairs[self._of_pair[row2, row1]]
            return first, second
        raise DataError(
            f"rows {row1} and {row2} of {self.name} are not a pair of its list; take pairs of published_pairs"
        )


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> PFWillow:
    """Open PF-WILLOW.

    Parameters
    ----------
    root : Path, str or None
        The unpacked release ``PF-dataset``, its zip or a tar, or a folder that contains one of them; None for the
        default folders. The list ``test_pairs.csv`` (or ``test_pairs_pf.csv``) is read from there or from the folder
        around it.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and cut out the centre; keypoints follow.

    Returns
    -------
    PFWillow

    Raises
    ------
    DataError
        When the files or the list are missing (the message shows how to get them), or the list is damaged.

    """
    size = check_size(size)
    path = None if root is None else expanded(root)
    members = find_members("pf-willow", path, _HOLDS, _ARCHIVES)
    place = find_list(members, "pf-willow", path, _LISTS)
    if place is None:
        raise DataError(
            f"pf-willow: {members.source} has no test_pairs.csv, in or beside it; run `setsup fetch pf-willow`, which "
            "says where the list is"
        )
    return PFWillow(members, read_pairs(content_of(place, _MOST, "a list of pairs"), label_of(place)), size)


def read_pairs(content: bytes, label: str) -> Listed:
    """Names of the images of each pair, such as ``car(G)/Cars_006a.png``, and keypoints (n, 2, 10, 2) float64.

    After the two paths, a line has 10 x and 10 y of image 1 (``XA1`` to ``XA10``, ``YA1`` to ``YA10``), then those of
    image 2.
    """
    _, rows = read_rows(content, label, 2 + 4 * KEYPOINTS)
    pairs, numbers = list[tuple[str, str]](), np.empty((len(rows), 4 * KEYPOINTS))
    for at, row in enumerate(rows):
        names = ["/".join(path.split("/")[-2:]) for path in row[:2]]
        folders = {name.partition("/")[0] for name in names}
        if len(folders) != 1 or "/" not in names[0]:
            raise DamagedFile(f"{label}: line {at + 2} has images of {len(folders)} folders; expected one category")
        pairs.append((names[0], names[1]))
        for column, text in enumerate(row[2 : 2 + 4 * KEYPOINTS]):
            numbers[at, column] = _number(text, f"{label}: line {at + 2}")
    points = numbers.reshape(-1, 2, 2, KEYPOINTS).swapaxes(2, 3).copy()
    points[np.isnan(points).any(axis=-1)] = np.nan
    return pairs, points


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if math.isinf(number) or "_" in text:
        raise DamagedFile(f"{where} has {abbreviate(text)}; expected a number of pixels")
    return number
