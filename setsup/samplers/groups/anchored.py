"""A set of an anchor and of rows that satisfy a constraint with it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.errors import SamplerError
from setsup.factors.constraint import Constraint
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.samplers.groups.anchors import Anchors
from setsup.samplers.groups.members import fill, fill_evenly
from setsup.samplers.groups.within import ANCHOR, ROWS, Keys, order_by_weight, successive
from setsup.samplers.report import AnchorEntry
from setsup.samplers.spelling import spell, spell_name

__all__ = ["AnchoredMembers"]

_ROLE = "members"


class AnchoredMembers:
    """Rows that go with an anchor of the group; the anchor takes slot 0.

    `constraint` with the group's factors among those that are equal; `where` (rows,) bool; `weights` (rows,) float64,
    positive in these rows.

    Attributes
    ----------
    totals : (groups,) int64 or float64
        Anchors of each group, or their weights together.
    sizes : (groups,) int64
        Rows of a set, where the group has an anchor.

    """

    def __init__(
        self,
        table: FactorTable,
        groups: Groups,
        constraint: Constraint,
        need: int,
        on_small_group: str,
        where: Bools | None,
        weights: Reals | None = None,
    ) -> None:
        others = need - 1 if on_small_group in ("error", "drop") else 1
        self._anchors = Anchors(table, groups.names, {_ROLE: constraint}, {_ROLE: others}, where, weights)
        self._groups, self._weights = groups, weights
        self._number = self._anchors.number(groups.keys())
        self.totals: Array = np.append(self._anchors.totals, 0)[self._number]
        self.sizes = np.where(self.totals > 0, need, 0)
        lonely = np.flatnonzero(self.totals == 0)
        if len(lonely) == len(groups) or (len(lonely) and on_small_group == "error"):
            examples = "; ".join(groups.describe(table, int(group)) for group in lonely[:5])
            drop = f", or pass {spell(on_small_group='drop')} to leave them out" if len(lonely) < len(groups) else ""
            raise SamplerError(
                f"{len(lonely):,} of {len(groups):,} groups of {', '.join(groups.names)} have no anchor with {others} "
                f"other row{'s' * (others > 1)} that satisfy {spell(members=constraint.text)} (first: {examples}); "
                f"lower {spell_name('size')}, relax {spell_name('members')}{drop}"
            )

    def crowded(self, slots: int) -> bool:
        """Never known: anchors differ in how many rows go with them."""
        return False

    def draw(self, keys: Keys, groups: Rows, slots: int, on_small_group: str) -> tuple[Rows, Bools | None]:
        """Rows (draws, slots) with an anchor of the given groups, and which slots count."""
        cells, anchors = self._anchors.draw(self._number[groups], keys.bits(ANCHOR, 1)[:, 0])
        draw_others = self._draw_evenly if self._weights is None else self._draw_by_weight
        others, counts = draw_others(keys, cells, anchors, slots - 1, on_small_group)
        rows = np.concatenate([anchors[:, None], others], axis=1)
        if counts is None:
            return rows, None
        mask = np.ones(rows.shape, dtype=bool)
        mask[:, 1:] = counts
        return np.where(mask, rows, rows[:, :1]), mask  # padding repeats the set's first member

    def _draw_evenly(
        self, keys: Keys, cells: Rows, anchors: Rows, slots: int, on_small_group: str
    ) -> tuple[Rows, Bools | None]:
        sizes = self._anchors.others(_ROLE, cells, anchors)
        ranks, counts = fill_evenly(sizes, slots, on_small_group, keys)
        return self._anchors.take(_ROLE, cells[:, None], anchors[:, None], ranks), counts

    def _draw_by_weight(
        self, keys: Keys, cells: Rows, anchors: Rows, slots: int, on_small_group: str
    ) -> tuple[Rows, Bools | None]:
        others = _Others(self._anchors, cells, anchors)
        weights: Reals = np.zeros(0) if self._weights is None else self._weights

        def draw_distinct(part: Keys, draws: Any) -> Rows:
            subset = others.subset(draws)
            return successive(
                part, slots, lambda bits, of: subset.subset(of).pick(bits), lambda draw: subset.listed(draw, weights)
            )

        def draw_in_order(part: Keys, draws: Rows) -> Rows:
            subset = others.subset(draws)
            rows = subset.rows()
            start = np.arange(len(rows)) * rows.shape[1]
            positions = order_by_weight(part.order(), weights[rows].reshape(-1), start, subset.counts(), slots)
            return np.take_along_axis(rows, positions, axis=1)

        return fill(
            others.counts(),
            slots,
            on_small_group,
            keys,
            draw_distinct,
            lambda part, draws: others.subset(draws).pick(part.bits(ROWS, slots)),
            draw_in_order,
        )

    def unreachable(self, drawable: Rows) -> int:
        """Known rows that are neither an anchor nor go with any; 0 where there are too many to look at."""
        never = self._anchors.never()
        return 0 if never is None else never - self._groups.unknown - self._groups.excluded

    def reached(self) -> Bools | None:
        """Rows that are an anchor or go with one, (rows of the table,) bool; None for too many to look at."""
        return self._anchors.reached()

    def entry(self) -> AnchorEntry:
        """Entry of a report."""
        return self._anchors.entry()


@dataclass(frozen=True, slots=True)
class _Others:
    """Rows that go with drawn anchors, given with their cells (draws,)."""

    drawn: Anchors
    cells: Rows
    anchors: Rows

    def subset(self, draws: Any) -> "_Others":
        """Those of some of the draws."""
        return _Others(self.drawn, self.cells[draws], self.anchors[draws])

    def counts(self) -> Rows:
        """How many there are, (draws,)."""
        return self.drawn.others(_ROLE, self.cells, self.anchors)

    def pick(self, bits: Words) -> Rows:
        """Rows by weight, with repeats, of the shape (draws, slots) of the words."""
        return self.drawn.pick(_ROLE, self.cells[:, None], self.anchors[:, None], bits)

    def rows(self) -> Rows:
        """All rows (draws, most); those of which there are fewer end in repeats of the last."""
        counts = self.counts()
        ranks = np.minimum(np.arange(int(counts.max())), counts[:, None] - 1)
        return self.drawn.take(_ROLE, self.cells[:, None], self.anchors[:, None], ranks)

    def listed(self, draw: int, weights: Reals) -> tuple[Rows, Reals]:
        """All rows of one draw, ascending, and their weights."""
        rows = np.sort(self.subset(slice(draw, draw + 1)).rows()[0])
        return rows, weights[rows]
