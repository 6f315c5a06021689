"""The groups of rows that share a list of inactive factors: what one set is drawn from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows
from setsup.errors import SamplerError, advice, spell_name
from setsup.factors.constraint import Constraint
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.samplers.draw import by_factor
from setsup.samplers.groups.anchored import AnchoredMembers
from setsup.samplers.groups.group_distribution import Chooser
from setsup.samplers.groups.members import SMALL, EvenMembers, GroupMembers, WeightedMembers, drawable_groups
from setsup.samplers.groups.window import WindowMembers
from setsup.samplers.groups.within import Keys

__all__ = ["GroupSampler"]


class GroupSampler:
    """Groups of one list of inactive factors, how one is chosen and how rows are drawn from it.

    `rows` (rows of the table,) bool: those that may be drawn, None for all; `weights` (rows of the table,) float64,
    positive in these; `members`: what rows of a set satisfy with an anchor, which is its first row.
    """

    def __init__(
        self,
        table: FactorTable,
        names: Sequence[str],
        need: int,
        rows: Bools | None,
        weights: Reals | None,
        *,
        choose: str,
        on_small_group: str,
        tolerance: Mapping[str, float] | None = None,
        shared: bool = False,
        members: Constraint | None = None,
        policies: Sequence[str] = SMALL,
    ) -> None:
        tolerance = tolerance or {}
        near = [name for name in names if table[name].continuous and name in tolerance]
        if len(near) > 1:
            how = advice(
                f"bin the others, as in table.binned({near[1]!r}, width), and fix {near[1] + '_bin'!r}",
                f"declare the others as ordinal, --kinds {near[1]}=ordinal",
            )
            raise SamplerError(
                f"a set can fix only one continuous factor within a tolerance, not {' and '.join(near)}; {how}"
            )
        if near and weights is not None:
            raise SamplerError(
                f"{spell_name('weights')} and the tolerance of {near[0]!r} cannot be combined; bin {near[0]!r} instead"
            )
        rows, unknown = _keep_known(table, near, rows)
        self.groups = group_by(table, [name for name in names if name not in near], rows)
        self.need, self.on_small_group, self.shared = need, on_small_group, shared
        self.groups.unknown += unknown
        self.groups.excluded -= unknown
        self.near = near[0] if near else None
        self.members: GroupMembers
        if members is not None:
            equal = tuple(dict.fromkeys((*names, *members.equal)))
            constraint = replace(members, equal=equal)
            self.members = AnchoredMembers(table, self.groups, constraint, need, on_small_group, rows, weights)
        elif self.near is not None:
            self.members = WindowMembers(table, self.groups, self.near, tolerance[self.near], need, on_small_group)
        elif weights is not None:
            self.members = WeightedMembers(self.groups, weights)
        else:
            self.members = EvenMembers(self.groups)
        unit = f" {table[near[0]].unit}" if near and table[near[0]].unit else ""
        nearby = f" within {tolerance[near[0]]:g}{unit} of some {near[0]}" if near else ""
        self._choose = choose
        self.restrict(drawable_groups(table, self.groups, self.members.sizes, need, on_small_group, nearby, policies))

    def restrict(self, drawable: Rows) -> None:
        """Choose among these groups only, given by their numbers among all."""
        self.drawable, self._all = drawable, len(drawable) == len(self.groups)
        self.keys = self.groups.keys(drawable)
        self.chooser = Chooser(self.keys, self.members.totals[drawable], self._choose)

    def codes(self, chosen: Rows) -> dict[str, Array]:
        """Codes that chosen groups share (numbers among the drawable ones), each of the shape of ``chosen``."""
        return by_factor(self.groups.names, self.keys[chosen])

    @property
    def names(self) -> tuple[str, ...]:
        """Inactive factors; the one with a tolerance comes last."""
        return self.groups.names if self.near is None else (*self.groups.names, self.near)

    def describe(self) -> str:
        """Names of the inactive factors, or ``"nothing"``."""
        return ", ".join(self.names) or "nothing"

    def inactive(self, chosen: Rows, rows: Rows) -> dict[str, Array]:
        """Codes, and the anchor's value, of chosen groups (steps, sets) and the rows (steps, sets, size) drawn."""
        codes = self.codes(chosen)
        if isinstance(self.members, WindowMembers):
            # sets that share one group share its anchor, which leads the first of them
            anchors = self.members.anchors(rows)
            codes[self.members.name] = np.broadcast_to(anchors[:, :1], anchors.shape) if self.shared else anchors
        return codes

    def draw(self, keys: Keys, chosen: Rows, size: int) -> tuple[Rows, Bools | None]:
        """Rows (..., size) of chosen groups, and which of them count (None: all)."""
        rows, mask = self.members.draw(keys, self.number(chosen).reshape(-1), size, self.on_small_group)
        shape = (*chosen.shape, size)
        return rows.reshape(shape), None if mask is None else mask.reshape(shape)

    def number(self, chosen: Rows) -> Rows:
        """Numbers of the chosen groups among all groups."""
        return chosen if self._all else self.drawable[chosen]


def _keep_known(table: FactorTable, near: Sequence[str], rows: Bools | None) -> tuple[Bools | None, int]:
    """Rows whose value within tolerance is known, None for all; and how many of the given ones are left out."""
    mask = rows
    for name in near:
        known = ~np.isnan(table.column(name))
        mask = known if mask is None else mask & known
    if mask is None or not near:
        return mask, 0
    return mask, (len(table) if rows is None else int(rows.sum())) - int(mask.sum())
