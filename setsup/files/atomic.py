"""Atomic writes: files and folders are written under a temporary name, flushed, and renamed."""

import os
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from setsup.files.disk import disk_errors, make_folder

__all__ = ["beside", "clear", "flush", "is_temporary", "settle", "written", "written_folder"]

_TEMPORARY = re.compile(rb"\..*-[0-9a-f]{8}-[0-9a-f]{12}\.tmp.*", re.DOTALL)


@contextmanager
def written(path: Path | str) -> Iterator[Path]:
    """Write a file atomically: readers see the complete file or none.

    The body writes a temporary file next to `path` (hidden, with the same suffix, which some writers require). It is
    flushed to the disk and renamed when the body ends, and removed on any error, Ctrl-C included.

    Parameters
    ----------
    path : Path or str
        The file to write; its folder is created if it is missing, and an existing file is replaced.

    Yields
    ------
    Path
        The temporary file, which does not exist yet.

    Raises
    ------
    DataError
        The disk is full or read-only, or the folder may not be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written(folder / "greeting.txt") as part:
    ...     _ = part.write_text("hello")
    >>> [file.name for file in folder.iterdir()], (folder / "greeting.txt").read_text()
    (['greeting.txt'], 'hello')

    """
    path = Path(path)
    temporary = beside(path)
    make_folder(path.parent)
    with disk_errors(path):
        try:
            yield temporary
            settle(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


@contextmanager
def written_folder(path: Path | str) -> Iterator[Path]:
    """Write a folder atomically: readers see the complete folder or none.

    Parameters
    ----------
    path : Path or str
        The folder to write; an existing one is replaced.

    Yields
    ------
    Path
        An empty temporary folder next to `path`.

    Raises
    ------
    DataError
        The disk is full or read-only, or the folder may not be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "index"
    >>> with written_folder(folder) as part:
    ...     _ = (part / "offsets.bin").write_bytes(bytes(8))
    >>> [file.name for file in folder.iterdir()]
    ['offsets.bin']

    """
    path = Path(path)
    temporary = beside(path)
    make_folder(path.parent)
    with disk_errors(path):
        try:
            temporary.mkdir()
            yield temporary
            for file in temporary.rglob("*"):
                flush(file)
            flush(temporary)
            _swap(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def settle(temporary: Path, path: Path) -> None:
    """Flush a finished temporary file to the disk and rename it to `path`."""
    flush(temporary)
    temporary.replace(path)
    flush(path.parent)


def clear(path: Path) -> None:
    """Remove temporary files and folders of `path` that killed processes left."""
    start, end = _around(path)
    for left in path.parent.glob(".*.tmp*"):
        if is_temporary(left.name) and left.name.startswith(start) and left.name.endswith(end):
            with suppress(OSError):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def is_temporary(name: str | bytes) -> bool:
    """Whether this is the name of a temporary file or folder."""
    return _TEMPORARY.fullmatch(os.fsencode(name)) is not None


def beside(path: Path) -> Path:
    """Name for a temporary file or folder of `path`, which :func:`is_temporary` knows and :func:`clear` removes."""
    start, end = _around(path)
    return path.with_name(f"{start}{secrets.token_hex(6)}{end}")


def _around(path: Path) -> tuple[str, str]:
    """The name of a temporary file before and after its random part."""
    # the stem is cut, since 255 bytes are the limit of most disks and a stem of four-byte letters may come near; a
    # checksum of the name tells apart what is cut to the same
    return f".{path.stem[:32]}-{zlib.crc32(os.fsencode(path.name)):08x}-", f".tmp{path.suffix[-16:]}"


def _swap(temporary: Path, path: Path) -> None:
    """Rename a folder into place; an older one gives way and comes back where that fails."""
    if not path.exists():
        temporary.rename(path)
    else:
        old = beside(path)
        path.rename(old)
        try:
            temporary.rename(path)
        except BaseException:
            old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    flush(path.parent)


def flush(path: Path) -> None:
    """Have the disk keep what was written: content of a file, names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        # some network disks cannot flush a folder; a file must be safe before it gets its name
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)
