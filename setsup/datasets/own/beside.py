"""Files among a user's images that are not images: tables of metadata, and files that setsup wrote."""

import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from setsup.arrays import Places
from setsup.datasets.own.path_factors import parent_folders
from setsup.errors import PATH_LETTERS, DataError, listed
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.names import shown
from setsup.files.outputs import HEAD, is_output

__all__ = ["list_tables", "name_some", "outputs_among", "without_outputs"]

_log = logging.getLogger("setsup")
_SHOWN = 3
_LOOKED_AT = 4096  # PNGs whose first bytes are read
_FEW = 100  # PNGs of a folder, up to which they are read where there are more in all
_TABLE = r"[.](?:(?:csv|tsv|jsonl|ndjson)(?:[.]gz)?|parquet|pq)"
# the places of Hugging Face's imagefolder, and those of a list that belongs to the whole folder
_TABLES = rf"(?i:[^/.][^/]*{_TABLE}|(?:[^/.][^/]*/)*metadata{_TABLE})"
_USUAL = r"(?:.*/)?(?:sheet|setsup-|first-batch)[^/]*"  # names that setsup gives, unless others are asked for
_PNG = "(?i:[.]png)"


def without_outputs(members: MemberIndex, places: Places, hint: str = "") -> Places:
    """Leave out images that setsup wrote: sheets and charts, recognized by a mark in their first bytes.

    Raises an error that ends in `hint` if none remain. Among more than 4,096 PNGs, only those with names that setsup
    chooses, and those in folders with at most 100 PNGs, are read.
    """
    ours = outputs_among(members, places)
    if not ours:
        return places
    names, label = name_some([shown(members.names[member].as_py()) for member in ours]), shown(str(members.source))
    if len(ours) == len(places):
        raise DataError(f"{label} contains only images written by setsup: {names}{hint}")
    _log.info("%s: skipping files written by setsup: %s", label, names)
    return np.setdiff1d(places, ours, assume_unique=True)


def outputs_among(members: MemberIndex, places: Places) -> list[int]:
    """Places of the images that setsup wrote, of those that are looked at."""
    candidates = np.intersect1d(members.matching(f"(?s:.*){_PNG}")[0], places, assume_unique=True)
    if len(candidates) > _LOOKED_AT:
        import pyarrow.compute as pc

        names = members.names.take(candidates)
        codes = as_numpy(parent_folders(names).dictionary_encode().indices)
        usual = as_numpy(pc.match_substring_regex(names, f"^{_USUAL}{_PNG}$").cast("uint8")) == 1
        alike = np.where(usual, 0, np.bincount(codes)[codes])
        candidates = candidates[np.argsort(alike, kind="stable")[: min(_LOOKED_AT, int((alike <= _FEW).sum()))]]
    return [member for member in candidates.tolist() if is_output(_head(members, member))]


def list_tables(members: MemberIndex, path: Path) -> list[str]:
    """Paths of tables in a folder or archive of images, and of metadata next to an archive, without files of draws."""
    places, _ = members.matching(_TABLES)
    names = [members.label(member) for member in places[: 8 * _SHOWN].tolist() if not is_output(_head(members, member))]
    if not path.is_dir():
        with suppress(OSError):
            beside = sorted(name for name in os.listdir(path.parent) if re.fullmatch(f"(?i:metadata{_TABLE})", name))
            names += [shown(str(path.parent / name)) for name in beside]
    return names


def name_some(names: Sequence[str]) -> str:
    """The first few of some names, for a message."""
    return listed(names, _SHOWN, PATH_LETTERS)


def _head(members: MemberIndex, member: int) -> bytes:
    try:
        head = members.stretch(member, 0, HEAD)
        return members.read(member)[:HEAD] if head is None else head
    except DataError:  # whoever reads it says what is wrong
        return b""
