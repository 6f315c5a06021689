"""Whether files are the published ones: their sizes and digests."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from setsup.errors import DataError
from setsup.files.digest import content_digest
from setsup.files.manifests.manifest import Manifest, ManifestFile
from setsup.files.roots import data_places
from setsup.progress import progress

__all__ = ["FileState", "State", "check_files", "file_problem", "file_state", "release_folder"]


class State(StrEnum):
    """State of a file of a benchmark."""

    RIGHT = "right"
    """Its size and its digest are those published, as far as they were."""
    UNCHECKED = "there, not checked"
    """It is there in another form, or nothing was published to compare it with."""
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class FileState:
    """A published file, its path, its state, and what is wrong with it."""

    file: ManifestFile
    path: Path
    state: State
    problem: str = ""

    @property
    def wanted(self) -> bool:
        """Whether the file has to be fetched, or fetched again."""
        return self.state is State.WRONG or (self.state is State.MISSING and not self.file.optional)


def release_folder(manifest: Manifest, root: Path | str | None) -> Path:
    """Choose the folder that has most of the files, else the one to fetch them into."""
    folders = data_places(manifest.name, root)
    counts = [sum(_present(file, folder) is not None for file in manifest.files) for folder in folders]
    # files that several datasets share are kept where all of them find the files
    return folders[counts.index(max(counts))] if any(counts) else data_places(manifest.shares or manifest.name, root)[0]


def check_files(manifest: Manifest, root: Path | str | None = None) -> list[FileState]:
    """Check which files of a benchmark are there, and whether they are the published ones; large ones take a while."""
    folder = release_folder(manifest, root)
    shared = manifest.shared
    return [file_state(file, folder, shared) for file in manifest.files]


def file_state(file: ManifestFile, folder: Path, shared: Collection[str] = ()) -> FileState:
    """Check one published file of a folder; `shared` are names that stand for several files."""
    path, published = _present(file, folder), folder / file.path
    if path is None:
        return FileState(file, published, State.MISSING)
    # of another name is what was unpacked, packed in another way or is of another edition, and a shared name holds more
    # than this file: nothing was published to compare them with
    other_form = path.is_dir() or (path.name != published.name and not file.repacked)
    other_form |= path.relative_to(folder).as_posix() in shared
    if (path != published and other_form) or not (file.size or _digest(file)[1]):
        return FileState(file, path, State.UNCHECKED)
    problem = file_problem(path, file)
    return FileState(file, path, State.WRONG if problem else State.RIGHT, problem or "")


def _present(file: ManifestFile, folder: Path) -> Path | None:
    """Find the file or its first alternative."""
    paths = (folder / name for name in (file.path, *file.alternatives))
    return next((path for path in paths if os.path.exists(path)), None)  # unlike Path.exists it never raises


def file_problem(path: Path, file: ManifestFile) -> str | None:
    """Compare a file with what its manifest says.

    Where the manifest knows the digest of the unpacked content, that alone decides: a re-packed or unpacked copy is
    as good as the published file. Else the size and the digest of the file do.
    """
    if not path.is_file():
        return "is not a file"
    size = path.stat().st_size
    if not file.repacked and file.size not in (None, size):
        return f"has {size:,} bytes, not the expected {file.size:,}"
    algorithm, expected = _digest(file)
    if not expected:
        return None
    total = file.unpacked_size if file.repacked else size
    try:
        with progress(total, f"checking {path.name.removesuffix('.part')}", "B") as advance:
            came = content_digest(path, algorithm, file.repacked, limit=total, advance=advance)
    except DataError as error:
        return str(error.args[0]).removeprefix(f"{path} ")
    if came == expected:
        return None
    return f"has {algorithm} {came}{' when unpacked' if file.repacked else ''}, not the expected {expected}"


def _digest(file: ManifestFile) -> tuple[str, str | None]:
    if file.repacked:
        return ("sha256", file.unpacked_sha256) if file.unpacked_sha256 else ("md5", file.unpacked_md5)
    return ("sha256", file.sha256) if file.sha256 else ("md5", file.md5)
