"""Tell by its content whether a path is a folder, a zip, a tar, or something that cannot be read file by file."""

import os
import shlex
import stat
from pathlib import Path

from setsup.errors import DataError
from setsup.files.archives.plain_files import open_file, unreadable
from setsup.files.archives.tar_headers import BLOCK, is_header
from setsup.files.archives.zips import has_end

__all__ = ["archive_kind", "is_gzip"]

_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_FOREIGN = {b"7z\xbc\xaf'\x1c": "7z", b"Rar!\x1a\x07": "RAR"}


def archive_kind(source: Path) -> str:
    """Tell what a path is, by its content: ``"folder"``, ``"zip"`` or ``"tar"``."""
    try:
        if stat.S_ISDIR(os.stat(source).st_mode):
            return "folder"
        with open_file(source) as (file, size):
            head = os.pread(file, BLOCK, 0)
            # a zip may begin with anything, but what begins as a tar and ends as a zip is a tar that ends with one
            if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
                return "zip"
            if is_header(head):
                return "tar"
            packed = next((name for mark, name in _PACKED.items() if head.startswith(mark)), None)
            if packed is None and has_end(file, size):
                return "zip"
    except OSError as error:
        raise unreadable(source, error) from error
    if packed is not None:
        tar = ".tar" in source.name or source.suffix in (".tgz", ".tbz2", ".txz")
        how = f" (tar -xf {shlex.quote(source.name)})" if tar else ""
        raise DataError(
            f"{source} is compressed with {packed} as a whole, so its files cannot be read one by one; unpack it{how} "
            "and pass the folder"
        )
    foreign = next((name for mark, name in _FOREIGN.items() if head.startswith(mark)), None)
    if foreign is not None:
        raise DataError(f"{source} is a {foreign} archive, which is not supported; unpack it and pass the folder")
    raise DataError(
        f"{source} is not a folder, zip or tar: it begins with {head[:8]!r} and has {size:,} bytes; fetch it again, "
        "or pass the folder that contains the files"
    )


def is_gzip(source: Path) -> bool:
    """Whether a path is a file packed with gzip as a whole; False where it is none."""
    try:
        with open_file(source) as (file, _):
            return os.pread(file, 2, 0) == b"\x1f\x8b"
    except (DataError, OSError):
        return False
