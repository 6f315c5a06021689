"""The files below a folder, listed; symbolic links are followed."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from setsup.errors import DamagedFile
from setsup.files.archives.listing import Listing
from setsup.files.archives.names import as_bytes, as_text, escaped
from setsup.files.atomic import is_temporary
from setsup.progress import Advance, progress

__all__ = ["list_folder", "unchanged"]

_log = logging.getLogger("setsup")


def list_folder(folder: Path, apart: Path, hidden: bool = False, inside: bool = False) -> Listing:
    """List the regular files below a folder.

    A link to a folder is entered, unless it leads back to a folder that contains it. Broken links, sockets
    and the like are left out, and so is what is being written here, or was when its process was killed; so are folders
    that may not be entered, but the listing is not to be kept then. Hidden folders are entered only where `hidden`.
    Where `inside`, links that lead out of the folder are left out, with a warning.
    """
    top = os.fsencode(folder)
    names: list[bytes] = []
    sizes: list[int] = []
    seen: list[tuple[bytes, int]] = []
    whole = True
    not_listed = _identity(os.stat(apart)) if os.path.isdir(apart) else None
    within = os.path.realpath(top) if inside else None
    # relative name, and the folders on the way there, by which a loop is known
    waiting: list[tuple[bytes, frozenset[tuple[int, int]]]] = [(b"", frozenset())]
    with progress(None, f"listing {folder.name}", "files") as advance:
        while waiting:
            below, above = waiting.pop()
            path = os.path.join(top, below) if below else top
            try:
                # the time first: what is added while the folder is read makes it another
                about = os.stat(path)
                identity = _identity(about)
                if identity in above or identity == not_listed:
                    continue
                inner = _read(path, below + b"/" if below else b"", names, sizes, hidden, within, advance)
            except OSError as error:
                if not below:
                    raise DamagedFile.unreadable(folder, error) from error
                _log.warning("%s is left out: %s", os.fsdecode(path), error.strerror or error)
                whole = False
                continue
            seen.append((below, about.st_mtime_ns))
            waiting += [(name, above | {identity}) for name in inner]
    zeros = np.zeros(len(names), np.int64)
    return Listing(
        as_text([escaped(name) for name in names]),
        offsets=zeros,
        stored=zeros,
        sizes=np.array(sizes, np.int64),
        methods=zeros.astype(np.uint32),
        checks=zeros.astype(np.uint32),
        folders=as_text([escaped(name) for name, _ in seen]),
        times=np.array([time for _, time in seen], np.int64),
        whole=whole,
    )


def unchanged(folder: Path, names: Iterable[str], times: Iterable[int]) -> bool:
    """Tell whether no file was added to the folders listed, taken away or renamed."""
    top = os.fsencode(folder)
    try:
        return all(
            os.stat(os.path.join(top, as_bytes(name.encode())) if name else top).st_mtime_ns == time
            for name, time in zip(names, times, strict=True)
        )
    except (OSError, ValueError):
        return False


def _identity(about: os.stat_result) -> tuple[int, int]:
    return about.st_dev, about.st_ino


def _leads_into(path: bytes, folder: bytes) -> bool:
    """Whether a link ends in a folder or below it."""
    target = os.path.realpath(path)
    return target == folder or target.startswith(folder.rstrip(b"/") + b"/")


def _read(
    path: bytes,
    below: bytes,
    names: list[bytes],
    sizes: list[int],
    hidden: bool,
    within: bytes | None,
    advance: Advance,
) -> list[bytes]:
    """Add the files of one folder, whose names begin with `below`; returns its folders.

    Links that lead out of the folder `within` are left out.
    """
    folders = []
    before = len(names)
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.startswith(b".") and (not hidden or is_temporary(entry.name)):
                continue
            try:
                if within is not None and entry.is_symlink() and not _leads_into(entry.path, within):
                    _log.warning(
                        "%s links to a path outside %s; it is left out", *map(os.fsdecode, (entry.path, within))
                    )
                elif entry.is_dir():
                    folders.append(below + entry.name)
                elif entry.is_file():
                    sizes.append(entry.stat().st_size)
                    names.append(below + entry.name)
            except OSError as error:
                _log.debug("%s is left out: %s", os.fsdecode(entry.path), error)
    advance(len(names) - before)
    return folders
