"""Files and folders that are there whole or not at all: written beside, flushed, renamed into place."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from setsup.files.disk import disk_errors, make_folder

__all__ = ["settle", "written", "written_folder"]


@contextmanager
def written(path: Path | str) -> Iterator[Path]:
    """Write a file so that a reader sees the whole of it or nothing.

    The body writes a temporary file beside `path` (hidden, with the same suffix, since some writers go by it). It is
    flushed to the disk and renamed when the body ends, and removed when the body is left by any error, Ctrl-C too.

    Parameters
    ----------
    path : Path or str
        The file to be written; its folder is made where it is missing, an older file is replaced.

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
    temporary = _beside(path)
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
    """Write a folder so that a reader sees the whole of it or nothing.

    Parameters
    ----------
    path : Path or str
        The folder to be written; an older one is replaced as a whole.

    Yields
    ------
    Path
        An empty temporary folder beside `path`.

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
    temporary = _beside(path)
    make_folder(path.parent)
    with disk_errors(path):
        try:
            temporary.mkdir()
            yield temporary
            for file in temporary.rglob("*"):
                _flush(file)
            _flush(temporary)
            _swap(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def settle(temporary: Path, path: Path) -> None:
    """Flush a finished temporary file to the disk and rename it to `path`.

    Parameters
    ----------
    temporary : Path
        The finished file, closed, on the same disk.
    path : Path
        Its final name; an older file of that name is replaced.

    """
    _flush(temporary)
    temporary.replace(path)
    _flush(path.parent)


def _beside(path: Path) -> Path:
    # the stem is cut, since 255 bytes are the limit of most disks and a stem of four-byte letters may come near
    return path.with_name(f".{path.stem[:32]}-{secrets.token_hex(6)}.tmp{path.suffix[-16:]}")


def _swap(temporary: Path, path: Path) -> None:
    """Rename a folder into place; an older one gives way and comes back where that fails."""
    if not path.exists():
        temporary.rename(path)
    else:
        old = _beside(path)
        path.rename(old)
        try:
            temporary.rename(path)
        except BaseException:
            old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    _flush(path.parent)


def _flush(path: Path) -> None:
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
