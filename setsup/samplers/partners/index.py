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
from collections.abc import Iterator, Sequence

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.errors import SamplerError
from setsup.random import randint_below
from setsup.samplers.groups.units import last_before
from setsup.samplers.partners.cells import Cells
from setsup.samplers.partners.groupings import Groupings
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
        near = np.array([axis.radius is not None for axis in cells.axes])
        self._near = np.flatnonzero(near & subsets.any(axis=0))
        masks = [_mask(subset) for subset in subsets]
        radius_mask = _mask(near)
        free = _free_sets(masks, radius_mask, must_differ)
        self._list_number = {mask: number for number, mask in enumerate(free)}
        self._plain = np.array([number for number, mask in enumerate(free) if not mask & radius_mask], dtype=np.int64)
        equal = np.array([[not mask >> axis & 1 for axis in range(len(near))] for mask in free])
        self._groupings = Groupings(cells, equal, self._near)
        self._terms = [self._terms_of(mask, radius_mask) for mask in masks]
        self._many = np.array([len(lists) for lists, _, _ in self._terms])
        self._outside = np.array([self._list_number[mask] for mask in masks])
        self._count(masks, radius_mask)
        del self._groupings.totals  # what draws do without

    def _terms_of(self, mask: int, radius_mask: int) -> tuple[Rows, Rows, Rows]:
        """Groups by which partners are counted: lists (terms,), signs (terms,), and steps (terms, near factors)."""
        axes = self._cells.axes
        away = [axes[index].steps(self._must_differ) if mask >> int(index) & 1 else [0] for index in self._near]
        inner = mask & ~radius_mask
        equal = list(_submasks(inner)) if self._must_differ else [0]
        lists = np.array([self._list_number[inner & ~also] for also in equal], dtype=np.int64)
        signs = np.array([-1 if also.bit_count() % 2 else 1 for also in equal], dtype=np.int64)
        moves = list(itertools.product(*away))
        if len(moves) * len(equal) > _TERMS:
            names = ", ".join(axis.name for index, axis in enumerate(axes) if mask >> index & 1)
            raise SamplerError(
                f"counting partners that differ in {names} within the radius requires {len(moves) * len(equal):,} "
                f"groups, more than the limit of {_TERMS:,}; lower {spell_name('radius')}, or limit it to fewer "
                "factors"
            )
        steps = np.array(moves, dtype=np.int64).reshape(len(moves), len(self._near))
        return np.tile(lists, len(moves)), np.tile(signs, len(moves)), np.repeat(steps, len(equal), axis=0)

    def _count(self, masks: Sequence[int], radius_mask: int) -> None:
        """Rows that have a partner, by subset: their cells, and how many rows these have up to each."""
        sizes = np.asarray(self._cells.groups.sizes)
        dtype = np.int32 if len(sizes) < 2**31 else np.int64
        windows: dict[int, Windows] = {}
        cells_of_subset: list[list[Array]] = [[] for _ in masks]
        pairs = np.zeros(len(masks))
        is_paired = np.zeros(len(sizes), dtype=bool)
        stretch = max(_BLOCK // max(len(self._plain), 1), 1)
        for start in range(0, len(sizes), stretch):
            cells = np.arange(start, min(start + stretch, len(sizes)))
            by_near: dict[int, Rows] = {}
            for number, mask in enumerate(masks):
                if mask & radius_mask not in by_near:
                    by_near[mask & radius_mask] = self._partners(cells, mask & radius_mask, windows)
                partners = by_near[mask & radius_mask][
                    np.searchsorted(self._plain, self._list_number[mask & ~radius_mask])
                ]
                paired_cells = np.flatnonzero(partners > (0 if self._must_differ else sizes[cells]))
                pairs[number] += float((partners[paired_cells].astype(np.float64) * sizes[cells[paired_cells]]).sum())
                cells_of_subset[number].append(cells[paired_cells].astype(dtype))
                is_paired[cells[paired_cells]] = True
        self.log_pairs: Reals = np.log(pairs, out=np.full(len(pairs), -np.inf), where=pairs > 0)
        self.paired = is_paired
        self.lonely = int(sizes[~is_paired].sum())
        of_subset = [np.concatenate(parts) if parts else np.zeros(0, dtype) for parts in cells_of_subset]
        self.anchors: Rows = np.array([int(sizes[those].sum()) for those in of_subset], dtype=np.int64)
        # all cells stand first, for the subsets of which all are able
        few = [those for those in of_subset if len(those) < len(sizes)]
        self._anchor_cells = np.concatenate([np.arange(len(sizes), dtype=dtype), *few])
        lengths = np.array([len(those) % len(sizes) for those in of_subset])
        starts = np.where(lengths > 0, len(sizes) + np.cumsum(lengths) - lengths, 0)
        load: Rows = sizes if self._cells.units is None else self._cells.units.totals
        ends = None
        if self._groupings.ends is not None:
            ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), load, *(load[those] for those in few)]))
        self._anchor_ends = ends
        self._anchor_start, self._anchor_count = starts, np.array([len(those) for those in of_subset])
        self._anchor_load: Rows = np.array([load[those].sum() for those in of_subset], dtype=np.int64)
        self._first: Rows = starts if ends is None else ends[starts]

    def _partners(self, cells: Rows, near: int, windows: dict[int, Windows]) -> Rows:
        """Partners of cells for each plain list together with these near factors: (plain lists, cells) int64."""
        axes, shape = self._cells.axes, (len(self._plain), len(cells))
        indices = [int(index) for index in self._near if near >> int(index) & 1]
        if not indices:
            total = self._groupings.totals[self._groupings.number[self._plain[:, None], cells[None]]]
        else:
            total = np.zeros(shape, dtype=np.int64)
            wide = max(indices, key=lambda index: len(axes[index].steps(self._must_differ)))
            if wide not in windows:
                windows[wide] = self._groupings.windows(wide)
            others = [index for index in indices if index != wide]
            codes = self._cells.columns[wide][cells]
            for steps in itertools.product(*(axes[index].steps(self._must_differ) for index in others)):
                moves = dict(zip(others, steps, strict=True))
                key, exists = self._groupings.keys(self._plain[:, None], cells[None], moves, without=wide)
                total += np.where(exists, windows[wide].count(key, codes, self._must_differ), 0)
        if self._must_differ:
            for larger, smaller in self._lattice():
                total[larger] -= total[smaller]
        return total

    def _lattice(self) -> Iterator[tuple[Rows, Rows]]:
        """For each factor the plain lists in which it is free, and the same ones in which it is not."""
        row_of = {int(number): row for row, number in enumerate(self._plain)}
        for axis in range(len(self._cells.axes)):
            larger = [mask for mask, number in self._list_number.items() if mask >> axis & 1 and number in row_of]
            if larger:
                yield (
                    np.array([row_of[self._list_number[mask]] for mask in larger]),
                    np.array([row_of[self._list_number[mask ^ 1 << axis]] for mask in larger]),
                )

    def draw(self, which: Rows, first: Words, second: Words) -> tuple[Rows, Rows, Rows]:
        """Anchors and partners (pairs,) by the numbers of their subsets and a word each; and cells of the anchors."""
        rank, ends = self._first[which] + randint_below(first, self._anchor_load[which]), self._anchor_ends
        if ends is None:
            position = rank
        elif self._cells.units is None:
            position = np.searchsorted(ends, rank, side="right") - 1
        else:  # sums that may wrap around are in no order
            start = self._anchor_start[which]
            position = last_before(ends, start, start + self._anchor_count[which], rank - ends[start])
        cell = self._anchor_cells[position].astype(np.int64)
        anchor = self._row(cell, np.zeros_like(cell) if ends is None else rank - ends[position])
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
        number, exists = self._groupings.find(lists, cell[:, None], steps)
        line = self._groupings.sorted
        count, terms = len(self._cells), np.flatnonzero(exists) if exists is not None else np.arange(number.size)
        # in the order of their groups, in which a search finds its numbers near those of the search before
        terms = terms[np.argsort(number.reshape(-1)[terms], kind="stable")]
        base, signs, pair = number.reshape(-1)[terms] * count, signs.reshape(-1)[terms], terms // number.shape[1]
        start, stop = np.searchsorted(line, base), np.searchsorted(line, base + count)
        # partners in cells before the range that is searched, in the terms that have no cell in it
        settled = -self._sum(signs, start, pair, len(cell))
        rank = randint_below(word, settled + self._sum(signs, stop, pair, len(cell)))
        head = self._groupings.number[self._outside[which], cell].astype(np.int64) * count
        low, high = np.searchsorted(line, head), np.searchsorted(line, head + count) - 1
        # the first cell of the group up to which, and with which, there are more partners than the rank
        while np.count_nonzero(low < high):
            middle = (low + high) // 2
            position = np.searchsorted(line, base + (line[middle] - head + 1)[pair])
            more = settled + self._sum(signs, position, pair, len(cell)) > rank
            high = np.where(more, middle, high)
            low = np.where(more, low, np.minimum(middle + 1, high))
            start, stop = np.where(more[pair], start, position), np.where(more[pair], position, stop)
            is_open = start < stop
            if not is_open.all():
                is_settled = ~is_open
                settled += self._sum(signs[is_settled], start[is_settled], pair[is_settled], len(cell))
                base, signs, pair, start, stop = (
                    base[is_open],
                    signs[is_open],
                    pair[is_open],
                    start[is_open],
                    stop[is_open],
                )
        partner = line[low] - head
        return self._row(partner, rank - settled - self._sum(signs, start, pair, len(cell)))

    def _row(self, cells: Rows, ranks: Rows) -> Rows:
        """Rows of cells by their ranks in them."""
        units = self._cells.units
        return self._cells.groups.take(cells, ranks) if units is None else units.take(cells, cells + 1, ranks)

    def _sum(self, signs: Rows, positions: Rows, pair: Rows, pairs: int) -> Rows:
        """Rows before places in the sorted numbers, added up with signs for each pair; exact below 2⁵³; or units."""
        ends = self._groupings.ends
        rows = signs * (positions if ends is None else ends[positions])
        if self._cells.units is not None:
            total = np.zeros(pairs, dtype=np.int64)
            np.add.at(total, pair, rows)
            return total
        return np.bincount(pair, rows, pairs).astype(np.int64)


