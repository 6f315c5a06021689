"""What a sampler draws, and what it never can: known before any training."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from setsup.html import lines, never_raises

__all__ = ["Entry", "PairEntry", "Report", "span"]


def span(least: int, most: int) -> str:
    """Write numbers from the least to the most, such as ``3 to 1,000``; one where they are equal."""
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


@dataclass(frozen=True)
class Entry:
    """One list of inactive factors.

    Attributes
    ----------
    inactive : str
        Names of the factors, or ``"nothing"``.
    groups, drawable : int
        Groups, and those that can be drawn from.
    smallest, largest : int
        Rows of the smallest and of the largest group; for a tolerance, of their largest neighbourhood.
    narrowest : int or None
        For a tolerance, rows of the smallest neighbourhood of a row.
    unreachable : int
        Known rows that are never drawn, because their group is too small or left out, or no anchor is near.
    unknown, excluded : int
        Rows with an unknown value of an inactive factor, and rows left out by ``where`` or weights.
    log10_sets : float
        Decimal logarithm of the number of distinct sets.
    shared_rows : float
        Rows that two sets of a step are expected to have in common; where one set of a step fixes these factors, two
        sets of different steps.
    distinct : mapping of str to float
        Expected number of distinct values of each active factor within a set; factors that are constant in every
        group are left out.
    estimated : bool
        Whether ``distinct`` is an estimate, from some groups or rows, or from some draws.
    sets : list of int
        Numbers of the sets of a step that this is about, where they have options of their own; empty for all.

    """

    inactive: str
    groups: int
    drawable: int
    smallest: int
    largest: int
    unreachable: int = 0
    unknown: int = 0
    excluded: int = 0
    log10_sets: float = math.nan
    shared_rows: float = math.nan
    distinct: Mapping[str, float] = field(default_factory=dict)
    estimated: bool = False
    narrowest: int | None = None
    sets: list[int] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Lines of the report."""
        rows = span(self.smallest, self.largest)
        each = " each" if self.groups > 1 else ""
        drawable = "all" if self.drawable == self.groups else f"{self.drawable:,}"
        if self.narrowest is None:
            groups = f"groups of rows with equal values: {self.groups:,}, of {rows} rows{each}"
        else:
            least = "" if self.narrowest == self.largest else f"{self.narrowest:,} to "
            groups = f"groups: {self.groups:,}; {least}{self.largest:,} rows within the tolerance of a row"
        which = f" (set{'s' * (len(self.sets) > 1)} {', '.join(map(str, self.sets))})" if self.sets else ""
        found = [f"inactive: {self.inactive}{which}", f"  {groups}; {drawable} can be drawn"]
        lost = {
            "in groups too small or left out": self.unreachable,
            "with an unknown value": self.unknown,
            "left out by where or weights": self.excluded,
        }
        never = [f"{count:,} {why}" for why, count in lost.items() if count]
        found.append(f"  rows never drawn: {', '.join(never) or 'none'}")
        if not math.isnan(self.log10_sets):
            shared = "" if math.isnan(self.shared_rows) else f"; two sets share {self.shared_rows:.3g} rows on average"
            number = f"{10**self.log10_sets:,.0f}" if self.log10_sets < 6 else f"about 10^{self.log10_sets:.1f}"
            found.append(f"  distinct sets: {number}{shared}")
        if self.distinct:
            kind = "about " if self.estimated else ""
            values = ", ".join(f"{name} {kind}{count:.1f}" for name, count in self.distinct.items())
            found.append(f"  distinct values expected in a set: {values}")
        return found


@dataclass(frozen=True)
class PairEntry:
    """Pairs that differ in so many factors.

    Attributes
    ----------
    k : int
        Factors that differ.
    chance : float
        Probability of this number of factors.
    anchors : mapping of str to int
        Rows that have a partner, for every subset of factors; 0 where a subset is infeasible.
    rows : int
        Rows of all, without those with unknown values and those that ``where`` leaves out.
    log10_pairs : float
        Decimal logarithm of the number of ordered pairs.

    """

    k: int
    chance: float
    anchors: Mapping[str, int]
    rows: int
    log10_pairs: float

    def lines(self) -> list[str]:
        """Lines of the report."""
        able = {names: rows for names, rows in self.anchors.items() if rows}
        if not able:
            return [f"k = {self.k}: infeasible, no rows differ in {_some(list(self.anchors))}"]
        subsets = f"all {len(able):,}" if len(able) == len(self.anchors) else f"{len(able):,} of {len(self.anchors):,}"
        found = [f"k = {self.k}, with probability {self.chance:.3g}: {subsets} subsets of factors are feasible"]
        least, most = min(able, key=able.__getitem__), max(able, key=able.__getitem__)
        span = (
            f"{able[least]:,}" if able[least] == able[most] else f"{able[least]:,} ({least}) to {able[most]:,} ({most})"
        )
        number = f"{10**self.log10_pairs:,.0f}" if self.log10_pairs < 6 else f"about 10^{self.log10_pairs:.1f}"
        found.append(f"  rows with a partner: {span} of {self.rows:,}; ordered pairs: {number}")
        infeasible = [names for names in self.anchors if names not in able]
        if infeasible:
            found.append(f"  infeasible: {_some(infeasible)}")
        return found


def _some(names: list[str]) -> str:
    more = f"; and {len(names) - 5:,} more" if len(names) > 5 else ""
    return "; ".join(f"({subset})" for subset in names[:5]) + more


@dataclass(frozen=True, repr=False)
class Report:
    """What a sampler will draw: it prints as text, and :meth:`to_dict` gives plain data."""

    title: str
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)
    pairs: list[PairEntry] = field(default_factory=list)

    def __str__(self) -> str:
        """Title, entries, pairs and notes, one per line."""
        lines = [self.title]
        for entry in self.entries:
            lines += entry.lines()
        for pairs in self.pairs:
            lines += pairs.lines()
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__

    @never_raises
    def _repr_html_(self) -> str:
        """Show the text in a notebook."""
        return lines(str(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what is not known is None."""
        found = asdict(self)
        if not found["pairs"]:
            del found["pairs"]
        for entry in (*found["entries"], *found.get("pairs", ())):
            entry.update({key: None for key, value in entry.items() if isinstance(value, float) and math.isnan(value)})
        return found
