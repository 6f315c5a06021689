"""The files of a benchmark's release, wherever they lie: in a folder, a zip or a tar; found by name, read at random."""

import os
import re
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, near
from setsup.files.roots import data_places

__all__ = ["Members", "find_members", "open_members"]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Members:
    """SKELETON: to be replaced; the interface stays."""

    source: Path
    prefix: str
    names: Any
    sizes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Count the files."""
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        """Whether there is a file of that name."""
        return isinstance(name, str) and int(self.places([name])[0]) >= 0

    def place(self, name: str) -> int:
        """Find a file that must be there."""
        found = int(self.places([name])[0])
        if found < 0:
            raise DataError(f"{self.source} has no {self.prefix}{name}{near(name, self.names.to_pylist())}")
        return found

    def places(self, names: Sequence[str]) -> Places:
        """Find files; -1 for those that are not there."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.index_in(pa.array(names, pa.large_string()), value_set=self.names)
        return np.asarray(pc.fill_null(found, -1), dtype=np.int64)

    def under(self, folder: str) -> "Members":
        """Files below a folder, their names relative to it."""
        start = folder.rstrip("/") + "/"
        import pyarrow as pa

        kept = [i for i, name in enumerate(self.names.to_pylist()) if name.startswith(start)]
        names = [self.names[i].as_py()[len(start) :] for i in kept]
        return Members(self.source, self.prefix + start, pa.array(names, pa.large_string()), self.sizes[kept])

    def matching(self, pattern: str) -> tuple[Places, dict[str, Any]]:
        """Places of the files whose whole name matches, and for each named group a pyarrow array of texts."""
        import pyarrow.compute as pc

        found = pc.extract_regex(self.names, f"^(?:{pattern})$")
        places = np.flatnonzero(np.asarray(found.is_valid()))
        kept = found.take(places)
        groups = [field.name for field in found.type]
        return places, {name: pc.struct_field(kept, name) for name in groups}

    def read(self, place: int, limit: int | None = None) -> bytes:
        """Content of a file; DataError when it is longer than `limit` bytes, or cannot be read."""
        if limit is not None and self.sizes[place] > limit:
            raise DataError(f"{self.label(place)} has {self.sizes[place]:,} bytes, more than the {limit:,} expected")
        name = self.prefix + self.names[place].as_py()
        if self.source.is_dir():
            return (self.source / name).read_bytes()
        if self.source.suffix == ".zip":
            with zipfile.ZipFile(self.source) as file:
                return file.read(name)
        with tarfile.open(self.source) as tar:
            return tar.extractfile(name).read()  # type: ignore[union-attr]

    def label(self, place: int) -> str:
        """What messages call a file."""
        return f"{self.source}{os.sep if self.source.is_dir() else ': '}{self.prefix}{self.names[place]}"

    def path(self, place: int) -> Path | None:
        """The file on the disk; None inside an archive."""
        return self.source / (self.prefix + self.names[place].as_py()) if self.source.is_dir() else None


def open_members(source: Path) -> Members:
    """Open a folder, a zip or a tar."""
    import pyarrow as pa

    sizes: dict[str, int] = {}
    if source.is_dir():
        for folder, _, files in os.walk(source, followlinks=True):
            for name in files:
                path = Path(folder) / name
                sizes[path.relative_to(source).as_posix()] = path.stat().st_size
    elif source.suffix == ".zip":
        with zipfile.ZipFile(source) as file:
            sizes = {info.filename: info.file_size for info in file.infolist() if not info.is_dir()}
    else:
        with tarfile.open(source) as tar:
            sizes = {info.name: info.size for info in tar if info.isfile()}
    names = sorted(sizes, key=os.fsencode)
    return Members(source, "", pa.array(names, pa.large_string()), np.array([sizes[n] for n in names], np.int64))


def find_members(
    name: str, root: Path | None, holds: Sequence[str], archives: Sequence[str] = (), extra: Sequence[str] = ()
) -> Members:
    """Find the release of a data set: a folder, or one of the named archives in it; `root` may be an archive itself.

    ``holds`` are regular expressions, each of which must match the beginning of some file's name relative to the top of
    the release; the top is the shallowest folder for which they do, so that a wrapping folder does not matter.
    """
    tried = []
    for place in data_places(name, root):
        for source in [*(place / archive for archive in archives), place]:
            if not source.exists():
                continue
            tried.append(source)
            found = _topped(open_members(source), holds)
            if found is not None:
                return found
    looked = ", ".join(map(str, tried or data_places(name, root)))
    raise DataError(
        f"{name}: no files such as {', '.join(holds)} found; looked in {looked}; `setsup fetch {name}` says how to get "
        "them; or name the folder that holds them (--root or root=)"
    )


def _topped(members: Members, holds: Sequence[str]) -> Members | None:
    names = members.names.to_pylist()
    tops = {"", *(name[: i + 1] for name in names for i, letter in enumerate(name) if letter == "/")}
    for top in sorted(tops, key=lambda top: (top.count("/"), top)):
        below = [name[len(top) :] for name in names if name.startswith(top)]
        if all(any(re.match(pattern, name) for name in below) for pattern in holds):
            return members.under(top) if top else members
    return None
