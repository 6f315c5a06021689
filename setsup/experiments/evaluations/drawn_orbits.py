"""Orbits that an evaluation draws, with their members and canonical rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.checks import check_integer
from setsup.errors import SetsupError
from setsup.factors import FactorTable
from setsup.factors.factor import Level
from setsup.samplers import OrbitSampler
from setsup.samplers.groups.canonical import canonical_rows

__all__ = ["DrawnOrbits", "draw_orbits"]

Rows = npt.NDArray[np.int64]

_MOST = 10_000  # rows whose distances, 50 million, are kept


@dataclass(frozen=True, slots=True)
class DrawnOrbits:
    """Some orbits of a table, without repeats.

    Attributes
    ----------
    names : tuple of str
        What the members of an orbit share, in words, such as ``"shape = cube"``.
    sizes : (orbits,) int64
        Members that each orbit has, drawn or not.
    rows : (n,) int64
        Drawn members of all orbits, ascending in each.
    orbits : (n,) int64
        Number of the drawn orbit of each row, ascending from 0.
    canonical : (orbits,) int64
        Canonical row of each orbit, drawn or not; -1 if the orbit has none, or none was requested.
    asked : str, mapping or None
        Definition of canonical members.
    lacking, among : int
        Numbers of orbits of the table: without a canonical row, and in all.

    """

    names: tuple[str, ...]
    sizes: Rows
    rows: Rows
    orbits: Rows
    canonical: Rows
    asked: str | Mapping[str, Level] | None
    lacking: int
    among: int

    def __len__(self) -> int:
        """Count the orbits."""
        return len(self.names)

    @property
    def others(self) -> npt.NDArray[np.bool_]:
        """Whether each drawn member, (n,), is of an orbit with a canonical row, and not that row itself."""
        canonical = self.canonical[self.orbits]
        return np.asarray((canonical >= 0) & (canonical != self.rows))

    def members(self, orbit: int) -> Rows:
        """Drawn members of an orbit, without the canonical one."""
        rows: Rows = self.rows[self.orbits == orbit]
        others: Rows = rows[rows != self.canonical[orbit]]
        return others

    def note(self) -> str:
        """How many orbits lack a canonical row; empty where none does, or none was asked for."""
        if self.asked is None or not self.lacking:
            return ""
        if self.lacking == self.among:
            return (
                f"none of the {self.among:,} orbits has a row with canonical={self.asked!r}; results that require "
                "a canonical member are omitted"
            )
        here = int((self.canonical < 0).sum())
        return (
            f"{self.lacking:,} of {self.among:,} orbits lack a row with canonical={self.asked!r}; results that "
            f"require a canonical member omit {here:,} of the {len(self):,} drawn orbits"
        )


def draw_orbits(
    table: FactorTable,
    orbit: Sequence[str],
    canonical: str | Mapping[str, Level] | None = None,
    *,
    count: int = 100,
    members: int = 64,
    seed: int = 0,
) -> DrawnOrbits:
    """Draw orbits without repeats, and members of each without repeats.

    Parameters
    ----------
    table : FactorTable
        Of the dataset.
    orbit : sequence of str
        Factors whose combinations are the orbits.
    canonical : str or mapping, optional
        Canonical member, as :class:`setsup.OrbitSampler` takes it. Orbits may lack it.
    count : int
        Orbits; all where there are fewer.
    members : int
        Of each orbit at most; all where it has fewer.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    DrawnOrbits

    Raises
    ------
    SetsupError, SamplerError, FactorError
        When the factor is unknown, there is one orbit only, all have one member, or more than 10,000 rows are drawn.

    Examples
    --------
    >>> table = FactorTable.from_values({"digit": [4, 4, 4, 7, 7, 9], "take": [2, 1, 0, 0, 1, 1]})
    >>> drawn = draw_orbits(table, ["digit"], "argmin:take")
    >>> sorted(zip(drawn.names, drawn.sizes.tolist(), drawn.canonical.tolist()))
    [('digit = 4', 3, 2), ('digit = 7', 2, 3), ('digit = 9', 1, 5)]

    """
    count = check_integer(count, "the number of orbits", SetsupError, 2)
    members = check_integer(members, "the number of members", SetsupError, 2)
    groups = table.group_by(orbit)
    by = ", ".join(orbit)
    if len(groups) < 2:
        raise SetsupError(
            f"the factors of an orbit ({by}) divide the rows into fewer than two orbits, but distances between "
            "orbits require at least two; choose other factors"
        )
    largest = int(groups.sizes.max())
    if largest < 2:
        raise SetsupError(
            f"all {len(groups):,} orbits of {by} have only one member, but distances require two; choose fewer factors"
        )
    sets, size = min(count, len(groups)), min(members, largest)
    sampler = OrbitSampler(
        table, list(orbit), sets, size, on_small_group="short", seed=seed, stream="orbits that are measured"
    )
    draw = sampler[0]
    kept = np.ones(draw.indices.shape, dtype=np.bool_) if draw.mask is None else draw.mask
    if kept.sum() > _MOST:
        raise SetsupError(
            f"{sets:,} orbits of up to {size:,} members have {kept.sum():,} rows, but distances can be computed for at "
            f"most {_MOST:,}; draw fewer orbits, or fewer members of each"
        )
    rows, which = draw.indices[kept], np.nonzero(kept)[0]
    order = np.lexsort((rows, which))
    numbers = groups.of_rows()[draw.indices[:, 0]]
    canonical_of_groups = np.full(len(groups), -1) if canonical is None else canonical_rows(table, groups, canonical)
    return DrawnOrbits(
        names=tuple(groups.describe(table, int(number)) for number in numbers),
        sizes=groups.sizes[numbers],
        rows=rows[order],
        orbits=which[order].astype(np.int64),
        canonical=canonical_of_groups[numbers],
        asked=canonical,
        lacking=int((canonical_of_groups < 0).sum()),
        among=len(groups),
    )
