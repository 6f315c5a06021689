"""What every estimate of information has in common: checked input, noise, ceilings, and the result."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from setsup.arrays import Counts, Reals
from setsup.checks import check_arguments, check_array, check_number
from setsup.errors import DataError, SetsupError, abbreviate
from setsup.random import fold

__all__ = ["Information", "noise_scale"]

Known = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Information:
    """Mutual information between embeddings and factors.

    Attributes
    ----------
    nats : (k,) or (s, k) float64, nats
        Estimate for each factor; with several scales of noise, one row for each.
    ceilings : (k,) float64, nats
        ln(levels): the most that a factor of so many levels can have; infinite for a continuous one.
    left_out : (k,) int64
        Rows that were not used, because the factor is unknown there.

    Examples
    --------
    >>> import numpy as np
    >>> found = Information(np.array([0.1, 2.2]), np.log([10, 10]), np.array([0, 3]))
    >>> (found.nats / found.ceilings).round(2)
    array([0.04, 0.96])

    """

    nats: Reals
    ceilings: Reals
    left_out: Counts


def noise_scale(similarity: str, tau: float) -> float:
    """Scale σ of the noise for the evaluation of embeddings: the length that a loss of temperature τ resolves.

    √τ for ``l2sq``, whose τ is a squared length; τ for ``l2``; 1 for any other similarity. After appendix S2 of
    "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
    arXiv 2103.03240.

    Raises
    ------
    SetsupError
        When τ is not a positive number.

    Examples
    --------
    >>> noise_scale("l2sq", 0.25), noise_scale("l2", 0.25), noise_scale("cosine", 0.25)
    (0.5, 0.25, 1.0)

    """
    tau = check_number(tau, "the temperature", SetsupError, positive=True)
    check_arguments(noise_scale, locals(), DataError)
    return {"l2sq": math.sqrt(tau), "l2": float(tau)}.get(similarity, 1.0)


@dataclass(frozen=True, slots=True)
class Columns:
    """Embeddings (n, d) float64 or float32, and factors (n, k) with their known rows."""

    points: npt.NDArray[Any]
    values: Reals
    known: Known
    discrete: bool

    def __iter__(self) -> Iterator[tuple[Reals, Known]]:
        """Values and known rows of each factor."""
        return zip(self.values.T, self.known.T, strict=True)

    def information(self, nats: Reals) -> Information:
        """Estimates with their ceilings and the number of rows left out."""
        levels = [len(np.unique(values[known])) for values, known in self]
        ceilings = [math.log(count) if self.discrete or count == 1 else math.inf for count in levels]
        return Information(nats, np.array(ceilings), np.count_nonzero(~self.known, axis=0))

    def varying(self) -> list[int]:
        """Factors that have more than one value; all others have no information."""
        return [at for at, (values, known) in enumerate(self) if np.ptp(values[known]) > 0]


def check_columns(embeddings: Any, factors: Any, least: int, what: str) -> Columns:
    """Check embeddings (n, d) and factors (n,) or (n, k), each factor known in at least so many rows."""
    points, values = _array(embeddings, "embeddings"), _array(factors, "factors")
    if points.ndim != 2 or 0 in points.shape:
        raise DataError(
            "embeddings must be an array of shape (n, d) with at least one row and one column, not of shape "
            f"{points.shape}"
        )
    if values.ndim not in (1, 2) or len(values) != len(points) or 0 in values.shape:
        wanted = f"({len(points)},) or ({len(points)}, k)"
        raise DataError(
            f"factors must be an array of shape {wanted}, one row for each of the {len(points)} embeddings, not "
            f"{values.shape}"
        )
    values = values.reshape(len(values), -1)
    if points.dtype.kind not in "fiu" or values.dtype.kind not in "fiub":
        raise DataError(f"embeddings and factors must be numeric arrays, not {points.dtype} and {values.dtype}")
    if bad := int(np.count_nonzero(~np.isfinite(points).all(axis=1))):
        raise DataError(f"{bad} of {len(points)} embeddings are not finite; leave those rows out, or check the network")
    discrete = values.dtype.kind != "f"
    known = values >= 0 if discrete else ~np.isnan(values)
    if np.isinf(values).any():
        raise DataError("factors must not be infinite; use NaN for unknown values")
    for at, count in enumerate(np.count_nonzero(known, axis=0).tolist()):
        if count < least:
            raise DataError(
                f"factor {at} is known in {count} rows, but {what} requires at least {least}; add rows, or leave out "
                "the factor"
            )
    return Columns(points, values.astype(np.float64), known, discrete)


def check_scales(sigma: Any) -> Reals:
    """Check scales of noise: () or (s,) float64, non-negative."""
    scales = check_array(sigma, "sigma", SetsupError, np.float64)
    if scales.ndim > 1 or not scales.size or not (np.isfinite(scales) & (scales >= 0)).all():
        raise SetsupError(
            f"sigma must be a non-negative number or a list of non-negative numbers, not {abbreviate(sigma)}"
        )
    return scales


def draw_normal(key: int, word: int, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers drawn on the CPU: a function of the key, the word and the shape."""
    generator = torch.Generator().manual_seed(int(fold(key, word)) >> 1)
    return torch.randn(shape, generator=generator, dtype=dtype)


def draw_glorot(key: int, word: int, shape: tuple[int, int], fans: int) -> torch.Tensor:
    """Uniform weights up to √(6 / fans), float32, drawn on the CPU: fans are inputs and outputs of the layer."""
    generator = torch.Generator().manual_seed(int(fold(key, word)) >> 1)
    return (torch.rand(shape, generator=generator) * 2 - 1) * math.sqrt(6 / fans)


def _array(given: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(given, torch.Tensor):
        given = given.detach().to("cpu")
        given = given.float() if given.dtype == torch.bfloat16 else given
        return np.asarray(given.numpy())
    try:
        return np.asarray(given)
    except ValueError as error:
        raise DataError(f"{name} must be an array, but its rows differ in length") from error
