"""Probes of several layers with batch normalisation and early stopping, of many factors as one batched network.

The protocol is that of the published code of [1]_: five hidden layers (linear without bias, batch normalisation,
LeakyReLU) and a linear one, Adam, and the weights of the epoch that is best on a tenth of the rows of the fit.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A Contrastive Objective for Learning Disentangled Representations", ECCV 2022
   (arXiv 2203.11284), section 5.1; github.com/jonkahana/DCoDR.

"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.adam import adam

from setsup.evaluation.batched.probe_networks import split_rows
from setsup.progress import progress
from setsup.random import fold, permute, stream_key, uniform

__all__ = ["DeepNetworks", "Optimizer", "Training", "fit_networks", "outputs"]


_CHUNK = 1 << 14  # rows at a time that nothing is fitted to
_SLOPE, _MOMENTUM, _EPSILON = 0.01, 0.1, 1e-5
_ADAM: Any = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0, "amsgrad": False, "maximize": False}


@dataclass(frozen=True, slots=True)
class Training:
    """How networks are fitted: their hidden layers, and when they stop."""

    width: int = 128
    layers: int = 6
    rate: float = 1e-3
    batch: int = 128
    epochs: int = 100
    patience: int = 7
    held: float = 0.1


@dataclass
class DeepNetworks:
    """Networks side by side: tensors begin with an axis of networks. Inputs and outputs are (rows, networks, …).

    `weights` are (k, in, out) for each layer, `scales` and `shifts` (k, width) of batch normalisation, `bias` (k, out)
    of the last layer; `means` and `variances` are running ones. `barred` (k, out) is −∞ for outputs that a network does
    not have, which are classes that its factor lacks.
    """

    weights: list[Tensor]
    scales: list[Tensor]
    shifts: list[Tensor]
    bias: Tensor
    barred: Tensor
    means: list[Tensor] = field(default_factory=list)
    variances: list[Tensor] = field(default_factory=list)

    @classmethod
    def initial(cls, dimension: int, outputs: Sequence[int], how: Training, seed: int, device: str) -> "DeepNetworks":
        """Networks with the initial weights of ``torch.nn``, functions of the seed; those of several are alike."""
        count, widest = len(outputs), max(outputs)
        widths = [dimension, *[how.width] * (how.layers - 1)]
        weights = [
            _uniform(seed, at, (into, how.width), into).expand(count, -1, -1).clone()
            for at, into in enumerate(widths[:-1])
        ]
        last, bias = torch.zeros(count, widths[-1], widest), torch.zeros(count, widest)
        barred = torch.zeros(count, widest)
        for at, own in enumerate(outputs):
            last[at, :, :own] = _uniform(seed, how.layers, (own, widths[-1]), widths[-1]).T
            bias[at, :own] = _uniform(seed, how.layers + 1, (own,), widths[-1])
            barred[at, own:] = -torch.inf
        normal = [torch.full((count, how.width), value) for value in (1.0, 0.0, 0.0, 1.0)]
        scales, shifts, means, variances = ([parameter.clone().to(device) for _ in widths[1:]] for parameter in normal)
        moved = [parameter.to(device) for parameter in (*weights, last)]
        return cls(moved, scales, shifts, bias.to(device), barred.to(device), means, variances)

    def __len__(self) -> int:
        """How many networks there are."""
        return len(self.bias)

    @property
    def parameters(self) -> list[Tensor]:
        """What is fitted."""
        return [*self.weights, *self.scales, *self.shifts, self.bias]

    @property
    def state(self) -> list[Tensor]:
        """All that a network is, apart from its classes."""
        return [*self.parameters, *self.means, *self.variances]

    def select(self, which: Tensor) -> "DeepNetworks":
        """Some of the networks, copied."""
        fields = (self.weights, self.scales, self.shifts, self.means, self.variances)
        weights, scales, shifts, means, variances = ([stacked[which] for stacked in some] for some in fields)
        return DeepNetworks(weights, scales, shifts, self.bias[which], self.barred[which], means, variances)

    def forward(self, points: Tensor) -> Tensor:
        """Outputs (rows, k, out) of points (rows, d) in evaluation mode."""
        inner = points[:, None].expand(-1, len(self), -1)
        for at, weight in enumerate(self.weights[:-1]):
            inner = self._normalized(at, _products(inner, weight), training=False)[0]
        return _products(inner, self.weights[-1]) + (self.bias + self.barred)

    def slopes(self, points: Tensor, wanted: Tensor, kind: str) -> list[Tensor]:
        """Gradients of the parameters for a batch, (rows, d) and what is wanted of it; running moments are updated."""
        inner, before, moments = [points[:, None].expand(-1, len(self), -1)], [], []
        for at, weight in enumerate(self.weights[:-1]):
            before.append(_products(inner[-1], weight))
            activated, *of_batch = self._normalized(at, before[-1], training=True)
            inner.append(activated)
            moments.append(of_batch)
        back = _slope(_products(inner[-1], self.weights[-1]) + (self.bias + self.barred), wanted, kind)
        count = len(self.scales)
        weights, scales, shifts = [back] * (count + 1), [back] * count, [back] * count
        bias = back.sum(dim=0)
        for at in reversed(range(count + 1)):
            weights[at] = torch.bmm(inner[at].permute(1, 2, 0), back.transpose(0, 1))
            if not at:
                break
            back = _products(back, self.weights[at].mT)
            back = torch.ops.aten.leaky_relu_backward(back, inner[at], _SLOPE, True)
            flat, scales[at - 1], shifts[at - 1] = torch.ops.aten.native_batch_norm_backward(
                _flat(back),
                _flat(before[at - 1]),
                self.scales[at - 1].view(-1),
                self.means[at - 1].view(-1),
                self.variances[at - 1].view(-1),
                *moments[at - 1],
                True,
                _EPSILON,
                [True, True, True],
            )
            back = flat.view(back.shape)
        shape = self.scales[0].shape if count else ()
        return [*weights, *(scale.view(shape) for scale in (*scales, *shifts)), bias]

    def _normalized(self, at: int, inner: Tensor, *, training: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Values after batch normalisation and LeakyReLU, and mean and inverse deviation of the batch."""
        places = (self.scales[at], self.shifts[at], self.means[at], self.variances[at])
        weight, bias, means, variances = (parameter.view(-1) for parameter in places)
        normalized, mean, scale = torch.native_batch_norm(
            _flat(inner), weight, bias, means, variances, training, _MOMENTUM, _EPSILON
        )
        return F.leaky_relu_(normalized, _SLOPE).view(inner.shape), mean, scale


