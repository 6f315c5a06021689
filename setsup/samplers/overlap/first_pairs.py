"""The first pair of a set of views: uniform over all pairs, over scenes or over bins of what was measured."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from setsup.arrays import Array, Bools, Floats, Reals, Rows, Words
from setsup.random import below_few
from setsup.samplers.groups.within import pick_by_weight, share_ends
from setsup.samplers.overlap.bands import Band
from setsup.samplers.overlap.graph import OverlapGraph

__all__ = ["ChoosePairs", "FirstPairs", "bins_of", "choose_first_pairs"]

ChoosePairs = Literal["pairs", "scenes", "overlap", "angle"]
"""What is uniform first: pairs, scenes, or bins of the overlap or of the angle."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstPairs:
    """Pairs in groups: a group is uniform, then a pair of it is uniform or drawn by weight.

    Attributes
    ----------
    pairs : (pairs,) int
        Numbers of the pairs, group after group.
    starts : (groups + 1,) int64
        Where each group begins; none is empty.
    ends : (pairs,) float64, optional
        Running sums of the shares that pairs have in their groups, which add up to 1 in each; None without weights.

    """

    pairs: Array
    starts: Rows
    ends: Reals | None = None

    def draw(self, group_bits: Words, pair_bits: Words) -> Rows:
        """Numbers of pairs, from two words each."""
        groups = len(self.starts) - 1
        group = below_few(group_bits, groups)
        start = self.starts[group]
        sizes = self.starts[group + 1] - start
        if self.ends is None:
            rank = below_few(pair_bits, sizes)
        else:
            rank = pick_by_weight(pair_bits, self.ends, start, sizes)
        return np.asarray(self.pairs[start + rank], dtype=np.int64)

    @property
    def chance(self) -> Reals:
        """Chance of each of the pairs, in their order."""
        sizes = np.diff(self.starts)
        if self.ends is None:
            return np.repeat(1 / (len(sizes) * sizes), sizes)
        return np.diff(self.ends, prepend=0.0) / len(sizes)


def choose_first_pairs(graph: OverlapGraph, drawable: Bools, choose: ChoosePairs, bins: Rows) -> FirstPairs:
    """Pairs that may come first, in groups.

    `drawable` (pairs,) bool; `bins` (pairs,) int, of the overlap or the angle.
    """
    pairs = np.flatnonzero(drawable)
    if choose == "pairs":
        starts = np.array([0, len(pairs)])
    else:
        group = graph.scene_of(graph.pairs[pairs] // len(graph.rows)) if choose == "scenes" else bins[pairs]
        order = np.argsort(group, kind="stable")
        pairs = pairs[order]
        starts = np.append(np.flatnonzero(np.diff(group[order], prepend=-1)), len(pairs))
    if len(graph.pairs) <= np.iinfo(np.int32).max:
        pairs = pairs.astype(np.int32)
    return FirstPairs(pairs, starts, _shares(graph, pairs, starts))


def _shares(graph: OverlapGraph, pairs: Array, starts: Rows) -> Reals | None:
    """Running sums of the shares of pairs in their groups, by the products of the weights of their views."""
    if graph.weights is None or not len(pairs):
        return None
    mantissa, exponent = np.frexp(graph.weights[graph.views(pairs)])
    powers = exponent.sum(axis=1)
    # as powers of the largest of the group, so that no product underflows where all weights of a group are small
    powers -= np.repeat(np.maximum.reduceat(powers, starts[:-1]), np.diff(starts))
    return share_ends(np.ldexp(mantissa.prod(axis=1), powers), starts[:-1], np.diff(starts))[1]


def bins_of(values: Floats, band: Band, bins: int) -> Rows:
    """Bins of values in a band, (values,) int64 from 0: of equal width, half-open, the last one closed."""
    # rounded as the values are, so that a share of 0.3 lies in the bin that begins with 0.3
    edges = np.linspace(*band, bins + 1).astype(np.float32)
    return np.minimum(np.searchsorted(edges, values, side="right") - 1, bins - 1)
