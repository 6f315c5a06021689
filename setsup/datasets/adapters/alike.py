"""Tell apart benchmarks whose files have the same names and sizes, such as MNIST and Fashion-MNIST.

A published digest decides, otherwise the name of the folder. To keep opening fast, only small files are hashed, and
large files whose size is that of another benchmark's file.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from setsup.errors import DataError, advice
from setsup.files import Manifest, ManifestFile, content_digest, load_manifest, manifest_names

__all__ = ["check_alike"]

_SMALL = 1 << 16  # bytes of a file that is digested in no time
_INNER = ("raw", "gzip")  # folders of other tools, within one with the name of the dataset

_log = logging.getLogger("setsup")


def check_alike(name: str, folder: Path, alike: Sequence[str]) -> None:
    """Refuse a folder with the files of another benchmark, and warn if the benchmark cannot be identified.

    Raises
    ------
    DataError
        When a file has another benchmark's published digest, or the folder its name.

    """
    own = load_manifest(name).shares or name
    others = [load_manifest(other) for other in alike if other != own]
    # small files first: one of them decides
    files = sorted(load_manifest(own).files, key=lambda file: file.size or _SMALL)
    known = any(_is_published(folder, file) for file in files)
    for other in others:
        for file in other.files:
            if _is_published(folder, file, unpacked=not known):
                raise DataError(
                    f"{_path(folder, file)} is the file {file.path} of {other.title}, not of {name} (the files of "
                    f"both datasets have the same names); open the folder as {other.name}, or pass the folder of "
                    f"{name} ({advice('root=', '--root')})"
                )
    if known:
        return
    called = folder.parent.name if folder.name in _INNER else folder.name
    whose = _named(called, [load_manifest(own), *others])
    if whose is None:
        _log.warning(
            "%s: neither the published digests nor the folder's name identify the files in %s, because those of %s "
            "have the same names and sizes",
            *(name, folder, " and ".join(other.title for other in others)),
        )
    elif whose != own:
        raise DataError(
            f"{folder} is named after {whose}, and none of the files in it could be identified as a file of {name} "
            f"(the files of both datasets have the same names); open the folder as {whose}, or pass the folder of "
            f"{name} ({advice('root=', '--root')})"
        )


def _path(folder: Path, file: ManifestFile) -> Path | None:
    """The file under any of its names; an unpacked one comes first, since it is the one that is opened."""
    there = [path for each in (file.path, *file.alternatives) if (path := folder / each).is_file()]
    return min(there, key=lambda path: path.suffix == ".gz", default=None)


def _is_published(folder: Path, file: ManifestFile, unpacked: bool = True) -> bool:
    """Whether a file exists as published, by its digest or, if it is small, by the digest of its content.

    Large files are read only if they have the published size.
    """
    path = _path(folder, file)
    if path is None:
        return False
    packed = path.suffix == ".gz"
    with suppress(DataError, OSError):  # whoever opens it says what is wrong with it
        size = path.stat().st_size
        if packed and file.md5 and size == file.size and content_digest(path, "md5") == file.md5:
            return True
        if unpacked and file.unpacked_md5 and size <= _SMALL:
            return content_digest(path, "md5", unpacked=packed, limit=_SMALL) == file.unpacked_md5
    return False


def _named(called: str, manifests: Sequence[Manifest]) -> str | None:
    """The benchmark that a folder is named after; None if there is none."""
    for manifest in manifests:
        names = (manifest.name, *(folder.split("/")[0] for folder in manifest.folders))
        if _plain(called) in map(_plain, names):
            return manifest.name
    if called in manifest_names():
        return load_manifest(called).shares or called
    return None


def _plain(text: str) -> str:
    return "".join(each for each in text.casefold() if each.isalnum())
