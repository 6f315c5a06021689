"""Where the meshes' files of Cars3D lie: in a folder, a tar or a zip, or in the archive as it was published."""

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
        """What messages call the release."""
        return self.members.source

    @property
    def source(self) -> Path:
        """Folder and begin of the names of prepared arrays."""
        first = self.members.path(self.places[0])
        return self.members.source if first is None else first.with_name("cars3d")

    @property
    def files(self) -> tuple[Path, ...]:
        """What the pictures and their order are made of."""
        paths = [self.members.path(place) for place in (*self.places, *([] if self.listed is None else [self.listed]))]
        return tuple(path for path in paths if path is not None) or (self.members.source,)

    @property
    def order(self) -> tuple[int, ...]:
        """Object ids in the order in which they are best read."""
        return tuple(range(len(self.places)))

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], Source]]:
        """Give a function that reads an object, of which the ids may come in any order."""
        yield self.read

    def read(self, number: int) -> Source:
        """MAT file of an object."""
        place = self.places[number]
        path = self.members.path(place)
        return (self.members.read(place, MOST_BYTES) if path is None else path), self.members.label(place)


@dataclass(frozen=True)
class PackedCars:
    """MAT files in a gzipped tar, which is read from begin to end."""

    source: Path
    folder: str
    stems: tuple[str, ...]
    numbers: tuple[int, ...]
    order: tuple[int, ...]

    direct = False

    @property
    def where(self) -> Path:
        """What messages call the release."""
        return self.source

    @property
    def files(self) -> tuple[Path, ...]:
        """What the pictures and their order are made of."""
        return (self.source,)

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], Source]]:
        """Give a function that reads an object; the ids must come in the order of `order`, of which some may lack."""
        names = {f"{self.folder}{stem}.mat": number for number, stem in enumerate(self.stems)}
        stream = stream_tar(self.source, lambda name: MOST_BYTES if name in names else None)

        def read(number: int) -> Source:
            for name, content in stream:
                if names[name] == number:
                    return content, f"{self.source}: {name}"
            raise DataError(f"{self.source} was replaced while it was read; start again")

        try:
            yield read
        finally:
            stream.close()


def find_cars(root: Path | str | None) -> LooseCars | PackedCars:
    """Find the files of Cars3D."""
    given = None if root is None else expanded(root)
    if given is not None and is_gzip(given):
        return _packed(given.absolute())
    try:
        members = find_members("cars3d", given, [rf"{_MESH}\.mat"], (_ARCHIVE,))
    except DataError:
        # files that can be read one by one are preferred to the archive that holds them
        for place in data_places("cars3d", given):
            if is_gzip(place / f"{_ARCHIVE}.gz"):
                return _packed((place / f"{_ARCHIVE}.gz").absolute())
        raise
    return _loose(members)


def _loose(members: MemberIndex) -> LooseCars:
    found = sorted(members.matching(rf"(?P<stem>{_MESH})\.mat")[1]["stem"].to_pylist())
    listed = members.place(_LIST) if _LIST in members else None
    if listed is None:
        stems = _unlisted(found, str(members.source))
        numbers = tuple(range(len(stems)))
    else:
        label = members.label(listed)
        stems, numbers = _there(parse_list(members.read(listed, _LONGEST_LIST), label), found, label)
    places = members.places([f"{stem}.mat" for stem in stems]).tolist()
    return LooseCars(members, stems, numbers, tuple(places), listed)


def parse_list(content: bytes, label: str) -> tuple[str, ...]:
    r"""Names of the MAT files without ``.mat``, in the order of the object ids."""
    lines = [line.strip() for line in text_of(content, label).splitlines()]
    stems = [line.removesuffix(".mat") for line in lines if line]
    for stem in stems:
        if not re.fullmatch(_MESH, stem) or "\\" in stem or not stem.isprintable():
            raise DamagedFile(f"{label} names {stem[:80]!r}; names such as car_001_mesh were expected")
    if not stems:
        raise DamagedFile(f"{label} is empty")
    [(stem, times)] = Counter(stems).most_common(1)
    if times > 1:
        raise DamagedFile(f"{label} names {stem!r} twice")
    return tuple(stems)


