"""Arrays converted once out of a slow container: a ``.npy`` file that is mapped into memory.

The array ``images`` of ``folder/3dshapes.h5`` is kept in ``folder/3dshapes.images.npy`` or, where that folder is
read-only, under ``prepared`` in the cache folder. A small ``.npy.json`` next to it says which source it was made of:
its size and the SHA-256 of its content. Its own time of change is that of the source, so that runs on copies of a
source write the same bytes. A prepared array is used while the source has the same size and either the same time of
change (the usual case, which costs nothing) or the same content (a copied file).
A source may be many files, which count as one then: their sizes, times and contents in order.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.files.cache import cache_folder
from setsup.files.digest import content_digest
from setsup.files.disk import read_errors

__all__ = ["HEADER", "PreparedArray", "SourceIdentity", "beside", "npy_header", "prepared_place", "prepared_places"]

VERSION = 1
"""Of the conversion; arrays of another version are made again."""

HEADER = 4096
"""Bytes before the first row, so that rows of whole pages start on a page."""


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """Identity of one version of a source."""

    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, *files: Path) -> "SourceIdentity":
        """Read whole files for their identity."""
        digest = _content(files)
        return cls(*_stated(files), digest)

    def unchanged(self, *files: Path) -> bool:
        """Whether files still have the size and time of change seen here; their content is not read."""
        return _stated(files) == (self.size, self.mtime_ns)


def _stated(files: Sequence[Path]) -> tuple[int, int]:
    """Size of all together, and a time of change."""
    states = []
    for path in files:
        with read_errors(path):
            about = path.stat()
        states.append((about.st_size, about.st_mtime_ns))
    if len(states) == 1:
        return states[0]
    # not the sum: two files that take each other's names are other rows
    return sum(size for size, _ in states), int.from_bytes(sha256(repr(states).encode()).digest()[:7], "big")


def _content(files: Sequence[Path]) -> str:
    digests = [_digest(path, *_stated([path])) for path in files]
    return digests[0] if len(digests) == 1 else sha256("".join(digests).encode()).hexdigest()


@lru_cache(maxsize=1024)
def _digest(path: Path, size: int, mtime_ns: int) -> str:
    """Digest of a file in one state, computed once a process: the arrays of a source all ask for it."""
    return content_digest(path)


@dataclass(frozen=True, slots=True)
class PreparedArray:
    """An array that a slow container holds, and the place of its prepared copy; nothing is opened or written by it."""

    source: Path
    name: str
    shape: tuple[int, ...]
    dtype: str
    files: tuple[Path, ...] = ()

    @property
    def made_of(self) -> tuple[Path, ...]:
        """The files whose change makes the array outdated."""
        return self.files or (self.source,)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        """Bytes of the whole prepared file."""
        return HEADER + self.shape[0] * self.row_bytes

    def places(self) -> tuple[Path, Path]:
        """Return the two files where the prepared array may be: next to its source, and in the cache folder."""
        return prepared_places(self.source, f"{self.source.stem}.{self.name}.npy")

    def place(self) -> Path:
        """Return the file to write: next to the source where that folder can be written, else in the cache folder."""
        return prepared_place(*self.places())

    def find(self) -> Path | None:
        """Find a whole prepared array that belongs to the source as it is now."""
        return next((path for path in self.places() if self._whole(path) and self._current(path)), None)

    def outdated(self) -> Path | None:
        """Find a prepared array that cannot be used, since its source has changed since or it is not whole."""
        return None if self.find() else next((path for path in self.places() if os.path.isfile(path)), None)

    def open(self) -> Array | None:
        """Map the prepared array into memory.

        Returns array of ``shape`` and ``dtype``, read-only, or None where there is none that belongs to the source.
        """
        path = self.find()
        return None if path is None else self.map(path)

    def map(self, path: Path, start: int = 0, stop: int | None = None) -> Array:
        """Map rows ``start`` to ``stop − 1`` (all by default) of a file of this layout, read-only and unchecked."""
        shape = ((self.shape[0] if stop is None else stop) - start, *self.shape[1:])
        return np.asarray(np.memmap(path, np.dtype(self.dtype), "r", HEADER + start * self.row_bytes, shape))

    def description(self, source: SourceIdentity) -> dict[str, Any]:
        """Content of the JSON file next to the array."""
        return {
            "setsup": "prepared array",
            "version": VERSION,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "source": {"name": self.source.name, "size": source.size, "sha256": source.sha256},
        }

    def describe(self, path: Path, source: SourceIdentity) -> None:
        """Write the JSON file, with the time of change of the source; in the text where the disk rounds times."""
        described = self.description(source)
        path.write_text(_json(described), encoding="utf-8")
        os.utime(path, ns=(source.mtime_ns, source.mtime_ns))
        if path.stat().st_mtime_ns != source.mtime_ns:
            described["source"]["mtime_ns"] = source.mtime_ns
            path.write_text(_json(described), encoding="utf-8")

    def _whole(self, path: Path) -> bool:
        """Whether a file has the very header and size; a header is compared, never parsed."""
        try:
            with path.open("rb") as file:
                return path.stat().st_size == self.size and file.read(HEADER) == npy_header(self.shape, self.dtype)
        except OSError:
            return False

    def _current(self, path: Path) -> bool:
        """Whether the array was made of the source as it is now."""
        try:
            about = json.loads(beside(path).read_bytes())
            # in the text also where an earlier version wrote it
            time = about["source"].get("mtime_ns", beside(path).stat().st_mtime_ns)
            source = SourceIdentity(about["source"]["size"], time, about["source"]["sha256"])
            same = (about["version"], about["shape"], about["dtype"]) == (VERSION, list(self.shape), self.dtype)
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return False
        if not same:
            return False
        if _stated(self.made_of)[0] != source.size:
            return False
        return source.unchanged(*self.made_of) or _content(self.made_of) == source.sha256


def prepared_places(source: Path, name: str) -> tuple[Path, Path]:
    """Return the two places for data derived from a file: next to it, and in the cache folder.

    Examples
    --------
    >>> prepared_places(Path("/data/stl10_binary.tar.gz"), "stl10_unpacked")[0]
    PosixPath('/data/stl10_unpacked')

    """
    source = source.absolute()
    digest = sha256(os.fsencode(source.resolve())).hexdigest()[:32]
    return source.with_name(name), cache_folder() / "prepared" / digest / name


def prepared_place(near: Path, cached: Path) -> Path:
    """Return the place to write: next to the source where that folder can be written, else in the cache."""
    return near if os.access(near.parent, os.W_OK) else cached


def beside(path: Path) -> Path:
    """Name of the description of a prepared array."""
    return path.with_name(path.name + ".json")


def _json(described: dict[str, Any]) -> str:
    return json.dumps(described, indent=1) + "\n"


def npy_header(shape: tuple[int, ...], dtype: str) -> bytes:
    r"""Header of a ``.npy`` file in C order, padded to a page."""
    described = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": tuple(int(size) for size in shape)}
    text = str(described).encode("latin-1")
    start = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
    return start + text.ljust(HEADER - 10 - 1) + b"\n"
