"""What a sampler can draw: the chances of its groups and rows, or the reasons why they are never drawn."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Reals, Rows
from setsup.checks import check_integer
from setsup.errors import RowError
from setsup.factors.column_storage import check_rows
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.html import counted

__all__ = ["Reach", "ReachedGroups", "Reason", "RowReach", "SetReach"]

_LISTED = 20  # groups that are never drawn, in plain data


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is never drawn, and the option that would change that."""

    text: str
    option: str


UNKNOWN = Reason("the value of a fixed factor is unknown", "fill in the values, or fix other factors")
LEFT_OUT = Reason("where= or weights= leaves it out", "change where= or weights=")
NO_REASON = Reason("this sampler does not say why", "")
NOT_COUNTED = "the chance of a row depends on the other rows of its sets, and is not computed"


@dataclass(frozen=True, eq=False)
class ReachedGroups:
    """Groups from which some sets of a step are drawn.

    Attributes
    ----------
    what : str
        Names of the factors that members share, or another description of the groups.
    sets : tuple of int
        Numbers of the sets; empty for all.
    groups : Groups
        Rows of each group.
    chance : (groups,) float64
        Chance that a step has a set of the group: 0 for groups that are never drawn, NaN if unknown.
    reasons : tuple of Reason
        Reasons why groups are never drawn.
    reason : (groups,) int8
        Index into `reasons` for each group, -1 for groups that are drawn.
    estimated : bool
        Whether ``chance`` is an estimate from trials.
    unreached : int
        Number of rows of drawn groups that are never drawn themselves.
    fixed : tuple of str
        Factors that members share, if one is shared within a tolerance; empty if they are those of the groups.

    """

    what: str
    sets: tuple[int, ...]
    groups: Groups
    chance: Reals
    reasons: tuple[Reason, ...] = ()
    reason: Array | None = None
    estimated: bool = False
    unreached: int = 0
    fixed: tuple[str, ...] = ()

    @classmethod
    def drawn_or_never(
        cls, groups: Groups, chance: Reals, drawn: Bools, reason: Reason, unreached: int = 0
    ) -> "ReachedGroups":
        """Groups of which some are drawn, (groups,) bool, and the others never, for one reason."""
        names, number = ", ".join(groups.names) or "nothing", np.where(drawn, -1, 0).astype(np.int8)
        return cls(names, (), groups, chance, (reason,), number, unreached=unreached)

    @property
    def drawable(self) -> Bools:
        """Groups that are drawn, (groups,) bool."""
        return np.ones(len(self.groups), bool) if self.reason is None else self.reason < 0

    def never(self) -> list[tuple[Reason, Rows]]:
        """Return the numbers of the groups that are never drawn, ascending, by reason."""
        if self.reason is None:
            return []
        by_reason = [(reason, np.flatnonzero(self.reason == number)) for number, reason in enumerate(self.reasons)]
        return [(reason, groups) for reason, groups in by_reason if len(groups)]


@dataclass(frozen=True, slots=True)
class SetReach:
    """Chance of rows in some sets of a step.

    `chance` takes row numbers (n,) and gives (n,) float64: that all of these sets together have the row, which no two
    do; or, unless ``together``, that each has, independently of the others. NaN where it is not known.

    `thin` takes row numbers and, for each of these sets, the probability with which it keeps a position, and gives the
    chance then. Without it, a set has a row once at most, and sets that are drawn together are alike.
    """

    sets: tuple[int, ...]
    chance: Callable[[Rows], Reals]
    together: bool = False
    thin: Callable[[Rows, Sequence[float]], Reals] | None = None
    thin_estimated: bool = False
    """Whether `thin` is an approximation where `chance` is not."""

    def apply_thinning(self, keep_prob: Mapping[int, float]) -> "list[SetReach]":
        """The same sets where each position is kept with a probability, independently; by number of the set, else 1."""
        probs = [keep_prob.get(number, 1.0) for number in self.sets]
        if all(prob == 1 for prob in probs):
            return [self]
        if self.together:
            return [self._keep_some(self.sets, probs)]
        by_prob = {prob: tuple(n for n in self.sets if keep_prob.get(n, 1.0) == prob) for prob in dict.fromkeys(probs)}
        return [self._keep_some(sets, [prob] * len(sets)) for prob, sets in by_prob.items()]

    def _keep_some(self, sets: tuple[int, ...], keep_probs: Sequence[float]) -> "SetReach":
        chance, earlier_thin = self.chance, self.thin

        def thin(rows: Rows, shares: Sequence[float]) -> Reals:
            # sets that are independent keep alike, and may be fewer by now
            probs = [prob * share for prob, share in zip(keep_probs, shares, strict=False)]
            return chance(rows) * (sum(probs) / len(probs)) if earlier_thin is None else earlier_thin(rows, probs)

        return replace(self, sets=sets, chance=lambda rows: thin(rows, [1.0] * len(sets)), thin=thin)


