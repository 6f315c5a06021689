"""Which factors the rows of a pair may differ in: subsets of the compared ones, and how many factors by step."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Steps, Words
from setsup.checks import is_integer
from setsup.errors import SamplerError, abbreviate, advice
from setsup.random import randint_below
from setsup.samplers.report_words import span
from setsup.samplers.schedules import Schedule
from setsup.samplers.spelling import spell_name

__all__ = ["Subsets", "read_sizes"]

_SUBSETS = 1 << 16


class Subsets:
    """Subsets of some factors, in the order of their sizes, drawn by size first.

    `names` of all compared factors; `among`: places of those that may differ; `sizes`: by step, the least and the most
    factors that do.

    Attributes
    ----------
    chosen : (subsets, factors) bool
        Factors of each subset.
    feasible : (some,) int64
        Numbers of the subsets that are drawn.

    """

    def __init__(self, names: Sequence[str], among: Sequence[int], sizes: Schedule) -> None:
        self.names, self.sizes = list(names), sizes
        asked = sorted({size for low, high in sizes.values for size in range(low, high + 1)})
        count = sum(math.comb(len(among), size) for size in asked)
        if count > _SUBSETS:
            raise SamplerError(
                f"choosing {span(asked[0], asked[-1])} of {len(among)} factors gives {count:,} subsets, more than the "
                f"limit of {_SUBSETS:,}; lower {spell_name('k')}, or list fewer factors in {spell_name('among')}"
            )
        chosen = [subset for size in asked for subset in itertools.combinations(among, size)]
        self.chosen = np.zeros((len(chosen), len(names)), dtype=bool)
        for number, subset in enumerate(chosen):
            self.chosen[number, list(subset)] = True

    def keep(self, feasible: Bools) -> None:
        """Draw only some subsets, (subsets,) bool; at each step there must be one."""
        self.feasible = np.flatnonzero(feasible)
        feasible_sizes, self._counts = np.unique(self.chosen.sum(axis=1)[self.feasible], return_counts=True)
        self._starts = np.cumsum(self._counts) - self._counts
        # of the feasible sizes, each stretch of steps has a run
        ends = np.array(self.sizes.values)
        self._first, last = (
            np.searchsorted(feasible_sizes, ends[:, 0]),
            np.searchsorted(feasible_sizes, ends[:, 1], side="right"),
        )
        self._many = last - self._first
        if not self._many.all():
            index = int(np.argmin(self._many))
            raise SamplerError(
                f"{spell_name('k')} is {span(*self.sizes.values[index])} from step {self.sizes.starts[index]:,} on, "
                "but no two rows differ in that many factors; choose from "
                f"{', '.join(map(str, feasible_sizes.tolist()))}"
            )

    def draw(self, steps: Steps, bits: Words) -> Rows:
        """Numbers of subsets (steps, pairs), from bits (steps, pairs, 2)."""
        stretch = self.sizes.stretch(steps)[:, None]
        number = self._first[stretch] + randint_below(bits[..., 0], self._many[stretch])
        return np.asarray(self.feasible[self._starts[number] + randint_below(bits[..., 1], self._counts[number])])

    def shares(self) -> Reals:
        """Chance of each feasible subset, where all steps have the same sizes."""
        return np.asarray(1 / np.repeat(self._counts, self._counts) / len(self._counts))

    def chance(self, size: int) -> float:
        """Chance of a feasible size, at the first steps that have it."""
        spans = zip(self._many.tolist(), self.sizes.values, strict=True)
        many: int = next(many for many, (low, high) in spans if low <= size <= high)
        return 1 / many

    def words(self, mask: Bools) -> str:
        """Names of some factors, (factors,) bool."""
        return ", ".join(itertools.compress(self.names, mask.tolist()))

    def by_step(self) -> list[str]:
        """How k changes with the step."""
        if not self.sizes.changes:
            return []
        first, *others = zip(self.sizes.starts, self.sizes.values, strict=True)
        words = [span(*first[1]), *(f"from step {start:,} on {span(*ends)}" for start, ends in others)]
        return [f"k is {', '.join(words)}; probabilities are those at the first steps that have this k"]


def read_sizes(k: Any, among: int, most: int) -> Schedule:
    """Least and most factors that differ, by step, of `among` factors; by default from 1 to `most`."""
    return Schedule.read(k, advice("k", "--pairs"), lambda value, what: _check_k(value, among, most, what))


def _check_k(k: Any, among: int, most: int, what: str) -> tuple[int, int]:
    if k is None:
        return 1, min(most, among)
    if is_integer(k):
        k = (k, k)
    if not isinstance(k, Sequence) or len(k) != 2 or not all(is_integer(number) for number in k):
        raise SamplerError(
            f"{what} must be a number of factors, or a minimum and a maximum, such as (1, 3), not {abbreviate(k)}"
        )
    low, high = int(k[0]), int(k[1])
    if low > high:
        raise SamplerError(f"{what} must be a minimum and a maximum, but the minimum {low} exceeds the maximum {high}")
    if not 1 <= low <= high <= among:
        raise SamplerError(
            f"{what} must be from 1 to {among}, the number of factors that may differ, not {abbreviate(k)}"
        )
    return low, high
