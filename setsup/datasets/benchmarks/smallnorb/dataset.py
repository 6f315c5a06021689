"""SmallNORB: stereo pictures of 50 toys, read from the six published binary-matrix files."""

import logging
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.benchmarks.smallnorb.tree import FILE, SmallNorbTree
from setsup.datasets.dataset import Dataset, Modality, fetch_request, gather
from setsup.datasets.formats.binary_matrix import BinaryMatrix
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded
from setsup.files.prepared import PreparedArray
from setsup.progress import Advance

__all__ = ["SmallNorb", "open", "prepare"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

_SPLITS = ("train", "test")
_STEMS = ("smallnorb-5x46789x9x18x6x2x96x96-training", "smallnorb-5x01235x9x18x6x2x96x96-testing")
_INSTANCES = ((4, 6, 7, 8, 9), (0, 1, 2, 3, 5))  # of every category, in the training and the testing files
_SIDE = 96
_PICTURE = (_SIDE, _SIDE, 1)
_CATEGORIES = ("animal", "human", "airplane", "truck", "car")
_CAMERAS = ("left", "right")
# what a column of the info files may hold, and how far apart its values are
_STORED = {"instance": (10, 1), "elevation": (9, 1), "azimuth": (18, 2), "lighting": (6, 1)}
_BLOCK_PAIRS = 1024  # 19 MB of pictures

_log = logging.getLogger("setsup")


@dataclass(slots=True)
class _Reader:
    """What one process has open."""

    lock: Lock = field(default_factory=Lock)
    looked: bool = False
    whole: Array | None = None


class SmallNorb(Dataset):
    """Pictures of toys: category, instance within it, elevation, azimuth, lighting, camera, and the published split.

    A row is a picture, so that sets can hold or vary the camera: row 2·p is the left picture of pair p, row 2·p + 1
    the right one, the pairs of the training files first. Modalities are grey (96, 96, 1) uint8: ``image``, the picture
    of the row, and ``left`` and ``right``, those of its pair, for methods that take both. Unpacked files are mapped
    into memory. Gzipped ones come from the array that :func:`prepare` makes, else they are unpacked in memory, once a
    process, which is said.

    Parameters
    ----------
    folder : Path or str
        Folder with the six files, as published (``.mat.gz``) or unpacked (``.mat``).
    root : Path or str, optional
        What the user gave as root, for the command that messages name.

    Raises
    ------
    DataError
        When a file is missing, damaged, not what its name says, or holds a toy of the other split.

    """

    name = "smallnorb"

    def __init__(self, folder: Path | str, root: Path | str | None = None) -> None:
        self.folder = Path(folder).absolute()
        self._option = "" if root is None else f" --root {shlex.quote(str(root))}"
        self._parts = [_opened(self.folder, f"{stem}-dat", "u1", (2, _SIDE, _SIDE)) for stem in _STEMS]
        columns = [_labels(self.folder, number, part) for number, part in enumerate(self._parts)]
        self.factors = _table(columns)
        self.modalities = {name: Modality(_PICTURE, "uint8", color="grey") for name in ("image", *_CAMERAS)}
        packed = tuple(part.path for part in self._parts)
        shape = (len(self.factors), *_PICTURE)
        self._prepared = PreparedArray(self.folder / "smallnorb", "images", shape, "uint8", packed)
        self._readers: dict[int, _Reader] = {}

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        return {name: self._pictures(_viewed(rows, name)) for name in names}

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Write pictures into arrays; see :meth:`setsup.datasets.Dataset.fetch_into`."""
        rows, names = fetch_request(self, indices, tuple(out))
        for name in names:
            self._pictures(_viewed(rows, name), out[name])

    def prepare(self) -> Path:
        """Unpack the pictures into an array that is mapped into memory; see :func:`prepare`."""
        from setsup.files.prepare import prepare_array
        from setsup.progress import progress

        if not any(part.packed for part in self._parts):
            return self._parts[0].path.parent
        with progress(len(self), f"preparing {self.name}", "rows") as advance:
            found = self._converted(prepare_array, advance)
        self._readers.pop(os.getpid(), None)  # from now on the array is read
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what this process has open."""
        return {**self.__dict__, "_readers": {}}

    def __repr__(self) -> str:
        """Show the folder and the number of rows."""
        return f"SmallNorb({str(self.folder)!r}, {len(self):,} rows)"

    def _converted(self, convert: Any, advance: Advance) -> Path:
        train, test = self._parts
        first = 2 * len(train)
        with train.rows() as of_train, test.rows() as of_test:

            def fill(start: int, stop: int, out: Array) -> None:
                pairs = out.reshape(-1, 2, _SIDE, _SIDE)
                until = min(stop, first)
                if start < first:
                    of_train(start // 2, until // 2, pairs[: (until - start) // 2])
                if stop > first:
                    begin = max(start, first)
                    of_test((begin - first) // 2, (stop - first) // 2, pairs[(begin - start) // 2 :])

            found: Path = convert(self._prepared, 2 * _BLOCK_PAIRS, fill, None, advance)
        return found

    def _pictures(self, rows: Rows, out: Array | None = None) -> Array:
        # keyed by process: a forked child must not use its parent's locks
        reader = self._readers.get(os.getpid()) or self._readers.setdefault(os.getpid(), _Reader())
        if not reader.looked:
            with reader.lock:
                if not reader.looked:  # another thread may have looked meanwhile
                    reader.whole = self._opened()
                    reader.looked = True
        if reader.whole is not None:
            return gather(reader.whole, rows, out)
        return _joined(partial(self._part, 0), partial(self._part, 1), 2 * len(self._parts[0]), rows, out)

    def _opened(self) -> Array | None:
        packed = [part for part in self._parts if part.packed]
        if not packed:
            return None
        prepared = self._prepared.open()
        if prepared is None:
            outdated = self._prepared.outdated()
            why = f" ({outdated} was made of other files)" if outdated else ""
            _log.warning(
                "every process unpacks the pictures of %s in memory, up to %d MB%s; `setsup prepare smallnorb%s` "
                "unpacks them once",
                *(self.folder, -(-len(self) * _SIDE * _SIDE // 1_000_000), why, self._option),
            )
        return prepared

    def _part(self, number: int) -> Array:
        return self._parts[number].array().reshape(-1, *_PICTURE)


def open(root: Path | str | None = None) -> SmallNorb | SmallNorbTree:
    """Open SmallNORB.

    Parameters
    ----------
    root : Path, str or None
        Folder with the six files, or with a folder ``smallnorb`` or ``small_norb`` that has them; None for the usual
        places. Where they are not there, a tree of JPEGs as LORD reads it, ``<category>/<instance>/azimuth…_lt.jpg``,
        in a folder, zip or tar: see :class:`~setsup.datasets.benchmarks.smallnorb.tree.SmallNorbTree`.

    Raises
    ------
    DataError
        When the files are not there (with the command that fetches them), or are damaged.

    """
    from setsup.files import find_root

    wanted = [_names(f"{stem}-{what}") for stem in _STEMS for what in ("dat", "cat", "info")]
    try:
        folder = find_root("smallnorb", root, wanted)
    except DataError as error:
        try:
            tree = find_members("smallnorb", None if root is None else expanded(root), {FILE: "azimuth*_lt.jpg"})
        except DataError:
            raise error from None
        return SmallNorbTree(tree, _factors())
    return SmallNorb(folder, root)


def prepare(root: Path | str | None = None) -> Path:
    """Unpack the pictures once into an array beside the files, which ``fetch`` then maps into memory.

    Works block by block, shows its progress, and killed and started again goes on where it was. Files that are
    unpacked already need no array, and none is made of them.

    Parameters
    ----------
    root : Path, str or None
        As for :func:`open`.

    Returns
    -------
    Path
        The array, a ``.npy`` file; or the folder of the files, where all are unpacked, or that of the tree.

    Raises
    ------
    DataError
        As for :func:`open`, and where the disk is full or may not be written.

    """
    return open(root).prepare()


def _names(stem: str) -> list[str]:
    return [f"{stem}.mat.gz", f"{stem}.mat"]


def _opened(folder: Path, stem: str, dtype: str, shape: tuple[int, ...]) -> BinaryMatrix:
    there = [folder / name for name in _names(stem) if os.path.exists(folder / name)]
    if not there:
        raise DataError(f"{folder} has no {stem}.mat.gz, nor is it there as {stem}.mat")
    # the unpacked file first: it is mapped into memory, which costs nothing
    file = BinaryMatrix(there[-1])
    if file.dtype != np.dtype(dtype) or file.shape[1:] != shape:
        expected = ", ".join(["N", *map(str, shape)])
        raise DamagedFile(
            f"{file.path} holds {file.dtype} of the shape {file.shape}; {np.dtype(dtype)} ({expected}) was expected"
        )
    return file


def _labels(folder: Path, number: int, pictures: BinaryMatrix) -> dict[str, Array]:
    """Codes of the factors that the files of a split store, one a pair."""
    stem = _STEMS[number]
    category, info = _opened(folder, f"{stem}-cat", "<i4", ()), _opened(folder, f"{stem}-info", "<i4", (4,))
    for file in (category, info):
        if len(file) != len(pictures):
            raise DataError(
                f"{pictures.path} has {len(pictures):,} pairs of pictures, but {file.path} has {len(file):,} rows; "
                "they do not belong together: fetch both again"
            )
    columns = {"category": _codes(category, "category", category.array(), len(_CATEGORIES), 1)}
    for place, (name, (count, step)) in enumerate(_STORED.items()):
        columns[name] = _codes(info, name, info.array()[:, place], count, step)
    other = np.setdiff1d(columns["instance"], _INSTANCES[number])
    if other.size:
        raise DataError(
            f"{info.path} holds instance {other[0]}, where {', '.join(map(str, _INSTANCES[number]))} were expected; "
            "the training and testing files are swapped, or not the published ones: fetch them again"
        )
    _check_once(columns, category, info)
    return columns


def _check_once(columns: dict[str, Array], category: BinaryMatrix, info: BinaryMatrix) -> None:
    """Every toy is photographed once in each position, which tells the categories of other pictures."""
    sizes = (len(_CATEGORIES), *(count for count, _ in _STORED.values()))
    which = np.ravel_multi_index(tuple(columns.values()), sizes)
    _, first, counts = np.unique(which, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = int(first[np.argmax(counts > 1)])
        other = int(np.flatnonzero(which == which[row])[1])
        raise DataError(
            f"{category.path} and {info.path} say the same of the pairs {row} and {other}, but every toy is "
            "photographed once in each position: these are the categories of other pictures (training and testing "
            "swapped?); fetch both again"
        )


def _codes(file: BinaryMatrix, name: str, stored: Array, count: int, step: int) -> npt.NDArray[np.uint8]:
    wrong = (stored < 0) | (stored >= count * step) | (stored % step != 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        allowed = f"{', '.join(map(str, range(0, 3 * step, step)))}, …, {(count - 1) * step}"
        raise DamagedFile(f"{file.path}: the {name} of row {row} is {stored[row]}; one of {allowed} was expected")
    return (stored // step).astype(np.uint8)


def _factors() -> tuple[Factor, ...]:
    return (
        Factor("category", Kind.NOMINAL, _CATEGORIES),
        Factor("instance", Kind.NOMINAL, tuple(range(10)), within="category"),
        Factor("elevation", Kind.ORDINAL, tuple(range(30, 75, 5)), unit="deg"),
        Factor("azimuth", Kind.CYCLIC, tuple(range(0, 360, 20)), unit="deg", period=360.0),
        Factor("lighting", Kind.NOMINAL, tuple(range(6))),
        Factor("camera", Kind.NOMINAL, _CAMERAS),
        Factor("split", Kind.NOMINAL, _SPLITS, role="split"),
    )


def _table(columns: list[dict[str, Array]]) -> FactorTable:
    pairs = [len(part["category"]) for part in columns]
    found = {name: np.repeat(np.concatenate([part[name] for part in columns]), 2) for name in columns[0]}
    found["camera"] = np.tile(np.arange(2, dtype=np.uint8), sum(pairs))
    found["split"] = np.repeat(np.arange(2, dtype=np.uint8), [2 * count for count in pairs])
    return FactorTable(list(_factors()), found)


def _viewed(rows: Rows, modality: str) -> Rows:
    """Numbers of the pictures that a modality shows of rows."""
    if modality == "image":
        return rows
    return rows | 1 if modality == "right" else rows & ~1


def _joined(train: Any, test: Any, first: int, rows: Rows, out: Array | None) -> Array:
    """Copy rows out of two arrays, of which the second begins with row ``first``; each is opened only when needed."""
    if not rows.size:
        return np.empty((*rows.shape, *_PICTURE), np.uint8)
    beyond = rows >= first
    if not beyond.any():
        return gather(train(), rows, out)
    if beyond.all():
        return gather(test(), rows - first, out)
    if out is not None and not out.flags.c_contiguous:
        out[...] = _joined(train, test, first, rows, None)
        return out
    found = np.empty((*rows.shape, *_PICTURE), np.uint8) if out is None else out
    # picture by picture: gathering either part and placing it would copy everything twice
    into, sources = found.reshape(-1).data, (train().reshape(-1).data, test().reshape(-1).data)
    size, at = _SIDE * _SIDE, 0
    for row, second in zip(rows.reshape(-1).tolist(), beyond.reshape(-1).tolist(), strict=True):
        begin = (row - first if second else row) * size
        into[at : at + size] = sources[second][begin : begin + size]
        at += size
    return found
