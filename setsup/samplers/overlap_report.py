"""The entry of a report about pairs of views: how many lie in the bands, and what is drawn of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from setsup.errors import advice
from setsup.html import counted
from setsup.samplers.report_words import list_counts, name_sets

__all__ = ["OverlapEntry"]


@dataclass(frozen=True)
class OverlapEntry:
    """Pairs of views in the bands, and the sets that begin with them.

    Attributes
    ----------
    bands : str
        The bands, and the direction in which pairs satisfy them.
    units : str
        What sets are called, such as ``"chains of 3 views"``.
    measured, unknown : int
        Measured pairs, and those whose overlap is unknown.
    pairs : int
        Ordered pairs in the bands.
    one_way, untried : int
        Pairs that are left out because their other direction does not lie in the bands, and those of them whose other
        direction was not tried; 0 unless both directions must.
    first_pairs, without_set : int
        Pairs that may come first, and those for which the search found no set.
    scenes, drawable : int
        Scenes of the table, and those with a set.
    choose : str
        How the first pair is chosen.
    unreachable, uncompared, excluded : int
        Rows that are never drawn: in none of the sets, not among the views of the table, and left out by ``where`` or
        weights.
    least, largest : float
        Smallest and largest chance of a drawn view in a step.
    views : mapping of int to float
        Chance of each row in a step, if at most 64 rows are drawn; others have those of ``Sampler.reach``.
    fallback : float
        Chance that all attempts at a set fail.
    estimated : bool
        Whether chances are estimates from draws.
    sets : list of int
        Numbers of the sets of a step that the entry describes; empty for all.

    """

    bands: str
    units: str
    measured: int
    unknown: int
    pairs: int
    one_way: int
    untried: int
    first_pairs: int
    without_set: int
    scenes: int
    drawable: int
    choose: str
    unreachable: int
    uncompared: int
    excluded: int
    least: float
    largest: float
    fallback: float
    estimated: bool
    views: Mapping[int, float] = field(default_factory=dict)
    sets: list[int] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Lines of the report."""
        about = "about " if self.estimated else ""
        unknown = f"; of {self.unknown:,} the overlap is unknown" if self.unknown else ""
        lines = [
            f"pairs of views{name_sets(self.sets)}: {self.pairs:,}, with {self.bands}",
            f"  measured: {counted(self.measured, 'ordered pair')} in {counted(self.scenes, 'scene')}{unknown}",
        ]
        if self.one_way:
            untried = f", which was not tried for {self.untried:,} of them" if self.untried else ""
            lines.append(f"  left out by their other direction: {counted(self.one_way, 'pair')}{untried}")
        lost = f"; {self.without_set:,} others begin none of the {self.units}" if self.without_set else ""
        lines.append(f"  first pairs: {self.first_pairs:,} in {counted(self.drawable, 'scene')}, {self.choose}{lost}")
        never = {
            "in none of the sets": self.unreachable,
            "not among the views that were compared": self.uncompared,
            f"left out by {advice('where= and weights=', '--where and --weights')}": self.excluded,
        }
        lines.append(f"  rows never drawn: {list_counts(never)}")
        chance = (
            f"{self.least:.3g}" if math.isclose(self.least, self.largest) else f"{self.least:.3g} to {self.largest:.3g}"
        )
        lines.append(f"  chance of a view in a step: {about}{chance}")
        if self.fallback:
            lines.append(f"  chance that all attempts at a set fail: {about}{self.fallback:.3g}")
        return lines
