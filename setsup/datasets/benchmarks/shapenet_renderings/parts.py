"""One category of KeypointNet's renderings: its record files, the lists next to them, and the factors of its views."""

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.adapters.record_files import RecordFiles
from setsup.datasets.benchmarks.shapenet_renderings.poses import azimuth_elevation
from setsup.datasets.benchmarks.shapenet_renderings.records import ViewIndex, view_index
from setsup.datasets.cached_arrays import cached_table
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.column_storage import code_dtype
from setsup.files import cache_folder
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import text_of

__all__ = ["CATEGORIES", "NAME", "Part", "check_apart", "open_part", "part_table"]

NAME = "shapenet-renderings"
CATEGORIES = MappingProxyType({"car": "cars", "plane": "planes", "chair": "chairs"})
"""Levels of the factor ``category``, and what the files of each are called after."""

_SPLITS = ("train", "dev", "test")
_STEM = r"\w[\w.-]*"
_RECORD = rf"(?P<record>{_STEM})\.tfrecord"
_LIST_BYTES = 1 << 26
_VERSION = 1  # of the table in the cache

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class Part:
    """One category that is present.

    `projection` (4, 4) float32 or None.
    """

    category: str
    files: RecordFiles
    views: ViewIndex
    records: list[str]
    objects: list[str]
    splits: list[str]
    projection: npt.NDArray[np.float32] | None


def open_part(category: str, source: Path) -> Part:
    """Open a category."""
    members = find_members(NAME, source, {_RECORD: "*.tfrecord"})
    places, groups = members.matching(_RECORD)
    records: list[str] = groups["record"].to_pylist()
    parts, objects = _splits(members, records), _objects(members, category, records)
    shown = _projection(members)
    files = RecordFiles(members, places)
    return Part(category, files, view_index(files), records, objects, parts, shown)


def check_apart(parts: Sequence[Part]) -> None:
    """Refuse the same release under the names of two categories."""
    named = [(part, set(part.objects)) for part in parts if part.objects != part.records]
    for (first, ours), (second, theirs) in combinations(named, 2):
        both = ours & theirs
        if 2 * len(both) > min(len(ours), len(theirs)):
            raise DamagedFile(
                f"{first.files.source} and {second.files.source} contain the same objects ({min(both)} and "
                f"{len(both) - 1:,} more), once as {first.category} and once as {second.category}",
                "replace the one that is a copy of the other",
            )


def part_table(parts: Sequence[Part]) -> FactorTable:
    """Return the factors of all views, mapped from the cache folder."""
    named = [[part.category, part.views.path.name, part.records, part.objects, part.splits] for part in parts]
    key = hashlib.sha256(json.dumps([_VERSION, named]).encode()).hexdigest()[:32]
    path = cache_folder() / "views" / f"{key}.factors.arrow"
    return cached_table(path, lambda: _table(parts))


