"""Files of Cars3D: in a folder, a tar or a zip, or in the published archive."""

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.errors import DamagedFile, DataError
from setsup.files import cache_folder, data_places, disk_errors, written
from setsup.files.archives.archive_format import is_gzip
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.archives.streams import stream_tar
from setsup.files.expand_user import expanded
from setsup.files.texts import text_of
from setsup.progress import progress

__all__ = ["LooseCars", "PackedCars", "Source", "find_cars"]

Source = tuple[Path | bytes, str]
"""A MAT file or its content, and what messages call it."""

MOST_BYTES = 1 << 25  # of a MAT file: 6.3 MB when masks are bytes, 17.3 MB when they are doubles

_ARCHIVE = "nips2015-analogy-data.tar"
_LIST = "list.txt"
_MESH = r"car_[^/]*_mesh"
_PUBLISHED = 183
_LONGEST_LIST = 1 << 20

_log = logging.getLogger("setsup")


@dataclass(frozen=True)
class LooseCars:
    """MAT files that can be read one by one."""

    members: MemberIndex
    stems: tuple[str, ...]
    numbers: tuple[int, ...]
    places: tuple[int, ...]
    listed: int | None

    direct = True
    """Whether one file can be read without those before it."""

    @property
    def where(self) -> Path:
        """Name of the release in messages."""
        return self.members.source

    @property
    def source(self) -> Path:
        """Folder and name prefix of the prepared arrays."""
        first = self.members.path(self.places[0])
        return self.members.source if first is None else first.with_name("cars3d")

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the images and their order depend on."""
        paths = [
            self.members.path(member) for member in (*self.places, *([] if self.listed is None else [self.listed]))
        ]
        return tuple(path for path in paths if path is not None) or (self.members.source,)

    @property
    def order(self) -> tuple[int, ...]:
        """Object ids in the fastest order to read."""
        return tuple(range(len(self.places)))

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], Source]]:
        """Return a function that reads an object; ids may be passed in any order."""
        yield self.read

    def read(self, number: int) -> Source:
        """MAT file of an object."""
        member = self.places[number]
        path = self.members.path(member)
        return (self.members.read(member, MOST_BYTES) if path is None else path), self.members.label(member)


@dataclass(frozen=True)
class PackedCars:
    """MAT files in a gzipped tar, which is read sequentially."""

    source: Path
    folder: str
    stems: tuple[str, ...]
    numbers: tuple[int, ...]
    order: tuple[int, ...]

    direct = False

    @property
    def where(self) -> Path:
        """Name of the release in messages."""
        return self.source

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the images and their order depend on."""
        return (self.source,)

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], Source]]:
        """Return a function that reads an object; ids must be passed in the order of `order`, but may be skipped."""
        names = {f"{self.folder}{stem}.mat": number for number, stem in enumerate(self.stems)}
        stream = stream_tar(self.source, lambda name: MOST_BYTES if name in names else None)

        def read(number: int) -> Source:
            for name, content in stream:
                if names[name] == number:
                    return content, f"{self.source}: {name}"
            raise DataError(f"{self.source} was replaced while it was being read; run the command again")

        try:
            yield read
        finally:
            stream.close()


def find_cars(root: Path | str | None) -> LooseCars | PackedCars:
    """Find the files of Cars3D."""
    path = None if root is None else expanded(root)
    if path is not None and is_gzip(path):
        return _packed(path.absolute())
    try:
        members = find_members("cars3d", path, [rf"{_MESH}\.mat"], (_ARCHIVE,))
    except DataError:
        # files that can be read one by one are preferred to the archive that holds them
        for folder in data_places("cars3d", path):
            if is_gzip(folder / f"{_ARCHIVE}.gz"):
                return _packed((folder / f"{_ARCHIVE}.gz").absolute())
        raise
    return _loose(members)


def _loose(members: MemberIndex) -> LooseCars:
    present = sorted(members.matching(rf"(?P<stem>{_MESH})\.mat")[1]["stem"].to_pylist())
    listed = members.place(_LIST) if _LIST in members else None
    if listed is None:
        stems = _unlisted(present, str(members.source))
        numbers = tuple(range(len(stems)))
    else:
        label = members.label(listed)
        stems, numbers = _there(parse_list(members.read(listed, _LONGEST_LIST), label), present, label)
    places = members.places([f"{stem}.mat" for stem in stems]).tolist()
    return LooseCars(members, stems, numbers, tuple(places), listed)


