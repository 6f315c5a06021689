"""Triplets: an anchor, a positive of the same orbit and a negative of another one.

The simplest use of orbits, as in the discriminative term of the orbit joint loss [1]_.

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders", 2017 (arXiv 1703.04775).

"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Steps, Words
from setsup.errors import SamplerError
from setsup.factors.constraint import read_constraint
from setsup.factors.counting import with_outer
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import fold, mix, randint_below, spread
from setsup.samplers.arguments import Weights, Where, check_draw_memory, check_names, check_sets
from setsup.samplers.coverage import NOT_COUNTED, Reach, ReachedGroups, Reason, SetReach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.anchors import Anchors
from setsup.samplers.groups.chances import at_least_one, set_reach
from setsup.samplers.groups.choose import Chooser
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import REFUSALS, WeightedMembers, check_refusal
from setsup.samplers.groups.statistics import group_entry
from setsup.samplers.groups.within import GROUP, Keys, word
from setsup.samplers.report import AnchorEntry, Entry, Report
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell

__all__ = ["TripletSampler"]


class TripletSampler(Sampler):
    """Draws triplets of rows: anchor, positive, negative.

    The anchor's orbit is chosen by ``choose``; anchor and positive are two different members of it, uniform over
    ordered pairs; the negative is uniform over the rows of all other orbits, those too small for an anchor included.

    With the constraints ``positive`` and ``negative``, the anchor is chosen by ``choose`` over the rows that have both;
    given the anchor, the positive and the negative are independent, and uniform over the rows that satisfy their
    constraint, the anchor never among them. A draw takes time logarithmic in the rows, whatever share of them
    satisfies a constraint. With `weights`, each is drawn by weight in place of uniformly.

    Parameters
    ----------
    orbit : str or list of str, optional
        Factors whose combinations are the orbits.
    triplets : int
        Triplets per step.
    positive, negative : str, optional
        In place of `orbit`, both: which rows are positives and negatives of an anchor, as constraints such as
        ``"id == anchor.id and camera != anchor.camera"``. Terms are joined by ``and``; each compares a factor with the
        anchor's by ``==`` or ``!=`` (at most three ``!=``; an unknown value satisfies neither), or is any expression of
        the row alone (``split == 'gallery'``) or of the anchor alone (``anchor.split == 'query'``).
    choose : str
        ``rows`` (default: every row of an orbit with two or more members is an equally likely anchor), ``groups`` or
        ``levels``. With constraints, over the rows that have a positive and a negative; groups are those of the factors
        that `positive` compares by ``==``.
    on_small_group : str
        Orbits of one row have no positive: ``error`` refuses, ``drop`` takes no anchor from them. Not with constraints:
        a row without a positive or a negative is never an anchor, and the report counts those.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it: the anchor is drawn by weight within its orbit, the
        positive by weight among the orbit's other rows, the negative by weight over the rows of all other orbits. With
        ``choose="rows"`` orbits are chosen by their total weight. With constraints, the anchor is drawn by weight among
        the anchors of its group, positive and negative by weight among the rows that satisfy their constraint; groups
        are chosen by the total weight of their anchors. Rows of weight 0 are never drawn, and satisfy no constraint.
        For constraints, weights are counted in a unit of which the rows that agree in all factors compared by ``==``
        have 2⁶⁰ to 2⁶¹ together, and none that is positive as less.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

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

    The same shape in another orientation, and another shape in the same colour:

    >>> hard = setsup.TripletSampler(
    ...     shapes.factors,
    ...     positive="shape == anchor.shape and orientation != anchor.orientation",
    ...     negative="object_hue == anchor.object_hue and shape != anchor.shape",
    ... )
    >>> anchor, positive, negative = shapes.factors.codes("object_hue", hard[0].indices).T
    >>> bool((anchor == negative).all())
    True

    """

    def __init__(
        self,
        table: FactorTable,
        orbit: str | Sequence[str] | None = None,
        triplets: int = 32,
        *,
        positive: str | None = None,
        negative: str | None = None,
        choose: Literal["levels", "groups", "rows"] = "rows",
        on_small_group: Literal["error", "drop", "short", "replace"] = "error",
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "TripletSampler",
    ) -> None:
        rows, row_weight = self._read(locals())
        self.triplets = check_sets(triplets, "triplets")
        check_draw_memory(3 * self.triplets, "a draw", "triplets")
        self._triplets: _OfOrbits | _OfConstraints
        if positive is None and negative is None:
            if orbit is None:
                raise SamplerError(
                    "name the factors of an orbit, orbit=[…], or the constraints positive= and negative="
                )
            self._triplets = _OfOrbits(table, orbit, choose, on_small_group, rows, row_weight)
        else:
            if orbit is not None or positive is None or negative is None:
                raise SamplerError(
                    f"name the orbit, or both positive and negative, as in {spell(positive='id == anchor.id')}"
                )
            if not isinstance(on_small_group, str) or on_small_group != "error":
                raise SamplerError(
                    "on_small_group goes with orbit, not with positive and negative; rows without a positive or a "
                    "negative are never anchors"
                )
            self._triplets = _OfConstraints(table, positive, negative, choose, rows, row_weight)
        self._numbers = np.arange(self.triplets, dtype=np.uint64)
        self._spread = spread(word(self._numbers[:, None], GROUP, np.arange(4)))

    @property
    def shared(self) -> tuple[str, ...]:
        """Factors that anchor and positive share."""
        return self._triplets.shared

    def draws(self, steps: Steps) -> Draw:
        """Draws of any steps as one block; indices (steps, triplets, 3)."""
        key = fold(self._key, steps)
        return Draw(self._triplets.draw(mix(key[:, None, None], self._spread), Keys(key, self._numbers)))

    def reach(self, step: int = 0) -> Reach:
        """Which groups and rows a step can draw, and with which chance; why others are never drawn."""
        check_step(self, step)
        groups, chance, notes, estimated = self._triplets.reach(self.triplets)
        return self._reach(groups, SetReach(tuple(range(self.triplets)), chance), notes, estimated)

    def _title(self) -> str:
        return f"TripletSampler: {self.triplets} of anchor, positive, negative"

    def report(self) -> Report:
        """What is drawn, and what never is, before any training."""
        entry, notes = self._triplets.entry()
        return self._report([entry], notes)


class _OfOrbits:
    """Anchor and positive of one orbit, the negative of any other."""

    def __init__(
        self,
        table: FactorTable,
        orbit: str | Sequence[str],
        choose: str,
        on_small_group: str,
        rows: Bools | None,
        weights: Reals | None,
    ) -> None:
        names = check_names(orbit, "orbit")
        check_refusal(on_small_group, "an orbit of one row has no positive")
        self._table = table
        self._orbits = GroupSampler(
            table, names, 2, rows, weights, choose=choose, on_small_group=on_small_group, policies=REFUSALS
        )
        groups = self._orbits.groups
        if len(groups) < 2:
            raise SamplerError(f"there is only one orbit of {self._orbits.describe()}, so no row is a negative")
        self._ends = np.cumsum(groups.sizes)
        self.shared = groups.names

    def draw(self, bits: Words, keys: Keys) -> Rows:
        """Rows (steps, triplets, 3), from four words each."""
        members = self._orbits.members
        return self._by_weight(bits, keys, members) if isinstance(members, WeightedMembers) else self._evenly(bits)

    def _by_weight(self, bits: Words, keys: Keys, members: WeightedMembers) -> Rows:
        chosen = self._orbits.chooser.pick(bits[..., 0])
        pairs, _ = self._orbits.draw(keys, chosen, 2)
        stranger = members.other_group(bits[..., 1], self._orbits.number(chosen))
        negative = members.pick(bits[..., 2], stranger)
        return np.concatenate([pairs, negative[..., None]], axis=-1)

    def _evenly(self, bits: Words) -> Rows:
        groups = self._orbits.groups
        orbit = self._orbits.number(self._orbits.chooser.pick(bits[..., 0]))
        size = groups.sizes[orbit]
        anchor = randint_below(bits[..., 1], size)
        positive_ = randint_below(bits[..., 2], size - 1)
        positive_ += positive_ >= anchor
        # rows of all orbits stand in one line; the anchor's orbit is cut out of it
        other = randint_below(bits[..., 3], groups.rows - size)
        other += np.where(other >= self._ends[orbit] - size, size, 0)
        stranger = np.searchsorted(self._ends, other, side="right")
        negative = groups.take(stranger, other - (self._ends[stranger] - groups.sizes[stranger]))
        return np.stack([groups.take(orbit, anchor), groups.take(orbit, positive_), negative], axis=-1)

    def reach(self, triplets: int) -> tuple[ReachedGroups, Callable[[Rows], Reals], list[str], bool]:
        """Groups, the chance of rows in a triplet, notes, and whether that is an approximation."""
        orbits, groups = self._orbits, self._orbits.groups
        weights = orbits.members.totals if isinstance(orbits.members, WeightedMembers) else groups.sizes
        chance = np.zeros(len(groups))
        chance[orbits.drawable] = orbits.chooser.probabilities()
        # a unit of weight of an orbit is the negative of the others' anchors
        each = chance / (weights.sum() - weights)
        negative = each.sum() - each
        pair = set_reach(self._table, orbits, (), 2, chance[orbits.drawable])

        def of_rows(rows: Rows) -> Reals:
            group, place = groups.find(self._table, rows)
            there = np.flatnonzero(place >= 0)
            found = pair.chance(rows)
            own = np.ones(len(there))
            if isinstance(orbits.members, WeightedMembers):
                own = orbits.members.weight(group[there], place[there])
            found[there] += own * negative[group[there]]
            return found

        of_step = at_least_one(chance + weights * negative, triplets)
        return ReachedGroups(orbits.describe(), (), groups, of_step), of_rows, self._notes(), False

    def _notes(self) -> list[str]:
        lonely = len(self._orbits.groups) - len(self._orbits.drawable)
        return [f"{lonely:,} orbits of one row are drawn as negatives only"] if lonely else []

    def entry(self) -> tuple[Entry, list[str]]:
        """Entry of a report, and notes."""
        groups, drawable = self._orbits.groups, self._orbits.drawable
        sizes = groups.sizes[drawable].astype(np.float64)
        entry = replace(
            group_entry(self._table, self._orbits, 2),
            unreachable=0,  # rows of orbits too small for an anchor are negatives
            log10_sets=math.log10((sizes * (sizes - 1) * (groups.rows - sizes)).sum()),
            shared_rows=math.nan,
            distinct={},  # anchor and positive are a pair, and the negative has what it has
            estimated=False,
        )
        return entry, self._notes()


class _OfConstraints:
    """Positive and negative by constraints with the anchor."""

    def __init__(
        self,
        table: FactorTable,
        positive: str,
        negative: str,
        choose: str,
        rows: Bools | None,
        weights: Reals | None,
    ) -> None:
        given = {"positive": positive, "negative": negative}
        constraints = {role: read_constraint(text, table, role) for role, text in given.items()}
        self.shared = with_outer(table, constraints["positive"].equal)
        self._table, self._rows = table, rows
        self._anchors = Anchors(table, self.shared, constraints, dict.fromkeys(given, 1), rows, weights)
        if not len(self._anchors):
            raise SamplerError(f"no row has both a positive and a negative: {self._anchors.lost()}")
        self._chooser = Chooser(self._anchors.keys, self._anchors.totals, choose)

    def draw(self, bits: Words, keys: Keys) -> Rows:
        """Rows (steps, triplets, 3), from four words each."""
        cells, anchors = self._anchors.draw(self._chooser.pick(bits[..., 0]), bits[..., 1])
        others = [
            self._anchors.pick(role, cells, anchors, bits[..., place])
            for place, role in enumerate(("positive", "negative"), 2)
        ]
        return np.stack([anchors, *others], axis=-1)

    def reach(self, triplets: int) -> tuple[ReachedGroups, Callable[[Rows], Reals], list[str], bool]:
        """Groups, whether rows are in a triplet at all, notes, and that nothing is approximated."""
        groups, reached = group_by(self._table, self.shared, self._rows), self._anchors.reached()
        notes = [NOT_COUNTED]
        if reached is None:
            whole = np.full(len(groups), np.nan)
            return ReachedGroups(", ".join(self.shared) or "nothing", (), groups, whole), _unknown, notes, False
        of_rows = groups.of_rows()[reached]
        drawn = np.bincount(of_rows[of_rows >= 0], minlength=len(groups)) > 0
        text = "no row of it has a positive and a negative, or is one"
        reason = Reason(text, "ask for less of positive= and negative=")
        found = ReachedGroups(
            ", ".join(self.shared) or "nothing",
            (),
            groups,
            np.where(drawn, np.nan, 0.0),
            (reason,),
            np.where(drawn, -1, 0).astype(np.int8),
            unreached=groups.rows - int(groups.sizes[~drawn].sum()) - int((of_rows >= 0).sum()),
        )
        return found, lambda rows: np.where(reached[rows], np.nan, 0.0), notes, False

    def entry(self) -> tuple[AnchorEntry, list[str]]:
        """Entry of a report, and no notes."""
        return replace(self._anchors.entry(), unreachable=self._anchors.never()), []


def _unknown(rows: Rows) -> Reals:
    """Chance of rows where there are too many to look at each."""
    return np.full(len(rows), np.nan)
