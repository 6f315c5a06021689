"""Many classifiers of embeddings trained as one batched network: of several factors, layers and seeds.

References
----------
.. [1] G. Alain, Y. Bengio, "Understanding intermediate layers using linear classifier probes", 2016 (arXiv 1610.01644).

"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from setsup.arrays import Reals, Rows
from setsup.errors import SetsupError
from setsup.evaluation.batched.networks import Adam, dense_shapes, products, through_relu, views
from setsup.evaluation.information import draw_glorot, draw_normal
from setsup.progress import progress
from setsup.random import fold, permute, randint_below, stream_key

__all__ = ["Probe", "ProbeNetworks", "make_probe", "probe_step", "split_rows", "train_probes"]


_TOGETHER = 64  # networks trained as one, to bound memory
_BLOCK = 64  # steps drawn at a time
_CHUNK = 1 << 16  # rows classified at a time
_SCORES = 1 << 24  # numbers of a layer at a time, where rows are classified


@dataclass(frozen=True)
class Probe:
    """One classifier: what it reads and tells, and its seed.

    `classes` (n,) int64 are from 0 to `levels` − 1, -1 where unknown; `fit` and `held` are rows of known class.
    """

    layer: int
    classes: Rows
    levels: int
    fit: Rows
    held: Rows
    seed: int

    @cached_property
    def group(self) -> tuple[int, int, bytes, bytes]:
        """Equal for probes that read the same embeddings at every step."""
        return self.layer, self.seed, self.fit.tobytes(), self.held.tobytes()


def split_rows(count: int, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Whether each of some rows is held out, (count,)."""
    return permute(stream_key(seed, "probe split"), count, np.arange(count)) < round(share * count)


def make_probe(factor: int, layer: int, classes: Rows, test: npt.NDArray[np.bool_], seed: int) -> Probe:
    """The probe of a factor, whose classes are 0, 1, …, or -1 where unknown; SetsupError if a part of it is empty."""
    fit, held = np.flatnonzero((classes >= 0) & ~test), np.flatnonzero((classes >= 0) & test)
    if not (len(fit) and len(held)):
        raise SetsupError(
            f"factor {factor} has too few rows, {len(fit)} to train on and {len(held)} held out; add rows"
        )
    return Probe(layer, classes, int(classes.max()) + 1, fit, held, seed)


