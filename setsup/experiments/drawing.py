"""Settings of samplers."""

from dataclasses import dataclass, replace
from typing import Literal

from setsup.factors import FactorTable
from setsup.samplers import SetSampler

__all__ = ["Sets"]

_SMOKE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """Sets in which some factors are held; see :class:`setsup.SetSampler`.

    Attributes
    ----------
    inactive : tuple of str
        Factors that a set holds.
    size : int
        Rows a set.
    sets : int
        Sets a step; two make a pair.
    unconstrained : int
        How many of the last sets hold nothing.
    small : str
        What happens to groups of fewer rows than a set: ``short`` takes all of them.
    where : str, optional
        Expression over the factors that drawn rows satisfy.

    """

    inactive: tuple[str, ...]
    size: int = 32
    sets: int = 2
    unconstrained: int = 0
    small: Literal["short", "replace", "drop", "error"] = "short"
    where: str | None = None

    def sampler(self, table: FactorTable, seed: int) -> SetSampler:
        """The sampler of a run."""
        return SetSampler(
            table,
            inactive=self.inactive,
            size=self.size,
            sets=self.sets,
            unconstrained=self.unconstrained,
            small=self.small,
            where=self.where,
            seed=seed,
        )

    def shrunk(self) -> "Sets":
        """Sets of at most eight."""
        return replace(self, size=min(self.size, _SMOKE))
