"""Bytes of shards: what gives them, and the tars of a folder mapped into memory."""

import os
import stat
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.files.tar_headers import BLOCK, header_check
from setsup.shards.layout import CRC32C, HEADER, Catalogue

__all__ = ["MAPS", "LocalReader", "Reader", "checksums", "mend"]

MAPS = 4096
"""Tars that a reader maps at once; Linux allows a process 65,530 maps of all kinds."""


class Reader(Protocol):
    """Gives stretches of shards; may be called from several threads, and survives pickling and forks."""

    def read(
        self, shards: npt.NDArray[np.integer[Any]], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> list[memoryview]:
        """Bytes of shards, in the order asked for.

        Parameters
        ----------
        shards : (n,) integer array
            Numbers of the shards in the catalogue.
        starts, sizes : (n,) int64, bytes
            Where each stretch begins, and its length; all lie inside their shards as the catalogue has them.

        Returns
        -------
        list of memoryview
            Read-only bytes, of the very lengths asked for.

        Raises
        ------
        DataError
            When a shard is missing, cannot be read, or has another size than in the catalogue.

        """
        ...

    def drop(self, shard: int) -> None:
        """Forget what is kept of a shard, since it is not what the index says.

        Parameters
        ----------
        shard : int
            Its number in the catalogue.

        """
        ...


class LocalReader:
    """Tars of a folder, mapped into memory when they are first read.

    Maps take no descriptors. Of more than :data:`MAPS` tars those stay mapped that were read last; one that is let go
    of stays as long as somebody reads in it. Nothing here is locked, so that a fork finds all as it was; at worst two
    threads map the same tar.

    Parameters
    ----------
    folder : Path
        Where the tars lie.
    catalogue : Catalogue
        Their names and sizes.

    Examples
    --------
    >>> import tempfile
    >>> from setsup.shards.layout import CRC32C, Catalogue, Shard
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "data-00000.tar").write_bytes(bytes(range(256)) * 8)
    >>> shard, index = Shard("data-00000.tar", 1, 2048, "0" * 64), Shard("index.parquet", 1, 9, "0" * 64)
    >>> reader = LocalReader(folder, Catalogue("numbers", (), {}, (shard,), index, CRC32C, "", "0.0"))
    >>> [list(found) for found in reader.read(np.array([0, 0]), np.array([512, 3]), np.array([2, 1]))]
    [[0, 1], [3]]

    """

    def __init__(self, folder: Path, catalogue: Catalogue) -> None:
        self.folder, self.catalogue = folder, catalogue
        self._map = lru_cache(maxsize=MAPS)(partial(_map, folder, catalogue))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the maps, which belong to this process."""
        return LocalReader, (self.folder, self.catalogue)

    def __repr__(self) -> str:
        """Show the folder."""
        return f"LocalReader({str(self.folder)!r}, {len(self.catalogue.shards):,} shards)"

    def read(
        self, shards: npt.NDArray[np.integer[Any]], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> list[memoryview]:
        """Bytes of shards; see :meth:`Reader.read`."""
        mapped = self._map
        stretches = zip(shards.tolist(), starts.tolist(), (starts + sizes).tolist(), strict=True)
        return [mapped(shard)[start:stop] for shard, start, stop in stretches]

    def drop(self, shard: int) -> None:
        """Map the tars anew; see :meth:`Reader.drop`."""
        self._map.cache_clear()


def mend(check: str) -> str:
    """What to do where a tar is not the one that was indexed.

    Parameters
    ----------
    check : str
        By what the catalogue has members checked, which tells whether setsup wrote them.

    Examples
    --------
    >>> mend("header")
    'index it anew with `setsup index`, or fetch it again'

    """
    if check == CRC32C:
        return "fetch the tar again, or remove it and start the same `setsup shard` again"
    return "index it anew with `setsup index`, or fetch it again"


def _map(folder: Path, catalogue: Catalogue, number: int) -> memoryview:
    """Bytes of a tar, which must have the size that was indexed."""
    import pyarrow as pa

    path, size, advice = folder / catalogue.shards[number].name, catalogue.shards[number].size, mend(catalogue.check)
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            raise DataError(f"{path} is no file; a shard was expected: {advice}")
        if about.st_size != size:
            raise _changed(path, about.st_size, size, advice)
        # mapped by Arrow, since maps of the standard library keep a descriptor each
        with pa.memory_map(str(path)) as file:
            if file.size() != size:
                raise _changed(path, file.size(), size, advice)
            # one byte holds the whole map; to ask for all would have the system read the file ahead
            held = file.read_buffer(1)
    except FileNotFoundError:
        ours = catalogue.check == CRC32C
        anew = "start the same `setsup shard` again" if ours else "index the others anew with `setsup index`"
        raise DataError(f"{path} is missing, a shard that the catalogue tells of; fetch it again, or {anew}") from None
    except OSError as error:
        if error.errno is None:  # it was opened, but not mapped
            raise DataError(
                f"{path} cannot be mapped into memory ({' '.join(str(error).split())}): copy it to another disk, or "
                "see what limits the maps of a process (vm.max_map_count, ulimit -v)"
            ) from error
        raise DataError(f"{path} cannot be read: {os.strerror(error.errno)}") from error
    return memoryview(pa.foreign_buffer(held.address, size, held)).cast("B") if size else memoryview(b"")


def _changed(path: Path, found: int, size: int, advice: str) -> DataError:
    return DataError(f"{path} has changed since it was indexed: it has {found:,} bytes, not {size:,}; {advice}")


def checksums(contents: Sequence[memoryview], check: str) -> list[int]:
    """Checksums of members, as an index has them.

    Parameters
    ----------
    contents : sequence of memoryview
        Members; where the headers are compared, the header right before each as well.
    check : str
        :data:`setsup.shards.layout.CRC32C` or :data:`setsup.shards.layout.HEADER`.

    Examples
    --------
    >>> checksums([memoryview(b"123456789")], "crc32c") == [0xE3069283]
    True

    """
    if check == HEADER:
        return [header_check(bytes(content[:BLOCK])) for content in contents]
    from google_crc32c import value

    byte, array = np.dtype(np.uint8), np.frombuffer
    return [value(array(content, byte)) for content in contents]  # of a memoryview it would want a copy
