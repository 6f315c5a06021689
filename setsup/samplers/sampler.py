"""Random access first: a sampler is a function from steps to draws, and everything else follows from that."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from inspect import signature
from itertools import islice
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from setsup.arrays import Bools, Steps
from setsup.checks import check_integer, refuse_foreign
from setsup.errors import EndlessError, RowError, SamplerError, UsageError, did_you_mean
from setsup.factors.table import FactorTable
from setsup.html import block, counted, facts, never_raises, table
from setsup.samplers.arguments import check_draw_memory, check_nesting, check_table, is_per_set, row_mask
from setsup.samplers.coverage import Reach
from setsup.samplers.draw import Draw
from setsup.samplers.report import Report
from setsup.samplers.resharding import accelerated_processes
from setsup.samplers.spelling import OPTION_NAMES, PYTHON_NAMES, python_arguments, spell_name
from setsup.samplers.steps import LAST, check_block, check_one, check_start, check_steps, pass_end

__all__ = ["Sampler", "Shard", "check_step", "from_dict", "length_of", "log_pass", "steps_to_pass", "tell_pass"]

_log = logging.getLogger("setsup")
_Item = TypeVar("_Item")

_SHOWN = 24  # items of an argument in a notebook
_BLOCK = 64  # steps drawn at a time while iterating
_SEARCHED = 1 << 18  # rows drawn at a time while one is sought
_MANY = 1 << 12  # steps of a block from which its memory is looked at


class Sampler(ABC):
    """A pure function from a step number to a draw; what all samplers share.

    A subclass keeps its constructor's ``arguments`` (plain data) and implements :meth:`draws`; :meth:`report`
    and :meth:`reach`, where it has something to tell. :func:`from_dict` finds it by the name of its class.

    A sampler, or a :meth:`shard` of one, is a ``batch_sampler`` of torch's ``DataLoader``: a batch has the rows of a
    draw, set after set, without padding. Each pass over the DataLoader begins at the first step again; passes of
    :func:`setsup.loading.set_batches` go on where the last one ended, and may have a length.

    Attributes
    ----------
    table : FactorTable
        What the rows of draws refer to.
    arguments : mapping
        The constructor's arguments without the table, as plain data.
    length : int or None
        Number of draws; None when there is no end.

    """

    table: FactorTable
    arguments: Mapping[str, Any]
    length: int | None = None
    first_step: int = 0
    """First step that can be drawn."""
    unconstrained_sets: frozenset[int] = frozenset()
    """Numbers of the sets of a step that fix no factor."""

    _kinds: ClassVar[dict[str, type["Sampler"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register a sampler by the name of its class, unless that is private or taken; its ``draws`` checks steps."""
        super().__init_subclass__()
        if "draws" in vars(cls):
            cls.draws = _checking(cls.draws)  # type: ignore[method-assign, assignment]
        for name in ("__init__", "report", "reach"):
            if name in vars(cls):
                setattr(cls, name, _within_memory(getattr(cls, name)))
        if not cls.__name__.startswith("_"):
            Sampler._kinds.setdefault(cls.__name__, cls)

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuse arguments of torch's samplers and loaders with what serves in their place."""
        if given:
            known = signature(cls.__init__).parameters
            for name in given:
                if (renamed := PYTHON_NAMES.get(name)) in known and name not in known:
                    raise UsageError(f"{cls.__name__} takes no {name}=; {name}= is now {renamed}=")
            refuse_foreign(cls.__init__, given)
        return super().__new__(cls)

    @abstractmethod
    def draws(self, steps: Steps) -> Draw:
        """Draws of any steps as one block: every array has a leading axis (steps,).

        Parameters
        ----------
        steps : (steps,) int64
            At least one step, in any order. A subclass need not check them: that is done before it is called. Those
            beyond the end of a finite sampler go on as without an end, for later passes over it.

        Raises
        ------
        RowError
            When they are not integers of one axis, or one is negative or not below 2⁶³.

        """

    def rows_where(self) -> Bools:
        """Rows that ``where`` lets through, (rows,) bool; of a sampler of other samplers, those of any of them."""
        where = self.arguments.get("where")
        masks = [row_mask(self.table, one) for one in (where if is_per_set(where) else [where])]
        found = np.zeros(len(self.table), dtype=bool)
        for mask in masks:
            found |= True if mask is None else mask
        return found

    def report(self) -> Report:
        """What will be drawn, and what never can be, before any training; nothing unless a sampler says it."""
        return Report(type(self).__name__, [], ["this sampler has no report of its own"])

    def reach(self, step: int = 0) -> Reach:
        """Which groups and rows a step can draw, over all seeds: the chance of each, or why it is never drawn.

        Parameters
        ----------
        step : int
            Where an option changes with the step, the one whose options count.

        Returns
        -------
        Reach
            Of a sampler that does not say, one without groups, and whose chances are NaN.

        """
        check_one(step, self.length)
        return Reach(type(self).__name__, self.table, [], None, ["this sampler does not say what it can draw"])

    def when(self, row: int, start: int, stop: int) -> Steps:
        """Steps in start … stop − 1 that draw a row, ascending; O(stop − start), a block at a time.

        Parameters
        ----------
        row : int
            A row of the table.
        start, stop : int
            0 ≤ start < stop ≤ 2⁶³, and not beyond the end of a finite sampler; every step between is drawn, which takes
            seconds for a million of them.

        Returns
        -------
        (n,) int64

        Raises
        ------
        RowError
            When there is no such row, or no such steps.

        Examples
        --------
        >>> import setsup
        >>> table = setsup.load("shapes3d-procedural").factors
        >>> sets = setsup.SetSampler(table, inactive=["shape"], size=8, seed=5)
        >>> sets.when(int(sets[3].indices[0, 0]), 0, 10).tolist()
        [3]

        """
        return _when(self, check_integer(row, "the number of a row", RowError, 0, len(self.table) - 1), start, stop)

    def __repr__(self) -> str:
        """Show the arguments that were given, and what they do not say."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items() if value is not None)
        return f"{type(self).__name__}({'; '.join([f'{self.table!r}, {given}', *self.remarks()])})"

    def remarks(self) -> list[str]:
        """What a reader of the arguments might miss, a phrase each; shown with the sampler."""
        return []

    @never_raises
    def _repr_html_(self) -> str:
        """Show the arguments that were given, what they do not say, and the table, in a notebook."""
        given = [(name, _short(value)) for name, value in self.arguments.items() if value is not None]
        draws = "without end" if self.length is None else counted(self.length, "draw")
        about = facts(
            [
                draws,
                f"from {counted(len(self.table), 'row')}",
                *self.remarks(),
                "report() says what is drawn, and what never is",
            ]
        )
        return block(type(self).__name__, about, table((), given))

    def __bool__(self) -> bool:
        """True: whether there is a sampler does not depend on whether it has a length."""
        return True

    def __getitem__(self, step: int) -> Draw:
        """Draw of one step, which depends on the arguments and the step alone.

        Raises
        ------
        RowError
            When the step is negative, or beyond the end of a finite sampler; an IndexError, so that iteration ends.

        """
        check_one(step, self.length)
        try:
            return self._single(int(step))
        except MemoryError as error:
            raise _out_of_memory(1, error) from None

    def _single(self, step: int) -> Draw:
        """Draw of one step: that of a block of this step alone."""
        return self.draws(np.array([step], dtype=np.int64)).at(0)

    def block(self, start: int, stop: int) -> Draw:
        """Draws of the steps start … stop − 1 with a leading axis; equal to stacking the single draws."""
        check_block(start, stop, self.length)
        _check_memory(self, int(start), int(stop))
        return _draw(self, np.arange(start, stop, dtype=np.int64))

    def __iter__(self) -> Iterator[Draw]:
        """All draws from step 0."""
        return tell_pass(self.iterate(), self)

    def iterate(self, start: int = 0) -> Iterator[Draw]:
        """Draws from a step on, without end unless the sampler is finite.

        Raises
        ------
        SamplerError
            When ``start`` is no step; the end of a finite sampler is allowed, where a finished run resumes.

        """
        last = LAST if self.length is None else self.length
        return _one_by_one(self, check_start(start, last), last)

    def shard(self, rank: int, world: int, start: int = 0) -> "Shard":
        """Every ``world``-th draw from ``start + rank`` on: whole draws, never parts of one."""
        return Shard(self, rank, world, start)

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which :func:`from_dict` makes an equal sampler."""
        return {
            "sampler": type(self).__name__,
            "fingerprint": self.table.fingerprint,
            "arguments": {OPTION_NAMES.get(key, key): _plain(value) for key, value in self.arguments.items()},
        }

    @classmethod
    def _from_arguments(cls, arguments: Mapping[str, Any], table: FactorTable) -> "Sampler":
        make: Callable[..., Sampler] = cls
        return make(table, **arguments)


