"""Pairs of rows that differ in some factors: how many, which, or which of the two has more.

Ada-GVAE [1]_ learns from pairs in which k factors differ, k and the factors unknown. Shu et al. [2]_ compare what
pairs can be told apart by: a factor that both share, the only one that changes, or the larger level of one.

References
----------
.. [1] F. Locatello, B. Poole, G. Rätsch, B. Schölkopf, O. Bachem, M. Tschannen, "Weakly-supervised disentanglement
   without compromises", ICML 2020 (arXiv 2002.02886), section 5.
.. [2] R. Shu, Y. Chen, A. Kumar, S. Ermon, B. Poole, "Weakly supervised disentanglement with guarantees", ICLR 2020
   (arXiv 1910.09772), section 3.

"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setsup.arrays import Reals, Rows, Steps
from setsup.checks import check_boolean, check_integer, is_integer
from setsup.errors import SamplerError, abbreviate, advice
from setsup.factors.factor import Kind
from setsup.factors.table import FactorTable
from setsup.html import counted
from setsup.random import fold, mix, spread
from setsup.samplers.arguments import (
    Weights,
    Where,
    check_draw_memory,
    check_names,
    check_sets,
    inactive_factors,
    weight_names,
)
from setsup.samplers.coverage import NOT_COUNTED, Reach, ReachedGroups, Reason, SetReach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.chances import at_least_one
from setsup.samplers.groups.within import GROUP, word
from setsup.samplers.partners.cells import cells_of
from setsup.samplers.partners.index import IndexPartners
from setsup.samplers.partners.product import ProductPartners
from setsup.samplers.partners.ranked import RankedRows
from setsup.samplers.partners.subsets import Subsets, read_sizes
from setsup.samplers.report import PairEntry, Report
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell

__all__ = ["FactorPairSampler"]


class FactorPairSampler(Sampler):
    """Draws pairs of rows that differ in k factors and are equal in all others; k and the factors anew for each pair.

    For each pair, independently: k is uniform over the feasible numbers among those asked, the set S of factors over
    the feasible k-subsets of ``among``, the anchor over the rows that have a partner for S, and the partner over the
    rows that are equal to the anchor in all compared factors outside S and differ from it in *every* factor of S.
    Feasible is what some pair of rows has. With `weights`, the anchor and the partner are drawn by weight among these
    rows in place of uniformly. Compared are all factors that sets can fix: no keys, no splits, and no
    continuous ones, whose values pairs leave open. A row with an unknown value of a compared factor is never drawn.

    Parameters
    ----------
    pairs : int
        Pairs per step.
    k : int or (int, int), or mapping of step to these, optional
        Number of factors that differ, or the least and the most. None: 1 to one less than the compared factors that
        vary, so that each pair shares one. By step, ``{0: 1, 1000: (1, 3)}``: each holds from its step on.
    among : list of str, optional
        Factors that may differ; all others are equal. None: all compared ones.
    change : list of str, optional
        Factors that differ in every pair, and no others; in place of `k` and `among`.
    share : list of str, optional
        Factors that are equal in every pair, while all others that vary differ; in place of `k` and `among`.
    rank : list of str, optional
        Ordinal factors of which a draw says whether the first row's level is at least the second's; in place of all
        these. The two rows are independent and uniform, or by weight, over the rows with known levels of the factors.
    must_differ : bool
        Whether pairs differ in every changed factor. False: the factors of S are drawn again, and may coincide. The
        partner is then uniform over the rows that are equal outside S, the anchor among them, and a row has a partner
        if one of these differs from it.
    radius : int or mapping of str to int, optional
        Steps between the levels of the two rows, at most: for the named ordinal and cyclic factors, or for all of them.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it. Rows of weight 0 are never drawn, and make no pair
        feasible. Weights are counted in a unit of which their sum has 2⁶⁰ to 2⁶¹, and none that is positive as less.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError
        When the arguments contradict each other or the table, or no pair of rows is what they ask for.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> pairs = setsup.FactorPairSampler(shapes.factors, pairs=64, k=2)
    >>> draw = pairs[0]
    >>> first, second = draw.indices.T
    >>> codes = {name: shapes.factors.codes(name, draw.indices) for name in shapes.factors.names}
    >>> all(((one[:, 0] != one[:, 1]) == draw.pair_labels[name]).all() for name, one in codes.items())
    True
    >>> sum(draw.pair_labels.values()).tolist() == [2] * 64
    True

    """

    def __init__(
        self,
        table: FactorTable,
        pairs: int = 32,
        *,
        k: int | tuple[int, int] | Mapping[int, int | tuple[int, int] | None] | None = None,
        among: Sequence[str] | None = None,
        change: Sequence[str] | None = None,
        share: Sequence[str] | None = None,
        rank: Sequence[str] | None = None,
        must_differ: bool = True,
        radius: int | Mapping[str, int] | None = None,
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "FactorPairSampler",
    ) -> None:
        rows, row_weight = self._read(locals())
        self.pairs = check_sets(pairs, "pairs")
        check_draw_memory(2 * self.pairs, "a draw", "pairs", 400)
        self._must_differ = check_boolean(must_differ, "must_differ", SamplerError)
        self._check_one({"change": change, "share": share, "rank": rank, "k or among": k if among is None else among})
        self._spread = spread(word(np.arange(self.pairs)[:, None], GROUP, np.arange(4)))
        self._ranked: RankedRows | None = None
        if rank is not None:
            names = [table[name].name for name in check_names(rank, "rank")]
            self._ranked = RankedRows(table, names, rows, row_weight)
            self._groups = self._ranked.groups
        else:
            options = {"among": among, "change": change, "share": share}
            given = {name: check_names(names, name) for name, names in options.items() if names is not None}
            compared = self._compared(next(iter(given.values()), []))
            self._cells = cells_of(table, compared, self._radii(compared, radius), rows, row_weight)
            self._groups = self._cells.groups
            self._compare(k, among, change, share)

    def _check_one(self, given: Mapping[str, Any]) -> None:
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise SamplerError(f"give only one of {', '.join(named)}: each says by itself in what pairs differ")
        options = self.arguments
        if named == ["rank"] and (options["radius"] is not None or not self._must_differ):
            raise SamplerError("rank draws two independent rows; leave out radius and differ")

    # -- what is compared ------------------------------------------------------------------------------------------

    def _compared(self, named: Sequence[str]) -> list[str]:
        """Factors that a pair has equal or different: all that sets can fix, and those that are named."""
        listed = [self.table[name].name for name in named]
        names = [*inactive_factors(self.table, None, [], {}), *listed]
        if not names:
            how = advice("bin continuous ones, as in table.binned(…)", "declare others, as in --kinds yaw=ordinal")
            raise SamplerError(f"the table has no factor with levels; {how}")
        return list(dict.fromkeys(names))

    def _radii(self, compared: Sequence[str], radius: Any) -> dict[str, int]:
        """Radius by factor."""
        if radius is None:
            return {}
        ordered = [
            name
            for name in compared
            if self.table[name].kind in (Kind.ORDINAL, Kind.CYCLIC) and self.table[name].within is None
        ]
        if not ordered:
            raise SamplerError(f"{spell(radius=radius)}, but no compared factor is ordinal or cyclic; leave it out")
        if is_integer(radius):
            radius = dict.fromkeys(ordered, radius)
        if not isinstance(radius, Mapping) or not radius:
            raise SamplerError(
                "radius must be a number of steps, or one for each of some ordinal or cyclic factors, as in "
                f"{{'scale': 2}}, not {abbreviate(radius)}; such factors: {', '.join(ordered)}"
            )
        found = {}
        for name, steps in radius.items():
            factor = self.table[name]
            if factor.name not in ordered:
                nested = f"nested in {factor.within}" if factor.within else factor.kind
                raise SamplerError(f"radius counts steps of ordinal and cyclic factors, and {name!r} is {nested}")
            found[factor.name] = check_integer(steps, f"the radius of {name!r}", SamplerError, 1)
        return found

    def _compare(self, k: Any, among: Any, change: Any, share: Any) -> None:
        """Subsets of factors that pairs may differ in, and what is there for each."""
        varying, names = self._cells.varying, [axis.name for axis in self._cells.axes]
        if change is not None:
            some = self._places(change, "change")
        elif share is not None:
            equal = self._places(share, "share")
            some = [place for place in varying if place not in equal]
            if not some:
                raise SamplerError("share names all factors that vary, so that none is left to differ")
        else:
            some = list(range(len(names))) if among is None else self._places(among, "among")
        if change is not None or share is not None:
            k = len(some)
        # of factors that vary, each pair shares at least one
        sizes = read_sizes(k, len(some), max(len(varying) - 1, 1))
        if isinstance(k, Mapping):
            self.arguments = {**self.arguments, "k": sizes.plain()}
        self._subsets = Subsets(names, some, sizes)
        partners = ProductPartners if self._cells.product else IndexPartners
        self._partners: ProductPartners | IndexPartners = partners(self._cells, self._subsets.chosen, self._must_differ)
        feasible = self._partners.anchors > 0
        if not feasible.any():
            raise SamplerError(self._infeasible())
        self._subsets.keep(feasible)

    def _places(self, named: Sequence[str], option: str) -> list[int]:
        names = [axis.name for axis in self._cells.axes]
        return sorted({names.index(self.table[name].name) for name in check_names(named, option)})

    def _infeasible(self) -> str:
        chosen, words = self._subsets.chosen, self._subsets.words
        asked = sorted(set(chosen.sum(axis=1).tolist()))
        numbers = str(asked[0]) if len(asked) == 1 else f"{asked[0]} to {asked[-1]}"
        how = "every one" if self._must_differ else "any"
        return (
            f"no two of {self._groups.rows:,} rows differ in {how} of {numbers} of the factors asked for "
            f"({words(np.any(chosen, axis=0))}) and are equal in all others that are compared "
            f"({words(~np.all(chosen, axis=0))})"
        )

    # -- drawing ---------------------------------------------------------------------------------------------------

    def draws(self, steps: Steps) -> Draw:
        """Draws of any steps as one block; indices (steps, pairs, 2)."""
        bits = mix(fold(self._key, steps)[:, None, None], self._spread)
        if self._ranked is not None:
            rows = self._ranked.draw(bits[..., :2])
            levels = {name: self.table.codes(name, rows) for name in self._ranked.names}
            return Draw(rows, pair_labels={name: code[..., 0] >= code[..., 1] for name, code in levels.items()})
        shape = bits.shape[:2]
        which = self._subsets.draw(steps, bits[..., :2]).reshape(-1)
        anchor, partner, cell = self._partners.draw(which, bits[..., 2].reshape(-1), bits[..., 3].reshape(-1))
        changed = self._subsets.chosen[which]
        codes = np.where(changed, -1, self._groups.keys(cell))
        names = self._groups.names
        return Draw(
            np.stack([anchor, partner], axis=-1).reshape(*shape, 2),
            {name: codes[:, place].reshape(shape) for place, name in enumerate(names)},
            pair_labels={name: changed[:, place].reshape(shape) for place, name in enumerate(names)},
        )

    # -- report ----------------------------------------------------------------------------------------------------

    def reach(self, step: int = 0) -> Reach:
        """Which groups and rows a step can draw, and with which chance; why others are never drawn."""
        check_step(self, step)
        if self._ranked is None and len(sizes := self._subsets.sizes.values) > 1:
            k = sizes[int(self._subsets.sizes.stretch(np.array([step], dtype=np.uint64))[0])]
            return FactorPairSampler(self.table, **{**self.arguments, "k": k}).reach(step)
        pairs = tuple(range(self.pairs))
        if (ranked := self._ranked) is not None:
            of_groups = at_least_one(ranked.of_groups(), 2 * self.pairs)
            reached = ReachedGroups(", ".join(ranked.groups.names), (), ranked.groups, of_groups)
            return self._reach(reached, SetReach(pairs, lambda rows: at_least_one(ranked.chance(rows), 2)))
        groups, notes = self._groups, self._left_open()
        paired, chance = self._partners.paired, self._even_chance()
        of_groups = np.where(paired, np.nan, 0.0)
        if math.isnan(chance):
            notes.append(NOT_COUNTED)

        def of_rows(rows: Rows) -> Reals:
            group, place = groups.find(self.table, rows)
            return np.where((place >= 0) & paired[np.maximum(group, 0)], chance, 0.0)

        reason = Reason("no other row differs from it as asked", "name more factors in among=, or raise k=")
        lonely = np.where(paired, -1, 0).astype(np.int8)
        reached = ReachedGroups(", ".join(groups.names), (), groups, of_groups, (reason,), lonely)
        return self._reach(reached, SetReach(pairs, of_rows), notes)

    def _title(self) -> str:
        return f"FactorPairSampler: {counted(self.pairs, 'pair')} per step"

    def _even_chance(self) -> float:
        """Chance of a row to be in a pair where all are alike; NaN where they are not."""
        if not isinstance(self._partners, ProductPartners) or not self._partners.even:
            return math.nan
        rows = self._groups.rows
        # unless the two differ, the anchor may be drawn for its own partner
        again = 0.0 if self._must_differ else 1 / self._partners.rows(self._subsets.chosen[self._subsets.feasible])
        return float((self._subsets.shares() * (2 - again)).sum() / rows)

    def report(self) -> Report:
        """What is drawn, and what never is, before any training."""
        groups = self._groups
        lost = {"with an unknown value": groups.unknown, "left out by where or weights": groups.excluded}
        if self._ranked is not None:
            title = f"{self._title()}, ranked by {', '.join(self._ranked.names)}"
            return self._report([], [*_never(lost), *self._ranked.ties()], title=title)
        lost |= {"without a partner": self._partners.lonely}
        subsets = self._subsets
        sizes = subsets.chosen.sum(axis=1)
        anchors = {
            size: {
                subsets.words(subsets.chosen[number]): int(self._partners.anchors[number])
                for number in np.flatnonzero(sizes == size)
            }
            for size in np.unique(sizes).tolist()
        }
        entries = []
        for size, found in anchors.items():
            logs = self._partners.log_pairs[sizes == size]
            able = any(found.values())
            total = float(np.logaddexp.reduce(logs)) / math.log(10) if able else math.nan
            entries.append(PairEntry(size, subsets.chance(size) if able else 0.0, found, groups.rows, total))
        what = "differ in all of" if self._must_differ else "may differ in"
        notes = [*_never(lost), *subsets.by_step(), *self._left_open()]
        return self._report([], notes, entries, f"{self._title()}, which {what} a subset of the factors")

    def _left_open(self) -> list[str]:
        """Continuous factors, which are not compared."""
        kept = [f for f in self.table.factors if f.continuous and f.role == "variation"]
        names = [f.name for f in kept if f.name not in weight_names(self.arguments)]
        return [f"{', '.join(names)} not compared: continuous factors need bins, as of table.binned"] if names else []


def _never(lost: Mapping[str, int]) -> list[str]:
    never = ", ".join(f"{count:,} {why}" for why, count in lost.items() if count)
    return [f"rows never drawn: {never or 'none'}"]