def _there(stems: Sequence[str], found: Sequence[str], label: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Listed files that are there, and their places in the list, by which objects keep their numbers."""
    there = set(found)
    warn_left_out(label, "cars", [f"{stem}.mat" for stem in stems if stem not in there], len(stems))
    kept = {stem: number for number, stem in enumerate(stems) if stem in there}
    if len(there) > len(kept):
        _log.warning("%s names %d of the %d cars that are there; the others are left out", label, len(kept), len(there))
    return tuple(kept), tuple(kept.values())


def _unlisted(found: Sequence[str], where: str) -> tuple[str, ...]:
    few = "" if len(found) == _PUBLISHED else f" ({len(found)}, where {_PUBLISHED} were published)"
    _log.warning("%s has no %s: the cars%s are numbered by their sorted names", where, _LIST, few)
    return tuple(found)


def _packed(path: Path) -> PackedCars:
    found = _index(path)
    folders = [name.rpartition("/")[0] for name in found["meshes"]]
    if not folders:
        raise DataError(f"{path} holds no file such as car_001_mesh.mat; it is another archive, or damaged")
    counts = Counter(sorted(folders))  # of folders with as many, the first by name
    folder = max(counts, key=counts.__getitem__)
    start = f"{folder}/" if folder else ""
    there = [
        name.removeprefix(start).removesuffix(".mat") for name in found["meshes"] if name.rpartition("/")[0] == folder
    ]
    text = found["lists"].get(f"{start}{_LIST}")
    if text is None:
        stems = _unlisted(sorted(there), str(path))
        numbers = tuple(range(len(stems)))
    else:
        label = f"{path}: {start}{_LIST}"
        stems, numbers = _there(parse_list(text.encode(), label), there, label)
    places = {stem: place for place, stem in enumerate(stems)}
    return PackedCars(path, start, stems, numbers, tuple(places[stem] for stem in there if stem in places))


def _index(path: Path) -> dict[str, Any]:
    """Names of the MAT files in their order, and lists; read once and kept in the cache folder."""
    found = path.stat()
    place = cache_folder() / "indexes" / f"{sha256(os.fsencode(path.resolve())).hexdigest()[:32]}.cars3d.json"
    state = {"version": 1, "size": found.st_size, "mtime_ns": found.st_mtime_ns}
    with suppress(OSError, ValueError, TypeError, RecursionError):
        kept: Any = json.loads(place.read_bytes())
        if {name: kept.get(name) for name in state} == state and _is_index(kept):
            return dict(kept)
    index = {**state, **_streamed(path, found.st_size)}
    # a cache that cannot be written costs time at the next opening, nothing else
    with suppress(OSError, DataError), disk_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        with written(place) as fresh:
            fresh.write_text(json.dumps(index), encoding="utf-8")
    return index


def _is_index(kept: dict[str, Any]) -> bool:
    meshes, lists = kept.get("meshes"), kept.get("lists")
    texts = [*meshes, *lists.values()] if isinstance(meshes, list) and isinstance(lists, dict) else [None]
    return all(isinstance(text, str) for text in texts)


def _streamed(path: Path, size: int) -> dict[str, Any]:
    mesh = re.compile(rf"(?:.*/)?{_MESH}\.mat")
    meshes: dict[str, None] = {}

    def limit_of(name: str) -> int | None:
        if mesh.fullmatch(name):
            meshes[name] = None
        return _LONGEST_LIST if name.rpartition("/")[2] == _LIST else None

    with progress(size, f"looking through {path.name}", "B") as advance:
        lists = {name: content.decode("utf-8", "replace") for name, content in stream_tar(path, limit_of, advance)}
    return {"meshes": list(meshes), "lists": lists}
