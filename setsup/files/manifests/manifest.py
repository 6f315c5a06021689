"""Classes of a manifest: the files of a benchmark, their addresses and checksums, its licence, factors and splits."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "Addresses",
    "Licence",
    "Manifest",
    "ManifestFactor",
    "ManifestFile",
    "ManifestListed",
    "ManifestModality",
    "ManifestPartial",
    "ManifestSplit",
]


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

    `factor` is given alone, `where`, `parts` and `test` alone or together; without them it is the level `name` of the
    factor ``split``.

    Parameters
    ----------
    name : str
        Name by which it is opened.
    rows : (int, int) or None
        Its rows, first and after the last, where they are contiguous; shown only.
    description : str
        What it is (YAML key ``what``).
    where : str or None
        Expression over the factors: a subset of the rows; with `parts`, that of which they are drawn.
    parts : tuple of (str, float)
        Names and shares of parts that are drawn at random; rows beyond a sum below 1 are in none.
    test : str or None
        Expression over the factors: rows that are the part ``test``, after those of `parts`, which are drawn of the
        others; without `parts` the others are ``train``.
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
    rounding: Literal["strata", "table"] = "strata"
    factor: str | None = None
    leaks: tuple[str, ...] = ()
    test: str | None = None

    @property
    def drawn(self) -> tuple[tuple[str, float], ...]:
        """Parts that rows outside of `test` are dealt into."""
        return self.parts or ((("train", 1.0),) if self.test else ())


@dataclass(frozen=True, slots=True)
class ManifestPartial:
    """What of a benchmark is a download of its own, such as one domain, and opens without the rest.

    Parameters
    ----------
    by : tuple of str
        Factors; each combination of their levels that has rows is a part.
    samples : int, tuple of (level, tuple of int), or None
        Samples of each part: one number for all, or those of each level of the first factor, several where editions
        differ; None where they are not known.

    """

    by: tuple[str, ...]
    samples: int | tuple[tuple[str | int | float, tuple[int, ...]], ...] | None = None


@dataclass(frozen=True, slots=True)
class ManifestModality:
    """What a sample holds, such as an image: shape (None where it varies), dtype, unit, color space, description."""

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
class ManifestListed:
    """Published files of which texts among the files of the manifest have the names, one a line.

    Each is optional, and downloaded only when it is asked for by name (``setsup fetch --files``).

    Parameters
    ----------
    path : str
        Where each belongs, with ``{}`` for its line.
    urls : tuple of str
        Mirrors, with ``{}`` for the line.
    lists : tuple of str
        Paths of the texts.

    """

    path: str
    urls: tuple[str, ...]
    lists: tuple[str, ...]

    def of(self, line: str) -> ManifestFile:
        """Make the file of a line."""
        urls = tuple(url.replace("{}", line) for url in self.urls)
        return ManifestFile(self.path.replace("{}", line), urls=urls, optional=True, on_request=True)


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
        Number of samples, None where it is not fixed or not known.
    editions : tuple of int
        Numbers of samples of other editions of the same release.
    samples_vary : str or None
        Why no number of samples is given.
    samples_by_option : tuple of (option, tuple of (value, int))
        Options of the dataset that change its number of samples, with those of their values that are known.
    partial : ManifestPartial or None
        What opens without the rest; None where a part of the samples is a release that is not whole.
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
    listed : tuple of ManifestListed
        Further files, whose names stand in some of these.
    shares : str or None
        Name of the dataset that shares its files: they are found in its places, too, and fetched there.
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
    layout : mapping or None
        Where rows come from, as it is written, in place of an adapter; :mod:`setsup.datasets.described` reads it.
    columns : tuple of mapping
        Of each factor its keys ``from``, ``match``, ``codes`` and ``rules``, as they are written.
    root : str or None
        Where the files of a user's own manifest lie, absolute or relative to its folder; None is that folder.
    file : Path or None
        The file of the manifest.

    """

    name: str
    title: str
    description: str
    licence: Licence
    samples: int | None = None
    editions: tuple[int, ...] = ()
    samples_vary: str | None = None
    samples_by_option: tuple[tuple[str, tuple[tuple[str | int | float, int], ...]], ...] = ()
    partial: ManifestPartial | None = None
    size: int | None = None
    homepage: str | None = None
    citation: str | None = None
    factors: tuple[ManifestFactor, ...] = ()
    splits: tuple[ManifestSplit, ...] = ()
    modalities: tuple[ManifestModality, ...] = ()
    files: tuple[ManifestFile, ...] = ()
    listed: tuple[ManifestListed, ...] = ()
    shares: str | None = None
    folders: tuple[str, ...] = ()
    addresses: Addresses | None = None
    steps: tuple[str, ...] = ()
    adapter: str | None = None
    extra: str | None = None
    layout: Mapping[str, Any] | None = None
    columns: tuple[Mapping[str, Any], ...] = ()
    root: str | None = None
    file: Path | None = None

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """Names under which each file may be there, as :func:`~setsup.files.find_root` takes them."""
        return tuple((file.path, *file.alternatives) for file in self.files if not file.optional)

    @property
    def shared(self) -> frozenset[str]:
        """Names that stand for several files, such as that of an archive of all."""
        names = [name for file in self.files for name in file.alternatives]
        return frozenset(name for name in names if names.count(name) > 1)
