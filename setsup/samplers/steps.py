"""Checks of the steps that samplers are asked for."""

from typing import Any

import numpy as np

from setsup.arrays import Steps
from setsup.checks import check_array, is_integer
from setsup.errors import RowError, SamplerError, brief

__all__ = ["LAST", "check_block", "check_one", "check_start", "check_steps"]

LAST = 2**63  # steps are below


def check_one(step: Any, length: int | None) -> None:
    """Refuse what is no step of a sampler of this length."""
    if not is_integer(step):
        raise RowError(f"a step must be an integer, not {brief(step)}; use block(start, stop) for several")
    if not 0 <= step < (LAST if length is None else length):
        raise _out_of_range(step, length)


def check_steps(steps: Any) -> Steps:
    """Steps as (n,) int64, also beyond the end of a finite sampler."""
    found = check_array(steps, "steps", RowError)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise RowError(f"steps must be an array of integers of one axis, such as np.arange(3), not {brief(steps)}")
    # without a sign, negative steps are the largest of all
    last = int(found[0] if len(found) == 1 else found.astype(np.int64, copy=False).view(np.uint64).max())
    if not 0 <= last < LAST:
        raise _out_of_range(next(step for step in found.tolist() if not 0 <= step < LAST), None)
    return found.astype(np.int64, copy=False)


def check_block(start: Any, stop: Any, length: int | None) -> None:
    """Refuse what is no block of steps."""
    check_one(start, length)
    if not is_integer(stop) or stop <= start:
        raise RowError(f"a block needs integers start < stop, not {start} and {brief(stop)}")
    check_one(int(stop) - 1, length)


def check_start(start: Any, last: int) -> int:
    """A step to begin at, the end of a sampler included."""
    end = "2**63" if last == LAST else f"{last}, the number of draws"
    if not is_integer(start) or not 0 <= start <= last:
        raise SamplerError(f"start must be a step of the sampler, an integer from 0 to {end}, not {brief(start)}")
    return int(start)


def _out_of_range(step: int, length: int | None) -> RowError:
    end = "2**63" if length is None else f"{length}, the number of draws"
    return RowError(f"step {step} is out of range: steps are from 0 and below {end}")
