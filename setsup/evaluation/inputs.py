"""What evaluations are given: embeddings, labels and factors as arrays, checked once and in one sentence."""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, SetsupError, brief

__all__ = ["check_count", "checked_embeddings", "checked_factors", "checked_labels", "known_part"]

Array = npt.NDArray[Any]
Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


def checked_embeddings(embeddings: npt.ArrayLike, name: str = "embeddings") -> Reals:
    """Embeddings as (n, d) float64.

    `embeddings` (n, d) numbers.

    Examples
    --------
    >>> checked_embeddings([[1, 2], [3, 4]]).dtype
    dtype('float64')

    """
    given = np.asarray(embeddings)
    if given.ndim != 2 or 0 in given.shape or given.dtype.kind not in "iufb":
        raise DataError(
            f"{name} must be an array (n, d) of numbers, one row an image, not {given.dtype} {given.shape}; "
            "give a single code as a column (n, 1)"
        )
    reals = given.astype(np.float64, copy=False)
    finite = np.isfinite(reals).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(f"{name}: row {row} of {len(reals):,} has an entry that is not finite; leave out such rows")
    return reals


def checked_factors(factors: npt.ArrayLike, rows: int, name: str = "factors") -> Codes:
    """Factors as (n, k) int64, -1 where unknown.

    `factors` (n, k) integers.

    Examples
    --------
    >>> checked_factors([[0, 1], [-1, 2]], 2).tolist()
    [[0, 1], [-1, 2]]

    """
    given = np.asarray(factors)
    if given.ndim != 2 or given.shape[0] != rows or given.shape[1] < 1:
        raise DataError(f"{name} must be an array ({rows:,}, k), one row for each embedding, not {given.shape}")
    return _checked_codes(given, name)


def checked_labels(labels: npt.ArrayLike, rows: int, name: str = "labels") -> Codes:
    """Labels as (n,) int64, -1 where unknown.

    `labels` (n,) integers.

    Examples
    --------
    >>> checked_labels([3, -1], 2).tolist()
    [3, -1]

    """
    given = np.asarray(labels)
    if given.shape != (rows,):
        raise DataError(f"{name} must be an array ({rows:,},), one for each embedding, not {given.shape}")
    return _checked_codes(given, name)


def _checked_codes(given: Array, name: str) -> Codes:
    if given.dtype.kind not in "iub":
        raise DataError(f"{name} must be whole numbers, the codes of levels, not {given.dtype}; see FactorTable.codes")
    codes = given.astype(np.int64)
    if given.size and codes.min() < -1:
        raise DataError(f"{name} must be codes from 0 on, or -1 where unknown, not {codes.min()}")
    return codes


def known_part(codes: Codes, column: int) -> tuple[npt.NDArray[np.bool_], Codes]:
    """Rows where a factor is known, and its levels there as 0 … levels − 1 without gaps.

    `codes` (n, k) int64; returns (n,) bool, (known,) int64.

    Examples
    --------
    >>> known, levels = known_part(np.array([[7], [-1], [3]]), 0)
    >>> known.tolist(), levels.tolist()
    ([True, False, True], [1, 0])

    """
    known = codes[:, column] >= 0
    levels, dense = np.unique(codes[known, column], return_inverse=True)
    if len(levels) < 2:
        raise DataError(
            f"factor {column} has {len(levels)} known levels among {len(codes):,} rows and two are needed; leave it out"
        )
    return known, np.asarray(dense, dtype=np.int64)


def check_count(value: Any, name: str, least: int = 1) -> int:
    """A whole number from ``least`` on.

    Examples
    --------
    >>> check_count(20, "bins", 2)
    20

    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise SetsupError(f"{name} must be a whole number from {least} on, not {brief(value)}")
    return int(value)
