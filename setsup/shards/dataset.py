"""Shards as a dataset: factors from the index, samples by random access to the tars."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.fetching import fetch_images
from setsup.datasets.adapters.image_sources import without_orientation
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import of_row
from setsup.datasets.formats.source import Source
from setsup.datasets.images import parallel
from setsup.datasets.originals import Original, originals_of, refuse_changed
from setsup.errors import DataError
from setsup.files.archives.tar_headers import BLOCK
from setsup.progress import progress
from setsup.shards.decoding import (
    IMAGES,
    check_members,
    copy_plain,
    deep_array,
    is_deep,
    npy_array,
    plain_head,
    put_pngs,
    resize_image,
    resized_modalities,
    sideways_members,
)
from setsup.shards.index import open_index
from setsup.shards.layout import CATALOGUE, CRC32C, HEADER, Catalogue
from setsup.shards.locate import index_file, is_whole
from setsup.shards.reading import Reader, checksums, remedy
from setsup.shards.stores.local import LocalStore
from setsup.shards.stores.store import Store

__all__ = ["ShardedDataset"]

_SEEN, _PLAIN = 1, 2  # states of checked members; plain: the usual header and numbers, nothing else


class ShardedDataset(BaseDataset):
    """Samples in shards on a disk or in a store; made by :func:`setsup.open_shards`.

    Each member is compared with its checksum in the index when a process first reads it.

    Parameters
    ----------
    store : Store
        Store of the tars.
    about : Store
        Store of the catalogue and the index.
    catalogue : Catalogue
        Description of the shards.
    reader : Reader
        Reads bytes of the tars.
    size : (height, width) or None, pixels
        Size that images are resized to.
    upright : bool
        Whether to apply the orientation (Exif) of a JPEG.

    Attributes
    ----------
    url : str
        Their folder or address.
    catalogue : Catalogue
        Names and sizes of the shards, licence, citation and more.
    cpu_bound : bool
        Whether members are decoded (``png``, ``webp``, ``jpg``) or resized, rather than copied.

    Examples
    --------
    >>> import setsup, tempfile
    >>> shapes = setsup.load("shapes3d-procedural").select(range(0, 480_000, 48_000))
    >>> sharded = setsup.write_shards(shapes, tempfile.mkdtemp(), format="npy", per_shard=4)
    >>> sharded.keys([9, 0]), sharded.fetch([9, 0])["image"].shape, sharded.cpu_bound
    (['000009', '000000'], (2, 64, 64, 3), False)
    >>> [shard.rows for shard in sharded.catalogue.shards], sharded.verify()
    ([4, 4, 2], [])

    """

    def __init__(
        self,
        store: Store,
        about: Store,
        catalogue: Catalogue,
        reader: Reader,
        size: tuple[int, int] | None = None,
        upright: bool = True,
    ) -> None:
        check_members(catalogue.members, f"{about.url}/{CATALOGUE}")
        self.name, self.url, self.catalogue = catalogue.name, store.url, catalogue
        self._upright = bool(upright)
        self.modalities = resized_modalities(catalogue.arrays if upright else sideways_members(catalogue.arrays), size)
        self.factors, self._places = open_index(index_file(about, catalogue), catalogue)
        self.cpu_bound = any(
            member.format in IMAGES or self.modalities[name] != member.modality
            for name, member in catalogue.arrays.items()
        )
        self.previews = isinstance(store, LocalStore)
        self._store, self._about, self._reader, self._size = store, about, reader, size
        self._heads = {
            name: plain_head(member.modality) if member.format == "npy" else b""
            for name, member in catalogue.members.items()
        }
        self._states: dict[str, npt.NDArray[np.uint8]] = {}

    @of_row
    def keys(self, rows: npt.ArrayLike) -> list[str]:
        """Keys of samples, with which the names of their members begin."""
        return self._places.keys(rows)

    @of_row
    def source_rows(self, rows: npt.ArrayLike) -> Rows:
        """Rows of the dataset that was written, in the shape of `rows`.

        Raises
        ------
        DataError
            If another program wrote the shards.

        """
        return self._places.source_rows(rows)

    def __repr__(self) -> str:
        """Show the address, and the numbers of rows and shards."""
        number = len(self.catalogue.shards)
        return f"{type(self).__name__}({self.url!r}, {len(self):,} rows in {number:,} shard{'s' * (number != 1)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments; the index is opened again."""
        return type(self), (self._store, self._about, self.catalogue, self._reader, self._size, self._upright)

    def verify(self) -> list[str]:
        """Compare the complete shards and index with their digests in the catalogue.

        For tars by other programs these are digests of names, offsets and headers: contents are not compared.

        Returns
        -------
        list of str
            Names of missing, truncated or changed files, in the order of the catalogue; empty if all are intact.

        Raises
        ------
        DataError
            If the disk or the store fails.

        """
        catalogue = self.catalogue
        files = [(self._store, shard, catalogue.check) for shard in catalogue.shards]
        files.append((self._about, catalogue.index, CRC32C))
        with progress(sum(shard.size for _, shard, _ in files), f"checking {self.name}", "B") as advance:
            whole = parallel(lambda file: is_whole(*file, advance), files)
        return [shard.name for (_, shard, _), good in zip(files, whole, strict=True) if not good]

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows, read together; None where members hold arrays, or PNG of 16 bits."""
        stored = self.catalogue.members[name]
        if self.modalities[name] != stored.modality:
            refuse_changed(self.name, size=self._size)
        if stored.format not in IMAGES or is_deep(stored):
            return None
        contents = dict(zip(rows.tolist(), self._contents(rows, [name])[name], strict=True))
        images = _Images(contents, partial(self._named, name), self._upright)
        return originals_of(images.take(rows), stored.modality.shape[2])

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def _contents(self, rows: Rows, names: Sequence[str]) -> dict[str, list[memoryview]]:
        """Whole members, read together and checked."""
        if not rows.size:
            return {name: [] for name in names}
        self._places.check_mapped()
        spans = [self._places.spans[name] for name in names]
        starts = np.array([span.offset[rows] for span in spans], np.int64)
        sizes = np.array([span.size[rows] for span in spans], np.int64)
        if starts.size and starts.min() < 0:
            index, column = np.argwhere(starts < 0)[0].tolist()
            raise self._absent(names[index], int(rows[column]))
        # tars by other programs are checked by the headers right before the contents
        before = BLOCK if self.catalogue.check == HEADER else 0
        shards = np.tile(self._places.shard[rows], len(names))
        read = self._reader.read(shards, (starts - before).reshape(-1), (sizes + before).reshape(-1))
        contents = {}
        for index, name in enumerate(names):
            part = read[index * len(rows) : (index + 1) * len(rows)]
            fresh = np.flatnonzero(self._state(name)[rows] == 0)
            if fresh.size:
                self._check(name, rows, fresh, part, before)
            contents[name] = [content[before:] for content in part] if before else part
        return contents

    def _check(self, name: str, rows: Rows, fresh: Rows, contents: list[memoryview], before: int) -> None:
        """Compare members that this process reads for the first time with their checksums."""
        span, check = self._places.spans[name], self.catalogue.check
        indices, seen = fresh.tolist(), rows[fresh]
        expected = span.check[seen]
        fresh_contents = [contents[index] for index in indices]
        differ = np.flatnonzero(np.array(checksums(fresh_contents, check), np.uint32) != expected)
        shards = self._places.shard[seen[differ]]
        for shard in np.unique(shards).tolist():  # perhaps only the local copy is wrong
            self._reader.drop(shard)
        offset, size = span.offset[seen[differ]] - before, span.size[seen[differ]] + before
        again = self._reader.read(shards, offset, size) if differ.size else []
        for turn, content, value in zip(differ.tolist(), again, checksums(again, check), strict=True):
            if value != expected[turn]:
                label = self._label(name, int(seen[turn]))
                raise DataError(f"{label} has changed since it was indexed; {remedy(check)}")
            contents[indices[turn]] = content
        modality, head = self.catalogue.members[name].modality, self._heads[name]
        whole = (
            before + len(head) + math.prod(length or 0 for length in modality.shape) * np.dtype(modality.dtype).itemsize
        )
        stop = before + len(head)
        plain = [
            head and len(content) == whole and bytes(content[before:stop]) == head
            for content in (contents[index] for index in indices)
        ]
        self._state(name)[seen] = np.where(plain, _PLAIN, _SEEN)

    def _state(self, name: str) -> npt.NDArray[np.uint8]:
        """States of the members of a modality; memory is used for rows that were read."""
        if name not in self._states:
            self._states.setdefault(name, np.zeros(len(self), np.uint8))
        return self._states[name]

    def _label(self, name: str, row: int) -> str:
        """Name a member in messages."""
        return f"the {name!r} of row {row} (key {self.keys(row)[0]}) in {self._shard(row)}"

    def _shard(self, row: int) -> str:
        return f"{self.url}/{self.catalogue.shards[int(self._places.shard[row])].name}"

    def _absent(self, name: str, row: int) -> DataError:
        others = [other for other, span in self._places.spans.items() if span.offset[row] >= 0]
        had = f"only {', '.join(map(repr, others))}" if others else "only factors"
        return DataError(
            f"row {row} (key {self.keys(row)[0]}) in {self._shard(row)} has no {name!r}, {had}; fetch other "
            f"modalities, or select rows that have {name!r}"
        )

    # -- arrays --------------------------------------------------------------------------------------------------------

    def _read_all(self, rows: Rows, out: Mapping[str, Array | None]) -> dict[str, Array]:
        contents = self._contents(rows, tuple(out))
        return {name: self._decoded(name, rows, contents[name], array) for name, array in out.items()}

    def _decoded(self, name: str, rows: Rows, contents: list[memoryview], out: Array | None) -> Array:
        """Arrays of members, in `out` if given."""
        stored, wanted = self.catalogue.members[name], self.modalities[name]
        size = self._size if wanted is not stored.modality else None
        if stored.format in IMAGES and not is_deep(stored):
            checked = stored.format == "png" and self.catalogue.check == CRC32C and size is None
            if checked and out is not None and None not in wanted.shape and put_pngs(contents, out):
                return out
            by_row = dict(zip(rows.tolist(), contents, strict=True))
            images = _Images(by_row, partial(self._named, name), self._upright)
            return fetch_images(images, rows, wanted.shape, size, out)
        if out is not None and size is None and self._heads[name] and (self._state(name)[rows] == _PLAIN).all():
            copy_plain(contents, len(self._heads[name]), out)
            return out
        arrays = self._arrays(name, rows, contents, size)
        if out is None:
            shape = arrays[0].shape if arrays else tuple(length or 0 for length in wanted.shape)
            out = np.empty((rows.size, *shape), wanted.dtype)
        for index, array in enumerate(arrays):
            out[index] = array
        return out

    def _arrays(self, name: str, rows: Rows, contents: list[memoryview], size: tuple[int, int] | None) -> list[Array]:
        """Arrays of members that are not plain, all of one shape."""
        modality = self.catalogue.members[name].modality
        decode = deep_array if is_deep(self.catalogue.members[name]) else npy_array
        arrays: list[Array] = []
        for row, content in zip(rows.tolist(), contents, strict=True):
            array = decode(content, self._named(name, row))
            fits = len(array.shape) == len(modality.shape) and all(
                length in (None, there) for there, length in zip(array.shape, modality.shape, strict=True)
            )
            if not fits or array.dtype.newbyteorder("=") != modality.dtype:
                raise DataError(
                    f"{self._label(name, row)} is {array.dtype} of shape {array.shape}, but the catalogue specifies "
                    f"{modality.dtype} of shape {modality.shape}; {remedy(self.catalogue.check)}"
                )
            arrays.append(array if size is None else resize_image(array, size))
            if arrays[-1].shape != arrays[0].shape:
                raise DataError(
                    f"{self._label(name, row)} has shape {arrays[-1].shape}, but row {rows[0]} has shape "
                    f"{arrays[0].shape}; fetch rows of different shapes one by one"
                )
        return arrays

    def _named(self, name: str, row: int) -> str:
        """Name a member in messages, without reading the index."""
        return f"the {name!r} of row {row} in {self._shard(row)}"


class _Images:
    """Images in memory, as :func:`setsup.datasets.adapters.fetching.fetch_images` takes them."""

    def __init__(self, contents: Mapping[int, memoryview], named: Callable[[int], str], upright: bool) -> None:
        self._contents, self._named = contents, named
        self._content = bytes if upright else _as_stored

    def __len__(self) -> int:
        return len(self._contents)

    def take(self, rows: Rows) -> list[tuple[Source, str]]:
        """For each row a function that copies its bytes, and a label."""
        return [(partial(self._content, self._contents[row]), self._named(row)) for row in rows.tolist()]


def _as_stored(content: memoryview) -> bytes:
    return without_orientation(bytes(content))
