"""Sets in which some factors are fixed and the others vary.

ABC [1]_ learns from such sets: within a set the *inactive* factors have one value each, and nothing else is known. One
step gives several sets, whose values are independent by default.

References
----------
.. [1] K. Murphy, V. Jampani, S. Ramalingam, A. Makadia, "Learning ABCs: approximate bijective correspondence for
   isolating factors of variation with weak supervision", CVPR 2022 (arXiv 2103.03240).

"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from setsup.arrays import Steps
from setsup.checks import check_choice
from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.html import counted
from setsup.random import fold, fold_integers
from setsup.samplers.arguments import check_draw_memory, check_sets, check_tolerance
from setsup.samplers.coverage import Reach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.fixed_factors import FixedFactors, Lists
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import check_small
from setsup.samplers.groups.plan import StepPlan, StepPlans
from setsup.samplers.groups.plan_reach import plan_reach
from setsup.samplers.groups.reach_chances import reached_groups
from setsup.samplers.groups.single import SingleStep
from setsup.samplers.groups.statistics import group_entry
from setsup.samplers.report import Entry, Report
from setsup.samplers.row_arguments import (
    Weights,
    Where,
    is_listed,
    is_per_set,
    per_set,
    row_mask,
    row_weights,
    weight_names,
    with_weight,
)
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.schedules import Schedule, Scheduled, read_size, shorten
from setsup.samplers.spelling import spell, spell_name

__all__ = ["SetSampler"]

VALUES = ("independent", "equal", "different")


class SetSampler(Sampler):
    """Draws sets in which the inactive factors are exactly constant.

    The rows with equal values of the inactive factors form a group. For each set, a group is drawn as ``choose`` says,
    and then rows of the group, uniformly and without repeats. The sets of a step are independent unless ``values`` says
    otherwise.

    Parameters
    ----------
    inactive : list of str, or one list per set
        Factors to fix within each set. ``[["wall_hue"], []]`` fixes the wall's hue in the first set and nothing in the
        second.
    active : list of str
        Factors that vary: all other factors are fixed, except keys (such as identifiers and paths), splits, the factor
        'part' of concatenated tables, and continuous factors without a tolerance. Pass it instead of ``inactive``.
    size : int, mapping, or a list with one per set
        Rows per set. ``{0: 16, 1000: 32}`` gives sets of 32 rows from step 1,000 on: the width of a draw is the largest
        size, and positions beyond the size of the step are masked. ``[5, 15]`` gives sets of different sizes, such as
        support and query with ``values="equal"``. Groups must have enough rows for the largest size.
    sets : int
        Sets per step.
    unconstrained : int
        Leave the last N sets unconstrained.
    num_fixed : int or mapping, optional
        Fix only this many of the inactive factors, chosen uniformly at each step and shared by all sets of the step.
        ``{0: 3, 1000: 1}`` changes their number from step 1,000 on.
    choose : str
        How groups are chosen. A group consists of the rows with equal inactive factors, and is drawable if it has
        enough rows. ``levels``: levels are chosen factor by factor, in the order of the table's columns, each uniformly
        among the levels that still have a drawable group; ``groups``: uniform over drawable groups; ``rows``:
        proportional to their number of rows, or to their total weight.
    values : str
        How the groups of a step relate. ``independent``: they may coincide; ``equal``: all sets share one group but no
        rows; ``different``: no two sets share a group.
    on_small_group : str
        What to do with groups that have too few rows: ``error`` raises an error, ``drop`` leaves them out, ``short``
        uses all their rows and masks the remaining positions, ``replace`` draws from them with replacement.
    tolerance : mapping of str to float, optional
        Tolerances of continuous inactive factors, of which a set can have at most one: the values in a set differ from
        the value of an anchor row by at most the tolerance. The rounding of both values to float32 is allowed for.
    weights : str or (rows,) float, or a list with one per set, optional
        Relative probability of each row within its group, or the factor that contains it. Rows are drawn without
        repeats by successive sampling. Rows of weight 0 are never drawn.
    where : str, (rows,) bool or list of int, or a list with one per set, optional
        Rows that may be drawn: an expression that they satisfy, one boolean per row, or their numbers. Draws still
        contain row numbers of the whole table. ``["label == 1", None]`` restricts the first of two sets.
    table, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError
        If the arguments contradict each other or the table.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=32, sets=2, seed=0)
    >>> draw = sets[17]
    >>> draw.indices.shape, draw.inactive["wall_hue"].shape
    ((2, 32), (2,))
    >>> walls = shapes.factors.codes("wall_hue", draw.indices)
    >>> bool((walls == draw.inactive["wall_hue"][:, None]).all())
    True

    """

    def __init__(
        self,
        table: FactorTable,
        inactive: Lists | None = None,
        *,
        active: Sequence[str] | None = None,
        size: Scheduled | Sequence[Scheduled] = 32,
        sets: int = 2,
        unconstrained: int = 0,
        num_fixed: Scheduled | None = None,
        choose: Literal["levels", "groups", "rows"] = "levels",
        values: Literal["independent", "equal", "different"] = "independent",
        on_small_group: Literal["error", "drop", "short", "replace"] = "error",
        tolerance: Mapping[str, float] | None = None,
        weights: Weights | Sequence[Weights | None] | None = None,
        where: Where | Sequence[Where | None] | None = None,
        seed: int = 0,
        stream: str = "SetSampler",
    ) -> None:
        self._keep(locals())
        self.sets = check_sets(sets)
        self._sizes = _sizes_by_set(size, self.sets)
        most = [schedule.most for schedule in self._sizes]
        self.size = max(most)
        check_draw_memory(self.size * self.sets, "a draw", "size or sets")
        check_small(on_small_group)
        self._values = check_choice(values, VALUES, "values", SamplerError)
        self._tolerance = check_tolerance(table, tolerance)
        counts = None if num_fixed is None else Schedule.read(num_fixed, "num_fixed", lambda value, what: value)
        self.arguments = {**self.arguments, **_plain_schedules(size, self._sizes, counts)}
        self._fixed = FixedFactors.read(
            table,
            inactive,
            active,
            sets=self.sets,
            unconstrained=unconstrained,
            num_fixed=counts,
            values=values,
            tolerance=self._tolerance,
        )
        if values != "independent" and (is_per_set(weights) or is_per_set(where)):
            raise SamplerError(
                f"{spell(values=values)} requires the same {spell_name('weights')} and {spell_name('where')} in all "
                f"sets; pass one for all sets, or {spell(values='independent')}"
            )
        need = {"independent": most, "equal": [sum(most)] * self.sets, "different": [self.size] * self.sets}[values]
        masks = per_set(where, self.sets, "where", lambda selection: row_mask(table, selection))
        set_weights = per_set(weights, self.sets, "weights", lambda weight: row_weights(table, weight))
        samplers: dict[tuple[object, ...], GroupSampler] = {}

        def sampler_of(number: int, names: tuple[str, ...]) -> GroupSampler:
            key = (names, need[number], id(masks[number]), id(set_weights[number]))
            if key not in samplers:
                samplers[key] = GroupSampler(
                    table,
                    names,
                    need[number],
                    with_weight(masks[number], set_weights[number]),
                    set_weights[number],
                    choose=choose,
                    on_small_group=on_small_group,
                    tolerance=self._tolerance,
                    shared=values == "equal",
                )
            return samplers[key]

        widths = need if values == "different" else most
        self._plans = StepPlans(
            [StepPlan(list(map(sampler_of, range(self.sets), lists)), widths, values) for lists in self._fixed.lists],
            table,
        )
        constrained = {number for lists in self._fixed.lists for number, names in enumerate(lists) if names}
        self.unconstrained_sets = frozenset(range(self.sets)) - constrained
        self._shortens = any(schedule.changes or schedule.most < self.size for schedule in self._sizes)
        self._single_step = None
        if len(samplers) == len(self._plans.plans) == 1 and values == "independent" and not self._shortens:
            self._single_step = SingleStep.of(next(iter(samplers.values())), self.sets, self.size)
        for name in self._tolerance:
            if name not in self._plans.names:
                raise SamplerError(
                    f"{spell_name('tolerance')} contains {name!r}, which no set fixes; add it to "
                    f"{spell_name('inactive')}, or leave it out of {spell_name('tolerance')}"
                )

    def _single(self, step: int) -> Draw:
        """Draw of one step, in fewer calls where all sets fix the same factors in groups that are not small."""
        return (
            super()._single(step)
            if self._single_step is None
            else self._single_step.draw(fold_integers(self._key, step))
        )

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block."""
        key = fold(self._key, int(steps[0])).reshape(1) if len(steps) == 1 else fold(self._key, steps)
        draw = self._plans.draw(key, *self._fixed.at(steps)) if len(self._fixed.first) > 1 else self._plans.draw(key)
        return shorten(draw, self._sizes, steps) if self._shortens else draw

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        plans = self._plans.plans
        samplers = list(dict.fromkeys(sampler for plan in plans for sampler in plan.samplers))
        entries = []
        for sampler in samplers:
            numbers = sorted({number for plan in plans for number, other in enumerate(plan.lists) if other is sampler})
            sets = max(plan.lists.count(sampler) for plan in plans)
            for size in dict.fromkeys(self._sizes[number].most for number in numbers):
                entry = self._entry(sampler, size, sets, len(samplers))
                if self._differ:
                    entry = replace(entry, sets=[number for number in numbers if self._sizes[number].most == size])
                entries.append(entry)
        return self._report(entries, self._notes())

    def _title(self) -> str:
        sizes = " and ".join(dict.fromkeys(schedule.words() for schedule in self._sizes))
        return f"SetSampler: {counted(self.sets, 'set')} of {sizes}, {self._values} values"

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        first, count = self._fixed.at_step(step)
        sizes = [int(schedule.at_step(step)) for schedule in self._sizes]
        plans = [plan_reach(self.table, plan, sizes, self._values) for plan in self._plans.plans[first : first + count]]
        groups = []
        for sampler in dict.fromkeys(sampler for plan in plans for sampler in plan.chances):
            chances, by_trials = zip(*(plan.chances[sampler] for plan in plans if sampler in plan.chances), strict=True)
            numbers = sorted({number for plan in plans for number in plan.set_numbers.get(sampler, ())})
            set_numbers = numbers if len(numbers) < self.sets else ()
            chance = np.asarray(sum(chances)) / len(plans)
            groups.append(reached_groups(self.table, sampler, set_numbers, chance, estimated=any(by_trials)))
        estimated = any(plan.estimated for plan in plans)
        notes = [note for note in self._notes() if not note.startswith("figures are")]
        return Reach(self._title(), self.table, groups, [[plan.sets for plan in plans]], notes, estimated)

    @property
    def _differ(self) -> bool:
        """Whether sets have options of their own."""
        options = (self.arguments["where"], self.arguments["weights"])
        return any(map(is_per_set, options)) or len(set(self._sizes)) > 1

    def _entry(self, sampler: GroupSampler, size: int, sets: int, lists: int) -> Entry:
        """Entry for the sets of one size that are drawn from the same groups."""
        if self._values == "independent" or size * sets == sum(schedule.most for schedule in self._sizes):
            return group_entry(self.table, sampler, size, sets, self._values, lists)
        # sets of unlike sizes: where every group is large enough, each is a set of its size alone
        equal = self._values == "equal"
        entry = group_entry(self.table, sampler, size, 1 if equal else sets, "independent" if equal else self._values)
        few = bool((sampler.members.sizes[sampler.drawable] < sampler.need).any())
        if few or math.isnan(entry.log10_sets):
            return replace(entry, log10_sets=math.nan, shared_rows=math.nan, distinct={}, estimated=False)
        return replace(entry, shared_rows=0.0)

    def _notes(self) -> list[str]:
        """What changes with the step, and what the arguments do not say."""
        notes = []
        if any(schedule.changes for schedule in self._sizes):
            notes.append("figures are for the largest size, for which groups must have rows at every step")
        if self._fixed.num_fixed is not None and self._fixed.num_fixed.changes:
            notes.append(f"factors fixed at random: {self._fixed.num_fixed.words()}")
        return [*notes, *self.remarks()]

    def remarks(self) -> list[str]:
        """Continuous factors that naming the active ones does not fix."""
        active = self.arguments["active"]
        if active is None:
            return []
        known = (*active, *self._tolerance, *weight_names(self.arguments))
        varying = [
            factor.name
            for factor in self.table.factors
            if factor.continuous and factor.role == "variation" and factor.name not in known
        ]
        return [f"{', '.join(varying)} not fixed: a continuous factor needs a tolerance"] if varying else []


def _sizes_by_set(size: Any, sets: int) -> list[Schedule]:
    """Rows of each set by step."""
    if not is_listed(size):
        return [read_size(size)] * sets
    if len(size) != sets:
        raise SamplerError(
            f"{spell_name('size')} has {len(size)} items for {spell(sets=sets)}; pass one per set, or one for all sets"
        )
    return [read_size(item, f"size of set {number}") for number, item in enumerate(size)]


def _plain_schedules(size: Any, sizes: Sequence[Schedule], num_fixed: Schedule | None) -> dict[str, Any]:
    """The arguments size and num_fixed as plain data."""
    plain = [schedule.plain() for schedule in sizes] if is_listed(size) else sizes[0].plain()
    return {"size": plain, "num_fixed": None if num_fixed is None else num_fixed.plain()}
