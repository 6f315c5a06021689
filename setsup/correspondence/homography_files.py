"""Homographies in text files, as HPatches publishes them."""

import numpy as np

from setsup.arrays import Reals
from setsup.errors import DataError, abbreviate

__all__ = ["parse_homography"]


def parse_homography(content: bytes, label: str) -> Reals:
    """Parse a homography (3, 3) float64 from the text of a file; its element [2, 2] is made non-negative.

    `label` names the file; raises DataError if the text is not an invertible matrix.
    """
    try:
        text = content.decode("ascii")
        if "_" in text:  # of 1_0, which Python takes for 10
            raise ValueError("it contains '_'")
        matrix = np.array([line.replace(",", " ").split() for line in text.split("\n") if line.strip()], float)
    except ValueError as error:
        raise DataError(
            f"{label} could not be parsed as 3 × 3 numbers: {error}; write three lines of three numbers"
        ) from error
    if matrix.shape != (3, 3) or not np.isfinite(matrix).all() or np.linalg.cond(matrix) > 1e14:
        raise DataError(
            f"{label} must contain a homography, an invertible matrix of 3 × 3 finite numbers, not "
            f"{abbreviate(matrix.tolist())}; write three lines of three numbers"
        )
    matrix = np.asarray(np.ldexp(matrix, -np.frexp(np.abs(matrix).max())[1]))  # a multiple is the same homography
    return matrix if matrix[2, 2] >= 0 else -matrix
