"""Sets in which some rows are replaced by those of another source, more and more during training.

ABC's pose networks see synthetic views in one set and, in the unconstrained one, a growing share of real
photographs [1]_. Both sources are one concatenated table; the factor ``part`` tells the source of a row.

References
----------
.. [1] K. Murphy et al., "Learning ABCs", CVPR 2022 (arXiv 2103.03240), synthetic-to-real pose transfer.

"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows, Steps
from setsup.checks import check_string
from setsup.errors import SamplerError, abbreviate
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import fold, stream_key, uniform
from setsup.samplers.arguments import check_nesting, copy_arguments
from setsup.samplers.coverage import Reach, ReachedGroups, Reason, SetReach
from setsup.samplers.description import from_dict
from setsup.samplers.draw import Draw
from setsup.samplers.groups.members import WeightedMembers
from setsup.samplers.groups.reach_chances import at_least_one, inclusion_of_some
from setsup.samplers.groups.within import MIX, Keys, distinct
from setsup.samplers.iteration import length_of
from setsup.samplers.report import Entry, Report, ReportEntry
from setsup.samplers.row_arguments import Weights, Where, row_mask, row_weights, weight_words, where_words
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.schedules import Stepwise, read_probability
from setsup.samplers.zips import Zip

__all__ = ["Mixture"]


class Mixture(Sampler):
    """Replaces rows of some sets with rows of a pool, each independently with a given probability.

    Parameters
    ----------
    base : Sampler
        Sampler of the concatenated table, restricted to one source: ``where="part == 'a'"``.
    pool : str, (rows,) bool or list of int
        The alternative rows: an expression such as ``"part == 'b'"``, one boolean per row, or their numbers. The pool
        and the base sampler must not share rows.
    sets : sequence of int
        Numbers of the sets to mix; they must fix no factor.
    p : float, mapping or Stepwise
        Probability that a row is replaced: constant, by step, ``{0: 0.0, 1000: 0.1}``, or rising in equal steps.
    weights : str or (rows,) float, optional
        Relative probability of the rows of the pool, or the factor that has it. The rows that replace others in a set
        are drawn by successive sampling: each by weight among those that are left. Rows of weight 0 are never drawn.
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Name of the random stream. Two samplers of one class with the same seed are correlated unless their streams
        differ. A mixture over n nested mixtures uses the stream ``"NAME/n"``.

    Attributes
    ----------
    pool : (m,) int64
        The alternative rows, ascending.

    Raises
    ------
    SamplerError
        If a mixed set fixes a factor, or the pool is too small or shares rows with the base.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> both = setsup.concat(shapes.where("shape == 'cube'"), shapes.where("shape == 'sphere'"))
    >>> base = setsup.SetSampler(both.factors, inactive=[["wall_hue"], []], where="part == 'a'", size=8)
    >>> mixed = setsup.Mixture(base, pool="part == 'b'", sets=[1], p=0.5)
    >>> sorted(set(both.factors.values("part", mixed[0].indices[0]).tolist()))
    ['a']

    """

    def __init__(
        self,
        base: Sampler,
        pool: Where,
        sets: Sequence[int] = (1,),
        p: float | Mapping[int, float] | Stepwise | Mapping[str, Any] = 0.1,
        *,
        weights: Weights | None = None,
        seed: int = 0,
        stream: str = "Mixture",
    ) -> None:
        copies = copy_arguments({"pool": pool, "weights": weights})
        if not isinstance(base, Sampler):
            raise SamplerError(f"base of a Mixture must be a Sampler, not a {type(base).__name__}")
        self._schedule = read_probability(p)
        plain = asdict(self._schedule) if isinstance(self._schedule, Stepwise) else self._schedule.plain()
        numbers = _check_numbers(sets)
        self.arguments = {"base": base.to_dict(), "pool": copies["pool"], "sets": numbers, "p": plain}
        self.arguments |= {"weights": copies["weights"], "seed": seed, "stream": stream}
        check_nesting({"sampler": "Mixture", **self.arguments})
        self.table: FactorTable = base.table
        self.base, self.length, self.unconstrained_sets = base, base.length, base.unconstrained_sets
        self.first_step = base.first_step
        below = _nested(base)
        self._key = stream_key(seed, check_string(stream, "the stream", SamplerError) + f"/{below}" * bool(below))
        row_weight = row_weights(self.table, weights)
        pool_mask = self._pool_mask(pool, row_weight)
        self.pool: Rows = np.flatnonzero(pool_mask)
        self._members = None
        if row_weight is not None:
            self._members = WeightedMembers(group_by(self.table, [], pool_mask), row_weight)
        first = base.draws(np.array([base.first_step]))
        self._sets = self._check_sets(numbers, first)
        if len(self.pool) < first.indices.shape[-1]:
            raise SamplerError(
                f"the pool {_pool_words(pool)} has {len(self.pool)} rows, but a set requires "
                f"{first.indices.shape[-1]}; add rows to the pool, or lower the size of the base sampler"
            )

    @classmethod
    def _from_arguments(cls, arguments: Mapping[str, Any], table: FactorTable) -> Sampler:
        return cls(**{**arguments, "base": from_dict(arguments.get("base", {}), table)})

    def _pool_mask(self, pool: Where, weights: Reals | None) -> Bools:
        mask = row_mask(self.table, pool, "pool")
        if mask is None:
            raise SamplerError("pool must be an expression, one boolean per row, or row numbers, not None")
        if weights is not None:
            mask = mask & (weights > 0)
        shared = mask & self.base.rows_where()
        if shared.any():
            raise SamplerError(
                f"the pool {_pool_words(pool)} and the base sampler share {int(shared.sum()):,} rows (for example row "
                f"{int(np.argmax(shared))}); restrict the base, for example with where=\"part == 'a'\""
            )
        return mask

    def rows_where(self) -> Bools:
        """Return the rows of the pool, and those that ``where`` of the base keeps."""
        rows = self.base.rows_where()
        rows[self.pool] = True
        return rows

    def _check_sets(self, sets: Sequence[int], draw: Draw) -> npt.NDArray[np.int64]:
        count = draw.indices.shape[1]
        for number in sets:
            if not 0 <= number < count:
                raise SamplerError(f"set {number} is out of range: the base sampler draws sets 0 to {count - 1}")
            if number not in self.base.unconstrained_sets:
                raise SamplerError(
                    f"set {number} fixes factors, which rows of the pool may not share; replace rows of an "
                    "unconstrained set instead"
                )
        return np.unique(np.array(sets, dtype=np.int64))

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block."""
        draw = self.base.draws(steps)
        size = draw.indices.shape[-1]
        p = self._schedule.at(steps)
        keys = Keys(fold(self._key, steps), self._sets.astype(np.uint64))
        shape = (len(steps), len(self._sets), size)
        replaced = uniform(keys.bits(MIX, size)).reshape(shape) < p[:, None, None]
        if draw.mask is not None:
            replaced &= draw.mask[:, self._sets]
        if self._members is None:
            others = self.pool[distinct(keys, len(self.pool), size)].reshape(shape)
        else:
            the_pool = np.zeros(len(steps) * len(self._sets), dtype=np.int64)  # the only group
            ordered = self._members.draw(keys, the_pool, size, "error")[0].reshape(shape)
            # the first replaced position takes the first of the rows, for heavy rows come first
            others = np.take_along_axis(ordered, np.maximum(np.cumsum(replaced, axis=-1) - 1, 0), axis=-1)
        indices = draw.indices.copy()
        indices[:, self._sets] = np.where(replaced, others, draw.indices[:, self._sets])
        return replace(draw, indices=indices)

    def __len__(self) -> int:
        """Return the number of draws; EndlessError, a TypeError, if the base is infinite."""
        return length_of(self)

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        steps, base = check_step(self, step), self.base.reach(step)
        p = float(self._schedule.at(steps)[0])
        draw = self.base.draws(steps)
        num_rows = np.full(draw.indices.shape[1], draw.indices.shape[-1])
        if draw.mask is not None:
            num_rows = draw.mask[0].sum(axis=-1)
        mixed = {number: int(num_rows[number]) for number in self._sets.tolist()}
        pool = np.zeros(len(self.table), dtype=bool)
        pool[self.pool] = True
        chance = at_least_one(np.array([p]), sum(mixed.values()))
        reason = Reason(f"no row is replaced at step {step}", "raise p=, or look at a later step")
        reached = ReachedGroups(
            "the pool",
            tuple(mixed),
            group_by(self.table, [], pool),
            chance,
            (reason,),
            np.array([-1 if p else 0], dtype=np.int8),
        )
        keep_prob = dict.fromkeys(mixed, 1 - p)
        blocks, estimated = [], base.estimated
        for alternatives in base.blocks or ():
            blocks.append(
                [
                    [thinned_part for part in parts for thinned_part in part.apply_thinning(keep_prob)]
                    for parts in alternatives
                ]
            )
            of_mixed = [part for parts in alternatives for part in parts if not keep_prob.keys().isdisjoint(part.sets)]
            estimated |= p > 0 and any(part.thin_estimated for part in of_mixed)
        by_size = {size: tuple(number for number in mixed if mixed[number] == size) for size in set(mixed.values())}
        blocks.append([[self._pool_reach(sets, size, p) for size, sets in by_size.items()]])
        most = max(mixed.values())
        estimated |= self._members is not None and p > 0 and 2 < most and (p < 1 or most < len(self.pool))
        return Reach(
            f"Mixture over {base.title}",
            self.table,
            [*base.groups, reached],
            None if base.blocks is None else blocks,
            [*base.notes, self._note()],
            estimated,
        )

    def _pool_reach(self, sets: tuple[int, ...], size: int, p: float) -> SetReach:
        """Chance of rows of the pool in sets of so many rows."""
        each = np.full(len(self.pool), p * size / len(self.pool))
        if self._members is not None:
            each = inclusion_of_some(self._members.shares(0), size, p)

        def of_rows(rows: Rows) -> Reals:
            position = np.minimum(np.searchsorted(self.pool, rows), len(self.pool) - 1)
            return np.where(self.pool[position] == rows, each[position], 0.0)

        return SetReach(sets, of_rows)

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        base, p = self.base.report(), self._schedule
        ever = bool(p.end) if isinstance(p, Stepwise) else any(p.values)
        entries = [self._mix(entry) if ever and self._is_mixed(entry) else entry for entry in base.entries]
        return Report(f"Mixture over {base.title}", entries, [*base.notes, self._note()])

    def _note(self) -> str:
        p = self._schedule
        share = f"0 to {p.end:g} in steps of {p.every}" if isinstance(p, Stepwise) else p.words()
        sets = ", ".join(str(number) for number in self._sets)
        weights = weight_words(self.arguments["weights"])
        pool = f"a pool of {len(self.pool):,} rows" + (f", drawn by weight ({weights})," if weights else "")
        return f"rows of set {sets} come from {pool} with probability {share}"

    def _is_mixed(self, entry: ReportEntry) -> TypeGuard[Entry]:
        """Whether an entry is about sets that get rows of the pool."""
        if not isinstance(entry, Entry) or entry.inactive != "nothing":
            return False
        return not entry.sets or not set(self._sets.tolist()).isdisjoint(entry.sets)

    def _mix(self, entry: Entry) -> Entry:
        """Entry of sets whose rows are also those of the pool, which the base leaves out."""
        excluded = entry.excluded - len(self.pool)
        return replace(
            entry, excluded=excluded, log10_sets=math.nan, shared_rows=math.nan, distinct={}, estimated=False
        )


def _pool_words(pool: Where) -> str:
    return repr(pool) if isinstance(pool, str) else f"({where_words(pool)})"


def _nested(sampler: Sampler) -> int:
    """Mixtures that a sampler is made of, one over the other, itself included."""
    if isinstance(sampler, Mixture):
        return 1 + _nested(sampler.base)
    return max(map(_nested, sampler.samplers)) if isinstance(sampler, Zip) else 0


def _check_numbers(sets: Any) -> list[int]:
    numbers = list(sets) if isinstance(sets, Sequence) or (isinstance(sets, np.ndarray) and sets.ndim) else []
    if not numbers or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers):
        raise SamplerError(f"sets must be a non-empty list of set numbers, such as [1], not {abbreviate(sets)}")
    return [int(number) for number in numbers]
