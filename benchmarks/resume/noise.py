"""The rows that other libraries write: small images, and a random change of them. It imports numpy alone."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SEED", "SIDE", "change", "pixels"]

SEED, SIDE = 7, 8


def pixels(rows: int) -> npt.NDArray[np.uint8]:
    """Noise, an image for each row."""
    return np.random.default_rng(0).integers(0, 256, (rows, SIDE, SIDE, 3), dtype=np.uint8)


def change(image: npt.NDArray[Any], flip: float, light: float) -> npt.NDArray[np.uint8]:
    """Mirror an image half of the time, and darken it; both numbers are uniform between 0 and 1."""
    mirrored = image[:, ::-1] if flip < 0.5 else image
    return np.ascontiguousarray(mirrored * (0.5 + light / 2)).astype(np.uint8)