class Shard:
    """One rank's draws: ``shard[i] == sampler[start + i·world + rank]``.

    A shard of a finite sampler has ⌈(draws − start)/world⌉ draws on every rank; those beyond the end repeat the last
    draw with ``mask`` all False, so that no rank waits for another.

    ``end`` is where the draws end that are shared out, of which there are ``sampler.length`` by default: a later pass
    over a finite sampler ends beyond them.

    Raises
    ------
    SamplerError
        When rank, world and start do not fit together.

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
        """Draw number ``index`` of this rank."""
        check_one(index, self.length)
        return self.block(index, index + 1).at(0)

    def block(self, start: int, stop: int) -> Draw:
        """Draws start … stop − 1 of this rank, with a leading axis."""
        check_block(start, stop, self.length)
        if self.start + (int(stop) - 1) * self.world + self.rank >= LAST:
            raise RowError(f"draw {stop - 1} of rank {self.rank} is out of range: its step is not below 2**63")
        _check_memory(self.sampler, self.start, self.start + int(stop) - int(start))
        steps = self.start + np.arange(start, stop, dtype=np.int64) * self.world + self.rank
        if self._end is None or steps[-1] < self._end:
            return _draw(self.sampler, steps)
        over = steps >= self._end
        draw = _draw(self.sampler, np.minimum(steps, self._end - 1))
        mask = np.ones(draw.indices.shape, dtype=bool) if draw.mask is None else draw.mask.copy()
        mask[over] = False
        return replace(draw, mask=mask)

    def when(self, row: int, start: int, stop: int) -> Steps:
        """Draws in start … stop − 1 of this rank that hold a row, ascending, as :meth:`Sampler.when` finds them.

        Examples
        --------
        >>> import setsup
        >>> table = setsup.load("shapes3d-procedural").factors
        >>> share = setsup.SetSampler(table, inactive=["shape"], size=8, seed=5).shard(1, 4)
        >>> share.when(int(share[3].indices[0, 0]), 0, 10).tolist()
        [3]

        """
        rows = len(self.sampler.table)
        return _when(self, check_integer(row, "the number of a row", RowError, 0, rows - 1), start, stop)

    def iterate(self) -> Iterator[Draw]:
        """All draws of this rank in order; says nothing where a pass over an endless sampler ends."""
        return _one_by_one(self, 0, LAST if self.length is None else self.length)

    def __iter__(self) -> Iterator[Draw]:
        """All draws of this rank in order."""
        if self.world > 1 and (processes := accelerated_processes()) > 1:
            raise SamplerError(
                f"accelerate would share the draws of rank {self.rank} among {processes} processes again, which loses "
                "draws: give DataLoader the sampler itself, and leave the ranks to accelerator.prepare"
            )
        return tell_pass(self.iterate(), self.sampler, self.start, self.world)


def _when(source: Sampler | Shard, row: int, start: int, stop: int) -> Steps:
    """Steps in start … stop − 1 whose draws hold a row, a block at a time."""
    check_block(start, stop, source.length)
    start, stop = int(start), int(stop)
    rows = max(source.block(start, start + 1).indices.size, 1)
    block = max(_SEARCHED // rows, 1)
    found = []
    for first in range(start, stop, block):
        draw = source.block(first, min(first + block, stop))
        here = draw.indices == row
        if draw.mask is not None:
            here &= draw.mask
        found.append(first + np.flatnonzero(here.any(axis=(1, 2))))
    return np.concatenate(found)


def _one_by_one(source: Sampler | Shard, start: int, last: int) -> Iterator[Draw]:
    """Single draws, computed a block at a time; a step that cannot be drawn is an error once it is reached."""
    for first in range(start, last, _BLOCK):
        stop = min(first + _BLOCK, last)
        try:
            block = source.block(first, stop)
        except SamplerError:
            yield from (source[step] for step in range(first, stop))
            continue
        for step in range(len(block.indices)):
            yield block.at(step)


def steps_to_pass(sampler: Sampler, start: int, world: int = 1) -> int | None:
    """Steps of so many ranks until the first pass over the rows ends, of a sampler that goes on; None without one."""
    epoch = getattr(sampler, "steps_per_epoch", None) if sampler.length is None else None
    end = pass_end(start, epoch)
    return None if end is None else -(-(end - start) // world)


def log_pass(sampler: Sampler) -> None:
    """Say that a pass over the rows has ended, and another begins."""
    _log.warning(
        "this loop has passed over all rows once, and the next pass begins: an EpochSampler without epochs= has no "
        "end; pass epochs=1 for one pass per loop, or leave the loop after steps_per_epoch=%s steps",
        f"{getattr(sampler, 'steps_per_epoch', 0):,}",
    )


def tell_pass(items: Iterator[_Item], sampler: Sampler, start: int = 0, world: int = 1) -> Iterator[_Item]:
    """The same items, one for each step, and a sentence in the log where the first pass of an endless sampler ends."""
    left = steps_to_pass(sampler, start, world)
    return items if left is None else _telling(items, sampler, left)


def _telling(items: Iterator[_Item], sampler: Sampler, left: int) -> Iterator[_Item]:
    yield from islice(items, left)
    log_pass(sampler)
    yield from items


def check_step(sampler: Sampler, step: int) -> Steps:
    """A step of a sampler, as (1,) int64; RowError where there is none."""
    check_one(step, sampler.length)
    return np.array([step], dtype=np.int64)


def _check_memory(sampler: Sampler, start: int, stop: int) -> None:
    """Refuse a block that does not fit into memory, before it is made."""
    if stop - start >= _MANY:
        first = min(start, (sampler.length or LAST) - 1)
        rows = _draw(sampler, np.array([first], dtype=np.int64)).indices.size
        check_draw_memory(rows * (stop - start), f"a block of {stop - start:,} steps", "the number of steps")


def _checking(draws: Callable[[Any, Steps], Draw]) -> Callable[[Any, Steps], Draw]:
    """Make a sampler's ``draws`` refuse what are no steps of it."""

    @wraps(draws)
    def checked(self: Sampler, steps: Steps) -> Draw:
        return draws(self, check_steps(steps))

    return checked


