"""The slots whose images an operation changes, and the keyed numbers that say how.

Every number comes from the key (seed, stream, step, set, slot, copy, operation, parameter) by the counter-based
function of :mod:`setsup.random`: the same on a CPU, on a GPU, in a worker process, and after a resume.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup import random
from setsup.arrays import Words

__all__ = ["Slots"]


@dataclass(frozen=True, slots=True)
class Slots:
    """Some images of a batch, flattened: a key per image, and the codes of their factors.

    Attributes
    ----------
    keys : (n,) uint64
        Key of each image.
    eight_bit : bool
        Whether images are multiples of 1/255 before and after every operation, as 8-bit images are.
    factors : mapping of str to (n,) array
        Codes of each image's levels; values of continuous factors.

    """

    keys: Words
    eight_bit: bool = False
    factors: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the images."""
        return len(self.keys)

    def bits(self, parameter: int = 0) -> Words:
        """64 uniform bits per image.

        An operation that draws several numbers gives each its own ``parameter``: the same parameter gives the same
        bits, so numbers that share one are not independent.

        Examples
        --------
        >>> slots = Slots(np.arange(3, dtype=np.uint64))
        >>> bool((slots.bits(0) == slots.bits(1)).any()), bool((slots.bits(1) == slots.bits(1)).all())
        (False, True)

        """
        return random.fold(self.keys, np.asarray(parameter, dtype=np.uint64))

    def uniform(self, low: float, high: float, parameter: int = 0) -> npt.NDArray[np.float64]:
        """One number per image, uniform in low … high; a second number requires another ``parameter``."""
        return low + (high - low) * random.uniform(self.bits(parameter))

    def below(self, n: int | npt.NDArray[Any], parameter: int = 0) -> npt.NDArray[np.int64]:
        """One integer per image, uniform in 0 … n − 1; a second integer requires another ``parameter``."""
        return random.randint_below(self.bits(parameter), n)

    def at(self, operation: int) -> "Slots":
        """The same images with keys of their own for one operation of several."""
        return replace(self, keys=random.fold(self.keys, np.asarray(operation, dtype=np.uint64)))

    def take(self, which: npt.NDArray[Any]) -> "Slots":
        """Some of the images, by number, by mask or by slice."""
        factors = {name: codes[which] for name, codes in self.factors.items()}
        return replace(self, keys=self.keys[which], factors=factors)
