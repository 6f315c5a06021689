"""A list of held factors, and the groups of rows that share them: what one set is drawn from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_array
from setsup.errors import SamplerError, brief
from setsup.factors.factor import Factor
from setsup.factors.groups import group_by
from setsup.factors.table import FactorTable
from setsup.samplers.groups.choose import Chooser
from setsup.samplers.groups.members import SMALL, EvenMembers, GroupMembers, WeightedMembers, drawable_groups
from setsup.samplers.groups.window import WindowMembers

__all__ = ["GroupSampler", "held_factors", "named_factors", "row_weights"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]


class GroupSampler:
    """The groups of one list of held factors, how one is chosen and how rows are drawn from it.

    `weights` (rows,) float64, optional.
    """

    def __init__(
        self,
        table: FactorTable,
        names: Sequence[str],
        need: int,
        *,
        choose: str,
        small: str,
        tolerance: Mapping[str, float],
        weights: npt.NDArray[np.float64] | None = None,
        where: str | None = None,
        shared: bool = False,
        policies: Sequence[str] = SMALL,
    ) -> None:
        near = [name for name in names if table[name].continuous and name in tolerance]
        if len(near) > 1:
            raise SamplerError(
                f"at most one continuous factor can be held with a tolerance, not {' and '.join(near)}: bin "
                f"the others, as in table.binned({near[1]!r}, width), and hold {near[1] + '_bin'!r}"
            )
        if near and weights is not None:
            raise SamplerError(f"weights and the tolerance of {near[0]!r} cannot be combined; bin {near[0]!r} instead")
        rows, unknown = _eligible(table, near, weights, where)
        self.groups = group_by(table, [name for name in names if name not in near], rows)
        self.need, self.small, self.shared = need, small, shared
        self.groups.unknown += unknown
        self.groups.excluded -= unknown
        self.near = near[0] if near else None
        self.members: GroupMembers
        if self.near is not None:
            self.members = WindowMembers(table, self.groups, self.near, tolerance[self.near], need, small)
        elif weights is not None:
            self.members = WeightedMembers(self.groups, weights)
        else:
            self.members = EvenMembers(self.groups)
        unit = f" {table[near[0]].unit}" if near and table[near[0]].unit else ""
        nearby = f" within {tolerance[near[0]]:g}{unit} of some {near[0]}" if near else ""
        self._choose = choose
        self.restrict(drawable_groups(table, self.groups, self.members.sizes, need, small, nearby, policies))

    def restrict(self, drawable: Rows) -> None:
        """Choose among these groups only, given by their numbers among all."""
        sizes: Array = self.members.totals if isinstance(self.members, WeightedMembers) else self.groups.sizes
        self.drawable, self._all = drawable, len(drawable) == len(self.groups)
        self._keys = self.groups.keys(drawable)
        self.chooser = Chooser(self._keys, sizes[drawable], self._choose)

    def codes(self, chosen: Rows) -> dict[str, Array]:
        """Held codes of chosen groups (numbers among the drawable ones), each of the shape of ``chosen``."""
        keys = self._keys[chosen]
        return {name: keys[..., place] for place, name in enumerate(self.groups.names)}

    @property
    def names(self) -> tuple[str, ...]:
        """Held factors; the one with a tolerance comes last."""
        return self.groups.names if self.near is None else (*self.groups.names, self.near)

    def describe(self) -> str:
        """Names of the held factors in words."""
        return ", ".join(self.names) or "nothing"

    def held(self, chosen: Rows, rows: Rows) -> dict[str, Array]:
        """Codes, and the anchor's value, of chosen groups (steps, sets) and the rows (steps, sets, size) drawn."""
        found = self.codes(chosen)
        if isinstance(self.members, WindowMembers):
            # sets that share one group share its anchor, which leads the first of them
            anchors = self.members.anchors(rows)
            found[self.members.name] = np.broadcast_to(anchors[:, :1], anchors.shape) if self.shared else anchors
        return found

    def number(self, chosen: Rows) -> Rows:
        """Numbers of the chosen groups among all groups."""
        return chosen if self._all else self.drawable[chosen]


def _eligible(
    table: FactorTable, near: Sequence[str], weights: npt.NDArray[np.float64] | None, where: str | None
) -> tuple[npt.NDArray[np.bool_] | None, int]:
    """Rows that may be drawn, None for all; and how many more would be, were their value within tolerance known."""
    found = None if where is None else table.mask(where)
    if weights is not None:
        found = weights > 0 if found is None else found & (weights > 0)
    before = len(table) if found is None else int(found.sum())
    for name in near:
        known = ~np.isnan(table.column(name))
        found = known if found is None else found & known
    return found, 0 if found is None else before - int(found.sum())


def named_factors(given: str | Sequence[str], option: str) -> list[str]:
    """Names of factors given as one or as a list, at least one; SamplerError otherwise."""
    names = [given] if isinstance(given, str) else list(_names(given, option))
    if not names:
        raise SamplerError(f"{option} must name at least one factor")
    return names


def held_factors(
    table: FactorTable,
    inactive: Sequence[str] | None,
    active: Sequence[str] | None,
    tolerance: Mapping[str, float],
) -> tuple[str, ...]:
    """Names that sets hold, from either side of the question."""
    if inactive is not None and active is not None:
        raise SamplerError("name the inactive factors or the active ones, not both")
    if inactive is not None:
        return tuple(dict.fromkeys(table[name].name for name in _names(inactive, "inactive")))
    if active is None:
        held = ", ".join(factor.name for factor in table.factors if _may_hold(factor, tolerance))
        raise SamplerError(f"say which factors sets hold, inactive=[…], or which vary, active=[…]; there are {held}")
    free = {table[name].name for name in _names(active, "active")}
    chosen = tuple(f.name for f in table.factors if f.name not in free and _may_hold(f, tolerance))
    for name in chosen:
        outer = table[name].within
        while outer is not None:
            if outer in free:
                raise SamplerError(
                    f"{outer!r} cannot be active while {name!r}, which is nested in it, is held: add {name!r} to active"
                )
            outer = table[outer].within
    return chosen


def _names(given: Sequence[str], option: str) -> Sequence[str]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise SamplerError(f"{option} must be a list of factor names, not {brief(given)}")
    return given


def _may_hold(factor: Factor, tolerance: Mapping[str, float]) -> bool:
    """Whether naming only the active factors holds this one."""
    if factor.role != "variation" or factor.name in ("id", "path"):
        return False
    return not factor.continuous or factor.name in tolerance


def row_weights(table: FactorTable, weights: str | npt.ArrayLike | None) -> npt.NDArray[np.float64] | None:
    """Weight of every row, from a factor of numbers or an array; NaN (unknown) counts as 0."""
    if weights is None:
        return None
    if isinstance(weights, str):
        factor = table[weights]
        if factor.levels is not None and any(isinstance(level, str) for level in factor.levels):
            raise SamplerError(f"weights={weights!r} names a factor of texts; weights are numbers")
        found = np.array(table.values(weights), dtype=np.float64)
    else:
        found = check_array(weights, "weights, one number a row,", SamplerError, np.float64)
    if found.shape != (len(table),):
        raise SamplerError(f"weights must be one number a row, ({len(table)},), not {found.shape}")
    found = np.nan_to_num(found, nan=0.0, posinf=np.inf)
    if not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise SamplerError("weights must be finite numbers from 0 on, and not all 0")
    with np.errstate(over="ignore"):
        if not np.isfinite(found.sum()):
            raise SamplerError("weights are so large that their sum is no finite number: divide all by the largest")
    return found
