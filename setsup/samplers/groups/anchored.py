"""A set of an anchor and of rows that satisfy a constraint with it."""

import numpy as np

from setsup.arrays import Bools, Rows
from setsup.errors import SamplerError
from setsup.factors.constraint import Constraint
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.random import below
from setsup.samplers.groups.anchors import Anchors
from setsup.samplers.groups.members import fill
from setsup.samplers.groups.within import ANCHOR, ROWS, Keys, distinct
from setsup.samplers.report import AnchorEntry

__all__ = ["AnchoredMembers"]

_ROLE = "members"


class AnchoredMembers:
    """Rows that go with an anchor of the group; the anchor takes slot 0.

    `constraint` with the group's factors among those that are equal; `where` (rows,) bool.

    Attributes
    ----------
    anchors : (groups,) int64
        Anchors of each group.

    """

    def __init__(
        self, table: FactorTable, groups: Groups, constraint: Constraint, need: int, small: str, where: Bools | None
    ) -> None:
        others = need - 1 if small in ("error", "drop") else 1
        self._anchors = Anchors(table, groups.names, {_ROLE: constraint}, {_ROLE: others}, where)
        self._number = self._anchors.number(groups.keys())
        self.anchors = np.append(self._anchors.counts, 0)[self._number]
        self.sizes = np.where(self.anchors > 0, need, 0)
        lonely = np.flatnonzero(self.anchors == 0)
        if len(lonely) == len(groups) or (len(lonely) and small == "error"):
            named = "; ".join(groups.describe(table, int(group)) for group in lonely[:5])
            drop = ", or pass small='drop' to leave them out" if len(lonely) < len(groups) else ""
            raise SamplerError(
                f"{len(lonely):,} of {len(groups):,} groups of {', '.join(groups.names)} have no anchor with {others} "
                f"other row{'s' * (others > 1)} that satisfy members={constraint.text!r} (first: {named}); lower size, "
                f"ask for less of members{drop}"
            )

    def crowded(self, slots: int) -> bool:
        """Never known: anchors differ in how many rows go with them."""
        return False

    def draw(self, keys: Keys, groups: Rows, slots: int, small: str) -> tuple[Rows, Bools | None]:
        """Rows (draws, slots) with an anchor of the given groups, and which slots count."""
        cells, anchors = self._anchors.draw(self._number[groups], keys.bits(ANCHOR, 1)[:, 0])
        sizes = self._anchors.others(_ROLE, cells, anchors)
        ranks, counts = fill(
            sizes,
            slots - 1,
            small,
            keys,
            lambda part, draws: distinct(part, sizes[draws], slots - 1),
            lambda part, draws: below(part.bits(ROWS, slots - 1), sizes[draws][:, None]),
        )
        rows = np.repeat(anchors[:, None], slots, axis=1)
        rows[:, 1:] = self._anchors.take(_ROLE, cells[:, None], anchors[:, None], ranks)
        if counts is None:
            return rows, None
        mask = np.ones(rows.shape, dtype=bool)
        mask[:, 1:] = counts
        return np.where(mask, rows, rows[:, :1]), mask  # padding repeats the set's first member

    def unreachable(self, groups: Groups) -> int:
        """Rows of the groups that are neither an anchor nor go with any; 0 where there are too many to look at."""
        never = self._anchors.never()
        return 0 if never is None else never - groups.unknown - groups.excluded

    def reached(self) -> Bools | None:
        """Rows that are an anchor or go with one, (rows of the table,) bool; None for too many to look at."""
        return self._anchors.reached()

    def entry(self) -> AnchorEntry:
        """Entry of a report."""
        return self._anchors.entry()
