"""Episodes of few-shot learning: some classes, a few labelled rows of each, and other rows of them to be classified.

Prototypical networks [1]_ and most later methods learn from such N-way K-shot tasks. Support and query may come from
two different domains, as in cross-domain few-shot recognition [2]_.

References
----------
.. [1] J. Snell, K. Swersky, R. Zemel, "Prototypical networks for few-shot learning", NeurIPS 2017, section 2.5 and
   algorithm 1 (arXiv 1703.05175).
.. [2] E. Bennequin et al., "Bridging few-shot learning and adaptation: new challenges of support-query shift",
   ECML PKDD 2021 (arXiv 2105.11804).

"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from setsup.arrays import Rows, Steps, Words
from setsup.errors import SamplerError
from setsup.factors.counting import with_outer
from setsup.factors.table import FactorTable
from setsup.html import counted
from setsup.random import fold
from setsup.samplers.arguments import check_draw_memory, check_names, check_sets, check_size
from setsup.samplers.coverage import Reach, Reason, SetReach
from setsup.samplers.draw import Draw, by_factor
from setsup.samplers.groups.across import DomainPairs
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.hierarchy import Hierarchy, values_of
from setsup.samplers.groups.members import REFUSALS, check_refusal
from setsup.samplers.groups.reach_chances import is_estimated, reached_groups, set_reach
from setsup.samplers.groups.statistics import counts_entry, group_entry
from setsup.samplers.groups.within import Keys
from setsup.samplers.report import Report
from setsup.samplers.report_words import span
from setsup.samplers.row_arguments import Weights, Where
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell, spell_keyword, spell_name

__all__ = ["EpisodeSampler"]

_CLASSES, _ROWS, _QUERY = 0, 1, 2  # what a key is for


class EpisodeSampler(Sampler):
    """Draws N-way K-shot episodes: ``ways`` classes per step, each with ``shots`` support and ``queries`` query rows.

    The classes of an episode are uniform without replacement over those with enough rows, and so is their order: the
    label of a class in the episode is the number of its set. The rows of a class are uniform without repeats; the first
    ``shots`` of each set are the support, the others the query.

    Parameters
    ----------
    label : str or list of str
        Factors whose combinations are the classes.
    ways : int
        Number of classes per episode, N.
    shots : int
        Number of support rows per class, K.
    queries : int
        Number of query rows per class, Q.
    across : str or list of str, optional
        Factors whose combinations are domains: the support comes from one domain, the query from another. The pair is
        uniform over the ordered pairs of domains that share N classes or more, of which the first domain has K rows and
        the second Q. A step then costs O(rows drawn + classes).
    within : str or list of str, optional
        Factors whose combinations are domains: an episode comes from one domain, drawn uniformly from those with
        at least N classes of K + Q rows.
    on_small_group : str
        What to do with classes that have too few rows for an episode, or too few in a domain with `across` or `within`:
        ``error`` raises an error, ``drop`` leaves them out.
    weights : str or (rows,) float, optional
        Relative probability of each row within its class, or the factor that has it; without repeats by successive
        sampling. Rows of weight 0 are never drawn and do not count.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Attributes
    ----------
    ways, shots, queries : int
        The arguments of these names: the indices of a draw are (ways, shots + queries).

    Raises
    ------
    SamplerError, FactorError
        If the arguments contradict each other or the table, or too few classes can be drawn.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> episodes = setsup.EpisodeSampler(shapes.factors, "object_hue", ways=5, shots=1, queries=3)
    >>> draw = episodes[0]
    >>> support, query = draw.indices[:, :1], draw.indices[:, 1:]
    >>> support.shape, query.shape, len(set(draw.inactive["object_hue"].tolist()))
    ((5, 1), (5, 3), 5)

    """

    def __init__(
        self,
        table: FactorTable,
        label: str | Sequence[str],
        ways: int = 5,
        shots: int = 1,
        queries: int = 15,
        *,
        across: str | Sequence[str] | None = None,
        within: str | Sequence[str] | None = None,
        on_small_group: Literal["error", "drop"] = "error",
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "EpisodeSampler",
    ) -> None:
        rows, row_weight = self._read(locals())
        self.ways, self.shots, self.queries = (
            check_sets(ways, "ways"),
            check_size(shots, "shots"),
            check_size(queries, "queries"),
        )
        check_draw_memory((self.shots + self.queries) * self.ways, "an episode", "ways, shots or queries")
        check_refusal(on_small_group, "a class needs all rows of an episode")
        if across is not None and within is not None:
            raise SamplerError(
                f"{spell_keyword('across')} and {spell_keyword('within')} are mutually exclusive; pass only one"
            )
        option, domain = ("across", across) if across is not None else ("within", within)
        labels = check_names(label, "label")
        self._domain = () if domain is None else with_outer(table, check_names(domain, option))
        in_class = with_outer(table, labels)
        if across is not None and set(self._domain) <= set(in_class):
            raise SamplerError(
                f"classes of {', '.join(in_class)} also fix {', '.join(self._domain)}, so two domains never share a "
                f"class; choose other factors for {spell_keyword('across')} or {spell_keyword('label')}"
            )
        self._hidden = {*self._domain} - {*in_class} if across is not None else set()  # support and query differ there
        row_counts = (self.shots, self.queries)
        need = sum(row_counts) if across is None else (max if on_small_group == "error" else min)(row_counts)
        names = [*labels, *self._domain]
        self._classes = GroupSampler(
            table, names, need, rows, row_weight, choose="groups", on_small_group=on_small_group, policies=REFUSALS
        )
        self._pairs: DomainPairs | None = None
        if across is None:
            self._tree = self._group_in_one_domain(labels)
        else:
            self._pairs = self._pair_domains(labels)

    def _group_in_one_domain(self, labels: list[str]) -> Hierarchy:
        """Classes by their domains; restricts the groups to those that can be drawn."""
        groups, has_domains = self._classes.groups, bool(self._domain)
        values = [values_of(self.table, groups, [*labels, *self._domain])]
        if has_domains:
            values.insert(0, values_of(self.table, groups, self._domain))
        fits = groups.sizes >= self.shots + self.queries
        tree = Hierarchy(values, [1, self.ways] if has_domains else [self.ways], fits)
        if not len(tree.leaves):
            where = f" in a domain of {', '.join(self._domain)}" if has_domains else ""
            raise SamplerError(
                f"{spell(ways=self.ways)} exceeds the {tree.most[-1]:,} class{'es' * (tree.most[-1] != 1)}{where} "
                f"with enough rows for {spell(shots=self.shots)} and {spell(queries=self.queries)}; {_lower()}"
            )
        self._classes.restrict(tree.leaves)
        return tree

    def _pair_domains(self, labels: list[str]) -> DomainPairs:
        """Pairs of domains; restricts the groups to those that can be drawn."""
        groups = self._classes.groups
        of_domain, of_class = (values_of(self.table, groups, names) for names in (self._domain, labels))
        pairs = DomainPairs(of_domain, of_class, groups.sizes >= self.shots, groups.sizes >= self.queries, self.ways)
        if not pairs.pairs:
            raise SamplerError(
                f"{spell(ways=self.ways)} is too large: two of the {pairs.domains:,} domains of "
                f"{', '.join(self._domain)} share at most {pairs.most:,} classes with enough rows for "
                f"{spell(shots=self.shots)} in one domain and {spell(queries=self.queries)} in the other; {_lower()}"
            )
        self._classes.restrict(np.flatnonzero(pairs.reached))
        return pairs

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block; indices (steps, ways, shots + queries)."""
        key = fold(self._key, steps)
        if self._pairs is None:
            groups = self._tree.draw(fold(key, _CLASSES))
            rows = self._rows(fold(key, _ROWS), groups, self.shots + self.queries)
        else:
            groups, others = self._pairs.draw(fold(key, _CLASSES))
            support = self._rows(fold(key, _ROWS), groups, self.shots)
            rows = np.concatenate([support, self._rows(fold(key, _QUERY), others, self.queries)], axis=-1)
        codes = by_factor(self._classes.names, self._classes.groups.keys(groups))
        return Draw(rows, {name: code for name, code in codes.items() if name not in self._hidden})

    def _rows(self, key: Words, groups: Rows, size: int) -> Rows:
        """Rows (steps, ways, size) of groups (steps, ways), without repeats."""
        keys = Keys(key, np.arange(self.ways, dtype=np.uint64))
        rows, _ = self._classes.members.draw(keys, groups.reshape(-1), size, "error")
        return rows.reshape(*groups.shape, size)

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        classes, numbers, size = self._classes, range(self.ways), self.shots + self.queries
        few = np.setdiff1d(np.flatnonzero(classes.groups.sizes >= classes.need), classes.drawable)
        if self._pairs is None:
            chance = self._tree.shares() * self.ways
            sets = set_reach(self.table, classes, numbers, size, chance, together=True)
            option, most = "lower shots or queries", size
        else:
            support, query = (chances[classes.drawable] for chances in self._pairs.chances())
            parts = zip((self.shots, self.queries), (support, query), strict=True)
            each = [set_reach(self.table, classes, numbers, rows, chances, together=True) for rows, chances in parts]
            # an episode has a class in two domains, and so as support or as query of one of them
            sets = SetReach(tuple(numbers), lambda rows: each[0].chance(rows) + each[1].chance(rows), True)
            chance, option, most = support + query, "lower shots or queries", max(self.shots, self.queries)
        text = f"its domain of {', '.join(self._domain)} has too few classes that can be drawn"
        reason = Reason(text if self._domain else "too few classes can be drawn", "lower ways, shots or queries")
        groups = reached_groups(self.table, classes, (), chance, others=[(reason, few)], option=option)
        return self._reach(groups, sets, self._notes(), is_estimated(classes, most))

    def _title(self) -> str:
        rows = counted(self.queries, "query row")
        return f"EpisodeSampler: {self.ways}-way {self.shots}-shot, {rows} of each class"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        sampler, size = self._classes, self.shots + self.queries
        if self._pairs is None:
            entry = group_entry(self.table, sampler, size, self.ways, "different", shares=self._tree.shares())
            return self._report([entry], self._notes())
        return self._report([counts_entry(sampler)], self._notes())

    def _notes(self) -> list[str]:
        """Which domains and classes an episode is of."""
        if self._pairs is None:
            classes = f"{self.ways} of {span(*self._tree.width(len(self._tree.counts) - 1))} classes"
            if not self._domain:
                return [f"an episode has {classes}"]
            domains = counted(self._tree.width(0)[0], "domain")
            return [f"an episode is of one of {domains} of {', '.join(self._domain)}, and has {classes} there"]
        count = self._pairs.domains * (self._pairs.domains - 1)
        notes = [
            f"support and query are of two domains of {', '.join(self._domain)}: {self._pairs.pairs:,} of {count:,} "
            f"ordered pairs, which share {span(*self._pairs.widths)} classes"
        ]
        for missing, what in ((self._pairs.unsupported, "support"), (self._pairs.unqueried, "query")):
            if missing.any():
                notes.append(f"never a domain of the {what}: {int(missing.sum()):,} of {self._pairs.domains:,}")
        return notes


def _lower() -> str:
    """What to do where too few classes have enough rows."""
    return f"lower {spell_name('ways')}, {spell_name('shots')} or {spell_name('queries')}"
