"""Files: atomic writes, locks, manifests, downloads. Knows nothing of factors or images."""

from setsup.files.atomic import written, written_folder
from setsup.files.cache import cache_folder
from setsup.files.check import FileState, State, check_files
from setsup.files.digest import content_digest
from setsup.files.disk import disk_errors, existing_folder, need_readable, need_space, readable_size
from setsup.files.fetch import fetch
from setsup.files.locks import locked
from setsup.files.manifests import (
    Licence,
    Manifest,
    ManifestFactor,
    ManifestFile,
    ManifestModality,
    ManifestSplit,
    load_manifest,
    manifest_folder,
    manifest_names,
    read_manifest,
)
from setsup.files.roots import data_places, find_root

__all__ = [
    "FileState",
    "Licence",
    "Manifest",
    "ManifestFactor",
    "ManifestFile",
    "ManifestModality",
    "ManifestSplit",
    "State",
    "cache_folder",
    "check_files",
    "content_digest",
    "data_places",
    "disk_errors",
    "existing_folder",
    "fetch",
    "find_root",
    "load_manifest",
    "locked",
    "manifest_folder",
    "manifest_names",
    "need_readable",
    "need_space",
    "read_manifest",
    "readable_size",
    "written",
    "written_folder",
]
