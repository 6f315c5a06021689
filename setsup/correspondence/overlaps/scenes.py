"""Scenes whose views are compared, as units of work: several small ones in a unit, large ones in pieces.

What is found does not depend on the units, nor on who does them.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from setsup import random
from setsup.arrays import Array, Rows
from setsup.correspondence.overlaps.candidates import all_pairs, candidate_pairs, pose_of
from setsup.correspondence.overlaps.measures import DTYPES, Measures, Samples, SceneOverlaps, join_measures, measure
from setsup.correspondence.overlaps.views import Source, View, ViewReader
from setsup.correspondence.overlaps.work import Work
from setsup.jobs.units import Unit
from setsup.scenes.camera import Camera

__all__ = ["STREAM", "Plan", "measure_scenes", "sample_views"]

STREAM = "overlap"

_PIXELS, _CANDIDATES = 0, 1  # what the key of the stream is folded with
_WHOLE = 200  # views of a scene up to which all of its pairs are measured
_VIEWS = 64  # views of a large scene that are sampled, or that are second, in one unit of work
_PAIRS = 4096  # pairs of small scenes in one unit of work, about
_MEASURED = {**DTYPES, "sampled": "<i8"}
_SAMPLED = {"points": "<f8", "sizes": "<i8", "cameras": "<f8", "spans": "<f8", "closed": "|b1"}


class Plan(NamedTuple):
    """What units of work share."""

    source: Source
    pixels: int
    candidates: int
    seed: int


class _Second(NamedTuple):
    """A second view of a large scene, and the places of the first ones in its samples."""

    row: int
    camera: Camera
    firsts: Rows


class _Large(NamedTuple):
    """What of a large scene its units of work need: its first row, the file of points, and which are whose."""

    row: int
    file: Path
    samples: Samples


def measure_scenes(plan: Plan, scenes: list[Rows], work: Work) -> list[SceneOverlaps]:
    """Pairs of each scene: small scenes as a whole, several in a unit, and large ones in pieces."""
    small = [number for number, rows in enumerate(scenes) if len(rows) <= _WHOLE]
    large = [number for number, rows in enumerate(scenes) if len(rows) > _WHOLE]
    found = dict(zip(small, _small_scenes(plan, [scenes[number] for number in small], work), strict=True))
    found |= zip(large, _large_scenes(plan, [scenes[number] for number in large], work), strict=True)
    return [found[number] for number in range(len(scenes))]


# -- scenes of few views -----------------------------------------------------------------------------------------------


def _small_scenes(plan: Plan, scenes: list[Rows], work: Work) -> Iterator[SceneOverlaps]:
    batches = list(_batches(scenes))
    units = [
        Unit(f"scenes of rows {some[0][0]} to {some[-1][-1]}", some, sum(map(_possible, some))) for some in batches
    ]
    parts = work.run("scenes", partial(_whole_scenes, plan), units, _MEASURED, "measuring overlaps", "pairs")
    for some, part in zip(batches, parts, strict=True):
        pairs, views = (np.cumsum([0, *map(count, some)]) for count in (_possible, len))
        for (a, b), (c, d) in zip(pairwise(pairs.tolist()), pairwise(views.tolist()), strict=True):
            measures = Measures(*(part[name][a:b] for name in Measures._fields))
            yield SceneOverlaps(part["pairs"][a:b], measures, part["sampled"][c:d], 0, np.empty(0, np.uint8))


def _possible(rows: Rows) -> int:
    return len(rows) * (len(rows) - 1)


def _batches(scenes: list[Rows]) -> Iterator[list[Rows]]:
    some: list[Rows] = []
    pairs = 0
    for rows in scenes:
        some.append(rows)
        pairs += _possible(rows)
        if pairs >= _PAIRS:
            yield some
            some, pairs = [], 0
    if some:
        yield some


def _whole_scenes(plan: Plan, scenes: list[Rows]) -> dict[str, Array]:
    """Pairs of small scenes."""
    listed, sampled, parts = [], [], []
    for rows in scenes:
        reader = plan.source.reader(int(rows[0]))
        views = sample_views(reader, rows, plan.pixels, plan.seed)
        samples = _join(views)
        pairs = all_pairs(len(rows))
        parts += [
            measure(reader, samples, pairs[pairs[:, 1] == second, 0], row, views[second].camera)
            for second, row in enumerate(rows.tolist())
        ]
        listed.append(rows[pairs])
        sampled.append(np.diff(samples.starts))
    return {"pairs": np.concatenate(listed), "sampled": np.concatenate(sampled), **join_measures(parts)._asdict()}


# -- scenes of many views: sampled once, and compared in units of second views -----------------------------------------


def _large_scenes(plan: Plan, scenes: list[Rows], work: Work) -> list[SceneOverlaps]:
    pieces = [(int(rows[0]), rows[start : start + _VIEWS]) for rows in scenes for start in range(0, len(rows), _VIEWS)]
    units = [Unit(f"rows {rows[0]} to {rows[-1]}", (first, rows), len(rows)) for first, rows in pieces]
    views = work.run("views", partial(_sample_unit, plan), units, _SAMPLED, "sampling views", "views")
    found: list[SceneOverlaps] = []
    compared: list[Unit[tuple[_Large, list[_Second]]]] = []
    of_scene: list[int] = []
    with tempfile.TemporaryDirectory(prefix="setsup-points-", dir=work.folder) as folder:
        start = 0
        for number, rows in enumerate(scenes):
            stop = start + -(-len(rows) // _VIEWS)
            sampled = [view for part in views[start:stop] for view in _unpack(part)]
            start = stop
            samples = _join(sampled)
            poses = list(map(pose_of, sampled))
            pairs, excluded = candidate_pairs(poses, rows, _key(plan.seed, _CANDIDATES), plan.candidates)
            file = Path(folder, f"{number}.npy")
            np.save(file, samples.points)
            of_all = _Large(int(rows[0]), file, samples._replace(points=samples.points[:0]))
            some = [
                Unit(f"views of rows {part[0].row} to {part[-1].row}", (of_all, part), sum(len(x.firsts) for x in part))
                for part in _seconds(rows, [view.camera for view in sampled], pairs)
            ]
            compared += some
            of_scene += [number] * len(some)
            found.append(
                SceneOverlaps(
                    rows[pairs],
                    join_measures([]),
                    np.diff(samples.starts),
                    int(excluded.sum()),
                    np.packbits(excluded.reshape(-1)),
                )
            )
        dtypes = {name: DTYPES[name] for name in Measures._fields}
        parts = work.run("pairs", partial(_compare_unit, plan), compared, dtypes, "measuring overlaps", "pairs")
    measures: list[list[Measures]] = [[] for _ in found]
    for number, part in zip(of_scene, parts, strict=True):
        measures[number].append(Measures(**part))
    return [one._replace(measures=join_measures(some)) for one, some in zip(found, measures, strict=True)]


def _seconds(rows: Rows, cameras: list[Camera], pairs: Rows) -> Iterator[list[_Second]]:
    """Second views with the first ones that they are compared with, by units."""
    ends = np.searchsorted(pairs[:, 1], np.arange(len(rows) + 1))
    seconds = [
        _Second(row, cameras[place], pairs[ends[place] : ends[place + 1], 0])
        for place, row in enumerate(rows.tolist())
        if ends[place] < ends[place + 1]
    ]
    for start in range(0, len(seconds), _VIEWS):
        yield seconds[start : start + _VIEWS]


def _sample_unit(plan: Plan, piece: tuple[int, Rows]) -> dict[str, Array]:
    first, rows = piece
    views = sample_views(plan.source.reader(first), rows, plan.pixels, plan.seed)
    return {
        "points": np.concatenate([view.points for view in views]),
        "sizes": np.array([len(view.points) for view in views]),
        "cameras": np.stack([_numbers(view.camera) for view in views]),
        "spans": np.stack([view.span for view in views]),
        "closed": np.array([view.closed for view in views]),
    }


def _numbers(camera: Camera) -> Array:
    return np.concatenate(
        [[camera.height, camera.width], *(np.ravel(one) for one in (camera.k, camera.rotation, camera.translation))]
    )


def _unpack(part: dict[str, Array]) -> Iterator[View]:
    """Views of a unit."""
    ends = np.cumsum(part["sizes"])
    for place, numbers in enumerate(part["cameras"]):
        height, width = numbers[:2].astype(int).tolist()
        camera = Camera(height, width, numbers[2:11].reshape(3, 3), numbers[11:20].reshape(3, 3), numbers[20:])
        points = part["points"][ends[place] - part["sizes"][place] : ends[place]]
        yield View(camera, points, part["spans"][place], bool(part["closed"][place]))


def _compare_unit(plan: Plan, item: tuple[_Large, list[_Second]]) -> dict[str, Array]:
    scene, seconds = item
    samples = scene.samples._replace(points=np.load(scene.file, mmap_mode="r"))
    reader = plan.source.reader(scene.row)
    return join_measures([measure(reader, samples, one.firsts, one.row, one.camera) for one in seconds])._asdict()


def sample_views(reader: ViewReader, rows: Rows, pixels: int, seed: int) -> list[View]:
    """Sample views of one scene, as all of its overlaps are measured."""
    keys = random.fold(_key(seed, _PIXELS), rows.astype(np.uint64)).tolist()
    return [reader.sample(row, pixels, key) for row, key in zip(rows.tolist(), keys, strict=True)]


def _key(seed: int, purpose: int) -> int:
    """A key for each purpose, that rows are folded into."""
    return random.fold_integers(random.stream_key(seed, STREAM), purpose)


def _join(views: list[View]) -> Samples:
    starts = np.cumsum([0, *(len(view.points) for view in views)])
    centres = np.stack([view.camera.centre for view in views])
    return Samples(np.concatenate([view.points for view in views]), starts, centres)
