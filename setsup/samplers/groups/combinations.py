"""Numbers of combinations by their logarithms, as exact for 2⁶⁰ rows as for ten."""

import math

import numpy as np

from setsup.arrays import Array, Reals

__all__ = ["chance_of_any", "log_combinations", "log_sum"]

_log_gamma = np.frompyfunc(math.lgamma, 1, 1)
_SERIES = 1000  # rows from which Stirling's series has all digits


def log_falling(n: Array, k: Array) -> Reals:
    """Logarithm of n·(n − 1)⋯(n − k + 1), −∞ where k > n; n need be no integer."""
    n, k = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64))
    logs = np.full(n.shape, -np.inf)
    series = (n > _SERIES) & (2 * k < n)
    # the difference of two large logarithms would lose the digits of a small one
    many, few = n[series], k[series]
    left = many - few
    logs[series] = few * np.log(many) - few - (left + 0.5) * np.log1p(-few / many) + (1 / many - 1 / left) / 12
    plain = ~series & (k <= n)
    logs[plain] = _log_gamma(n[plain] + 1) - _log_gamma(n[plain] - k[plain] + 1)
    return logs


def log_combinations(n: Array, k: Array) -> Reals:
    """Logarithm of C(n, k), of the shape of both."""
    return log_falling(n, k) - log_falling(k, k)


def log_sum(logs: Reals) -> float:
    """Logarithm of the sum of numbers given by theirs."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def chance_of_any(rows: Array, counts: Array, size: Array) -> Reals:
    """Chance that ``size`` of so many rows have any of the ``counts``: 1 − C(rows − counts, size)/C(rows, size)."""
    absent = log_falling(rows - counts, size) - log_falling(rows, size)
    return np.asarray(-np.expm1(absent), dtype=np.float64)
