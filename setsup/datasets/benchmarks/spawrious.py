"""Spawrious: about 152,000 generated photographs of dogs of four breeds in six places, in six challenges.

Convention
----------
The release has two copies, ``0`` and ``1``, that were generated in the same way, with 3,168 images of each breed in
each place. Rows are ordered by copy, place, breed and the number in the file's name,
``<location>_<breed>_<number>.png``. The published code uses the first images of a folder in the order of the file
system; here the images with the lowest numbers are used. A folder with missing images would shift images between
environments, so it is refused, like folders that are not part of Spawrious and files that are named after another
folder.

References
----------
.. [1] A. Lynch, G. J.-S. Dovonon, J. Kaddour, R. Silva, "Spawrious: A Benchmark for Fine Control of Spurious
   Correlation Biases", 2023 (arXiv 2303.05470), and its published code.

"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Places
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.errors import DataError, advice
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.roots import some

__all__ = ["open"]

_BREEDS = ("bulldog", "corgi", "dachshund", "labrador")
_PLACES = ("beach", "desert", "dirt", "jungle", "mountain", "snow")
_PARTS = ("train-1", "train-2", "test")
_FILE = (
    rf"(?P<copy>[01])/(?P<location>{'|'.join(_PLACES)})/(?P<breed>{'|'.join(_BREEDS)})/"
    r"(?:(?P<named>[^/]*)_)?(?P<number>[0-9]{1,9})\.(?i:png|jpe?g)"
)
_ALIKE = r"(?P<folder>[0-9]+/[^/.][^/]*/[^/.][^/]*)/[^/]+\.(?i:png|jpe?g)"
"""What is laid out as the release is."""
_PACKED = r"spawrious224[^/]*\.(?:zip|tar)"  # one for each challenge, or for all
_EACH = 3168  # images of a breed in a place, in either copy
_GRID = (2, len(_PLACES), len(_BREEDS))
_MAIN = (int(0.97 * _EACH), int(0.87 * _EACH))  # of them where the breed belongs, in either environment
_ORDER = ("bulldog", "dachshund", "labrador", "corgi")  # of the places below


class _Challenge(NamedTuple):
    """Places of the breeds, in their order, in training and in the test; the place in which all are trained, too."""

    train: tuple[str, str, str, str]
    test: tuple[str, str, str, str]
    filler: str = ""


_CHALLENGES = {
    "o2o_easy": _Challenge(("desert", "jungle", "dirt", "snow"), ("dirt", "snow", "desert", "jungle"), "beach"),
    "o2o_medium": _Challenge(("mountain", "beach", "dirt", "jungle"), ("jungle", "dirt", "beach", "snow"), "desert"),
    "o2o_hard": _Challenge(("jungle", "mountain", "snow", "desert"), ("mountain", "snow", "desert", "jungle"), "beach"),
    "m2m_easy": _Challenge(("desert", "mountain", "dirt", "jungle"), ("dirt", "jungle", "mountain", "desert")),
    "m2m_medium": _Challenge(("beach", "snow", "mountain", "desert"), ("desert", "mountain", "beach", "snow")),
    "m2m_hard": _Challenge(("dirt", "jungle", "snow", "beach"), ("snow", "beach", "dirt", "jungle")),
}


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open Spawrious: the folder ``spawrious224``, or the part of it that one challenge requires.

    Factors: ``breed`` and ``location``, whose 24 combinations are the groups; the key ``copy``; and for each of the six
    challenges its parts: the two training environments, ``train-1`` and ``train-2``, and ``test``. Images that a
    challenge does not use are in no part. Challenges with a missing folder have no factor.

    - One to one (``o2o``): in training each breed has its place, but for 3 % of the images in the first environment, of
      copy 0, and 13 % in the second, of copy 1, which show all breeds in one further place; in the test each breed is
      in another place.
    - Many to many (``m2m``), of copy 0: two breeds share two places, which they exchange between the environments; in
      the test they are where the other two breeds were.

    `size` (height, width), optional.

    Raises
    ------
    DataError
        When the release is missing, contains folders that are not part of Spawrious, or has a folder with missing or
        additional images.

    """
    size = check_size(size)
    archives = ["spawrious224", "spawrious224.tar", "spawrious224.zip"]
    release = find_members("spawrious", root, {_FILE: "0/desert/bulldog/desert_bulldog_0.png"}, archives, parts=_PACKED)
    places, groups = release.matching(_FILE)
    _refuse_others(release, groups)
    copies, numbers = (np.array(groups[name].to_pylist(), np.int64) for name in ("copy", "number"))
    at, of = (
        np.array([levels.index(name) for name in groups[column].to_pylist()], np.int64)
        for column, levels in (("location", _PLACES), ("breed", _BREEDS))
    )
    order = np.lexsort((numbers, of, at, copies))
    copies, at, of = copies[order], at[order], of[order]
    rank = _rank(copies, at, of)
    there = _whole_folders(copies, at, of, numbers[order], release)
    factors = [
        (Factor("breed", Kind.NOMINAL, _BREEDS), of),
        (Factor("location", Kind.NOMINAL, _PLACES), at),
        nominal("copy", copies.tolist(), role="key", levels=(0, 1)),
    ]
    for name, challenge in _CHALLENGES.items():
        if not there[_folders_of(challenge)].all():
            continue
        parts = Factor(name, Kind.NOMINAL, _PARTS, role="split")
        factors.append((parts, _parts(challenge, copies, at, of, rank)))
    return ImageFilesDataset("spawrious", table_of(factors), MemberImages(release, places[order]), size)


