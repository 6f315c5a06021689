"""Pairs of independent rows, ranked by the levels of ordinal factors."""

from collections.abc import Callable, Sequence

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Steps, Words
from setsup.errors import SamplerError, advice, spell_name
from setsup.factors.factor import Kind
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import randint_below
from setsup.samplers.coverage import ReachedGroups
from setsup.samplers.draw import Draw
from setsup.samplers.groups.reach_chances import at_least_one
from setsup.samplers.groups.within import pick_by_weight
from setsup.samplers.report import PairEntry
from setsup.samplers.report_words import list_counts

__all__ = ["RankedPairs"]


class RankedPairs:
    """Pairs of independent rows with known levels of ordinal factors, each drawn uniformly or by weight.

    `names` of the factors; `mask` (rows,) bool: the rows that are drawn at all; `weights` (rows,) float64, positive in
    these.
    """

    def __init__(self, table: FactorTable, names: Sequence[str], mask: Bools | None, weights: Reals | None) -> None:
        for name in names:
            if table[name].kind is not Kind.ORDINAL:
                raise SamplerError(
                    f"{spell_name('rank')} requires ordinal factors, but {name!r} is {table[name].kind}; choose an "
                    "ordinal factor"
                )
        self._table, self._names = table, list(names)
        self._groups = groups = group_by(table, names, mask)
        if not groups.rows:
            raise SamplerError(
                f"no row has a known level of {', '.join(names)}: "
                f"{advice('where= and weights=', '--where and --weights')} exclude {groups.excluded:,} rows; draw "
                "from more rows"
            )
        self._known = None if groups.rows == len(table) else np.flatnonzero(groups.of_rows() >= 0)
        self._shares: Reals | None = None
        if weights is not None:
            self._shares = np.where(groups.of_rows() >= 0, weights, 0.0)
            self._shares /= self._shares.sum()
            self._ends = np.cumsum(self._shares if self._known is None else self._shares[self._known])

    def draw(self, steps: Steps, bits: Words) -> Draw:
        """Pairs (steps, pairs, 2), from a word for each row."""
        rows = self._rows(bits[..., :2])
        levels = {name: self._table.codes(name, rows) for name in self._names}
        return Draw(rows, pair_labels={name: code[..., 0] >= code[..., 1] for name, code in levels.items()})

    def _rows(self, bits: Words) -> Rows:
        """Rows, of the shape of the bits."""
        if self._shares is None:
            position = randint_below(bits, self._groups.rows)
        else:
            position = pick_by_weight(bits, self._ends, 0, self._groups.rows)
        return position if self._known is None else np.asarray(self._known[position])

    def reach(self, pairs: int) -> tuple[ReachedGroups, Callable[[Rows], Reals], list[str]]:
        """Groups, the chance of rows in a pair, and no notes."""
        groups = self._groups
        of_step = at_least_one(self._chance_of_groups(), 2 * pairs)
        reached = ReachedGroups(", ".join(groups.names), (), groups, of_step)
        return reached, lambda rows: at_least_one(self._chance_of_rows(rows), 2), []

    def _chance_of_rows(self, rows: Rows) -> Reals:
        """Chance of rows to be drawn, (rows,)."""
        if self._shares is not None:
            return np.asarray(self._shares[rows])
        _, position = self._groups.find(self._table, rows)
        return np.where(position >= 0, 1 / self._groups.rows, 0.0)

    def _chance_of_groups(self) -> Reals:
        """Chance of each group to have a row that is drawn, (groups,)."""
        if self._shares is None:
            return np.asarray(self._groups.sizes / self._groups.rows)
        of_rows = self._groups.of_rows()
        known = of_rows >= 0
        return np.bincount(of_rows[known], self._shares[known], len(self._groups)).astype(np.float64)

    @property
    def words(self) -> str:
        """What pairs are, in few words."""
        return f"ranked by {', '.join(self._names)}"

    def entries(self) -> list[PairEntry]:
        """No entries: a report on independent rows has notes only."""
        return []

    def notes(self) -> list[str]:
        """Rows that are never drawn, and how often two rows have the same level."""
        groups = self._groups
        lost = {
            "with an unknown value": groups.unknown,
            f"left out by {advice('where= and weights=', '--where and --weights')}": groups.excluded,
        }
        return [f"rows never drawn: {list_counts(lost)}", *map(self._ties, self._names)]

    def _ties(self, name: str) -> str:
        """How often two rows have the same level of a factor."""
        if self._shares is not None:
            codes = self._table.codes(name)
            chances: Reals = np.bincount(codes[codes >= 0], self._shares[codes >= 0]).astype(np.float64)
        elif self._known is None:
            chances = self._table.counts(name) / self._groups.rows
        else:
            chances = np.bincount(self._table.codes(name, self._known)) / self._groups.rows
        share = float((chances**2).sum())
        at_least = (1 + share) / 2
        return f"{name}: the first level is at least the second in {at_least:.1%} of the pairs, equal in {share:.1%}"
