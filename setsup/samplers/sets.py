"""Sets in which some factors are held and the others vary.

The supervision of ABC [1]_: within a set the *inactive* factors have one value each; nothing else is known. One step
gives several sets, and their values are drawn independently unless asked otherwise.

References
----------
.. [1] K. Murphy, V. Jampani, S. Ramalingam, A. Makadia, "Learning ABCs: approximate bijective correspondence for
   isolating factors of variation with weak supervision", CVPR 2022, section 3.

"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import SamplerError, near
from setsup.factors.table import FactorTable
from setsup.random import below, fold, mix, spread, stream_key
from setsup.samplers.draw import Draw
from setsup.samplers.holding import Holding, held_factors, row_weights
from setsup.samplers.members import check_small
from setsup.samplers.report import Report, holding_report
from setsup.samplers.sampler import Sampler, Steps, stated
from setsup.samplers.within import GROUP, ORDER, ROWS, SUBSET, Keys, word

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
        Continuous factors among the held ones, at most one a list: rows lie within it of an anchor row's value.
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
        active: Sequence[str] | None = None,
        size: int = 32,
        sets: int = 2,
        *,
        unconstrained: int = 0,
        random: int | None = None,
        choose: str = "levels",
        values: str = "independent",
        small: str = "error",
        tolerance: Mapping[str, float] | None = None,
        weights: str | npt.ArrayLike | None = None,
        where: str | None = None,
        seed: int = 0,
        stream: str = "SetSampler",
    ) -> None:
        self.arguments = stated(locals())
        self.table, self.size, self.sets = table, positive(size, "size"), positive(sets, "sets")
        self._small = check_small(small)
        if values not in VALUES:
            raise SamplerError(f"values must be one of {', '.join(VALUES)}, not {values!r}{near(str(values), VALUES)}")
        self._values = values
        self._key = stream_key(seed, stream)
        self._tolerance = check_tolerance(table, tolerance)
        options = self._options(inactive, active, unconstrained, random)
        together = size * sets if values == "equal" else size
        row_weight = row_weights(table, weights)
        holdings: dict[tuple[str, ...], Holding] = {}
        for names in dict.fromkeys(itertools.chain.from_iterable(options)):
            holdings[names] = Holding(
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
        self._plans = [self._plan(option, holdings) for option in options]
        held = {place for option in options for place, names in enumerate(option) if names}
        self.free_sets = frozenset(range(self.sets)) - held
        self._names = tuple(name for name in table.names if any(name in plan.names for plan in self._plans))
        for name in self._tolerance:
            if name not in self._names:
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

    def _plan(self, option: tuple[tuple[str, ...], ...], holdings: Mapping[tuple[str, ...], Holding]) -> "_Plan":
        parts = []
        for names in dict.fromkeys(option):
            places = [place for place, held in enumerate(option) if held == names]
            parts.append(_Part(holdings[names], places, self.size, self._small, self._values))
        return _Plan(parts, self.sets, self.size)

    def draws(self, steps: Steps) -> Draw:
        """Draws of any steps as one block."""
        key = fold(self._key, int(steps[0])).reshape(1) if len(steps) == 1 else fold(self._key, steps)
        if len(self._plans) == 1:
            return self._finished(self._plans[0].draw(key, self._names, self.table))
        which = below(fold(key, int(word(0, SUBSET, 0))), len(self._plans))
        return self._finished(self._mixed(key, which))

    def _mixed(self, key: Words, which: Rows) -> Draw:
        """Steps with different lists, each drawn by its own plan."""
        shape = (len(key), self.sets, self.size)
        indices, mask = np.empty(shape, np.int64), np.ones(shape, dtype=bool)
        held = {name: unheld(self.table, name, shape[:2]) for name in self._names}
        for number in np.unique(which):
            steps = np.flatnonzero(which == number)
            part = self._plans[number].draw(key[steps], self._names, self.table)
            indices[steps] = part.indices
            mask[steps] = True if part.mask is None else part.mask
            for name in self._names:
                held[name][steps] = part.inactive[name]
        return Draw(indices, held, mask)

    def _finished(self, draw: Draw) -> Draw:
        if draw.mask is None or not draw.mask.all():
            return draw
        return Draw(draw.indices, draw.inactive)

    def report(self) -> Report:
        """What will be drawn, and what never can be, before any training."""
        parts = {part.holding.describe(): part for plan in self._plans for part in plan.parts}
        title = f"SetSampler: {self.sets} sets of {self.size}, {self._values} values"
        entries = [holding_report(self.table, part.holding, self.size) for part in parts.values()]
        return Report(title, entries, self._notes())

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


class _Part:
    """The sets of a step that hold one list."""

    def __init__(self, holding: Holding, places: list[int], size: int, small: str, values: str) -> None:
        self.holding, self.places = holding, places
        self._size, self._small, self._values = size, small, values
        self._numbers = np.array(places, dtype=np.uint64)
        self._different = holding.chooser.different() if values == "different" else None
        if values == "different" and len(places) > len(holding.drawable):
            raise SamplerError(
                f"values='different' needs {len(places)} drawable groups of {holding.describe()}, and there are "
                f"{len(holding.drawable)}; lower sets, or pass values='independent'"
            )
        words = holding.chooser.words if values == "different" else 1
        if values == "equal":
            self._numbers = self._numbers[:1]
        # words of a set's choice, order and rows do not change from step to step: half of each fold is done once
        number = self._numbers[:, None]
        used = [word(number, GROUP, np.arange(words)), word(number, ORDER, np.arange(1))]
        if not holding.members.crowded(self.slots):
            used.append(word(number, ROWS, np.arange(self.slots)))
        self._spread = spread(np.concatenate(used, axis=1))
        self._words = words

    @property
    def slots(self) -> int:
        """Rows drawn at once from one group."""
        return self._size * len(self.places) if self._values == "equal" else self._size

    def draw(self, key: Words) -> tuple[Rows, Rows, Array | None]:
        """Chosen drawable groups (steps, sets), rows (steps, sets, size) and mask."""
        bits = mix(key[:, None, None], self._spread)
        choice = bits[:, :, : self._words]
        if self._different is not None:
            chosen = self._different.pick(choice)
        else:
            chosen = self.holding.chooser.pick(choice[:, :, 0])
        steps, sets = chosen.shape
        order, first = bits[:, :, self._words], bits[:, :, self._words + 1 :]
        rows_bits = first.reshape(steps * sets, -1) if first.size else None
        keys = Keys(key, self._numbers, order.reshape(-1), rows_bits)
        groups = self.holding.number(chosen).reshape(-1)
        rows, mask = self.holding.members.draw(keys, groups, self.slots, self._small)
        if self._values == "equal":
            return self._dealt(chosen, rows, mask)
        shape = (steps, sets, self._size)
        return chosen, rows.reshape(shape), None if mask is None else mask.reshape(shape)

    def _dealt(self, chosen: Rows, rows: Rows, mask: Array | None) -> tuple[Rows, Rows, Array | None]:
        """One group's rows dealt to the sets in turn, so that a short group shortens all sets alike."""
        sets = len(self.places)
        shape = (len(rows), self._size, sets)
        dealt = rows.reshape(shape).transpose(0, 2, 1)
        counts = None if mask is None else mask.reshape(shape).transpose(0, 2, 1)
        if counts is not None:  # padding repeats the set's own first member
            dealt = np.where(counts, dealt, dealt[:, :, :1])
        return np.repeat(chosen, sets, axis=1), dealt, counts


