"""Ordinary passes over the data: every row once per epoch, shuffled or in table order.

With repeats, a batch has several copies of fewer rows, each to be augmented on its own [1]_, [2]_.

References
----------
.. [1] M. Berman, H. Jégou, A. Vedaldi, I. Kokkinos, M. Douze, "MultiGrain: a unified image embedding for classes and
   instances", 2019 (arXiv 1902.05509), which names it repeated augmentation.
.. [2] E. Hoffer et al., "Augment your batch: improving generalization through instance repetition", CVPR 2020
   (arXiv 1901.09335).

"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Steps
from setsup.checks import check_boolean, check_choice, check_integer
from setsup.errors import SamplerError
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import fold, permute
from setsup.samplers.arguments import check_draw_memory, check_size
from setsup.samplers.coverage import Reach, ReachedGroups, Reason, SetReach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.members import WeightedMembers
from setsup.samplers.groups.reach_chances import inclusion
from setsup.samplers.groups.within import Keys
from setsup.samplers.iteration import length_of
from setsup.samplers.report import Entry, Report
from setsup.samplers.row_arguments import Weights, Where, where_words
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell, spell_keyword, spell_name
from setsup.samplers.steps import LAST

__all__ = ["EpochSampler"]


class EpochSampler(Sampler):
    """Draws batches that together pass over all rows, epoch after epoch.

    Step s belongs to epoch s // ``steps_per_epoch``. Each epoch has its own order; ``epochs=1, shuffle=False`` gives
    one ordered pass, as for an evaluation.

    Parameters
    ----------
    size : int
        Rows per batch, copies included.
    epochs : int, optional
        Passes until the sampler ends; infinite by default.
    shuffle : bool
        Whether to shuffle each epoch, or to keep the order of the table.
    partial : str
        What to do when the number of rows is not a multiple of ``size``: ``drop`` leaves out the last rows of an
        epoch's order, ``pad`` repeats the order from its start and masks these positions.
    repeats : int
        Adjacent copies of each row in its batch, for repeated augmentation; ``size`` is a multiple of it. An epoch
        still has every row in one batch only, so it takes ``repeats`` times as many steps.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it. Each batch is then drawn by successive sampling,
        each row by weight among those that are left, independently of other batches: rows are drawn by weight, no
        longer once per epoch. Rows of weight 0 are never drawn and do not count for the length of an epoch.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Attributes
    ----------
    steps_per_epoch : int
        Draws per epoch: ⌊N·repeats/size⌋ for N rows with ``drop``, ⌈N·repeats/size⌉ with ``pad``.

    Raises
    ------
    SamplerError
        If no rows remain, or fewer than one batch with ``partial="drop"``.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> once = setsup.EpochSampler(shapes.factors, size=4, epochs=1, shuffle=False, where="shape == 'cube'")
    >>> len(once), once[0].indices
    (30000, array([[0, 1, 2, 3]]))

    """

    def __init__(
        self,
        table: FactorTable,
        size: int = 128,
        *,
        epochs: int | None = None,
        shuffle: bool = True,
        partial: Literal["drop", "pad"] = "drop",
        repeats: int = 1,
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "EpochSampler",
    ) -> None:
        mask, row_weight = self._read(locals())
        check_choice(partial, ("drop", "pad"), "partial", SamplerError)
        self.size = check_size(size)
        self._shuffle = check_boolean(shuffle, "shuffle", SamplerError)
        check_draw_memory(self.size, "a draw", "size", 88 if self._shuffle else 16)
        if row_weight is not None and not self._shuffle:
            raise SamplerError(
                "rows in table order cannot be drawn by weight; pass shuffle=True, or leave out weights="
            )
        self._rows = None if mask is None else np.flatnonzero(mask)
        self._count = len(table) if self._rows is None else len(self._rows)
        if self._count == 0:
            if not len(table):
                raise SamplerError("the table has no rows; draw from a table with rows")
            filters = [f"{spell_keyword('where')} ({where_words(where)})"] if where is not None else []
            filters += [spell_keyword("weights")] if weights is not None else []
            leave = f"{' and '.join(filters)} leave{'s' * (len(filters) == 1)}"
            raise SamplerError(f"{leave} none of the {len(table):,} rows; draw from more rows")
        self._members = None if row_weight is None else WeightedMembers(group_by(table, [], mask), row_weight)
        self._repeats = check_integer(repeats, "repeats", SamplerError, 1, self.size)
        self._distinct, uneven = divmod(self.size, self._repeats)
        if uneven:
            raise SamplerError(
                f"{spell(size=size)} is not a multiple of {spell(repeats=repeats)}, the number of copies of each row "
                "in a batch; change one of them"
            )
        if partial == "drop" and self._count < self._distinct:
            copies = f", {repeats} copies of each," if self._repeats > 1 else ""
            raise SamplerError(
                f"{self._count:,} rows{copies} do not fill one batch of {spell(size=size)}; lower "
                f"{spell_name('size')}, or pass {spell(partial='pad')}"
            )
        steps = self._count // self._distinct if partial == "drop" else -(-self._count // self._distinct)
        self.steps_per_epoch = steps
        self.length = None
        if epochs is not None:
            self.length = check_integer(epochs, "epochs", SamplerError, 1, LAST - 1) * self.steps_per_epoch
        if self.length is not None and self.length >= LAST:
            raise SamplerError(
                f"{spell(epochs=epochs)} of {self.steps_per_epoch:,} steps each take more than 2**63 - 1 steps; lower "
                f"{spell_name('epochs')}"
            )
        self.unconstrained_sets = frozenset({0})

    def __len__(self) -> int:
        """Return the number of draws of all epochs; EndlessError, a TypeError, without ``epochs``."""
        return length_of(self)

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block; indices (steps, 1, size)."""
        epoch, step = np.divmod(steps, self.steps_per_epoch)
        position = step[:, None] * self._distinct + np.arange(self._distinct)
        mask = position < self._count
        rows = position % self._count
        if self._members is not None:
            rows, mask = self._draw_by_weight(steps, mask, self._members)
        elif self._shuffle:
            rows = permute(fold(self._key, epoch), self._count, rows)
        if self._rows is not None and self._members is None:
            rows = self._rows[rows]
        if self._repeats > 1:
            rows, mask = np.repeat(rows, self._repeats, axis=1), np.repeat(mask, self._repeats, axis=1)
        return Draw(rows[:, None], mask=None if mask.all() else mask[:, None])

    def _draw_by_weight(self, steps: Steps, mask: Bools, members: WeightedMembers) -> tuple[Rows, Bools]:
        keys = Keys(fold(self._key, steps), np.zeros(1, dtype=np.uint64))
        rows, few = members.draw(keys, np.zeros(len(steps), dtype=np.int64), self._distinct, "short")
        mask = mask if few is None else mask & few
        return np.where(mask, rows, rows[:, :1]), mask

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        mask = np.zeros(len(self.table), dtype=bool)
        mask[slice(None) if self._rows is None else self._rows] = True
        groups, batch_rows = group_by(self.table, [], mask), self._distinct
        last, left = self.steps_per_epoch * batch_rows, []
        if self._members is not None:
            shares = inclusion(self._members.shares(0), min(batch_rows, self._count))
        else:
            # in a shuffled epoch some rows may be left out
            each = (
                min(1 / self.steps_per_epoch, batch_rows / self._count) if self._shuffle else 1 / self.steps_per_epoch
            )
            shares = np.full(self._count, each)
            if not self._shuffle and last < self._count:
                shares[last:] = 0.0
                left.append(Reason("the last rows do not fill a batch", "pass partial='pad' or shuffle=True"))

        def of_rows(rows: Rows) -> Reals:
            position = groups.find(self.table, rows)[1]
            return np.where(position >= 0, shares[np.maximum(position, 0)], 0.0)

        reached = ReachedGroups("nothing", (), groups, np.ones(1), tuple(left), unreached=int((shares == 0).sum()))
        notes = [f"chances are over the {self.steps_per_epoch:,} steps of an epoch"] * (self._members is None)
        estimated = self._members is not None and 2 < batch_rows < self._count
        thin = None
        if self._repeats > 1:  # a row is lost with the last of its copies

            def thin(rows: Rows, keep_probs: Sequence[float]) -> Reals:
                return of_rows(rows) * (1 - (1 - keep_probs[0]) ** self._repeats)

        sets = SetReach((0,), of_rows, thin=thin)
        return self._reach(reached, sets, notes, estimated)

    def _title(self) -> str:
        return f"EpochSampler: batches of {self.size}"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        left = self._count - self.steps_per_epoch * self._distinct
        never = 0 if self._shuffle else max(left, 0)
        excluded = len(self.table) - self._count
        entry = Entry("nothing", 1, 1, self._count, self._count, unreachable=never, excluded=excluded)
        notes = [f"{self.steps_per_epoch:,} steps per epoch"]
        if self._repeats > 1:
            notes.append(f"a batch has {self._repeats:,} copies of each of {self._distinct:,} rows")
        if self._members is not None:
            notes.append(
                "each batch is a draw of its own, so that an epoch may have a row several times, or not at all"
            )
        elif left > 0:
            notes.append(
                f"{left:,} rows are left out of each epoch" + (", different ones each time" if self._shuffle else "")
            )
        return self._report([entry], notes)
