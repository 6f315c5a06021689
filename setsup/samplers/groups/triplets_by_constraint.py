"""Triplets by constraint: the positive and the negative are rows that compare with the anchor as is asked."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Words
from setsup.errors import SamplerError
from setsup.factors.constraint import read_constraint
from setsup.factors.counting import with_outer
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.samplers.coverage import NOT_COUNTED, ReachedGroups, Reason
from setsup.samplers.groups.anchors import Anchors
from setsup.samplers.groups.group_distribution import Chooser
from setsup.samplers.groups.within import Keys
from setsup.samplers.report import AnchorEntry
from setsup.samplers.spelling import spell_name

__all__ = ["ConstraintTriplets"]


class ConstraintTriplets:
    """Positive and negative by constraints with the anchor."""

    def __init__(
        self,
        table: FactorTable,
        positive: str,
        negative: str,
        choose: str,
        rows: Bools | None,
        weights: Reals | None,
    ) -> None:
        texts = {"positive": positive, "negative": negative}
        constraints = {role: read_constraint(text, table, role) for role, text in texts.items()}
        self.shared = with_outer(table, constraints["positive"].equal)
        self._table, self._rows = table, rows
        self._anchors = Anchors(table, self.shared, constraints, dict.fromkeys(texts, 1), rows, weights)
        if not len(self._anchors):
            raise SamplerError(
                f"no row has both a positive and a negative: {self._anchors.lost()}; relax {spell_name('positive')} or "
                f"{spell_name('negative')}"
            )
        self._chooser = Chooser(self._anchors.keys, self._anchors.totals, choose)

    def draw(self, bits: Words, keys: Keys) -> Rows:
        """Rows (steps, triplets, 3), from four words each."""
        cells, anchors = self._anchors.draw(self._chooser.pick(bits[..., 0]), bits[..., 1])
        others = [
            self._anchors.pick(role, cells, anchors, bits[..., word])
            for word, role in enumerate(("positive", "negative"), 2)
        ]
        return np.stack([anchors, *others], axis=-1)

    def reach(self, triplets: int) -> tuple[ReachedGroups, Callable[[Rows], Reals], list[str], bool]:
        """Groups, whether rows are in a triplet at all, notes, and that nothing is approximated."""
        groups, reached = group_by(self._table, self.shared, self._rows), self._anchors.reached()
        notes = [NOT_COUNTED]
        if reached is None:
            whole = np.full(len(groups), np.nan)
            return ReachedGroups(", ".join(self.shared) or "nothing", (), groups, whole), _unknown, notes, False
        of_rows = groups.of_rows()[reached]
        drawn = np.bincount(of_rows[of_rows >= 0], minlength=len(groups)) > 0
        text = "none of its rows is an anchor, a positive or a negative"
        reason = Reason(text, "relax positive= or negative=")
        unreached = groups.rows - int(groups.sizes[~drawn].sum()) - int((of_rows >= 0).sum())
        chance = np.where(drawn, np.nan, 0.0)
        triplet_groups = ReachedGroups.drawn_or_never(groups, chance, drawn, reason, unreached)
        return triplet_groups, lambda rows: np.where(reached[rows], np.nan, 0.0), notes, False

    def entry(self) -> tuple[AnchorEntry, list[str]]:
        """Entry of a report, and no notes."""
        return replace(self._anchors.entry(), unreachable=self._anchors.never()), []


def _unknown(rows: Rows) -> Reals:
    """Chance of rows where there are too many to look at each."""
    return np.full(len(rows), np.nan)
