"""Traits of made-up objects: numbers from a seed that spread, so that objects with near numbers are unlike."""

import numpy as np
import numpy.typing as npt

from setsup.random import fold, stream_key, uniform

__all__ = ["spread_traits"]

# roots of primes: multiples of them spread over 0 … 1, so that objects with neighbouring numbers are unlike (Kronecker)
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101)
_STEPS = np.sqrt(np.array(_PRIMES))


def spread_traits(seed: int, stream: str, number: int) -> npt.NDArray[np.float64]:
    """Traits of object `number`, (26,) float64 in 0 … 1, whichever other objects there are."""
    start = uniform(fold(stream_key(seed, stream), np.arange(len(_STEPS), dtype=np.uint64)))
    traits: npt.NDArray[np.float64] = (start + number * _STEPS) % 1.0
    return traits
