"""Manifests: what a benchmark consists of, where it comes from, and what one may do with it.

One YAML file a benchmark, in ``manifests/``: files with addresses and checksums, licence, citation, factors, splits.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from setsup.errors import DataError, near
from setsup.files.fields import Fields, read_yaml

__all__ = [
    "Licence",
    "Manifest",
    "ManifestFactor",
    "ManifestFile",
    "ManifestModality",
    "ManifestSplit",
    "load_manifest",
    "manifest_folder",
    "manifest_names",
    "read_manifest",
]

_KINDS = ("nominal", "ordinal", "cyclic", "continuous")
_ROLES = ("variation", "key", "split")


@dataclass(frozen=True, slots=True)
class Licence:
    """Terms of a benchmark: name, address of the text, a note, and what must be signed before it is given out."""

    name: str
    url: str | None = None
    note: str | None = None
    sign: str | None = None


@dataclass(frozen=True, slots=True)
class ManifestFactor:
    """A factor as a card shows it; `levels` is their list, their number, or None where a factor has none."""

    name: str
    kind: str
    levels: tuple[str | int | float, ...] | int | None = None
    unit: str = ""
    period: float | None = None
    within: str | None = None
    role: str = "variation"
    description: str = ""

    @property
    def count(self) -> int | None:
        """Number of levels, None where that is not known or the factor is continuous."""
        return len(self.levels) if isinstance(self.levels, tuple) else self.levels


@dataclass(frozen=True, slots=True)
class ManifestSplit:
    """A published split: its rows `start` to `stop` (exclusive) where they are contiguous, and what it is."""

    name: str
    rows: tuple[int, int] | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class ManifestModality:
    """What a sample holds, such as an image: shape (None where it varies), dtype, unit, colour space."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    unit: str = ""
    color: str = ""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A published file.

    Parameters
    ----------
    path : str
        Where it belongs, relative to the folder of the benchmark, with ``/``.
    alternatives : tuple of str
        Paths that serve as well, such as the unpacked file or another mirror's name (YAML key ``or``).
    urls : tuple of str
        Mirrors, the first is tried first; empty where the file cannot be fetched.
    size : int or None
        Bytes of the published file (YAML key ``bytes``).
    sha256, md5 : str or None
        Digests of the published file.
    unpacked_sha256, unpacked_md5 : str or None
        Digests of the content of a gzip file; where they are given, a mirror's re-packed copy is as good.
    unpacked_size : int or None
        Bytes of that content (YAML key ``unpacked_bytes``).

    """

    path: str
    alternatives: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    unpacked_sha256: str | None = None
    unpacked_md5: str | None = None
    unpacked_size: int | None = None

    @property
    def repacked(self) -> bool:
        """Whether the content counts and not its packing."""
        return bool(self.unpacked_sha256 or self.unpacked_md5)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that is known of a benchmark without opening it.

    Parameters
    ----------
    name : str
        Name by which it is loaded, and of its YAML file.
    title, description : str
        Its name in print, and what it is in a few sentences.
    licence : Licence
        Terms of use.
    samples : int or None
        Number of samples, None where it depends on the user's files.
    size : int or None
        Bytes of the published files together (YAML key ``bytes``).
    homepage, citation : str or None
        Address, and BibTeX entry.
    factors : tuple of ManifestFactor
        In the order of the factor table.
    splits : tuple of ManifestSplit
        Published splits.
    modalities : tuple of ManifestModality
        What a sample holds.
    files : tuple of ManifestFile
        The published files; empty for data that is computed or the user's own.
    adapter : str or None
        Python module that opens it.
    extra : str or None
        Name of the pip extra that the adapter needs.

    """

    name: str
    title: str
    description: str
    licence: Licence
    samples: int | None = None
    size: int | None = None
    homepage: str | None = None
    citation: str | None = None
    factors: tuple[ManifestFactor, ...] = ()
    splits: tuple[ManifestSplit, ...] = ()
    modalities: tuple[ManifestModality, ...] = ()
    files: tuple[ManifestFile, ...] = ()
    adapter: str | None = None
    extra: str | None = None

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """Names under which each file may be there, as :func:`~setsup.files.find_root` takes them."""
        return tuple((file.path, *file.alternatives) for file in self.files)


