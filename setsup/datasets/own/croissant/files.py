"""Files of a description on this machine: beside it, in a folder that has them, or downloaded; all checked.

A description may come from anywhere. Paths stay inside the folder of the description; addresses are ``http`` or
``https``, and those of a description from an address do not lead into a private network.
"""

import fnmatch
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

import numpy as np

from setsup.arrays import Places
from setsup.datasets.cached_arrays import cached_array
from setsup.datasets.own.croissant.nodes import Described, FileObject, FileSet
from setsup.errors import DamagedFile, DataError, advice
from setsup.files import ManifestFile, cache_folder, content_digest, need_readable, open_members, readable_size
from setsup.files.archives.members import MemberIndex
from setsup.files.disk import make_folder
from setsup.files.downloads.addresses import refuse_private
from setsup.files.downloads.check import file_problem
from setsup.files.downloads.download import download
from setsup.files.locks import locked
from setsup.progress import progress

__all__ = ["Files", "Part"]

_ARCHIVES = ("application/x-tar", "application/zip", "application/gzip", "application/x-gzip", "application/x-gtar")
_TABLE = 1 << 32  # bytes of a table in an archive
_RATIO, _MOST = 100, 1 << 28  # of these for each of the archive, and beside
_GIT = "git+https"
_HUB = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)")


@dataclass(frozen=True, slots=True)
class Part:
    """Some files of one folder or archive, in the order of their names."""

    members: MemberIndex
    places: Places

    def names(self) -> list[str]:
        """Their names there."""
        return [str(name) for name in self.members.names.take(self.places).to_pylist()]


