"""What a set of shards holds, and how that is written down.

Convention
----------
Shards are plain tars (POSIX ustar) as the webdataset library reads them: the members of a sample lie one after the
other and begin with the sample's key, which has no dot. ``KEY.png`` (or ``.webp``, ``.jpg``, ``.npy``) is the modality
``image``, ``KEY.<modality>.<ext>`` every other one, ``KEY.json`` the values of its factors. Views of scenes have
``KEY.camera.json`` besides: their cameras, and what their instances are called (:mod:`setsup.shards.views`).

Beside the tars, under one address, lie

``shards.json``
    The catalogue: factors, modalities, the shards with their sizes and digests, licence and citation. It is written
    last: shards without one are not finished.
``index.parquet``
    A row a sample, in the order of the tars: its factors, its key, its shard, and where each of its members lies.
``README.md``
    The data card for the Hugging Face Hub.
``croissant.json``
    The files and factors in Croissant (:mod:`setsup.shards.croissant`), for other libraries. ``setsup.open``
    opens shards by their catalogue; by this file only where it is named.
``backup.parquet``
    A second copy of what the tars do not hold, from which the others are restored (:mod:`setsup.shards.backup`).

Shards that others wrote have no ``shards.json``; :func:`setsup.shards.index_shards` makes one, and the index.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from setsup.datasets.dataset import Modality
from setsup.errors import DamagedFile, DataError, SetsupError
from setsup.factors import Factor
from setsup.files.manifests.strict_yaml import Fields
from setsup.files.manifests.validators import any_text, digest, matching, one_of, relative, text, texts, whole

__all__ = [
    "BACKUP",
    "CAMERA",
    "CARD",
    "CATALOGUE",
    "CRC32C",
    "FORMAT",
    "HEADER",
    "INDEX",
    "PLAN",
    "VIEW",
    "WORK",
    "Catalogue",
    "Member",
    "Shard",
    "key_digits",
    "member_name",
    "parse_catalogue",
    "split_name",
]

CATALOGUE, INDEX, CARD, BACKUP = "shards.json", "index.parquet", "README.md", "backup.parquet"

WORK, PLAN = ".setsup", ".setsup/plan.json"
"""Folder of what is there only until a set is finished, and what in it says how the set is to be."""

FORMAT = 1
"""Of the catalogue and the index."""

CRC32C, HEADER = "crc32c", "header"
"""What the index says to check members by: the CRC-32C of the content, or the checksum field of the tar header before
it (of tars that others wrote, whose content was not read when they were indexed)."""

_FIX = "fetch it again, write the set again with `setsup shard`, or index other tars again with `setsup index`"
_EXTENSION = r"[a-z0-9_-]+"
_FEWEST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Shard:
    """One tar.

    Parameters
    ----------
    name : str
        Relative to the address of the set, with ``/`` and without ``..``.
    rows : int
        Samples.
    size : int, bytes
        Of the tar.
    digest : str
        SHA-256 of the tar, in hexadecimal; of a tar that others wrote, that of its members' names, places and header
        checksums.

    """

    name: str
    rows: int
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Member:
    """How a modality is stored.

    Parameters
    ----------
    modality : Modality
        What it is once decoded.
    extension : str
        What follows the key and a dot: ``png`` for images, ``depth.npy`` for another modality.

    """

    modality: Modality
    extension: str

    @property
    def format(self) -> str:
        """Last part of the extension: ``png``, ``webp``, ``jpg``, ``npy`` …."""
        return self.extension.rpartition(".")[2]


CAMERA, VIEW = "camera", Member(Modality((None,), "uint8"), "camera.json")
"""Where cameras stand among the members of a catalogue, and how they are stored: as bytes, which are no modality."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All there is to know of a set of shards but the index.

    Parameters
    ----------
    name : str
        Name of the dataset.
    factors : tuple of Factor
        Columns of the index that are factors.
    members : mapping of str to Member
        By the names of the modalities.
    shards : tuple of Shard
        In the order of the index.
    index : Shard
        The index, as if it were a shard: its name, rows, size and SHA-256.
    check : str
        :data:`CRC32C` or :data:`HEADER`.
    plan : str
        SHA-256 of what the shards were asked to be, in hexadecimal: equal plans, equal bytes. Nothing for tars that
        others wrote.
    about : mapping of str to str
        ``title``, ``description``, ``licence``, ``licence_url``, ``citation``, ``homepage``, ``order`` and ``seed``, as
        far as they are known.
    setsup : str
        Version that wrote this.
    pair_factors : tuple of str
        Factors in which two views of one scene agree; none where there are no cameras.

    """

    name: str
    factors: tuple[Factor, ...]
    members: Mapping[str, Member]
    shards: tuple[Shard, ...]
    index: Shard
    check: str
    plan: str
    setsup: str
    about: Mapping[str, str] = field(default_factory=dict)
    pair_factors: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Samples in all shards."""
        return self.index.rows

    @property
    def arrays(self) -> dict[str, Member]:
        """Members that are modalities: all but cameras."""
        return {name: member for name, member in self.members.items() if (name, member) != (CAMERA, VIEW)}

    @property
    def modalities(self) -> dict[str, Modality]:
        """What can be fetched."""
        return {name: member.modality for name, member in self.arrays.items()}

    def to_json(self) -> str:
        """Text of ``shards.json``: a line a shard, so that it can be read, compared and cut by ordinary tools."""
        head = {
            "setsup": self.setsup,
            "format": FORMAT,
            "name": self.name,
            "plan": self.plan,
            "check": self.check,
            "about": dict(self.about),
            "factors": [factor.to_dict() for factor in self.factors],
            "members": {
                name: {"extension": member.extension, **member.modality.to_dict()}
                for name, member in self.members.items()
            },
            **({"pair_factors": list(self.pair_factors)} if self.pair_factors else {}),
            "index": _shard_list(self.index),
        }
        lines = ",\n".join("  " + json.dumps(_shard_list(shard), ensure_ascii=False) for shard in self.shards)
        opened = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
        return f'{opened},\n "shards": [\n{lines}\n ]\n}}\n'


