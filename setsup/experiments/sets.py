"""Settings of the sampler of sets."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from setsup.datasets import Dataset
from setsup.errors import SetsupError
from setsup.factors import FactorTable
from setsup.random import fold, stream_key
from setsup.samplers import SetSampler

__all__ = ["Sets"]

_SMOKE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """Sets in which some factors are inactive; see :class:`setsup.SetSampler`.

    Attributes
    ----------
    inactive : tuple of str
        Factors fixed in each set.
    size : int
        Set size.
    sets : int
        Sets per step; two form a pair.
    unconstrained : int
        Leave the last N sets unconstrained.
    small : str
        What to do with groups that have fewer rows than a set; ``short`` uses all of their rows.
    where : str, optional
        Expression over the factors that drawn rows satisfy.
    pool : int, optional
        Draw from only this many rows of each group of equal inactive factors, the same rows in all runs; 1,031 in ABC's
        published code. Unconstrained sets draw from the rows of all groups.

    """

    inactive: tuple[str, ...]
    size: int = 32
    sets: int = 2
    unconstrained: int = 0
    small: Literal["short", "replace", "drop", "error"] = "short"
    where: str | None = None
    pool: int | None = None

    def build(self, dataset: Dataset, seed: int) -> SetSampler:
        """Build the sampler of a run."""
        return SetSampler(
            dataset.factors,
            inactive=self.inactive,
            size=self.size,
            sets=self.sets,
            unconstrained=self.unconstrained,
            on_small_group=self.small,
            where=self.where,
            weights=self._pooled(dataset.factors),
            seed=seed,
        )

    def _pooled(self, table: FactorTable) -> npt.NDArray[np.float64] | None:
        """1 for the rows of pools and 0 for others, (rows,)."""
        if self.pool is None:
            return None
        if self.pool < 1:
            raise SetsupError(f"pool must be at least 1 (a number of rows), not {self.pool}")
        group = table.group_by(self.inactive, self.where).of_rows()
        # records of the published data are shuffled, so the first ones are arbitrary
        order = np.lexsort((fold(stream_key(0, "pool"), np.arange(len(table), dtype=np.uint64)), group))
        first = np.searchsorted(group[order], group[order])
        pooled = np.zeros(len(table))
        pooled[order[np.arange(len(order)) - first < self.pool]] = 1
        return np.where(group >= 0, pooled, 0)

    def shrunk(self) -> "Sets":
        """Return the settings with sets of at most eight rows."""
        return replace(self, size=min(self.size, _SMOKE))