def parse_list(content: bytes, label: str) -> tuple[str, ...]:
    r"""Names of the MAT files without ``.mat``, in the order of the object ids."""
    lines = [line.strip() for line in text_of(content, label).splitlines()]
    stems = [line.removesuffix(".mat") for line in lines if line]
    for stem in stems:
        if not re.fullmatch(_MESH, stem) or "\\" in stem or not stem.isprintable():
            raise DamagedFile(f"{label} lists {stem[:80]!r}; expected names such as car_001_mesh")
    if not stems:
        raise DamagedFile(f"{label} is empty; expected one name per line")
    [(stem, times)] = Counter(stems).most_common(1)
    if times > 1:
        raise DamagedFile(f"{label} lists {stem!r} twice")
    return tuple(stems)


def _there(stems: Sequence[str], present: Sequence[str], label: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Listed files that are present, and their places in the list, by which objects keep their numbers."""
    there = set(present)
    warn_left_out(label, "cars", [f"{stem}.mat" for stem in stems if stem not in there], len(stems))
    listed = {stem: number for number, stem in enumerate(stems) if stem in there}
    if len(there) > len(listed):
        _log.warning(
            "%s lists %d of the %d cars that are present; the others are left out", label, len(listed), len(there)
        )
    return tuple(listed), tuple(listed.values())


def _unlisted(stems: Sequence[str], where: str) -> tuple[str, ...]:
    few = "" if len(stems) == _PUBLISHED else f" ({len(stems)} of the {_PUBLISHED} published)"
    _log.warning("%s has no %s: the cars%s are numbered by their sorted names", where, _LIST, few)
    return tuple(stems)


def _packed(path: Path) -> PackedCars:
    index = _index(path)
    folders = [name.rpartition("/")[0] for name in index["meshes"]]
    if not folders:
        raise DataError(
            f"{path} contains no file such as car_001_mesh.mat; pass the published archive, or fetch it again"
        )
    counts = Counter(sorted(folders))  # of folders with as many, the first by name
    folder = max(counts, key=counts.__getitem__)
    start = f"{folder}/" if folder else ""
    there = [
        name.removeprefix(start).removesuffix(".mat") for name in index["meshes"] if name.rpartition("/")[0] == folder
    ]
    text = index["lists"].get(f"{start}{_LIST}")
    if text is None:
        stems = _unlisted(sorted(there), str(path))
        numbers = tuple(range(len(stems)))
    else:
        label = f"{path}: {start}{_LIST}"
        stems, numbers = _there(parse_list(text.encode(), label), there, label)
    places = {stem: number for number, stem in enumerate(stems)}
    return PackedCars(path, start, stems, numbers, tuple(places[stem] for stem in there if stem in places))


def _index(path: Path) -> dict[str, Any]:
    """Names of the MAT files in their order, and lists; read once and kept in the cache folder."""
    stat = path.stat()
    file = cache_folder() / "indexes" / f"{sha256(os.fsencode(path.resolve())).hexdigest()[:32]}.cars3d.json"
    state = {"version": 1, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    with suppress(OSError, ValueError, TypeError, RecursionError):
        cached: Any = json.loads(file.read_bytes())
        if {name: cached.get(name) for name in state} == state and _is_index(cached):
            return dict(cached)
    index = {**state, **_streamed(path, stat.st_size)}
    # a cache that cannot be written costs time at the next opening, nothing else
    with suppress(OSError, DataError), disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with written(file) as fresh:
            fresh.write_text(json.dumps(index), encoding="utf-8")
    return index


def _is_index(index: dict[str, Any]) -> bool:
    meshes, lists = index.get("meshes"), index.get("lists")
    texts = [*meshes, *lists.values()] if isinstance(meshes, list) and isinstance(lists, dict) else [None]
    return all(isinstance(text, str) for text in texts)


def _streamed(path: Path, size: int) -> dict[str, Any]:
    mesh = re.compile(rf"(?:.*/)?{_MESH}\.mat")
    meshes: dict[str, None] = {}

    def limit_of(name: str) -> int | None:
        if mesh.fullmatch(name):
            meshes[name] = None
        return _LONGEST_LIST if name.rpartition("/")[2] == _LIST else None

    with progress(size, f"scanning {path.name}", "B") as advance:
        lists = {name: content.decode("utf-8", "replace") for name, content in stream_tar(path, limit_of, advance)}
    return {"meshes": list(meshes), "lists": lists}
