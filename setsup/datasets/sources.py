"""Where the images of a table lie: in files that a column names, or packed in the table itself."""

import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError

__all__ = ["ImageFiles", "PackedImages"]

_SHOWN = 5


class ImageFiles:
    """Image files that a column names.

    Parameters
    ----------
    table : Path
        The table; names are relative to its folder, or absolute.
    names : sequence of str or None
        One a row.

    Raises
    ------
    DataError
        When a row has no name, or files are missing; all are counted, and the first five named.

    """

    def __init__(self, table: Path, names: Sequence[str | None]) -> None:
        import pyarrow as pa

        self._folder = table.parent
        nameless = [row for row, name in enumerate(names) if not name]
        if nameless:
            raise DataError(
                f"{table}: {len(nameless):,} of {len(names):,} rows name no image, the first in row {nameless[0]} "
                "(rows count from 0, without the header); fill them in or take them out"
            )
        _refuse_missing(table, names)
        # one flat array: a list of texts would be copied into every forked worker that counts references to them
        self._names = pa.array(names, pa.large_string())

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._names)

    def take(self, rows: npt.NDArray[np.int64]) -> list[tuple[Path | bytes, str]]:
        """Path and label of each row."""
        names = self._names.take(rows).to_pylist()
        return [
            (self._folder / name, f"{self._folder / name} (row {row})") for name, row in zip(names, rows, strict=True)
        ]


class PackedImages:
    """Images in a column of a Parquet file: bytes, or structs of ``bytes`` and ``path`` as Hugging Face writes them.

    The column is read whole on first use, once a process; pickling carries the path of the file only.

    Parameters
    ----------
    table : Path
        The Parquet file.
    column : str
        Its image column.

    Raises
    ------
    DataError
        When the file is damaged, a row has no image, or files that rows name in place of bytes are missing.

    """

    def __init__(self, table: Path, column: str) -> None:
        import pyarrow.compute as pc

        self._table = table
        self._column = column
        self._read: tuple[Any, Any] | None = None
        self._locks: dict[int, threading.Lock] = {}
        packed, names = self._columns()
        self._length = len(packed)
        _refuse_missing(table, names.filter(pc.is_null(packed)).to_pylist())

    def __len__(self) -> int:
        """Count the rows."""
        return self._length

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the content and the locks, which belong to this process."""
        return {**self.__dict__, "_read": None, "_locks": {}}

    def take(self, rows: npt.NDArray[np.int64]) -> list[tuple[Path | bytes, str]]:
        """Content (or path, where a struct has no bytes) and label of each row."""
        packed, names = (column.take(rows).to_pylist() for column in self._columns())
        return [
            (self._table.parent / name if data is None else data, f"the image of row {row} in {self._table}")
            for data, name, row in zip(packed, names, rows, strict=True)
        ]

    def _columns(self) -> tuple[Any, Any]:
        if self._read is None:
            # a lock a process: after a fork, one that another thread of the parent held would stay locked for ever
            with self._locks.setdefault(os.getpid(), threading.Lock()):
                if self._read is None:
                    self._read = _packed(self._table, self._column)
        return self._read


def _refuse_missing(table: Path, names: Iterable[str | None]) -> None:
    missing = [name for name in dict.fromkeys(names) if not os.path.isfile(table.parent / str(name))]
    if missing:
        more = ", …" if len(missing) > _SHOWN else ""
        raise DataError(
            f"{table}: {len(missing):,} image files are missing: {', '.join(map(str, missing[:_SHOWN]))}{more}; "
            f"names are relative to {table.parent.absolute()}; put the files there, or correct the table"
        )


def _packed(table: Path, column: str) -> tuple[Any, Any]:
    """Bytes and names of all rows, either null where the other serves."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        whole = pq.read_table(table, columns=[column], partitioning=None).column(column)
        whole.validate(full=True)
        data, names = whole, pa.nulls(len(whole), pa.string())
        if pa.types.is_struct(whole.type):
            data = pc.struct_field(whole, "bytes")
            if whole.type.get_field_index("path") >= 0:
                names = pc.struct_field(whole, "path").cast(pa.large_string())
        data = data.cast(pa.large_binary())
        absent = np.asarray(pc.and_(pc.is_null(data), pc.is_null(names)))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataError(f"{table}: the column {column!r} cannot be read as images: {error}") from error
    if absent.any():
        raise DataError(f"{table}: {absent.sum():,} rows have no image, the first is row {int(np.argmax(absent))}")
    return data, names
