"""Edges2Shoes: 50,025 photographs of shoes, each next to the output of an edge detector.

A file ``train/<n>_AB.jpg`` contains both, 256 × 256 pixels each, the edges on the left. Each is a row, so a set may be
drawn from one domain; the two rows of a file are adjacent, the photograph first, as in DCoDR.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from setsup.arrays import Array, Pixels, Rows
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_files import ReleaseDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.benchmarks.edges2shoes.matching import Label, find_zappos
from setsup.datasets.dataset import Modality
from setsup.datasets.images import check_size, decode, parallel, resize
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded

__all__ = ["Edges2Shoes", "open", "prepare"]

Listed = tuple[Rows, tuple[str, ...], Rows]

_DOMAINS = ("photo", "edges")
_PARTS = ("train", "val")
_SIDE = 256
_FILES = r"(?P<split>train|val)/(?P<number>[0-9]{1,9})_AB\.jpg"
_ARCHIVES = ("edges2shoes.tar", "edges2shoes.zip")

_log = logging.getLogger("setsup")


class Edges2Shoes(ReleaseDataset):
    """Photographs of shoes and their edges, as returned by :func:`open`.

    Factors are ``domain`` (``photo`` or ``edges``), the key ``pair``, such as ``train/17``, and ``split`` as published,
    in which no pair is in two parts. If UT Zappos50K is available and :func:`prepare` was called, there are also
    ``shoe_type``, ``gender``, ``closure``, ``material`` and ``toe_style``, taken from its nearest image as in DCoDR,
    and the key ``match_distance``, the distance of that image (root mean squared difference of 32 × 32 pixels, in
    levels of 255): labels of distant matches are unreliable.

    The only modality is ``image``, (256, 256, 3) uint8 sRGB. A file is decoded once if both its rows are fetched
    together. Rows 2k and 2k + 1 are the photograph and the edges of a pair; pairs are in the order of their numbers,
    ``train`` first.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    size : (height, width), optional
        Size that images are resized to.
    dilate : int
        As for :func:`open`.
    labels : mapping of str to (levels, (pairs,) codes)
        Result of :meth:`~setsup.datasets.benchmarks.edges2shoes.matching.Zappos.labels`.
    listed : tuple, optional
        Files that :func:`open` has already listed: positions, names of the pairs, and parts.

    Raises
    ------
    DataError
        When no file has a published name, or `dilate` is out of range.

    """

    name = "edges2shoes"

    def __init__(
        self,
        members: MemberIndex,
        size: tuple[int, int] | None = None,
        dilate: int = 0,
        labels: Mapping[str, Label] | None = None,
        listed: Listed | None = None,
    ) -> None:
        if isinstance(dilate, bool) or not isinstance(dilate, int) or not 0 <= dilate <= 16:
            raise DataError(f"dilate must be an integer from 0 to 16, not {dilate!r}")
        self._source, self._size, self._dilate = members.source, size, dilate
        places, pairs, parts = listed or _list_pairs(members)
        self._images = MemberImages(members, np.repeat(places, 2))
        self.factors = _table(pairs, parts, labels or {})
        self.modalities = {"image": Modality((*(size or (_SIDE, _SIDE)), 3), "uint8", color="srgb")}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        pairs, first, inverse = np.unique(rows // 2, return_index=True, return_inverse=True)
        # the rows of each file together
        order = np.argsort(inverse, kind="stable")
        wanted = np.split(order, np.searchsorted(inverse[order], np.arange(1, len(pairs))))
        items = self._images.take(rows[first])

        def fill(turn: int) -> None:
            source, label = items[turn]
            file = decode(source, label, 3)
            if file.shape != (_SIDE, 2 * _SIDE, 3):
                raise DataError(
                    f"{label} is {file.shape[0]} × {file.shape[1]} pixels (height × width); expected {_SIDE} × "
                    f"{2 * _SIDE}; fetch it again"
                )
            halves: dict[int, Pixels] = {}
            for slot in wanted[turn].tolist():
                domain = int(rows[slot]) % 2
                if domain not in halves:
                    halves[domain] = self._half(file, domain)
                out[slot] = halves[domain]

        parallel(fill, range(len(items)))
        return out

    def _half(self, file: Pixels, domain: int) -> Pixels:
        if domain == _DOMAINS.index("photo"):
            return resize(_photo(file), self._size)
        return resize(_thicken(file[:, :_SIDE], self._dilate), self._size)


def open(
    root: Path | str | None = None,
    size: tuple[int, int] | None = None,
    dilate: int = 0,
    zappos: Path | str | None = None,
) -> Edges2Shoes:
    """Open Edges2Shoes.

    Parameters
    ----------
    root : Path, str or None
        Folder, zip or tar with the folders ``train`` and ``val``, of which one may be missing; None for the default
        folders.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.
    dilate : int
        Number of times that the black edges are dilated before resizing: each time a pixel takes the darkest value of
        its 3 × 3 neighbourhood. DCoDR uses 2, at 64 × 64 pixels; its script dilates photographs as well.
    zappos : Path, str or None
        Location of UT Zappos50K, for the labels that :func:`prepare` matched; by default in `root`, next to it, or in
        its own default folders.

    Raises
    ------
    DataError
        When the files are missing (the message shows how to get them), or an argument is out of range.

    """
    size, path = check_size(size), None if root is None else expanded(root)
    members = _find(path)
    listed = _list_pairs(members)
    beside = find_zappos(members, listed[0], path, zappos)
    labels = None if beside is None else beside.labels()
    if beside is not None and labels is None:
        _log.info(
            "%s has no labels yet; run `setsup prepare edges2shoes` to match its photographs with %s",
            *(members.source, beside.images.source),
        )
    return Edges2Shoes(members, size, dilate, labels, listed)


def prepare(root: Path | str | None = None, zappos: Path | str | None = None) -> Path:
    """Match the photographs with the images of UT Zappos50K, to use their labels.

    All photographs are compared with all images, which takes a few minutes. The matches are stored in the cache folder.

    Parameters
    ----------
    root, zappos : Path, str or None
        As for :func:`open`.

    Returns
    -------
    Path
        The file with the matches.

    Raises
    ------
    DataError
        When files of either dataset are missing or damaged, or the cache folder is not writable.

    """
    path = None if root is None else expanded(root)
    members = _find(path)
    beside = find_zappos(members, _list_pairs(members)[0], path, zappos)
    if beside is None:
        raise DataError(
            f"edges2shoes: the labels require ut-zap50k, which was not found in {members.source}, next to it or in the "
            "default folders; run `setsup fetch ut-zap50k`"
        )
    return beside.prepare(_photo)


def _table(pairs: tuple[str, ...], parts: Rows, labels: Mapping[str, Label]) -> FactorTable:
    columns: dict[Factor, Array] = {
        Factor("domain", Kind.NOMINAL, _DOMAINS): np.tile(np.arange(len(_DOMAINS)), len(pairs))
    }
    for name, (levels, codes) in labels.items():
        kind = Kind.CONTINUOUS if levels is None else Kind.NOMINAL
        columns[Factor(name, kind, levels, role="key" if levels is None else "variation")] = np.repeat(codes, 2)
    columns[Factor("pair", Kind.NOMINAL, pairs, role="key")] = np.repeat(np.arange(len(pairs)), 2)
    columns[Factor("split", Kind.NOMINAL, _PARTS, role="split")] = np.repeat(parts, 2)
    return table_of(columns)


def _find(root: Path | None) -> MemberIndex:
    return find_members("edges2shoes", root, {_FILES: "train/*_AB.jpg"}, _ARCHIVES)


def _list_pairs(members: MemberIndex) -> Listed:
    """Places of the files in the order of their numbers, the names of the pairs, and the part of each."""
    places, groups = members.matching(_FILES)
    parts = np.array([_PARTS.index(part) for part in groups["split"].to_pylist()], np.int64)
    numbers = groups["number"].to_pylist()
    order = np.lexsort([np.array([int(number) for number in numbers], np.int64), parts])
    names = tuple(f"{_PARTS[parts[turn]]}/{numbers[turn]}" for turn in order.tolist())
    return places[order], names, parts[order]


def _photo(file: Pixels) -> Pixels:
    return file[:, file.shape[1] // 2 :]


def _thicken(lines: Pixels, times: int) -> Pixels:
    """Dark lines made thicker by the least value of 3 × 3 pixels, again and again."""
    for axis in (0, 1):
        for _ in range(times):
            before = np.moveaxis(lines, axis, 0)
            after = before.copy()
            np.minimum(after[1:], before[:-1], out=after[1:])
            np.minimum(after[:-1], before[1:], out=after[:-1])
            lines = np.moveaxis(after, 0, axis)
    return lines
