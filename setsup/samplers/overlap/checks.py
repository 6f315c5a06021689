"""Whether the columns of an overlap table fit together: looked at by blocks, so that a mapped table stays mapped."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from setsup.arrays import Array, Bools, Rows

__all__ = ["COUNTS", "LEAST", "SOURCES", "TRACKS", "find_fault"]

COUNTS = ("possible", "excluded", "measured", "not_tried")
"""Columns of the counts of a scene, in pairs."""

LEAST = 16
"""Decided sample pixels, or observed points, below which an overlap is unknown."""

TRACKS = "tracks"
"""The source that does not list pairs without a common point."""

SOURCES = ("scenes", "depth", TRACKS)

_VALUES = ("overlap", "angle", "scale", "unknown", "decided")
_PAIRS = 1 << 20  # pairs looked at together
_BYTES = 1 << 20  # of matrices of excluded pairs, counted together


def find_fault(columns: Mapping[str, Array], about: Mapping[str, Any]) -> str:
    """What does not fit together in a table; empty if all does."""
    if about.get("source") not in SOURCES:
        return f"its source is {about.get('source')!r}, not one of {', '.join(SOURCES)}"
    return (
        _shapes(columns)
        or _starts(columns)
        or _views(columns, about["rows"])
        or _counts(columns, about["source"])
        or _pairs(columns, about["source"])
    )


def _shapes(columns: Mapping[str, Array]) -> str:
    pairs, views, scenes = (len(columns[name]) for name in ("first", "views", "counts"))
    shapes: dict[str, tuple[int, ...]] = {name: (pairs,) for name in ("first", "second", *_VALUES)}
    shapes |= {"views": (views,), "sampled": (views,), "starts": (scenes + 1,), "excluded_starts": (scenes + 1,)}
    shapes |= {"counts": (scenes, len(COUNTS)), "excluded": (len(columns["excluded"]),)}
    for name, shape in shapes.items():
        if columns[name].shape != shape:
            return f"{name} has shape {columns[name].shape}, not {shape}"
    return ""


def _starts(columns: Mapping[str, Array]) -> str:
    for name, end in (("starts", len(columns["views"])), ("excluded_starts", len(columns["excluded"]))):
        begins = columns[name]
        if begins[0] != 0 or begins[-1] != end or (np.diff(begins) < 0).any():
            return f"{name} does not rise from 0 to {end}"
    bits = np.diff(columns["excluded_starts"])
    if not np.isin(bits * 8 - np.diff(columns["starts"]) ** 2, np.arange(8))[bits > 0].all():
        return "a matrix of excluded pairs has another size than its scene"
    some = np.flatnonzero(bits)
    spare = (bits * 8 - np.diff(columns["starts"]) ** 2)[some]
    if (columns["excluded"][columns["excluded_starts"][some + 1] - 1] & ((1 << spare) - 1)).any():
        return "a matrix of excluded pairs has bits of no pair"
    return ""


def _views(columns: Mapping[str, Array], rows: int) -> str:
    views = columns["views"]
    known = np.sort(views)
    if len(views) and (known[0] < 0 or known[-1] >= rows or (np.diff(known) == 0).any()):
        return f"its views are not different rows below {rows:,}"
    if (np.diff(views)[np.diff(_scene_of_views(columns)) == 0] < 0).any():
        return "the views of a scene are not in order"
    return "a number of sample pixels is negative" if (columns["sampled"] < 0).any() else ""


def _scene_of_views(columns: Mapping[str, Array]) -> Rows:
    return np.repeat(np.arange(len(columns["counts"])), np.diff(columns["starts"]))


def _pairs(columns: Mapping[str, Array], source: str) -> str:
    """What is wrong with the pairs, or with the number of them in each scene."""
    views, scene = columns["views"], _scene_of_views(columns)
    by_row = np.argsort(views, kind="stable")
    known = views[by_row]
    listed = np.zeros(len(columns["counts"]), np.int64)
    for start in range(0, len(columns["first"]), _PAIRS):
        block = slice(start, start + _PAIRS)
        # with the last pair of the block before
        one, two = (columns[name][max(start - 1, 0) : start + _PAIRS] for name in ("first", "second"))
        if not ((np.diff(one) > 0) | ((np.diff(one) == 0) & (np.diff(two) > 0))).all():
            return "its pairs are not in order"
        places = []
        for rows in (columns["first"][block], columns["second"][block]):
            at = np.searchsorted(known, rows).clip(max=max(len(views) - 1, 0))
            if not len(views) or (known[at] != rows).any():
                return "a pair names a row that is not among its views"
            places.append(by_row[at])
        of_pair = scene[places[0]]
        if ((places[0] == places[1]) | (of_pair != scene[places[1]])).any():
            return "a pair is not of two views of one scene"
        if _is_excluded(columns, of_pair, *places).any():
            return "a pair is measured, and excluded as well"
        if wrong := _values({name: columns[name][block] for name in _VALUES}, columns["sampled"][places[0]]):
            return wrong
        listed += np.bincount(of_pair, minlength=len(listed))
    measured = columns["counts"][:, 2]
    differ = listed > measured if source == TRACKS else listed != measured
    return _first(differ, "counts {0:,} measured pairs, and lists {1:,}", measured, listed)


def _values(of_pairs: Mapping[str, Array], sampled: Array) -> str:
    """What is impossible among the measures of pairs; each may be unknown."""
    overlap, angle, scale, unknown, decided = (of_pairs[name] for name in _VALUES)
    with np.errstate(invalid="ignore"):
        wrong: dict[str, Bools] = {
            "an overlap is not from 0 to 1": (overlap < 0) | (overlap > 1),
            "an angle is not from 0 to 180 degrees": (angle < 0) | (angle > 180),
            "a ratio of scales is not a positive number": (scale <= 0) | np.isinf(scale),
            "a share of unknown sample pixels is not from 0 to 1": (unknown < 0) | (unknown > 1),
            "a number of decided sample pixels is not from 0 to that of all": (decided < 0) | (decided > sampled),
            f"an overlap is known from fewer than {LEAST} decided sample pixels": (overlap >= 0) & (decided < LEAST),
        }
    return next((text for text, bad in wrong.items() if bad.any()), "")


def _is_excluded(columns: Mapping[str, Array], scene: Rows, first: Rows, second: Rows) -> Bools:
    """Whether pairs of places of views have their bit in the matrix of their scene."""
    begin, starts = columns["excluded_starts"], columns["starts"]
    some = np.flatnonzero(begin[scene + 1] > begin[scene])
    of = scene[some]
    bit = (first[some] - starts[of]) * (starts[of + 1] - starts[of]) + second[some] - starts[of]
    found = np.zeros(len(scene), bool)
    found[some] = columns["excluded"][begin[of] + bit // 8] >> (7 - bit % 8).astype(np.uint8) & 1
    return found


def _counts(columns: Mapping[str, Array], source: str) -> str:
    """What is wrong with the counts of scenes, or with their matrices of excluded pairs."""
    counts, sizes = columns["counts"], np.diff(columns["starts"])
    if (counts < 0).any() or (counts[:, 0] != counts[:, 1:].sum(axis=1)).any():
        return "the counts of its scenes do not add up"
    possible = sizes * (sizes - 1)
    excluded, view = _count_excluded(columns), np.arange(len(columns["views"]))
    itself = np.flatnonzero(_is_excluded(columns, _scene_of_views(columns), view, view))
    if len(itself):
        return f"the view of row {columns['views'][itself[0]]} is excluded from itself"
    return (
        _first(counts[:, 0] != possible, "counts {0:,} possible pairs of {1:,}", counts[:, 0], possible)
        or _first(counts[:, 1] != excluded, "counts {0:,} excluded pairs of {1:,}", counts[:, 1], excluded)
        or _first(
            (counts[:, 2] != possible) & (source == TRACKS),
            "has tracks, and measured {0:,} pairs of {1:,}",
            counts[:, 2],
            possible,
        )
    )


def _count_excluded(columns: Mapping[str, Array]) -> Rows:
    """Number of bits of the matrix of each scene."""
    found = np.zeros(len(columns["counts"]), np.int64)
    ends, bits = columns["excluded_starts"], columns["excluded"]
    for scene in np.flatnonzero(np.diff(ends)).tolist():
        for start in range(ends[scene], ends[scene + 1], _BYTES):
            stop = min(start + _BYTES, ends[scene + 1])
            found[scene] += int(np.bitwise_count(bits[start:stop]).sum(dtype=np.int64))
    return found


def _first(bad: Bools, text: str, *numbers: Array) -> str:
    """A text about the first bad scene, with its numbers; empty if no scene is bad."""
    if not bad.any():
        return ""
    scene = int(np.argmax(bad))
    return f"scene {scene} " + text.format(*(int(some[scene]) for some in numbers))
