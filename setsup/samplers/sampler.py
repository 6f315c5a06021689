"""The base class of samplers: a pure function from steps to draws, from which iteration and sharding follow."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np

from setsup.arrays import Bools, Reals, Steps
from setsup.checks import check_integer, refuse_foreign
from setsup.errors import RowError, SamplerError, UsageError
from setsup.factors.table import FactorTable
from setsup.html import block, counted, facts, never_raises, table
from setsup.random import stream_key
from setsup.samplers.arguments import check_table, copy_arguments, plain_data
from setsup.samplers.callers import processes_of_accelerate, refuse_sampler_of_rows
from setsup.samplers.coverage import Reach, ReachedGroups, SetReach
from setsup.samplers.docstrings import complete
from setsup.samplers.draw import Draw
from setsup.samplers.guards import out_of_memory, with_checked_steps, within_memory
from setsup.samplers.iteration import (
    check_block_memory,
    draw_steps,
    length_of,
    one_by_one,
    steps_with_row,
    tell_pass,
)
from setsup.samplers.report import PairEntry, Report, ReportEntry, by_weight
from setsup.samplers.row_arguments import drawable_rows, is_per_set, row_mask
from setsup.samplers.spelling import OPTION_NAMES, PYTHON_NAMES
from setsup.samplers.steps import LAST, check_block, check_one, check_start

__all__ = ["Sampler", "Shard", "check_step"]

_SHOWN = 24  # items of an argument in a notebook


class Sampler(ABC):
    """Base class of samplers: pure functions from a step number to a draw.

    A subclass stores its constructor's ``arguments`` as plain data and implements :meth:`draws`; it may override
    :meth:`report` and :meth:`reach`. :func:`from_dict` finds it by the name of its class.

    A sampler, or a :meth:`shard` of one, can be the ``batch_sampler`` of torch's ``DataLoader``: a batch has the rows
    of a draw, set after set, without padding. Each pass over the DataLoader starts at the first step again; passes of
    :func:`setsup.loading.set_batches` continue where the last one ended, and may have a length.

    Other Parameters
    ----------------
    table : FactorTable
        Factors of a dataset. Draws contain row numbers of this table.
    where : str, (rows,) bool or list of int, optional
        Rows that may be drawn: an expression that they satisfy, one boolean per row, or their numbers. Draws still
        contain row numbers of the whole table.
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Name of the random stream. Two samplers of one class with the same seed are correlated unless their streams
        differ.

    Attributes
    ----------
    table : FactorTable
        Table whose row numbers draws contain.
    arguments : mapping
        The constructor's arguments without the table, as plain data.
    length : int or None
        Number of draws, None if infinite.

    """

    table: FactorTable
    arguments: Mapping[str, Any]
    _key: int
    length: int | None = None
    first_step: int = 0
    """First step that can be drawn."""
    unconstrained_sets: frozenset[int] = frozenset()
    """Numbers of the sets of a step that fix no factor."""

    _kinds: ClassVar[dict[str, type["Sampler"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register a sampler by the name of its class, unless that is private or taken; its ``draws`` checks steps."""
        super().__init_subclass__()
        if cls.__doc__ and Sampler.__doc__:  # python -OO leaves none
            cls.__doc__ = complete(cls.__doc__, Sampler.__doc__)
        if "draws" in vars(cls):
            cls.draws = with_checked_steps(cls.draws)  # type: ignore[method-assign, assignment]
        for name in ("__init__", "report", "reach"):
            if name in vars(cls):
                setattr(cls, name, within_memory(getattr(cls, name)))
        if not cls.__name__.startswith("_"):
            Sampler._kinds.setdefault(cls.__name__, cls)

    def __new__(cls, *_: Any, **kwargs: Any) -> Self:
        """Refuse arguments of torch's samplers and loaders with what serves in their place."""
        if kwargs:
            known = signature(cls.__init__).parameters
            for name in kwargs:
                if (renamed := PYTHON_NAMES.get(name)) in known and name not in known:
                    raise UsageError(
                        f"{cls.__name__} got an unexpected keyword argument {name!r}; in Python it is called "
                        f"{renamed!r}"
                    )
            refuse_foreign(cls.__init__, kwargs)
        return super().__new__(cls)

    @staticmethod
    def kinds() -> Mapping[str, type["Sampler"]]:
        """Return the samplers that :func:`from_dict` finds, by the names of their classes."""
        return Sampler._kinds

    def _read(self, arguments: Mapping[str, Any]) -> tuple[Bools | None, Reals | None]:
        """Read what samplers share from the ``locals()`` of a constructor: what they keep, and the rows to draw.

        Returns the rows that ``where`` keeps and whose weight is positive, (rows,) bool or None for all; and the
        weights, (rows,) float64 or None.
        """
        self._keep(arguments)
        return drawable_rows(self.table, arguments["where"], arguments["weights"])

    def _keep(self, arguments: Mapping[str, Any]) -> None:
        """Keep the arguments of a constructor, the table and the key of seed and stream."""
        self.arguments = copy_arguments(arguments)
        self.table = check_table(arguments["table"])
        self._key = stream_key(arguments["seed"], arguments["stream"])

    @abstractmethod
    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block: every array has a leading axis (steps,).

        Parameters
        ----------
        steps : (steps,) int64
            At least one step, in any order; they are checked before the method of a subclass is called. Steps beyond
            the end of a finite sampler continue as if it were infinite, for later passes over it.

        Raises
        ------
        RowError
            If they are not a 1-D array of integers, or one is negative or not below 2⁶³.

        """

    def rows_where(self) -> Bools:
        """Return the rows that ``where`` keeps, (rows,) bool; for a sampler of samplers, the rows that any keeps."""
        where = self.arguments.get("where")
        masks = [row_mask(self.table, selection) for selection in (where if is_per_set(where) else [where])]
        rows = np.zeros(len(self.table), dtype=bool)
        for mask in masks:
            rows |= True if mask is None else mask
        return rows

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training; empty unless a subclass overrides it."""
        return Report(self._title(), [], ["this sampler has no report of its own"])

    def _title(self) -> str:
        """First line of the report."""
        return type(self).__name__

    def _report(
        self,
        entries: Sequence[ReportEntry],
        notes: Sequence[str] = (),
        pairs: Sequence[PairEntry] = (),
        title: str | None = None,
    ) -> Report:
        """The report with these entries, and what the weights are."""
        return by_weight(Report(title or self._title(), entries, list(notes), list(pairs)), self.arguments)

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, over all seeds: their chances, or why they are never drawn.

        Parameters
        ----------
        step : int
            Step whose options count, where options change with the step.

        Returns
        -------
        Reach
            Without groups, and with NaN for all chances, unless a subclass overrides this method.

        """
        check_one(step, self.length)
        return Reach(self._title(), self.table, [], None, ["this sampler does not say what it can draw"])

    def _reach(
        self, groups: ReachedGroups, sets: SetReach, notes: Sequence[str] = (), estimated: bool = False
    ) -> Reach:
        """What is reached where all sets of a step are drawn alike."""
        return Reach(self._title(), self.table, [groups], [[[sets]]], list(notes), estimated)

    def when(self, row: int, start: int, stop: int) -> Steps:
        """Return the steps in start … stop − 1 that draw a row, ascending; O(stop − start), a block at a time.

        Parameters
        ----------
        row : int
            A row of the table.
        start, stop : int
            0 ≤ start < stop ≤ 2⁶³, and not beyond the end of a finite sampler. All steps between are drawn, which takes
            seconds for a million steps.

        Returns
        -------
        (n,) int64
            The steps.

        Raises
        ------
        RowError
            If the row or the steps are out of range.

        Examples
        --------
        >>> import setsup
        >>> table = setsup.load("shapes3d-procedural").factors
        >>> sets = setsup.SetSampler(table, inactive=["shape"], size=8, seed=5)
        >>> sets.when(int(sets[3].indices[0, 0]), 0, 10).tolist()
        [3]

        """
        return steps_with_row(
            self, check_integer(row, "the number of a row", RowError, 0, len(self.table) - 1), start, stop
        )

    def __repr__(self) -> str:
        """Show the arguments that were given, and what they do not say."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items() if value is not None)
        return f"{type(self).__name__}({'; '.join([f'{self.table!r}, {arguments}', *self.remarks()])})"

    def remarks(self) -> list[str]:
        """Return phrases about what the arguments do not show; they are displayed with the sampler."""
        return []

    @never_raises
    def _repr_html_(self) -> str:
        """Show the arguments that were given, what they do not say, and the table, in a notebook."""
        arguments = [(name, _short(value)) for name, value in self.arguments.items() if value is not None]
        draws = "without end" if self.length is None else counted(self.length, "draw")
        about = facts(
            [
                draws,
                f"from {counted(len(self.table), 'row')}",
                *self.remarks(),
                "report() says what is drawn, and what never is",
            ]
        )
        return block(type(self).__name__, about, table((), arguments))

    def __bool__(self) -> bool:
        """True: whether there is a sampler does not depend on whether it has a length."""
        return True

    def __getitem__(self, step: int) -> Draw:
        """Return the draw of one step, which depends only on the arguments and the step.

        Raises
        ------
        RowError
            If the step is negative, or beyond the end of a finite sampler; an IndexError, so that iteration ends.

        """
        check_one(step, self.length)
        try:
            return self._single(int(step))
        except MemoryError as error:
            raise out_of_memory(1, error) from None

    def _single(self, step: int) -> Draw:
        """Draw of one step: that of a block of this step alone."""
        return self.draws(np.array([step], dtype=np.int64)).at(0)

    def block(self, start: int, stop: int) -> Draw:
        """Return the draws of steps start … stop − 1 with a leading axis, as if the single draws were stacked."""
        check_block(start, stop, self.length)
        check_block_memory(self, int(start), int(stop))
        return draw_steps(self, np.arange(start, stop, dtype=np.int64))

    def __iter__(self) -> Iterator[Draw]:
        """Iterate over all draws from step 0."""
        refuse_sampler_of_rows(self)
        return tell_pass(self.iterate(), self)

    def iterate(self, start: int = 0) -> Iterator[Draw]:
        """Iterate over the draws from a step on, without end unless the sampler is finite.

        Raises
        ------
        SamplerError
            If ``start`` is not a step; the end of a finite sampler is allowed, where a finished run resumes.

        """
        last = LAST if self.length is None else self.length
        return one_by_one(self, check_start(start, last), last)

    def shard(self, rank: int, world: int, start: int = 0) -> "Shard":
        """Return every ``world``-th draw from ``start + rank`` on: whole draws, never parts of one."""
        return Shard(self, rank, world, start)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which :func:`from_dict` makes an equal sampler."""
        return {
            "sampler": type(self).__name__,
            "fingerprint": self.table.fingerprint,
            "arguments": {OPTION_NAMES.get(key, key): plain_data(value) for key, value in self.arguments.items()},
        }

    @classmethod
    def _from_arguments(cls, arguments: Mapping[str, Any], table: FactorTable) -> "Sampler":
        make: Callable[..., Sampler] = cls
        return make(table, **arguments)


class Shard:
    """Draws of one rank: ``shard[i] == sampler[start + i·world + rank]``.

    A shard of a finite sampler has ⌈(draws − start)/world⌉ draws on every rank; those beyond the end repeat the last
    draw with ``mask`` all False, so that no rank waits for another.

    ``end`` is the step at which the shared draws end, ``sampler.length`` by default; a later pass over a finite sampler
    ends beyond it.

    Raises
    ------
    SamplerError
        If rank, world and start do not fit together.

    """

    def __init__(self, sampler: Sampler, rank: int, world: int, start: int = 0, *, end: int | None = None) -> None:
        self.world = check_integer(world, "world", SamplerError, 1, LAST - 1)
        self.rank = check_integer(rank, "rank", SamplerError, 0, self.world - 1)
        self._end = sampler.length if end is None else end
        self.start = check_start(start, LAST if self._end is None else self._end)
        self.sampler = sampler
        self.length = None if self._end is None else -(-(self._end - self.start) // self.world)

    def __len__(self) -> int:
        """Count this rank's draws."""
        return length_of(self)

    def __bool__(self) -> bool:
        """True, also without a length."""
        return True

    def __getitem__(self, index: int) -> Draw:
        """Return draw number ``index`` of this rank."""
        check_one(index, self.length)
        return self.block(index, index + 1).at(0)

    def block(self, start: int, stop: int) -> Draw:
        """Return draws start … stop − 1 of this rank, with a leading axis."""
        check_block(start, stop, self.length)
        if self.start + (int(stop) - 1) * self.world + self.rank >= LAST:
            raise RowError(f"draw {stop - 1} of rank {self.rank} is out of range: its step exceeds 2**63 - 1")
        check_block_memory(self.sampler, self.start, self.start + int(stop) - int(start))
        steps = self.start + np.arange(start, stop, dtype=np.int64) * self.world + self.rank
        if self._end is None or steps[-1] < self._end:
            return draw_steps(self.sampler, steps)
        over = steps >= self._end
        draw = draw_steps(self.sampler, np.minimum(steps, self._end - 1))
        mask = np.ones(draw.indices.shape, dtype=bool) if draw.mask is None else draw.mask.copy()
        mask[over] = False
        return replace(draw, mask=mask)

    def when(self, row: int, start: int, stop: int) -> Steps:
        """Return the draws in start … stop − 1 of this rank that contain a row, ascending; see :meth:`Sampler.when`.

        Examples
        --------
        >>> import setsup
        >>> table = setsup.load("shapes3d-procedural").factors
        >>> share = setsup.SetSampler(table, inactive=["shape"], size=8, seed=5).shard(1, 4)
        >>> share.when(int(share[3].indices[0, 0]), 0, 10).tolist()
        [3]

        """
        return steps_with_row(self, _check_row(row, self.sampler.table), start, stop)

    def iterate(self) -> Iterator[Draw]:
        """Iterate over all draws of this rank, without the log message where a pass over an endless sampler ends."""
        return one_by_one(self, 0, LAST if self.length is None else self.length)

    def __iter__(self) -> Iterator[Draw]:
        """Iterate over all draws of this rank."""
        refuse_sampler_of_rows(self)
        if self.world > 1 and (processes := processes_of_accelerate() or 1) > 1:
            raise SamplerError(
                f"accelerate would divide the draws of rank {self.rank} among {processes} processes again and lose "
                "draws; pass the sampler itself to DataLoader, and let accelerator.prepare divide it among ranks"
            )
        return tell_pass(self.iterate(), self.sampler, self.start, self.world)


def _check_row(row: Any, table: FactorTable) -> int:
    return check_integer(row, "the number of a row", RowError, 0, len(table) - 1)


def check_step(sampler: Sampler, step: int) -> Steps:
    """A step of a sampler, as (1,) int64; RowError where there is none."""
    check_one(step, sampler.length)
    return np.array([step], dtype=np.int64)


def _short(value: Any) -> str:
    """An argument in few words."""
    if isinstance(value, np.ndarray) or (isinstance(value, list | tuple | Mapping) and len(value) > _SHOWN):
        return f"{type(value).__name__} of {len(value):,}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
