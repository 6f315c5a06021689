"""Batches over several levels of groups: P domains, C classes in each, K rows in each of these.

Losses that contrast classes within a domain, and metric learning with categories of classes [1]_, need batches in
which every drawn group of the outer level has several of the inner one.

References
----------
.. [1] F. Cakir, K. He, X. Xia, B. Kulis, S. Sclaroff, "Deep metric learning to rank", CVPR 2019 (FastAP).

"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from setsup.arrays import Rows, Steps
from setsup.errors import SamplerError, abbreviate, advice
from setsup.factors.table import FactorTable
from setsup.random import fold
from setsup.samplers.arguments import MOST_SETS, check_draw_memory, check_names, check_sets, check_size
from setsup.samplers.coverage import Reach, Reason
from setsup.samplers.draw import Draw, by_factor
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.hierarchy import Hierarchy, values_of
from setsup.samplers.groups.members import REFUSALS, check_refusal
from setsup.samplers.groups.reach_chances import is_estimated, reached_groups, set_reach
from setsup.samplers.groups.statistics import group_entry
from setsup.samplers.groups.within import Keys
from setsup.samplers.report import Report
from setsup.samplers.report_words import span
from setsup.samplers.row_arguments import Weights, Where
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell, spell_name

__all__ = ["HierarchicalSampler"]

_GROUPS, _ROWS = 0, 1  # what a key is for


class HierarchicalSampler(Sampler):
    """Draws P groups, C groups within each of these, and so on, with K rows of each innermost group.

    At each level the groups, and their order, are uniform without replacement over those that can be drawn. A group can
    be drawn if it has at least as many drawable groups within it, or rows, as a draw takes from it. Rows are uniform
    without repeats. A set of the draw is an innermost group; the sets of one outer group follow each other.

    Parameters
    ----------
    factors : list of str, or of lists of str
        Factor of each layer of the hierarchy, outermost first; several factors stand for their combinations.
    sets : list of int
        Groups per layer: ``[4, 8]`` draws 4 groups of the first layer, and 8 of the second in each of them.
    size : int
        Rows per innermost group.
    on_small_group : str
        What to do with groups that contain too few rows or too few groups: ``error`` raises an error, ``drop`` leaves
        them out.
    weights : str or (rows,) float, optional
        Relative probability of each row within its group, or the factor that has it; without repeats by successive
        sampling. Rows of weight 0 are never drawn and do not count.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError
        If the arguments contradict each other or the table, or too few groups can be drawn.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> batches = setsup.HierarchicalSampler(shapes.factors, ["shape", "object_hue"], sets=[2, 3], size=8)
    >>> draw = batches[0]
    >>> draw.indices.shape, len(set(draw.inactive["shape"][:3].tolist())), len(set(draw.inactive["shape"].tolist()))
    ((6, 8), 1, 2)

    """

    def __init__(
        self,
        table: FactorTable,
        factors: Sequence[str | Sequence[str]],
        sets: Sequence[int],
        size: int = 8,
        *,
        on_small_group: Literal["error", "drop"] = "error",
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "HierarchicalSampler",
    ) -> None:
        rows, row_weight = self._read(locals())
        self.size = check_size(size)
        self._levels = _check_levels(factors, sets)
        counts = [count for _, count in self._levels]
        if int(np.prod([float(count) for count in counts])) > MOST_SETS:
            raise SamplerError(
                f"{spell(sets=counts)} results in more than {MOST_SETS:,} sets per step; lower {spell_name('sets')}"
            )
        check_refusal(on_small_group)
        names = [name for names, _ in self._levels for name in names]
        self._groups = GroupSampler(
            table, names, self.size, rows, row_weight, choose="groups", on_small_group=on_small_group, policies=REFUSALS
        )
        groups = self._groups.groups
        values = [values_of(table, groups, names) for names, _ in self._levels]
        self._tree = Hierarchy(values, counts, groups.sizes >= self.size)
        self._check_drawable(on_small_group, values)
        check_draw_memory(self.size * self._tree.sets, "a draw", "size or sets")
        self._groups.restrict(self._tree.leaves)

    def _check_drawable(self, on_small_group: str, values: Sequence[Rows]) -> None:
        """Refuse levels with too few groups within one of the next level out, unless these may be left out."""
        counts, most = self._tree.counts, self._tree.most
        for depth, (names, count) in reversed(list(enumerate(self._levels))):  # what is lost within is lost outside
            if most[depth] < count:
                inner = f" within one of {', '.join(self._levels[depth - 1][0])}" if depth else ""
                raise SamplerError(
                    f"a step draws {count} groups of {', '.join(names)}{inner}, but only {most[depth]:,} can be drawn "
                    f"with {spell(size=self.size)} and {spell(sets=list(counts))}; lower {spell_name('size')} or "
                    f"{spell_name('sets')}"
                )
        left = len(values[0]) - len(self._tree.leaves)
        if left and on_small_group == "error":
            lost = np.setdiff1d(np.arange(len(values[0])), self._tree.leaves)[:5]
            examples = "; ".join(self._groups.groups.describe(self.table, int(group)) for group in lost)
            raise SamplerError(
                f"{left:,} of {len(values[0]):,} groups of {self._groups.describe()} belong to outer groups with "
                f"fewer inner groups than {spell(sets=list(counts))} requires (first: {examples}); lower "
                f"{spell_name('sets')}, or pass {spell(on_small_group='drop')} to leave them out"
            )

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block; indices (steps, product of the sets, size)."""
        key = fold(self._key, steps)
        groups = self._tree.draw(fold(key, _GROUPS))
        keys = Keys(fold(key, _ROWS), np.arange(self._tree.sets, dtype=np.uint64))
        rows, _ = self._groups.members.draw(keys, groups.reshape(-1), self.size, "error")
        codes = by_factor(self._groups.names, self._groups.groups.keys(groups))
        return Draw(rows.reshape(*groups.shape, self.size), codes)

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        numbers = range(self._tree.sets)
        chance = self._tree.shares() * len(numbers)
        sets = set_reach(self.table, self._groups, numbers, self.size, chance, together=True)
        outer = " or ".join(", ".join(names) for names, _ in self._levels[:-1])
        reason = Reason(f"its outer group of {outer} has fewer groups than a step draws from it", "lower sets")
        few = np.setdiff1d(np.flatnonzero(self._groups.groups.sizes >= self.size), self._groups.drawable)
        groups = reached_groups(self.table, self._groups, (), chance, others=[(reason, few)], option="lower size")
        return self._reach(groups, sets, estimated=is_estimated(self._groups, self.size))

    def _title(self) -> str:
        parts = [f"{count} of {', '.join(names)}" for names, count in self._levels]
        return f"HierarchicalSampler: {', in each '.join(parts)}, {self.size} rows each"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        entry = group_entry(
            self.table, self._groups, self.size, self._tree.sets, "different", shares=self._tree.shares()
        )
        notes = []
        for depth, (names, count) in enumerate(self._levels):
            children = span(*self._tree.width(depth))
            notes.append(f"{', '.join(names)}: {count} of {children}{' in each' if depth else ''}")
        return self._report([entry], notes)


def _check_levels(factors: Sequence[str | Sequence[str]], sets: Sequence[int]) -> list[tuple[list[str], int]]:
    """Factors of each level, and how many of its groups are drawn."""
    if isinstance(factors, str) or not isinstance(factors, Sequence) or len(factors) < 2:
        name, single = advice("factors", "--hierarchy"), advice("a DomainSampler", "--domain")
        raise SamplerError(
            f"{name} must list the factors of at least two levels, the outermost first, such as ['domain', 'class'], "
            f"not {abbreviate(factors)}; for one level use {single}"
        )
    if isinstance(sets, str) or not isinstance(sets, Sequence) or len(sets) != len(factors):
        raise SamplerError(
            f"{spell_name('sets')} must be a list of {len(factors)} integers, one per level, not {abbreviate(sets)}"
        )
    return [
        (check_names(names, "each of factors"), check_sets(count, f"each of {spell_name('sets')}"))
        for names, count in zip(factors, sets, strict=True)
    ]
