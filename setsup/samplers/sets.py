"""Sets in which some factors are fixed and the others vary.

The supervision of ABC [1]_: within a set the *inactive* factors have one value each; nothing else is known. One step
gives several sets, whose values are independent by default.

References
----------
.. [1] K. Murphy, V. Jampani, S. Ramalingam, A. Makadia, "Learning ABCs: approximate bijective correspondence for
   isolating factors of variation with weak supervision", CVPR 2022 (arXiv 2103.03240).

"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from setsup.arrays import Steps
from setsup.checks import check_choice, check_integer
from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.random import fold, stream_key
from setsup.samplers.arguments import (
    MOST_ROWS,
    MOST_SETS,
    Weights,
    Where,
    check_draw_memory,
    check_table,
    check_tolerance,
    copy_arguments,
    inactive_factors,
    row_weights,
)
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import check_small
from setsup.samplers.groups.plan import StepPlan, StepPlans
from setsup.samplers.groups.statistics import group_entry
from setsup.samplers.report import Report
from setsup.samplers.sampler import Sampler

__all__ = ["SetSampler"]

Lists = Sequence[str] | Sequence[Sequence[str]]

VALUES = ("independent", "equal", "different")
_SUBSETS = 4096


class SetSampler(Sampler):
    """Draws sets in which the inactive factors are exactly constant.

    ``choose`` says how the group of a set is chosen; its rows are then uniform over the rows of the group, without
    repeats. The sets of a step are independent, unless ``values`` says otherwise.

    Parameters
    ----------
    table : FactorTable
        The factors of a dataset; draws are rows of it.
    inactive : list of str, or one list per set
        Factors that a set fixes. ``[["wall_hue"], []]`` fixes the wall's hue in the first set and nothing in the
        second.
    active : list of str
        Factors that vary, in place of ``inactive``: all others are fixed, except keys, splits, ``part`` and continuous
        factors without a tolerance.
    size : int
        Rows per set.
    sets : int
        Sets per step.
    unconstrained : int
        Leave the last N sets unconstrained.
    random : int, optional
        Fix this many of the listed factors: a uniform choice for each step, the same in all its sets.
    choose : str
        ``levels``: inactive factors in table order, each uniform over the levels that still have a drawable group;
        ``groups``: uniform over drawable groups; ``rows``: proportional to their rows, or weights.
    values : str
        ``independent``: values of the sets may coincide; ``equal``: all sets share one group, and no rows;
        ``different``: no two sets share a group.
    small : str
        What to do with groups of fewer rows than are drawn: ``error`` refuses now, ``drop`` leaves them out,
        ``short`` uses all their rows and masks the rest, ``replace`` draws from them with replacement.
    tolerance : mapping of str to float, optional
        Continuous factors among the inactive ones, at most one per list: rows lie within it of an anchor row's value,
        up to the rounding of both values to float32.
    weights : str or (rows,) float, optional
        Relative probability of each row within its group, or the factor that has it; without repeats by successive
        sampling. Rows of weight 0 are never drawn.
    where : str, (rows,) bool or list of int, optional
        Rows that may be drawn: an expression that they satisfy, one boolean per row, or their numbers. Rows keep their
        numbers.
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Two samplers of one class with one seed are correlated unless their streams differ.

    Raises
    ------
    SamplerError, FactorError
        When the arguments contradict each other or the table.

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
        size: int = 32,
        sets: int = 2,
        unconstrained: int = 0,
        random: int | None = None,
        choose: Literal["levels", "groups", "rows"] = "levels",
        values: Literal["independent", "equal", "different"] = "independent",
        small: Literal["error", "drop", "short", "replace"] = "error",
        tolerance: Mapping[str, float] | None = None,
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "SetSampler",
    ) -> None:
        self.arguments = copy_arguments(locals())
        self.table, self.size = check_table(table), check_integer(size, "size", SamplerError, 1, MOST_ROWS)
        self.sets = check_integer(sets, "sets", SamplerError, 1, MOST_SETS)
        check_draw_memory(self.size * self.sets, "a draw", "size or sets")
        check_small(small)
        self._values = check_choice(values, VALUES, "values", SamplerError)
        self._key = stream_key(seed, stream)
        self._tolerance = check_tolerance(table, tolerance)
        alternatives = self._alternatives(inactive, active, unconstrained, random)
        together = self.size * self.sets if values == "equal" else self.size
        row_weight = row_weights(table, weights)
        samplers: dict[tuple[str, ...], GroupSampler] = {}
        for names in dict.fromkeys(itertools.chain.from_iterable(alternatives)):
            samplers[names] = GroupSampler(
                table,
                names,
                together,
                choose=choose,
                small=small,
                tolerance=self._tolerance,
                weights=row_weight,
                where=where,
                shared=values == "equal",
            )
        plans = [StepPlan([samplers[names] for names in lists], self.size, values) for lists in alternatives]
        self._plans = StepPlans(plans, table)
        constrained = {number for lists in alternatives for number, names in enumerate(lists) if names}
        self.unconstrained_sets = frozenset(range(self.sets)) - constrained
        for name in self._tolerance:
            if name not in self._plans.names:
                raise SamplerError(
                    f"tolerance names {name!r}, which no set fixes: add it to inactive, or leave it out of tolerance"
                )

    def _alternatives(
        self, inactive: Lists | None, active: Sequence[str] | None, unconstrained: int, random: int | None
    ) -> list[tuple[tuple[str, ...], ...]]:
        """Inactive factors of each set of a step; several alternatives only with ``random``."""
        if isinstance(inactive, str):
            inactive = [inactive]
        free = check_integer(unconstrained, "unconstrained", SamplerError, 0, self.sets)
        if isinstance(inactive, Sequence) and inactive and not any(isinstance(names, str) for names in inactive):
            if active is not None or random is not None or free or self._values != "independent":
                raise SamplerError(
                    "one list per set goes with values='independent' and without active, random, unconstrained"
                )
            if len(inactive) != self.sets:
                raise SamplerError(f"inactive has {len(inactive)} lists for sets={self.sets}: give one list per set")
            return [tuple(inactive_factors(self.table, names, None, self._tolerance) for names in inactive)]
        fixed = inactive_factors(self.table, inactive, active, self._tolerance)  # type: ignore[arg-type]
        if free and self._values != "independent":
            raise SamplerError(f"values={self._values!r} needs the same list in all sets, so none can be unconstrained")
        if random is None:
            return [(fixed,) * (self.sets - free) + ((),) * free]
        random = check_integer(random, f"random, of {len(fixed)} listed factors,", SamplerError, 0, len(fixed))
        if math.comb(len(fixed), random) > _SUBSETS:
            raise SamplerError(f"{random} of {len(fixed)} factors are more than {_SUBSETS} choices; list fewer factors")
        return [(names,) * (self.sets - free) + ((),) * free for names in itertools.combinations(fixed, random)]

    def draws(self, steps: Steps) -> Draw:
        """Draws of any steps as one block."""
        return self._plans.draw(
            fold(self._key, int(steps[0])).reshape(1) if len(steps) == 1 else fold(self._key, steps)
        )

    def report(self) -> Report:
        """What is drawn, and what never is, before any training."""
        samplers = {sampler.describe(): sampler for plan in self._plans.plans for sampler in plan.samplers}
        title = f"SetSampler: {self.sets} sets of {self.size}, {self._values} values"
        entries = [
            group_entry(self.table, sampler, self.size, self._count_sets(names), self._values, len(samplers))
            for names, sampler in samplers.items()
        ]
        return Report(title, entries, self._notes())

    def _count_sets(self, names: str) -> int:
        """Sets of a step that fix these factors, in a step that has any."""
        return max(sum(sampler.describe() == names for sampler in plan.lists) for plan in self._plans.plans)

    def _notes(self) -> list[str]:
        """Continuous factors that naming the active ones does not fix."""
        active = self.arguments["active"]
        if active is None:
            return []
        varying = [
            factor.name
            for factor in self.table.factors
            if factor.continuous and factor.role == "variation" and factor.name not in (*active, *self._tolerance)
        ]
        return [f"{', '.join(varying)} not fixed: a continuous factor needs a tolerance"] if varying else []