def train_probes(
    layers: Sequence[npt.NDArray[Any]],
    probes: Sequence[Probe],
    hidden: tuple[int, ...],
    *,
    steps: int,
    batch: int,
    rate: float,
    times: int = 1,
    **options: Any,
) -> tuple[Reals, Reals]:
    """Train probes, 64 at a time, and test them `times` times: cross-entropies and accuracies, (k,) each.

    Options are those of :class:`ProbeNetworks`.
    """
    costs, right = np.zeros(len(probes)), np.zeros(len(probes))
    with progress(-(-len(probes) // _TOGETHER) * steps, "probes", "steps") as advance:
        for start in range(0, len(probes), _TOGETHER):
            some = slice(start, start + _TOGETHER)
            networks = ProbeNetworks(layers, probes[some], hidden, **options)
            for _ in networks.losses(steps, batch, rate):
                advance()
            costs[some], right[some] = networks.test(times)
    return costs, right


class ProbeNetworks:
    """Classifiers with hidden layers of some widths and ReLU, side by side.

    Initial weights, rows and noise are functions of (seed, step), so that a classifier does not depend on the others,
    up to rounding. Layers and classes of unequal number are padded, with zeros and with scores of −∞.
    """

    def __init__(
        self,
        layers: Sequence[npt.NDArray[Any]],
        probes: Sequence[Probe],
        hidden: tuple[int, ...],
        *,
        sigma: float = 0.0,
        standardize: bool = False,
        device: str | torch.device = "cpu",
    ) -> None:
        self.probes, self.sigma, self.device = list(probes), sigma, device
        self.rows, self.width = len(layers[0]), max(layer.shape[1] for layer in layers)
        self.points = torch.zeros(len(layers) * self.rows, self.width, device=device)
        for at, layer in enumerate(layers):
            part = self.points[at * self.rows : (at + 1) * self.rows, : layer.shape[1]]
            part.copy_(torch.tensor(layer, dtype=torch.float32))
        firsts = {probe.group: probe for probe in reversed(self.probes)}
        self.first = list(reversed(firsts.values()))
        order = {probe.group: at for at, probe in enumerate(self.first)}
        self.group = [order[probe.group] for probe in self.probes]
        self.seeds = sorted({probe.seed for probe in self.probes})
        self.moments = [self._moments(probe) for probe in self.first] if standardize else None
        self.classes = torch.as_tensor(np.stack([probe.classes for probe in self.probes]), device=device)
        widths = (self.width, *hidden, max(probe.levels for probe in self.probes))
        shapes = dense_shapes(len(self.probes), widths)
        self.weights = torch.zeros(sum(int(np.prod(shape)) for shape in shapes), device=device)
        self.gradient = torch.zeros_like(self.weights)
        self.layers, self.slopes = views(self.weights, shapes), views(self.gradient, shapes)
        self.barred = torch.zeros(len(self.probes), 1, widths[-1], device=device)
        for at, probe in enumerate(self.probes):
            self.barred[at, :, probe.levels :] = -torch.inf
            into = (layers[probe.layer].shape[1], *hidden)
            for depth, start in enumerate(_initial(probe.seed, (*into, probe.levels))):
                self.layers[2 * depth][at, : start.shape[0], : start.shape[1]] = start

    def losses(self, steps: int, batch: int, rate: float) -> Iterator[torch.Tensor]:
        """Train; the cross-entropies (k,) of each step, before its update."""
        adam = Adam(self.weights, self.gradient, rate)
        group = torch.as_tensor(self.group, device=self.device)
        shared = len(self.first) == 1
        alone = self.group == list(range(len(self.first)))
        for start in range(0, steps, _BLOCK):
            block = range(start, min(start + _BLOCK, steps))
            drawn = torch.from_numpy(np.stack([_drawn(probe, block, batch) for probe in self.first])).to(self.device)
            for at, step in enumerate(block):
                rows = drawn[:, at]
                points = self._read(rows, range(len(self.first)), "probe noise", step)
                wanted = self.classes.gather(1, rows[group])
                loss = probe_step(
                    self.layers, self.slopes, points if shared or alone else points[group], wanted, self.barred
                )
                adam.step()
                yield loss

    @torch.no_grad()
    def test(self, times: int = 1) -> tuple[Reals, Reals]:
        """Cross-entropies and accuracies over held-out rows, each read some times, with new noise each time."""
        costs, right = np.zeros(len(self.probes)), np.zeros(len(self.probes))
        for number, first in enumerate(self.first):
            which = np.flatnonzero(np.array(self.group) == number)
            parts = np.split(first.held, range(_CHUNK, len(first.held), _CHUNK))
            for word, some in enumerate(parts * times):
                rows = torch.from_numpy(some).to(self.device)[None]
                points = self._read(rows, [number], "probe test noise", word)
                widest = max(layer.shape[2] for layer in self.layers)
                for chosen in np.array_split(which, min(len(which), -(-len(some) * widest * len(which) // _SCORES))):
                    at = torch.from_numpy(chosen).to(self.device)
                    inner = _forward([layer[at] for layer in self.layers], points, self.barred[at])
                    wanted, logs = self.classes[at][:, rows[0]], inner[-1].double().log_softmax(dim=2)
                    costs[chosen] -= logs.gather(2, wanted[..., None]).sum(dim=(1, 2)).cpu().numpy()
                    right[chosen] += (inner[-1].argmax(dim=2) == wanted).sum(dim=1).cpu().numpy()
        seen = np.array([len(probe.held) * times for probe in self.probes])
        return costs / seen, right / seen

    def _read(self, rows: torch.Tensor, groups: Sequence[int], stream: str, word: int) -> torch.Tensor:
        """Embeddings (groups, B, d) of rows (groups, B), standardised or under noise."""
        offset = torch.tensor([[self.first[at].layer * self.rows] for at in groups], device=self.device)
        points = self.points[rows + offset]
        if self.moments is not None:
            mean, scale = (torch.stack([self.moments[at][which] for at in groups]) for which in (0, 1))
            points = (points - mean) * scale
        if self.sigma:
            shape = (rows.shape[1], self.width)
            unit = {seed: draw_normal(stream_key(seed, stream), word, shape).to(points) for seed in self.seeds}
            points = points + self.sigma * torch.stack([unit[self.first[at].seed] for at in groups])
        return points

    def _moments(self, probe: Probe) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and inverse standard deviation of the rows that a probe is fitted to, (1, d); 1 where that is 0."""
        reals = self.points[torch.from_numpy(probe.fit + probe.layer * self.rows).to(self.device)].double()
        deviation = reals.std(dim=0, correction=0)
        scale = torch.where(deviation > 0, 1 / deviation, 1.0)
        return reals.mean(dim=0, keepdim=True).to(self.points), scale[None].to(self.points)


def probe_step(
    layers: list[torch.Tensor],
    slopes: list[torch.Tensor],
    points: torch.Tensor,
    wanted: torch.Tensor,
    barred: torch.Tensor,
) -> torch.Tensor:
    """Cross-entropies (k,) of k classifiers, whose gradients go to ``slopes``.

    ``points`` is (k, B, d), or (1, B, d) where all read the same; ``wanted`` (k, B) are classes, and ``barred``
    (k, 1, c) is −∞ for classes that a classifier does not have.
    """
    *inner, scores = _forward(layers, points, barred)
    batch = wanted.shape[1]
    logs = scores.log_softmax(dim=2)
    losses = -logs.gather(2, wanted[..., None]).mean(dim=(1, 2))
    back = logs.exp_().scatter_add_(2, wanted[..., None], wanted.new_full((), -1).to(logs).expand(*wanted.shape, 1))
    back /= batch
    for at in reversed(range(len(inner))):
        torch.bmm(inner[at].expand(len(wanted), -1, -1).mT, back, out=slopes[2 * at])
        torch.sum(back, dim=1, keepdim=True, out=slopes[2 * at + 1])
        if at:
            back = torch.bmm(back, layers[2 * at].mT)
            through_relu(back, inner[at])
    return losses


def _forward(layers: list[torch.Tensor], points: torch.Tensor, barred: torch.Tensor) -> list[torch.Tensor]:
    """Inputs of each layer, and the scores (k, B, c)."""
    inner = [points]
    for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        inner.append((products(inner[-1], weight) + bias).relu_())
    return [*inner, products(inner[-1], layers[-2]) + (layers[-1] + barred)]


def _initial(seed: int, widths: tuple[int, ...]) -> list[torch.Tensor]:
    """Glorot-uniform weights of each layer, inputs × outputs; biases start at zero."""
    key = stream_key(seed, "probe weights")
    return [draw_glorot(key, at, (out, into), into + out).T for at, (into, out) in enumerate(pairwise(widths))]


def _drawn(probe: Probe, steps_drawn: range, batch: int) -> Rows:
    """Rows (steps, B) that a probe is fitted to, with replacement."""
    steps = np.arange(steps_drawn.start, steps_drawn.stop, dtype=np.uint64)
    slots = fold(fold(stream_key(probe.seed, "probe rows"), steps)[:, None], np.arange(batch, dtype=np.uint64))
    return np.asarray(probe.fit[randint_below(slots, len(probe.fit))])
