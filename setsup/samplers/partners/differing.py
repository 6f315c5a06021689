"""Pairs of rows that differ in some of the compared factors and are equal in the others."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Steps, Words
from setsup.checks import check_integer, is_integer
from setsup.errors import SamplerError, abbreviate, advice
from setsup.factors.factor import Kind
from setsup.factors.table import FactorTable
from setsup.samplers.arguments import inactive_factors
from setsup.samplers.coverage import NOT_COUNTED, ReachedGroups, Reason
from setsup.samplers.draw import Draw, by_factor
from setsup.samplers.partners.cells import Cells, cells_of
from setsup.samplers.partners.index import IndexPartners
from setsup.samplers.partners.product import ProductPartners
from setsup.samplers.partners.subsets import Subsets, read_sizes
from setsup.samplers.report import PairEntry
from setsup.samplers.report_words import list_counts, span
from setsup.samplers.spelling import spell, spell_name

__all__ = ["DifferingPairs"]


class DifferingPairs:
    """Anchors, and partners that differ from them in a subset of factors.

    `listed`: at most one of ``among``, ``change`` and ``share`` with the factors that it names; other arguments as of
    :class:`FactorPairSampler`; `rows` (rows,) bool: those that are drawn at all; `weights` (rows,) float64, positive in
    these.

    Attributes
    ----------
    subsets : Subsets
        Subsets of factors that pairs may differ in.
    partners : ProductPartners or IndexPartners
        Anchors and partners of each subset.

    """

    def __init__(
        self,
        table: FactorTable,
        k: Any,
        listed: Mapping[str, Sequence[str]],
        must_differ: bool,
        radius: Any,
        rows: Bools | None,
        weights: Reals | None,
    ) -> None:
        option, factors = next(iter(listed.items()), ("among", None))
        option_names = None if factors is None else [table[name].name for name in factors]
        compared = _find_compared(table, option_names or [])
        cells = cells_of(table, compared, _read_radii(table, compared, radius), rows, weights)
        self._table, self._groups, self._must_differ = table, cells.groups, must_differ
        names = [axis.name for axis in cells.axes]
        indices = None if option_names is None else sorted({names.index(name) for name in option_names})
        if option == "among":
            may_differ = list(range(len(names))) if indices is None else indices
        else:
            may_differ = _find_differing(option, indices or [], cells)
            k = len(may_differ)
        # of factors that vary, each pair shares at least one
        sizes = read_sizes(k, len(may_differ), max(len(cells.varying) - 1, 1))
        self.subsets = Subsets(names, may_differ, sizes)
        partners = ProductPartners if cells.product else IndexPartners
        self.partners: ProductPartners | IndexPartners = partners(cells, self.subsets.chosen, must_differ)
        feasible = self.partners.anchors > 0
        if not feasible.any():
            raise SamplerError(self._infeasible())
        self.subsets.keep(feasible)

    def _infeasible(self) -> str:
        chosen, words = self.subsets.chosen, self.subsets.words
        sizes = chosen.sum(axis=1)
        numbers = span(int(sizes.min()), int(sizes.max())) if self._must_differ else f"at most {int(sizes.max())}"
        return (
            f"no two of {self._groups.rows:,} rows differ in {numbers} of the factors "
            f"{words(np.any(chosen, axis=0))} and agree in all other compared factors "
            f"({words(~np.all(chosen, axis=0))}); choose other factors, or draw from more rows"
        )

    def draw(self, steps: Steps, bits: Words) -> Draw:
        """Pairs (steps, pairs, 2), from four words each."""
        which = self.subsets.draw(steps, bits[..., :2])
        words = (bits[..., 2].reshape(-1), bits[..., 3].reshape(-1))
        anchor, partner, cell = self.partners.draw(which.reshape(-1), *words)
        changed = self.subsets.chosen[which]
        codes = np.where(changed, -1, self._groups.keys(cell.reshape(which.shape)))
        pairs = np.stack([anchor, partner], axis=-1).reshape(*which.shape, 2)
        return Draw(pairs, by_factor(self._groups.names, codes), pair_labels=by_factor(self._groups.names, changed))

    def reach(self, pairs: int) -> tuple[ReachedGroups, Callable[[Rows], Reals], list[str]]:
        """Groups, the chance of rows in a pair, and notes; where all steps have the same sizes."""
        groups, paired, chance = self._groups, self.partners.paired, self._even_chance()

        def of_rows(rows: Rows) -> Reals:
            group, position = groups.find(self._table, rows)
            return np.where((position >= 0) & paired[np.maximum(group, 0)], chance, 0.0)

        reason = Reason("no other row differs from it as requested", "name more factors in among=, or raise k=")
        reached = ReachedGroups.drawn_or_never(groups, np.where(paired, np.nan, 0.0), paired, reason)
        return reached, of_rows, [NOT_COUNTED] * math.isnan(chance)

    def _even_chance(self) -> float:
        """Chance of a row to be in a pair where all are alike; NaN where they are not."""
        if not isinstance(self.partners, ProductPartners) or not self.partners.even:
            return math.nan
        # unless the two differ, the anchor may be drawn for its own partner
        again = 0.0 if self._must_differ else 1 / self.partners.rows(self.subsets.chosen[self.subsets.feasible])
        return float((self.subsets.shares() * (2 - again)).sum() / self._groups.rows)

    @property
    def words(self) -> str:
        """What pairs are, in few words."""
        return f"which {'differ in all of' if self._must_differ else 'may differ in'} a subset of the factors"

    def entries(self) -> list[PairEntry]:
        """Entries of a report, one for each number of factors."""
        subsets, partners = self.subsets, self.partners
        sizes = subsets.chosen.sum(axis=1)
        entries = []
        for size in np.unique(sizes).tolist():
            numbers = np.flatnonzero(sizes == size)
            anchors = {subsets.words(subsets.chosen[number]): int(partners.anchors[number]) for number in numbers}
            chance, log_pairs = 0.0, math.nan
            if any(anchors.values()):
                chance = subsets.chance(size)
                log_pairs = float(np.logaddexp.reduce(partners.log_pairs[numbers])) / math.log(10)
            entries.append(PairEntry(size, chance, anchors, self._groups.rows, log_pairs))
        return entries

    def notes(self) -> list[str]:
        """Rows that are never drawn, and how k changes with the step."""
        lost = {
            "with an unknown value": self._groups.unknown,
            f"left out by {advice('where= and weights=', '--where and --weights')}": self._groups.excluded,
            "without a partner": self.partners.lonely,
        }
        return [f"rows never drawn: {list_counts(lost)}", *self.subsets.by_step()]


def _find_compared(table: FactorTable, option_names: Sequence[str]) -> list[str]:
    """Factors that a pair has equal or different: all that sets can fix, and those that are named."""
    names = list(dict.fromkeys([*inactive_factors(table, None, [], {}), *option_names]))
    if not names:
        how = advice("bin continuous ones, as in table.binned(…)", "declare others, as in --kinds yaw=ordinal")
        raise SamplerError(f"the table has no discrete factors to compare; {how}")
    return names


def _find_differing(option: str, indices: Sequence[int], cells: Cells) -> list[int]:
    """Places of the factors that differ in every pair, from those that ``change`` or ``share`` names."""
    if option == "change":
        return list(indices)
    differing = [index for index in cells.varying if index not in indices]
    if not differing:
        raise SamplerError(
            f"{spell_name('share')} contains all factors that vary, so none can differ; leave out at least one"
        )
    return differing


def _read_radii(table: FactorTable, compared: Sequence[str], radius: Any) -> dict[str, int]:
    """Steps within which the levels of some compared factors differ."""
    if radius is None:
        return {}
    ordered = [
        name for name in compared if table[name].kind in (Kind.ORDINAL, Kind.CYCLIC) and table[name].within is None
    ]
    if not ordered:
        raise SamplerError(
            f"{spell(radius=radius)} requires an ordinal or cyclic factor, but none of the compared factors is one; "
            f"leave out {spell_name('radius')}"
        )
    if is_integer(radius):
        radius = dict.fromkeys(ordered, radius)
    if not isinstance(radius, Mapping) or not radius:
        raise SamplerError(
            f"{spell_name('radius')} must be a number of steps, or a mapping of ordinal or cyclic factors to numbers "
            f"of steps, such as {{'scale': 2}}, not {abbreviate(radius)}; choose from {', '.join(ordered)}"
        )
    radii = {}
    for name, steps in radius.items():
        factor = table[name]
        if factor.name not in ordered:
            nested = f"nested in {factor.within}" if factor.within else factor.kind
            raise SamplerError(
                f"{spell_name('radius')} requires ordinal or cyclic factors, but {name!r} is {nested}; leave out "
                f"{name!r}"
            )
        radii[factor.name] = check_integer(steps, f"the radius of {name!r}", SamplerError, 1)
    return radii
