"""What a sampler draws, and what it never draws: known before any training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from setsup.errors import advice
from setsup.html import lines, never_raises
from setsup.samplers.overlap_report import OverlapEntry
from setsup.samplers.report_words import list_counts, name_sets, span, write_number
from setsup.samplers.row_arguments import weight_names, weight_words

__all__ = [
    "AnchorEntry",
    "Entry",
    "PairEntry",
    "Partners",
    "Report",
    "ReportEntry",
    "anchors_lost",
    "by_weight",
]


@dataclass(frozen=True)
class Entry:
    """One list of inactive factors.

    Attributes
    ----------
    inactive : str
        Names of the factors, or ``"nothing"``.
    groups, drawable : int
        Number of groups, and of those that can be drawn.
    smallest, largest : int
        Rows of the smallest and of the largest group; with a tolerance, of their largest neighbourhood.
    narrowest : int or None
        With a tolerance, rows of the smallest neighbourhood of a row.
    unreachable : int
        Known rows that are never drawn because their group is too small or left out, or no anchor is near.
    unknown, excluded : int
        Rows with an unknown value of an inactive factor, and rows left out by ``where`` or weights.
    log10_sets : float
        Decimal logarithm of the number of distinct sets.
    shared_rows : float
        Expected number of rows that two sets of a step have in common; of two steps, if only one set of a step fixes
        these factors.
    distinct : mapping of str to float
        Expected number of distinct values of each active factor within a set, without factors that are constant in
        every group.
    estimated : bool
        Whether ``distinct`` is an estimate from some of the groups, rows or draws.
    sets : list of int
        Numbers of the sets of a step that the entry describes, if sets have their own options; empty for all.

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
        lines = [f"inactive: {self.inactive}{name_sets(self.sets)}", f"  {groups}; {drawable} can be drawn"]
        lost = {
            "in groups too small or left out": self.unreachable,
            "with an unknown value": self.unknown,
            f"left out by {advice('where= and weights=', '--where and --weights')}": self.excluded,
        }
        lines.append(f"  rows never drawn: {list_counts(lost)}")
        if not math.isnan(self.log10_sets):
            shared = "" if math.isnan(self.shared_rows) else f"; two sets share {self.shared_rows:.3g} rows on average"
            lines.append(f"  distinct sets: {write_number(self.log10_sets)}{shared}")
        if self.distinct:
            kind = "about " if self.estimated else ""
            values = ", ".join(f"{name} {kind}{count:.1f}" for name, count in self.distinct.items())
            lines.append(f"  distinct values expected in a set: {values}")
        return lines


@dataclass(frozen=True)
class Partners:
    """Number of rows that satisfy a constraint with an anchor: the least, the most, and the mean over anchors."""

    constraint: str
    least: int
    most: int
    mean: float


