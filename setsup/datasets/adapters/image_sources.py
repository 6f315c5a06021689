"""Sources of images: files listed in a column, encoded images in a table, or a release's folder or archive."""

import os
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.adapters.named_files import find_instead, find_missing, with_slashes
from setsup.datasets.formats.source import Source
from setsup.datasets.images import MOST_BYTES, need_image
from setsup.errors import DataError, short
from setsup.factors.io.text_file import arrow_source
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.names import shown

__all__ = [
    "ImageFiles",
    "MemberImages",
    "PackedImages",
    "as_stored",
    "without_orientation",
]

_SHOWN = 5
_CODES = 1 << 20  # looked at at a time
_ROWS = 64  # of a column of images that are read together
_RATIO, _MOST = 100, 1 << 28  # bytes of images for each of a file, and beside
_LARGE = 1 << 24  # bytes of a file whose first ones are looked at before it is read whole
_HEAD = 1 << 17  # bytes of an image in which its notes stand
_NOTES = (b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0")  # what those blocks of a JPEG begin with


class ImageFiles:
    """Image files listed in a column.

    `names`: one per row, or with `codes` the distinct names, in any order. `codes` (rows,) unsigned integer array of
    indices into `names`; any other value means that the row has no image.
    """

    def __init__(self, table: Path, names: Sequence[str | None], codes: Array | None = None) -> None:
        import pyarrow as pa

        self._folder = table.parent
        if codes is None:
            names, codes = _number_texts(names)
        firsts = _first_rows(codes, len(names))
        if firsts[-1] >= 0 or not all(names):
            _refuse_nameless(table, names, codes, firsts)
        occurring = np.flatnonzero(firsts[:-1] >= 0)
        in_order = occurring[np.argsort(firsts[occurring])]  # of the rows, as messages name them
        texts = [str(names[code]) for code in in_order.tolist()]
        if turned := _check_files(table, texts):
            texts = [turned.get(text, text) for text in texts]
        ranks = np.zeros(len(names), np.int64)  # names of no row have any
        ranks[in_order] = np.arange(len(in_order))
        # flat arrays: lists would be copied into every forked worker that counts references to their texts
        self._names = pa.array([os.fsencode(text) for text in texts], pa.large_binary()).take(ranks)
        self._codes = codes

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._codes)

    def take(self, rows: npt.NDArray[np.int64]) -> list[tuple[Source, str]]:
        """Path and label of each row."""
        paths = [self._folder / os.fsdecode(name) for name in self._names.take(self._codes[rows]).to_pylist()]
        return [(path, f"{path} (row {row})") for path, row in zip(paths, rows.tolist(), strict=True)]


def _number_texts(texts: Sequence[str | None]) -> tuple[list[str | None], Array]:
    """Distinct strings in the order of their first rows, and (rows,) uint32 codes of all rows."""
    codes: dict[str | None, int] = {}
    numbers = np.fromiter((codes.setdefault(text, len(codes)) for text in texts), np.uint32, len(texts))
    return list(codes), numbers


def _first_rows(codes: Array, count: int) -> npt.NDArray[np.int64]:
    """Find the first row of each code 0 … count − 1, then of all other codes; -1 if there is no such row."""
    firsts = np.full(count + 1, -1)
    for start in reversed(range(0, len(codes), _CODES)):
        block = np.minimum(codes[start : start + _CODES], count)[::-1]
        firsts[block] = np.arange(start + len(block) - 1, start - 1, -1)  # of equal codes the last one counts
    return firsts


def _refuse_nameless(table: Path, names: Sequence[str | None], codes: Array, firsts: npt.NDArray[np.int64]) -> None:
    """Raise DataError if rows have no image; `firsts` (names + 1,) rows as :func:`_first_rows` finds them."""
    nameless = [code for code, name in enumerate([*names, None]) if not name and firsts[code] >= 0]
    if nameless:
        count = sum(int((np.minimum(codes, len(names)) == code).sum()) for code in nameless)
        raise DataError(
            f"{table}: {count:,} of {len(codes):,} rows have no image, such as row {firsts[nameless].min()} (counting "
            "from 0, without the header); fill in the images, or remove these rows"
        )


