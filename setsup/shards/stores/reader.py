"""Random access to shards in a store: near ranges together, many at once, and what was read is kept on the disk."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Integers
from setsup.errors import DataError
from setsup.files import cache_folder
from setsup.shards.layout import CRC32C, Catalogue, Shard
from setsup.shards.reading import remedy
from setsup.shards.stores.cache import BLOCK, Copy, ShardCache
from setsup.shards.stores.errors import CutShort
from setsup.shards.stores.ranges import merge_ranges
from setsup.shards.stores.store import Range, Store, join_address

__all__ = ["FOLDER", "RemoteReader"]

FOLDER = "shards"
"""Where copies are kept, in the cache folder."""


class RemoteReader:
    r"""Reads ranges of shards that lie in a store.

    The ranges of one call are merged (:func:`setsup.shards.stores.ranges.merge_ranges`) into requests that are
    under way at once; so ask for whole batches. What came is kept on the disk, in blocks
    (:mod:`setsup.shards.stores.cache`), before anybody has checked it: who finds that the content is not what the index
    says calls :meth:`drop` with the number of the shard, and reads again; what is wrong then is wrong in the store.

    It may be used by several threads, survives pickling and forks, and holds nothing open but copies in the cache.
    """

    def __init__(self, store: Store, catalogue: Catalogue, cache_bytes: int) -> None:
        self.store, self.catalogue = store, catalogue
        self._cache = ShardCache(cache_folder() / FOLDER, cache_bytes) if cache_bytes > 0 else None
        self._keys: dict[int, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.store, self.catalogue, 0 if self._cache is None else self._cache.bound)

    def read(self, shards: npt.ArrayLike, starts: npt.ArrayLike, sizes: npt.ArrayLike) -> list[memoryview]:
        """Bytes of shards.

        `shards` (n,) integer array; `starts, sizes` (n,) integer array, bytes.
        """
        number, start, size = (np.asarray(array, np.int64).reshape(-1) for array in (shards, starts, sizes))
        contents: list[memoryview] = [memoryview(b"")] * len(number)
        order = np.argsort(number, kind="stable")
        asked = zip(order.tolist(), start[order].tolist(), (start + size)[order].tolist(), strict=True)
        missing = []
        for (index, low, high), copy in zip(asked, self._copies(number[order]), strict=True):
            content = None if copy is None or low == high else copy.read(low, high)
            if content is not None:
                contents[index] = memoryview(content)
            elif low < high:
                missing.append(index)
        if missing:
            fetched = self._fetched(number[missing], start[missing], size[missing])
            for index, stretch in zip(missing, fetched, strict=True):
                contents[index] = stretch
        return contents

    def drop(self, shard: int) -> None:
        """Forget what was kept of a shard, since it is not what the index says."""
        if self._cache is not None:
            self._cache.drop(self._key(shard))

    def _copies(self, numbers: Integers) -> Iterator[Copy | None]:
        """Copies of shards whose numbers are in order; one after the other, since they may be more than can be open."""
        copy, last = None, -1
        for number in numbers.tolist():
            if self._cache is not None and number != last:
                copy, last = self._cache.open(self._key(number), self.catalogue.shards[number].size), number
            yield copy

    def _fetched(self, number: Integers, start: Integers, size: Integers) -> list[memoryview]:
        """Read ranges from the store, and keep what came."""
        shards = self.catalogue.shards
        low, high = start, start + size
        if self._cache is not None:  # whole blocks, since only these can be kept
            whole = np.array([shards[shard].size for shard in number.tolist()], np.int64)
            low, high = low // BLOCK * BLOCK, np.minimum(-(-high // BLOCK) * BLOCK, whole)
        reads = merge_ranges(number, low, high)
        wanted = [
            Range(shards[shard].name, first, last, shards[shard].size)
            for shard, first, last in zip(reads.file.tolist(), reads.start.tolist(), reads.stop.tolist(), strict=True)
        ]
        try:
            contents = [memoryview(content) for content in self.store.ranges(wanted)]
        except CutShort as error:
            raise self._changed({shards[shard] for shard in reads.file.tolist()}, error) from None
        if self._cache is not None:
            for copy, first, content in zip(self._copies(reads.file), reads.start.tolist(), contents, strict=True):
                if copy is not None:
                    self._cache.keep(copy, first, content)
        inside = reads.offset + (start - low)
        return [
            contents[read][offset : offset + length]
            for read, offset, length in zip(reads.read.tolist(), inside.tolist(), size.tolist(), strict=True)
        ]

    def _changed(self, shards: set[Shard], error: CutShort) -> DataError:
        """Find the shard that has another size than when it was indexed."""
        for shard in sorted(shards, key=lambda shard: shard.name):
            size = self.store.size(shard.name)
            if size != shard.size:
                has = "no longer exists" if size is None else f"has {size:,} bytes, not {shard.size:,}"
                return DataError(
                    f"{join_address(self.store.url, shard.name)} has changed since it was indexed: it {has}; "
                    f"{remedy(self.catalogue.check)}"
                )
        return error

    def _key(self, shard: int) -> str:
        """Name of a shard's copy: another one for any other content."""
        key = self._keys.get(shard)
        if key is None:
            about = self.catalogue.shards[shard]
            parts = ["1", about.digest, str(about.size)]  # of this kind of copy, the version
            if self.catalogue.check != CRC32C:  # the digest is that of the headers: elsewhere others may have the same
                parts += [self.store.url, about.name]
            self._keys[shard] = key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return key
