"""Labels for the photographs of Edges2Shoes: those of UT Zappos50K, matched by their pixels as DCoDR does.

Each photograph gets the labels of the image of UT Zappos50K that is nearest to it at 32 × 32 pixels [1]_. The script
that DCoDR published steps through one list with the bounds of the other, which is fixed here. It stretches images of
136 × 102 pixels to squares; those of Edges2Shoes may have been padded instead, so both variants are compared and the
nearer one is used. Images are downsampled with Pillow's bicubic filter, antialiased.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A Contrastive Objective for Learning Disentangled Representations", ECCV 2022; the labels
   follow its script ``prepare_edges2shoes_zappos.py``.

"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bytes, Integers
from setsup.datasets.adapters.fetching import Images
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.benchmarks.ut_zap50k.files import find_shoes, first_values, read_shoes
from setsup.datasets.cached_arrays import file_states, release_state
from setsup.datasets.images import decode, parallel
from setsup.errors import DataError
from setsup.files import cache_folder, written
from setsup.files.archives.members import MemberIndex
from setsup.files.builds import build_once
from setsup.files.prepared import npy_header
from setsup.progress import Advance, progress

__all__ = ["DISTANCE", "LABELS", "Label", "Zappos", "coarse", "find_zappos", "nearest"]

Label: TypeAlias = tuple[tuple[str, ...] | None, npt.NDArray[Any]]
"""Levels of a factor, None where it is continuous, and its code or value for every pair."""

LABELS = {
    "shoe_type": "category",
    "gender": "gender",
    "closure": "closure",
    "material": "material",
    "toe_style": "toe_style",
}
"""DCoDR's factors, and the columns of the catalogue that they come from."""

DISTANCE = "match_distance"
"""Factor that tells how far the nearest image is: root of the mean squared difference, in levels of 255."""

FEW = 250
"""Values that so many rows have, or fewer, are put together as ``Other``."""

_OTHER = "Other"
_SIDE = 32
_BLOCK, _OTHERS = 1024, 4096
_IMAGES = 512
_VERSION = 1

_log = logging.getLogger("setsup")


