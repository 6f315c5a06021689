"""Triplets: an anchor, a positive of the same orbit and a negative of another one.

The simplest use of orbits, as in the discriminative term of the orbit joint loss [1]_.

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders", 2017 (arXiv 1703.04775).

"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from setsup.arrays import Steps
from setsup.checks import check_integer
from setsup.errors import SamplerError, brief
from setsup.factors.table import FactorTable
from setsup.random import below, fold, mix, spread, stream_key
from setsup.samplers.arguments import (
    MOST_SETS,
    Weights,
    Where,
    check_draw_memory,
    check_names,
    check_table,
    copy_arguments,
    row_weights,
)
from setsup.samplers.draw import Draw
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import WeightedMembers
from setsup.samplers.groups.statistics import group_entry
from setsup.samplers.groups.within import GROUP, Keys, word
from setsup.samplers.report import Report
from setsup.samplers.sampler import Sampler

__all__ = ["TripletSampler"]

_SMALL = ("error", "drop")  # an orbit of one row has no positive, whatever else is done with it


class TripletSampler(Sampler):
    """Draws triplets of rows: anchor, positive, negative.

    The anchor's orbit is chosen by ``choose``; anchor and positive are two different members of it, uniform over
    ordered pairs; the negative is uniform over the rows of all other orbits, those too small for an anchor included.

    Parameters
    ----------
    table : FactorTable
        The factors of a dataset; draws are rows of it.
    orbit : str or list of str
        Factors whose combinations are the orbits.
    triplets : int
        Triplets per step.
    choose : str
        ``rows`` (default: every row of an orbit with two or more members is an equally likely anchor), ``groups`` or
        ``levels``.
    small : str
        Orbits of one row have no positive: ``error`` refuses, ``drop`` takes no anchor from them.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it: the anchor is drawn by weight within its orbit, the
        positive by weight among the orbit's other rows, the negative by weight over the rows of all other orbits. With
        ``choose="rows"`` orbits are chosen by their total weight. Rows of weight 0 are never drawn.
    where : str, (rows,) bool or list of int, optional
        Rows that may be drawn: an expression that they satisfy, one boolean per row, or their numbers. Rows keep their
        numbers.
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Two samplers of one class with one seed are correlated unless their streams differ.

    Raises
    ------
    SamplerError, FactorError
        When the arguments contradict each other or the table.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> triplets = setsup.TripletSampler(shapes.factors, "shape", triplets=5)
    >>> anchor, positive, negative = shapes.factors.codes("shape", triplets[0].indices).T
    >>> bool((anchor == positive).all()), bool((anchor == negative).any())
    (True, False)

    """

    def __init__(
        self,
        table: FactorTable,
        orbit: str | Sequence[str],
        triplets: int = 32,
        *,
        choose: Literal["levels", "groups", "rows"] = "rows",
        small: Literal["error", "drop", "short", "replace"] = "error",
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "TripletSampler",
    ) -> None:
        self.arguments = copy_arguments(locals())
        names = check_names(orbit, "orbit")
        if not isinstance(small, str) or small not in _SMALL:
            raise SamplerError(
                f"small must be error or drop, for an orbit of one row has no positive, not {brief(small)}"
            )
        self.table, self.triplets = check_table(table), check_integer(triplets, "triplets", SamplerError, 1, MOST_SETS)
        check_draw_memory(3 * self.triplets, "a draw", "triplets")
        self._orbits = GroupSampler(
            table,
            names,
            2,
            choose=choose,
            small=small,
            tolerance={},
            weights=row_weights(table, weights),
            where=where,
            policies=_SMALL,
        )
        groups = self._orbits.groups
        if len(groups) < 2:
            raise SamplerError(f"there is only one orbit of {self._orbits.describe()}, so no row is a negative")
        self._ends = np.cumsum(groups.sizes)
        self._key = stream_key(seed, stream)
        self._numbers = np.arange(self.triplets, dtype=np.uint64)
        self._spread = spread(word(self._numbers[:, None], GROUP, np.arange(4)))

    def draws(self, steps: Steps) -> Draw:
        """Draws of any steps as one block; indices (steps, triplets, 3)."""
        members = self._orbits.members
        return self._by_weight(steps, members) if isinstance(members, WeightedMembers) else self._evenly(steps)

    def _by_weight(self, steps: Steps, members: WeightedMembers) -> Draw:
        key = fold(self._key, steps)
        bits = mix(key[:, None, None], self._spread)
        chosen = self._orbits.chooser.pick(bits[..., 0])
        pairs, _ = self._orbits.draw(Keys(key, self._numbers), chosen, 2)
        stranger = members.other_group(bits[..., 1], self._orbits.number(chosen))
        negative = members.pick(bits[..., 2], stranger)
        return Draw(np.concatenate([pairs, negative[..., None]], axis=-1))

    def _evenly(self, steps: Steps) -> Draw:
        bits = mix(fold(self._key, steps)[:, None, None], self._spread)
        groups = self._orbits.groups
        orbit = self._orbits.number(self._orbits.chooser.pick(bits[..., 0]))
        size = groups.sizes[orbit]
        anchor = below(bits[..., 1], size)
        positive_ = below(bits[..., 2], size - 1)
        positive_ += positive_ >= anchor
        # rows of all orbits stand in one line; the anchor's orbit is cut out of it
        other = below(bits[..., 3], groups.rows - size)
        other += np.where(other >= self._ends[orbit] - size, size, 0)
        stranger = np.searchsorted(self._ends, other, side="right")
        negative = groups.take(stranger, other - (self._ends[stranger] - groups.sizes[stranger]))
        return Draw(np.stack([groups.take(orbit, anchor), groups.take(orbit, positive_), negative], axis=-1))

    def report(self) -> Report:
        """What is drawn, and what never is, before any training."""
        groups, drawable = self._orbits.groups, self._orbits.drawable
        sizes = groups.sizes[drawable].astype(np.float64)
        entry = group_entry(self.table, self._orbits, 2)
        entry = replace(
            entry,
            unreachable=0,  # rows of orbits too small for an anchor are negatives
            log10_sets=math.log10((sizes * (sizes - 1) * (groups.rows - sizes)).sum()),
            shared_rows=math.nan,
            distinct={},  # anchor and positive are a pair, and the negative has what it has
            estimated=False,
        )
        lonely = len(groups) - len(drawable)
        notes = [f"{lonely:,} orbits of one row are drawn as negatives only"] if lonely else []
        return Report(f"TripletSampler: {self.triplets} of anchor, positive, negative", [entry], notes)
