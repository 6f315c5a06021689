"""Types of arrays, by what they hold or by their dtype, and of their sizes, as annotations use them."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "Array",
    "Bools",
    "Bytes",
    "Codes",
    "Counts",
    "Floats",
    "Integers",
    "Matrices",
    "Numbers",
    "Pixels",
    "Places",
    "Reals",
    "Rows",
    "Size",
    "Steps",
    "Words",
]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

Bytes = npt.NDArray[np.uint8]
Pixels = npt.NDArray[np.uint8]

Numbers = npt.NDArray[np.int32]

Codes = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]
Steps = npt.NDArray[np.int64]

Words = npt.NDArray[np.uint64]
"""Key words and the bits drawn with them."""

Floats = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
Matrices = npt.NDArray[np.float64]

Size = tuple[int, int]
"""Height and width, in pixels."""
