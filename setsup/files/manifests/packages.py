"""Manifests that other packages keep beside the modules of their data sets, found without importing these.

A package offers a data set through the entry-point group ``setsup.datasets``; where ``NAME.yaml`` lies in the folder
of the module that the entry point names, it is the manifest of the data set ``NAME``.
"""

from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from setsup.files.manifests.manifest import Manifest, load_manifest, manifest_names, read_manifest

__all__ = ["find_manifest", "foreign_entries"]

_GROUP = "setsup.datasets"


def foreign_entries() -> dict[str, EntryPoint]:
    """Entry points of data sets that other packages offer, by name; one that has the name of setsup's own is not."""
    own = manifest_names()
    return {entry.name: entry for entry in entry_points(group=_GROUP) if entry.name not in own}


def find_manifest(name: str) -> Manifest | None:
    """Load the manifest of a data set, setsup's own or another package's."""
    if name in manifest_names():
        return load_manifest(name)
    entry = foreign_entries().get(name)
    file = None if entry is None else _beside(entry)
    return None if entry is None or file is None else replace(read_manifest(file), adapter=entry.module)


def _beside(entry: EntryPoint) -> Path | None:
    top, *inner = entry.module.split(".")
    try:
        spec = find_spec(top)  # of what is inside a package, this would import the package
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    # a module may be a folder, or a file in one
    folders = list(spec.submodule_search_locations or [str(Path(spec.origin or "").parent)])
    for parts in (inner, inner[:-1]):
        for folder in folders:
            if (file := Path(folder, *parts, f"{entry.name}.yaml")).is_file():
                return file
    return None
