"""Batches balanced over domains: each domain is drawn equally often, and so is each of its rows.

DCoDR [1]_ contrasts an image with others of the *same* domain, so a batch has P domains with K rows each. Domains
come in rounds: a keyed permutation of the D domains is walked in strides of P until every domain has had the same
number of visits; a domain's visits walk through keyed permutations of its rows in the same way. Both positions follow
from the step by arithmetic, so no cursor is kept.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A contrastive objective for learning disentangled representations", ECCV 2022
   (arXiv 2203.11284).

"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from setsup.arrays import Array, Rows, Steps
from setsup.checks import check_choice
from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.random import fold, permute, randint_below
from setsup.samplers.arguments import check_draw_memory, check_names, check_sets
from setsup.samplers.coverage import Reach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import check_small
from setsup.samplers.groups.reach_chances import is_estimated, reached_groups, set_reach
from setsup.samplers.groups.statistics import group_entry
from setsup.samplers.groups.within import Keys
from setsup.samplers.report import Report
from setsup.samplers.row_arguments import Weights, Where
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.schedules import Scheduled, read_size, shorten
from setsup.samplers.spelling import spell

__all__ = ["DomainSampler"]

DOMAINS = ("balanced", "independent", "all")
_ROUND, _VISIT, _STEP = 0, 1, 2  # what a key is for, plus three for each change of the size


class DomainSampler(Sampler):
    """Draws batches of several domains with the same number of rows each.

    With D drawable domains, P ``sets`` and g = gcd(D, P), a round has D/g steps, in which every domain is drawn P/g
    times; no step repeats a domain. The v-th visit to a domain of n ≥ K rows takes K consecutive positions of a
    permutation of its rows. The permutation is renewed every n/gcd(n, K) visits, in which every row is drawn equally
    often.

    Parameters
    ----------
    domain : str or list of str
        Factors whose combinations are the domains.
    sets : int
        Domains per batch, P; fewer domains than P raise an error unless ``domains="all"``.
    size : int or mapping
        Rows per domain, K. ``{0: 16, 1000: 32}`` gives 32 rows from step 1,000 on: the width of a draw is the largest
        size, and positions beyond the size of the step are masked. Rounds and passes over rows start again when the
        size changes. ``on_small_group`` applies to domains with fewer rows than the largest size.
    domains : str
        How domains are chosen. ``balanced``: in rounds in which every domain is drawn equally often; ``all``: the same,
        but with all domains if there are fewer than P; ``independent``: P domains and their rows are drawn
        independently in each step, without full passes over the data (as published for DCoDR).
    on_small_group : str
        What to do with domains that have fewer than K rows: ``error`` raises an error, ``drop`` leaves them out,
        ``short`` uses all their rows and masks the remaining positions, ``replace`` draws K rows with replacement.
    weights : str or (rows,) float, optional
        Relative probability of each row within its domain, or the factor that contains it: the rows of a visit are then
        drawn by successive sampling, each by weight among the rows that are left, and visits are independent. Rows of
        weight 0 are never drawn. Weights do not change how often domains are drawn.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError
        If the arguments contradict each other or the table.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> batches = setsup.DomainSampler(shapes.factors, "shape", sets=4, size=8)
    >>> shapes.factors.values("shape", batches[0].indices).shape
    (4, 8)
    >>> sorted(batches[0].inactive["shape"].tolist())
    [0, 1, 2, 3]

    """

    def __init__(
        self,
        table: FactorTable,
        domain: str | Sequence[str],
        sets: int = 4,
        size: Scheduled = 32,
        *,
        domains: Literal["balanced", "independent", "all"] = "balanced",
        on_small_group: Literal["error", "drop", "short", "replace"] = "error",
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "DomainSampler",
    ) -> None:
        rows, row_weight = self._read(locals())
        check_choice(domains, DOMAINS, "domains", SamplerError)
        names = check_names(domain, "domain")
        self._on_small_group = check_small(on_small_group)
        self._sizes = read_size(size)
        self.arguments, self.size = {**self.arguments, "size": self._sizes.plain()}, self._sizes.most
        self._domains = GroupSampler(
            table, names, self.size, rows, row_weight, choose="groups", on_small_group=on_small_group
        )
        self._weighted = weights is not None
        self._count = len(self._domains.drawable)
        self.sets = check_sets(sets)
        if domains == "all":
            self.sets = min(self.sets, self._count)
        if self.sets > self._count:
            raise SamplerError(
                f"{spell(sets=sets)} exceeds the {self._count} drawable domains of {self._domains.describe()}; pass at "
                f"most {spell(sets=self._count)}, or {spell(domains='all')} to draw all domains"
            )
        check_draw_memory(self.size * self.sets, "a draw", "size or sets", 80)
        self._independent = domains == "independent"

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block."""
        rows, mask, chosen = self._draw_independently(steps) if self._independent else self._draw_in_rounds(steps)
        if mask is not None and mask.all():
            mask = None
        draw = Draw(rows, self._domains.codes(chosen), mask)
        return shorten(draw, [self._sizes], steps) if self._sizes.changes else draw

    def _draw_in_rounds(self, steps: Steps) -> tuple[Rows, Array | None, Rows]:
        if len(self._sizes.starts) == 1:
            return self._draw_rounds(steps, 0)
        stretch = self._sizes.stretch(steps)
        rows, chosen = (
            np.empty((len(steps), self.sets, self.size), np.int64),
            np.empty((len(steps), self.sets), np.int64),
        )
        mask = np.ones(rows.shape, dtype=bool)
        for number in np.unique(stretch).tolist():
            selected = np.flatnonzero(stretch == number)
            of_stretch, counts, chosen[selected] = self._draw_rounds(
                steps[selected] - self._sizes.starts[number], number
            )
            size = of_stretch.shape[-1]
            rows[selected, :, :size], rows[selected, :, size:] = of_stretch, of_stretch[:, :, :1]
            if counts is not None:
                mask[selected, :, :size] = counts
        return rows, mask, chosen

    def _draw_rounds(self, steps: Steps, stretch: int) -> tuple[Rows, Array | None, Rows]:
        """Draws of steps, counted from where the size of a stretch of steps holds."""
        size = int(self._sizes.values[stretch])
        round_key, visit_key = (int(fold(self._key, 3 * stretch + tag)) for tag in (_ROUND, _VISIT))
        shared = math.gcd(self._count, self.sets)
        lap, step = np.divmod(steps, self._count // shared)
        walk = step[:, None] * self.sets + np.arange(self.sets)
        chosen = permute(fold(round_key, lap), self._count, walk % self._count)
        visit = lap[:, None] * (self.sets // shared) + walk // self._count
        rows, mask = self._draw_visits(chosen.reshape(-1), visit.reshape(-1), size, visit_key)
        shape = (*chosen.shape, size)
        return rows.reshape(shape), None if mask is None else mask.reshape(shape), chosen

    def _draw_visits(self, chosen: Rows, visit: Rows, size: int, visit_key: int) -> tuple[Rows, Array | None]:
        """Rows that the given visits of drawable domains take."""
        groups = self._domains.number(chosen)
        if self._weighted:
            visits = Keys(fold(fold(visit_key, chosen), visit), np.zeros(1, dtype=np.uint64))
            return self._domains.members.draw(visits, groups, size, self._on_small_group)
        sizes = self._domains.groups.sizes[groups]
        slot = np.arange(size)
        domain_key = fold(visit_key, chosen)
        few = sizes < size
        lap, turn = np.divmod(visit, np.where(few, 1, sizes // np.gcd(sizes, size)))
        key = fold(domain_key, lap)
        begin = _product_modulo(turn, size, sizes)
        positions = (begin[:, None] + slot) % sizes[:, None]
        mask = None
        if few.any() and self._on_small_group == "short":
            mask = slot < np.where(few, sizes, size)[:, None]
            positions = np.where(mask, positions, 0)
        row_positions = permute(key, sizes, positions)
        if few.any() and self._on_small_group == "replace":
            words = fold(fold(key[few], 1)[:, None], slot)
            row_positions[few] = randint_below(words, sizes[few, None])
        return self._domains.groups.take(groups[:, None], row_positions), mask

    def _draw_independently(self, steps: Steps) -> tuple[Rows, Array | None, Rows]:
        key = fold(int(fold(self._key, _STEP)), steps)
        indices = np.broadcast_to(np.arange(self.sets), (len(steps), self.sets))
        chosen = permute(fold(key, _ROUND), self._count, indices)
        keys = Keys(fold(key, _VISIT), np.arange(self.sets, dtype=np.uint64))
        return *self._domains.draw(keys, chosen, self.size), chosen

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        size = int(self._sizes.at_step(step))
        numbers, chance = range(self.sets), np.full(self._count, self.sets / self._count)
        full = self.size if self._independent else size
        sets = set_reach(self.table, self._domains, numbers, size, chance, together=True, full=full)
        groups = reached_groups(self.table, self._domains, (), chance)
        return self._reach(groups, sets, self._notes(), is_estimated(self._domains, size))

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        entry = group_entry(self.table, self._domains, self.size, self.sets, "different")
        if self.sets == 1 and not self._independent:
            entry = replace(entry, shared_rows=math.nan)  # what two steps share depends on how far apart they are
        notes = self._notes()
        if self._sizes.changes:
            notes.append("figures are for the largest size, for which domains must have rows at every step")
        return self._report([entry], notes)

    def _title(self) -> str:
        return f"DomainSampler: {self.sets} of {self._count} domains with {self._sizes.words()} rows each"

    def _notes(self) -> list[str]:
        """How often domains come."""
        lap = self._count // math.gcd(self._count, self.sets)
        balanced = f"each domain is drawn equally often in every {f'{lap:,} steps' if lap > 1 else 'step'}"
        return ["an independent choice each step" if self._independent else balanced]


def _product_modulo(turn: Rows, size: int, sizes: Rows) -> Rows:
    """``turn * size % sizes``, also where the product exceeds 64 bits."""
    if int(turn.max()) * size < 2**63:
        return turn * size % sizes
    return np.asarray(turn.astype(object) * size % sizes.astype(object), dtype=np.int64)
