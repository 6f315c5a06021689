"""How the sets of one step are drawn together: which factors each fixes, and which key words it uses."""

from collections.abc import Sequence

import numpy as np

from setsup.arrays import Array, Rows, Words
from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.random import fold, mix, randint_below, spread
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.within import GROUP, ORDER, ROWS, SUBSET, Keys, word
from setsup.samplers.spelling import spell

__all__ = ["StepPlan", "StepPlans"]


class Part:
    """The sets of a step that fix the same factors."""

    def __init__(self, sampler: GroupSampler, set_numbers: list[int], sizes: Sequence[int], values: str) -> None:
        self.sampler, self.set_numbers = sampler, set_numbers
        self.size, self._values = max(sizes), values
        self._dealt: Rows | None = None
        self._slots = self.size
        if values == "equal":
            self._dealt, self._slots = _deal(sizes)
        self._numbers = np.array(set_numbers, dtype=np.uint64)
        self._different = sampler.chooser.different() if values == "different" else None
        if values == "different" and len(set_numbers) > len(sampler.drawable):
            raise SamplerError(
                f"{spell(values='different')} requires {len(set_numbers)} drawable groups of {sampler.describe()}, "
                f"but there are only {len(sampler.drawable)}; pass at most {spell(sets=len(sampler.drawable))}, or "
                f"{spell(values='independent')}"
            )
        words = sampler.chooser.words if values == "different" else 1
        if values == "equal":
            self._numbers = self._numbers[:1]
        # words of a set's choice, order and rows do not change from step to step: half of each fold is done once
        number = self._numbers[:, None]
        used = [word(number, GROUP, np.arange(words)), word(number, ORDER, np.arange(1))]
        if not sampler.members.crowded(self.slots):
            used.append(word(number, ROWS, np.arange(self.slots)))
        self._spread = spread(np.concatenate(used, axis=1))
        self._words = words

    @property
    def slots(self) -> int:
        """Rows drawn at once from one group."""
        return self._slots

    @property
    def dealt(self) -> Rows:
        """Which of these rows each set has, (sets, size)."""
        return (
            np.broadcast_to(np.arange(self.size), (len(self.set_numbers), self.size))
            if self._dealt is None
            else self._dealt
        )

    def draw(self, key: Words) -> tuple[Rows, Rows, Array | None]:
        """Chosen drawable groups (steps, sets), rows (steps, sets, size) and mask."""
        bits = mix(key[:, None, None], self._spread)
        choice = bits[:, :, : self._words]
        if self._different is not None:
            chosen = self._different.pick(choice)
        else:
            chosen = self.sampler.chooser.pick(choice[:, :, 0])
        steps, sets = chosen.shape
        order, first = bits[:, :, self._words], bits[:, :, self._words + 1 :]
        rows_bits = first.reshape(steps * sets, -1) if first.size else None
        keys = Keys(key, self._numbers, order.reshape(-1), rows_bits)
        rows, mask = self.sampler.draw(keys, chosen, self.slots)
        if self._dealt is None:
            return chosen, rows, mask
        dealt = rows[:, 0, self._dealt]
        counts = None if mask is None else mask[:, 0, self._dealt]
        if counts is not None:  # padding repeats the set's own first member
            dealt = np.where(counts, dealt, dealt[:, :, :1])
        return np.repeat(chosen, len(self.set_numbers), axis=1), dealt, counts


def _deal(sizes: Sequence[int]) -> tuple[Rows, int]:
    """Which of one group's rows each set has, (sets, most), and how many rows these are.

    They are dealt to the sets in turn, so that a short group shortens all sets alike; a set that has its rows is passed
    over, and what follows them repeats its first.
    """
    real = np.arange(max(sizes))[:, None] < np.asarray(sizes)
    slots = np.cumsum(real).reshape(real.shape) - 1
    return np.where(real, slots, slots[0]).T, int(real.sum())


