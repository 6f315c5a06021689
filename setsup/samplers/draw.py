"""What a sampler returns: row numbers and what is known about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array

__all__ = ["Draw"]


@dataclass(frozen=True, slots=True)
class Draw:
    """One step's sets of rows, or a block of steps with one more leading axis everywhere.

    Attributes
    ----------
    indices : (sets, size) int64
        Rows of the table that the sampler was given.
    inactive : mapping of str to (sets,) int64 or float32
        Code of the level that each set fixes, -1 where a set does not fix the factor; for a factor fixed within a
        tolerance the anchor's value, or NaN.
    mask : (sets, size) bool, optional
        False at padding; None where there is none.
    canonical : (sets,) int64, optional
        Row of each set's canonical member.

    """

    indices: npt.NDArray[np.int64]
    inactive: Mapping[str, Array] = field(default_factory=dict)
    mask: npt.NDArray[np.bool_] | None = None
    canonical: npt.NDArray[np.int64] | None = None

    def at(self, step: int) -> "Draw":
        """One step of a block."""
        mask = None if self.mask is None or self.mask[step].all() else self.mask[step]
        return Draw(
            self.indices[step],
            {name: codes[step] for name, codes in self.inactive.items()},
            mask,
            None if self.canonical is None else self.canonical[step],
        )