def manifest_folder() -> Path:
    """Find the folder of the manifests: inside the installed package, else in the checkout.

    Raises
    ------
    DataError
        It is in neither place.

    Examples
    --------
    >>> manifest_folder().name
    'manifests'

    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "manifests", package.parent / "manifests"):
        if folder.is_dir():
            return folder
    raise DataError(f"{package / 'manifests'} is missing: setsup is not installed whole, install it again")


def manifest_names() -> list[str]:
    """List the benchmarks that have a manifest, sorted.

    Examples
    --------
    >>> "mnist" in manifest_names()
    True

    """
    return sorted(file.stem for file in manifest_folder().glob("*.yaml"))


def load_manifest(name: str) -> Manifest:
    """Load the manifest of a benchmark.

    Raises
    ------
    DataError
        There is none of that name, or its file is not as it should be.

    Examples
    --------
    >>> load_manifest("mnist").samples
    70000

    """
    names = manifest_names()
    if name not in names:
        raise DataError(f"there is no data set {name!r}{near(name, names)} (`setsup datasets` lists them)")
    return read_manifest(manifest_folder() / f"{name}.yaml")


def read_manifest(file: Path | str) -> Manifest:
    """Read and check a manifest file.

    Parameters
    ----------
    file : Path or str
        YAML file named after the benchmark.

    Raises
    ------
    DataError
        The file is missing or no YAML, a key is unknown, missing or of the wrong kind, a checksum is malformed, a
        path leads out of the folder, or sizes contradict each other; the message names the file and the key.

    """
    file = Path(file)
    fields = read_yaml(file)
    manifest = Manifest(
        name=fields.need("name", _matching(r"[a-z0-9]+(-[a-z0-9]+)*", "lower-case words joined by hyphens")),
        title=fields.need("title", _text),
        description=fields.need("description", _text),
        licence=_licence(fields.part("licence")),
        samples=fields.get("samples", _whole),
        size=fields.get("bytes", _whole),
        homepage=fields.get("homepage", _address),
        citation=fields.get("citation", _text),
        factors=tuple(_factor(part) for part in fields.parts("factors")),
        splits=tuple(_split(name, part) for name, part in fields.named("splits").items()),
        modalities=tuple(_modality(name, part) for name, part in fields.named("modalities").items()),
        files=tuple(_file(part) for part in fields.parts("files")),
        adapter=fields.get("adapter", _matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "a Python module")),
        extra=fields.get("extra", _matching(r"[a-z0-9]+", "the name of a pip extra")),
    )
    fields.done()
    if manifest.name != file.stem:
        raise fields.wrong("name", f"{file.stem!r} as in the name of the file", manifest.name)
    sizes = [part.size for part in manifest.files]
    if manifest.size is not None and None not in sizes and manifest.size != sum(size or 0 for size in sizes):
        raise fields.wrong("bytes", f"{sum(size or 0 for size in sizes)}, the sum over the files", manifest.size)
    return manifest


def _licence(fields: Fields) -> Licence:
    licence = Licence(
        name=fields.need("name", _text),
        url=fields.get("url", _address),
        note=fields.get("note", _text),
        sign=fields.get("sign", _text),
    )
    fields.done()
    return licence


def _factor(fields: Fields) -> ManifestFactor:
    factor = ManifestFactor(
        name=fields.need("name", _matching(r"[A-Za-z_]\w*", "a name of letters, digits and _")),
        kind=fields.need("kind", _one_of(_KINDS)),
        levels=fields.get("levels", _levels),
        unit=fields.get("unit", _text) or "",
        period=fields.get("period", _positive),
        within=fields.get("within", _text),
        role=fields.get("role", _one_of(_ROLES)) or "variation",
        description=fields.get("description", _text) or "",
    )
    fields.done()
    return factor


def _split(name: str, fields: Fields) -> ManifestSplit:
    split = ManifestSplit(name, fields.get("rows", _rows), fields.get("what", _text) or "")
    fields.done()
    return split


def _modality(name: str, fields: Fields) -> ManifestModality:
    modality = ManifestModality(
        name=name,
        shape=fields.each("shape", lambda size: None if size is None else _whole(size)),
        dtype=fields.need("dtype", _matching(r"bool|u?int(8|16|32|64)|float(16|32|64)", "a numpy dtype such as uint8")),
        unit=fields.get("unit", _text) or "",
        color=fields.get("color", _text) or "",
    )
    fields.done()
    return modality


def _file(fields: Fields) -> ManifestFile:
    file = ManifestFile(
        path=fields.need("path", _relative),
        alternatives=fields.each("or", _relative),
        urls=fields.each("urls", _address),
        size=fields.get("bytes", _whole),
        sha256=fields.get("sha256", _digest(64)),
        md5=fields.get("md5", _digest(32)),
        unpacked_sha256=fields.get("unpacked_sha256", _digest(64)),
        unpacked_md5=fields.get("unpacked_md5", _digest(32)),
        unpacked_size=fields.get("unpacked_bytes", _whole),
    )
    fields.done()
    return file


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text")
    return value.strip()


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError("a whole number, 0 or more")
    return value


def _positive(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e300:
        raise ValueError("a number above 0")
    return float(value)


def _matching(pattern: str, expected: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(expected)
        return value

    return read


def _one_of(names: tuple[str, ...]) -> Callable[[Any], str]:
    return _matching("|".join(names), "one of " + ", ".join(names))


def _digest(length: int) -> Callable[[Any], str]:
    # upper case is refused too, so that digests compare as texts
    return _matching(f"[0-9a-f]{{{length}}}", f"{length} hexadecimal digits in quotes")


def _address(value: Any) -> str:
    return _matching(r"https?://[^\s/]+(/\S*)?", "an address that begins with https:// or http://")(value)


def _relative(value: Any) -> str:
    expected = "a path inside the folder of the data set, with / and without .."
    if not isinstance(value, str) or not value or not value.isprintable() or re.search(r'[\\:*?"<>|]', value):
        raise ValueError(expected)
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or str(path) != value or value == "." or value.startswith("~"):
        raise ValueError(expected)
    return value


def _levels(value: Any) -> tuple[str | int | float, ...] | int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63:
        return value
    if isinstance(value, list) and value and all(isinstance(level, str | int | float) for level in value):
        levels = tuple(value)
        if len(set(levels)) == len(levels) and not any(level != level for level in levels):
            return levels
    raise ValueError("the number of levels or a list of different ones")


def _rows(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("[first row, row after the last]")
    start, stop = _whole(value[0]), _whole(value[1])
    if start > stop:
        raise ValueError("[first row, row after the last]")
    return start, stop
