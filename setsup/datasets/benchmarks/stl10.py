"""STL-10: 113,000 pictures of 96 × 96 pixels, of which 13,000 have labels, read from the published binary files.

Convention
----------
A file of pictures is raw uint8 without a header: for each picture its red, green and blue channel, each column after
column. Labels are uint8, 1 to 10.
"""

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, Modality, fetch_request
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import data_places, unpack
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.builds import build_once
from setsup.files.expand_user import expanded
from setsup.files.mapped import check_mapped
from setsup.files.prepared import prepared_place, prepared_places
from setsup.files.texts import text_of

__all__ = ["Stl10", "open", "prepare"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

_CATEGORIES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
_SPLITS = ("train", "test", "unlabeled")
_SIDE = 96
_STORED = (3, _SIDE, _SIDE)  # channel, column, row
_PICTURE = (_SIDE, _SIDE, 3)
_HOLDS = {rf"{split}_{what}\.bin$": f"{split}_{what}.bin" for split in ("train", "test") for what in "Xy"}
_FOLDS, _NAMES = "fold_indices.txt", "class_names.txt"
_MOST_LABELS, _MOST_TEXT = 1 << 24, 1 << 22
_ARCHIVE, _UNPACKED = "stl10_binary.tar.gz", "stl10_unpacked"
_FOLD_COUNT = 10
_BYTES = 3 * _SIDE * _SIDE


class Stl10(Dataset):
    """Pictures of ten categories, and ten times as many without labels.

    Rows are the pictures of ``train_X.bin``, of ``test_X.bin`` and of ``unlabeled_X.bin``, in their order: in the
    published files 0 to 4,999, 5,000 to 12,999 and 13,000 to 112,999. Factors are ``category`` (unknown in the last
    part), ``split``, and ``fold_0`` … ``fold_9``, whose one level, train, marks the 1,000 training pictures of each of
    the ten folds; these overlap. The one modality is ``image``, (96, 96, 3) uint8 sRGB, mapped from the files.

    References
    ----------
    .. [1] Coates, Lee, Ng, "An Analysis of Single-Layer Networks in Unsupervised Feature Learning", AISTATS 2011.

    """

    name = "stl10"

    def __init__(self, members: MemberIndex) -> None:
        self._paths = [_path(members, f"{split}_X.bin") for split in _SPLITS if f"{split}_X.bin" in members]
        self._maps: dict[int, list[Array]] = {}
        counts = [_count(path) for path in self._paths]
        self._starts: Rows = np.cumsum([0, *counts])
        self.factors = _table(members, counts)
        self.modalities = {"image": Modality(_PICTURE, "uint8", color="srgb")}

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        return {name: self._pictures(rows, np.empty((*rows.shape, *_PICTURE), np.uint8)) for name in names}

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Write pictures into arrays; see :meth:`setsup.datasets.Dataset.fetch_into`."""
        rows, names = fetch_request(self, indices, tuple(out))
        for name in names:
            self._pictures(rows, out[name])

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what this process has mapped."""
        return {**self.__dict__, "_maps": {}}

    @property
    def folder(self) -> Path:
        """Where the files lie."""
        return self._paths[0].parent

    def __repr__(self) -> str:
        """Show the folder and the number of rows."""
        return f"Stl10({str(self.folder)!r}, {len(self):,} rows)"

    def _pictures(self, rows: Rows, out: Array) -> Array:
        if not out.flags.c_contiguous:
            out[...] = self._pictures(rows, np.empty(out.shape, np.uint8))
            return out
        flat, slots = rows.reshape(-1), out.reshape(-1, *_PICTURE)
        parts = np.searchsorted(self._starts, flat, side="right") - 1
        opened = self._opened()
        for part in np.unique(parts).tolist():
            check_mapped(opened[part])
        # channel by channel, which numpy turns more than twice as fast as all three at once
        for slot, part, place in zip(slots, parts.tolist(), (flat - self._starts[parts]).tolist(), strict=True):
            for channel, stored in enumerate(opened[part][place]):
                slot[..., channel] = stored.T
        return out

    def _opened(self) -> list[Array]:
        found = self._maps.get(os.getpid())
        if found is None:
            counts = np.diff(self._starts).tolist()
            found = [_mapped(path, count) for path, count in zip(self._paths, counts, strict=True)]
            self._maps[os.getpid()] = found
        return found


def open(root: Path | str | None = None) -> Stl10:
    """Open STL-10.

    `root`: folder with the unpacked files, or with a folder ``stl10_binary`` that has them; None for the usual
    places. The unlabelled pictures, the folds and the names of the categories may be missing. :func:`prepare`
    unpacks the archive as it was published.
    """
    folder = None if root is None else expanded(root)
    archive = _archive(folder)
    unpacked = [place for place in _unpacked(archive) if place.is_dir()]
    if unpacked and folder == archive:
        folder = unpacked[0]
    try:
        found = find_members("stl10", folder, _HOLDS)
    except DataError as error:
        if archive is None:
            raise
        if not unpacked:
            raise _packed(archive, root) from error
        found = find_members("stl10", unpacked[0], _HOLDS)
    if found.path(found.place("train_X.bin")) is None:
        raise _packed(found.source, root)
    return Stl10(found)


def prepare(root: Path | str | None = None) -> Path:
    """Unpack ``stl10_binary.tar.gz`` once, into a folder ``stl10_unpacked`` that :func:`open` finds.

    The folder lies beside the archive or, where nothing can be written there, in the cache folder.
    """
    archive = _archive(None if root is None else expanded(root))
    if archive is None:
        return open(root).folder
    target = prepared_place(*_unpacked(archive))
    return build_once(target, lambda _: _opened(root), lambda folder: unpack(archive, folder))


def _opened(root: Path | str | None) -> Path | None:
    """Folder of the files, None where they cannot be opened yet."""
    try:
        return open(root).folder
    except DataError:
        return None


def _archive(root: Path | None) -> Path | None:
    """The archive as it was published, or one that is given as root."""
    for place in data_places("stl10", root):
        path = place if place.is_file() else place / _ARCHIVE
        if path.is_file():
            return path
    return None


def _unpacked(archive: Path | None) -> tuple[Path, ...]:
    """Where the files of the archive lie once they are unpacked."""
    return () if archive is None else prepared_places(archive, _UNPACKED)


def _packed(archive: Path, root: Path | str | None) -> DataError:
    option = "" if root is None else f" --root {shlex.quote(str(root))}"
    return DataError(
        f"stl10: {archive} is packed, and pictures are mapped from files; run `setsup prepare stl10{option}`, which "
        f"unpacks it once, or unpack it (tar -xf {shlex.quote(archive.name)})"
    )


def _path(members: MemberIndex, name: str) -> Path:
    found = members.path(members.place(name))
    if found is None:
        raise DataError(f"{members.source} is an archive; unpack it")
    return found


def _count(path: Path) -> int:
    size = path.stat().st_size
    if not size or size % _BYTES:
        raise DamagedFile(f"{path} has {size:,} bytes, which is no multiple of the {_BYTES:,} of a picture")
    return size // _BYTES


def _mapped(path: Path, count: int) -> Array:
    try:
        if path.stat().st_size == count * _BYTES:
            return np.asarray(np.memmap(path, np.uint8, "r", shape=(count, *_STORED)))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    raise DataError(f"{path} has changed since the data set was opened; open it again")


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
    return FactorTable(list(columns), {factor.name: column for factor, column in columns.items()})


def _labels(members: MemberIndex, split: str, count: int) -> npt.NDArray[np.uint8]:
    """Codes of the categories, from labels that count from 1."""
    place = members.place(f"{split}_y.bin")
    label = members.label(place)
    stored = np.frombuffer(members.read(place, _MOST_LABELS), np.uint8)
    if len(stored) != count:
        raise DataError(
            f"{label} has {len(stored):,} labels, and {split}_X.bin {count:,} pictures; they do not belong together: "
            "fetch both again"
        )
    wrong = (stored < 1) | (stored > len(_CATEGORIES))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DamagedFile(f"{label}: the label of picture {row} is {stored[row]}; 1 to 10 were expected")
    return stored - np.uint8(1)


def _categories(members: MemberIndex) -> tuple[str, ...]:
    text = _text(members, _NAMES)
    if text is None:
        return _CATEGORIES
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if names != _CATEGORIES:
        label = members.label(members.place(_NAMES))
        raise DamagedFile(f"{label} does not name {', '.join(_CATEGORIES)}, one a line")
    return names


def _folds(members: MemberIndex, count: int) -> list[Rows]:
    """Rows of each fold: a line of indices that count from 0."""
    text = _text(members, _FOLDS)
    if text is None:
        return []
    label = members.label(members.place(_FOLDS))
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) != _FOLD_COUNT:
        raise DamagedFile(f"{label} has {len(lines)} lines; one for each of {_FOLD_COUNT} folds was expected")
    for number, line in enumerate(lines):
        odd = [word for word in line if not re.fullmatch("[0-9]{1,9}", word) or int(word) >= count]
        if odd or len(set(line)) != len(line):
            what = f"has {odd[0][:20]!r}, which is no training picture" if odd else "names a picture twice"
            raise DamagedFile(f"{label}: line {number + 1} {what}; numbers from 0 to {count - 1:,} were expected")
    return [np.array(line, np.int64) for line in lines]


def _text(members: MemberIndex, name: str) -> str | None:
    """A text of the release, None where it is not there."""
    if name not in members:
        return None
    place = members.place(name)
    return text_of(members.read(place, _MOST_TEXT), members.label(place))
