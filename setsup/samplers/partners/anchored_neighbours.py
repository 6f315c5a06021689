"""Anchors that have a valid row for each role in a neighbour table, and one such row for each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows, Words
from setsup.errors import SamplerError
from setsup.factors.constraint import Constraint
from setsup.factors.counting import with_outer
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import below_few
from setsup.samplers.coverage import ReachedGroups, Reason
from setsup.samplers.groups.reach_chances import at_least_one
from setsup.samplers.groups.within import pick_by_weight
from setsup.samplers.partners.constrained_neighbours import AllRows, Nearest, chance_of_rows
from setsup.samplers.report import AnchorEntry, Partners, anchors_lost
from setsup.samplers.row_arguments import both
from setsup.samplers.spelling import spell_name

__all__ = ["AnchoredNeighbours", "TableAnchors"]


class AnchoredNeighbours:
    """What anchors of all neighbour tables have in common.

    `constraints` by role; `rows` (rows,) bool: those that are drawn at all; `weights` (rows,) float64, positive in
    these.

    Attributes
    ----------
    shared : tuple of str
        Factors that an anchor and the row of the first role share.

    """

    def __init__(
        self, table: FactorTable, constraints: Mapping[str, Constraint], rows: Bools | None, weights: Reals | None
    ) -> None:
        self.table, self.constraints, self.rows, self.weights = table, constraints, rows, weights
        self.shared = with_outer(table, next(iter(constraints.values())).equal)
        self._anywhere: dict[str, AllRows] = {}  # the same for all tables

    def of_table(self, neighbours: Array, ranks: Mapping[str, tuple[int, int | None]], step: int) -> "TableAnchors":
        """Anchors of the table of a step; a role without ranks is drawn from all rows."""
        partners = {
            role: self._nearest(neighbours, role, *ranks[role], step) if role in ranks else self._all_rows(role)
            for role in self.constraints
        }
        feasible = np.all([partner.counts > 0 for partner in partners.values()], axis=0)
        if not feasible.any():
            raise SamplerError(
                f"no row has a valid {' and '.join(partners)} in the neighbour table of step {step}: "
                f"{anchors_lost(*self.lost(partners))}; compute a table with more neighbours, or widen "
                f"{spell_name('ranks')}"
            )
        ends = None
        if self.weights is not None:
            exponent = np.frexp(self.weights.max())[1]  # the smallest of all numbers have few digits
            ends = np.cumsum(np.ldexp(self.weights[feasible], -exponent))
        return TableAnchors(self, partners, np.flatnonzero(feasible), ends)

    def _nearest(self, neighbours: Array, role: str, first: int, last: int | None, step: int) -> Nearest:
        if (last or first) > neighbours.shape[1]:
            raise SamplerError(
                f"ranks {first} to {last} of the {role} exceed the {neighbours.shape[1]} neighbours in the table of "
                f"step {step}; lower {spell_name('ranks')}, or compute a table with more neighbours"
            )
        ranked = neighbours[:, first - 1 : last]
        return Nearest(self.table, self.constraints[role], ranked, self.rows, self.weights)

    def _all_rows(self, role: str) -> AllRows:
        if role not in self._anywhere:
            self._anywhere[role] = AllRows(self.table, self.constraints[role], self.rows, self.weights)
        return self._anywhere[role]

    def lost(self, partners: Mapping[str, Nearest | AllRows]) -> tuple[dict[str, int], int, int]:
        """Rows that are no anchors: without a row for each role, with an unknown value, and left out."""
        mask = self.rows
        for constraint in self.constraints.values():
            mask = both(mask, constraint.anchors)
        left = np.ones(len(self.table), dtype=bool) if mask is None else mask.copy()
        excluded = len(left) - int(left.sum())
        for name in with_outer(
            self.table, [name for constraint in self.constraints.values() for name in constraint.names]
        ):
            left &= self.table.codes(name) >= 0
        unknown = len(left) - excluded - int(left.sum())
        return (
            {role: int((left & (partner.counts == 0)).sum()) for role, partner in partners.items()},
            unknown,
            excluded,
        )


@dataclass(frozen=True, eq=False, slots=True)
class TableAnchors:
    """Anchors of one neighbour table.

    `partners`: the rows that go with each row, by role; `anchors` (anchors,) int64: rows that have one for each role;
    `ends` (anchors,) float64: running sums of their weights, None without weights.
    """

    common: AnchoredNeighbours
    partners: Mapping[str, Nearest | AllRows]
    anchors: Rows
    ends: Reals | None

    def draw(self, bits: Words) -> Rows:
        """An anchor and a row for each role (..., 1 + roles), from a word each."""
        if self.ends is None:
            anchor = self.anchors[below_few(bits[..., 0], len(self.anchors))]
        else:
            anchor = self.anchors[pick_by_weight(bits[..., 0], self.ends, 0, len(self.anchors))]
        others = [partner.take(anchor, bits[..., index]) for index, partner in enumerate(self.partners.values(), 1)]
        return np.stack([anchor, *others], axis=-1)

    def reach(self, sets: int) -> tuple[ReachedGroups, Reals]:
        """Groups by the shared factors, and the chance of each row to be in a set; NaN where it is not counted."""
        common = self.common
        of_anchor = np.zeros(len(common.table))
        of_anchor[self.anchors] = 1.0 if common.weights is None else common.weights[self.anchors]
        of_anchor /= of_anchor.sum()
        chance = chance_of_rows(list(self.partners.values()), of_anchor)
        groups = group_by(common.table, common.shared, common.rows)
        of_rows = groups.of_rows()
        known = of_rows >= 0
        drawn = np.bincount(of_rows[known & (chance != 0)], minlength=len(groups)) > 0
        share = np.bincount(of_rows[self.anchors], of_anchor[self.anchors], minlength=len(groups)).astype(np.float64)
        of_step = at_least_one(share, sets) if len(self.partners) == 1 else np.where(drawn, np.nan, 0.0)
        reason = Reason(f"none of its rows has a valid {' and '.join(self.partners)}, or is one", "widen ranks=")
        unreached = int((known & (chance == 0) & drawn[of_rows]).sum())
        return ReachedGroups.drawn_or_never(groups, of_step, drawn, reason, unreached), chance

    def entry(self) -> AnchorEntry:
        """Entry of a report."""
        drawn = np.zeros(len(self.common.table), dtype=bool)
        drawn[self.anchors] = True
        is_anchor, combinations, described = drawn.copy(), np.ones(len(self.anchors)), {}
        for role, partner in self.partners.items():
            counts, text = partner.counts[self.anchors], self.common.constraints[role].text
            words = f"among the nearest rows, {text}" if isinstance(partner, Nearest) else text
            described[role] = Partners(words, int(counts.min()), int(counts.max()), float(counts.mean()))
            combinations *= counts
            drawn |= partner.drawn(is_anchor)
        lacking, unknown, excluded = self.common.lost(self.partners)
        never, log10 = len(drawn) - int(drawn.sum()), math.log10(float(combinations.sum()))
        return AnchorEntry("nothing", len(self.anchors), 1, described, lacking, unknown, excluded, never, log10)