class PackedImages:
    """Images in a column of a Parquet file: bytes, or structs of ``bytes`` and ``path`` as Hugging Face writes them.

    The column is read completely on first use, once per process; pickling stores only the path of the file.
    """

    def __init__(self, table: Path, column: str) -> None:
        import pyarrow.compute as pc

        self._table = table
        self._column = column
        self._read: tuple[Any, Any] | None = None
        self._locks: dict[int, threading.Lock] = {}
        packed, names = self._columns()
        self._length = len(packed)
        _check_files(table, names.filter(pc.is_null(packed)).unique().to_pylist())

    def __len__(self) -> int:
        """Count the rows."""
        return self._length

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the content and the locks, which belong to this process."""
        return {**self.__dict__, "_read": None, "_locks": {}}

    def take(self, rows: npt.NDArray[np.int64]) -> list[tuple[Source, str]]:
        """Content (or path, where a struct has no bytes) and label of each row."""
        packed, names = (column.take(rows).to_pylist() for column in self._columns())
        return [
            (
                self._table.parent / _there(self._table, name) if data is None else data,
                f"the image of row {row} in {self._table}",
            )
            for data, name, row in zip(packed, names, rows, strict=True)
        ]

    def _columns(self) -> tuple[Any, Any]:
        if self._read is None:
            # a lock a process: after a fork, one that another thread of the parent held would stay locked for ever
            with self._locks.setdefault(os.getpid(), threading.Lock()):
                if self._read is None:
                    self._read = _read_packed(self._table, self._column)
        return self._read


class MemberImages:
    """Images among the files of a release: a folder, zip or tar, or several of them.

    `places` (rows,) integer array of positions among the members; `parts` (rows,) integer array, the number of the
    member index of each. Unless `upright`, the orientation noted by a camera is not applied.
    """

    def __init__(
        self,
        members: MemberIndex | Sequence[MemberIndex],
        places: npt.ArrayLike,
        parts: npt.NDArray[Any] | None = None,
        upright: bool = True,
    ) -> None:
        self._members = (members,) if isinstance(members, MemberIndex) else tuple(members)
        indices = np.asarray(places)
        for number, source in enumerate(self._members):
            _check_places(source, indices if parts is None else indices[parts == number])
        # half as much to send to worker processes, where the number of files allows
        few = all(len(source) < 2**32 for source in self._members)
        self._places = indices.astype(np.uint32 if few else np.int64)
        self._parts = None if parts is None else parts.astype(np.uint16)
        self._upright = upright

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._places)

    def take(self, rows: npt.NDArray[np.int64]) -> list[tuple[Source, str]]:
        """Return for each row a function that reads its file, and a label.

        The function runs in the thread that decodes.
        """
        read = _read if self._upright else as_stored
        sources: list[tuple[Source, str]] = []
        for part, member, row in zip(self._part_numbers(rows), self._places[rows].tolist(), rows.tolist(), strict=True):
            members = self._members[part]
            sources.append((partial(read, members, member), f"{members.label(member)} (row {row})"))
        return sources

    def paths(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Name of each row's file in its folder or archive."""
        parts, names = self._part_numbers(rows), np.empty(len(rows), dtype=object)
        for part in np.unique(parts).tolist():
            chosen = parts == part
            names[chosen] = self._members[part].names.take(self._places[rows[chosen]]).to_pylist()
        return list(names)

    @property
    def source(self) -> Path:
        """The first folder or archive."""
        return self._members[0].source

    def _part_numbers(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
        return np.zeros(len(rows), np.uint16) if self._parts is None else self._parts[rows]


def _check_places(members: MemberIndex, places: npt.NDArray[Any]) -> None:
    if places.size and not 0 <= places.min() <= places.max() < len(members):
        raise DataError(
            f"{members.source} has {len(members):,} files, but rows refer to positions {places.min():,} to "
            f"{places.max():,}; get positions from members.places, and remove positions equal to -1"
        )


def _read(members: MemberIndex, member: int) -> bytes:
    if members.sizes[member] > _LARGE:
        need_image(members.begin(member, 16), members.label(member))
    return members.read(member, MOST_BYTES)


def as_stored(members: MemberIndex, member: int) -> bytes:
    """Content of an image without the orientation noted by a camera.

    Boxes were annotated on the pixels as stored, which is how MATLAB shows them; some images of ImageNet have a note.
    """
    return without_orientation(_read(members, member))


def without_orientation(content: bytes) -> bytes:
    """Content of an image file without the orientation noted by a camera."""
    for note in _NOTES:
        if note in content[:_HEAD]:
            # a block of another name is passed over by whoever decodes the image
            content = content.replace(note, b"none".ljust(len(note), b"\0"), 1)
    return content


def _check_files(table: Path, names: Sequence[str]) -> dict[str, str]:
    """Refuse missing files; return names with Windows separators that exist with other ones, and the existing names."""
    folder = str(table.parent)
    missing = find_missing(folder, names)
    turned = {name: with_slashes(name) for name in missing if "\\" in name}
    lost = set(find_missing(folder, turned.values()))
    turned = {name: other for name, other in turned.items() if other not in lost}
    missing = [name for name in missing if name not in turned]
    encoding = sys.getfilesystemencoding()
    if unwritable := [name for name in missing if not _encodable(name, encoding)]:
        raise DataError(
            f"{table}: the locale's encoding of file names, {encoding}, cannot represent the names of "
            f"{len(unwritable):,} image files, such as {unwritable[0]!r}; set LC_ALL=C.UTF-8 or PYTHONUTF8=1"
        )
    if missing:
        more = ", …" if len(missing) > _SHOWN else ""
        files = "1 image file is" if len(missing) == 1 else f"{len(missing):,} image files are"
        there = filter(None, (find_instead(folder, name) for name in missing[:_SHOWN]))
        fix = next(there, "add the files, or correct the table")  # what holds for one usually holds for all
        raise DataError(
            f"{table}: {files} missing: {', '.join(short(shown(name)) for name in missing[:_SHOWN])}{more}; paths are "
            f"relative to {table.parent.absolute()}; {fix}"
        )
    return turned


def _there(table: Path, name: str) -> str:
    return with_slashes(name) if "\\" in name and not os.path.isfile(table.parent / name) else name


def _encodable(name: str, encoding: str) -> bool:
    try:
        name.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _read_column(file: Any, column: str, limit: int) -> Any:
    """Read a column of at most `limit` bytes: where few images repeat, a small file may hold any number."""
    import pyarrow as pa

    chunks, size = [], 0
    with file:
        for batch in file.iter_batches(_ROWS, columns=[column]):
            size += batch.nbytes
            if size > limit:
                raise ValueError(
                    f"the column requires more memory than the limit of {limit:,} bytes; split the table into several "
                    "files"
                )
            chunks.append(batch.column(0))
        return pa.chunked_array(chunks, file.schema_arrow.field(column).type)


def _read_packed(table: Path, column: str) -> tuple[Any, Any]:
    """Bytes and names of all rows; one of the two is null."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        with arrow_source(table) as source:
            whole = _read_column(pq.ParquetFile(source), column, _RATIO * table.stat().st_size + _MOST)
        whole.validate(full=True)
        data, names = whole, pa.nulls(len(whole), pa.string())
        if pa.types.is_struct(whole.type):
            data = pc.struct_field(whole, "bytes")
            if whole.type.get_field_index("path") >= 0:
                names = pc.struct_field(whole, "path").cast(pa.large_string())
        data = data.cast(pa.large_binary())
        absent = np.asarray(pc.and_(pc.is_null(data), pc.is_null(names)))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataError(f"{table}: the column {column!r} could not be read as images: {error}") from error
    if absent.any():
        raise DataError(
            f"{table}: {absent.sum():,} rows have no image, such as row {int(np.argmax(absent))} (counting from 0); "
            "fill in the images, or remove these rows"
        )
    return data, names