class Optimizer:
    """Adam for all networks, without the optimizer around it, which takes as long as a small step."""

    def __init__(self, networks: DeepNetworks, rate: float) -> None:
        self.networks, self.rate = networks, rate
        self._first, self._second = ([torch.zeros_like(weight) for weight in networks.parameters] for _ in range(2))
        self._done = [torch.zeros((), device=weight.device) for weight in networks.parameters]

    def step(self, points: Tensor, wanted: Tensor, kind: str) -> None:
        """Update all networks by a batch."""
        slopes = self.networks.slopes(points, wanted, kind)
        parts = (self.networks.parameters, slopes, self._first, self._second)
        adam(*parts, [], self._done, lr=self.rate, fused=True, **_ADAM)

    def select(self, which: Tensor) -> "Optimizer":
        """For some of the networks, with their part of the state."""
        chosen = Optimizer(self.networks.select(which), self.rate)
        chosen._first, chosen._second = ([moment[which] for moment in some] for some in (self._first, self._second))
        chosen._done = self._done
        return chosen


def fit_networks(
    networks: DeepNetworks, points: Tensor, wanted: Tensor, how: Training, seed: int, *, kind: str
) -> tuple[DeepNetworks, list[int], list[float]]:
    """Fit networks until each has stopped; those of the best epochs, which these were, and their held-out scores.

    `points` is (n, d), `wanted` (n, k) int64 classes, or (n, 1, out) float32 numbers with ``kind="l1"``. Networks do
    not depend on each other, up to rounding: all read the same rows in the same order, functions of the seed. A score
    is the accuracy, or minus the mean absolute error.
    """
    away = split_rows(len(points), how.held, seed)
    fit, held = (torch.from_numpy(np.flatnonzero(some)).to(points.device) for some in (~away, away))
    every = torch.arange(len(networks), device=points.device)
    best, live = networks.select(every), every.tolist()
    scores, chosen = [-np.inf] * len(networks), [0] * len(networks)
    optimizer = Optimizer(networks.select(every), how.rate)
    with progress(how.epochs, "probes", "epochs") as advance:
        for epoch in range(how.epochs):
            here = torch.tensor(live, device=points.device)
            for rows in _batches(fit, how.batch, seed, epoch):
                optimizer.step(points[rows], _targets(wanted, rows, here, kind), kind)
            new_scores = _scores(optimizer.networks, points, wanted, held, here, kind)
            for at, (number, score) in enumerate(zip(live, new_scores, strict=True)):
                if score > scores[number]:
                    scores[number], chosen[number] = score, epoch
                    for kept, value in zip(best.state, optimizer.networks.state, strict=True):
                        kept[number] = value[at]
            going = [at for at, number in enumerate(live) if epoch - chosen[number] <= how.patience]
            if not going:
                break
            if len(going) < len(live):
                live = [live[at] for at in going]
                optimizer = optimizer.select(torch.tensor(going, device=points.device))
            advance()
    return best, chosen, scores


