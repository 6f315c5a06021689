"""Hard positives and negatives: rows that are near the anchor in an embedding, and go with it by a constraint.

Dense retrieval [1]_ takes its negatives from the nearest rows of another label, found by the network that is trained
and found again every so many steps; NNCLR [2]_ takes the nearest rows themselves for positives.

References
----------
.. [1] L. Xiong et al., "Approximate nearest neighbor negative contrastive learning for dense text retrieval", ICLR 2021
   (arXiv 2007.00808).
.. [2] D. Dwibedi, Y. Aytar, J. Tompson, P. Sermanet, A. Zisserman, "With a little help from my friends:
   nearest-neighbor contrastive learning of visual representations", ICCV 2021 (arXiv 2104.14548).

"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array, Reals, Rows, Steps, Words
from setsup.checks import check_integer
from setsup.errors import SamplerError, abbreviate, advice
from setsup.factors.constraint import Constraint, read_constraint
from setsup.factors.counting import with_outer
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.html import counted
from setsup.random import below_few, fold, mix, spread
from setsup.samplers.arguments import Weights, Where, both, check_draw_memory, check_sets
from setsup.samplers.coverage import NOT_COUNTED, Reach, ReachedGroups, Reason, SetReach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.chances import at_least_one
from setsup.samplers.groups.within import GROUP, pick_by_weight, word
from setsup.samplers.partners.constrained_neighbours import AllRows, Nearest, chance_of_rows
from setsup.samplers.partners.neighbour_tables import read_tables
from setsup.samplers.report import AnchorEntry, Partners, Report, anchors_lost, span
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell_name

__all__ = ["NeighbourSampler"]


Neighbours = str | Path | Array | Sequence[Sequence[int]] | Mapping[Any, Any]
"""A neighbour table or its file, or tables by the step from which they hold."""


class NeighbourSampler(Sampler):
    """Draws anchors with some of their nearest neighbours: pairs, or triplets of anchor, positive and negative.

    For each pair or triplet, independently: the anchor is uniform over the rows that have a valid row for every other
    position; given the anchor, the other rows are independent, each uniform over its valid ones. Valid for a position
    are, among the neighbours of the anchor with ranks r₁ … r₂, those that satisfy its constraint; for one without
    ranks, all rows of the table that do. The anchor itself is never among them. With `weights`, the anchor is drawn by
    weight among these rows, and every other row by weight among its valid ones. A draw costs O(rows drawn), with
    `weights` times a logarithm.

    A neighbour table holds from its step on until that of the next one. Its digest is one of the key words, so that
    another table is another draw, and the draws of a step depend on the table that holds there, on no other.

    Parameters
    ----------
    neighbours : (rows, k) integers or path, or mapping of step to these
        The rows nearest to each row, nearest first. Each is named once, -1 where there are fewer: what
        :func:`setsup.evaluation.nearest` gives for embeddings of all rows, or an ``.npy`` file of it. By step,
        ``{0: first, 1000: second}``, each holds from its step on; tables of steps that are over may be left out.
    positive, negative : str, optional
        Which neighbours are positives and negatives of the anchor, as constraints such as
        ``"id == anchor.id and camera != anchor.camera"``; see :class:`TripletSampler`. With one of them, or with none
        and any neighbours, pairs are drawn.
    sets : int
        Pairs or triplets per step.
    ranks : (int, int) or mapping of str to (int, int), optional
        First and last rank, from 1; by default all of the table. By position, ``{"negative": (1, 20)}``; one that is
        left out is drawn from all rows that satisfy its constraint, near or not.
    every : int, optional
        Steps for which a table holds at most; a step after that is an error, which says which table is missing. By
        default the last table holds without end.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it. Rows of weight 0 are never drawn, and valid for no
        anchor; they keep their ranks in the tables. For positions without ranks, weights are counted in the unit of
        :class:`TripletSampler`.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError, DataError
        When the arguments contradict each other or the table, or no row has a valid neighbour. A step before the first
        table, or ``every`` steps after one, cannot be drawn.

    Examples
    --------
    The two nearest rows of each row, in one dimension; then of each row the nearest one of another label:

    >>> import numpy as np, setsup
    >>> from setsup.evaluation import nearest
    >>> points, rows = np.array([[0.0], [1.0], [1.2], [5.0]]), np.arange(4)
    >>> table = setsup.FactorTable.from_values({"label": ["a", "a", "b", "b"]})
    >>> neighbours, _ = nearest(points, points, k=2, own=rows)
    >>> hard = setsup.NeighbourSampler(table, neighbours, negative="label != anchor.label", ranks=(1, 1), sets=64)
    >>> sorted(set(map(tuple, hard[0].indices.tolist())))
    [(1, 2), (2, 1)]

    """

    def __init__(
        self,
        table: FactorTable,
        neighbours: Neighbours,
        positive: str | None = None,
        negative: str | None = None,
        sets: int = 32,
        *,
        ranks: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
        every: int | None = None,
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "NeighbourSampler",
    ) -> None:
        self._mask, self._weights = self._read({**locals(), "neighbours": None})
        self.sets = check_sets(sets)
        texts = {role: text for role, text in (("positive", positive), ("negative", negative)) if text is not None}
        constraints = {role: read_constraint(text, table, role) for role, text in texts.items()}
        self._constraints = constraints or {"neighbour": Constraint("any")}
        check_draw_memory((1 + len(self._constraints)) * self.sets, "a draw", "sets")
        self.shared = with_outer(table, next(iter(self._constraints.values())).equal)
        """Factors that the first two rows of each pair or triplet share."""
        tables = read_tables(neighbours, len(table))
        self.arguments = {**self.arguments, "neighbours": {step: one.plain for step, one in tables.items()}}
        self._spans = _read_ranks(ranks, list(self._constraints))
        self._every = None if every is None else check_integer(every, "every", SamplerError, 1)
        anywhere = {
            role: AllRows(table, one, self._mask, self._weights)
            for role, one in constraints.items()
            if role not in self._spans
        }
        self._steps = np.array(list(tables), dtype=np.int64)
        self.first_step = int(self._steps[0])
        self._digests = [one.digest for one in tables.values()]
        self._companions: list[dict[str, Nearest | AllRows]] = []
        self._anchors: list[Rows] = []
        self._anchor_ends: list[Reals] = []
        for step, one in tables.items():
            found = {
                role: anywhere[role] if role in anywhere else self._nearest(one.rows, role, step)
                for role in self._constraints
            }
            able = np.all([one.counts > 0 for one in found.values()], axis=0)
            self._companions.append(found)
            self._anchors.append(np.flatnonzero(able))
            if self._weights is not None:
                exponent = np.frexp(self._weights.max())[1]  # the smallest of all numbers have few digits
                self._anchor_ends.append(np.cumsum(np.ldexp(self._weights[able], -exponent)))
            if not able.any():
                raise SamplerError(
                    f"no row has a valid {' and '.join(found)} in the neighbour table of step {step}: "
                    f"{anchors_lost(*self._lost(found))}; make a table with more neighbours, or widen ranks"
                )
        self._keys = np.array([fold(self._key, int(digest[:16], 16)) for digest in self._digests], dtype=np.uint64)
        numbers = np.arange(self.sets)[:, None]
        self._spread = spread(word(numbers, GROUP, np.arange(1 + len(self._constraints))))

    def _nearest(self, rows: Array, role: str, step: int) -> Nearest:
        first, last = self._spans[role]
        if (last or first) > rows.shape[1]:
            raise SamplerError(
                f"ranks {first} to {last} of the {role} go beyond the {rows.shape[1]} neighbours of the table of step "
                f"{step}: lower {spell_name('ranks')}, or make a table with more neighbours"
            )
        return Nearest(self.table, self._constraints[role], rows[:, first - 1 : last], self._mask, self._weights)

    def draws(self, steps: Steps) -> Draw:
        """Draws of any steps as one block; indices (steps, sets, 2 or 3)."""
        held = np.searchsorted(self._steps, steps, side="right") - 1
        self._check(steps, held)
        bits = mix(fold(self._keys[held], steps)[:, None, None], self._spread)
        indices = np.empty(bits.shape, dtype=np.int64)
        for number in np.unique(held):
            some = held == number
            words = bits[some]
            anchor = self._anchor(int(number), words[..., 0])
            others = self._companions[number].values()
            found = [one.take(anchor, words[..., place]) for place, one in enumerate(others, 1)]
            indices[some] = np.stack([anchor, *found], axis=-1)
        if len(self._constraints) > 1:  # as all triplets
            return Draw(indices)
        return Draw(indices, {name: self.table.codes(name, indices[..., 0]).astype(np.int64) for name in self.shared})

    def _anchor(self, number: int, bits: Words) -> Rows:
        """Anchors for the table of a number, of the shape of the bits."""
        anchors = self._anchors[number]
        if self._weights is None:
            return np.asarray(anchors[below_few(bits, len(anchors))])
        return np.asarray(anchors[pick_by_weight(bits, self._anchor_ends[number], 0, len(anchors))])

    def _check(self, steps: Steps, held: Rows) -> None:
        """Refuse steps for which no table holds."""
        if (early := held < 0).any():
            step, first = int(steps[early][0]), int(self._steps[0])
            raise SamplerError(
                f"step {step} has no neighbour table, the first one is of step {first}: {_refresh(step)}"
            )
        if self._every is not None and (late := steps - self._steps[held] >= self._every).any():
            step, last = int(steps[late][0]), int(self._steps[held[late][0]])
            raise SamplerError(
                f"step {step} has no neighbour table, that of step {last} holds for every={self._every} steps: "
                f"{_refresh(last + self._every)}"
            )

    @property
    def words(self) -> str:
        """What is drawn from the neighbours of the anchor, in few words."""
        found = []
        for role, (first, last) in self._spans.items():
            which = "any rank" if last is None and first == 1 else f"rank {span(first, last or first)}"
            found.append(f"{role} of {which}" if role != "neighbour" else f"neighbours of {which}")
        return f"nearest rows: {', '.join(found)}"

    def reach(self, step: int = 0) -> Reach:
        """Which groups and rows a step can draw, and with which chance; why others are never drawn."""
        check_step(self, step)
        steps = np.array([step], dtype=np.int64)
        held = np.searchsorted(self._steps, steps, side="right") - 1
        self._check(steps, held)
        companions, anchors = self._companions[int(held[0])], self._anchors[int(held[0])]
        of_anchor = np.zeros(len(self.table))
        of_anchor[anchors] = 1.0 if self._weights is None else self._weights[anchors]
        of_anchor /= of_anchor.sum()
        chance = chance_of_rows(list(companions.values()), of_anchor)
        notes = [NOT_COUNTED] if np.isnan(chance).any() else []
        groups = group_by(self.table, self.shared, self._mask)
        of_rows = groups.of_rows()
        known = of_rows >= 0
        drawn = np.bincount(of_rows[known & (chance != 0)], minlength=len(groups)) > 0
        share = np.bincount(of_rows[anchors], of_anchor[anchors], minlength=len(groups)).astype(np.float64)
        of_step = at_least_one(share, self.sets) if len(companions) == 1 else np.where(drawn, np.nan, 0.0)
        reason = Reason(f"no row of it has a valid {' and '.join(companions)}, or is one", "widen ranks=")
        found = ReachedGroups(
            ", ".join(self.shared) or "nothing",
            (),
            groups,
            of_step,
            (reason,),
            np.where(drawn, -1, 0).astype(np.int8),
            unreached=int((known & (chance == 0) & drawn[of_rows]).sum()),
        )
        sets = SetReach(tuple(range(self.sets)), lambda rows: chance[rows])
        return self._reach(found, sets, notes)

    def _title(self) -> str:
        return f"NeighbourSampler: {counted(self.sets, 'set')}"

    def report(self) -> Report:
        """What is drawn, and what never is, before any training: an entry for each table."""
        kind = "pairs of anchor and" if len(self._constraints) == 1 else "triplets of anchor,"
        title = f"NeighbourSampler: {self.sets} {kind} {', '.join(self._constraints)}"
        notes = []
        for number, (step, digest) in enumerate(zip(self._steps, self._digests, strict=True)):
            ends = [int(self._steps[number + 1])] if number + 1 < len(self._steps) else []
            ends += [int(step) + self._every] if self._every is not None else []
            until = f"steps {step:,} to {min(ends) - 1:,}" if ends else f"steps from {step:,} on"
            which = f", entry {number + 1}" if len(self._steps) > 1 else ""
            notes.append(f"{until}{which}: the neighbour table with the digest {digest}")
        entries = [self._entry(number) for number in range(len(self._steps))]
        return self._report(entries, notes, title=title)

    def _entry(self, number: int) -> AnchorEntry:
        companions, anchors = self._companions[number], self._anchors[number]
        partners, drawn = {}, np.zeros(len(self.table), dtype=bool)
        drawn[anchors] = True
        able, combinations = drawn.copy(), np.ones(len(anchors))
        for role, one in companions.items():
            counts = one.counts[anchors]
            words = ("among the nearest rows, " if isinstance(one, Nearest) else "") + self._constraints[role].text
            partners[role] = Partners(words, int(counts.min()), int(counts.max()), float(counts.mean()))
            combinations *= counts
            drawn |= one.drawn(able)
        lacking, unknown, excluded = self._lost(companions)
        never, number_of = len(self.table) - int(drawn.sum()), math.log10(float(combinations.sum()))
        return AnchorEntry("nothing", len(anchors), 1, partners, lacking, unknown, excluded, never, number_of)

    def _lost(self, companions: Mapping[str, Nearest | AllRows]) -> tuple[dict[str, int], int, int]:
        """Rows that are no anchors: without a row for each role, with an unknown value, and left out."""
        kept = self._mask
        for constraint in self._constraints.values():
            kept = both(kept, constraint.anchors)
        left = np.ones(len(self.table), dtype=bool) if kept is None else kept.copy()
        excluded = len(left) - int(left.sum())
        for name in with_outer(self.table, [name for one in self._constraints.values() for name in one.names]):
            left &= self.table.codes(name) >= 0
        unknown = len(left) - excluded - int(left.sum())
        return {role: int((left & (one.counts == 0)).sum()) for role, one in companions.items()}, unknown, excluded


def _read_ranks(given: Any, roles: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    """First and last rank of the roles that are drawn from neighbours; None for the last of a table."""
    if given is None:
        return dict.fromkeys(roles, (1, None))
    spans = given if isinstance(given, Mapping) else dict.fromkeys(roles, given)
    if not spans or set(spans) - set(roles):
        raise SamplerError(
            f"ranks by position must name {' or '.join(roles)}, as in {{{roles[-1]!r}: (1, 10)}}, not "
            f"{abbreviate(given)}"
        )
    found: dict[str, tuple[int, int | None]] = {}
    for role, ends in spans.items():
        pair = list(ends) if isinstance(ends, list | tuple | np.ndarray) else []
        if len(pair) != 2:
            raise SamplerError(f"ranks must be the first and the last rank, such as (1, 10), not {abbreviate(ends)}")
        first = check_integer(pair[0], "the first of ranks", SamplerError, 1)
        found[role] = first, check_integer(pair[1], "the last of ranks", SamplerError, first)
    return found


def _refresh(step: int) -> str:
    """What to do where no table holds for a step."""
    return advice(
        "embed all rows with the network of that time, give their setsup.evaluation.nearest to neighbours as the table "
        f"of step {step}, and go on with the new sampler",
        f"give the table of that time too, --neighbours {step}:FILE",
    )
