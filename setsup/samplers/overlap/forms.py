"""Sets of views that overlap: the first pair, then one view after the other, as their form says.

In a chain each view is a partner of the one before, in a star of the first, in a clique of all others. The next view is
uniform over those that may follow and are not in the set, or drawn by weight. Where none may follow, the attempt is
over.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.random import below_few
from setsup.samplers.groups.within import pick_by_weight, share_ends
from setsup.samplers.overlap.first_pairs import FirstPairs
from setsup.samplers.overlap.graph import OverlapGraph
from setsup.samplers.overlap.search import find_sets

__all__ = ["ATTEMPTS", "Form", "SetDistribution", "draw_sets", "enumerate_sets", "try_sets"]

Form = Literal["chain", "star", "clique"]

ATTEMPTS = 64

_BLOCK = 1 << 20  # partners looked at together


def draw_sets(
    graph: OverlapGraph, first: FirstPairs, form: Form, size: int, count: int, words: Callable[[Rows, int], Words]
) -> Rows:
    """Places of the views of so many sets, (count, size) int64.

    `words` gives the key words of sets (n,) at an attempt: (n, size) uint64.
    """
    members = np.empty((count, size), dtype=np.int64)
    left = np.arange(count)
    for attempt in range(ATTEMPTS):
        tried, whole = try_sets(graph, first, form, words(left, attempt)[:, :size])
        members[left[whole]] = tried[whole]
        left, tried = left[~whole], tried[~whole]
        if not len(left):
            return members
    members[left] = find_sets(graph, tried[:, :2], form == "clique", size)
    return members


def try_sets(graph: OverlapGraph, first: FirstPairs, form: Form, bits: Words) -> tuple[Rows, Bools]:
    """One attempt for each set: places of views (sets, size), and which sets are whole, (sets,) bool.

    The words of a set are `bits` (sets, size): two for the first pair, one for each view after it.
    """
    sets, size = bits.shape
    members = np.empty((sets, size), dtype=np.int64)
    members[:, :2] = graph.views(first.draw(bits[:, 0], bits[:, 1]))
    whole = np.ones(sets, dtype=bool)
    for position in range(2, size):
        some = np.flatnonzero(whole)
        chosen = _next(graph, members[some, :position], form, bits[some, position])
        members[some, position] = chosen
        whole[some] = chosen >= 0
    return members, whole


def _next(graph: OverlapGraph, members: Rows, form: Form, bits: Words) -> Rows:
    """Next view of sets (sets, views), (sets,) int64; −1 where none may follow."""
    if form != "clique" and graph.weights is None:
        return _next_partner(graph, members, members[:, 0 if form == "star" else -1], bits)
    chosen = np.full(len(members), -1)
    ends = np.cumsum(graph.degree(members[:, 0]))
    for block in np.split(np.arange(len(members)), np.flatnonzero(np.diff(ends // _BLOCK)) + 1):
        owners, views = following(graph, members[block], form)
        sizes = np.bincount(owners, minlength=len(block))
        some = np.flatnonzero(sizes)
        start, sizes, own = (np.cumsum(sizes) - sizes)[some], sizes[some], bits[block[some]]
        if graph.weights is None:
            position = below_few(own, sizes)
        else:
            position = pick_by_weight(own, share_ends(graph.weights[views], start, sizes)[1], start, sizes)
        chosen[block[some]] = views[start + position]
    return chosen


def _next_partner(graph: OverlapGraph, members: Rows, base: Rows, bits: Words) -> Rows:
    """A uniform partner of one of the views that is not in the set, without a list of them; −1 where there is none."""
    taken = graph.find(base[:, None], members)
    found = taken >= 0
    free = graph.degree(base) - found.sum(axis=1)
    # ranks among the free partners become ranks among all: each taken one that is not after shifts them by one
    ranks = below_few(bits, np.maximum(free, 1))
    taken = np.where(found, taken - graph.starts[base, None], np.iinfo(np.int64).max)
    taken.sort(axis=1)
    for column in taken.T:
        ranks += ranks >= column
    chosen = np.full(len(base), -1)
    some = np.flatnonzero(free)
    chosen[some] = graph.partners(base[some], ranks[some])
    return chosen


def following(graph: OverlapGraph, members: Rows, form: Form) -> tuple[Rows, Rows]:
    """All views that may follow in sets (sets, views): the numbers of the sets, and the views, ascending in each."""
    sets = np.arange(len(members))
    if form == "clique":
        base = members[sets, np.argmin(graph.degree(members), axis=1)]
    else:
        base = members[:, 0 if form == "star" else -1]
    sizes = graph.degree(base)
    owners = np.repeat(sets, sizes)
    views = graph.partners(base[owners], np.arange(len(owners)) - (np.cumsum(sizes) - sizes)[owners])
    for member in members.T:
        if form == "clique":
            keep = (member == base)[owners] | (graph.find(member[owners], views) >= 0)
        else:
            keep = member[owners] != views
        owners, views = owners[keep], views[keep]
    return owners, views


class SetDistribution(NamedTuple):
    """All sets that one attempt can draw.

    Attributes
    ----------
    members : (sets, size) int64
        Places of their views, in order.
    chance : (sets,) float64
        Chance of each.
    failed : (first pairs,) float64
        Chance of a first pair together with the failure of the attempt.

    """

    members: Rows
    chance: Reals
    failed: Reals


def enumerate_sets(graph: OverlapGraph, first: FirstPairs, form: Form, size: int, most: int) -> SetDistribution | None:
    """The distribution of one attempt; None where it has more than `most` sets, or as many views that may follow."""
    members, chance = graph.views(first.pairs), first.chance
    failed, origin = np.zeros(len(chance)), np.arange(len(chance))
    for _ in range(2, size):
        if len(members) > most or _to_look_at(graph, members, form) > most:
            return None
        owners, views = following(graph, members, form)
        weights: Array = np.ones(len(views)) if graph.weights is None else graph.weights[views]
        totals = np.bincount(owners, weights, minlength=len(members))
        np.add.at(failed, origin[totals == 0], chance[totals == 0])
        members = np.concatenate([members[owners], views[:, None]], axis=1)
        chance, origin = chance[owners] * (weights / totals[owners]), origin[owners]
    return SetDistribution(members, chance, failed)


def _to_look_at(graph: OverlapGraph, members: Rows, form: Form) -> int:
    degrees = graph.degree(members)
    looked = degrees.min(axis=1) if form == "clique" else degrees[:, 0 if form == "star" else -1]
    return int(looked.sum())
