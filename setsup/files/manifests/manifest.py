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
    """Licence of a benchmark: name, address of the text, a note, and what must be signed to obtain the data."""

    name: str
    url: str | None = None
    note: str | None = None
    sign: str | None = None


@dataclass(frozen=True, slots=True)
class Addresses:
    """Last known state of a benchmark's addresses, and its date; addresses may have changed since.

    Parameters
    ----------
    checked : str
        Date, as in ``2026-11-23``.
    known : str
        Summary of public documentation and issues about the hosts at that time.
    sources : tuple of (host, str)
        Where each host of the files was seen, such as a public loader and its version.

    """

    checked: str
    known: str
    sources: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ManifestFactor:
    """A factor as shown by `setsup info`; `levels` is their list, their number, or None for a continuous factor."""

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
    """A named split or subset of a benchmark or a paper.

    Either `factor` is given, or one or more of `where`, `parts` and `test`; without them, the split is the level `name`
    of the factor ``split``.

    Parameters
    ----------
    name : str
        Name to open it by.
    rows : (int, int) or None
        First row and the row after the last, if the rows of a whole release are contiguous.
    description : str
        Description (YAML key ``what``).
    where : str or None
        Expression over the factors that selects a subset of the rows; with `parts`, the rows to draw them from.
    parts : tuple of (str, float)
        Names and shares of parts that are drawn at random; if the sum is below 1, the remaining rows are in none.
    test : str or None
        Expression over the factors for the rows of the part ``test``, after those of `parts`, which are drawn from the
        other rows; without `parts` the other rows are ``train``.
    stratify, disjoint : tuple of str
        Factors as in :func:`setsup.factors.split.split`; if nothing is drawn, `disjoint` is only checked.
    seed : int
        Random seed of the split.
    rounding : str
        How shares are rounded, as in :func:`setsup.factors.split.split`.
    factor : str or None
        Factor of the table whose levels are the parts.
    leaks : tuple of str
        Factors whose groups are divided by the published split; opening it logs a warning.

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
    """Parts of a benchmark that are separate downloads, such as domains, and can be opened without the rest.

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
        Path relative to the folder of the benchmark, with ``/``.
    alternatives : tuple of str
        Alternative paths, such as the unpacked file or another mirror's name (YAML key ``or``).
    urls : tuple of str
        Mirrors, tried in this order; empty if the file cannot be downloaded.
    size : int or None
        Bytes of the published file (YAML key ``bytes``).
    sha256, md5 : str or None
        Digests of the published file.
    unpacked_sha256, unpacked_md5 : str or None
        Digests of the content of a gzip file; if they are given, a re-packed copy is accepted.
    unpacked_size : int or None
        Bytes of that content (YAML key ``unpacked_bytes``).
    optional : bool
        Whether the benchmark can be opened without it.
    on_request : bool
        Whether it is downloaded only if requested by name (``setsup fetch --files``).

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
    """Description of a benchmark, available without its files.

    Parameters
    ----------
    name : str
        Name to load it by, and of its YAML file.
    title, description : str
        Title, and a description in a few sentences.
    licence : Licence
        Terms of use.
    samples : int or None
        Number of samples; None if it is not fixed or not known.
    editions : tuple of int
        Numbers of samples of other editions of the same release.
    samples_vary : str or None
        Reason why the number of samples is not given.
    samples_by_option : tuple of (option, tuple of (value, int))
        Options of the dataset that change its number of samples, with those of their values that are known.
    partial : ManifestPartial or None
        Parts that can be opened without the rest; None if a release with fewer samples is incomplete.
    size : int or None
        Bytes of the published files together (YAML key ``bytes``).
    homepage, citation : str or None
        Address, and BibTeX entry.
    factors : tuple of ManifestFactor
        In the order of the factor table.
    splits : tuple of ManifestSplit
        Published splits.
    modalities : tuple of ManifestModality
        Modalities of a sample.
    files : tuple of ManifestFile
        The published files; empty for data that is computed or the user's own.
    listed : tuple of ManifestListed
        Further files, whose names are listed in some of these.
    shares : str or None
        Name of the dataset whose files it shares: they are searched in its folders, too, and fetched there.
    folders : tuple of str
        Further folders below a root to search for the files, where other tools store them, such as torchvision's
        ``MNIST/raw``.
    addresses : Addresses or None
        Last known state of its addresses; None if it has none.
    steps : tuple of str
        Steps to get files that cannot be downloaded automatically.
    adapter : str or None
        Python module that opens it.
    extra : str or None
        Name of the pip extra that the adapter requires.
    layout : mapping or None
        Source of the rows, as written; :mod:`setsup.datasets.described` reads it. An adapter, if there is one,
        adds to these rows.
    columns : tuple of mapping
        Keys ``from``, ``match``, ``codes`` and ``rules`` of each factor, as written.
    root : str or None
        Folder of the files of a user's own manifest, absolute or relative to its folder; None is that folder.
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
