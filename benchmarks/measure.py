"""Time two or more sides in turn, so that whatever else the machine does falls on all of them alike."""

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import repeat
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["SHRINK", "Side", "Spread", "alternate", "on_one_core", "ratio", "shrunk", "sized"]

Seconds = npt.NDArray[np.float64]
T = TypeVar("T")

SHRINK = "SETSUP_BENCH_SHRINK"
"""Variable of the environment that has everything shrunk; processes that a topic starts see it too."""

_GROWTH = 10  # times as many calls, at most, as were timed last


@dataclass(frozen=True, slots=True)
class Side:
    """Something to time: a call, and how many units (sets, images, tables) one call makes.

    ``before`` is called ahead of every timed call, which is then a block by itself, and its time is not counted.
    """

    run: Callable[[], object]
    units: int = 1
    before: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Median of the blocks, and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: npt.ArrayLike) -> "Spread":
        """Summarise values of any number of blocks."""
        low, median, high = np.quantile(np.asarray(values, dtype=np.float64), [0.25, 0.5, 0.75])
        return cls(float(median), float(low), float(high))


def shrunk() -> bool:
    """Whether everything is shrunk to seconds, to see that it runs: what is measured then means nothing."""
    return os.environ.get(SHRINK) == "1"


def sized(whole: T, few: T) -> T:
    """Choose between what is measured with, and what is enough to see that it runs."""
    return few if shrunk() else whole


def alternate(
    sides: Mapping[str, Side],
    blocks: int = 15,
    seconds: float = 0.03,
    clock: Callable[[], float] = time.process_time,
    warm: bool = True,
) -> dict[str, Seconds]:
    """Time every side block by block, the sides taking turns: A B, A B, A B.

    Parameters
    ----------
    sides : mapping of str to Side
        What to time.
    blocks : int
        Turns of each side.
    seconds : float
        Least length of a block; a call that takes longer is a block by itself.
    clock : callable
        CPU time of this process by default; ``time.perf_counter`` where waiting counts.
    warm : bool
        Call every side once beforehand, uncounted: the first call finds caches cold and code not yet compiled.

    Returns
    -------
    mapping of str to (blocks,) float64, seconds a unit

    """
    if shrunk():  # each side is called twice: the second call finds what the first one left
        blocks, warm = min(blocks, 2), False
    found: dict[str, list[float]] = {name: [] for name in sides}
    with nullcontext() if shrunk() else _without_collector():
        calls = {name: _calls_for(side, seconds, clock, warm) for name, side in sides.items()}
        for _ in range(blocks):
            for name, side in sides.items():
                found[name].append(_timed(side, calls[name], clock) / (calls[name] * side.units))
    return {name: np.array(values) for name, values in found.items()}


def ratio(slow: Seconds, fast: Seconds) -> Spread:
    """Say how many times as long ``slow`` takes, over the pairs of neighbouring blocks."""
    return Spread.of(slow / fast)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process on one core, where the system can (Linux)."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _calls_for(side: Side, seconds: float, clock: Callable[[], float], warm: bool) -> int:
    """Find how many calls fill a block, by filling one: the first calls of a stream find what it made ahead."""
    calls = 1
    if warm:
        _timed(side, calls, clock)
    while warm and side.before is None and (took := _timed(side, calls, clock)) < seconds:
        calls = max(calls * 2, min(calls * _GROWTH, int(calls * seconds / max(took, 1e-9))))
    return calls


def _timed(side: Side, calls: int, clock: Callable[[], float]) -> float:
    if side.before is not None:
        side.before()
    run = side.run
    start = clock()
    for _ in repeat(None, calls):
        run()
    return clock() - start


@contextmanager
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