def _table(parts: Sequence[Part]) -> FactorTable:
    categories, splits = tuple(CATEGORIES), _SPLITS
    objects = tuple(dict.fromkeys(name for part in parts for name in part.objects))
    records = tuple(sorted({name for part in parts for name in part.records}))
    counts = np.concatenate([part.views.counts for part in parts])
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    angles = [azimuth_elevation(part.views.model_views[:, :3, :3]) for part in parts]
    most = int(counts.max())

    def column(levels: Sequence[str], names: Sequence[str]) -> npt.NDArray[Any]:
        codes = {level: code for code, level in enumerate(levels)}
        return np.repeat(np.array([codes[name] for name in names], code_dtype(len(levels))), counts)

    return FactorTable(
        [
            Factor("category", Kind.NOMINAL, categories),
            Factor("object", Kind.NOMINAL, objects, within="category"),
            Factor("azimuth", Kind.CONTINUOUS, unit="deg", period=360.0),
            Factor("elevation", Kind.CONTINUOUS, unit="deg"),
            Factor("record", Kind.NOMINAL, records, within="category", role="key"),
            Factor("pair", Kind.ORDINAL, tuple(range(most // 2)), within="object", role="key"),
            Factor("view", Kind.ORDINAL, tuple(range(most)), within="object", role="key"),
            Factor("split", Kind.NOMINAL, splits, role="split"),
        ],
        {
            "category": column(categories, [part.category for part in parts for _ in part.records]),
            "object": column(objects, [name for part in parts for name in part.objects]),
            "azimuth": np.concatenate([azimuth for azimuth, _ in angles]),
            "elevation": np.concatenate([elevation for _, elevation in angles]),
            "record": column(records, [name for part in parts for name in part.records]),
            "pair": (within // 2).astype(code_dtype(most // 2)),
            "view": within.astype(code_dtype(most)),
            "split": column(splits, [name for part in parts for name in part.splits]),
        },
    )


# -- the lists ---------------------------------------------------------------------------------------------------------


def _splits(members: MemberIndex, records: Sequence[str]) -> list[str]:
    """Split of each record: test and dev as their lists say, all else train; a name in both is test."""
    there = set(records)
    named: dict[str, str] = {}
    lost: dict[str, None] = {}
    for split in ("dev", "test"):
        member = members.place(f"{split}.txt")
        for line in _lines(members, member):
            record = line.removesuffix(".tfrecord")
            if re.fullmatch(_STEM, record) is None:
                raise DamagedFile(f"{members.label(member)} lists {line[:80]!r}; expected the name of a record")
            if record not in there:
                lost[record] = None
            named[record] = split
    warn_left_out(members.source, "records", [f"{record}.tfrecord" for record in lost], len(there | named.keys()))
    return [named.get(record, "train") for record in records]


def _objects(members: MemberIndex, category: str, records: Sequence[str]) -> list[str]:
    """Object of each record by ``job.txt``; the names of the records where that is missing or says something else."""
    if "job.txt" not in members:
        return list(records)
    member = members.place("job.txt")
    objects, why = _jobs([line.split() for line in _lines(members, member)], records)
    if why:
        _log.warning("%s %s: each %s is named after its record", members.label(member), why, category)
    return objects


def _jobs(jobs: Sequence[Sequence[str]], records: Sequence[str]) -> tuple[list[str], str]:
    """Objects of records, and why they are only the records' names.

    A line is an id, and the first one belongs to record 0; or it is the name of a record and an id.
    """
    widths = {len(job) for job in jobs}
    if widths == {2}:
        named = {job[0].removesuffix(".tfrecord"): job[1] for job in jobs}
        missing = [record for record in records if record not in named]
        why = f"has no entry for the record {missing[0]}" if missing else ""
    elif widths == {1}:
        named = {record: jobs[int(record)][0] for record in records if record.isdecimal() and int(record) < len(jobs)}
        missing = [record for record in records if record not in named]
        why = f"has {len(jobs):,} lines, but no entry for the record {missing[0]}" if missing else ""
    else:
        return list(records), "has lines other than 'id' or 'record id'"
    objects = [named.get(record, record) for record in records]
    if not why and len(set(objects)) < len(objects):
        why = "lists an object twice"
    return (list(records), why) if why else (objects, "")


def _projection(members: MemberIndex) -> npt.NDArray[np.float32] | None:
    if "projection.txt" not in members:
        return None
    member = members.place("projection.txt")
    rows = [line.split() for line in _lines(members, member)]
    try:
        matrix = np.array(rows, np.float64) if [len(row) for row in rows] == [4] * 4 else None
    except ValueError:
        matrix = None
    if matrix is None or not np.isfinite(matrix).all():
        raise DamagedFile(f"{members.label(member)} is not a 4 × 4 matrix of finite numbers, one row per line")
    return matrix.astype(np.float32)


def _lines(members: MemberIndex, member: int) -> list[str]:
    """Lines of a list that are not empty."""
    text = text_of(members.read(member, _LIST_BYTES), members.label(member))
    return [line.strip() for line in text.splitlines() if line.strip()]