class _Plan:
    """One list for each set of a step."""

    def __init__(self, parts: list[_Part], sets: int, size: int) -> None:
        self.parts, self._sets, self._size = parts, sets, size
        self.names = {name for part in parts for name in part.holding.names}

    def draw(self, key: Words, names: tuple[str, ...], table: FactorTable) -> Draw:
        if len(self.parts) == 1:
            chosen, rows, mask = self.parts[0].draw(key)
            return Draw(rows, self._held(names, table, [(self.parts[0], chosen, rows)]), mask)
        shape = (len(key), self._sets, self._size)
        indices, counts = np.empty(shape, np.int64), np.ones(shape, dtype=bool)
        drawn = []
        for part in self.parts:
            chosen, rows, mask = part.draw(key)
            indices[:, part.places] = rows
            counts[:, part.places] = True if mask is None else mask
            drawn.append((part, chosen, rows))
        return Draw(indices, self._held(names, table, drawn), counts)

    def _held(
        self, names: tuple[str, ...], table: FactorTable, drawn: list[tuple[_Part, Rows, Rows]]
    ) -> dict[str, Array]:
        codes = [part.holding.held(chosen, rows) for part, chosen, rows in drawn]
        if len(drawn) == 1 and len(codes[0]) == len(names):
            return {name: codes[0][name] for name in names}
        held = {name: unheld(table, name, (len(drawn[0][1]), self._sets)) for name in names}
        for (part, _, _), found in zip(drawn, codes, strict=True):
            for name, values in found.items():
                held[name][:, part.places] = values
        return held


def unheld(table: FactorTable, name: str, shape: tuple[int, ...]) -> Array:
    """Codes of sets that do not hold a factor: -1, or NaN for a continuous one."""
    if table[name].continuous:
        return np.full(shape, np.nan, dtype=np.float32)
    return np.full(shape, -1, dtype=np.int64)


def positive(number: int, option: str) -> int:
    """A whole number from 1 on; SamplerError otherwise."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise SamplerError(f"{option} must be a whole number from 1 on, not {number!r}")
    return int(number)


def _up_to(number: int, most: int, option: str, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number <= most:
        raise SamplerError(f"{option} must be a whole number from 0 to {what}, not {number!r}")
    return int(number)


def check_tolerance(table: FactorTable, tolerance: Mapping[str, float] | None) -> dict[str, float]:
    """Tolerances of continuous factors; SamplerError where a factor has levels."""
    if tolerance is not None and not isinstance(tolerance, Mapping):
        raise SamplerError(f"tolerance must give a number for each factor, as in {{'yaw': 5.0}}, not {tolerance!r}")
    found = dict(tolerance or {})
    for name, value in found.items():
        if not table[name].continuous:
            raise SamplerError(f"factor {name!r} has levels and is held exactly; leave it out of tolerance")
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            raise SamplerError(f"the tolerance of {name!r} must be a number from 0 on, not {value!r}")
    return found
