"""The correspondence loss of random points: how many dimensions sets of a size tell apart best.

Points of two independent sets are uniform in [0, 1]^d, as if embeddings of unrelated sets filled d dimensions. How
well can each point find itself again by way of the other set, when the temperature is the best one? Few dimensions
crowd the points; in many, a set leaves no neighbour near. So there is a number of dimensions with the least loss, which
grows with the size of the sets. After figure S3 of [1]_.

All points are a function of (seed, draw, set, member, coordinate). So one draw serves every temperature, and a smaller
set or fewer dimensions have some of the points and coordinates of larger ones: losses that are compared have much of
their chance in common.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240.

"""

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from setsup.checks import check_integer
from setsup.errors import SetsupError
from setsup.files import locked
from setsup.methods.similarity import Similarity
from setsup.progress import progress
from setsup.random import fold, stream_key, uniform
from setsup_papers.abc.cells import CELLS, Cell, read_cells, write_cells
from setsup_papers.abc.losses import correspondence_loss

__all__ = ["Simulation", "best_temperature", "simulate", "simulated_loss"]

Reals = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_TOGETHER = 1 << 18  # similarities computed at a time: about what a cache holds
_BLOCK, _LEAST = 100, 5  # draws between two looks at the standard error, and blocks before the first look
_STEP, _STEPS = math.log(2), 40  # of the walk towards the best temperature, in ln τ
_CLOSE = 1e-3  # in ln τ: by then the loss is within 10⁻⁵ of its least value


@dataclass(frozen=True, slots=True)
class Simulation:
    """Losses at the best temperatures, for some sizes of sets and numbers of dimensions.

    Attributes
    ----------
    sizes : (s,) int64
        Points of each set.
    dimensions : (k,) int64
        Dimensions of the cube.
    temperatures : (s, k) float64, squared lengths
        τ of the least loss, where the cube has side 1.
    losses : (s, k) float64, nats
        Mean of L(U, V) + L(V, U) over draws of two sets.
    errors : (s, k) float64, nats
        Standard errors of these means.
    draws : (s, k) int64
        How many draws were averaged.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.array([[2.0, 3.0], [2.0, 1.5]])
    >>> found = Simulation(np.array([4, 32]), np.array([1, 2]), table, table, 0 * table, np.full((2, 2), 9))
    >>> found.best, found.scaled
    (array([1, 2]), array([[1.  , 1.5 ],
           [1.  , 0.75]]))

    """

    sizes: Counts
    dimensions: Counts
    temperatures: Reals
    losses: Reals
    errors: Reals
    draws: Counts

    @property
    def scaled(self) -> Reals:
        """Losses by that of one dimension and the same size, (s, k): what the figure shows.

        Raises
        ------
        SetsupError
            When one dimension is not among those simulated.

        """
        first = np.flatnonzero(self.dimensions == 1)
        if not len(first):
            raise SetsupError(
                "losses are scaled by the loss of 1 dimension, but the dimensions of the simulation are "
                f"{self.dimensions.tolist()}; add 1 to the dimensions"
            )
        return np.asarray(self.losses / self.losses[:, first[:1]])

    @property
    def best(self) -> Counts:
        """Number of dimensions with the least loss for each size, (s,) int64."""
        return np.asarray(self.dimensions[self.losses.argmin(axis=1)])


def simulated_loss(
    size: int,
    dimensions: int,
    temperature: float,
    draws: int,
    *,
    seed: int = 0,
    similarity: Similarity = "l2sq",
    device: str | torch.device = "cpu",
) -> tuple[float, float]:
    """Mean of the correspondence loss over draws of two sets of uniform points, at one temperature.

    Parameters
    ----------
    size : int
        Points of each set, 2 or more.
    dimensions : int
        Dimensions of the cube [0, 1]^d.
    temperature : float
        τ > 0, in the unit of the similarity.
    draws : int
        Pairs of sets, 2 or more: draws 0 … draws − 1 of the seed.
    seed : int
        0 ≤ seed < 2⁶⁴.
    similarity : str or callable
        As for :func:`~setsup.methods.similarities`.
    device : str or torch.device
        Where losses are computed.

    Returns
    -------
    tuple of float, nats
        The mean, and its standard error over draws.

    Raises
    ------
    SetsupError
        When an argument is out of range.

    Examples
    --------
    At a high temperature all points look alike, and the loss is 2 ln n:

    >>> loss, error = simulated_loss(8, 2, 1e4, draws=50)
    >>> round(loss / math.log(8), 3), error < 1e-3
    (2.0, True)

    """
    size, dimensions, draws = _check_counts(size, dimensions, draws)
    return _mean(_measure(size, dimensions, temperature, draws, 0.0, seed, similarity, device))


