"""Record batches, kept until they are needed: in memory, and what is too much for it in a file without a name."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from setsup.files.disk import write_error

__all__ = ["Spool"]

IN_MEMORY = 256 << 20
"""Bytes up to which nothing goes to a file."""


class Spool:
    """Batches, of any columns each, in the order in which they were added.

    The file beyond :data:`IN_MEMORY` lies in the system's folder for temporary files (``TMPDIR``). It has no name, so
    nothing is left of it however this process ends.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with Spool() as spool:
    ...     spool.add(pa.record_batch({"a": [1, 2]}))
    ...     spool.add(pa.record_batch({"b": ["x"]}))
    ...     [batch.to_pydict() for batch in spool]
    [{'a': [1, 2]}, {'b': ['x']}]

    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)
        self._places: list[tuple[int, int]] = []
        self._end = 0

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of all."""
        self._file.close()

    def __len__(self) -> int:
        """Count the batches."""
        return len(self._places)

    def __iter__(self) -> Iterator[Any]:
        """Give the batches."""
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> Any:
        """Give one batch."""
        import pyarrow as pa

        start, size = self._places[number]
        self._file.seek(start)
        with pa.ipc.open_stream(pa.py_buffer(self._file.read(size))) as stream:
            return stream.read_next_batch()

    def add(self, batch: Any) -> None:
        """Keep a batch."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        content = sink.getvalue()
        try:
            self._file.seek(self._end)
            self._file.write(memoryview(content))
        except OSError as error:
            # asked for its name only here, since Python tries the folder by a file then, which a kill would leave
            raise write_error(error, Path(tempfile.gettempdir(), "a file without a name")) from error
        self._places.append((self._end, content.size))
        self._end += content.size
