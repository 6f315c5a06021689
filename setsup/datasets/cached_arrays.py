"""What took a while to make, kept in the user's cache folder under a name that says what it was made of."""

import logging
import os
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.files import cache_folder, locked, written
from setsup.files.members import Members

__all__ = ["cached_array", "file_states", "kept_or_made", "made_once"]

Array = npt.NDArray[Any]
Found = TypeVar("Found")

_log = logging.getLogger("setsup")


def cached_array(name: str, made_of: object, dtype: np.dtype[Any], rows: int, make: Callable[[], Array]) -> Array:
    """Map an array from the cache, or make it and put it there.

    Parameters
    ----------
    name : str
        Name of the file, without ``.npy``.
    made_of : object
        What the array follows from, by its ``repr``: with anything else it is another array.
    dtype : numpy.dtype
        Its type, which may be structured.
    rows : int
        Its length; it has one axis.
    make : callable
        Makes it. Other processes that want it wait meanwhile.

    Returns
    -------
    (rows,) array
        Mapped and read-only; in memory where the cache cannot be written, which is logged.

    Raises
    ------
    DataError
        What `make` raises.

    """
    digest = sha256(os.fsencode(repr(made_of))).hexdigest()[:32]
    target = cache_folder() / "prepared" / digest / f"{name}.npy"

    def kept(path: Path) -> Array | None:
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        # unless something else wrote it
        return np.asarray(found) if found.dtype == dtype and found.shape == (rows,) else None

    def save(array: Array, path: Path) -> None:
        with written(path) as part:
            np.save(part, array)

    return kept_or_made(target, kept, make, save)


def kept_or_made(
    path: Path, kept: Callable[[Path], Found | None], make: Callable[[], Found], save: Callable[[Found, Path], object]
) -> Found:
    """Open a file, or make what it holds and keep it there; without a file where the cache cannot be written.

    Parameters
    ----------
    path : Path
        The file.
    kept : callable
        Opens it; gives None where it is missing, damaged or another one.
    make : callable
        Makes what it holds. Other processes that want it wait meanwhile.
    save : callable
        Writes that into the file.

    Returns
    -------
    what `kept` gives, or `make` where the file cannot be written, which is logged

    Raises
    ------
    DataError
        What `make` raises.

    """
    made: list[Found] = []
    failed: list[DataError] = []

    def write(path: Path) -> None:
        try:
            made.append(make())
        except DataError as error:
            failed.append(error)
            raise
        save(made[0], path)

    try:
        return made_once(path, kept, write)
    except DataError as error:
        if failed:
            raise
        _log.warning("%s; it is made anew by every process", error)
    return made[0] if made else make()


def made_once(path: Path, kept: Callable[[Path], Found | None], save: Callable[[Path], object]) -> Found:
    """Open a file, or make it and open it; of several processes that want it one makes it, and the others wait.

    Parameters
    ----------
    path : Path
        The file.
    kept : callable
        Opens it; gives None where it is missing, damaged or another one.
    save : callable
        Makes it.

    Returns
    -------
    what `kept` gives

    Raises
    ------
    DataError
        What `save` raises, or the file cannot be read although it has just been made.

    """
    found = kept(path)
    if found is None:
        with locked(path):
            found = kept(path)  # another process may have been faster
            if found is None:
                save(path)
                found = kept(path)
    if found is None:
        raise DataError(f"{path} cannot be read although it was written just now; see whether its disk is sound")
    return found


def file_states(members: Members, places: Iterable[int]) -> list[tuple[str, int, int]]:
    """Tell files of a release from later versions of them, without reading them.

    Parameters
    ----------
    members : Members
        The files of the release.
    places : iterable of int
        Places of files.

    Returns
    -------
    list of (str, int, int)
        What messages call each file, and bytes and time of change (ns) of the file, or of the archive that holds it.

    Raises
    ------
    DataError
        A file is not there any more.

    """
    found = []
    for place in places:
        label = members.label(place)
        try:
            state = (members.path(place) or members.source).stat()
        except OSError as error:
            raise DataError(f"{label} cannot be read: {error.strerror or error}") from error
        found.append((label, state.st_size, state.st_mtime_ns))
    return found
