"""A folder of this machine as a store of shards."""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from setsup.errors import DamagedFile, DataError
from setsup.files import disk_errors, readable_size, written
from setsup.files.atomic import beside, settle
from setsup.files.disk import make_folder, need_regular
from setsup.files.expand_user import expanded
from setsup.files.lfs import refuse_pointer
from setsup.files.manifests.validators import relative
from setsup.shards.stores.errors import NotThere
from setsup.shards.stores.store import Range

__all__ = ["LocalStore", "below"]

_ELSEWHERE = (errno.EXDEV, errno.EPERM, errno.ENOTSUP)  # a rename or a second name that this disk cannot give


class LocalStore:
    """Files below a folder."""

    folder: Path

    def __init__(self, folder: Path) -> None:
        self.folder = expanded(folder).absolute()
        self.url = str(self.folder)

    def __repr__(self) -> str:
        return f"LocalStore({self.url!r})"

    def read(self, name: str, limit: int) -> bytes:
        """Content of a file of at most `limit` bytes."""
        path = self._path(name)
        with _readable(path), path.open("rb") as file:
            # no more than there is: room is made at once for as much as is asked for
            content = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
        if len(content) > limit:
            raise DataError(
                f"{path} is larger than {readable_size(limit)}, the maximum for this file, so it is a different file "
                "or is damaged; fetch or write it again"
            )
        return content

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        """Bytes of files, in the order asked for."""
        contents: list[bytes] = [b""] * len(wanted)
        # file by file, so that each is opened once
        for index in sorted(range(len(wanted)), key=lambda index: wanted[index].name):
            part = wanted[index]
            path = self._path(part.name)
            with _readable(path), path.open("rb") as file:
                file.seek(part.start)
                contents[index] = file.read(part.stop - part.start)
            if len(contents[index]) != part.stop - part.start:
                raise DataError(f"{path} is truncated: it ends before byte {part.stop:,}; fetch or write it again")
        return contents

    def size(self, name: str) -> int | None:
        """Size of a file in bytes; None if it does not exist."""
        path = self._path(name)
        try:
            # os.path, since Path.is_file raises where a folder may not be entered
            return path.stat().st_size if os.path.isfile(path) else None
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """Names of all files below the folder, in order, none where it is not there; hidden ones are left out."""
        if not os.path.isdir(self.folder):
            if os.path.exists(self.folder):
                raise DataError(f"{self.folder} is a file; expected a folder")
            return []

        def refused(error: OSError) -> None:
            raise DamagedFile.unreadable(error.filename, error) from error

        names = []
        for parent, folders, files in os.walk(self.folder, onerror=refused):
            folders[:] = [name for name in folders if not name.startswith(".")]
            inside = Path(parent).relative_to(self.folder)
            names += [(inside / name).as_posix() for name in files if not name.startswith(".")]
        return sorted(names)

    def get(self, name: str, path: Path) -> None:
        """Copy a file, whole or not at all."""
        source = self._path(name)
        with _readable(source):
            source.open("rb").close()
        with written(path) as fresh:
            shutil.copyfile(source, fresh)

    def put(self, name: str, path: Path) -> None:
        """Move a finished file there: under the name lies the whole of it or nothing."""
        target = self._path(name)
        make_folder(target.parent)
        try:
            with disk_errors(target):
                settle(path, target)
        except OSError as error:
            if error.errno not in _ELSEWHERE:
                raise
            with written(target) as fresh:  # from another disk
                shutil.copyfile(path, fresh)
            path.unlink()

    def put_bytes(self, name: str, content: bytes, *, fresh: bool = False) -> bool:
        """Write a small file; with `fresh` only if there is none. Returns whether it was written."""
        target = self._path(name)
        if not fresh:
            with written(target) as part:
                part.write_bytes(content)
            return True
        make_folder(target.parent)
        # a second name for a finished file is given only where there is none, and then to the whole content
        part = beside(target)
        with disk_errors(target):
            try:
                with part.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                return _linked(part, target)
            finally:
                with suppress(OSError):
                    part.unlink(missing_ok=True)

    def remove(self, names: Sequence[str]) -> None:
        """Remove files, and the folders that are empty then; those that are not there do not matter."""
        for name in names:
            path = self._path(name)
            with disk_errors(path):
                path.unlink(missing_ok=True)
            for parent in path.relative_to(self.folder).parents[:-1]:
                try:
                    (self.folder / parent).rmdir()
                except OSError:  # something is in it, or it is gone
                    break

    def _path(self, name: str) -> Path:
        return self.folder / below(name, self.url)


def below(name: str, url: str) -> str:
    """Refuse the name of a file that would not lie below an address."""
    try:
        return relative(name)
    except ValueError:
        raise DataError(
            f"invalid name {name!r} of a file in {url}: expected a relative path, with / and without .."
        ) from None


def _linked(part: Path, target: Path) -> bool:
    """Give a finished file its name, unless another has it."""
    try:
        os.link(part, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _ELSEWHERE:
            raise
        # a disk without second names: the name is taken first, and filled by a rename
        try:
            target.open("xb").close()
        except FileExistsError:
            return False
        part.replace(target)
    return True


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    need_regular(path)
    refuse_pointer(path)
    try:
        yield
    except FileNotFoundError:
        raise NotThere(f"{path} does not exist; fetch or write it again") from None
    except OSError as error:
        raise DamagedFile.unreadable(path, error) from error
