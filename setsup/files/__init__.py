"""Files: atomic writes, locks, manifests, downloads; independent of factors and images."""

from typing import TYPE_CHECKING

from setsup.files.atomic import written, written_folder
from setsup.files.cache import cache_folder
from setsup.files.digest import content_digest
from setsup.files.disk import disk_errors, existing_folder, need_readable, need_space, readable_size
from setsup.files.downloads.check import FileState, State, check_files
from setsup.files.downloads.fetch import fetch
from setsup.files.locks import locked
from setsup.files.manifests.manifest import (
    Addresses,
    Licence,
    Manifest,
    ManifestFactor,
    ManifestFile,
    ManifestModality,
    ManifestPartial,
    ManifestSplit,
)
from setsup.files.manifests.packages import load_manifest, manifest_folder, manifest_names
from setsup.files.manifests.parsing import read_manifest
from setsup.files.roots import data_places, find_root
from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.files.archives.members import MemberIndex, open_members
    from setsup.files.archives.releases import find_members
    from setsup.files.archives.unpacking import unpack

__all__ = [
    "Addresses",
    "FileState",
    "Licence",
    "Manifest",
    "ManifestFactor",
    "ManifestFile",
    "ManifestModality",
    "ManifestPartial",
    "ManifestSplit",
    "MemberIndex",
    "State",
    "cache_folder",
    "check_files",
    "content_digest",
    "data_places",
    "disk_errors",
    "existing_folder",
    "fetch",
    "find_members",
    "find_root",
    "load_manifest",
    "locked",
    "manifest_folder",
    "manifest_names",
    "need_readable",
    "need_space",
    "open_members",
    "read_manifest",
    "readable_size",
    "unpack",
    "written",
    "written_folder",
]

if not TYPE_CHECKING:
    # these need numpy, which commands that only read manifests do without
    __getattr__ = lazy_names(
        __name__,
        {
            "archives.members": ("MemberIndex", "open_members"),
            "archives.releases": ("find_members",),
            "archives.unpacking": ("unpack",),
        },
    )
