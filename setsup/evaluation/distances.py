"""Squared distances of pairs: fast ones by matrix products with a bound on their error, and exact sums of differences.

The sums are the convention of every evaluation that compares distances. Products only narrow down which pairs need
them, so that results do not depend on blocks, threads or the library of the product.
"""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.errors import DataError, SetsupError, did_you_mean

__all__ = ["METRICS", "approximate", "as_compared", "check_metric", "directions", "exact", "slack"]


METRICS = ("l2sq", "cosine")
_BLOCK = 1 << 22  # entries of differences held at a time


def check_metric(metric: str) -> str:
    """One of the metrics, or SetsupError."""
    if metric not in METRICS:
        raise SetsupError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}{did_you_mean(metric, METRICS)}")
    return metric


def as_compared(reals: Reals, metric: str, name: str = "embeddings") -> Reals:
    """Embeddings whose squared distances a metric compares."""
    return directions(reals, name) if check_metric(metric) == "cosine" else reals


def directions(reals: Reals, name: str) -> Reals:
    """Embeddings scaled to length 1."""
    lengths = np.linalg.norm(reals, axis=1, keepdims=True)
    if not lengths.all():
        row = int(np.argmin(lengths))
        raise DataError(f"row {row} of {name} is zero, so its cosine is undefined; use metric='l2sq'")
    return np.asarray(reals / lengths)


def approximate(points: Reals, others: Reals) -> Reals:
    """‖q − g‖² by a matrix product, which cancels where both are long."""
    return np.asarray((points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * (points @ others.T))


def slack(points: Reals, others: Reals) -> Reals:
    """How far, for each query, two distances by products may differ from their true order, (q,)."""
    longest = float((others**2).sum(axis=1).max())
    unit = 8 * (points.shape[1] + 4) * np.finfo(np.float64).eps
    return np.asarray(unit * ((points**2).sum(axis=1) + longest))


def exact(points: Reals, others: Reals, query: npt.NDArray[np.intp], row: npt.NDArray[np.intp]) -> Reals:
    """‖q − g‖² of pairs, from differences."""
    distances = np.empty(len(query))
    step = max(1, _BLOCK // points.shape[1])
    for start in range(0, len(query), step):
        part = slice(start, start + step)
        distances[part] = ((points[query[part]] - others[row[part]]) ** 2).sum(axis=1)
    return distances
