"""Mutual information by a neural bound (MINE), many estimates trained as one batched network.

For embeddings u with noise and a factor g, a statistics network T is trained to maximise the Donsker–Varadhan bound
I(u; g) ≥ E[T(u, g)] − ln E[exp T(u, g′)], where g′ is a value of another row of the batch. The estimate is the mean of
the bound over the last training steps, so it is neither held out nor strictly a bound. In nats.

References
----------
.. [1] M. I. Belghazi et al., "MINE: Mutual Information Neural Estimation", ICML 2018.
.. [2] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, for the network, its training and the noise.

"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_integer, check_number
from setsup.errors import DataError, SetsupError
from setsup.evaluation.batched.networks import Adam, products, through_relu, views
from setsup.evaluation.devices import check_device
from setsup.evaluation.information import (
    Columns,
    Information,
    check_columns,
    check_scales,
    draw_glorot,
    draw_normal,
    noise_scale,
)
from setsup.progress import progress
from setsup.random import fold, leading, randint_below, stream_key

__all__ = ["mine", "noise_sweep"]

Draws = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

_WIDTH, _HIDDEN = 128, 3
_BLOCK = 64  # steps drawn at a time
_TOGETHER = 64  # networks trained as one, to bound memory


def mine(
    embeddings: Any,
    factors: Any,
    *,
    sigma: float | npt.ArrayLike = 1.0,
    steps: int = 20_000,
    batch: int = 256,
    last: int | None = None,
    rate: float = 3e-4,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Information:
    """Estimate the mutual information between noisy embeddings and each factor by statistics networks.

    Each network maps [u + η, g] → 128 → 128 → 128 → 1 with ReLU, where η ~ N(0, σ²) is new at every step, and g is the
    value itself as one number. Weights start Glorot-uniform, biases at zero. A step draws ``batch`` rows with
    replacement and minimises ``ln mean exp T(u, g′) − mean T(u, g)`` with Adam (ε 1e-7), g′ being g in another order;
    no moving average corrects the gradient. The estimate is the mean of −loss over the ``last`` steps. After section
    "mutual information" of [2]_.

    All networks start from the same weights and see the same rows, unit noise and orders, which are functions of
    (seed, step). So an estimate does not depend on other factors, up to rounding.

    Parameters
    ----------
    embeddings : (n, d) numbers, array or tensor
        All finite.
    factors : (n,) or (n, k) numbers, array or tensor
        Class indices, unknown where negative; or floats, unknown where NaN. Unknown rows are left out.
    sigma : float or (s,) floats
        Standard deviation of the noise, in units of the embedding: see :func:`noise_scale`.
    steps, batch : int
        Training steps, and rows per step.
    last : int, optional
        Steps at the end over which is averaged; 1,000 by default, or all where there are fewer.
    rate : float
        Learning rate.
    seed : int
        0 ≤ seed < 2⁶⁴.
    device : str or torch.device
        Where the networks are trained.

    Returns
    -------
    Information
        ``nats`` (k,), or (s, k) for a list of scales; 0 for a factor with a single value.

    Raises
    ------
    DataError
        When embeddings or factors have another shape, are not finite, or are known in fewer rows than a batch.
    SetsupError
        When an option is out of range.

    Notes
    -----
    With the defaults: within 0.05 nats for correlated Gaussians (ρ ≤ 0.9) and channels of 4 levels. It reads low for
    many levels without an order, which are fed as one number and slow to learn: 1.93 nats where ten of them tell 2.00,
    of which :func:`~setsup.evaluation.probe_information` finds 2.00. So that is to be preferred where no paper asks for
    this estimate. A short training reads low, too. The last bias of a network is left out, as it cancels in the loss.

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.arange(600) % 2
    >>> found = mine(np.eye(2)[levels], levels, sigma=0.1, steps=60, batch=32, last=20, rate=1e-2)
    >>> found.nats.round(1), found.ceilings.round(1)
    (array([0.7]), array([0.7]))

    """
    steps, batch = check_integer(steps, "steps", SetsupError, 1), check_integer(batch, "batch", SetsupError, 2)
    last = min(1_000, steps) if last is None else check_integer(last, "last", SetsupError, 1)
    if last > steps:
        raise SetsupError(f"last must be at most steps, not {last} with steps={steps}")
    rate = check_number(rate, "the learning rate", SetsupError, positive=True)
    check_arguments(mine, locals(), DataError)
    check_device(device)
    noise, table = check_scales(sigma), check_columns(embeddings, factors, batch, f"a batch of {batch}")
    stream_key(seed, "mine")  # checks the seed
    jobs = [(row, at) for row in range(noise.size) for at in table.varying()]
    nats = np.zeros((noise.size, table.values.shape[1]))
    with progress(math.ceil(len(jobs) / _TOGETHER) * steps, "mutual information", "steps") as advance:
        for start in range(0, len(jobs), _TOGETHER):
            some = jobs[start : start + _TOGETHER]
            training = Training(table, [at for _, at in some], noise.reshape(-1)[[r for r, _ in some]], seed, device)
            total = torch.zeros(len(some), dtype=torch.float64, device=device)
            for step, loss in enumerate(training.losses(steps, batch, rate)):
                if step >= steps - last:
                    total -= loss
                advance()
            nats[tuple(np.transpose(some))] = total.cpu().numpy() / last
    return table.information(nats.reshape(*noise.shape, -1))


def noise_sweep(
    embeddings: Any,
    factors: Any,
    sigmas: npt.ArrayLike | None = None,
    *,
    similarity: str = "l2sq",
    tau: float = 1.0,
    **options: Any,
) -> tuple[Reals, Information]:
    """Estimate the information that is left under noise of many scales, by :func:`mine`.

    Parameters
    ----------
    embeddings, factors
        As for :func:`mine`.
    sigmas : (s,) floats, optional
        Standard deviations of the noise; by default 40, evenly spaced in their logarithm from 10⁻³ to 10² times
        ``noise_scale(similarity, tau)``.
    similarity, tau
        Of the loss that the embeddings were trained with.
    **options
        For :func:`mine`.

    Returns
    -------
    sigmas : (s,) float64
    information : Information
        ``nats`` (s, k).

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.arange(600) % 2
    >>> sigmas, found = noise_sweep(np.eye(2)[levels], levels, [0.1, 10], steps=60, batch=32, last=20, rate=1e-2)
    >>> found.nats[:, 0] > 0.5
    array([ True, False])

    """
    check_arguments(noise_sweep, locals(), DataError)
    scale = noise_scale(similarity, tau)
    noise = check_scales(np.geomspace(1e-3, 1e2, 40) * scale if sigmas is None else sigmas).reshape(-1)
    return noise, mine(embeddings, factors, sigma=noise, **options)


class Training:
    """Statistics networks for some factors and scales of noise, side by side along the first axis.

    Gradients are written out: a few large products take the place of many small ones. ``weights`` is the one tensor
    that is trained, and ``layers`` are its views: (k, d + 1, 128), (k, 1, 128), (k, 128, 128) … (k, 128, 1).
    """

    def __init__(
        self,
        table: Columns,
        factors: list[int],
        noise: Reals,
        seed: int,
        device: str | torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.seed = seed
        how: Any = {"device": device, "dtype": dtype}
        self.points = torch.tensor(table.points, **how)  # a copy: an array that is only read stays silent
        self.values = torch.as_tensor(table.values[:, factors].T, **how)
        self.noise = torch.as_tensor(noise, **how)[:, None, None]
        masks, group = np.unique(table.known[:, factors].T, axis=0, return_inverse=True)
        self.group = torch.as_tensor(group.reshape(-1), device=device)
        self.rows = [np.flatnonzero(mask) for mask in masks]
        if len(masks) == 1 and len(np.unique(noise)) == 1:
            self.noise = self.noise[:1]  # one noisy embedding serves all networks
        starting = initial(seed, table.points.shape[1])
        shapes = [(len(factors), *layer.shape) for layer in starting]
        self.weights = torch.cat(
            [layer.expand(shape).reshape(-1) for layer, shape in zip(starting, shapes, strict=True)]
        )
        self.weights = self.weights.to(**how)
        self.gradient = torch.zeros_like(self.weights)
        self.layers, self.slopes = views(self.weights, shapes), views(self.gradient, shapes)

    def losses(self, steps: int, batch: int, rate: float) -> Iterator[torch.Tensor]:
        """Train; the losses (k,) float64 of each step, before its update."""
        key, dimension = stream_key(self.seed, "mine noise"), self.points.shape[1]
        adam = Adam(self.weights, self.gradient, rate)
        for start in range(0, steps, _BLOCK):
            rows, values = self.block(start, min(_BLOCK, steps - start), batch)
            for at in range(len(rows)):
                loss = self.step(rows[at], values[at], draw_normal(key, start + at, (batch, dimension)))
                adam.step()
                yield loss

    def block(self, start: int, steps: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows (steps, k or 1, B), and g with g′ (steps, k, 2, B), from a step on."""
        draws = [drawn(self.seed, start, steps, batch, len(known)) for known in self.rows]
        rows = np.stack([known[slots] for known, (slots, _) in zip(self.rows, draws, strict=True)])
        which = torch.from_numpy(rows).to(self.points.device)[self.group]
        order = torch.from_numpy(np.stack([orders for _, orders in draws])).to(which.device)[self.group]
        values = self.values.gather(1, which.flatten(1)).view_as(which)
        both = torch.stack([values, values.gather(2, order)], dim=2)
        return which[: len(self.noise)].transpose(0, 1), both.transpose(0, 1)

    def step(self, rows: torch.Tensor, values: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
        """Losses (k,) and, in ``gradient``, their gradients, for rows, values and noise (B, d) of a step."""
        noisy = torch.addcmul(self.points[rows], unit.to(self.points), self.noise)
        return statistics_step(self.layers, self.slopes, noisy, values)


def statistics_step(
    layers: list[torch.Tensor], slopes: list[torch.Tensor], noisy: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Losses (k,) float64 of k networks, whose gradients go to ``slopes``.

    ``noisy`` is (k, B, d), or (1, B, d) where all networks share it; ``values`` (k, 2, B) has g and g′.
    """
    count, _, batch = values.shape
    first, bias, *hidden, final = layers
    shared = products(noisy, first[:, :-1]) + bias
    inner = [torch.addcmul(shared[:, None], values[..., None], first[:, None, -1:]).flatten(1, 2).relu_()]
    for weight, offset in zip(hidden[::2], hidden[1::2], strict=True):
        inner.append(torch.baddbmm(offset, inner[-1], weight).relu_())
    # products with a single column are written as a row's: bmm takes four times as long for a column
    scores = torch.bmm(final.mT, inner[-1].mT).reshape(count, 2, batch)
    shares = scores[:, 1].double().log_softmax(dim=1)
    marginal = scores[:, 1, 0] - shares[:, 0]  # the logarithm of the sum of exp T
    row = torch.stack([torch.full_like(shares, -1 / batch), shares.exp()], dim=1).to(scores).reshape(count, 1, -1)
    torch.bmm(row, inner[-1], out=slopes[-1].mT)
    back = row.mT * final.mT
    for at in range(_HIDDEN - 1, 0, -1):
        through_relu(back, inner[at])
        torch.bmm(inner[at - 1].mT, back, out=slopes[2 * at])
        torch.sum(back, dim=1, keepdim=True, out=slopes[2 * at + 1])
        back = torch.bmm(back, layers[2 * at].mT)
    through_relu(back, inner[0])
    slopes[0][:, -1:] = torch.bmm(values.reshape(count, 1, -1), back)
    both = back[:, :batch] + back[:, batch:]
    slopes[0][:, :-1] = products(noisy.mT, both)
    torch.sum(both, dim=1, keepdim=True, out=slopes[1])
    return marginal - math.log(batch) - scores[:, 0].double().mean(dim=1)


def initial(seed: int, dimension: int) -> list[torch.Tensor]:
    """Weights and biases that every network starts with, float32, inputs × outputs."""
    key, parameters = stream_key(seed, "mine weights"), []
    widths = [dimension + 1, *[_WIDTH] * _HIDDEN, 1]
    for at, (into, out) in enumerate(pairwise(widths)):
        parameters += [draw_glorot(key, at, (into, out), into + out), torch.zeros(1, out)]
    return parameters[:-1]


def drawn(seed: int, step: int, steps: int, batch: int, rows: int) -> Draws:
    """Row numbers among those known, and orders of the batch, (steps, batch) each, from a step on."""
    numbers = np.arange(step, step + steps, dtype=np.uint64)
    slots = fold(fold(stream_key(seed, "mine rows"), numbers)[:, None], np.arange(batch, dtype=np.uint64))
    return randint_below(slots, rows), leading(fold(stream_key(seed, "mine orders"), numbers), batch, batch)
