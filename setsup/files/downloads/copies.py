"""Copies of published files that another tool has downloaded, such as those in ``tensorflow_datasets/downloads``."""

import logging
import os
import shutil
from base64 import urlsafe_b64encode
from pathlib import Path

from setsup.errors import DataError
from setsup.files.atomic import written
from setsup.files.disk import disk_errors, make_folder
from setsup.files.downloads.check import file_problem
from setsup.files.expand_user import expanded
from setsup.files.manifests.manifest import ManifestFile

__all__ = ["list_copies", "take_copy"]

_DEEPEST = 4

_log = logging.getLogger("setsup")


def list_copies(folder: Path | str) -> list[Path]:
    """List the files of a folder, four levels deep, by name."""
    top = expanded(folder)
    if not top.is_dir():
        raise DataError(f"{folder} is not a folder; pass the folder that contains copies of the files")
    files = []
    for path, inner, names in os.walk(top):
        if len(Path(path).relative_to(top).parts) >= _DEEPEST:
            inner.clear()
        files += [Path(path, name) for name in names]
    return sorted(files)


def take_copy(file: ManifestFile, target: Path, copies: list[Path]) -> bool:
    """Copy a published file from where it lies under its own name, or under one in which its SHA-256 stands.

    The latter is how TensorFlow Datasets names downloads. Only a file with the published digest is taken.
    """
    if not (file.sha256 or file.md5 or file.repacked):
        return False
    known = urlsafe_b64encode(bytes.fromhex(file.sha256)).decode().rstrip("=") if file.sha256 else None
    for path in copies:
        if path.name != Path(file.path).name and not (known and known in path.name and path.suffix != ".INFO"):
            continue
        if path.absolute() == target.absolute() or file_problem(path, file) is not None:
            continue
        make_folder(target.parent)
        with disk_errors(target), written(target) as fresh:
            shutil.copyfile(path, fresh)
        _log.info("%s was copied from %s", target, path)
        return True
    return False