def _within_memory(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a sampler raise SamplerError where memory runs out."""

    @wraps(method)
    def within(self: Sampler, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        except MemoryError as error:
            table = next((one for one in (*given[:1], *vars(self).values()) if isinstance(one, FactorTable)), None)
            rows = "its table" if table is None else f"a table of {len(table):,} rows"
            raise SamplerError(
                f"memory ran out for {type(self).__name__} on {rows} ({error}): draw from a smaller table, such as "
                "dataset.where(…) gives, or name fewer factors"
            ) from None

    return within


def _draw(sampler: Sampler, steps: Steps) -> Draw:
    """Draws of some steps; SamplerError where memory runs out after all."""
    try:
        draw = sampler.draws(steps)
        return replace(draw, mask=None) if draw.mask is not None and draw.mask.all() else draw
    except MemoryError as error:
        raise _out_of_memory(len(steps), error) from None


def _out_of_memory(steps: int, error: MemoryError) -> SamplerError:
    return SamplerError(
        f"memory ran out while {steps:,} steps were drawn ({error}); draw fewer steps, or lower {spell_name('size')} "
        f"or {spell_name('sets')}"
    )


def length_of(source: Sampler | Shard) -> int:
    """Number of draws; EndlessError where there is no end."""
    if source.length is None:
        raise EndlessError(
            f"this {type(source).__name__} has no end, so it has no length: an EpochSampler with epochs= has one"
        )
    return source.length


def from_dict(data: Mapping[str, Any], table: FactorTable) -> Sampler:
    """Make a sampler from what :meth:`Sampler.to_dict` gave, on the same table.

    Raises
    ------
    SamplerError
        When the table is another one, the sampler unknown, or an argument missing.

    Examples
    --------
    >>> import setsup
    >>> from setsup.samplers import from_dict
    >>> table = setsup.load("shapes3d-procedural").factors
    >>> sets = setsup.SetSampler(table, inactive=["shape"], size=8, seed=5)
    >>> again = from_dict(sets.to_dict(), table)
    >>> bool((again[3].indices == sets[3].indices).all())
    True

    """
    try:
        name, fingerprint, arguments = data["sampler"], data["fingerprint"], dict(data["arguments"])
    except (LookupError, TypeError, ValueError):
        raise SamplerError(
            "a sampler is described by sampler, fingerprint and arguments; see Sampler.to_dict"
        ) from None
    check_nesting(data)
    if not isinstance(name, str) or name not in Sampler._kinds:
        raise SamplerError(
            f"unknown sampler {name!r}{did_you_mean(name, Sampler._kinds)}: import the module of a sampler of your own "
            "first (on the command line, --sampler FILE.py:CLASS)"
        )
    if not check_table(table).has_fingerprint(fingerprint):
        raise SamplerError(
            f"this {name} was made for the table with fingerprint {fingerprint}, not {table.fingerprint}: load the "
            "same dataset with the same split and where"
        )
    try:
        kind = Sampler._kinds[name]
        return kind._from_arguments(python_arguments(arguments, signature(kind).parameters), table)
    except TypeError as error:
        words = str(error).removeprefix(f"{name}.__init__() ").replace("required positional ", "")
        raise SamplerError(f"the arguments of {name} do not fit: {words}") from None


def _short(value: Any) -> str:
    """An argument in few words."""
    if isinstance(value, np.ndarray) or (isinstance(value, list | tuple | Mapping) and len(value) > _SHOWN):
        return f"{type(value).__name__} of {len(value):,}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _plain(value: Any) -> Any:
    """Turn an argument into JSON data."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
