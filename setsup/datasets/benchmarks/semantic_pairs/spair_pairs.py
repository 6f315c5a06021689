"""Lists and annotations of the pairs of SPair-71k."""

import logging
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Array, Reals, Rows
from setsup.datasets.cached_arrays import cached_array, release_state
from setsup.datasets.formats.json_text import read_json
from setsup.errors import DamagedFile, abbreviate, short
from setsup.files.archives.members import MemberIndex
from setsup.files.texts import text_of
from setsup.progress import progress

__all__ = ["LEVELS", "SPLITS", "PairLines", "read_levels", "read_lines", "read_list", "read_pair"]

SPLITS = ("train", "val", "test")
"""Parts of the benchmark; the files name the first one trn."""

LEVELS = {
    "viewpoint": ("easy", "medium", "hard"),
    "scale": ("easy", "medium", "hard"),
    "truncation": ("none", "source", "target", "both"),
    "occlusion": ("none", "source", "target", "both"),
}
"""Levels of the factors of pairs, in the order of their published numbers."""

_KEYS = {"viewpoint": "viewpoint_variation", "scale": "scale_variation"}
_FOLDERS = {"train": "trn", "val": "val", "test": "test"}
_LINE = re.compile(r"\d{1,9}-([^-:/]+)-([^-:/]+):([^-:/]+)")
_ENTRY = np.dtype([(name, "u1") for name in LEVELS])
_VERSION = 1  # of the cached levels
_MOST_LIST, _MOST_PAIR = 1 << 26, 1 << 16

_log = logging.getLogger("setsup")


class PairLines(NamedTuple):
    """Lines of the large layout: names of annotations, rows (n, 2) int64 of their images, and splits (n,) int64."""

    names: list[str]
    rows: Rows
    splits: Rows


def read_lines(members: MemberIndex, images: Sequence[str]) -> PairLines:
    """Read the lists; `images` are the names of all rows, such as ``cat/2008_000115``."""
    number = {name: row for row, name in enumerate(images)}
    names, rows, splits, left = list[str](), list[tuple[int, int]](), list[int](), 0
    for code, split in enumerate(SPLITS):
        name = f"Layout/large/{_FOLDERS[split]}.txt"
        if name not in members:
            continue
        member = members.place(name)
        for line, source, target, category in read_list(members.read(member, _MOST_LIST), members.label(member)):
            pair = [number.get(f"{category}/{name}", -1) for name in (source, target)]
            if min(pair) < 0:
                left += 1
                continue
            names.append(f"{_FOLDERS[split]}/{line}")
            rows.append((pair[0], pair[1]))
            splits.append(code)
    if left:
        _log.warning("%s: left out %s pairs whose images are missing", members.source, f"{left:,}")
    return PairLines(names, np.array(rows, np.int64).reshape(-1, 2), np.array(splits, np.int64))


def read_list(content: bytes, label: str) -> list[tuple[str, str, str, str]]:
    """Lines ``000001-SOURCE-TARGET:CATEGORY`` of a list: the line, source, target and category."""
    found = []
    for count, line in enumerate(text_of(content, label).splitlines(), 1):
        match = _LINE.fullmatch(line.strip())
        if match is None and line.strip():
            raise DamagedFile(
                f"{label}: line {count} is {short(repr(line), 80)}; expected NUMBER-SOURCE-TARGET:CATEGORY"
            )
        if match is not None:
            found.append((line.strip(), match[1], match[2], match[3]))
    return found


def read_levels(members: MemberIndex, lines: PairLines, points: Reals) -> Array:
    """Levels of all pairs, (n,) of the fields of :data:`LEVELS`; `points` (images, keypoints, 2)."""
    found = [f"PairAnnotation/{name}.json" for name in lines.names]
    places = members.places(found)
    lost = np.flatnonzero(places < 0)
    if len(lost):
        raise DamagedFile(
            f"{members.source}: {len(lost):,} of the pair annotations are missing, such as {found[lost[0]]}",
            "unpack the release again",
        )
    made_of = (release_state(members, places), _VERSION)
    return cached_array("levels", made_of, _ENTRY, len(found), lambda: _read_all(members, places, lines, points))


def _read_all(members: MemberIndex, places: Rows, lines: PairLines, points: Reals) -> Array:
    levels, others = np.zeros(len(places), _ENTRY), 0
    with progress(len(places), "reading pair annotations", "pair") as advance:
        for number, member in enumerate(places.tolist()):
            row1, row2 = lines.rows[number].tolist()
            content, label = members.read(member, _MOST_PAIR), members.label(member)
            levels[number], same = read_pair(content, label, points[row1], points[row2])
            others += not same
            advance()
    if others:
        _log.warning(
            "%s: keypoints of %s pair annotations differ from those of their images; those of the images are used",
            members.source,
            f"{others:,}",
        )
    return levels


def read_pair(content: bytes, label: str, points1: Reals, points2: Reals) -> tuple[tuple[int, ...], bool]:
    """Levels of a pair, and whether its keypoints are those that both images have."""
    read: Any = read_json(content, label)
    if not isinstance(read, dict):
        raise DamagedFile(f"{label} contains {abbreviate(read)}; expected an object")
    levels = []
    for name, words in LEVELS.items():
        key = _KEYS.get(name, name)
        level = read.get(key)
        if type(level) is not int or not 0 <= level < len(words):
            raise DamagedFile(f"{label}: {key!r} is {abbreviate(level)}; expected a number from 0 to {len(words) - 1}")
        levels.append(level)
    both = np.isfinite(points1[:, 0]) & np.isfinite(points2[:, 0])
    same = [read.get("src_kps"), read.get("trg_kps")] == [points1[both].tolist(), points2[both].tolist()]
    return tuple(levels), same
