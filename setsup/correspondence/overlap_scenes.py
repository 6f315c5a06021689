"""Scenes whose views are compared, as units of work: small ones as a whole, several in a unit, large ones in pieces.

What is found does not depend on the units, nor on who does them.
"""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from setsup import random
from setsup.arrays import Array, Bytes, Rows
from setsup.correspondence.overlap_candidates import Pose, candidate_pairs, pose_of
from setsup.correspondence.overlap_measures import Measures, Samples, measure
from setsup.correspondence.overlap_views import Source
from setsup.jobs.running import run
from setsup.jobs.units import Unit
from setsup.scenes.camera import Camera

__all__ = ["STREAM", "Found", "Plan", "measure_scenes", "stacked"]

STREAM = "overlap"

_PIXELS, _CANDIDATES = 0, 1  # what the key of the stream is folded with
_WHOLE = 200  # views of a scene up to which all of its pairs are measured
_VIEWS = 64  # views of a large scene that are sampled, or that are second, in one unit of work
_PAIRS = 4096  # pairs of small scenes in one unit of work, about


class Plan(NamedTuple):
    """What units of work share."""

    source: Source
    pixels: int
    candidates: int
    seed: int

    def keys(self, purpose: int, rows: Rows) -> npt.NDArray[np.uint64]:
        """A key for each row."""
        return random.fold(random.fold_integers(random.stream_key(self.seed, STREAM), purpose), rows.astype(np.uint64))


class _Sampled(NamedTuple):
    """Views that were sampled."""

    cameras: list[Camera]
    poses: list[Pose]
    points: list[Array]


class Found(NamedTuple):
    """Pairs of a scene.

    Attributes
    ----------
    pairs : (n, 2) int64
        Rows of the two views.
    measures : Measures
        Of these pairs.
    sampled : (views,) int64
        Number of sample pixels of each view.
    excluded : int
        Number of pairs that certainly do not overlap.
    bits : (bytes,) uint8
        Matrix of them, packed; empty where every pair is measured.

    """

    pairs: Rows
    measures: Measures
    sampled: Rows
    excluded: int
    bits: Bytes


class _Second(NamedTuple):
    """A second view of a large scene, and the places of the first ones in its samples."""

    row: int
    camera: Camera
    firsts: Rows


def measure_scenes(plan: Plan, scenes: list[Rows], processes: int) -> list[Found]:
    """Pairs of each scene: small scenes as a whole, several in a unit, and large ones in pieces."""
    small = [number for number, rows in enumerate(scenes) if len(rows) <= _WHOLE]
    units = [
        Unit(f"scenes {some[0]} to {some[-1]}", [scenes[number] for number in some], pairs)
        for some, pairs in _batches(small, scenes)
    ]
    parts = run(partial(_whole_scenes, plan), units, processes=processes, what="measuring overlaps", counted="pairs")
    found = dict(zip(small, (one for part in parts for one in part), strict=True))
    for number, rows in enumerate(scenes):
        if number not in found:
            found[number] = _large_scene(plan, rows, processes)
    return [found[number] for number in range(len(scenes))]


def _batches(small: list[int], scenes: list[Rows]) -> Iterator[tuple[list[int], int]]:
    some: list[int] = []
    pairs = 0
    for number in small:
        some.append(number)
        pairs += len(scenes[number]) * (len(scenes[number]) - 1)
        if pairs >= _PAIRS:
            yield some, pairs
            some, pairs = [], 0
    if some:
        yield some, pairs


def _whole_scenes(plan: Plan, scenes: list[Rows]) -> list[Found]:
    """Pairs of small scenes."""
    found = []
    for rows in scenes:
        sampled = _sample(plan, rows)
        samples = _joined(sampled)
        pairs, _ = candidate_pairs(sampled.poses, plan.keys(_CANDIDATES, rows), plan.candidates, _WHOLE)
        reader = plan.source.reader(int(rows[0]))
        parts = [
            measure(reader, samples, pairs[pairs[:, 1] == second, 0], row, sampled.cameras[second])
            for second, row in enumerate(rows.tolist())
        ]
        found.append(Found(rows[pairs], stacked(parts), np.diff(samples.starts), 0, np.empty(0, np.uint8)))
    return found


def _large_scene(plan: Plan, rows: Rows, processes: int) -> Found:
    """Pairs of a scene of many views: these are sampled once, and compared in units of second views."""
    first = int(rows[0])
    cuts = [*range(0, len(rows), _VIEWS), len(rows)]
    units = [Unit(f"rows {rows[a]} to {rows[b - 1]}", rows[a:b], b - a) for a, b in pairwise(cuts)]
    views = run(partial(_sample_unit, plan, first), units, processes=processes, what="sampling views", counted="views")
    sampled = _Sampled(*(list(chain.from_iterable(lists)) for lists in zip(*views, strict=True)))
    samples = _joined(sampled)
    pairs, excluded = candidate_pairs(sampled.poses, plan.keys(_CANDIDATES, rows), plan.candidates, _WHOLE)
    ends = np.searchsorted(pairs[:, 1], np.arange(len(rows) + 1))
    seconds = [
        _Second(row, sampled.cameras[place], pairs[ends[place] : ends[place + 1], 0])
        for place, row in enumerate(rows.tolist())
        if ends[place] < ends[place + 1]
    ]
    with tempfile.TemporaryDirectory(prefix="setsup-overlap-") as folder:
        file = Path(folder, "points.npy")
        np.save(file, samples.points)
        work = [
            Unit(f"views of rows {some[0].row} to {some[-1].row}", some, sum(len(one.firsts) for one in some))
            for some in (seconds[start : start + _VIEWS] for start in range(0, len(seconds), _VIEWS))
        ]
        parts = run(
            partial(_compare_unit, plan, first, file, samples._replace(points=samples.points[:0])),
            work,
            processes=processes,
            what="measuring overlaps",
            counted="pairs",
        )
    counts = np.diff(samples.starts)
    return Found(rows[pairs], stacked(parts), counts, int(excluded.sum()), np.packbits(excluded.reshape(-1)))


def _sample_unit(plan: Plan, first: int, rows: Rows) -> _Sampled:
    return _sample(plan, rows, first)


def _compare_unit(plan: Plan, first: int, file: Path, samples: Samples, seconds: list[_Second]) -> Measures:
    samples = samples._replace(points=np.load(file, mmap_mode="r"))
    reader = plan.source.reader(first)
    return stacked([measure(reader, samples, one.firsts, one.row, one.camera) for one in seconds])


def _sample(plan: Plan, rows: Rows, first: int | None = None) -> _Sampled:
    """Sample views of one scene, that of the row `first`."""
    reader = plan.source.reader(int(rows[0]) if first is None else first)
    keys = plan.keys(_PIXELS, rows).tolist()
    views = [reader.sample(row, plan.pixels, key) for row, key in zip(rows.tolist(), keys, strict=True)]
    return _Sampled([view.camera for view in views], [pose_of(view) for view in views], [view.points for view in views])


def _joined(sampled: _Sampled) -> Samples:
    starts = np.cumsum([0, *map(len, sampled.points)])
    return Samples(np.concatenate(sampled.points), starts, np.stack([pose.centre for pose in sampled.poses]))


def stacked(parts: Sequence[Measures]) -> Measures:
    """Measures of several lists of pairs, one after another."""
    if not parts:
        none = np.empty(0, np.float32)
        return Measures(none, none, none, none, np.empty(0, np.int32))
    return Measures(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
