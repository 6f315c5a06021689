"""SmallNORB: stereo images of 50 toys, read from the six published binary-matrix files."""

import logging
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.inconsistent import count_mismatch
from setsup.datasets.adapters.prepared_images import convert, prepare_command
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.smallnorb.tree import FILE, SmallNorbTree
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.binary_matrix import BinaryMatrix
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.releases import find_members
from setsup.files.prepared import PreparedArray

__all__ = ["SmallNorb", "open", "prepare"]

_SPLITS = ("train", "test")
STEMS = ("smallnorb-5x46789x9x18x6x2x96x96-training", "smallnorb-5x01235x9x18x6x2x96x96-testing")
INSTANCES = ((4, 6, 7, 8, 9), (0, 1, 2, 3, 5))  # of every category, in the training and the testing files
_SIDE = 96
_IMAGE = (_SIDE, _SIDE, 1)
_CATEGORIES = ("animal", "human", "airplane", "truck", "car")
_CAMERAS = ("left", "right")
# what a column of the info files may hold, and how far apart its values are
_STORED = {"instance": (10, 1), "elevation": (9, 1), "azimuth": (18, 2), "lighting": (6, 1)}
_BLOCK_PAIRS = 1024  # 19 MB of images

_log = logging.getLogger("setsup")


class SmallNorb(BaseDataset):
    """Images of toys: category, instance within it, elevation, azimuth, lighting, camera, and the published split.

    A row is an image, so the camera can be fixed or varying in a set: row 2·p is the left image of pair p, row 2·p + 1
    the right one, the pairs of the training files first. Modalities are grayscale (96, 96, 1) uint8: ``image``, the
    image of the row, and ``left`` and ``right``, those of its pair, for methods that take both. Unpacked files are
    mapped into memory. Gzipped files are read from the array that :func:`prepare` makes; without it each process
    unpacks them in memory, with a warning.

    Parameters
    ----------
    folder : Path or str
        Folder with the six files, as published (``.mat.gz``) or unpacked (``.mat``).
    root : Path or str, optional
        Root passed by the user, for the command in messages.

    Raises
    ------
    DataError
        When a file is missing, damaged or not the expected one, or contains a toy of the other split.

    """

    name = "smallnorb"

    def __init__(self, folder: Path | str, root: Path | str | None = None) -> None:
        self.folder = self._source = Path(folder).absolute()
        self._command = prepare_command(self.name, root)
        self._parts = [_open_file(self.folder, f"{stem}-dat", "u1", (2, _SIDE, _SIDE)) for stem in STEMS]
        columns = [_labels(self.folder, number, part) for number, part in enumerate(self._parts)]
        self.factors = _table(columns)
        self.modalities = {name: Modality(_IMAGE, "uint8", color="grey") for name in ("image", *_CAMERAS)}
        packed = tuple(part.path for part in self._parts)
        shape = (len(self.factors), *_IMAGE)
        self._prepared = PreparedArray(self.folder / "smallnorb", "images", shape, "uint8", packed)

    def prepare(self) -> list[Path]:
        """Unpack the images into an array that is mapped into memory; see :func:`prepare`."""
        if not any(part.packed for part in self._parts):
            return []
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

            path = convert(self._prepared, self.name, 2 * _BLOCK_PAIRS, fill)
        del self._whole  # from now on the array is read
        return [path]

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        pair = rows if name == "image" else rows | 1 if name == "right" else rows & ~1
        whole = self._whole
        if whole is not None:
            return gather(whole, pair, out)
        first = 2 * len(self._parts[0])
        beyond = pair >= first
        if not beyond.any():
            return gather(self._part(0), pair, out)
        if beyond.all():
            return gather(self._part(1), pair - first, out)
        # image by image: to gather from either part and place the rows would copy everything twice
        into, sources = out.reshape(-1).data, [self._part(number).reshape(-1).data for number in range(2)]
        size, at = _SIDE * _SIDE, 0
        for row, second in zip(pair.tolist(), beyond.tolist(), strict=True):
            begin = (row - first if second else row) * size
            into[at : at + size] = sources[second][begin : begin + size]
            at += size
        return out

    @per_process
    def _whole(self) -> Array | None:
        """The prepared array; None where unpacked files are mapped, or where none was prepared."""
        if not any(part.packed for part in self._parts):
            return None
        prepared = self._prepared.open()
        if prepared is None:
            outdated = self._prepared.outdated()
            why = f" ({outdated} was created from other files)" if outdated else ""
            _log.warning(
                "each process unpacks the images of %s into memory, up to %d MB%s; run %s once to unpack them",
                *(self.folder, -(-len(self) * _SIDE * _SIDE // 1_000_000), why, self._command),
            )
        return prepared

    def _part(self, number: int) -> Array:
        return self._parts[number].array().reshape(-1, *_IMAGE)


def open(root: Path | str | None = None) -> SmallNorb | SmallNorbTree:
    """Open SmallNORB.

    Parameters
    ----------
    root : Path, str or None
        Folder with the six files, or with a subfolder ``smallnorb`` or ``small_norb`` that contains them; None for the
        default folders. If they are missing, a tree of JPEG files in the layout that LORD uses,
        ``<category>/<instance>/azimuth…_lt.jpg``, in a folder, zip or tar: see
        :class:`~setsup.datasets.benchmarks.smallnorb.tree.SmallNorbTree`.

    Raises
    ------
    DataError
        When the files are missing (the message shows the command that fetches them), or are damaged.

    """
    from setsup.files import find_root

    wanted = [_names(f"{stem}-{what}") for stem in STEMS for what in ("dat", "cat", "info")]
    try:
        folder = find_root("smallnorb", root, wanted)
    except DataError as error:
        try:
            tree = find_members("smallnorb", root, {FILE: "azimuth*_lt.jpg"})
        except DataError:
            raise error from None
        return SmallNorbTree(tree, _factors())
    return SmallNorb(folder, root)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Unpack the images once into an array next to the files, which ``fetch`` then maps into memory.

    Works block by block; an interrupted run resumes. Unpacked files need no array.

    Parameters
    ----------
    root : Path, str or None
        As for :func:`open`.

    Returns
    -------
    list of Path
        The array, a ``.npy`` file; an empty list if the files are unpacked or are JPEG files.

    Raises
    ------
    DataError
        As for :func:`open`, and when the disk is full or not writable.

    """
    return open(root).prepare()


def _names(stem: str) -> list[str]:
    return [f"{stem}.mat.gz", f"{stem}.mat"]


def _open_file(folder: Path, stem: str, dtype: str, shape: tuple[int, ...]) -> BinaryMatrix:
    there = [folder / name for name in _names(stem) if os.path.exists(folder / name)]
    if not there:
        raise DataError(
            f"{folder} contains neither {stem}.mat.gz nor {stem}.mat; fetch the dataset again, or pass the folder that "
            "contains all of its files"
        )
    # the unpacked file first: it is mapped into memory, which costs nothing
    file = BinaryMatrix(there[-1])
    if file.dtype != np.dtype(dtype) or file.shape[1:] != shape:
        expected = ", ".join(["N", *map(str, shape)])
        raise DamagedFile(
            f"{file.path} has dtype {file.dtype} and shape {file.shape}; expected {np.dtype(dtype)} of shape "
            f"({expected})"
        )
    return file


def _labels(folder: Path, number: int, images: BinaryMatrix) -> dict[str, Array]:
    """Codes of the factors that the files of a split store, one per pair."""
    stem = STEMS[number]
    category, info = _open_file(folder, f"{stem}-cat", "<i4", ()), _open_file(folder, f"{stem}-info", "<i4", (4,))
    for file in (category, info):
        if len(file) != len(images):
            raise count_mismatch(images.path, len(images), file.path, len(file), "pairs of images")
    columns = {"category": _codes(category, "category", category.array(), len(_CATEGORIES), 1)}
    for column, (name, (count, step)) in enumerate(_STORED.items()):
        columns[name] = _codes(info, name, info.array()[:, column], count, step)
    other = np.setdiff1d(columns["instance"], INSTANCES[number])
    if other.size:
        raise DataError(
            f"{info.path} contains instance {other[0]}; expected one of {', '.join(map(str, INSTANCES[number]))}; "
            "the training and testing files may be swapped: fetch them again"
        )
    _check_once(columns, category, info)
    return columns


def _check_once(columns: dict[str, Array], category: BinaryMatrix, info: BinaryMatrix) -> None:
    """Every toy is photographed once in each position, which tells the categories of other images."""
    sizes = (len(_CATEGORIES), *(count for count, _ in _STORED.values()))
    which = np.ravel_multi_index(tuple(columns.values()), sizes)
    _, first, counts = np.unique(which, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = int(first[np.argmax(counts > 1)])
        other = int(np.flatnonzero(which == which[row])[1])
        raise DataError(
            f"{category.path} and {info.path} describe the pairs {row} and {other} identically, although each toy was "
            "photographed only once in each position, so the files may belong to different images (training and "
            "testing swapped); fetch both again"
        )


def _codes(file: BinaryMatrix, name: str, stored: Array, count: int, step: int) -> npt.NDArray[np.uint8]:
    wrong = (stored < 0) | (stored >= count * step) | (stored % step != 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        allowed = f"{', '.join(map(str, range(0, 3 * step, step)))}, …, {(count - 1) * step}"
        raise DamagedFile(f"{file.path}: the {name} of row {row} is {stored[row]}; expected one of {allowed}")
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
    table = {name: np.repeat(np.concatenate([part[name] for part in columns]), 2) for name in columns[0]}
    table["camera"] = np.tile(np.arange(2, dtype=np.uint8), sum(pairs))
    table["split"] = np.repeat(np.arange(2, dtype=np.uint8), [2 * count for count in pairs])
    return FactorTable(list(_factors()), table)
