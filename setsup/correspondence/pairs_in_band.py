"""Pairs of views of a recipe whose overlap lies in a band: candidates are measured one after another until one does.

Candidates of a pair are all ordered pairs of different views of its group and, where the recipe draws cameras again,
all numbers of such draws. They are taken in the order of a permutation that seed and pair give, so that the first one
in the band is uniform over those that are in it. Overlaps are measured as :func:`setsup.correspondence.overlap` does,
with the same sample pixels: it finds the same values for the rows of the finished table.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from setsup import random
from setsup.arrays import Array, Floats, Rows
from setsup.correspondence.overlaps.measures import Samples, measure
from setsup.correspondence.overlaps.scenes import sample_views
from setsup.correspondence.overlaps.views import Source
from setsup.correspondence.overlaps.work import Work
from setsup.errors import LibraryError, SetsupError
from setsup.factors.table import FactorTable
from setsup.jobs.units import Unit
from setsup.samplers.overlap.bands import Band, Direction
from setsup.scenes import Camera, Recipe, Scene

__all__ = ["PairsInBand", "Search", "distance_to_band", "find_pairs", "work_settings"]

_STREAM = "BandedPairs"
_EDITION = 1  # of results of units of work; those of other editions are ignored
_FEW, _MOST = 32, 64  # pairs of a unit of work: so many at least before another scene begins, and at most
_DTYPES = {"rows": "<i8", "candidate": "<i8", "overlap": "<f4"}


class PairsInBand(NamedTuple):
    """Pairs that were found.

    Attributes
    ----------
    rows : (n, 2) int64
        Rows of the views.
    candidate : (n,) int64
        Number of the draw of the cameras; 0 where the recipe has no others.
    overlap : (n, 2) float32
        Of the first view with the second, and of the second with the first; NaN where it is unknown.

    """

    rows: Rows
    candidate: Rows
    overlap: Floats


class Search(NamedTuple):
    """What all pairs share."""

    recipe: Recipe
    views: FactorTable
    band: Band
    direction: Direction
    candidates: int
    pixels: int
    seed: int

    @property
    def factor(self) -> str | None:
        """The factor by which the recipe draws cameras again, if it does."""
        return getattr(self.recipe, "candidate_factor", None)


class _Pair(NamedTuple):
    """The number of a pair, and the rows of which two become its views."""

    number: int
    rows: Rows


class _Candidate(NamedTuple):
    """Two views, what is known of them, and how far that is from the band."""

    rows: tuple[int, int]
    candidate: int
    cameras: tuple[Camera, Camera] | None
    overlap: list[float]
    away: float


class _TwoViews(NamedTuple):
    """Two views of a scene as a dataset; even rows are the first one."""

    name: str
    shown: Scene
    cameras: tuple[Camera, Camera]

    def scene(self, row: int) -> Scene:
        return self.shown

    def camera(self, row: int) -> Camera:
        return self.cameras[row % 2]


def find_pairs(search: Search, groups: Sequence[Rows], work: Work) -> PairsInBand:
    """Choose two views for each pair, of the rows of its group."""
    pairs = [_Pair(number, rows) for number, rows in enumerate(groups)]
    units = [
        Unit(f"pair {some[0].number} and {len(some) - 1} others of its scenes", some, len(some))
        for some in _batches(search, pairs)
    ]
    parts = work.run("pairs", partial(_find_unit, search), units, _DTYPES, "choosing views by overlap", "pairs")
    order = np.array([pair.number for unit in units for pair in unit.data])
    back = np.argsort(order)
    return PairsInBand(*(np.concatenate([part[name] for part in parts])[back] for name in PairsInBand._fields))


def work_settings(search: Search, groups: Sequence[Rows]) -> dict[str, Any]:
    """All that the results of units of work depend on, for files that keep them."""
    of_pairs = np.array([rows[0] for rows in groups], "<i8")  # groups share no row
    return {
        "groups": hashlib.sha256(of_pairs.tobytes()).hexdigest(),
        "recipe": search.recipe.key,
        "views": search.views.fingerprint,
        **{name: getattr(search, name) for name in ("direction", "candidates", "pixels", "seed")},
        "band": list(search.band),
        "edition": _EDITION,
    }


def distance_to_band(overlap: Floats, band: Band, direction: Direction) -> Array:
    """How far pairs of overlaps, (..., 2), are from a band: 0 in it, inf where they are unknown."""
    low, high = np.array(band, np.float32)  # as overlaps are rounded
    away = np.maximum(np.maximum(low - overlap, overlap - high), 0).astype(np.float64)
    away = np.where(np.isnan(away), np.inf, away)
    if direction == "forward":
        return np.asarray(away[..., 0])
    return np.asarray(away.max(axis=-1) if direction == "both" else away.min(axis=-1))


def _batches(search: Search, pairs: Sequence[_Pair]) -> Iterator[list[_Pair]]:
    """Pairs of units of work, those of a scene together."""
    first = np.array([pair.rows[0] for pair in pairs])
    codes = [search.views.codes(name, first) for name in search.recipe.scene_factors]
    order = np.lexsort(codes[::-1]) if codes else np.arange(len(pairs))
    changes = np.zeros(len(pairs), bool)
    for column in codes:
        changes[1:] |= column[order[1:]] != column[order[:-1]]
    start = 0
    cuts = [0]
    for at in range(1, len(pairs)):
        if at - start >= (_FEW if changes[at] else _MOST):
            cuts.append(at)
            start = at
    for begin, end in pairwise([*cuts, len(pairs)]):
        yield [pairs[at] for at in order[begin:end].tolist()]


def _find_unit(search: Search, pairs: Sequence[_Pair]) -> dict[str, Array]:
    found = []
    scene: Scene | None = None
    of_scene: tuple[Any, ...] | None = None
    for pair in pairs:
        values = search.views.row(int(pair.rows[0]))
        key = tuple(values[name] for name in search.recipe.scene_factors)
        if key != of_scene:
            of_scene = key
            try:
                scene = search.recipe.scene(values)
            except LibraryError:
                raise
            except SetsupError:  # such as of a broken mesh; rendering these rows says so
                scene = None
        found.append(_find(search, pair, scene))
    return {
        "rows": np.array([one.rows for one in found]),
        "candidate": np.array([one.candidate for one in found]),
        "overlap": np.array([one.overlap for one in found], np.float32),
    }


def _find(search: Search, pair: _Pair, scene: Scene | None) -> _Candidate:
    """The first candidate in the band; where none of them is in it, the first of those that are nearest to it."""
    best: _Candidate | None = None
    for rows, number in _candidates(search, pair):
        one = _measure(search, pair, scene, rows, number)
        if best is None or one.away < best.away:
            best = one
        if scene is None or best.away == 0:
            break
    if best is None:
        raise SetsupError(f"pair {pair.number} has {len(pair.rows)} views; two are required")
    if best.cameras is not None and scene is not None and search.direction == "forward":
        return best._replace(overlap=[best.overlap[0], _overlap(search, pair.number, scene, best.cameras, 1)])
    return best


def _candidates(search: Search, pair: _Pair) -> Iterator[tuple[tuple[int, int], int]]:
    """Two rows and the number of a draw of cameras, in the order in which they are measured."""
    views = len(pair.rows)
    ordered = views * (views - 1)
    every = ordered * (1 if search.factor is None else search.candidates)
    key = np.uint64(random.fold_integers(random.stream_key(search.seed, _STREAM), pair.number))
    for place in random.permute(key, every, np.arange(min(search.candidates, every))).tolist():
        number, at = divmod(place, ordered)
        first, second = divmod(at, views - 1)
        second += second >= first
        yield (int(pair.rows[first]), int(pair.rows[second])), number


def _measure(search: Search, pair: _Pair, scene: Scene | None, rows: tuple[int, int], number: int) -> _Candidate:
    unknown = _Candidate(rows, number, None, [np.nan, np.nan], np.inf)
    if scene is None:
        return unknown
    again = {} if search.factor is None else {search.factor: number}
    try:
        one, two = (search.recipe.camera({**search.views.row(row), **again}, scene) for row in rows)
    except LibraryError:
        raise
    except SetsupError:  # these cameras have no place; others may have one
        return unknown
    overlap = [_overlap(search, pair.number, scene, (one, two), 0), np.nan]
    if search.direction != "forward":
        overlap[1] = _overlap(search, pair.number, scene, (one, two), 1)
    away = float(distance_to_band(np.array(overlap, np.float32), search.band, search.direction))
    return _Candidate(rows, number, (one, two), overlap, away)


def _overlap(search: Search, pair: int, scene: Scene, cameras: tuple[Camera, Camera], first: int) -> float:
    """Overlap of one of two views with the other."""
    # rows of the finished table, whose sample pixels these are
    row, other = 2 * pair + first, 2 * pair + 1 - first
    source = Source(_TwoViews(search.recipe.name, scene, cameras), "scenes", 0.0, 0.0)
    reader = source.reader(row)
    (view,) = sample_views(reader, np.array([row]), search.pixels, search.seed)
    samples = Samples(view.points, np.array([0, len(view.points)]), view.camera.centre[None])
    return float(measure(reader, samples, np.zeros(1, np.int64), other, cameras[1 - first]).overlap[0])
