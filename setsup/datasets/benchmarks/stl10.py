"""STL-10: 113,000 images of 96 × 96 pixels, 13,000 of them labelled, read from the published binary files.

Convention
----------
A file of images is raw uint8 without a header: for each image the red, green and blue channels, each stored column by
column. Labels are uint8, 1 to 10.
"""

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.inconsistent import count_mismatch, replaced
from setsup.datasets.adapters.packed_release import PackedRelease
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.lfs import refuse_pointer
from setsup.files.mapped import check_mapped
from setsup.files.texts import text_of

__all__ = ["Stl10", "open", "prepare"]

_CATEGORIES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
_SPLITS = ("train", "test", "unlabeled")
_SIDE = 96
_STORED = (3, _SIDE, _SIDE)  # channel, column, row
_IMAGE = (_SIDE, _SIDE, 3)
_HOLDS = {rf"{split}_{what}\.bin$": f"{split}_{what}.bin" for split in ("train", "test") for what in "Xy"}
_FOLDS, _NAMES = "fold_indices.txt", "class_names.txt"
_MOST_LABELS, _MOST_TEXT = 1 << 24, 1 << 22
_RELEASE = PackedRelease("stl10", ("stl10_binary.tar.gz",), "stl10_unpacked", _HOLDS)
_FOLD_COUNT = 10
_BYTES = 3 * _SIDE * _SIDE


class Stl10(BaseDataset):
    """Images of ten categories, and ten times as many without labels.

    Rows are the images of ``train_X.bin``, of ``test_X.bin`` and of ``unlabeled_X.bin``, in this order: in the
    published files 0 to 4,999, 5,000 to 12,999 and 13,000 to 112,999. Factors are ``category`` (unknown in the last
    part), ``split``, and ``fold_0`` … ``fold_9``, whose one level, train, marks the 1,000 training images of each of
    the ten folds; these overlap. The only modality is ``image``, (96, 96, 3) uint8 sRGB, mapped from the files.

    References
    ----------
    .. [1] Coates, Lee, Ng, "An Analysis of Single-Layer Networks in Unsupervised Feature Learning", AISTATS 2011.

    """

    name = "stl10"

    def __init__(self, members: MemberIndex) -> None:
        self._paths = [_path(members, f"{split}_X.bin") for split in _SPLITS if f"{split}_X.bin" in members]
        counts = [_count(path) for path in self._paths]
        self._starts: Rows = np.cumsum([0, *counts])
        self._source = self.folder
        self.factors = _table(members, counts)
        self.modalities = {"image": Modality(_IMAGE, "uint8", color="srgb")}

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._paths[0].parent

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        maps, parts = self._maps, np.searchsorted(self._starts, rows, side="right") - 1
        for part in np.unique(parts).tolist():
            check_mapped(maps[part])
        # channel by channel, which numpy turns more than twice as fast as all three at once
        for slot, part, position in zip(out, parts.tolist(), (rows - self._starts[parts]).tolist(), strict=True):
            for channel, stored in enumerate(maps[part][position]):
                slot[..., channel] = stored.T
        return out

    @per_process
    def _maps(self) -> list[Array]:
        return [_map(path, count) for path, count in zip(self._paths, np.diff(self._starts).tolist(), strict=True)]


def open(root: Path | str | None = None) -> Stl10:
    """Open STL-10.

    `root`: folder with the unpacked files, or with a subfolder ``stl10_binary`` that contains them; None for the
    default folders. The unlabelled images, the folds and the names of the categories may be missing. :func:`prepare`
    unpacks the published archive.
    """
    return Stl10(_RELEASE.find(root))


def prepare(root: Path | str | None = None) -> Path:
    """Unpack ``stl10_binary.tar.gz`` once, into a folder ``stl10_unpacked`` that :func:`open` finds.

    The folder is next to the archive or, if that location is read-only, in the cache folder.
    """
    return Stl10(_RELEASE.unpack(root)).folder


def _path(members: MemberIndex, name: str) -> Path:
    path = members.path(members.place(name))
    if path is None:
        raise DataError(f"{members.source} is an archive, but its files must be mapped into memory; unpack it")
    return path


def _count(path: Path) -> int:
    refuse_pointer(path)
    size = path.stat().st_size
    if not size or size % _BYTES:
        raise DamagedFile(
            f"{path} has {size:,} bytes; expected a positive multiple of {_BYTES:,}, the size of an image"
        )
    return size // _BYTES


def _map(path: Path, count: int) -> Array:
    try:
        if path.stat().st_size == count * _BYTES:
            return np.asarray(np.memmap(path, np.uint8, "r", shape=(count, *_STORED)))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    raise replaced(path)


def _table(members: MemberIndex, counts: list[int]) -> FactorTable:
    total, labelled = sum(counts), counts[0] + counts[1]
    category = np.full(total, 255, np.uint8)
    category[:labelled] = np.concatenate(
        [_labels(members, split, count) for split, count in zip(_SPLITS[:2], counts[:2], strict=True)]
    )
    columns = {
        Factor("category", Kind.NOMINAL, _categories(members)): category,
        Factor("split", Kind.NOMINAL, _SPLITS, role="split"): np.repeat(np.arange(len(counts), dtype=np.uint8), counts),
    }
    for number, rows in enumerate(_folds(members, counts[0])):
        fold = np.full(total, 255, np.uint8)
        fold[rows] = 0
        columns[Factor(f"fold_{number}", Kind.NOMINAL, ("train",), role="split")] = fold
    return table_of(columns)


def _labels(members: MemberIndex, split: str, count: int) -> npt.NDArray[np.uint8]:
    """Codes of the categories, from labels that count from 1."""
    member = members.place(f"{split}_y.bin")
    label = members.label(member)
    stored = np.frombuffer(members.read(member, _MOST_LABELS), np.uint8)
    if len(stored) != count:
        raise count_mismatch(f"{split}_X.bin", count, label, len(stored))
    wrong = (stored < 1) | (stored > len(_CATEGORIES))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DamagedFile(f"{label}: the label of image {row} is {stored[row]}; expected 1 to 10")
    return stored - np.uint8(1)


def _categories(members: MemberIndex) -> tuple[str, ...]:
    text = _text(members, _NAMES)
    if text is None:
        return _CATEGORIES
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if names != _CATEGORIES:
        label = members.label(members.place(_NAMES))
        raise DamagedFile(f"{label} is not the list of categories; expected {', '.join(_CATEGORIES)}, one per line")
    return names


def _folds(members: MemberIndex, count: int) -> list[Rows]:
    """Rows of each fold: a line of indices that count from 0."""
    text = _text(members, _FOLDS)
    if text is None:
        return []
    label = members.label(members.place(_FOLDS))
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) != _FOLD_COUNT:
        raise DamagedFile(f"{label} has {len(lines)} lines; expected one line for each of {_FOLD_COUNT} folds")
    for number, line in enumerate(lines):
        odd = [word for word in line if not re.fullmatch("[0-9]{1,9}", word) or int(word) >= count]
        if odd or len(set(line)) != len(line):
            what = (
                f"has {odd[0][:20]!r}, which is not the number of a training image" if odd else "lists an image twice"
            )
            raise DamagedFile(f"{label}: line {number + 1} {what}; expected numbers from 0 to {count - 1:,}")
    return [np.array(line, np.int64) for line in lines]


def _text(members: MemberIndex, name: str) -> str | None:
    """A text of the release, None where it is missing."""
    if name not in members:
        return None
    member = members.place(name)
    return text_of(members.read(member, _MOST_TEXT), members.label(member))