def parse_catalogue(content: bytes, source: str) -> Catalogue:
    """Read the content of ``shards.json``.

    Parameters
    ----------
    content : bytes
        Of the file.
    source : str
        Its path or address, for messages.

    Raises
    ------
    DataError
        When it is damaged, of a later version, or names a shard outside the folder.

    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{source} is damaged: {error}", _FIX) from None
    fields = Fields(document, source)
    made, kind = fields.need("setsup", text), fields.need("format", whole)
    if kind != FORMAT:
        raise DataError(
            f"{source} has format {kind}, written by setsup {made}, but this version reads format {FORMAT}; update "
            "setsup, or rebuild the index with `setsup index`"
        )
    members = {name: _member(part) for name, part in fields.named("members").items()}
    about = fields.get("about", texts) or {}
    catalogue = Catalogue(
        name=fields.need("name", text),
        factors=fields.each("factors", _factor),
        members=members,
        shards=fields.each("shards", _shard),
        index=fields.need("index", _shard),
        check=fields.need("check", one_of((CRC32C, HEADER))),
        plan=fields.need("plan", _plan),
        setsup=made,
        about=about,
        pair_factors=fields.each("pair_factors", text),
    )
    fields.done()
    if len({factor.name for factor in catalogue.factors}) < len(catalogue.factors):
        raise fields.wrong("factors", "factors with distinct names", [factor.name for factor in catalogue.factors])
    if not {factor.name for factor in catalogue.factors}.issuperset(catalogue.pair_factors):
        raise fields.wrong("pair_factors", "names of factors", list(catalogue.pair_factors))
    if len({shard.name for shard in catalogue.shards}) < len(catalogue.shards):
        raise fields.wrong("shards", "shards with distinct names", "duplicates")
    if sum(shard.rows for shard in catalogue.shards) != catalogue.rows:
        raise DamagedFile(f"{source} is damaged: the rows of its shards and of its index differ", _FIX)
    return catalogue


def key_digits(rows: int) -> int:
    """Digits of the keys of the samples of a set that setsup writes: their numbers with zeros before them."""
    return max(_FEWEST_DIGITS, len(str(rows - 1)))


def member_name(key: str, extension: str) -> str:
    """Name of a member in a tar.

    Examples
    --------
    >>> member_name("000017", "depth.npy")
    '000017.depth.npy'

    """
    return f"{key}.{extension}"


def split_name(name: str) -> tuple[str, str]:
    """Key and extension of a member, as the webdataset library tells them apart: at the first dot of the file's name.

    Examples
    --------
    >>> split_name("train.2/000017.depth.NPY")
    ('train.2/000017', 'depth.npy')

    """
    folder, slash, file = name.rpartition("/")
    key, _, extension = file.partition(".")
    return f"{folder}{slash}{key}", extension.lower()


def _member(fields: Fields) -> Member:
    shape = fields.need("shape", _shape)
    dtype, extension = fields.need("dtype", text), fields.need("extension", _EXTENSIONS)
    unit, color = (fields.need(key, any_text) for key in ("unit", "color"))
    fields.done()
    try:
        return Member(Modality(shape, dtype, unit, color), extension)
    except SetsupError as error:
        raise fields.wrong("", f"a modality ({error})", dtype) from None


_EXTENSIONS = matching(rf"{_EXTENSION}(\.{_EXTENSION})*", "letters, digits and dots, such as depth.npy")


def _shard_list(shard: Shard) -> list[Any]:
    return [shard.name, shard.rows, shard.size, shard.digest]


def _shard(value: Any) -> Shard:
    if not isinstance(value, list) or len(value) != 4:
        raise ValueError("[name, rows, bytes, digest]")
    name, rows, size, check = value
    usual = isinstance(name, str) and _USUAL.fullmatch(name)  # a look at each part of 100,000 paths takes seconds
    return Shard(name if usual else relative(name), whole(rows), whole(size), _DIGEST(check))


_DIGEST, _USUAL = digest(64), re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.tar")


def _factor(value: Any) -> Factor:
    try:
        return Factor.from_dict(value)
    except (SetsupError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a factor ({error})") from None


def _shape(value: Any) -> tuple[int | None, ...]:
    listed = value if isinstance(value, list) and len(value) <= 8 else [0]
    if not all(length is None or 0 < whole(length) < 1 << 31 for length in listed):
        raise ValueError("a list of at most 8 positive integers, or null for any size")
    return tuple(value)


def _plan(value: Any) -> str:
    return "" if value == "" else digest(64)(value)
