"""Sets in which some factors are held and the others vary.

The supervision of ABC [1]_: within a set the *inactive* factors have one value each; nothing else is known. One step
gives several sets, and their values are drawn independently unless asked otherwise.

References
----------
.. [1] K. Murphy, V. Jampani, S. Ramalingam, A. Makadia, "Learning ABCs: approximate bijective correspondence for
   isolating factors of variation with weak supervision", CVPR 2022 (arXiv 2103.03240).

"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_choice, check_number, is_integer
from setsup.errors import SamplerError, brief
from setsup.factors.table import FactorTable
from setsup.random import fold, stream_key
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler, held_factors, row_weights
from setsup.samplers.groups.members import check_small
from setsup.samplers.plan import StepPlan, StepPlans
from setsup.samplers.report import Report, holding_report
from setsup.samplers.sampler import MOST_SETS, Sampler, Steps, checked_table, need_memory, positive, stated

__all__ = ["SetSampler"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Lists = Sequence[str] | Sequence[Sequence[str]]

VALUES = ("independent", "equal", "different")
_SUBSETS = 4096


class SetSampler(Sampler):
    """Draws sets in which the inactive factors are exactly constant.

    A set's group is chosen by ``choose``; its rows are then uniform over the group's rows, without repeats. Sets of a
    step are independent, unless ``values`` says otherwise.

    Parameters
    ----------
    table : FactorTable
        The factors of a data set; draws are rows of it.
    inactive : list of str, or one list a set
        Factors that a set holds. ``[["wall_hue"], []]`` holds the wall's hue in the first set and nothing in the
        second.
    active : list of str
        The other way to say it: everything else is held, except keys, splits, ``part`` and continuous factors
        without a tolerance.
    size : int
        Rows a set.
    sets : int
        Sets a step.
    unconstrained : int
        The last so many sets hold nothing.
    random : int, optional
        Hold this many of the listed factors: a uniform choice each step, the same in all sets.
    choose : str
        ``levels``: held factors in table order, each uniform over the levels that still have a drawable group;
        ``groups``: uniform over drawable groups; ``rows``: by their rows, or weights.
    values : str
        ``independent``: values of the sets may coincide; ``equal``: all sets share one group, and no rows;
        ``different``: no two sets share a group.
    small : str
        What to do with groups of fewer rows than are drawn: ``error`` refuses now, ``drop`` leaves them out,
        ``short`` uses all their rows and masks the rest, ``replace`` draws with repeats from them.
    tolerance : mapping of str to float, optional
        Continuous factors among the held ones, at most one a list: rows lie within it of an anchor row's value, but
        for the rounding of both values to float32.
    weights : str or (rows,) float, optional
        Relative chance of each row within its group, or the factor that has it; without repeats by successive
        sampling. Rows of weight 0 are never drawn.
    where : str, optional
        Expression that drawn rows satisfy; rows keep their numbers.
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Two samplers of one class with one seed are correlated unless this differs.

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
        choose: str = "levels",
        values: str = "independent",
        small: str = "error",
        tolerance: Mapping[str, float] | None = None,
        weights: str | Sequence[float] | Array | None = None,
        where: str | None = None,
        seed: int = 0,
        stream: str = "SetSampler",
    ) -> None:
        self.arguments = stated(locals())
        self.table, self.size = checked_table(table), positive(size, "size")
        self.sets = positive(sets, "sets", MOST_SETS + 1)
        need_memory(self.size * self.sets, "a draw", "size or sets")
        check_small(small)
        self._values = check_choice(values, VALUES, "values", SamplerError)
        self._key = stream_key(seed, stream)
        self._tolerance = check_tolerance(table, tolerance)
        options = self._options(inactive, active, unconstrained, random)
        together = self.size * self.sets if values == "equal" else self.size
        row_weight = row_weights(table, weights)
        holdings: dict[tuple[str, ...], GroupSampler] = {}
        for names in dict.fromkeys(itertools.chain.from_iterable(options)):
            holdings[names] = GroupSampler(
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
        plans = [StepPlan([holdings[names] for names in option], self.size, small, values) for option in options]
        self._plans = StepPlans(plans, table)
        held = {place for option in options for place, names in enumerate(option) if names}
        self.free_sets = frozenset(range(self.sets)) - held
        for name in self._tolerance:
            if name not in self._plans.names:
                raise SamplerError(
                    f"tolerance names {name!r}, which no set holds: hold it too, or leave it out of tolerance"
                )

    def _options(
        self, inactive: Lists | None, active: Sequence[str] | None, unconstrained: int, random: int | None
    ) -> list[tuple[tuple[str, ...], ...]]:
        """Lists that the sets of a step may hold: one list a set; several alternatives only with ``random``."""
        if isinstance(inactive, str):
            inactive = [inactive]
        free = _up_to(unconstrained, self.sets, "unconstrained", f"sets = {self.sets}")
        if isinstance(inactive, Sequence) and inactive and not any(isinstance(names, str) for names in inactive):
            if active is not None or random is not None or free or self._values != "independent":
                raise SamplerError(
                    "one list a set goes with values='independent' and without active, random, unconstrained"
                )
            if len(inactive) != self.sets:
                raise SamplerError(f"inactive has {len(inactive)} lists for sets={self.sets}: give one list a set")
            return [tuple(held_factors(self.table, names, None, self._tolerance) for names in inactive)]
        held = held_factors(self.table, inactive, active, self._tolerance)  # type: ignore[arg-type]
        if free and self._values != "independent":
            raise SamplerError(f"values={self._values!r} needs the same list in all sets, so none can be unconstrained")
        if random is None:
            return [(held,) * (self.sets - free) + ((),) * free]
        random = _up_to(random, len(held), "random", f"the {len(held)} listed factors")
        if math.comb(len(held), random) > _SUBSETS:
            raise SamplerError(f"{random} of {len(held)} factors are more than {_SUBSETS} choices; list fewer factors")
        return [(names,) * (self.sets - free) + ((),) * free for names in itertools.combinations(held, random)]

    def draws(self, steps: Steps) -> Draw:
        """Draws of any steps as one block."""
        return self._plans.draw(
            fold(self._key, int(steps[0])).reshape(1) if len(steps) == 1 else fold(self._key, steps)
        )

    def report(self) -> Report:
        """What will be drawn, and what never can be, before any training."""
        holdings = {holding.describe(): holding for plan in self._plans.plans for holding in plan.holdings}
        title = f"SetSampler: {self.sets} sets of {self.size}, {self._values} values"
        entries = [
            holding_report(self.table, holding, self.size, self._sets_that_hold(held), self._values, len(holdings))
            for held, holding in holdings.items()
        ]
        return Report(title, entries, self._notes())

    def _sets_that_hold(self, held: str) -> int:
        """Sets of a step that hold a list, in a step that has any."""
        return max(sum(holding.describe() == held for holding in plan.lists) for plan in self._plans.plans)

    def _notes(self) -> list[str]:
        """Continuous factors that naming the active ones does not hold."""
        active = self.arguments["active"]
        if active is None:
            return []
        loose = [
            factor.name
            for factor in self.table.factors
            if factor.continuous and factor.role == "variation" and factor.name not in (*active, *self._tolerance)
        ]
        return [f"{', '.join(loose)} not held: a continuous factor needs a tolerance"] if loose else []


def _up_to(number: int, most: int, option: str, what: str) -> int:
    if not is_integer(number) or not 0 <= number <= most:
        raise SamplerError(f"{option} must be a whole number from 0 to {what}, not {brief(number)}")
    return int(number)


def check_tolerance(table: FactorTable, tolerance: Mapping[str, float] | None) -> dict[str, float]:
    """Tolerances of continuous factors; SamplerError where a factor has levels."""
    if tolerance is not None and not isinstance(tolerance, Mapping):
        raise SamplerError(
            f"tolerance must give a number for each factor, as in {{'yaw': 5.0}}, not {brief(tolerance)}"
        )
    found = {table[name].name: value for name, value in (tolerance or {}).items()}
    for name, value in found.items():
        if not table[name].continuous:
            raise SamplerError(
                f"factor {name!r} has levels and is fixed exactly: leave it out of tolerance, or make it continuous "
                f"when the table is opened (kinds={{{name!r}: 'continuous'}}, --kinds on the command line)"
            )
        found[name] = check_number(value, f"the tolerance of {name!r}", SamplerError, low=0)
    return found
