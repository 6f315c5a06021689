"""Pairs of views by bands of overlap, angle and scale: a graph whose edges are the ordered pairs that are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from setsup.arrays import Bools, Floats, Reals, Rows
from setsup.errors import SamplerError
from setsup.files.mapped import check_mapped
from setsup.samplers.overlap.bands import Band, Direction, describe_bands, in_bands, say_none
from setsup.samplers.overlap.table import OverlapTable

__all__ = ["OverlapGraph", "ViewPairs", "pairs_in_bands"]


@dataclass(frozen=True, slots=True, eq=False)
class OverlapGraph:
    """Views of scenes, and ordered pairs of them; a view is known by its place.

    Attributes
    ----------
    rows : (views,) int64
        Rows of the views, scene after scene, ascending in each.
    scenes : (scenes + 1,) int64
        Places at which the views of each scene begin.
    pairs : (pairs,) int64
        first · views + second, ascending.
    starts : (views + 1,) int64
        Where the pairs of each first view begin.
    weights : (views,) float64, optional
        Relative probability of each view.

    """

    rows: Rows
    scenes: Rows
    pairs: Rows
    starts: Rows
    weights: Reals | None = None

    def degree(self, views: Rows) -> Rows:
        """Number of the partners of views."""
        return np.asarray(self.starts[views + 1] - self.starts[views])

    def views(self, pairs: Rows) -> Rows:
        """First and second view of pairs by their numbers, (..., 2) int64."""
        return np.stack(np.divmod(self.pairs[pairs], len(self.rows)), axis=-1)

    def partners(self, first: Rows, ranks: Rows) -> Rows:
        """Partners of views by their ranks, counted from 0 in the order of places; broadcast."""
        return np.asarray(self.pairs[self.starts[first] + ranks] - first * len(self.rows))

    def find(self, first: Rows, second: Rows) -> Rows:
        """Numbers of pairs, int64 of the broadcast shape; −1 for what is none."""
        pair = first * len(self.rows) + second
        number = np.searchsorted(self.pairs, pair)
        number[number == len(self.pairs)] = 0
        return np.where(self.pairs[number] == pair, number, -1)

    def scene_of(self, views: Rows) -> Rows:
        """Numbers of the scenes of views."""
        return np.searchsorted(self.scenes, views, side="right") - 1


class ViewPairs(NamedTuple):
    """Pairs in the bands.

    Attributes
    ----------
    graph : OverlapGraph
        The pairs.
    values : (pairs,) float32
        Overlap or angle of each.
    one_way, untried : int
        Where both directions must lie in the bands: pairs of which only one does, and those of them whose other
        direction was not tried.

    """

    graph: OverlapGraph
    values: Floats
    one_way: int
    untried: int


def pairs_in_bands(
    table: OverlapTable,
    bands: Mapping[str, Band],
    direction: Direction,
    measure: str,
    rows: Bools | None,
    weights: Reals | None,
) -> ViewPairs:
    """Pairs whose measures lie in all bands: that of the pair, of both directions, or of either.

    `rows` (rows of the dataset,) bool: those that are drawn at all; `weights` (rows of the dataset,) float64, positive
    in these; `measure` names that of the values. With ``either``, pairs are those of the other direction as well, and
    have the larger value of the directions that satisfy. SamplerError where there are none.
    """
    check_mapped(table.overlap)
    inside = in_bands(table, bands)
    if rows is not None:
        inside &= rows[table.first] & rows[table.second]
    number = np.flatnonzero(inside)
    views, order = len(table.views), np.argsort(table.views, kind="stable")
    first, second = (
        order[np.searchsorted(table.views, ends[number], sorter=order)] for ends in (table.first, table.second)
    )
    values = np.asarray(getattr(table, measure)[number])
    pairs, one_way, untried = first * views + second, 0, 0
    if direction == "both":
        back = table.find(table.second[number], table.first[number])
        returned = (back >= 0) & inside[back]
        alone = number[back < 0]
        one_way = int(np.count_nonzero(~returned))
        untried = len(alone) - int(table.is_disjoint(table.second[alone], table.first[alone]).sum())
        pairs, values = pairs[returned], values[returned]
    elif direction == "either":
        pairs, values = np.append(pairs, second * views + first), np.append(values, values)
    if not len(pairs):
        raise SamplerError(say_none(table, describe_bands(bands, direction), direction, untried, rows))
    if (np.diff(pairs) <= 0).any():
        ascending = np.lexsort((values, pairs))
        pairs, values = pairs[ascending], values[ascending]
        last = np.append(np.diff(pairs) > 0, True)
        pairs, values = pairs[last], values[last]
    starts = np.searchsorted(pairs, np.arange(views + 1) * views)
    of_views = None if weights is None else weights[table.views]
    graph = OverlapGraph(np.array(table.views), np.array(table.starts), pairs, starts, of_views)
    return ViewPairs(graph, values, one_way, untried)
