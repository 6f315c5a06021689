"""Which factors each set of a step fixes: as listed, or some of the listed ones at random."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Rows, Steps
from setsup.checks import check_integer
from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.samplers.arguments import inactive_factors
from setsup.samplers.schedules import Schedule
from setsup.samplers.spelling import spell, spell_keyword, spell_name

__all__ = ["FixedFactors", "Lists"]

Lists = Sequence[str] | Sequence[Sequence[str]]
"""Names of inactive factors, for all sets of a step or for each."""

_SUBSETS = 4096


@dataclass(frozen=True, slots=True)
class FixedFactors:
    """Names of the factors that the sets of a step fix, with equally likely alternatives.

    Attributes
    ----------
    lists : list of tuple of tuple of str
        Names for each set, by alternative; several only where some of the listed factors are fixed at random.
    first, count : tuple of int
        First alternative, and how many there are, for each value of ``num_fixed``.
    num_fixed : Schedule or None
        How many of the listed factors are fixed, by step; None for all.

    """

    lists: list[tuple[tuple[str, ...], ...]]
    first: tuple[int, ...] = (0,)
    count: tuple[int, ...] = (1,)
    num_fixed: Schedule | None = None

    @classmethod
    def read(
        cls,
        table: FactorTable,
        inactive: Lists | None,
        active: Sequence[str] | None,
        *,
        sets: int,
        unconstrained: int,
        num_fixed: Schedule | None,
        values: str,
        tolerance: Mapping[str, float],
    ) -> "FixedFactors":
        """From the arguments of :class:`SetSampler`."""
        if isinstance(inactive, str):
            inactive = [inactive]
        free = check_integer(unconstrained, "unconstrained", SamplerError, 0, sets)
        if isinstance(inactive, Sequence) and inactive and not any(isinstance(names, str) for names in inactive):
            if active is not None or num_fixed is not None or free or values != "independent":
                raise SamplerError(
                    f"{spell_keyword('inactive')} with one list per set requires {spell(values='independent')} and "
                    f"cannot be combined with {spell_keyword('active')}, {spell_keyword('num_fixed')} or "
                    f"{spell_keyword('unconstrained')}; leave those out, or pass one list for all sets"
                )
            if len(inactive) != sets:
                raise SamplerError(
                    f"{spell_name('inactive')} has {len(inactive)} lists for {spell(sets=sets)}; pass one list per set"
                )
            return cls([tuple(inactive_factors(table, names, None, tolerance) for names in inactive)])
        fixed = inactive_factors(table, inactive, active, tolerance)  # type: ignore[arg-type]
        if free and values != "independent":
            raise SamplerError(
                f"{spell(values=values)} requires the same factors in all sets; leave out "
                f"{spell_name('unconstrained')}, or pass {spell(values='independent')}"
            )
        if num_fixed is None:
            return cls([(fixed,) * (sets - free) + ((),) * free])
        subsets = [_subsets(fixed, count) for count in num_fixed.values]
        counts = [len(subset) for subset in subsets]
        lists = [(names,) * (sets - free) + ((),) * free for subset in subsets for names in subset]
        first = tuple(itertools.accumulate(counts[:-1], initial=0))
        return cls(lists, first, tuple(counts), num_fixed)

    def at(self, steps: Steps) -> tuple[Rows, Rows]:
        """First alternative, and how many there are, at steps."""
        stretch = np.zeros(len(steps), np.int64) if self.num_fixed is None else self.num_fixed.stretch(steps)
        return np.array(self.first)[stretch], np.array(self.count)[stretch]

    def at_step(self, step: int) -> tuple[int, int]:
        """Return the first alternative at one step, and how many there are."""
        stretch = 0 if self.num_fixed is None else bisect_right(self.num_fixed.starts, step) - 1
        return self.first[stretch], self.count[stretch]


def _subsets(fixed: tuple[str, ...], size: Any) -> list[tuple[str, ...]]:
    """Subsets of so many of the factors."""
    what = f"{spell_name('num_fixed')}, of {len(fixed)} listed factors,"
    size = check_integer(size, what, SamplerError, 0, len(fixed))
    if math.comb(len(fixed), size) > _SUBSETS:
        raise SamplerError(
            f"{spell_name('num_fixed')} allows more than {_SUBSETS:,} choices of {size} of the {len(fixed)} listed "
            "factors; list fewer factors"
        )
    return list(itertools.combinations(fixed, size))
