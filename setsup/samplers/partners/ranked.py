"""Rows that are ranked by the levels of ordinal factors: all that have known levels of them."""

from collections.abc import Sequence

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Words
from setsup.errors import SamplerError
from setsup.factors.factor import Kind
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import randint_below
from setsup.samplers.groups.within import pick_by_weight

__all__ = ["RankedRows"]


class RankedRows:
    """Rows with known levels of ordinal factors, drawn uniformly or by weight.

    `names` of the factors; `mask` (rows,) bool: the rows that are drawn at all; `weights` (rows,) float64, positive in
    these.

    Attributes
    ----------
    groups : Groups
        The rows by these levels.

    """

    def __init__(self, table: FactorTable, names: Sequence[str], mask: Bools | None, weights: Reals | None) -> None:
        for name in names:
            if table[name].kind is not Kind.ORDINAL:
                raise SamplerError(f"rank compares levels of ordinal factors, and {name!r} is {table[name].kind}")
        self._table, self.names = table, list(names)
        self.groups = groups = group_by(table, names, mask)
        if not groups.rows:
            raise SamplerError(
                f"no row has a known level of {', '.join(names)}; where or weights leave out {groups.excluded:,}"
            )
        self._known = None if groups.rows == len(table) else np.flatnonzero(groups.of_rows() >= 0)
        self._shares: Reals | None = None
        if weights is not None:
            self._shares = np.where(groups.of_rows() >= 0, weights, 0.0)
            self._shares /= self._shares.sum()
            self._ends = np.cumsum(self._shares if self._known is None else self._shares[self._known])

    def draw(self, bits: Words) -> Rows:
        """Rows, of the shape of the bits."""
        if self._shares is None:
            place = randint_below(bits, self.groups.rows)
        else:
            place = pick_by_weight(bits, self._ends, 0, self.groups.rows)
        return place if self._known is None else np.asarray(self._known[place])

    def chance(self, rows: Rows) -> Reals:
        """Chance of rows to be drawn, (rows,)."""
        if self._shares is not None:
            return np.asarray(self._shares[rows])
        _, place = self.groups.find(self._table, rows)
        return np.where(place >= 0, 1 / self.groups.rows, 0.0)

    def of_groups(self) -> Reals:
        """Chance of each group to have a row that is drawn, (groups,)."""
        if self._shares is None:
            return np.asarray(self.groups.sizes / self.groups.rows)
        of_rows = self.groups.of_rows()
        known = of_rows >= 0
        return np.bincount(of_rows[known], self._shares[known], len(self.groups)).astype(np.float64)

    def ties(self) -> list[str]:
        """How often two rows have the same level."""
        found = []
        for name in self.names:
            if self._shares is not None:
                codes = self._table.codes(name)
                chances: Reals = np.bincount(codes[codes >= 0], self._shares[codes >= 0]).astype(np.float64)
            elif self._known is None:
                chances = self._table.counts(name) / self.groups.rows
            else:
                chances = np.bincount(self._table.codes(name, self._known)) / self.groups.rows
            share = float((chances**2).sum())
            found.append(
                f"{name}: the first level is at least the second in {(1 + share) / 2:.1%} of the pairs, "
                f"equal in {share:.1%}"
            )
        return found
