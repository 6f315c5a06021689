"""Pairs of rows that differ in some factors: how many, which, or which of the two has more.

Ada-GVAE [1]_ learns from pairs in which k factors differ, where k and the factors are unknown. Shu et al. [2]_ compare
kinds of supervision by pairs: a factor that both share, the only factor that changes, or the row with the larger level.

References
----------
.. [1] F. Locatello, B. Poole, G. Rätsch, B. Schölkopf, O. Bachem, M. Tschannen, "Weakly-supervised disentanglement
   without compromises", ICML 2020 (arXiv 2002.02886), section 5.
.. [2] R. Shu, Y. Chen, A. Kumar, S. Ermon, B. Poole, "Weakly supervised disentanglement with guarantees", ICLR 2020
   (arXiv 1910.09772), section 3.

"""

from collections.abc import Mapping, Sequence
from typing import Any

from setsup.arrays import Steps
from setsup.checks import check_boolean
from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.html import counted
from setsup.random import fold, mix
from setsup.samplers.arguments import check_draw_memory, check_names, check_sets
from setsup.samplers.coverage import Reach, SetReach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.within import spread_words
from setsup.samplers.partners.differing import DifferingPairs
from setsup.samplers.partners.ranked import RankedPairs
from setsup.samplers.report import Report
from setsup.samplers.row_arguments import Weights, Where, weight_names
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell_keyword, spell_name

__all__ = ["FactorPairSampler"]


class FactorPairSampler(Sampler):
    """Draws pairs of rows that differ in k factors and are equal in all others; k and the factors are drawn per pair.

    For each pair, independently: k is uniform over the feasible ones of the requested numbers, the set S of factors
    over the feasible k-subsets of ``among``, the anchor over the rows that have a partner for S, and the partner over
    the rows that are equal to the anchor in all compared factors outside S and differ from it in *every* factor of S.
    A number or a subset is feasible if some pair of rows has it. With `weights`, the anchor and the partner are drawn
    by weight among these rows instead of uniformly. All factors that sets can fix are compared: keys, splits and
    continuous factors are not. A row with an unknown value of a compared factor is never drawn.

    Parameters
    ----------
    pairs : int
        Pairs per step.
    k : int or (int, int), or mapping of step to these, optional
        Number of factors that differ, or its minimum and maximum. None: 1 to one less than the compared factors that
        vary, so that each pair shares one. By step, ``{0: 1, 1000: (1, 3)}``: each holds from its step on.
    among : list of str, optional
        Factors that may differ; all others are equal. None: all compared ones.
    change : list of str, optional
        Factors that differ in every pair, while all others are equal; instead of `k` and `among`.
    share : list of str, optional
        Factors that are equal in every pair, while all other discrete factors of variation differ; instead of `k` and
        `among`.
    rank : list of str, optional
        Ordinal factors for which draws record whether the first row's level is at least the second's; instead of all
        these. The two rows are independent and uniform, or by weight, over the rows with known levels of the factors.
    must_differ : bool
        Whether the two rows must differ in each of the k factors. False: the factors of S are drawn again, and may
        coincide. The partner is then uniform over the rows that are equal outside S, including the anchor, and a row
        has a partner if one of these rows differs from it.
    radius : int or mapping of str to int, optional
        Maximum distance between the two rows, in levels of an ordinal or cyclic factor; a number alone applies to all
        of them.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it. Rows of weight 0 are never drawn, and make no pair
        feasible. Weights are rounded to multiples of a unit, at least one unit for positive weights; their sum has 2⁶⁰
        to 2⁶¹ units.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError
        If the arguments contradict each other or the table, or no pair of rows satisfies them.

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
        check_boolean(must_differ, "must_differ", SamplerError)
        self._check_exclusive(
            {"change": change, "share": share, "rank": rank, "k or among": k if among is None else among}
        )
        self._spread = spread_words(self.pairs, 4)
        self._pairs: RankedPairs | DifferingPairs
        if rank is not None:
            names = [table[name].name for name in check_names(rank, "rank")]
            self._pairs = RankedPairs(table, names, rows, row_weight)
        else:
            options = {"among": among, "change": change, "share": share}
            listed = {name: check_names(names, name) for name, names in options.items() if names is not None}
            self._pairs = DifferingPairs(table, k, listed, must_differ, radius, rows, row_weight)
            if isinstance(k, Mapping):
                self.arguments = {**self.arguments, "k": self._pairs.subsets.sizes.plain()}

    def _check_exclusive(self, options: Mapping[str, Any]) -> None:
        names = [name for name, value in options.items() if value is not None]
        if len(names) > 1:
            raise SamplerError(
                f"{', '.join(' or '.join(map(spell_keyword, name.split(' or '))) for name in names)} are mutually "
                "exclusive, because each determines which factors differ; pass only one"
            )
        if names == ["rank"] and (self.arguments["radius"] is not None or not self.arguments["must_differ"]):
            raise SamplerError(
                f"{spell_name('rank')} draws two independent rows; leave out {spell_name('radius')} and "
                f"{spell_name('must_differ')}"
            )

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block; indices (steps, pairs, 2)."""
        return self._pairs.draw(steps, mix(fold(self._key, steps)[:, None, None], self._spread))

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        steps = check_step(self, step)
        if isinstance(self._pairs, DifferingPairs) and len((sizes := self._pairs.subsets.sizes).values) > 1:
            k = sizes.values[int(sizes.stretch(steps)[0])]
            return FactorPairSampler(self.table, **{**self.arguments, "k": k}).reach(step)
        groups, chance, notes = self._pairs.reach(self.pairs)
        return self._reach(groups, SetReach(tuple(range(self.pairs)), chance), [*self._left_open(), *notes])

    def _title(self) -> str:
        return f"FactorPairSampler: {counted(self.pairs, 'pair')} per step"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        notes = [*self._pairs.notes(), *self._left_open()]
        return self._report([], notes, self._pairs.entries(), f"{self._title()}, {self._pairs.words}")

    def _left_open(self) -> list[str]:
        """Continuous factors, which are not compared."""
        if isinstance(self._pairs, RankedPairs):
            return []
        continuous = [factor for factor in self.table.factors if factor.continuous and factor.role == "variation"]
        names = [factor.name for factor in continuous if factor.name not in weight_names(self.arguments)]
        return [f"{', '.join(names)} not compared: continuous factors need bins, as of table.binned"] if names else []