def _refuse_others(release: MemberIndex, groups: Mapping[str, Any]) -> None:
    """Refuse folders that are laid out as the release is and are not of it, and folders with another's files."""
    known = {f"{copy}/{location}/{breed}" for copy in (0, 1) for location in _PLACES for breed in _BREEDS}
    there = set(release.matching(_ALIKE)[1]["folder"].unique().to_pylist())
    if others := sorted(there - known):
        raise DataError(
            f"spawrious: {release.source} contains folders that are not part of Spawrious: {some(others)}; expected "
            f"the places {', '.join(_PLACES)} and the breeds {', '.join(_BREEDS)}, in the folders 0 and 1; pass the "
            f"folder of spawrious ({advice('root=', '--root')}), or open this one as a folder of images"
        )
    names = {f"{location}_{breed}" for location in _PLACES for breed in _BREEDS}
    columns = (groups[name].to_pylist() for name in ("copy", "location", "breed", "named"))
    folders = set(zip(*columns, strict=True))
    if renamed := sorted(
        f"{copy}/{location}/{breed} ({named}_…)"
        for copy, location, breed, named in folders
        if named in names - {f"{location}_{breed}"}
    ):
        raise DataError(
            f"spawrious: {release.source} contains folders whose files are named after other folders: {some(renamed)}; "
            "they may have been renamed, so unpack the release again, or open it as a folder of images"
        )


def _whole_folders(
    copies: Places, at: Places, of: Places, numbers: Places, release: MemberIndex
) -> npt.NDArray[np.bool_]:
    """Which combinations of copy, place and breed are there; refuse those that lack images, or have others.

    All are (images,) and sorted.
    """
    cells = np.ravel_multi_index((copies, at, of), _GRID)
    counts = np.bincount(cells, minlength=math.prod(_GRID))
    repeated = np.zeros(len(counts), bool)
    repeated[cells[1:][(np.diff(cells) == 0) & (np.diff(numbers) == 0)]] = True
    for wrong, what in (
        ((counts > 0) & (counts < _EACH), f"folders with fewer than {_EACH:,} images"),
        (counts > _EACH, f"folders with more than {_EACH:,} images"),
        (repeated, "folders with two images that have the same number"),
    ):
        if not wrong.any():
            continue
        names = [
            f"{copy}/{_PLACES[location]}/{_BREEDS[breed]}" for copy, location, breed in np.argwhere(np.ones(_GRID))
        ]
        listed = [f"{names[cell]} ({counts[cell]:,})" for cell in np.flatnonzero(wrong).tolist()]
        raise DataError(
            f"spawrious: {release.source} contains {what}: {some(listed)}; the challenge environments depend on the "
            "order of the images in each folder, so unpack the release again, or open it as a folder of images"
        )
    return counts > 0


def _folders_of(challenge: _Challenge) -> npt.NDArray[np.bool_]:
    """Which combinations of copy, place and breed a challenge uses."""
    copies, at, of = (axis.reshape(-1) for axis in np.indices(_GRID))
    return _parts(challenge, copies, at, of, np.zeros_like(copies)) >= 0


def _rank(*keys: Places) -> Places:
    """Number of each row among those with the same keys, which are contiguous."""
    changes = np.any([np.diff(key, prepend=-1) != 0 for key in keys], axis=0)
    starts = np.flatnonzero(changes)
    return np.asarray(np.arange(len(changes)) - starts[np.cumsum(changes) - 1], np.int64)


def _parts(challenge: _Challenge, copies: Places, at: Places, of: Places, rank: Places) -> Places:
    """Codes of the parts, −1 for none."""
    codes = np.full(len(copies), -1)
    for number, breed in enumerate(_ORDER):
        mine = of == _BREEDS.index(breed)
        if challenge.filler:
            test = mine & (at == _PLACES.index(challenge.test[number]))
            for copy, most in enumerate(_MAIN):
                main = (at == _PLACES.index(challenge.train[number])) & (rank < most)
                filler = (at == _PLACES.index(challenge.filler)) & (rank < _EACH - most)
                codes[mine & (copies == copy) & (main | filler)] = copy
        else:
            mine &= copies == 0
            other = number ^ 1  # the breed with which places are exchanged
            test = mine & ((at == _PLACES.index(challenge.test[number])) | (at == _PLACES.index(challenge.test[other])))
            for environment, whose in enumerate((number, other)):
                main = mine & (at == _PLACES.index(challenge.train[whose])) & (rank < _EACH)
                codes[main] = environment
        codes[test] = _PARTS.index("test")
    return codes