@dataclass(frozen=True)
class Files:
    """What a description describes, and where its files may be.

    `base` is the folder or the address of the description; `root` a folder that has the files under their names.
    """

    label: str
    described: Described
    base: Path | str
    root: Path | None
    fetches: bool

    def path(self, name: str) -> Path:
        """Path of a file that is in no other one; downloaded where that is allowed."""
        file = self._object(name)
        if file.within:
            raise DataError(f"{self.label}: {name!r} is inside {file.within[0]!r}; expected a file of its own")
        here = self._here(file)
        if here is not None:
            return self._checked(here, file)
        return self._fetched(file)

    def content(self, name: str) -> Path | bytes:
        """Path of a table, or its bytes where it is inside an archive."""
        file = self._object(name)
        if not file.within:
            return self.path(name)
        members = self._members(file.within[0])
        size = members.source.stat().st_size if members.source.is_file() else _TABLE
        return members.read(members.place(_inner(file.url, self.label)), min(_TABLE, _RATIO * size + _MOST))

    def parts(self, name: str) -> list[Part]:
        """Files of a set, a part for each folder or archive that has some."""
        chosen = self.described.files[name]
        if isinstance(chosen, FileObject):
            raise DataError(f"{self.label}: {name!r} is a file; expected a set of files")
        found = []
        for members in self._containers(chosen):
            places = np.array([place for place, wanted in enumerate(_wanted(members, chosen)) if wanted], np.int64)
            if len(places):
                found.append(Part(members, places))
        if not found:
            raise DataError(
                f"{self.label}: no file matches the patterns of {name!r}, {', '.join(chosen.includes) or '*'}; check "
                "that all archives are complete"
            )
        return found

    def _containers(self, chosen: FileSet) -> Iterator[MemberIndex]:
        if not chosen.within:
            yield open_members(self.root or self._folder(chosen.name))
        for outer in chosen.within:
            inner = self.described.files[outer]
            if isinstance(inner, FileSet):
                raise DataError(
                    f"{self.label}: {chosen.name!r} is a set of files in another set, which setsup cannot read"
                )
            yield self._members(outer)

    def _members(self, name: str) -> MemberIndex:
        file = self._object(name)
        if _GIT in file.formats:
            if self.root is None:
                hub = _HUB.match(file.url)
                other = f", or open hf:{hub[1]} instead" if hub else ""
                raise DataError(
                    f"{self.label}: {name!r} is a Git repository, {file.url}; clone it, and pass its folder with "
                    f"{advice('root=', '--root')}{other}"
                )
            return open_members(self.root)
        return open_members(self.path(name))

    def _object(self, name: str) -> FileObject:
        file = self.described.files.get(name)
        if not isinstance(file, FileObject):
            what = "is not listed in its distribution" if file is None else "is a set of files, not a file"
            raise DataError(f"{self.label}: {name!r} {what}")
        return file

    def _folder(self, name: str) -> Path:
        if isinstance(self.base, str):
            raise DataError(
                f"{self.label}: {name!r} is a set of files in a folder, which an address cannot list; fetch "
                f"the files, and pass their folder with {advice('root=', '--root')}"
            )
        return self.base

    def _here(self, file: FileObject) -> Path | None:
        """Path of a file that is here already."""
        scheme = urlsplit(file.url).scheme
        if self.root is not None:
            last = PurePosixPath(unquote(urlsplit(file.url).path)).name
            names = [*([] if scheme else [_inner(file.url, self.label)]), last]
            return next((self.root / name for name in names if name and (self.root / name).exists()), None)
        if isinstance(self.base, Path) and not scheme:
            return self.base / _inner(file.url, self.label)
        return None

    def _checked(self, path: Path, file: FileObject) -> Path:
        if path.is_dir():
            return path
        need_readable(path, f"a file of {self.label}")
        about = path.stat()
        if file.size is not None and about.st_size != file.size:
            raise DamagedFile(
                f"{path} has {about.st_size:,} bytes, but {self.label} specifies {file.size:,}", "fetch it again"
            )
        if file.sha256 is not None:
            state = (str(path.resolve()), about.st_size, about.st_mtime_ns, file.sha256)

            def compare() -> np.ndarray:
                with progress(about.st_size, f"checking {path.name}", "B") as advance:
                    found = content_digest(path, advance=advance)
                if found != file.sha256:
                    raise DamagedFile(
                        f"{path} is not the file that {self.label} specifies: its SHA-256 differs", "fetch it again"
                    )
                return np.ones(1, np.bool_)

            cached_array("croissant", state, np.dtype(np.bool_), 1, compare)  # once for each state of the file
        return path

    def _fetched(self, file: FileObject) -> Path:
        url = urljoin(self.base, file.url) if isinstance(self.base, str) else file.url
        if urlsplit(url).scheme not in ("http", "https"):
            raise DataError(
                f"{self.label}: {file.name!r} has the address {url!r}; expected http or https, or a path relative to "
                "the description"
            )
        suffix = re.sub(r"[^A-Za-z0-9._-]", "_", PurePosixPath(unquote(urlsplit(url).path)).name)[-80:].lstrip(".")
        key = hashlib.sha256(f"{url} {file.sha256} {file.md5}".encode()).hexdigest()[:24]
        target = cache_folder() / "croissant" / key / (suffix or "file")
        published = ManifestFile(suffix, urls=(url,), size=file.size, sha256=file.sha256, md5=file.md5)
        if target.is_file() and file_problem(target, published) is None:
            return target
        if not self.fetches:
            size = f" ({readable_size(file.size)})" if file.size else ""
            raise DataError(
                f"{self.label}: {file.name!r}{size} is not on this machine; download it from {url} with "
                f"{advice('download=True', '--option download=true')}, or pass the folder that has it with "
                f"{advice('root=', '--root')}"
            )
        if file.sha256 is None and file.md5 is None:
            raise DataError(
                f"{self.label}: {file.name!r} has neither SHA-256 nor MD5, so that a download could not be checked; "
                f"fetch {url} yourself, and pass its folder with {advice('root=', '--root')}"
            )
        make_folder(target.parent)
        with locked(target.parent):
            if not target.is_file() or file_problem(target, published) is not None:
                download(published, target, self._check)
        return target

    def _check(self, url: str) -> None:
        """Refuse an address in a private network, but for the host of a description that the user named."""
        if not isinstance(self.base, str) or urlsplit(url).netloc != urlsplit(self.base).netloc:
            refuse_private(url, self.label)


def _inner(url: str, label: str) -> str:
    """A relative path of a description, which stays inside its folder."""
    path = PurePosixPath(unquote(url))
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in url or "\0" in url or ":" in path.parts[0]:
        raise DataError(
            f"{label}: the contentUrl {url!r} leads out of its folder; expected a path inside it, or an address"
        )
    return path.as_posix()


def _wanted(members: MemberIndex, chosen: FileSet) -> Iterator[bool]:
    """Whether each file matches; ``*`` also matches ``/``, as in ``mlcroissant``."""
    includes, excludes = (
        [re.compile(fnmatch.translate(one.removeprefix("./"))) for one in patterns if one]
        for patterns in (chosen.includes, chosen.excludes)
    )
    for name in members.names.to_pylist():
        inside = not includes or any(one.match(name) for one in includes)
        yield inside and not any(one.match(name) for one in excludes)
