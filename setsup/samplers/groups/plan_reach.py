"""Chances of the groups and rows of a step whose sets are drawn by one plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from setsup.arrays import Reals, Rows
from setsup.factors.table import FactorTable
from setsup.samplers.coverage import SetReach
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.plan import StepPlan
from setsup.samplers.groups.reach_chances import at_least_one, dealt_reach, is_estimated, set_reach
from setsup.samplers.groups.window import WindowMembers

__all__ = ["PlanReach", "plan_reach"]


@dataclass(frozen=True, slots=True)
class PlanReach:
    """Sets of a plan; by sampler, the chance of each drawable group to be in a step, and whether trials gave it."""

    sets: list[SetReach]
    chances: dict[GroupSampler, tuple[Reals, bool]]
    set_numbers: dict[GroupSampler, list[int]]
    estimated: bool


def plan_reach(table: FactorTable, plan: StepPlan, sizes: Sequence[int], values: str) -> PlanReach:
    """Reach of a plan whose sets have so many rows at a step."""
    sets: list[SetReach] = []
    chances: dict[GroupSampler, tuple[Reals, bool]] = {}
    set_numbers: dict[GroupSampler, list[int]] = {}
    estimated = False
    for sampler in plan.samplers:
        numbers = set_numbers[sampler] = [number for number, other in enumerate(plan.lists) if other is sampler]
        full = plan.slots(sampler)
        if values == "different":
            shares, exact = sampler.chooser.shares(len(numbers))
            chance = shares * len(numbers)
            chances[sampler] = chance, not exact
            by_size = _by_size(numbers, sizes)
            estimated |= not exact or len(by_size) > 1  # only sets of one size draw alike
            each = [
                set_reach(table, sampler, set_subset, size, shares * len(set_subset), together=True, full=full)
                for size, set_subset in by_size.items()
            ]
            sets.append(each[0] if len(each) == 1 else SetReach(tuple(numbers), _sum(each), True))
        elif values == "equal":
            chance = sampler.chooser.probabilities()
            chances[sampler] = chance, False
            dealt = [rows[: sizes[number]] for rows, number in zip(plan.dealt(sampler), numbers, strict=True)]
            sets.append(dealt_reach(table, sampler, numbers, dealt, full, chance))
            num_rows = sum(len(rows) for rows in dealt)
            if isinstance(sampler.members, WindowMembers):
                # what a group that is too small loses where sizes change depends on how it was dealt out
                estimated |= num_rows < full and bool((sampler.members.sizes[sampler.drawable] < full).any())
            elif num_rows < full:  # it has not the first rows that are drawn from the group
                estimated |= is_estimated(sampler, full) or is_estimated(sampler, num_rows)
            else:
                estimated |= is_estimated(sampler, num_rows)
        else:
            chance = sampler.chooser.probabilities()
            chances[sampler] = at_least_one(chance, len(numbers)), False
            for size, set_subset in _by_size(numbers, sizes).items():
                sets.append(set_reach(table, sampler, set_subset, size, chance, full=full))
        if values != "equal":
            estimated |= is_estimated(sampler, max(sizes[number] for number in numbers))
    return PlanReach(sets, chances, set_numbers, estimated)


def _by_size(numbers: Sequence[int], sizes: Sequence[int]) -> dict[int, list[int]]:
    """Sets of each size."""
    return {
        size: [number for number in numbers if sizes[number] == size]
        for size in sorted({sizes[number] for number in numbers})
    }


def _sum(each: Sequence[SetReach]) -> Callable[[Rows], Reals]:
    """Chance of rows in any of some sets of which no two have the same group."""
    return lambda rows: np.asarray(np.sum([reach.chance(rows) for reach in each], axis=0))