class StepPlan:
    """The inactive factors of each set of a step.

    ``sizes`` has the rows of each set; the sets of a sampler differ in it only if they share one group.
    """

    def __init__(self, lists: Sequence[GroupSampler], sizes: Sequence[int], values: str) -> None:
        self.lists, self.samplers = list(lists), list(dict.fromkeys(lists))
        self.shape = (len(lists), max(sizes))
        self._parts = []
        for sampler in self.samplers:
            set_numbers = [number for number, other in enumerate(lists) if other is sampler]
            self._parts.append(Part(sampler, set_numbers, [sizes[number] for number in set_numbers], values))

    def slots(self, sampler: GroupSampler) -> int:
        """Rows drawn at once from one group of a sampler."""
        return next(part.slots for part in self._parts if part.sampler is sampler)

    def dealt(self, sampler: GroupSampler) -> Rows:
        """Which of the rows that are drawn at once from one group each of its sets has, (sets, size)."""
        return next(part.dealt for part in self._parts if part.sampler is sampler)

    def draw(self, key: Words, names: tuple[str, ...], table: FactorTable) -> Draw:
        """Draws of steps, given their keys (steps,); ``names`` are the factors to report."""
        drawn = [part.draw(key) for part in self._parts]
        if len(drawn) == 1:
            chosen, rows, mask = drawn[0]
            inactive = self.samplers[0].inactive(chosen, rows)
            if len(inactive) == len(names):
                return Draw(rows, {name: inactive[name] for name in names}, mask)
        shape = (len(key), *self.shape)
        indices, counts = np.empty(shape, np.int64), np.ones(shape, dtype=bool)
        codes = {name: no_codes(table, name, shape[:2]) for name in names}
        for part, (chosen, rows, mask) in zip(self._parts, drawn, strict=True):
            indices[:, part.set_numbers, : part.size] = rows
            indices[:, part.set_numbers, part.size :] = rows[:, :, :1]
            if mask is not None:
                counts[:, part.set_numbers, : part.size] = mask
            for name, values in part.sampler.inactive(chosen, rows).items():
                codes[name][:, part.set_numbers] = values
        return Draw(indices, codes, counts)


class StepPlans:
    """Alternative plans, of which each step takes one with equal chance.

    Attributes
    ----------
    names : tuple of str
        Factors that some set of some plan fixes, in table order.

    """

    def __init__(self, plans: Sequence[StepPlan], table: FactorTable) -> None:
        self.plans, self._table = list(plans), table
        inactive = {name for plan in plans for sampler in plan.samplers for name in sampler.names}
        self.names = tuple(name for name in table.names if name in inactive)

    def draw(self, key: Words, first: Rows | int = 0, count: Rows | int | None = None) -> Draw:
        """Draws of steps, given their keys (steps,); each takes one of ``count`` plans from a first one on."""
        if len(self.plans) == 1:
            draw = self.plans[0].draw(key, self.names, self._table)
        else:
            chosen = randint_below(fold(key, int(word(0, SUBSET, 0))), len(self.plans) if count is None else count)
            draw = self._draw_any(key, first + chosen)
        return Draw(draw.indices, draw.inactive) if draw.mask is not None and draw.mask.all() else draw

    def _draw_any(self, key: Words, which: Rows) -> Draw:
        shape = (len(key), *self.plans[0].shape)
        indices, mask = np.empty(shape, np.int64), np.ones(shape, dtype=bool)
        codes = {name: no_codes(self._table, name, shape[:2]) for name in self.names}
        for number in np.unique(which):
            steps = np.flatnonzero(which == number)
            part = self.plans[number].draw(key[steps], self.names, self._table)
            indices[steps] = part.indices
            mask[steps] = True if part.mask is None else part.mask
            for name in self.names:
                codes[name][steps] = part.inactive[name]
        return Draw(indices, codes, mask)


def no_codes(table: FactorTable, name: str, shape: tuple[int, ...]) -> Array:
    """Codes of sets that do not fix a factor: -1, or NaN for a continuous one."""
    if table[name].continuous:
        return np.full(shape, np.nan, dtype=np.float32)
    return np.full(shape, -1, dtype=np.int64)
