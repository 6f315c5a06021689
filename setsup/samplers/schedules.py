"""Options that change with the step: plain data, and a pure function of the step.

A schedule is a mapping from a step to the value that holds from it on: ``size={0: 32, 1000: 64}``. Larger batches late
in training, in place of a lower learning rate, are such a schedule [1]_. Draws have the width of the largest size;
positions beyond the size of their step are masked.

References
----------
.. [1] S. L. Smith, P.-J. Kindermans, C. Ying, Q. V. Le, "Don't decay the learning rate, increase the batch size", ICLR
   2018 (arXiv 1711.00489).

"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows, Steps
from setsup.checks import check_array, check_integer, check_number, is_integer
from setsup.errors import RowError, SamplerError, abbreviate
from setsup.samplers.arguments import check_size
from setsup.samplers.draw import Draw
from setsup.samplers.steps import LAST

__all__ = ["Schedule", "Scheduled", "Stepwise", "read_probability", "read_size", "shorten", "since"]

Scheduled = int | Mapping[int, int]
"""An integer, or one from each of some steps on."""


@dataclass(frozen=True, slots=True)
class Stepwise:
    """Probability that rises in equal steps: p = end·min(⌊step/every⌋, levels − 1)/(levels − 1).

    Parameters
    ----------
    end : float
        Final value, reached at step ``every·(levels − 1)``.
    every : int
        Steps between two increases.
    levels : int
        Number of values, including 0 and ``end``; at least 2.

    Examples
    --------
    >>> Stepwise(0.10, every=4000, levels=10).at([0, 3999, 4000, 36000, 90000]).round(4).tolist()
    [0.0, 0.0, 0.0111, 0.1, 0.1]

    """

    end: float
    every: int
    levels: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        what = "a stepwise schedule's {}".format
        object.__setattr__(self, "end", check_number(self.end, what("end"), SamplerError, 0, 1))
        object.__setattr__(self, "every", check_integer(self.every, what("every"), SamplerError, 1, LAST - 1))
        object.__setattr__(self, "levels", check_integer(self.levels, what("levels"), SamplerError, 2, LAST - 1))

    def at(self, steps: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the probability at steps; float64 of their shape."""
        numbers = check_array(steps, "steps", RowError)
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= 2**63):
            raise RowError(f"steps must be integers from 0 to 2**63 - 1, not {abbreviate(steps)}")
        rise = np.minimum(numbers.astype(np.int64) // self.every, self.levels - 1)
        return self.end * rise / (self.levels - 1)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Values that hold from some steps on, each until the next; the first from step 0 on.

    Attributes
    ----------
    starts : tuple of int
        Steps, ascending, the first one 0.
    values : tuple
        As many numbers.

    """

    starts: tuple[int, ...]
    values: tuple[Any, ...]

    @classmethod
    def read(cls, values: Any, what: str, check: Callable[[Any, str], Any]) -> "Schedule":
        """A schedule from one value, or from a mapping of steps to values; keys may be strings, as JSON has them.

        ``check`` is given each value with what to call it.
        """
        if not isinstance(values, Mapping):
            return cls((0,), (check(values, what),))
        by_step = {_step(key, what): value for key, value in values.items()}
        if len(by_step) < len(values) or 0 not in by_step:
            raise SamplerError(
                f"{what} given by step must have a value for step 0 and must not list a step twice, for example "
                f"{{0: 8, 1000: 16}}, not {abbreviate(values)}"
            )
        starts = tuple(sorted(by_step))
        return cls(starts, tuple(check(by_step[start], f"{what} from step {start} on") for start in starts))

    @property
    def changes(self) -> bool:
        """Whether there is more than one value."""
        return len(set(self.values)) > 1

    @property
    def most(self) -> Any:
        """The largest value."""
        return max(self.values)

    def stretch(self, steps: Steps) -> Rows:
        """Number of the value that holds at each of some steps."""
        return np.searchsorted(np.array(self.starts, dtype=np.int64), steps, side="right") - 1

    def at(self, steps: Steps) -> Array:
        """Return the values at steps, of their shape."""
        return np.array(self.values)[self.stretch(steps)]

    def at_step(self, step: int) -> Any:
        """Return the value at one step, at a tenth of what arrays cost."""
        return self.values[bisect_right(self.starts, step) - 1]

    def plain(self) -> Any:
        """The value, or a dict of steps and values."""
        return self.values[0] if len(self.starts) == 1 else dict(zip(self.starts, self.values, strict=True))

    def words(self) -> str:
        """The values with their steps, such as ``8, from step 1,000 on 16``."""
        first, *others = zip(self.starts, self.values, strict=True)
        return ", ".join([f"{first[1]:,}", *(f"from step {start:,} on {value:,}" for start, value in others)])


def _step(key: Any, what: str) -> int:
    if isinstance(key, str) and key.isascii() and key.isdigit():
        key = int(key)
    if not is_integer(key) or not 0 <= key < LAST:
        raise SamplerError(f"the steps of {what} must be integers from 0 to 2**63 - 1, not {abbreviate(key)}")
    return int(key)


def read_size(size: Any, what: str = "size") -> Schedule:
    """The rows of a set by step."""
    return Schedule.read(size, what, check_size)


def since(plain: Any, step: int) -> int:
    """First of the steps up to one in which all options are those of that step.

    Parameters
    ----------
    plain : data
        What :meth:`Sampler.to_dict` gives, or a part of it, such as the arguments of a sampler.
    step : int
        From 0 on.

    Returns
    -------
    int
        At most `step`: no option changes after it and up to `step`.

    Examples
    --------
    >>> [since({"size": [8, {0: 4, 100: 8}], "sets": 2}, step) for step in (0, 99, 100, 2**62)]
    [0, 0, 100, 100]
    >>> since({"p": {"end": 0.1, "every": 4000, "levels": 10}}, 9_000)
    8000

    """
    if isinstance(plain, list | tuple):  # of one value for each set, or of samplers
        return max((since(item, step) for item in plain if isinstance(item, Mapping)), default=0)
    if not isinstance(plain, Mapping):
        return 0
    if plain.keys() == {field.name for field in fields(Stepwise)}:
        return min(step // int(plain["every"]), int(plain["levels"]) - 1) * int(plain["every"])
    starts = [
        int(key) for key in plain if is_integer(key) or (isinstance(key, str) and key.isascii() and key.isdigit())
    ]
    return max([0, *(start for start in starts if start <= step), *(since(item, step) for item in plain.values())])


def shorten(draw: Draw, sizes: Sequence[Schedule], steps: Steps) -> Draw:
    """Mask all rows of a block's sets but the first ones: one size for each set, or one for all."""
    size = np.stack([schedule.at(steps) for schedule in sizes], axis=1)
    real = np.arange(draw.indices.shape[-1]) < np.broadcast_to(size, draw.indices.shape[:2])[..., None]
    if real.all():
        return draw
    mask = real if draw.mask is None else draw.mask & real
    return replace(draw, indices=np.where(mask, draw.indices, draw.indices[..., :1]), mask=mask)


def read_probability(p: Any) -> Schedule | Stepwise:
    """A schedule of the probability, which may be plain data; SamplerError otherwise."""
    if isinstance(p, Stepwise):
        return p
    if isinstance(p, Mapping) and set(p) & {"end", "every", "levels"}:
        if set(p) != {"end", "every", "levels"}:
            raise SamplerError(f"a stepwise schedule must have the keys end, every and levels, not {sorted(p)}")
        return Stepwise(**p)
    what = "p, unless it is a Stepwise schedule,"
    return Schedule.read(p, what, lambda value, name: check_number(value, name, SamplerError, 0, 1))
