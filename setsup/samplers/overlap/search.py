"""Whether a pair of views is the beginning of a set: a search that goes back where no view may follow, and is bounded.

Views are tried in the order of their places, depth first. Sets of views are the bits of integers.
"""

from collections.abc import Callable

import numpy as np

from setsup.arrays import Bools, Rows
from setsup.samplers.overlap.graph import OverlapGraph

__all__ = ["NODES", "find_sets", "pairs_with_sets"]

NODES = 10_000
"""Views that one search adds to its sets."""

_BLOCK = 1 << 14  # pairs as lists
_MEMORY = 1 << 26  # bytes of the partners of views that are kept as bits


class _Scene:
    """Partners of the views of one scene, as the bits of integers by the places within it."""

    def __init__(self, graph: OverlapGraph, start: int, stop: int) -> None:
        self.graph, self.start, self.stop = graph, start, stop
        self._most = max(_MEMORY // ((stop - start) // 8 + 64), 64)
        self._known: dict[int, int] = {}

    def partners(self, view: int) -> int:
        """Partners of a view."""
        found = self._known.get(view)
        if found is None:
            if len(self._known) >= self._most:
                self._known.clear()
            whole, graph = self.start + view, self.graph
            bits = np.zeros(self.stop - self.start, dtype=np.uint8)
            pairs = graph.pairs[graph.starts[whole] : graph.starts[whole + 1]]
            bits[pairs - whole * len(graph.rows) - self.start] = 1
            found = int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
            self._known[view] = found
        return found


def find_sets(graph: OverlapGraph, first: Rows, clique: bool, size: int) -> Rows:
    """The chains or cliques that the search finds for first pairs (n, 2) that have one: (n, size) places."""
    sets = np.empty((len(first), size), dtype=np.int64)
    scenes = graph.scenes[graph.scene_of(first[:, 0])[:, None] + np.arange(2)]
    for number, ((one, two), (start, stop)) in enumerate(zip(first.tolist(), scenes.tolist(), strict=True)):
        found = _search(_Scene(graph, start, stop).partners, one - start, two - start, size, clique)
        if found is not None:  # as it is where the first pair has a set
            sets[number] = np.array(found) + start
    return sets


def pairs_with_sets(graph: OverlapGraph, form: str, size: int) -> Bools:
    """Pairs for which the search finds a set of a form, (pairs,) bool; stars need none."""
    if size == 2:
        return np.ones(len(graph.pairs), dtype=bool)
    if form == "star":
        degrees = np.diff(graph.starts)
        return np.repeat(degrees >= size - 1, degrees)
    clique = form == "clique"
    found = np.zeros(len(graph.pairs), dtype=bool)
    begins = graph.starts[graph.scenes]
    for number in np.flatnonzero(np.diff(begins)).tolist():
        start, stop = graph.scenes[number : number + 2].tolist()
        if stop - start < size:
            continue
        pairs = np.arange(begins[number], begins[number + 1])
        ends = graph.views(pairs) - start
        if clique:  # both orders of a pair have the same cliques
            pairs, ends = pairs[ends[:, 0] < ends[:, 1]], ends[ends[:, 0] < ends[:, 1]]
        partners = _Scene(graph, start, stop).partners
        for begin in range(0, len(pairs), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            found[pairs[block]] = [
                _search(partners, first, second, size, clique) is not None for first, second in ends[block].tolist()
            ]
        if clique:
            found[graph.find(ends[:, 1] + start, ends[:, 0] + start)] = found[pairs]
    return found


def _search(partners: Callable[[int], int], first: int, second: int, size: int, clique: bool) -> list[int] | None:
    """The chain or clique that begins with two views; None where there is none, or the search ends before."""
    path, nodes = [first, second], 0
    used = 1 << first | 1 << second
    left = [partners(second) & (partners(first) if clique else ~used)]
    checked = clique  # whether enough views are reached, which only chains need
    while left:
        free = left[-1]
        if free.bit_count() < (size - len(path) if clique else 1):  # too few are left
            if not checked and _reached(partners, first, second).bit_count() < size - 1:
                return None
            checked = True
            left.pop()
            used ^= 1 << path.pop()
            continue
        lowest = free & -free
        view = lowest.bit_length() - 1
        path.append(view)
        if len(path) == size:
            return path
        nodes += 1
        if nodes == NODES:
            return None
        used |= lowest
        left[-1] = free ^ lowest  # what holds this view has been tried once the search comes back
        left.append(partners(view) & (left[-1] if clique else ~used))
    return None


def _reached(partners: Callable[[int], int], first: int, second: int) -> int:
    """Views that chains from the second reach without the first, itself included."""
    seen = new = 1 << second
    while new:
        lowest = new & -new
        new ^= lowest
        fresh = partners(lowest.bit_length() - 1) & ~seen & ~(1 << first)
        seen |= fresh
        new |= fresh
    return seen
