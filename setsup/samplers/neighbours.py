"""Hard positives and negatives: rows that are near the anchor in an embedding and satisfy a constraint with it.

Dense retrieval [1]_ draws negatives from the nearest rows with another label, which the network in training finds again
after a number of steps; NNCLR [2]_ uses the nearest rows themselves as positives.

References
----------
.. [1] L. Xiong et al., "Approximate nearest neighbor negative contrastive learning for dense text retrieval", ICLR 2021
   (arXiv 2007.00808).
.. [2] D. Dwibedi, Y. Aytar, J. Tompson, P. Sermanet, A. Zisserman, "With a little help from my friends:
   nearest-neighbor contrastive learning of visual representations", ICCV 2021 (arXiv 2104.14548).

"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows, Steps
from setsup.checks import check_integer
from setsup.errors import SamplerError, abbreviate, advice
from setsup.factors.constraint import Constraint, read_constraint
from setsup.factors.table import FactorTable
from setsup.html import counted
from setsup.random import fold, mix
from setsup.samplers.arguments import check_draw_memory, check_sets
from setsup.samplers.coverage import NOT_COUNTED, Reach, SetReach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.within import spread_words
from setsup.samplers.partners.anchored_neighbours import AnchoredNeighbours
from setsup.samplers.partners.neighbour_tables import read_tables
from setsup.samplers.report import Report
from setsup.samplers.report_words import span
from setsup.samplers.row_arguments import Weights, Where
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell, spell_name

__all__ = ["NeighbourSampler"]


Neighbours = str | Path | Array | Sequence[Sequence[int]] | Mapping[Any, Any]
"""A neighbour table or its file, or tables by the step from which they hold."""


class NeighbourSampler(Sampler):
    """Draws anchors with some of their nearest neighbours: pairs, or triplets of anchor, positive and negative.

    For each pair or triplet, independently: the anchor is uniform over the rows that have a valid row for every other
    position; given the anchor, the other rows are independent, each uniform over its valid rows. The valid rows of a
    position are the neighbours of the anchor with ranks r₁ … r₂ that satisfy its constraint; for a position without
    ranks, all rows of the table that satisfy it. The anchor itself is never valid. With `weights`, the anchor and the
    other rows are drawn by weight instead of uniformly. A draw costs O(rows drawn), with `weights` times a logarithm.

    A neighbour table holds from its step on until the step of the next one. Its digest is one of the key words: another
    table gives other draws, and the draws of a step depend only on the table that holds there.

    Parameters
    ----------
    neighbours : (rows, k) integers or path, or mapping of step to these
        Row numbers of the neighbours of each row, nearest first. Each neighbour is listed once, with -1 where there are
        fewer: the result of :func:`setsup.evaluation.nearest` for embeddings of all rows, or an ``.npy`` file of it. By
        step, ``{0: first, 1000: second}``, each holds from its step on; tables for past steps may be left out.
    positive, negative : str, optional
        Which neighbours are positives and negatives of the anchor, as constraints such as
        ``"id == anchor.id and camera != anchor.camera"``; see :class:`TripletSampler`. With only one of them, pairs are
        drawn; with neither, pairs of an anchor and any of its neighbours.
    sets : int
        Pairs or triplets per step.
    ranks : (int, int) or mapping of str to (int, int), optional
        First and last rank to draw from, counted from 1; by default all ranks of the table. By position,
        ``{"negative": (1, 20)}``; a position that is left out is drawn from all rows that satisfy its constraint, near
        or not.
    every : int, optional
        Largest number of steps for which a table holds; later steps are an error that names the missing table. By
        default the last table holds without end.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it. Rows of weight 0 are never drawn and never valid;
        they keep their ranks in the tables. For positions without ranks, weights are counted in the unit of
        :class:`TripletSampler`.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError, DataError
        If the arguments contradict each other or the table, or no row has a valid neighbour. Steps before the first
        table, or ``every`` steps after the last one, cannot be drawn.

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
        rows, row_weight = self._read({**locals(), "neighbours": None})
        self.sets = check_sets(sets)
        texts = {role: text for role, text in (("positive", positive), ("negative", negative)) if text is not None}
        constraints = {role: read_constraint(text, table, role) for role, text in texts.items()}
        self._roles = list(constraints) or ["neighbour"]
        check_draw_memory((1 + len(self._roles)) * self.sets, "a draw", "sets")
        tables = read_tables(neighbours, len(table))
        self.arguments = {
            **self.arguments,
            "neighbours": {step: neighbour_table.plain for step, neighbour_table in tables.items()},
        }
        self._ranks = _read_ranks(ranks, self._roles)
        self._every = None if every is None else check_integer(every, "every", SamplerError, 1)
        anchored = AnchoredNeighbours(table, constraints or {"neighbour": Constraint("any")}, rows, row_weight)
        self.shared = anchored.shared
        """Factors that the first two rows of each pair or triplet share."""
        self._steps = np.array(list(tables), dtype=np.int64)
        self.first_step = int(self._steps[0])
        self._digests = [neighbour_table.digest for neighbour_table in tables.values()]
        self._tables = [
            anchored.of_table(neighbour_table.rows, self._ranks, step) for step, neighbour_table in tables.items()
        ]
        self._keys = np.array([fold(self._key, int(digest[:16], 16)) for digest in self._digests], dtype=np.uint64)
        self._spread = spread_words(self.sets, 1 + len(self._roles))

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block; indices (steps, sets, 2 or 3)."""
        numbers = self._table_numbers(steps)
        bits = mix(fold(self._keys[numbers], steps)[:, None, None], self._spread)
        indices = np.empty(bits.shape, dtype=np.int64)
        for number in np.unique(numbers):
            of_table = numbers == number
            indices[of_table] = self._tables[number].draw(bits[of_table])
        if len(self._roles) > 1:  # as all triplets
            return Draw(indices)
        return Draw(indices, {name: self.table.codes(name, indices[..., 0]).astype(np.int64) for name in self.shared})

    def _table_numbers(self, steps: Steps) -> Rows:
        """Number of the table that holds at each of some steps; an error where none does."""
        numbers = np.searchsorted(self._steps, steps, side="right") - 1
        if (early := numbers < 0).any():
            step, first = int(steps[early][0]), int(self._steps[0])
            raise SamplerError(
                f"step {step} has no neighbour table: the first table starts at step {first}; {_refresh(step)}"
            )
        if self._every is not None and (late := steps - self._steps[numbers] >= self._every).any():
            step, last = int(steps[late][0]), int(self._steps[numbers[late][0]])
            raise SamplerError(
                f"step {step} has no neighbour table: the table of step {last} is valid for "
                f"{spell(every=self._every)} steps; {_refresh(last + self._every)}"
            )
        return numbers

    @property
    def words(self) -> str:
        """What is drawn from the neighbours of the anchor, in few words."""
        parts = []
        for role, (first, last) in self._ranks.items():
            which = "any rank" if last is None and first == 1 else f"rank {span(first, last or first)}"
            parts.append(f"{role} of {which}" if role != "neighbour" else f"neighbours of {which}")
        return f"nearest rows: {', '.join(parts)}"

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        number = int(self._table_numbers(check_step(self, step))[0])
        groups, chance = self._tables[number].reach(self.sets)
        notes = [NOT_COUNTED] if np.isnan(chance).any() else []
        return self._reach(groups, SetReach(tuple(range(self.sets)), lambda rows: chance[rows]), notes)

    def _title(self) -> str:
        return f"NeighbourSampler: {counted(self.sets, 'set')}"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training: one entry per table."""
        kind = "pairs of anchor and" if len(self._roles) == 1 else "triplets of anchor,"
        title = f"NeighbourSampler: {self.sets} {kind} {', '.join(self._roles)}"
        notes = []
        for number, (step, digest) in enumerate(zip(self._steps, self._digests, strict=True)):
            ends = [int(self._steps[number + 1])] if number + 1 < len(self._steps) else []
            ends += [int(step) + self._every] if self._every is not None else []
            until = f"steps {step:,} to {min(ends) - 1:,}" if ends else f"steps from {step:,} on"
            which = f", entry {number + 1}" if len(self._steps) > 1 else ""
            notes.append(f"{until}{which}: the neighbour table with the digest {digest}")
        return self._report([table.entry() for table in self._tables], notes, title=title)


