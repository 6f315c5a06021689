"""Triplets: an anchor, a positive of the same orbit and a negative of another one.

The simplest use of orbits, as in the discriminative term of the orbit joint loss [1]_.

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders", 2017 (arXiv 1703.04775).

"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from setsup.arrays import Steps
from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.random import fold, mix
from setsup.samplers.arguments import check_draw_memory, check_sets
from setsup.samplers.coverage import Reach, SetReach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.triplets_by_constraint import ConstraintTriplets
from setsup.samplers.groups.triplets_by_orbit import OrbitTriplets
from setsup.samplers.groups.within import Keys, spread_words
from setsup.samplers.report import Report
from setsup.samplers.row_arguments import Weights, Where
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell, spell_keyword, spell_name

__all__ = ["TripletSampler"]


class TripletSampler(Sampler):
    """Draws triplets of rows: an anchor, a positive and a negative.

    The anchor's orbit is drawn as ``choose`` says; anchor and positive are two different members of it, uniform over
    ordered pairs; the negative is uniform over the rows of all other orbits, including orbits too small for an anchor.

    With the constraints ``positive`` and ``negative``, the anchor is drawn as ``choose`` says from the rows that have
    both. Given the anchor, the positive and the negative are independent, each uniform over the rows that satisfy its
    constraint, without the anchor itself. A draw takes time logarithmic in the rows, whatever share of them satisfies a
    constraint. With `weights`, rows are drawn by weight instead of uniformly.

    Parameters
    ----------
    orbit : str or list of str, optional
        Factors whose combinations are the orbits.
    triplets : int
        Triplets per step.
    positive, negative : str, optional
        Constraints for the positives and the negatives of an anchor, such as
        ``"id == anchor.id and camera != anchor.camera"``; both, instead of `orbit`. Terms are joined by ``and``; each
        compares a factor with the anchor's by ``==`` or ``!=`` (at most three ``!=``; an unknown value satisfies
        neither), or is any expression of the row alone (``split == 'gallery'``) or of the anchor alone
        (``anchor.split == 'query'``).
    choose : str
        How anchors are chosen. ``rows``: uniformly from the rows of orbits with two or more members; ``groups``: an
        orbit, then one of its rows, each uniformly; ``levels``: the levels of the orbit factor by factor, in the order
        of the table's columns, each uniformly, then one of its rows. With constraints, anchors are the rows that have a
        positive and a negative, and a group consists of the anchors with equal values of the factors that the positive
        constraint compares with ``==``.
    on_small_group : str
        What to do with orbits of one row, which have no positive: ``error`` raises an error, ``drop`` draws no anchor
        from them. Not allowed with constraints: rows without a positive or a negative are then never anchors, and the
        report counts them.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it: the anchor is drawn by weight within its orbit, the
        positive by weight among the orbit's other rows, the negative by weight over the rows of all other orbits. With
        ``choose="rows"`` orbits are chosen by their total weight. With constraints, the anchor is drawn by weight among
        the anchors of its group, positive and negative by weight among the rows that satisfy their constraint; groups
        are chosen by the total weight of their anchors. Rows of weight 0 are never drawn, and satisfy no constraint.
        For constraints, weights are rounded to multiples of a unit, at least one unit for positive weights. The rows
        that agree in all factors compared by ``==`` have 2⁶⁰ to 2⁶¹ units together.
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
    >>> triplets = setsup.TripletSampler(shapes.factors, "shape", triplets=5)
    >>> anchor, positive, negative = shapes.factors.codes("shape", triplets[0].indices).T
    >>> bool((anchor == positive).all()), bool((anchor == negative).any())
    (True, False)

    The same shape in another orientation, and another shape in the same color:

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
        on_small_group: Literal["error", "drop"] = "error",
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "TripletSampler",
    ) -> None:
        rows, row_weight = self._read(locals())
        self.triplets = check_sets(triplets, "triplets")
        check_draw_memory(3 * self.triplets, "a draw", "triplets")
        self._triplets: OrbitTriplets | ConstraintTriplets
        if positive is None and negative is None:
            if orbit is None:
                raise SamplerError(
                    f"triplets require an orbit or constraints; pass {spell_keyword('orbit')} with the factors of an "
                    f"orbit, or both {spell_keyword('positive')} and {spell_keyword('negative')}"
                )
            self._triplets = OrbitTriplets(table, orbit, choose, on_small_group, rows, row_weight)
        else:
            if orbit is not None or positive is None or negative is None:
                raise SamplerError(
                    f"pass either {spell_keyword('orbit')}, or both {spell_keyword('positive')} and "
                    f"{spell_keyword('negative')}; an example of a constraint is {spell(positive='id == anchor.id')}"
                )
            if not isinstance(on_small_group, str) or on_small_group != "error":
                raise SamplerError(
                    f"{spell_name('on_small_group')} applies only to {spell_name('orbit')}, because rows without a "
                    f"positive or a negative are never anchors; leave out {spell_name('on_small_group')}"
                )
            self._triplets = ConstraintTriplets(table, positive, negative, choose, rows, row_weight)
        self._numbers = np.arange(self.triplets, dtype=np.uint64)
        self._spread = spread_words(self.triplets, 4)

    @property
    def shared(self) -> tuple[str, ...]:
        """Factors that anchor and positive share."""
        return self._triplets.shared

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block; indices (steps, triplets, 3)."""
        key = fold(self._key, steps)
        return Draw(self._triplets.draw(mix(key[:, None, None], self._spread), Keys(key, self._numbers)))

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        groups, chance, notes, estimated = self._triplets.reach(self.triplets)
        return self._reach(groups, SetReach(tuple(range(self.triplets)), chance), notes, estimated)

    def _title(self) -> str:
        return f"TripletSampler: {self.triplets} of anchor, positive, negative"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        entry, notes = self._triplets.entry()
        return self._report([entry], notes)
