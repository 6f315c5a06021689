"""Draws one after the other, of samplers and of shards of them: blocks, searches for a row, and where a pass ends."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Protocol, TypeVar

import numpy as np

from setsup.arrays import Steps
from setsup.errors import EndlessError, SamplerError
from setsup.samplers.arguments import check_draw_memory
from setsup.samplers.draw import Draw
from setsup.samplers.guards import out_of_memory
from setsup.samplers.steps import LAST, check_block, pass_end

__all__ = [
    "check_block_memory",
    "draw_steps",
    "length_of",
    "log_pass",
    "one_by_one",
    "steps_to_pass",
    "steps_with_row",
    "tell_pass",
]

_log = logging.getLogger("setsup")
_Item = TypeVar("_Item")

_BLOCK = 64  # steps drawn at a time while iterating
_SEARCHED = 1 << 18  # rows drawn at a time while one is sought
_MANY = 1 << 12  # steps of a block from which its memory is looked at


class Source(Protocol):
    """A sampler, or a shard of one."""

    length: int | None

    def __getitem__(self, step: int) -> Draw:
        """Draw of one step."""

    def block(self, start: int, stop: int) -> Draw:
        """Draws of the steps start … stop − 1 with a leading axis."""


class Drawing(Protocol):
    """A sampler, as far as blocks are drawn from it."""

    length: int | None

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block."""


def steps_with_row(source: Source, row: int, start: int, stop: int) -> Steps:
    """Steps in start … stop − 1 whose draws hold a row, a block at a time."""
    check_block(start, stop, source.length)
    start, stop = int(start), int(stop)
    rows = max(source.block(start, start + 1).indices.size, 1)
    block = max(_SEARCHED // rows, 1)
    steps = []
    for first in range(start, stop, block):
        draw = source.block(first, min(first + block, stop))
        is_row = draw.indices == row
        if draw.mask is not None:
            is_row &= draw.mask
        steps.append(first + np.flatnonzero(is_row.any(axis=(1, 2))))
    return np.concatenate(steps)


def one_by_one(source: Source, start: int, last: int) -> Iterator[Draw]:
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


def draw_steps(sampler: Drawing, steps: Steps) -> Draw:
    """Draws of some steps; SamplerError where memory runs out after all."""
    try:
        draw = sampler.draws(steps)
        return replace(draw, mask=None) if draw.mask is not None and draw.mask.all() else draw
    except MemoryError as error:
        raise out_of_memory(len(steps), error) from None


def check_block_memory(sampler: Drawing, start: int, stop: int) -> None:
    """Refuse a block that does not fit into memory, before it is made."""
    if stop - start >= _MANY:
        first = min(start, (sampler.length or LAST) - 1)
        rows = draw_steps(sampler, np.array([first], dtype=np.int64)).indices.size
        check_draw_memory(rows * (stop - start), f"a block of {stop - start:,} steps", "the number of steps")


def steps_to_pass(sampler: Drawing, start: int, world: int = 1) -> int | None:
    """Steps of so many ranks until the first pass over the rows ends, of a sampler that goes on; None without one."""
    epoch = getattr(sampler, "steps_per_epoch", None) if sampler.length is None else None
    end = pass_end(start, epoch)
    return None if end is None else -(-(end - start) // world)


def log_pass(sampler: Drawing) -> None:
    """Say that a pass over the rows has ended, and another begins."""
    _log.warning(
        "this loop has passed over all rows once, and the next pass begins: an EpochSampler without epochs= is "
        "infinite; pass epochs=1 for one pass per loop, or leave the loop after steps_per_epoch=%s steps",
        f"{getattr(sampler, 'steps_per_epoch', 0):,}",
    )


def tell_pass(items: Iterator[_Item], sampler: Drawing, start: int = 0, world: int = 1) -> Iterator[_Item]:
    """The same items, one for each step, and a sentence in the log where the first pass of an endless sampler ends."""
    left = steps_to_pass(sampler, start, world)
    return items if left is None else _log_after(items, sampler, left)


def _log_after(items: Iterator[_Item], sampler: Drawing, left: int) -> Iterator[_Item]:
    yield from islice(items, left)
    log_pass(sampler)
    yield from items


def length_of(source: Source) -> int:
    """Number of draws; EndlessError where there is no end."""
    if source.length is None:
        raise EndlessError(
            f"a {type(source).__name__} is infinite and has no length; for a finite sampler, use an EpochSampler with "
            "epochs="
        )
    return source.length
