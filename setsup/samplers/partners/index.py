"""Partners among any rows, counted by inclusion and exclusion.

The partners of a row for a subset S of factors are equal to it outside S and different in every factor of S. Among the
rows that are equal to it outside S, those that agree in T ⊆ S as well are a group of the factors outside S ∖ T, so

    partners(S) = Σ_{T ⊆ S} (−1)^|T| · rows of the group outside S ∖ T,

for all subsets at once a Möbius transform of the sizes of groups. The same sum over rows up to a cell, which each group
has in the order of cells, is the number of partners up to it; so the partner of a given rank is found by bisection.
Steps within a radius are enumerated in draws: each leads to groups in which the factor has another level. Where all
cells are counted, those of the factor with the most steps are windows of groups in a line.

With weights, draws count the units of rows in place of rows, so that a rank is a point of a row's weight.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.checks import check_memory
from setsup.errors import SamplerError
from setsup.factors.counting import number_cells
from setsup.random import randint_below
from setsup.samplers.groups.units import last_before
from setsup.samplers.partners.cells import Cells
from setsup.samplers.partners.windows import Windows
from setsup.samplers.spelling import spell, spell_name

__all__ = ["IndexPartners"]

_GROUPINGS = 4096  # partitions of the cells that are kept
_TERMS = 4096  # groups that the partners of one row are counted by
_BLOCK = 1 << 22  # numbers counted at a time


class IndexPartners:
    """Pairs of rows that differ in given factors; see :class:`ProductPartners` for the attributes."""

    def __init__(self, cells: Cells, subsets: Bools, must_differ: bool) -> None:
        self._cells, self._must_differ = cells, must_differ
        self._load: Rows = np.asarray(cells.groups.sizes) if cells.units is None else cells.units.totals
        near = np.array([axis.radius is not None for axis in cells.axes])
        self._near = np.flatnonzero(near & subsets.any(axis=0))
        masks = [_mask(subset) for subset in subsets]
        rough = _mask(near)
        free = _free_sets(masks, rough, must_differ)
        self._place = {mask: place for place, mask in enumerate(free)}
        self._plain = np.array([place for place, mask in enumerate(free) if not mask & rough], dtype=np.int64)
        self._equal = np.array([[not mask >> axis & 1 for axis in range(len(near))] for mask in free])
        self._build()
        self._terms = [self._terms_of(mask, rough) for mask in masks]
        self._many = np.array([len(lists) for lists, _, _ in self._terms])
        self._outside = np.array([self._place[mask] for mask in masks])
        self._count(masks, rough)

    def _build(self) -> None:
        """Groups of every set of free factors: for each, its cells in order, as one sorted array of numbers."""
        cells, count, lists = self._cells, len(self._cells), len(self._equal)
        sizes = np.asarray(cells.groups.sizes)
        unit = cells.units is None and bool((sizes == 1).all())
        need = lists * count * ((32 if unit else 48) + (40 if len(self._near) else 0))
        what = f"the groups of {count:,} combinations of levels by {lists:,} lists of factors"
        check_memory(need, what, "k or among", SamplerError)
        radix = [axis.size for axis in cells.axes]
        self._weights = [math.prod(radix[place + 1 :]) for place in range(len(radix))]
        self._span = math.prod(radix)
        whole = self._span * lists < 2**62
        if len(self._near) and not whole:
            names = ", ".join(cells.axes[place].name for place in self._near)
            raise SamplerError(f"radius of {names} needs fewer than 2**62 combinations of levels; leave out factors")
        self._sorted = np.empty(lists * count, dtype=np.int64)
        self._number = np.empty((lists, count), dtype=np.int32 if lists * count < 2**31 else np.int64)
        ends = None if unit else np.zeros(lists * count + 1, dtype=np.int64)
        totals, known, first = [], [], 0
        for place, equal in enumerate(self._equal):
            columns = list(itertools.compress(zip(cells.columns, self._weights, radix, strict=True), equal))
            if whole:
                key = sum((column * weight for column, weight, _ in columns), np.zeros(count, dtype=np.int64))
            else:
                key = number_cells([column for column, _, _ in columns], [size for _, _, size in columns])[0]
            order = np.argsort(key, kind="stable")
            ordered = key[order]
            starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            number = np.repeat(np.arange(first, first + len(starts)), np.diff(starts, append=count))
            self._number[place, order] = number
            self._sorted[place * count : (place + 1) * count] = number * count + order
            if ends is not None:
                ends[place * count + 1 : (place + 1) * count + 1] = self._load[order]
            totals.append(np.add.reduceat(sizes[order], starts))
            if len(self._near):
                known.append(ordered[starts] + place * self._span)
            first += len(starts)
        self._ends = None if ends is None else np.cumsum(ends)  # units may wrap around, which their sums undo
        self._totals = np.concatenate(totals)
        self._known = np.concatenate(known) if known else None

    def _terms_of(self, mask: int, rough: int) -> tuple[Rows, Rows, Rows]:
        """Groups by which partners are counted: lists (terms,), signs (terms,), and steps (terms, near factors)."""
        axes = self._cells.axes
        away = [axes[place].steps(self._must_differ) if mask >> int(place) & 1 else [0] for place in self._near]
        inner = mask & ~rough
        equal = list(_submasks(inner)) if self._must_differ else [0]
        lists = np.array([self._place[inner & ~also] for also in equal], dtype=np.int64)
        signs = np.array([-1 if also.bit_count() % 2 else 1 for also in equal], dtype=np.int64)
        moves = list(itertools.product(*away))
        if len(moves) * len(equal) > _TERMS:
            names = ", ".join(axis.name for place, axis in enumerate(axes) if mask >> place & 1)
            raise SamplerError(
                f"partners that differ in {names} within the radius are counted by {len(moves) * len(equal):,} groups, "
                f"more than {_TERMS:,}; lower radius, or name fewer factors in it"
            )
        steps = np.array(moves, dtype=np.int64).reshape(len(moves), len(self._near))
        return np.tile(lists, len(moves)), np.tile(signs, len(moves)), np.repeat(steps, len(equal), axis=0)

    def _numbers(self, lists: Array, cells: Array, steps: Array) -> tuple[Rows, Bools | None]:
        """Groups of cells, steps away, by their lists; and which there are (None: all)."""
        if self._known is None or not steps.any():
            return np.asarray(self._number[lists, cells], dtype=np.int64), None
        moved = dict(zip(self._near.tolist(), np.moveaxis(steps, -1, 0), strict=True))
        key, there = self._keys(lists, cells, moved)
        number = np.minimum(np.searchsorted(self._known, key), len(self._known) - 1)
        return number, there & (self._known[number] == key)

    def _keys(
        self, lists: Array, cells: Array, moves: Mapping[int, Array | int], without: int | None = None
    ) -> tuple[Rows, Bools]:
        """Keys of cells, some steps away, by their lists, without one factor; and which there can be."""
        key: Array = np.asarray(lists * self._span)
        there: Bools = np.ones((), dtype=bool)
        for place, (axis, column) in enumerate(zip(self._cells.axes, self._cells.columns, strict=True)):
            if place == without:
                continue
            codes = column[cells]
            if place in moves:
                codes, here = axis.move(codes, moves[place])
                there = there & here
            key = key + np.where(self._equal[lists, place], codes * self._weights[place], 0)
        return key, there

    def _windows(self, place: int) -> Windows:
        """Groups of all lists in the order of the other factors, then of one."""
        if place not in self._lines:
            known: Array = np.zeros(0, dtype=np.int64) if self._known is None else self._known
            self._lines[place] = Windows.of(self._cells.axes[place], self._weights[place], known, self._totals)
        return self._lines[place]

    def _count(self, masks: Sequence[int], rough: int) -> None:
        """Rows that have a partner, by subset: their cells, and how many rows these have up to each."""
        sizes = np.asarray(self._cells.groups.sizes)
        kind = np.int32 if len(sizes) < 2**31 else np.int64
        self._lines: dict[int, Windows] = {}
        found: list[list[Array]] = [[] for _ in masks]
        pairs = np.zeros(len(masks))
        seen = np.zeros(len(sizes), dtype=bool)
        stretch = max(_BLOCK // max(len(self._plain), 1), 1)
        for start in range(0, len(sizes), stretch):
            cells = np.arange(start, min(start + stretch, len(sizes)))
            by_near: dict[int, Rows] = {}
            for number, mask in enumerate(masks):
                if mask & rough not in by_near:
                    by_near[mask & rough] = self._partners(cells, mask & rough)
                partners = by_near[mask & rough][np.searchsorted(self._plain, self._place[mask & ~rough])]
                able = np.flatnonzero(partners > (0 if self._must_differ else sizes[cells]))
                pairs[number] += float((partners[able].astype(np.float64) * sizes[cells[able]]).sum())
                found[number].append(cells[able].astype(kind))
                seen[cells[able]] = True
        self.log_pairs: Reals = np.log(pairs, out=np.full(len(pairs), -np.inf), where=pairs > 0)
        self.paired = seen
        self.lonely = int(sizes[~seen].sum())
        of_subset = [np.concatenate(parts) if parts else np.zeros(0, kind) for parts in found]
        self.anchors: Rows = np.array([int(sizes[those].sum()) for those in of_subset], dtype=np.int64)
        # all cells stand first, for the subsets of which all are able
        few = [those for those in of_subset if len(those) < len(sizes)]
        self._anchor_cells = np.concatenate([np.arange(len(sizes), dtype=kind), *few])
        lengths = np.array([len(those) % len(sizes) for those in of_subset])
        starts = np.where(lengths > 0, len(sizes) + np.cumsum(lengths) - lengths, 0)
        load, ends = self._load, None
        if self._ends is not None:
            ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), load, *(load[those] for those in few)]))
        self._anchor_ends = ends
        self._anchor_start, self._anchor_count = starts, np.array([len(those) for those in of_subset])
        self._anchor_load: Rows = np.array([load[those].sum() for those in of_subset], dtype=np.int64)
        self._first: Rows = starts if ends is None else ends[starts]
        del self._totals, self._load, self._lines

    def _partners(self, cells: Rows, near: int) -> Rows:
        """Partners of cells for each plain list together with these near factors: (plain lists, cells) int64."""
        axes, shape = self._cells.axes, (len(self._plain), len(cells))
        places = [int(place) for place in self._near if near >> int(place) & 1]
        if not places:
            total = self._totals[self._numbers(self._plain[:, None], cells[None], np.zeros(len(self._near), int))[0]]
        else:
            total = np.zeros(shape, dtype=np.int64)
            wide = max(places, key=lambda place: len(axes[place].steps(self._must_differ)))
            windows = self._windows(wide)
            others = [place for place in places if place != wide]
            codes = self._cells.columns[wide][cells]
            for steps in itertools.product(*(axes[place].steps(self._must_differ) for place in others)):
                moves = dict(zip(others, steps, strict=True))
                key, there = self._keys(self._plain[:, None], cells[None], moves, without=wide)
                total += np.where(there, windows.count(key, codes, self._must_differ), 0)
        if self._must_differ:
            for larger, smaller in self._lattice():
                total[larger] -= total[smaller]
        return total

    def _lattice(self) -> Iterator[tuple[Rows, Rows]]:
        """For each factor the plain lists in which it is free, and the same ones in which it is not."""
        place_of = {int(place): here for here, place in enumerate(self._plain)}
        for axis in range(len(self._cells.axes)):
            larger = [mask for mask, place in self._place.items() if mask >> axis & 1 and place in place_of]
            if larger:
                yield (
                    np.array([place_of[self._place[mask]] for mask in larger]),
                    np.array([place_of[self._place[mask ^ 1 << axis]] for mask in larger]),
                )

    def draw(self, which: Rows, first: Words, second: Words) -> tuple[Rows, Rows, Rows]:
        """Anchors and partners (pairs,) by the numbers of their subsets and a word each; and cells of the anchors."""
        rank, ends = self._first[which] + randint_below(first, self._anchor_load[which]), self._anchor_ends
        if ends is None:
            place = rank
        elif self._cells.units is None:
            place = np.searchsorted(ends, rank, side="right") - 1
        else:  # sums that may wrap around are in no order
            start = self._anchor_start[which]
            place = last_before(ends, start, start + self._anchor_count[which], rank - ends[start])
        cell = self._anchor_cells[place].astype(np.int64)
        anchor = self._row(cell, np.zeros_like(cell) if ends is None else rank - ends[place])
        partner = np.empty_like(anchor)
        many = self._many[which]
        for count in np.unique(many):
            those = np.flatnonzero(many == count)
            partner[those] = self._find(which[those], cell[those], second[those])
        return anchor, partner, cell

    def _find(self, which: Rows, cell: Rows, word: Words) -> Rows:
        """Partners of cells for subsets with equally many terms."""
        subsets, local = np.unique(which, return_inverse=True)
        lists, signs, steps = (np.stack(part)[local] for part in zip(*(self._terms[s] for s in subsets), strict=True))
        number, there = self._numbers(lists, cell[:, None], steps)
        count, terms = len(self._cells), np.flatnonzero(there) if there is not None else np.arange(number.size)
        # in the order of their groups, in which a search finds its numbers near those of the search before
        terms = terms[np.argsort(number.reshape(-1)[terms], kind="stable")]
        base, signs, pair = number.reshape(-1)[terms] * count, signs.reshape(-1)[terms], terms // number.shape[1]
        start, stop = np.searchsorted(self._sorted, base), np.searchsorted(self._sorted, base + count)
        # partners in cells before the range that is searched, in the terms that have no cell in it
        settled = -self._sum(signs, start, pair, len(cell))
        rank = randint_below(word, settled + self._sum(signs, stop, pair, len(cell)))
        head = self._number[self._outside[which], cell].astype(np.int64) * count
        low, high = np.searchsorted(self._sorted, head), np.searchsorted(self._sorted, head + count) - 1
        # the first cell of the group up to which, and with which, there are more partners than the rank
        while np.count_nonzero(low < high):
            middle = (low + high) // 2
            place = np.searchsorted(self._sorted, base + (self._sorted[middle] - head + 1)[pair])
            more = settled + self._sum(signs, place, pair, len(cell)) > rank
            high = np.where(more, middle, high)
            low = np.where(more, low, np.minimum(middle + 1, high))
            start, stop = np.where(more[pair], start, place), np.where(more[pair], place, stop)
            here = start < stop
            if not here.all():
                gone = ~here
                settled += self._sum(signs[gone], start[gone], pair[gone], len(cell))
                base, signs, pair, start, stop = base[here], signs[here], pair[here], start[here], stop[here]
        found = self._sorted[low] - head
        return self._row(found, rank - settled - self._sum(signs, start, pair, len(cell)))

    def _row(self, cells: Rows, ranks: Rows) -> Rows:
        """Rows of cells by their ranks in them."""
        units = self._cells.units
        return self._cells.groups.take(cells, ranks) if units is None else units.take(cells, cells + 1, ranks)

    def _sum(self, signs: Rows, places: Rows, pair: Rows, pairs: int) -> Rows:
        """Rows before places in the sorted numbers, added up with signs for each pair; exact below 2⁵³; or units."""
        if self._ends is not None and self._cells.units is not None:
            found = np.zeros(pairs, dtype=np.int64)
            np.add.at(found, pair, signs * self._ends[places])
            return found
        rows = signs * (places if self._ends is None else self._ends[places])
        return np.bincount(pair, rows, pairs).astype(np.int64)


def _mask(subset: Bools) -> int:
    return sum(1 << place for place, here in enumerate(subset.tolist()) if here)


def _submasks(mask: int) -> Iterator[int]:
    """All submasks, the mask itself first."""
    found = mask
    while True:
        yield found
        if not found:
            return
        found = (found - 1) & mask


def _free_sets(masks: Sequence[int], rough: int, must_differ: bool) -> list[int]:
    """Sets of factors whose complements rows are grouped by, ascending."""
    found: set[int] = set()
    for mask in masks:
        inner = mask & ~rough
        most = inner.bit_count()
        if must_differ and 1 << most > _GROUPINGS:
            raise SamplerError(
                f"a pair that differs in {most} factors is found by {1 << most:,} lists of factors, more than "
                f"{_GROUPINGS:,}; lower {spell_name('k')}, name fewer factors in {spell_name('among')}, or pass "
                f"{spell(must_differ=False)}"
            )
        found |= {mask, *(_submasks(inner) if must_differ else [inner])}
        if len(found) > _GROUPINGS:
            raise SamplerError(
                f"pairs are found by more than {_GROUPINGS:,} lists of factors; lower {spell_name('k')}, or name fewer "
                f"factors in {spell_name('among')}"
            )
    return sorted(found)
