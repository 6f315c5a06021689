"""Files of a release, written as a folder, a zip and a tar, with old times of change."""

import io
import os
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

LONG_AGO = 1_600_000_000

FILES = {
    "list.txt": b"a\nb\n",
    "cars/1/mesh.mat": bytes(range(256)) * 9,
    "cars/1/mesh#2 é.mat": b"",
    "cars/10/mesh.mat": b"ten",
    "cars.txt": b"cars",
    "cars0": b"after the slash",
    "many/深/x.png": os.urandom(70_000),
}
SORTED = sorted(FILES, key=str.encode)


def settle(path: Path, when: int = LONG_AGO) -> Path:
    """Put the time of change back, as that of files that have lain there for a while."""
    for below in [*path.rglob("*"), path] if path.is_dir() else [path]:
        os.utime(below, (when, when))
    return path


def folder_of(files: Mapping[str, bytes], path: Path) -> Path:
    path.mkdir(exist_ok=True)
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return settle(path)


def zip_of(files: Mapping[str, bytes], path: Path, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return settle(path)


def tar_of(files: Mapping[str, bytes], path: Path, form: int = tarfile.GNU_FORMAT, mode: str = "w") -> Path:
    with tarfile.open(path, mode, format=form) as file:
        for name, content in files.items():
            file.addfile(entry(name, size=len(content)), io.BytesIO(content))
    return settle(path)


def gz_of(files: Mapping[str, bytes], path: Path) -> Path:
    return tar_of(files, path, mode="w:gz")


def entry(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    """Header of a tar."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


KINDS = {"folder": folder_of, "zip": zip_of, "tar": tar_of}


def cached(cache: Path) -> list[Path]:
    """Indexes that are kept."""
    return sorted((cache / "members").glob("*.arrow"))
