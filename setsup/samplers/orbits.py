"""Orbits: images of one object under transformations, with a canonical member.

The joint loss on orbits [1]_, [2]_ pulls the members of an orbit together, pushes other orbits away and decodes every
member to the orbit's canonical image. A batch therefore has several different orbits with some or all of their members.

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders: learning from image
   transformation sets", 2017 (arXiv 1703.04775).
.. [2] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
   self-supervised visual experience", NeurIPS 2018.

"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from setsup.arrays import Array, Rows, Steps
from setsup.checks import check_choice
from setsup.errors import SamplerError
from setsup.factors.constraint import Constraint, read_constraint
from setsup.factors.counting import with_outer
from setsup.factors.factor import Level
from setsup.factors.table import FactorTable
from setsup.html import counted
from setsup.random import fold, mix
from setsup.samplers.arguments import check_draw_memory, check_names, check_sets
from setsup.samplers.coverage import NOT_COUNTED, Reach, Reason
from setsup.samplers.draw import Draw
from setsup.samplers.groups.anchored import AnchoredMembers
from setsup.samplers.groups.canonical import canonical_rows
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import check_small
from setsup.samplers.groups.reach_chances import at_least_one, is_estimated, reached_groups, set_reach
from setsup.samplers.groups.statistics import group_entry
from setsup.samplers.groups.within import Keys, spread_words
from setsup.samplers.report import Report
from setsup.samplers.row_arguments import Weights, Where
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.schedules import Scheduled, read_size, shorten
from setsup.samplers.spelling import spell, spell_name

__all__ = ["OrbitSampler"]


class OrbitSampler(Sampler):
    """Draws whole orbits, or some members of each orbit, with their canonical rows.

    Parameters
    ----------
    orbit : str or list of str
        Factors whose combinations are the orbits.
    sets : int
        Orbits per step.
    size : int or mapping, optional
        Members per orbit, without repeats. ``{0: 2, 1000: 4}`` gives 4 members from step 1,000 on: the width of a draw
        is the largest size, for which orbits must have members, and positions beyond the size of the step are masked.
        None takes whole orbits: the width is that of the largest drawable orbit, and smaller ones are padded with their
        first member and masked.
    members : str, optional
        Constraint between positions, such as ``"camera != anchor.camera"``: the first position of a set is the anchor,
        a row of the orbit for which at least ``size - 1`` other members satisfy the constraint; it is drawn uniformly
        or by weight. The other positions are drawn from these members, uniformly or by weight, without repeats. The
        syntax is that of ``positive`` of :class:`setsup.samplers.TripletSampler`.
    canonical : str or mapping, optional
        Canonical member of each orbit. ``"first"``: the orbit's first row; ``"argmin:yaw"``: the row with the smallest
        value of a factor; ``{"camera": "051"}``: the first row with these levels; any other string is an expression, as
        for `where`, such as ``"camera == '051' and session == 1"``, for the first row that satisfies it. Rows that
        `where` leaves out are never canonical. None gives no canonical rows.
    values : str
        How the orbits of a step relate. ``different``: no orbit is drawn twice in a step; ``independent``: they may
        coincide.
    choose : str
        How orbits are chosen. An orbit is drawable if it has enough members. ``groups``: uniform over drawable orbits;
        ``levels``: levels are chosen factor by factor, in the order of the table's columns, each uniformly among the
        levels that still have a drawable orbit; ``rows``: proportional to their number of rows, or to their total
        weight. If members must satisfy a constraint, only anchors count as rows.
    on_small_group : str
        What to do with orbits that have too few members: ``error`` raises an error, ``drop`` leaves out these orbits
        and those without a canonical row, ``short`` uses all their members and masks the remaining positions,
        ``replace`` draws from them with replacement. If members must satisfy a constraint, ``short`` and ``replace``
        apply to anchors with at least one matching row but fewer than ``size - 1``.
    weights : str or (rows,) float, optional
        Relative probability of each row within its orbit, or the factor that contains it. Rows are drawn without
        repeats by successive sampling. Rows of weight 0 are never drawn for any anchor. Whole orbits contain all rows
        of positive weight. For `members`, weights are counted in the unit of :class:`setsup.samplers.TripletSampler`.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError
        If the arguments contradict each other or the table, or an orbit has no canonical row.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> orbit = ["floor_hue", "wall_hue", "object_hue", "scale", "shape"]
    >>> views = setsup.OrbitSampler(shapes.factors, orbit, sets=2, canonical={"orientation": 0.0})
    >>> draw = views[0]
    >>> draw.indices.shape, shapes.factors.values("orientation", draw.canonical).tolist()
    ((2, 15), [0.0, 0.0])

    """

    def __init__(
        self,
        table: FactorTable,
        orbit: str | Sequence[str],
        sets: int = 8,
        size: Scheduled | None = None,
        *,
        members: str | None = None,
        canonical: str | Mapping[str, Level] | None = None,
        values: Literal["different", "independent"] = "different",
        choose: Literal["levels", "groups", "rows"] = "groups",
        on_small_group: Literal["error", "drop", "short", "replace"] = "error",
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "OrbitSampler",
    ) -> None:
        rows, row_weight = self._read(locals())
        names = check_names(orbit, "orbit")
        check_choice(values, ("different", "independent"), "values", SamplerError)
        self._on_small_group = check_small(on_small_group)
        self.sets = check_sets(sets)
        self._sizes = None if size is None else read_size(size)
        self.arguments = {**self.arguments, "size": None if self._sizes is None else self._sizes.plain()}
        need = 1 if self._sizes is None else self._sizes.most
        policy = "short" if size is None else on_small_group  # a whole orbit repeats no row, however few it has
        constraint = None if members is None else self._check_members(members, names)
        self._orbits = GroupSampler(
            table, names, need, rows, row_weight, choose=choose, on_small_group=policy, members=constraint
        )
        self._left_out = np.zeros(0, dtype=np.int64)
        self._canonical = None if canonical is None else self._find_canonical(canonical)
        drawable, chooser = self._orbits.drawable, self._orbits.chooser
        self._whole = size is None
        self.size = int(self._orbits.groups.sizes[drawable].max()) if size is None else need
        check_draw_memory(self.size * self.sets, "a draw", "sets" if size is None else "size or sets")
        self._different = chooser.different() if values == "different" else None
        if self._different is not None and self.sets > len(drawable):
            raise SamplerError(
                f"{spell(sets=sets)} exceeds the {len(drawable):,} drawable orbits; pass at most "
                f"{spell(sets=len(drawable))}, or {spell(values='independent')}"
            )
        self._numbers = np.arange(self.sets, dtype=np.uint64)
        words = chooser.words if self._different is not None else 1
        self._spread = spread_words(self.sets, words)

    def _check_members(self, members: str, names: Sequence[str]) -> Constraint:
        constraint = read_constraint(members, self.table, "members")
        if self._sizes is None or self._sizes.most < 2:
            raise SamplerError(
                f"{spell_name('members')} requires {spell_name('size')} to be at least 2, because a set consists of "
                f"an anchor and other rows; raise {spell_name('size')}"
            )
        if same := next((name for name in constraint.differ if name in with_outer(self.table, names)), None):
            raise SamplerError(
                f"all members of an orbit have the same {same!r}; leave {same!r} out of {spell_name('members')} or "
                f"{spell_name('orbit')}"
            )
        return constraint

    def _find_canonical(self, canonical: str | Mapping[str, Level]) -> Rows:
        """Canonical row of each orbit; orbits without one are left out, where that is allowed."""
        groups, drawable = self._orbits.groups, self._orbits.drawable
        rows = canonical_rows(self.table, groups, canonical)
        has_canonical = rows[drawable] >= 0
        lost = drawable[~has_canonical]
        if len(lost) and (self._on_small_group != "drop" or not has_canonical.any()):
            examples = "; ".join(groups.describe(self.table, int(group)) for group in lost[:5])
            fix = (
                f"pass {spell(on_small_group='drop')} to leave them out"
                if has_canonical.any()
                else "choose another canonical row"
            )
            raise SamplerError(
                f"{len(lost):,} of {len(drawable):,} orbits have no row with {spell(canonical=canonical)} "
                f"(first: {examples}); {fix}"
            )
        self._left_out = lost
        if len(lost):
            self._orbits.restrict(drawable[has_canonical])
        return rows

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block."""
        key = fold(self._key, steps)
        bits = mix(key[:, None, None], self._spread)
        chosen = self._orbits.chooser.pick(bits[:, :, 0]) if self._different is None else self._different.pick(bits)
        groups = self._orbits.number(chosen)
        if self._whole:
            rows, mask = self._take_whole_orbits(groups)
        else:
            rows, mask = self._orbits.draw(Keys(key, self._numbers), chosen, self.size)
        canonical = None if self._canonical is None else self._canonical[groups]
        draw = Draw(rows, self._orbits.codes(chosen), None if mask is None or mask.all() else mask, canonical)
        return draw if self._sizes is None or not self._sizes.changes else shorten(draw, [self._sizes], steps)

    def _take_whole_orbits(self, groups: Rows) -> tuple[Rows, Array | None]:
        position = np.arange(self.size)
        mask = position < self._orbits.groups.sizes[groups][..., None]
        return self._orbits.groups.take(groups[..., None], np.where(mask, position, 0)), mask

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        size = self.size if self._sizes is None else int(self._sizes.at_step(step))
        orbits, numbers, exact = self._orbits, range(self.sets), True
        if self._different is None:
            chance = orbits.chooser.probabilities()
            sets = set_reach(self.table, orbits, numbers, size, chance, full=self.size)
            of_step = at_least_one(chance, self.sets)
        else:
            shares, exact = orbits.chooser.shares(self.sets)
            of_step = shares * self.sets
            sets = set_reach(self.table, orbits, numbers, size, of_step, together=True, full=self.size)
        lost = Reason("it has no canonical row", "name another canonical=")
        groups = reached_groups(self.table, orbits, (), of_step, estimated=not exact, others=[(lost, self._left_out)])
        estimated = not exact or is_estimated(orbits, size)
        notes = ["canonical rows come with their orbits; chances are those of members"] * (self._canonical is not None)
        if isinstance(orbits.members, AnchoredMembers):
            notes.append(NOT_COUNTED)
        return self._reach(groups, sets, notes, estimated)

    def _title(self) -> str:
        members = "whole" if self._sizes is None else f"{self._sizes.words()} members each"
        return f"OrbitSampler: {counted(self.sets, 'orbit')} per step, {members}"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        values = "independent" if self._different is None else "different"
        entry = group_entry(self.table, self._orbits, self.size, self.sets, values)
        notes = [f"{len(self._left_out):,} orbits without a canonical row are left out"] if len(self._left_out) else []
        if self._sizes is not None and self._sizes.changes:
            notes.append("figures are for the largest size, for which orbits must have members at every step")
        more = [self._orbits.members.entry()] if isinstance(self._orbits.members, AnchoredMembers) else []
        return self._report([entry, *more], notes)