class Zappos:
    """A copy of UT Zappos50K next to photographs of shoes.

    `places` (pairs,) int64.
    """

    def __init__(self, photos: MemberIndex, places: Integers, images: MemberIndex, data: MemberIndex) -> None:
        self._photos, self._places = photos, places
        self.images, self.data = images, data

    def file(self) -> Path:
        """Return the file of the matches in the cache folder, whose name depends on their sources.

        An image that is overwritten in place may go unnoticed; see
        :func:`~setsup.datasets.cached_arrays.release_state`.

        """
        digest = hashlib.blake2b(f"{_VERSION} {_SIDE}".encode(), digest_size=16)
        for members, places in ((self._photos, self._places), (self.images, np.arange(len(self.images)))):
            digest.update(release_state(members, places).encode())
        lists = [name for name in ("meta-data.csv", "image-path.mat") if name in self.data]
        digest.update(repr(file_states(self.data, [self.data.place(name) for name in lists])).encode())
        return cache_folder() / "prepared" / digest.hexdigest() / "edges2shoes-zappos.npy"

    def labels(self) -> dict[str, Label] | None:
        """Levels and codes of each factor for every pair, and the distance; None where they were not prepared."""
        matches = _kept(self.file(), len(self._places))
        if matches is None:
            return None
        shoes = read_shoes(self.images, self.data)
        if matches[:, 0].max() >= len(shoes.cids):
            return None
        rows = matches[:, 0].astype(np.int64)
        labels: dict[str, Label] = {}
        for name, column in LABELS.items():
            levels, codes = coarse(shoes.cells[column], FEW)
            labels[name] = (levels, codes[rows])
        return labels | {DISTANCE: (None, matches[:, 1].astype(np.float32))}

    def prepare(self, photo: Callable[[Bytes], Bytes]) -> Path:
        """Match every photograph, unless the matches exist already."""
        path = self.file()

        def make(path: Path) -> None:
            matches = self._matched(photo)
            with written(path) as part:
                part.write_bytes(npy_header(matches.shape, "float64") + matches.astype("<f8").tobytes())

        build_once(path, lambda path: _kept(path, len(self._places)), make)
        return path

    def _matched(self, photo: Callable[[Bytes], Bytes]) -> npt.NDArray[np.float64]:
        shoes = read_shoes(self.images, self.data)
        photos = _thumbnails(
            MemberImages(self._photos, self._places), lambda file: [_shrunk(photo(file))], "photographs"
        )
        shapes = _thumbnails(MemberImages(shoes.images, shoes.places), _shapes, "images of ut-zap50k")
        others = shapes.reshape(-1, shapes.shape[2])
        with progress(len(others), "matching photographs", "rows") as advance:
            rows, squares = nearest(photos[:, 0], others, advance)
        matches = np.stack([rows // shapes.shape[1], np.sqrt(squares / photos.shape[2])], axis=1)
        _log.info(
            "matched %s photographs to %s images of ut-zap50k, with a median difference of %.1f (of 255)",
            *(f"{len(matches):,}", f"{len(np.unique(matches[:, 0])):,}", float(np.median(matches[:, 1]))),
        )
        return matches


def find_zappos(photos: MemberIndex, places: Integers, root: Path | None, zappos: Path | str | None) -> Zappos | None:
    """Find UT Zappos50K in `zappos`, else in the folder of Edges2Shoes, next to it, or in the default folders.

    `places` (pairs,) int64.
    """
    if zappos is not None:
        return Zappos(photos, places, *find_shoes(zappos))
    for folder in _beside(root):
        try:
            return Zappos(photos, places, *find_shoes(folder))
        except DataError as error:
            _log.debug("edges2shoes has no labels: %s", error)
    return None


def coarse(cells: npt.NDArray[np.str_], few: int) -> tuple[tuple[str, ...], Integers]:
    """Levels and codes of a column as in DCoDR: first values, and ``Other`` for empty or rare ones.

    `cells` (rows,) array of str; returns `codes` (rows,) int64.
    """
    names, codes = first_values(cells)
    known = np.bincount(codes[codes >= 0], minlength=len(names))
    frequent = {name for name, count in zip(names, known.tolist(), strict=True) if count > few} - {_OTHER}
    of_name = [name if name in frequent else _OTHER for name in names] + [_OTHER]
    levels = tuple(sorted({of_name[code] for code in np.unique(codes).tolist()}))
    return levels, np.array([levels.index(name) if name in levels else -1 for name in of_name], np.int64)[codes]


def nearest(queries: Bytes, others: Bytes, advance: Advance) -> tuple[Integers, Integers]:
    """Find the nearest of many byte vectors for each of some, by all distances.

    `queries` (n, d) uint8; `others` (m, d) uint8; returns `rows` (n,) int64; returns `squares` (n,) int64.
    """
    distinct = _first_of_equals(others)
    blocks = [slice(begin, begin + _BLOCK) for begin in range(0, len(queries), _BLOCK)]
    ours = _center(queries)
    rows, squares = np.zeros(len(queries), np.int64), np.full(len(queries), np.iinfo(np.int64).max)
    for start in range(0, len(distinct), _OTHERS):
        among = distinct[start : start + _OTHERS]
        theirs = _center(others[among])
        lengths = (theirs**2).sum(axis=1)
        for block in blocks:
            # without the part that all have in common
            near = among[np.argmin(lengths - 2 * (ours[block] @ theirs.T), axis=1)]
            distances = _squares(queries[block], others[near])
            better = distances < squares[block]
            rows[block] = np.where(better, near, rows[block])
            squares[block] = np.where(better, distances, squares[block])
        advance(len(among))
    advance(len(others) - len(distinct))
    return rows, squares


# -- inside ------------------------------------------------------------------------------------------------------------


def _beside(root: Path | None) -> Iterator[Path | None]:
    if root is not None:
        yield root
        if os.path.isdir(beside := root.absolute().parent / "ut-zap50k"):
            yield beside
    yield None


def _kept(path: Path, pairs: int) -> npt.NDArray[np.float64] | None:
    """Row and distance of each match, (pairs, 2); None where there is no such file, or another one."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    # the header is compared, never parsed
    head = npy_header((pairs, 2), "float64")
    if len(content) != len(head) + 16 * pairs or not content.startswith(head):
        return None
    matches = np.frombuffer(content, "<f8", offset=len(head)).reshape(pairs, 2)
    sound = np.isfinite(matches).all() and (matches >= 0).all() and (matches[:, 0] == np.floor(matches[:, 0])).all()
    return matches if sound else None


def _first_of_equals(vectors: Bytes) -> Integers:
    """Rows of vectors that no row before is equal to; a digest of each is kept rather than a copy of it."""
    rows: dict[bytes, list[int]] = {}
    firsts = []
    for row, vector in enumerate(vectors):
        alike = rows.setdefault(hashlib.blake2b(vector.tobytes(), digest_size=16).digest(), [])
        if not any(np.array_equal(vectors[other], vector) for other in alike):
            alike.append(row)
            firsts.append(row)
    return np.array(firsts, np.int64)


def _center(values: Bytes) -> npt.NDArray[np.float32]:
    # numbers around zero lose less of their differences
    return values.astype(np.float32) - np.float32(128)


def _squares(a: Bytes, b: Bytes) -> Integers:
    apart = a.astype(np.int32) - b
    squares: Integers = np.einsum("ij,ij->i", apart, apart, dtype=np.int64)
    return squares


def _thumbnails(images: Images, shrink: Callable[[Bytes], Sequence[Bytes]], what: str) -> Bytes:
    """Shrunk versions of all images, (rows, versions, 3072)."""
    thumbnails: list[Bytes] = []
    with progress(len(images), f"shrinking {what}", "rows") as advance:
        for start in range(0, len(images), _IMAGES):
            items = images.take(np.arange(start, min(start + _IMAGES, len(images))))
            thumbnails.append(np.stack(parallel(lambda item: np.stack(shrink(decode(*item, 3))), items)))
            advance(len(items))
    return np.concatenate(thumbnails)


def _shapes(image: Bytes) -> list[Bytes]:
    """The image stretched to a square, and padded with white to one."""
    height, width = image.shape[:2]
    side = max(height, width)
    padded = np.full((side, side, 3), 255, np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    padded[top : top + height, left : left + width] = image
    return [_shrunk(image), _shrunk(padded)]


def _shrunk(image: Bytes) -> Bytes:
    from PIL import Image

    small = Image.fromarray(np.ascontiguousarray(image)).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC)
    return np.asarray(small).reshape(-1)
