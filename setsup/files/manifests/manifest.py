"""Manifests: what a benchmark consists of, where it comes from, and what one may do with it.

One YAML file a benchmark, in ``manifests/``: files with addresses and checksums, licence, citation, factors, splits.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from setsup.errors import DataError, near
from setsup.files.manifests import validators
from setsup.files.manifests.strict_yaml import Fields, read_yaml

__all__ = [
    "Addresses",
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

_NAME = validators.matching(r"[a-z0-9]+(-[a-z0-9]+)*", "lower-case words joined by hyphens")
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
class Addresses:
    """What was last known of a benchmark's addresses, and when; an address may have changed since.

    Parameters
    ----------
    checked : str
        Date, as in ``2026-11-23``.
    known : str
        What public documentation and issues said of the hosts then.

    """

    checked: str
    known: str


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
    """A split or a subset that a benchmark or a paper gives a name.

    Of `where`, `parts` and `factor` at most one is given; without them it is the level `name` of the factor ``split``.

    Parameters
    ----------
    name : str
        Name by which it is opened.
    rows : (int, int) or None
        Its rows, first and after the last, where they are contiguous; shown only.
    description : str
        What it is (YAML key ``what``).
    where : str or None
        Expression over the factors: a subset of the rows.
    parts : tuple of (str, float)
        Names and shares of parts that are drawn at random; rows beyond a sum below 1 are in none.
    stratify, disjoint : tuple of str
        Factors as in :func:`setsup.factors.split.split`; where nothing is drawn, `disjoint` is what is checked.
    seed : int
        Of the drawing.
    rounding : str
        What the shares are rounded for, as in :func:`setsup.factors.split.split`.
    factor : str or None
        Factor of the table whose levels are the parts.
    leaks : tuple of str
        Factors whose groups a drawn split divides, as it was published; whoever opens it is warned.

    """

    name: str
    rows: tuple[int, int] | None = None
    description: str = ""
    where: str | None = None
    parts: tuple[tuple[str, float], ...] = ()
    stratify: tuple[str, ...] = ()
    disjoint: tuple[str, ...] = ()
    seed: int = 0
    rounding: str = "strata"
    factor: str | None = None
    leaks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ManifestModality:
    """What a sample holds, such as an image: shape (None where it varies), dtype, unit, colour space, what it means."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    unit: str = ""
    color: str = ""
    description: str = ""


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
    optional : bool
        Whether the benchmark can be opened without it.
    on_request : bool
        Whether it is downloaded only when it is asked for by name (``setsup fetch --files``).

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
    optional: bool = False
    on_request: bool = False

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
    shares : str or None
        Name of the data set of whose files this one is made: they are looked for in its places, too, and fetched there.
    folders : tuple of str
        Further folders below a root in which the files are looked for: where other tools leave them, as torchvision
        does in ``MNIST/raw``.
    addresses : Addresses or None
        What was last known of its addresses; None where it has none.
    steps : tuple of str
        What a person does to get the files that no program may or can fetch.
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
    shares: str | None = None
    folders: tuple[str, ...] = ()
    addresses: Addresses | None = None
    steps: tuple[str, ...] = ()
    adapter: str | None = None
    extra: str | None = None

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """Names under which each file may be there, as :func:`~setsup.files.find_root` takes them."""
        return tuple((file.path, *file.alternatives) for file in self.files if not file.optional)

    @property
    def shared(self) -> frozenset[str]:
        """Names that stand for several files, such as that of an archive of all."""
        names = [name for file in self.files for name in file.alternatives]
        return frozenset(name for name in names if names.count(name) > 1)


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
    package = Path(__file__).resolve().parents[2]
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
    file = manifest_folder() / f"{name}.yaml"
    return _as_of(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)  # a command asks for some of them several times
