"""How the sets of one step are drawn together: which list each holds, and in what order key words are spent."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.random import below, fold, mix, spread
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.within import GROUP, ORDER, ROWS, SUBSET, Keys, word

__all__ = ["StepPlan", "StepPlans"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


class Part:
    """The sets of a step that hold one list."""

    def __init__(self, holding: GroupSampler, places: list[int], size: int, small: str, values: str) -> None:
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


class StepPlan:
    """One list of held factors for each set of a step."""

    def __init__(self, lists: Sequence[GroupSampler], size: int, small: str, values: str) -> None:
        self.lists, self.holdings = list(lists), list(dict.fromkeys(lists))
        self.shape = (len(lists), size)
        self._parts = []
        for holding in self.holdings:
            places = [place for place, held in enumerate(lists) if held is holding]
            self._parts.append(Part(holding, places, size, small, values))

    def draw(self, key: Words, names: tuple[str, ...], table: FactorTable) -> Draw:
        """Draws of steps, given their keys (steps,); ``names`` are the factors to tell of."""
        drawn = [part.draw(key) for part in self._parts]
        if len(drawn) == 1:
            chosen, rows, mask = drawn[0]
            found = self.holdings[0].held(chosen, rows)
            if len(found) == len(names):
                return Draw(rows, {name: found[name] for name in names}, mask)
        shape = (len(key), *self.shape)
        indices, counts = np.empty(shape, np.int64), np.ones(shape, dtype=bool)
        held = {name: unheld(table, name, shape[:2]) for name in names}
        for part, (chosen, rows, mask) in zip(self._parts, drawn, strict=True):
            indices[:, part.places] = rows
            counts[:, part.places] = True if mask is None else mask
            for name, values in part.holding.held(chosen, rows).items():
                held[name][:, part.places] = values
        return Draw(indices, held, counts)


class StepPlans:
    """Alternative plans, of which each step takes one with equal chance.

    Attributes
    ----------
    names : tuple of str
        Factors that some set of some plan holds, in table order.

    """

    def __init__(self, plans: Sequence[StepPlan], table: FactorTable) -> None:
        self.plans, self._table = list(plans), table
        held = {name for plan in plans for holding in plan.holdings for name in holding.names}
        self.names = tuple(name for name in table.names if name in held)

    def draw(self, key: Words) -> Draw:
        """Draws of steps, given their keys (steps,)."""
        if len(self.plans) == 1:
            draw = self.plans[0].draw(key, self.names, self._table)
        else:
            draw = self._mixed(key, below(fold(key, int(word(0, SUBSET, 0))), len(self.plans)))
        return Draw(draw.indices, draw.inactive) if draw.mask is not None and draw.mask.all() else draw

    def _mixed(self, key: Words, which: Rows) -> Draw:
        shape = (len(key), *self.plans[0].shape)
        indices, mask = np.empty(shape, np.int64), np.ones(shape, dtype=bool)
        held = {name: unheld(self._table, name, shape[:2]) for name in self.names}
        for number in np.unique(which):
            steps = np.flatnonzero(which == number)
            part = self.plans[number].draw(key[steps], self.names, self._table)
            indices[steps] = part.indices
            mask[steps] = True if part.mask is None else part.mask
            for name in self.names:
                held[name][steps] = part.inactive[name]
        return Draw(indices, held, mask)


def unheld(table: FactorTable, name: str, shape: tuple[int, ...]) -> Array:
    """Codes of sets that do not hold a factor: -1, or NaN for a continuous one."""
    if table[name].continuous:
        return np.full(shape, np.nan, dtype=np.float32)
    return np.full(shape, -1, dtype=np.int64)