def best_temperature(
    size: int,
    dimensions: int,
    draws: int = 2_000,
    *,
    seed: int = 0,
    similarity: Similarity = "l2sq",
    device: str | torch.device = "cpu",
) -> float:
    """Temperature at which the mean loss of two sets of uniform points is least.

    The same draws serve all temperatures, so that their mean loss is a smooth function of ln τ. A walk in steps of a
    factor 2 goes downhill until the loss rises on both sides; between these the minimum is found to 0.1 %. The draws
    are others than those of :func:`simulated_loss`: a loss measured on the draws that chose the temperature would be
    too low.

    Parameters
    ----------
    size, dimensions, seed, similarity, device
        As for :func:`simulated_loss`.
    draws : int
        Pairs of sets, 2 or more, held in memory.

    Returns
    -------
    float
        τ, in the unit of the similarity.

    Raises
    ------
    SetsupError
        When an argument is out of range, or no temperature has a lower loss than those on both sides of it.

    Examples
    --------
    >>> tau = best_temperature(4, 1, draws=200)
    >>> losses = [simulated_loss(4, 1, some, 200)[0] for some in (tau / 4, tau, tau * 4)]
    >>> min(losses) == losses[1]
    True

    """
    size, dimensions, draws = _check_counts(size, dimensions, draws)
    points = _points(seed, "simulation search", range(draws), size, dimensions).to(device)

    def loss(log: float) -> float:
        return float(_losses(points, math.exp(log), similarity).mean())

    middle, least = _valley(loss, math.log(size ** (-2 / dimensions) / 4), f"{size} points in {dimensions} dimensions")
    ends = (middle - _STEP, middle + _STEP)
    minimum = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": _CLOSE})
    return math.exp(minimum.x if minimum.fun <= least else middle)


def simulate(
    sizes: Iterable[int],
    dimensions: Iterable[int],
    *,
    draws: int = 10_000,
    error: float = 0.01,
    seed: int = 0,
    device: str | torch.device = "cpu",
    folder: Path | str | None = None,
) -> Simulation:
    """Find the best temperature and its loss for every size and number of dimensions.

    The similarity is ``l2sq``. A temperature is sought on fewer draws, 2¹⁶/size and at least 200, but no more than
    ``draws``; the loss is then measured on others, a hundred at a time, at least 500 where there are so many.

    Where a folder is given, each result is kept there as soon as it is known, as a line of ``simulation.jsonl``. A run
    that was stopped resumes with the same values; later runs may add sizes and dimensions.

    Parameters
    ----------
    sizes : (s,) int
        Points of each set, 2 or more; 4, 8, 16 … in the paper.
    dimensions : (k,) int
        Dimensions of the cube; 1 … 6 in the paper.
    draws : int
        Pairs of sets that are averaged at most; 10,000 in the paper.
    error : float
        Fewer are averaged where the standard error is below this part of the mean; 0 for all draws, as losses of
        neighbouring dimensions may differ by less than 1 %.
    seed : int
        0 ≤ seed < 2⁶⁴.
    device : str or torch.device
        Where losses are computed.
    folder : Path or str, optional
        Where results are kept.

    Returns
    -------
    Simulation

    Raises
    ------
    DataError
        When the folder cannot be written, or holds a simulation of other settings or a damaged file.
    SetsupError
        When an argument is out of range, or no best temperature is found (`best_temperature`).

    Examples
    --------
    >>> found = simulate([4, 64], [1, 6], draws=1_000)
    >>> found.best
    array([1, 6])

    """
    rows, columns = _check_several("set sizes", sizes, 2), _check_several("numbers of dimensions", dimensions, 1)
    draws = check_integer(draws, "draws", SetsupError, 2)
    if not 0 <= error < 1:
        raise SetsupError(f"the relative standard error must be at least 0 and below 1, not {error!r}")
    stream_key(seed, "simulation")  # checks the seed
    settings = {"simulation": 1, "seed": int(seed), "draws": draws, "error": float(error)}
    file = None if folder is None else Path(folder) / CELLS
    with nullcontext() if file is None else locked(file):
        cells = {} if file is None else read_cells(file, settings)
        with progress(len(rows) * len(columns), "simulation", "cells") as advance:
            for size, count in product(rows, columns):
                if (size, count) not in cells:
                    cells[size, count] = _cell(size, count, draws, error, seed, device)
                    if file is not None:
                        write_cells(file, settings, cells)
                advance()
    table = [[cells[size, count] for count in columns] for size in rows]
    return Simulation(
        np.array(rows, dtype=np.int64),
        np.array(columns, dtype=np.int64),
        np.array([[cell.temperature for cell in row] for row in table]),
        np.array([[cell.loss for cell in row] for row in table]),
        np.array([[cell.error for cell in row] for row in table]),
        np.array([[cell.draws for cell in row] for row in table], dtype=np.int64),
    )


