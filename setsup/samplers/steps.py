"""Checks of the steps that samplers are asked for."""

from typing import Any

import numpy as np

from setsup.arrays import Steps
from setsup.checks import check_array, check_integer, is_integer
from setsup.errors import RowError, SamplerError, abbreviate

__all__ = [
    "LAST",
    "after_steps",
    "check_block",
    "check_one",
    "check_position",
    "check_start",
    "check_steps",
    "pass_end",
]

LAST = 2**63  # steps are below


def check_one(step: Any, length: int | None) -> None:
    """Refuse what is no step of a sampler of this length."""
    if not is_integer(step):
        raise RowError(f"a step must be an integer, not {abbreviate(step)}; use block(start, stop) for several steps")
    if not 0 <= step < (LAST if length is None else length):
        raise _out_of_range(step, length)


def check_steps(steps: Any) -> Steps:
    """Steps as (n,) int64, also beyond the end of a finite sampler."""
    numbers = check_array(steps, "steps", RowError)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise RowError(f"steps must be a 1-D array of integers, such as np.arange(3), not {abbreviate(steps)}")
    # without a sign, negative steps are the largest of all
    last = int(numbers[0] if len(numbers) == 1 else numbers.astype(np.int64, copy=False).view(np.uint64).max())
    if not 0 <= last < LAST:
        raise _out_of_range(next(step for step in numbers.tolist() if not 0 <= step < LAST), None)
    return numbers.astype(np.int64, copy=False)


def check_block(start: Any, stop: Any, length: int | None) -> None:
    """Refuse what is no block of steps."""
    check_one(start, length)
    if not is_integer(stop) or stop <= start:
        raise RowError(f"a block requires integers start < stop, not {start} and {abbreviate(stop)}")
    check_one(int(stop) - 1, length)


def check_start(start: Any, last: int) -> int:
    """A step to begin at, the end of a sampler included."""
    end = "2**63" if last == LAST else f"{last}, the number of draws"
    if not is_integer(start) or not 0 <= start <= last:
        raise SamplerError(f"start must be a step of the sampler, an integer from 0 to {end}, not {abbreviate(start)}")
    return int(start)


def check_position(position: Any, length: int | None) -> int:
    """A step of any pass over a sampler of this length, to begin at."""
    last = LAST - 1 if length is None else LAST // length * length - 1
    return check_integer(position, "start, counted over all passes,", SamplerError, 0, last)


def pass_end(position: int, length: int | None) -> int | None:
    """The step before which the pass ends that a step lies within; None without an end.

    Pass p over a sampler of n draws has the steps p·n to (p + 1)·n − 1.

    Examples
    --------
    >>> [pass_end(step, 5) for step in (0, 4, 5)], pass_end(7, None)
    ([5, 5, 10], None)

    """
    return None if length is None else (position // length + 1) * length


def after_steps(position: int, steps: int, world: int, length: int | None) -> int:
    """The position after steps of so many ranks, each of which ends a pass with as many draws as the others.

    Examples
    --------
    >>> [after_steps(0, steps, 2, 5) for steps in range(5)]
    [0, 2, 4, 5, 7]

    """
    end = pass_end(position, length)
    if end is None or length is None or steps < (left := -(-(end - position) // world)):
        return position + steps * world
    passes, steps = divmod(steps - left, -(-length // world))
    return end + passes * length + steps * world


def _out_of_range(step: int, length: int | None) -> RowError:
    steps = (
        "steps are from 0 to 2**63 - 1" if length is None else f"the {length:,} draws have steps 0 to {length - 1:,}"
    )
    return RowError(f"step {step} is out of range: {steps}")