@dataclass(frozen=True, slots=True)
class RowReach:
    """Chance that a step draws one row, the expected number of steps until then, and reasons if it is never drawn."""

    row: int
    chance: float
    wait: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Reach:
    """What a sampler can draw at one step, over all seeds; prints as text, and :meth:`to_dict` gives plain data.

    Attributes
    ----------
    title : str
        Description of the sampler.
    table : FactorTable
        Its table.
    groups : sequence of ReachedGroups
        Groups from which sets are drawn, for each list of factors.
    notes : list of str
        Notes on the figures.
    estimated : bool
        Whether the chances of some rows are approximations.

    Examples
    --------
    >>> import setsup
    >>> table = setsup.FactorTable.from_values({"who": ["ann"] * 4 + ["bob"] * 3 + ["eve"]})
    >>> reach = setsup.SetSampler(table, ["who"], sets=1, size=2, on_small_group="drop").reach()
    >>> reach.chance([0, 4, 7]).round(3).tolist()
    [0.25, 0.333, 0.0]
    >>> reach.row(7).reasons[0].option
    "lower size, or pass on_small_group='short' or on_small_group='replace'"

    """

    title: str
    table: FactorTable
    groups: Sequence[ReachedGroups]
    blocks: Sequence[Sequence[Sequence[SetReach]]] | None = None
    """Independent parts of a step; of each, equally likely alternatives; of each, sets that are independent."""
    notes: list[str] = field(default_factory=list)
    estimated: bool = False

    def chance(self, rows: npt.ArrayLike) -> Reals:
        """Return the chance that a step draws each of some rows; (n,) float64, NaN if unknown.

        Raises
        ------
        RowError
            If a row number is out of range.

        """
        wanted = check_rows(rows, len(self.table)).reshape(-1)
        if self.blocks is None:
            return np.full(len(wanted), np.nan)
        missed = np.zeros(len(wanted))  # logarithms of the chances that a row is not drawn, so that small ones count
        with np.errstate(divide="ignore"):
            for alternatives in self.blocks:
                drawn = np.mean([_any_of(sets, wanted) for sets in alternatives], axis=0)
                missed += np.log1p(-np.minimum(drawn, 1.0))
        return np.asarray(-np.expm1(missed) + 0.0)  # not −0

    def row(self, row: int) -> RowReach:
        """Return the chance of one row, its expected wait in steps, and the reasons if it is never drawn.

        Raises
        ------
        RowError
            If the row number is out of range.

        """
        row = check_integer(row, "the number of a row", RowError)
        chance = float(self.chance([row])[0])
        reasons = self._why(row) if chance == 0 else ()
        return RowReach(row, chance, math.inf if chance == 0 else 1 / chance, reasons)

    def _why(self, row: int) -> tuple[Reason, ...]:
        reasons = []
        for part in self.groups:
            group, position = (int(numbers[0]) for numbers in part.groups.find(self.table, np.array([row])))
            if position >= 0:
                number = -1 if part.reason is None else int(part.reason[group])
                reasons.append(part.reasons[number] if number >= 0 else part.reasons[-1] if part.reasons else NO_REASON)
            else:
                values = [self.table.codes(name, row) for name in part.fixed or part.groups.names]
                unknown = any(bool(np.isnan(value) if value.dtype.kind == "f" else value < 0) for value in values)
                reasons.append(UNKNOWN if unknown else LEFT_OUT)
        return tuple(dict.fromkeys(reasons)) or (NO_REASON,)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: how many groups are drawn, the first that never are, and why."""
        groups = []
        for part in self.groups:
            chance = part.chance[part.drawable]
            known = len(chance) and not np.isnan(chance).all()
            groups.append(
                {
                    "what": part.what,
                    "sets": list(part.sets),
                    "groups": len(part.groups),
                    "drawable": int(part.drawable.sum()),
                    "least_chance": float(chance.min()) if known else None,
                    "largest_chance": float(chance.max()) if known else None,
                    "estimated": part.estimated,
                    "unknown_rows": part.groups.unknown,
                    "excluded_rows": part.groups.excluded,
                    "unreached_rows": part.unreached,
                    "unreached": f"{part.reasons[-1].text}; {part.reasons[-1].option}" if part.unreached else "",
                    "never": [
                        {
                            "reason": reason.text,
                            "option": reason.option,
                            "groups": len(numbers),
                            "rows": int(part.groups.sizes[numbers].sum()),
                            "first": [part.groups.describe(self.table, int(number)) for number in numbers[:_LISTED]],
                        }
                        for reason, numbers in part.never()
                    ],
                }
            )
        return {"title": self.title, "groups": groups, "notes": self.notes, "estimated": self.estimated}

    def __str__(self) -> str:
        """Title, groups with their chances, reasons and notes, one per line."""
        lines = [self.title]
        for part in self.to_dict()["groups"]:
            sets = f" (set{'s' * (len(part['sets']) > 1)} {', '.join(map(str, part['sets']))})" if part["sets"] else ""
            lines.append(f"groups of {part['what']}{sets}: {part['drawable']:,} of {part['groups']:,} are drawn")
            if part["least_chance"] is not None:
                low, high = part["least_chance"], part["largest_chance"]
                about = "about " if part["estimated"] else ""
                chance = f"{low:.3g}" if math.isclose(low, high) else f"{low:.3g} to {high:.3g}"
                lines.append(f"  chance of each in a step: {about}{chance}")
            for never in part["never"]:
                first = "; ".join(never["first"][:5])
                lost = f"{counted(never['groups'], 'group')}, {counted(never['rows'], 'row')}"
                lines.append(f"  never drawn: {lost}: {never['reason']}")
                lines.append(f"    first: {first}")
                if never["option"]:
                    lines.append(f"    {never['option']}")
            for count, reason in (
                (part["unknown_rows"], UNKNOWN),
                (part["excluded_rows"], LEFT_OUT),
            ):
                if count:
                    lines.append(f"  rows in no group: {count:,}: {reason.text}; {reason.option}")
            if part["unreached_rows"]:
                lines.append(
                    f"  rows of drawn groups that are never drawn: {part['unreached_rows']:,}: {part['unreached']}"
                )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__


def _any_of(sets: Sequence[SetReach], rows: Rows) -> Reals:
    """Chance that any of some independent sets has each of some rows."""
    missed = np.zeros(len(rows))
    for reach in sets:
        chance = np.minimum(reach.chance(rows), 1.0)
        missed += np.log1p(-chance) * (1 if reach.together else len(reach.sets))
    return np.asarray(-np.expm1(missed) + 0.0)  # not −0
