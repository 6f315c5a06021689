"""Whether images of a dataset may be in a page that is passed on."""

from collections.abc import Iterator
from typing import Any

from setsup.datasets.dataset import Dataset
from setsup.files.manifests.manifest import Manifest
from setsup.files.manifests.packages import find_manifest

__all__ = ["find_source_manifest", "withheld"]

_FREE = ("Apache-2.0", "CC BY 4.0", "CC BY-SA 4.0", "CC0", "CDLA-Permissive 1.0", "MIT", "zlib/libpng")
_OWN = ("your own", "that of your videos")
"""Names of licences in manifests: those that let images be passed on, and those of the user's own files."""


def find_source_manifest(source: str, dataset: Dataset) -> Manifest | None:
    """Manifest of a benchmark, or of the one that rows are selected from; None for other data."""
    return next((manifest for name in _names(source, dataset) if (manifest := find_manifest(name)) is not None), None)


def withheld(source: str, dataset: Dataset) -> str | None:
    """Name of the licence for which images stay out of exported pages; None where they may be in them."""
    for name in _names(source, dataset):
        manifest = find_manifest(name)
        if manifest is not None and manifest.licence.name not in (*_FREE, *_OWN):
            return manifest.licence.name
    return None


def _names(source: str, dataset: Dataset) -> Iterator[str]:
    """Names by which a dataset, what it is a selection of, and the parts of a concatenation are known."""
    yield source
    left: list[Any] = [dataset]
    while left:
        part = left.pop()
        yield str(getattr(part, "name", ""))
        left += [
            inner for inner in (getattr(part, "source", None), *getattr(part, "parts", ())) if hasattr(inner, "fetch")
        ]