def _read_ranks(value: Any, roles: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    """First and last rank of the roles that are drawn from neighbours; None for the last of a table."""
    if value is None:
        return dict.fromkeys(roles, (1, None))
    ranks_by_role = value if isinstance(value, Mapping) else dict.fromkeys(roles, value)
    if not ranks_by_role or set(ranks_by_role) - set(roles):
        raise SamplerError(
            f"{spell_name('ranks')} must be (first, last), or a mapping with the keys {' or '.join(roles)}, such as "
            f"{{{roles[-1]!r}: (1, 10)}}, not {abbreviate(value)}"
        )
    ranks: dict[str, tuple[int, int | None]] = {}
    for role, ends in ranks_by_role.items():
        pair = list(ends) if isinstance(ends, list | tuple | np.ndarray) else []
        if len(pair) != 2:
            raise SamplerError(
                f"{spell_name('ranks')} must be the first and the last rank, such as (1, 10), not {abbreviate(ends)}"
            )
        first = check_integer(pair[0], "the first rank", SamplerError, 1)
        ranks[role] = first, check_integer(pair[1], "the last rank", SamplerError, first)
    return ranks


def _refresh(step: int) -> str:
    """What to do where no table holds for a step."""
    return advice(
        "embed all rows with the network at that step, pass the result of setsup.evaluation.nearest as the neighbour "
        f"table of step {step}, and continue with the new sampler",
        f"pass the table of that step too, --neighbours {step}:FILE",
    )
