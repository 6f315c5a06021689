"""Arrays and tables in the cache folder, and the states of their source files."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DamagedFile, DataError
from setsup.factors.table import FactorTable
from setsup.files import cache_folder, written
from setsup.files.archives.members import MemberIndex
from setsup.files.builds import build_cached
from setsup.files.disk import read_errors

__all__ = ["cached_array", "cached_npy", "cached_table", "file_states", "release_state"]


_log = logging.getLogger("setsup")


def cached_array(name: str, made_of: object, dtype: np.dtype[Any], rows: int, make: Callable[[], Array]) -> Array:
    """Map an array from the cache, or create and store it.

    Returns (rows,) array.
    """
    digest = sha256(os.fsencode(repr(made_of))).hexdigest()[:32]
    path = cache_folder() / "prepared" / digest / f"{name}.npy"
    return cached_npy(path, lambda array: array.dtype == dtype and array.shape == (rows,), make)


def cached_npy(path: Path, fits: Callable[[Array], bool], make: Callable[[], Array]) -> Array:
    """Map an array from a file of the cache, or create and store it; an array that does not match is created again."""

    def find(path: Path) -> Array | None:
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception:  # not there, or damaged: numpy lets a TokenError through, among others
            return None
        return np.asarray(array) if fits(array) else None  # unless something else wrote it

    def save(array: Array, path: Path) -> None:
        with written(path) as part:
            np.save(part, array)

    return build_cached(path, find, make, save)


def cached_table(path: Path, make: Callable[[], FactorTable]) -> FactorTable:
    """Map a factor table from a file of the cache, or create and store it."""

    def find(path: Path) -> FactorTable | None:
        try:
            return FactorTable.open(path) if path.is_file() else None
        except DataError as error:
            _log.warning("recreating %s: %s", path, error)
            return None

    return build_cached(path, find, make, FactorTable.save)


def file_states(members: MemberIndex, places: Iterable[int]) -> list[tuple[str, int, int]]:
    """Identify the version of files of a release, without reading them."""
    states = []
    for member in places:
        label = members.label(member)
        with read_errors(label):
            state = (members.path(member) or members.source).stat()
        states.append((label, state.st_size, state.st_mtime_ns))
    return states


def release_state(members: MemberIndex, places: npt.NDArray[np.int64]) -> str:
    """Identify the version of many files of a release by names, sizes and a few modification times.

    For a folder, only the times of its subfolders are read, since reading those of 100,000 files on a network disk
    would take very long. So added, removed, renamed and replaced files (most editors replace files) are noticed; a file
    that is overwritten in place is not, unless its size in `members` changes. To signal such a change, touch the folder
    of the file.

    `places` (n,) int64.
    """
    digest = hashlib.blake2b(os.fsencode(f"{members.source.resolve()}\n{members.prefix}\n"), digest_size=16)
    digest.update("\n".join(members.names.take(places).to_pylist()).encode("utf-8", "surrogatepass"))
    digest.update(np.ascontiguousarray(members.sizes[places], dtype="<i8").tobytes())
    try:
        for path in _timed(members, places):
            state = path.stat()
            digest.update(f"\n{state.st_mtime_ns} {0 if path.is_dir() else state.st_size}".encode())
    except OSError as error:
        raise DamagedFile.unreadable(error.filename, error) from error
    return digest.hexdigest()


def _timed(members: MemberIndex, places: npt.NDArray[np.int64]) -> list[Path]:
    """The archive, or the folders of files and those above them, up to the top of the release."""
    import pyarrow.compute as pc

    if not len(places) or members.path(int(places[0])) is None:
        return [members.source]
    folders = pc.replace_substring_regex(members.names.take(places), "[^/]*$", "").dictionary_encode()
    _, first = np.unique(np.asarray(folders.indices), return_index=True)
    timed: set[Path] = set()
    for member in places[first].tolist():
        path = members.path(member)
        if path is not None:
            timed.update(list(path.parents)[: members.names[member].as_py().count("/") + 1])
    return sorted(timed)