def outputs(networks: DeepNetworks, points: Tensor) -> Iterator[Tensor]:
    """Outputs (some, k, out) in evaluation mode, of some rows after the others."""
    for start in range(0, len(points), _CHUNK):
        yield networks.forward(points[start : start + _CHUNK])


def _uniform(seed: int, layer: int, shape: tuple[int, ...], into: int) -> Tensor:
    """Numbers between ± 1 / √(inputs), as ``torch.nn.Linear`` starts with."""
    key = fold(stream_key(seed, "deep probe weights"), layer)
    numbers = uniform(fold(key, np.arange(int(np.prod(shape)), dtype=np.uint64)))
    return torch.from_numpy(((2 * numbers - 1) / np.sqrt(into)).astype(np.float32)).view(shape)


def _batches(rows: Tensor, batch: int, seed: int, epoch: int) -> Iterator[Tensor]:
    """All rows of the fit in the order of an epoch; a last batch of one row has no variance, and is left out."""
    key = int(fold(stream_key(seed, "deep probe rows"), epoch))
    order = rows[torch.from_numpy(permute(key, len(rows), np.arange(len(rows)))).to(rows.device)]
    for some in torch.split(order, batch):
        if len(some) > 1:
            yield some


def _targets(wanted: Tensor, rows: Tensor, networks: Tensor, kind: str) -> Tensor:
    targets = wanted[rows]
    return targets if kind == "l1" else targets[:, networks]


def _slope(given: Tensor, wanted: Tensor, kind: str) -> Tensor:
    """Gradient of the mean loss of each network over a batch, (rows, k, out)."""
    if kind == "l1":
        return (given - wanted).sign_() / (given.shape[0] * given.shape[2])
    # a softmax written out: torch's own takes five times as long over rows of so few numbers
    slope = given.sub_(given.amax(dim=2, keepdim=True)).exp_()
    slope /= slope.sum(dim=2, keepdim=True)
    slope.scatter_add_(2, wanted[..., None], slope.new_full((), -1).expand(*wanted.shape, 1))
    return slope.div_(len(given))


def _products(inner: Tensor, weights: Tensor) -> Tensor:
    """Products (rows, k, out) of (rows, k, in) and (k, in, out)."""
    products = inner.new_empty(inner.shape[0], len(weights), weights.shape[2])
    torch.bmm(inner.transpose(0, 1), weights, out=products.transpose(0, 1))
    return products


def _flat(inner: Tensor) -> Tensor:
    return inner.reshape(len(inner), -1)


def _scores(
    networks: DeepNetworks, points: Tensor, wanted: Tensor, rows: Tensor, here: Tensor, kind: str
) -> list[float]:
    """Score of each network over rows that were not fitted."""
    total = torch.zeros(len(networks), dtype=torch.float64)
    start = 0
    for given in outputs(networks, points[rows]):
        some = _targets(wanted, rows[start : start + len(given)], here, kind)
        start += len(given)
        if kind == "l1":
            total -= (given - some).abs().mean(dim=2).double().sum(dim=0).cpu()
        else:
            total += (given.argmax(dim=2) == some).double().sum(dim=0).cpu()
    return [float(score) for score in total / len(rows)]