def _mask(subset: Bools) -> int:
    return sum(1 << bit for bit, is_member in enumerate(subset.tolist()) if is_member)


def _submasks(mask: int) -> Iterator[int]:
    """All submasks, the mask itself first."""
    submask = mask
    while True:
        yield submask
        if not submask:
            return
        submask = (submask - 1) & mask


def _free_sets(masks: Sequence[int], radius_mask: int, must_differ: bool) -> list[int]:
    """Sets of factors whose complements rows are grouped by, ascending."""
    free: set[int] = set()
    for mask in masks:
        inner = mask & ~radius_mask
        most = inner.bit_count()
        if must_differ and 1 << most > _GROUPINGS:
            raise SamplerError(
                f"finding pairs that differ in {most} factors requires {1 << most:,} combinations of factors, more "
                f"than the limit of {_GROUPINGS:,}; lower {spell_name('k')}, list fewer factors in "
                f"{spell_name('among')}, or pass {spell(must_differ=False)}"
            )
        free |= {mask, *(_submasks(inner) if must_differ else [inner])}
        if len(free) > _GROUPINGS:
            raise SamplerError(
                f"finding pairs requires more than the limit of {_GROUPINGS:,} combinations of factors; lower "
                f"{spell_name('k')}, or list fewer factors in {spell_name('among')}"
            )
    return sorted(free)
