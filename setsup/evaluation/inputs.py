"""Checks of embeddings, labels and factors that evaluations take as arrays."""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Codes, Reals
from setsup.errors import DataError

__all__ = ["check_embeddings", "check_factors", "check_labels", "select_known"]


def check_embeddings(embeddings: npt.ArrayLike, name: str = "embeddings") -> Reals:
    """Embeddings as (n, d) float64.

    `embeddings` (n, d) numbers.
    """
    given = np.asarray(embeddings)
    if given.ndim != 2 or 0 in given.shape or given.dtype.kind not in "iufb":
        raise DataError(
            f"{name} must be a numeric array of shape (n, d), one row per image, not {given.dtype} of shape "
            f"{given.shape}; pass a single code as a column of shape (n, 1)"
        )
    reals = given.astype(np.float64, copy=False)
    finite = np.isfinite(reals).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(
            f"row {row} of {len(reals):,} in {name} contains a value that is not finite; leave out such rows"
        )
    return reals


def check_factors(factors: npt.ArrayLike, rows: int, name: str = "factors") -> Codes:
    """Factors as (n, k) int64, -1 where unknown.

    `factors` (n, k) integers.
    """
    given = np.asarray(factors)
    if given.ndim != 2 or given.shape[0] != rows or given.shape[1] < 1:
        raise DataError(f"{name} must be an array of shape ({rows}, k), one row for each embedding, not {given.shape}")
    return _check_codes(given, name)


def check_labels(labels: npt.ArrayLike, rows: int, name: str = "labels") -> Codes:
    """Labels as (n,) int64, -1 where unknown.

    `labels` (n,) integers.
    """
    given = np.asarray(labels)
    if given.shape != (rows,):
        raise DataError(f"{name} must be an array of shape ({rows},), one value for each embedding, not {given.shape}")
    return _check_codes(given, name)


def _check_codes(given: Array, name: str) -> Codes:
    if given.dtype.kind not in "iub":
        raise DataError(
            f"{name} must contain integer codes of levels, not {given.dtype}; get codes from FactorTable.codes"
        )
    codes = given.astype(np.int64)
    if given.size and codes.min() < -1:
        raise DataError(f"{name} must contain codes of at least 0, or -1 for unknown values, not {codes.min()}")
    return codes


def select_known(codes: Codes, column: int) -> tuple[npt.NDArray[np.bool_], Codes]:
    """Rows where a factor is known, and its levels there as 0 … levels − 1 without gaps.

    `codes` (n, k) int64; returns (n,) bool, (known,) int64.
    """
    known = codes[:, column] >= 0
    levels, dense = np.unique(codes[known, column], return_inverse=True)
    if len(levels) < 2:
        raise DataError(
            f"factor {column} requires at least two known levels among {len(codes):,} rows, not {len(levels)}; leave "
            "out the factor"
        )
    return known, np.asarray(dense, dtype=np.int64)
