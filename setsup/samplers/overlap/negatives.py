"""Views that certainly do not overlap.

They are of different scenes, or in both directions an overlap of 0 was measured or the frustums do not meet. A pair
that was not tried, or whose overlap is unknown, is not certain.
"""

import numpy as np

from setsup.arrays import Bools, Bytes, Reals, Rows
from setsup.checks import check_memory
from setsup.errors import SamplerError
from setsup.samplers.groups.within import Keys, distinct
from setsup.samplers.overlap.graph import OverlapGraph
from setsup.samplers.overlap.table import TRACKS, OverlapTable
from setsup.samplers.spelling import spell_name

__all__ = ["Negatives", "find_negatives"]

_ROWS = 512  # views packed together
_BLOCK = 1 << 22  # pairs of a set and a view looked at together


class Negatives:
    """Views that certainly overlap none of a set.

    `rows` (rows of the dataset,) bool: those that are drawn at all, None for all.

    Attributes
    ----------
    count : int
        Number of them for each set.
    possible : (views,) bool
        Views that are drawn at all.

    """

    def __init__(self, table: OverlapTable, graph: OverlapGraph, rows: Bools | None, count: int) -> None:
        self.graph, self.count = graph, count
        allowed = np.ones(len(graph.rows), dtype=bool) if rows is None else rows[graph.rows]
        self.possible = allowed
        self._allowed = np.flatnonzero(allowed)
        self._begins = np.searchsorted(self._allowed, graph.scenes)
        self._apart, self._starts = _apart_in_scenes(table, graph, allowed)

    @property
    def exist(self) -> bool:
        """Whether some view has a negative."""
        scenes = np.unique(self.graph.scene_of(np.flatnonzero(np.diff(self.graph.starts))))
        return bool(self._outside(scenes).any() or self._apart.any())

    def _outside(self, scenes: Rows) -> Rows:
        """Number of the views of other scenes."""
        return np.asarray(len(self._allowed) - self._begins[scenes + 1] + self._begins[scenes])

    def _inside(self, members: Rows) -> tuple[Rows, Rows]:
        """Negatives of the scenes of sets (sets, views): the numbers of the sets, and the views, ascending in each."""
        scenes = self.graph.scene_of(members[:, 0])
        first = self.graph.scenes[scenes]
        widths = -(-(self.graph.scenes[scenes + 1] - first) // 8)
        column = np.arange(int(widths.max(initial=0)))
        apart = np.full((len(members), len(column)), 255, dtype=np.uint8)
        for member in members.T:
            start = self._starts[scenes] + (member - first) * widths
            apart &= self._apart[np.minimum(start[:, None] + column, len(self._apart) - 1)]
        apart[column >= widths[:, None]] = 0
        owners, places = np.nonzero(np.unpackbits(apart, axis=1))
        return owners, places + first[owners]

    def draw(self, keys: Keys, members: Rows) -> tuple[Rows, Bools]:
        """Places of negatives (sets, count), uniform without repeats, and which of them there are.

        Where a set has fewer, these are all of them, and the rest is its first member.
        """
        drawn = np.empty((len(members), self.count), dtype=np.int64)
        there = np.ones(drawn.shape, dtype=bool)
        for some in self._blocks(members):
            owners, views = self._inside(members[some])
            scenes = self.graph.scene_of(members[some, 0])
            inside = np.bincount(owners, minlength=len(some))
            sizes = inside + self._outside(scenes)
            position = np.broadcast_to(np.arange(self.count), (len(some), self.count)).copy()
            enough = np.flatnonzero(sizes >= self.count)
            if len(enough):
                position[enough] = distinct(keys.part(some[enough]), sizes[enough], self.count)
            there[some] = position < sizes[:, None]
            start = np.cumsum(inside) - inside
            outside = position - inside[:, None]  # ranks among the views of other scenes
            outside += np.where(outside >= self._begins[scenes, None], np.diff(self._begins)[scenes, None], 0)
            is_inside = position < inside[:, None]
            chosen = np.broadcast_to(members[some, :1], position.shape).copy()
            chosen[is_inside] = views[(start[:, None] + position)[is_inside]]
            far = there[some] & ~is_inside
            chosen[far] = self._allowed[outside[far]]
            drawn[some] = chosen
        return drawn, there

    def chances(self, members: Rows, chance: Reals) -> Reals:
        """Chance of each view to be a negative, (views,) float64, given sets and their chances."""
        found = np.zeros(len(self.graph.rows))
        others = np.zeros(len(self.graph.scenes) - 1)  # to each view of other scenes
        for some in self._blocks(members):
            owners, views = self._inside(members[some])
            scenes = self.graph.scene_of(members[some, 0])
            sizes = np.bincount(owners, minlength=len(some)) + self._outside(scenes)
            each = chance[some] * np.minimum(self.count / np.maximum(sizes, 1), 1.0)
            np.add.at(found, views, each[owners])
            np.add.at(others, scenes, each)
        found[self._allowed] += (others.sum() - others)[self.graph.scene_of(self._allowed)]
        return found

    def _blocks(self, members: Rows) -> list[Rows]:
        """Sets to look at together."""
        step = max(1, _BLOCK // int(np.diff(self.graph.scenes).max(initial=1)))
        return [np.arange(start, min(start + step, len(members))) for start in range(0, len(members), step)]


def find_negatives(table: OverlapTable, graph: OverlapGraph, rows: Bools | None, count: int) -> Negatives | None:
    """Where so many negatives come from, None where none are drawn; SamplerError where no view is certain."""
    if not count:
        return None
    if table.source == TRACKS:
        raise SamplerError(
            f"{spell_name('negatives')} must certainly not overlap, but tracks do not show all that two views share; "
            f"measure the overlaps from scenes or depth, or leave out {spell_name('negatives')}"
        )
    negatives = Negatives(table, graph, rows, count)
    if not negatives.exist:
        raise SamplerError(
            "no two views certainly do not overlap: all are of one scene, and no overlap is 0 in both directions; "
            f"measure more scenes, or leave out {spell_name('negatives')}"
        )
    return negatives


def _apart_in_scenes(table: OverlapTable, graph: OverlapGraph, allowed: Bools) -> tuple[Bytes, Rows]:
    """Bits of the views that certainly do not overlap each view, scene after scene, and where each scene begins."""
    order = np.argsort(graph.rows, kind="stable")
    nothing = np.flatnonzero(np.asarray(table.overlap) == 0)
    one, two = (order[np.searchsorted(graph.rows, ends[nothing], sorter=order)] for ends in (table.first, table.second))
    ascending = np.argsort(one, kind="stable")
    one, two = one[ascending], two[ascending]
    of_scene = np.searchsorted(one, graph.scenes)
    largest = int(np.diff(graph.scenes).max(initial=0))
    what = f"{spell_name('negatives')} of a scene of {largest:,} views"
    check_memory(
        largest**2, what, "the views of a scene, for example with rows= of setsup.correspondence.overlap", SamplerError
    )
    bits = [np.zeros(0, dtype=np.uint8)]
    for scene, (start, stop) in enumerate(zip(graph.scenes[:-1].tolist(), graph.scenes[1:].tolist(), strict=True)):
        views = stop - start
        begin, end = table.excluded_starts[scene : scene + 2].tolist()
        apart = np.zeros((views, views), dtype=bool)
        if end > begin:
            apart = np.unpackbits(table.excluded[begin:end])[: views * views].reshape(views, views).view(bool)
        some = slice(of_scene[scene], of_scene[scene + 1])
        apart[one[some] - start, two[some] - start] = True
        for first in range(0, views, _ROWS):
            rows = slice(first, first + _ROWS)
            bits.append(np.packbits(apart[rows] & apart[:, rows].T & allowed[start:stop], axis=1).reshape(-1))
    sizes = np.diff(graph.scenes)
    return np.concatenate(bits), np.cumsum(np.append(0, sizes * -(-sizes // 8)))