@dataclass(frozen=True)
class AnchorEntry:
    """Anchors, and the rows that satisfy constraints with them.

    Attributes
    ----------
    inactive : str
        Factors by which anchors are grouped for ``choose``, or ``"nothing"``.
    anchors, groups : int
        Rows that can be anchors, and groups of them.
    partners : mapping of str to Partners
        For each role, such as ``positive``.
    lacking : mapping of str to int
        Rows that are not anchors because too few rows satisfy the constraint with them, for each role.
    unknown, excluded : int
        Rows that are not anchors because a value is unknown, or because of ``where``, weights and terms of the anchor
        alone.
    unreachable : int or None
        Rows that are never drawn in any role; None if another entry has it, or the table has too many rows.
    log10_sets : float
        Decimal logarithm of the number of anchors with a row for each role.
    sets : list of int
        Numbers of the sets of a step that the entry describes; empty for all.

    """

    inactive: str
    anchors: int
    groups: int
    partners: Mapping[str, Partners]
    lacking: Mapping[str, int]
    unknown: int
    excluded: int
    unreachable: int | None
    log10_sets: float
    sets: list[int] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Lines of the report."""
        groups = f", in {self.groups:,} groups of equal {self.inactive}" if self.groups > 1 else ""
        lines = [
            f"anchors{name_sets(self.sets)}: {self.anchors:,} rows{groups}",
            f"  rows that are not anchors: {anchors_lost(self.lacking, self.unknown, self.excluded)}",
        ]
        for role, partners in self.partners.items():
            mean = "" if partners.least == partners.most else f", {partners.mean:.4g} on average"
            lines.append(f"  {role}: {partners.constraint}")
            lines.append(f"    rows for an anchor: {span(partners.least, partners.most)}{mean}")
        if self.unreachable is not None:
            lines.append(f"  rows never drawn: {f'{self.unreachable:,}' if self.unreachable else 'none'}")
        lines.append(
            f"  distinct combinations of an anchor with {' and '.join(self.partners)}: {write_number(self.log10_sets)}"
        )
        return lines


def anchors_lost(lacking: Mapping[str, int], unknown: int, excluded: int) -> str:
    """Say how many rows are no anchors, and why."""
    lost = {f"without {'enough' if role == 'members' else 'a'} {role}": count for role, count in lacking.items()}
    filters = advice("where=, weights=", "--where, --weights")
    lost |= {"with an unknown value": unknown, f"left out by {filters} or terms of the anchor": excluded}
    return list_counts(lost)


@dataclass(frozen=True)
class PairEntry:
    """Pairs that differ in a number of factors.

    Attributes
    ----------
    k : int
        Factors that differ.
    chance : float
        Probability of this number.
    anchors : mapping of str to int
        Rows that have a partner, for every subset of factors; 0 if the subset is infeasible.
    rows : int
        Rows of the table, without those that have unknown values or that ``where`` leaves out.
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
        feasible = {names: rows for names, rows in self.anchors.items() if rows}
        if not feasible:
            return [f"k = {self.k}: infeasible, no rows differ in {_some(list(self.anchors))}"]
        if len(self.anchors) == 1:
            subsets = "the one subset of factors is feasible"
        else:
            every = "all" if len(feasible) == len(self.anchors) else f"{len(feasible):,} of"
            subsets = f"{every} {len(self.anchors):,} subsets of factors are feasible"
        lines = [f"k = {self.k}, with probability {self.chance:.3g}: {subsets}"]
        least, most = min(feasible, key=feasible.__getitem__), max(feasible, key=feasible.__getitem__)
        rows = f"{feasible[least]:,}"
        if feasible[least] != feasible[most]:
            rows = f"{rows} ({least}) to {feasible[most]:,} ({most})"
        lines.append(f"  rows with a partner: {rows} of {self.rows:,}; ordered pairs: {write_number(self.log10_pairs)}")
        infeasible = [names for names in self.anchors if names not in feasible]
        if infeasible:
            lines.append(f"  infeasible: {_some(infeasible)}")
        return lines


def _some(names: list[str]) -> str:
    more = f"; and {len(names) - 5:,} more" if len(names) > 5 else ""
    return "; ".join(f"({subset})" for subset in names[:5]) + more


ReportEntry = Entry | AnchorEntry | OverlapEntry
"""What is drawn, for some sets of a step or for all."""


@dataclass(frozen=True, repr=False)
class Report:
    """What a sampler will draw; prints as text, and :meth:`to_dict` gives plain data."""

    title: str
    entries: Sequence[ReportEntry]
    notes: list[str] = field(default_factory=list)
    pairs: list[PairEntry] = field(default_factory=list)

    def __str__(self) -> str:
        """Title, entries, pairs and notes, one per line."""
        lines = [self.title]
        for entry in (*self.entries, *self.pairs):
            lines += entry.lines()
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__

    @never_raises
    def _repr_html_(self) -> str:
        """Show the text in a notebook."""
        return lines(str(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; unknown figures are None."""
        plain = asdict(self)
        if not plain["pairs"]:
            del plain["pairs"]
        for entry in (*plain["entries"], *plain.get("pairs", ())):
            entry.update({key: None for key, value in entry.items() if isinstance(value, float) and math.isnan(value)})
        return plain


def by_weight(report: Report, arguments: Mapping[str, Any]) -> Report:
    """The report of a sampler with what its weights are; what they are of is not listed among what varies."""
    if not (words := weight_words(arguments.get("weights"))):
        return report
    names = weight_names(arguments)
    entries = [
        replace(entry, distinct={name: count for name, count in entry.distinct.items() if name not in names})
        if isinstance(entry, Entry)
        else entry
        for entry in report.entries
    ]
    return replace(report, entries=entries, notes=[f"rows are drawn by weight: {words}", *report.notes])