def _cell(size: int, dimensions: int, draws: int, error: float, seed: int, device: str | torch.device) -> Cell:
    sought = min(draws, max(200, (1 << 16) // size))  # the mean over a large set varies less from draw to draw
    temperature = best_temperature(size, dimensions, sought, seed=seed, device=device)
    losses = _measure(size, dimensions, temperature, draws, error, seed, "l2sq", device)
    return Cell(size, dimensions, temperature, *_mean(losses), len(losses))


def _measure(
    size: int,
    dimensions: int,
    temperature: float,
    draws: int,
    error: float,
    seed: int,
    similarity: Similarity,
    device: str | torch.device,
) -> Reals:
    """Losses of draws 0, 1 …, up to all of them, or to where their standard error is below a part of their mean."""
    losses = np.empty(0)
    for start in range(0, draws, _BLOCK):
        block = range(start, min(start + _BLOCK, draws))
        points = _points(seed, "simulation", block, size, dimensions).to(device)
        losses = np.concatenate([losses, _losses(points, temperature, similarity)])
        if error and len(losses) >= _LEAST * _BLOCK:
            mean, deviation = _mean(losses)
            if deviation < error * mean:
                break
    return losses


def _points(seed: int, stream: str, draws: range, size: int, dimensions: int) -> Tensor:
    """Uniform points of two sets a draw, (draws, 2, size, d) float32."""
    bits = fold(stream_key(seed, stream), np.arange(draws.start, draws.stop, dtype=np.uint64))
    for count in (2, size, dimensions):
        bits = fold(bits[..., None], np.arange(count, dtype=np.uint64))
    return torch.from_numpy(uniform(bits).astype(np.float32))


def _losses(points: Tensor, temperature: float, similarity: Similarity) -> Reals:
    """Loss of each draw of points (draws, 2, size, d), (draws,) float64."""
    # the loss is a mean over pairs: vmap gives it one pair at a time, and computes many as one
    loss = partial(correspondence_loss, similarity=similarity, temperature=temperature)
    together = max(1, _TOGETHER // points.shape[2] ** 2)
    losses: Tensor = torch.vmap(loss, chunk_size=together)(*points.unbind(1))
    return np.asarray(losses.double().cpu().numpy())


def _mean(losses: Reals) -> tuple[float, float]:
    """Mean, and its standard error."""
    return float(losses.mean()), float(losses.std(ddof=1)) / math.sqrt(len(losses))


def _valley(loss: Callable[[float], float], start: float, sets_of: str) -> tuple[float, float]:
    """Go downhill in steps, to where the loss is less than a step to either side; that place, and the loss there."""
    at, way = start, _STEP
    behind, here, ahead = (loss(at + step) for step in (-way, 0.0, way))
    if ahead >= here:
        way, behind, ahead = -way, ahead, behind
    for _ in range(_STEPS):
        if not ahead < here:
            break
        at += way
        behind, here, ahead = here, ahead, loss(at + way)
    if not (here < behind and here < ahead):
        low, high = sorted((math.exp(start - way), math.exp(at + way)))
        raise SetsupError(
            f"the mean loss of sets of {sets_of} has no minimum between the temperatures {low:.1e} and {high:.1e}; use "
            "more draws, or another similarity"
        )
    return at, here


def _check_counts(size: int, dimensions: int, draws: int) -> tuple[int, int, int]:
    return (
        check_integer(size, "the set size", SetsupError, 2),
        check_integer(dimensions, "the number of dimensions", SetsupError, 1),
        check_integer(draws, "draws", SetsupError, 2),
    )


def _check_several(name: str, given: Iterable[int], least: int) -> list[int]:
    """Check some different integers."""
    numbers = [check_integer(value, f"each of the {name}", SetsupError, least) for value in given]
    if not numbers or len(set(numbers)) < len(numbers):
        raise SetsupError(f"the {name} must be one or more distinct numbers, not {numbers}")
    return numbers
