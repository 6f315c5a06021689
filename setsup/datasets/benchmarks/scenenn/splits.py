"""Subsets of SceneNN's scenes that papers use; its authors published no split."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.factors import Factor, Kind

__all__ = ["ONLINE3D_VAL", "online3d"]

ONLINE3D_VAL = ("005", "011", "015", "030", "054", "080", "089", "093", "096", "243", "263", "322")
"""Scenes on which Online3D validates."""


def online3d(scenes: Sequence[str], codes: npt.NDArray[Any]) -> tuple[Factor, npt.NDArray[np.int64]]:
    """Factor that marks the scenes of Online3D, and its column.

    `codes` (rows,) integer; returns (rows,) int64.
    """
    chosen = np.array([0 if scene in ONLINE3D_VAL else -1 for scene in scenes], np.int64)
    return Factor("online3d", Kind.NOMINAL, ("val",), role="split"), chosen[codes]
