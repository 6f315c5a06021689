"""A benchmark in Croissant: its published files, and what its factors are.

Most releases keep images in formats of their own, from which Croissant cannot take records; ``setsup shard`` writes
files from which it can.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from setsup.datasets.croissant.document import Facts, document, file_object
from setsup.datasets.croissant.records import describe_factor, enumerations
from setsup.datasets.croissant.vocabulary import BYTES, CSV, PARQUET, TAR
from setsup.factors import Factor
from setsup.files import Manifest, ManifestFactor, ManifestFile

__all__ = ["describe_benchmark", "known_factors"]

_ENDINGS = {
    ".tar.gz": "application/gzip",
    ".tgz": "application/gzip",
    ".gz": "application/gzip",
    ".tar": TAR,
    ".zip": "application/zip",
    ".7z": "application/x-7z-compressed",
    ".rar": "application/vnd.rar",
    ".bz2": "application/x-bzip2",
    ".h5": "application/x-hdf5",
    ".hdf5": "application/x-hdf5",
    ".mat": "application/x-matlab-data",
    ".parquet": PARQUET,
    ".csv": CSV,
    ".json": "application/json",
    ".txt": "text/plain",
    ".xml": "application/xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
}


def describe_benchmark(about: Facts, manifest: Manifest, factors: Sequence[Factor]) -> dict[str, Any]:
    """Document of a benchmark; without a public address, files have paths relative to its folder."""
    more: dict[str, Any] = {"variableMeasured": list(_variables(manifest, factors))}
    files = [_file(file) for file in manifest.files]
    return document(about.adding({**more, **about.more}), files, enumerations(factors))


def known_factors(manifest: Manifest) -> list[Factor]:
    """Factors of which a manifest knows the levels."""
    return [_factor(one) for one in manifest.factors if isinstance(one.levels, tuple)]


def _factor(one: ManifestFactor) -> Factor:
    levels = one.levels if isinstance(one.levels, tuple) else None
    return Factor.from_dict(
        {"name": one.name, "kind": one.kind, "levels": levels, "unit": one.unit, "period": one.period}
        | {"within": one.within, "role": one.role}
    )


def _variables(manifest: Manifest, factors: Sequence[Factor]) -> Iterator[dict[str, Any]]:
    """All factors, as schema.org describes variables."""
    meant = {one.name: one for one in manifest.factors}
    known = {factor.name: factor for factor in factors}
    for name in {**known, **meant}:
        factor, one = known.get(name), meant.get(name)
        what = describe_factor(factor) if factor else f"{'' if one is None else one.kind}."
        unit = factor.unit if factor else "" if one is None else one.unit
        texts = [what, "" if one is None else one.description]
        described = {"@type": "sc:PropertyValue", "name": name, "description": " ".join(filter(None, texts))}
        yield described | ({"unitText": unit} if unit else {})


def _file(file: ManifestFile) -> dict[str, Any]:
    name = file.path.rpartition("/")[2]
    kind = next((kind for ending, kind in _ENDINGS.items() if name.lower().endswith(ending)), BYTES)
    more: dict[str, Any] = {"name": name, "contentUrl": file.urls[0] if file.urls else file.path}
    if len(file.urls) > 1:
        more["sameAs"] = list(file.urls[1:])
    if file.sha256 is None and file.md5 is not None:
        more["md5"] = file.md5
    return {**file_object(file.path, kind, size=file.size, sha256=file.sha256), **more}
