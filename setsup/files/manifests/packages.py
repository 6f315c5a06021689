"""Manifests by the names of datasets: those of setsup in ``manifests/``, and those of other packages.

A package offers a dataset through the entry-point group ``setsup.datasets``; where ``NAME.yaml`` lies in the folder of
the module that the entry point names, it is the manifest of the dataset ``NAME``. The module is not imported for that.
Setsup's own papers offer theirs through the group ``setsup.manifests``, which names packages with a folder
``manifests``; so do other packages whose datasets need no code. Those never replace setsup's own.
"""

import os
from dataclasses import replace
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from setsup.errors import DataError, did_you_mean
from setsup.files.manifests.manifest import Manifest
from setsup.files.manifests.parsing import read_manifest
from setsup.packages import other_entries, own_entries

__all__ = [
    "find_manifest",
    "foreign_entries",
    "foreign_manifests",
    "load_manifest",
    "manifest_folder",
    "manifest_names",
]

_GROUP = "setsup.datasets"
_MANIFESTS = "setsup.manifests"


def manifest_folder() -> Path:
    """Find the folder of the manifests: inside the installed package, else in the checkout.

    Raises
    ------
    DataError
        The folder is missing.

    Examples
    --------
    >>> manifest_folder().name
    'manifests'

    """
    package = _package(__file__)
    for folder in (package / "manifests", package.parent / "manifests"):
        if folder.is_dir():
            return folder
    raise DataError(f"{package / 'manifests'} is missing: the installation of setsup is incomplete; reinstall it")


@cache
def _package(module: str) -> Path:
    return Path(module).resolve().parents[2]


def manifest_names() -> list[str]:
    """List the benchmarks that have a manifest, sorted.

    Examples
    --------
    >>> "mnist" in manifest_names()
    True

    """
    # listed anew each time, and so without a Path for each of them
    return sorted(
        name.removesuffix(".yaml") for folder in _folders() for name in os.listdir(folder) if name.endswith(".yaml")
    )


def load_manifest(name: str) -> Manifest:
    """Load the manifest of a benchmark.

    Raises
    ------
    DataError
        The dataset is unknown, or its manifest is invalid.

    Examples
    --------
    >>> load_manifest("mnist").samples
    70000

    """
    names = manifest_names()
    if name not in names:
        raise DataError(f"unknown dataset {name!r}{did_you_mean(name, names)} (`setsup datasets` lists them)")
    file = next(file for folder in _folders() if (file := folder / f"{name}.yaml").is_file())
    return _read_manifest(file, file.stat().st_mtime_ns)


def _folders() -> tuple[Path, ...]:
    return (manifest_folder(), *_paper_folders())


@cache
def _paper_folders() -> tuple[Path, ...]:
    """Folders of manifests of setsup's own papers."""
    packages = (folders for entry in own_entries(_MANIFESTS) if (folders := _package_folders(entry.module)))
    return tuple(folder for folders in packages for package in folders if (folder := package / "manifests").is_dir())


@lru_cache(maxsize=256)  # a command loads some several times
def _read_manifest(file: Path, _changed: int) -> Manifest:
    return read_manifest(file)


def foreign_entries() -> dict[str, EntryPoint]:
    """Entry points of datasets of other packages, by name; names of setsup's own datasets are left out."""
    own = manifest_names()
    return {entry.name: entry for entry in entry_points(group=_GROUP) if entry.name not in own}


def foreign_manifests() -> dict[str, Path]:
    """Manifests of other packages' described datasets, by name; names that others have are left out."""
    manifests: dict[str, Path] = {}
    for entry in sorted(other_entries(_MANIFESTS), key=lambda entry: entry.name):
        for folder in _package_folders(entry.module):
            for file in sorted((folder / "manifests").glob("*.yaml")):
                manifests.setdefault(file.stem, file)
    taken = {*manifest_names(), *foreign_entries()} if manifests else set()
    return {name: file for name, file in manifests.items() if name not in taken}


def find_manifest(name: str) -> Manifest | None:
    """Load the manifest of a dataset, setsup's own or another package's; None where there is none."""
    if name in manifest_names():
        return load_manifest(name)
    entry = foreign_entries().get(name)
    if entry is None and (described := foreign_manifests().get(name)) is not None:
        return read_manifest(described)
    file = None if entry is None else _beside(entry)
    return None if entry is None or file is None else replace(read_manifest(file), adapter=entry.module)


def _beside(entry: EntryPoint) -> Path | None:
    package, _, _ = entry.module.rpartition(".")
    # a module may be a folder, or a file in one
    folders = (*_package_folders(entry.module), *_package_folders(package or entry.module))
    return next((file for folder in folders if (file := folder / f"{entry.name}.yaml").is_file()), None)


def _package_folders(module: str) -> list[Path]:
    """Where the folder of a package, which is not imported, may lie; that of the file of a module without a package."""
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)  # of what is inside a package, this would import the package
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    folders = spec.submodule_search_locations or [str(Path(spec.origin or "").parent)]
    return [Path(folder, *inner) for folder in folders]
