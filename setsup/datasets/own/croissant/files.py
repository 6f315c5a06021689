"""Files of a description on this machine: beside it, in a folder that has them, or downloaded; all checked.

A description may come from anywhere. Paths stay inside the folder of the description or the given one, also where
links lead; addresses are ``http`` or ``https``, and do not lead into a private network.
"""

import fnmatch
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

import numpy as np

from setsup.arrays import Places
from setsup.datasets.cached_arrays import cached_array
from setsup.datasets.own.croissant.nodes import Described, FileObject, FileSet
from setsup.errors import DamagedFile, DataError, advice
from setsup.files import ManifestFile, cache_folder, need_readable, open_members, readable_size
from setsup.files.archives.members import MemberIndex
from setsup.files.disk import make_folder
from setsup.files.downloads.addresses import is_same_host, refuse_private
from setsup.files.downloads.check import file_problem
from setsup.files.downloads.download import download
from setsup.files.locks import locked

__all__ = ["Files", "Part"]

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

    `base` is the folder or the address of the description; `root` a folder that has the files under their names;
    `address` that of the description as the user named it, empty for a path.
    """

    label: str
    described: Described
    base: Path | str
    root: Path | None = None
    download: bool = False
    address: str = ""

    def path(self, node: str) -> Path:
        """Path of a file that is in no other one; downloaded where that is allowed."""
        file = self._object(node)
        found = self._find(file)
        return self._download(file) if found is None else self._check(found, file)

    def sources(self, node: str) -> list[tuple[MemberIndex, int] | Path]:
        """Files of a table: paths, or places in a folder or archive."""
        chosen = self.described.files.get(node)
        if isinstance(chosen, FileSet):
            return [(part.members, place) for part in self.parts(node) for place in part.places.tolist()]
        file = self._object(node)
        if not file.within:
            return [self.path(node)]
        members = self._members(file.within[0])
        return [(members, members.place(_relative(file.url, self.label)))]

    def parts(self, node: str) -> list[Part]:
        """Files of a set, a part for each folder or archive that has some."""
        chosen = self.described.files[node]
        if isinstance(chosen, FileObject):
            raise DataError(f"{self.label}: {node!r} is a file; expected a set of files")
        found = []
        for members in self._containers(chosen):
            places = np.array([place for place, wanted in enumerate(_match(members, chosen)) if wanted], np.int64)
            if len(places):
                found.append(Part(members, places))
        if not found:
            raise DataError(
                f"{self.label}: no file matches the patterns of {node!r}, {', '.join(chosen.includes) or '*'}; check "
                "that all archives are complete"
            )
        return found

    def _containers(self, chosen: FileSet) -> Iterator[MemberIndex]:
        if not chosen.within:
            yield open_members(self.root or self._folder(chosen.node), inside=True)
        for outer in chosen.within:
            inner = self.described.files[outer]
            if isinstance(inner, FileSet):
                raise DataError(
                    f"{self.label}: {chosen.node!r} is a set of files in another set, which setsup cannot read"
                )
            yield self._members(outer)

    def _members(self, node: str) -> MemberIndex:
        file = self._object(node)
        if _GIT in file.formats:
            if self.root is None:
                hub = _HUB.match(file.url)
                other = f", or open hf:{hub[1]} instead" if hub else ""
                raise DataError(
                    f"{self.label}: {node!r} is a Git repository, {file.url}; clone it, and pass its folder with "
                    f"{advice('root=', '--root')}{other}"
                )
            return open_members(self.root, inside=True)
        found = self._find(file)
        return open_members(found if found is not None and os.path.isdir(found) else self.path(node), inside=True)

    def _object(self, node: str) -> FileObject:
        file = self.described.files.get(node)
        if not isinstance(file, FileObject):
            what = "is not listed in its distribution" if file is None else "is a set of files, not a file"
            raise DataError(f"{self.label}: {node!r} {what}")
        return file

    def _folder(self, node: str) -> Path:
        if isinstance(self.base, str):
            raise DataError(
                f"{self.label}: {node!r} is a set of files in a folder, which cannot be listed over HTTP; fetch the "
                f"files, and pass their folder with {advice('root=', '--root')}"
            )
        return self.base

    def _find(self, file: FileObject) -> Path | None:
        """Path of a file, None where it is to be downloaded."""
        if file.within:
            raise DataError(f"{self.label}: {file.node!r} is inside {file.within[0]!r}; expected a file of its own")
        parts = urlsplit(file.url)
        if self.root is not None:
            last = parts.path.rstrip("/").rpartition("/")[2]
            names = [*([] if parts.scheme else [file.url]), *([last] if last else [])]
            found = (self._local(self.root, name) for name in names)
            return next((path for path in found if os.path.exists(path)), None)
        return self._local(self.base, file.url) if isinstance(self.base, Path) and not parts.scheme else None

    def _local(self, folder: Path, url: str) -> Path:
        """Path of a file in a folder, out of which no link leads."""
        path = folder / _relative(url, self.label)
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise DataError(
                f"{self.label}: {path} links to a path outside {folder}; expected a file inside it; pass the folder "
                f"that it links to with {advice('root=', '--root')}"
            )
        return path

    def _check(self, path: Path, file: FileObject) -> Path:
        need_readable(path, f"a file of {self.label}")
        published, about = _published(file), path.stat()

        def compare() -> np.ndarray:
            problem = file_problem(path, published)
            if problem is not None:
                raise DamagedFile(f"{path} {problem}, which {self.label} specifies", "fetch it again")
            return np.ones(1, np.bool_)

        if published.size is not None or published.sha256 or published.md5:  # once for each state of the file
            state = (os.path.realpath(path), about.st_size, about.st_mtime_ns, published)
            cached_array("croissant", state, np.dtype(np.bool_), 1, compare)
        return path

    def _download(self, file: FileObject) -> Path:
        url = urljoin(self.base, file.url) if isinstance(self.base, str) else file.url
        if urlsplit(url).scheme not in ("http", "https"):
            raise DataError(
                f"{self.label}: {file.node!r} has the address {url!r}; expected http or https, or a path relative to "
                "the description"
            )
        published = _published(file, url)
        key = hashlib.sha256(f"{url} {file.sha256} {file.md5}".encode()).hexdigest()[:24]
        target = cache_folder() / "croissant" / key / (published.path or "file")
        if target.is_file() and file_problem(target, published) is None:
            return target
        pass_folder = f"pass the folder that has it with {advice('root=', '--root')}"
        if not self.download:
            size = f" ({readable_size(file.limit)})" if file.limit else ""
            raise DataError(
                f"{self.label}: {file.node!r}{size} is not on this machine; download it from {url} with "
                f"{advice('download=True', '--option download=true')}, or {pass_folder}"
            )
        if file.sha256 is None and file.md5 is None:
            raise DataError(
                f"{self.label}: {file.node!r} has neither SHA-256 nor MD5, so a download cannot be verified; fetch "
                f"{url} yourself, and {pass_folder}"
            )
        if file.limit is None:
            raise DataError(
                f"{self.label}: {file.node!r} has no contentSize such as '512 B', so a download has no limit; fetch "
                f"{url} yourself, and {pass_folder}"
            )
        make_folder(target.parent)
        with locked(target.parent):
            if not target.is_file() or file_problem(target, published) is not None:
                download(published, target, self._refuse_private, file.limit)
        return target

    def _refuse_private(self, url: str, hosts: Sequence[str] = ()) -> None:
        """Refuse an address in a private network, except at the host that the user named."""
        if not is_same_host(url, self.address):
            refuse_private(url, self.label, hosts)


def _published(file: FileObject, url: str = "") -> ManifestFile:
    """What a description says of a file, in a form that the checks of downloads take."""
    name = PurePosixPath(unquote(urlsplit(url or file.url).path)).name
    path = re.sub(r"[^A-Za-z0-9._-]", "_", name)[-80:].lstrip(".")
    return ManifestFile(path, urls=(url,) if url else (), size=file.size, sha256=file.sha256, md5=file.md5)


def _relative(url: str, label: str) -> str:
    """A relative path of a description, which stays inside its folder."""
    name = unquote(url)
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise DataError(
            f"{label}: the contentUrl {url!r} leads out of its folder; expected a path inside it, or an address"
        )
    return path.as_posix()


def _match(members: MemberIndex, chosen: FileSet) -> Iterator[bool]:
    """Whether each file matches; ``*`` also matches ``/``, as in ``mlcroissant``."""
    includes, excludes = (
        [re.compile(fnmatch.translate(one.removeprefix("./"))) for one in patterns if one]
        for patterns in (chosen.includes, chosen.excludes)
    )
    for name in members.names.to_pylist():
        inside = not includes or any(one.match(name) for one in includes)
        yield inside and not any(one.match(name) for one in excludes)
