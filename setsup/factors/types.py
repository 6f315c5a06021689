"""Types of arrays that factors and samplers share."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Floats", "Mask", "Rows", "Steps", "Words"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

Rows = npt.NDArray[np.int64]
"""Row numbers, codes, and counts."""

Steps = npt.NDArray[np.int64]

Words = npt.NDArray[np.uint64]
"""Key words and the bits drawn with them."""