def _as_of(file: Path, _changed: int) -> Manifest:
    return read_manifest(file)


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
        name=fields.need("name", _NAME),
        title=fields.need("title", validators.text),
        description=fields.need("description", validators.text),
        licence=_licence(fields.part("licence")),
        samples=fields.get("samples", validators.whole),
        size=fields.get("bytes", validators.whole),
        homepage=fields.get("homepage", validators.address),
        citation=fields.get("citation", validators.text),
        factors=tuple(_factor(part) for part in fields.parts("factors")),
        splits=tuple(_split(name, part) for name, part in fields.named("splits").items()),
        modalities=tuple(_modality(name, part) for name, part in fields.named("modalities").items()),
        files=tuple(_file(part) for part in fields.parts("files")),
        shares=fields.get("shares", _NAME),
        folders=fields.each("folders", validators.relative),
        addresses=fields.get("addresses", lambda value: _addresses(Fields(value, file, "addresses"))),
        steps=fields.each("steps", validators.text),
        adapter=fields.get("adapter", validators.matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "a Python module")),
        extra=fields.get("extra", validators.matching(r"[a-z0-9]+", "the name of a pip extra")),
    )
    fields.done()
    if manifest.shares == manifest.name:
        raise fields.wrong("shares", "the name of another data set", manifest.shares)
    if manifest.name != file.stem:
        raise fields.wrong("name", f"{file.stem!r} as in the name of the file", manifest.name)
    sizes = [part.size for part in manifest.files]
    if manifest.size is not None and None not in sizes and manifest.size != sum(size or 0 for size in sizes):
        raise fields.wrong("bytes", f"{sum(size or 0 for size in sizes)}, the sum over the files", manifest.size)
    return manifest


def _licence(fields: Fields) -> Licence:
    licence = Licence(
        name=fields.need("name", validators.text),
        url=fields.get("url", validators.address),
        note=fields.get("note", validators.text),
        sign=fields.get("sign", validators.text),
    )
    fields.done()
    return licence


def _addresses(fields: Fields) -> Addresses:
    addresses = Addresses(checked=fields.need("checked", validators.day), known=fields.need("known", validators.text))
    fields.done()
    return addresses


def _factor(fields: Fields) -> ManifestFactor:
    factor = ManifestFactor(
        name=fields.need("name", validators.matching(r"[A-Za-z_]\w*", "a name of letters, digits and _")),
        kind=fields.need("kind", validators.one_of(_KINDS)),
        levels=fields.get("levels", validators.levels),
        unit=fields.get("unit", validators.text) or "",
        period=fields.get("period", validators.positive),
        within=fields.get("within", validators.text),
        role=fields.get("role", validators.one_of(_ROLES)) or "variation",
        description=fields.get("description", validators.text) or "",
    )
    fields.done()
    return factor


def _split(name: str, fields: Fields) -> ManifestSplit:
    split = ManifestSplit(
        name=name,
        rows=fields.get("rows", validators.rows),
        description=fields.get("what", validators.text) or "",
        where=fields.get("where", validators.text),
        parts=fields.get("parts", validators.shares) or (),
        stratify=fields.get("stratify", validators.words) or (),
        disjoint=fields.get("disjoint", validators.words) or (),
        seed=fields.get("seed", validators.whole) or 0,
        rounding=fields.get("rounding", validators.one_of(("strata", "table"))) or "strata",
        factor=fields.get("factor", validators.text),
        leaks=fields.get("leaks", validators.words) or (),
    )
    if sum(map(bool, (split.where, split.parts, split.factor))) > 1:
        raise fields.wrong("", "one of where, parts and factor", "several of them")
    if (split.stratify or split.seed or split.leaks or split.rounding != "strata") and not split.parts:
        raise fields.wrong("parts", "given where stratify, seed, rounding or leaks is", None)
    fields.done()
    return split


def _modality(name: str, fields: Fields) -> ManifestModality:
    modality = ManifestModality(
        name=name,
        shape=fields.each("shape", lambda size: None if size is None else validators.whole(size)),
        dtype=fields.need(
            "dtype", validators.matching(r"bool|u?int(8|16|32|64)|float(16|32|64)", "a numpy dtype such as uint8")
        ),
        unit=fields.get("unit", validators.text) or "",
        color=fields.get("color", validators.text) or "",
        description=fields.get("what", validators.text) or "",
    )
    fields.done()
    return modality


def _file(fields: Fields) -> ManifestFile:
    file = ManifestFile(
        path=fields.need("path", validators.relative),
        alternatives=fields.each("or", validators.relative),
        urls=fields.each("urls", validators.address),
        size=fields.get("bytes", validators.whole),
        sha256=fields.get("sha256", validators.digest(64)),
        md5=fields.get("md5", validators.digest(32)),
        unpacked_sha256=fields.get("unpacked_sha256", validators.digest(64)),
        unpacked_md5=fields.get("unpacked_md5", validators.digest(32)),
        unpacked_size=fields.get("unpacked_bytes", validators.whole),
        optional=fields.get("optional", validators.yes) or False,
        on_request=fields.get("on_request", validators.yes) or False,
    )
    fields.done()
    if file.on_request and not (file.optional and file.urls):
        raise fields.wrong("on_request", "left out of a file that is needed, or that has no address", True)
    return file
