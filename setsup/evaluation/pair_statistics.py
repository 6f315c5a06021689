"""Mutual information between two views of images by a neural bound (MINE), on pairs that were not trained on.

A statistics network T of two views is trained to maximise the Donsker–Varadhan bound
I(v; w) ≥ E[T(v, w)] − ln E[exp T(v, w′)], where w′ is the second view of another image. All pairs of a batch that are
not of one image serve for the second term. The estimate is the bound on images that took no part in the training, so
that it is no higher than the information but for chance. In nats.

References
----------
.. [1] M. I. Belghazi et al., "MINE: Mutual Information Neural Estimation", ICML 2018.
.. [2] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), figure 5.

"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from setsup.arrays import Rows
from setsup.checks import check_arguments, check_array, check_integer, check_number
from setsup.errors import DataError, SetsupError
from setsup.evaluation.devices import check_device
from setsup.progress import progress
from setsup.random import fold, permute, randint_below, stream_key

__all__ = ["PairStatistics", "ViewInformation", "donsker_varadhan", "view_information"]


_SCORED = 512  # images whose pairs are scored together in a test: 512² scores


@dataclass(frozen=True, slots=True)
class ViewInformation:
    """Mutual information between two views.

    Attributes
    ----------
    nats : float
        Bound on the images of the test, at the step that was best on those of the choice.
    step : int
        That step.
    fit_nats : float
        Mean of the bound over the last tenth of the steps, on the batches of the training: how much is overfitted.
    steps : tuple of int
        At which the bound was measured on the images of the choice.
    chosen_on : tuple of float
        Those bounds.

    """

    nats: float
    step: int
    fit_nats: float
    steps: tuple[int, ...]
    chosen_on: tuple[float, ...]


class PairStatistics(nn.Module):
    """Statistics network T(v, w) of two views, for all pairs of some images.

    Each view has three 3 × 3 convolutions of stride 2 with ReLU and a dense layer to 64 numbers; both together go
    through two hidden layers of 128 with ReLU. What is known of the paper's network is that it is one of MINE.

    Parameters
    ----------
    first, second : (channels, height, width)
        Sizes of the views.
    width : int
        Channels of the first convolution; the others have twice and four times as many.

    """

    def __init__(self, first: tuple[int, int, int], second: tuple[int, int, int], width: int = 16) -> None:
        super().__init__()
        self.first, self.second = _encoder(first, width), _encoder(second, width)
        self.one, self.other = nn.Linear(64, 128), nn.Linear(64, 128, bias=False)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Scores (n, m) of all pairs of views (n, C, h, w) and (m, C, h, w); those of one image are the diagonal."""
        # the first dense layer of two vectors is a sum, so that it is computed once for each image
        both = self.one(self.first(first))[:, None] + self.other(self.second(second))[None]
        scores: Tensor = self.rest(both)[..., 0]
        return scores


def donsker_varadhan(scores: Tensor) -> Tensor:
    """The bound from scores (n, n) of all pairs: mean of the diagonal − ln of the mean exponential of the others.

    Examples
    --------
    >>> donsker_varadhan(torch.tensor([[2.0, 0.0], [0.0, 4.0]])).item()
    3.0

    """
    count = len(scores)
    own = torch.eye(count, dtype=torch.bool, device=scores.device)
    wide = scores.double()
    others = wide.masked_fill(own, -torch.inf).flatten().logsumexp(0) - float(np.log(count * (count - 1)))
    return wide.diagonal().mean() - others


def view_information(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    steps: int = 2_000,
    batch: int = 128,
    rate: float = 3e-4,
    width: int = 16,
    measured: int = 20,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> ViewInformation:
    """Estimate the mutual information between two views of images.

    Of the images 70 % train the network, 15 % choose the step and 15 % are tested. Channels are standardised by mean
    and standard deviation of the first part, which changes no information. A step draws ``batch`` images of the
    training without replacement, and Adam minimises the negative bound over all their pairs; no moving average corrects
    the gradient, whose bias is small with so many pairs.

    Parameters
    ----------
    first, second : (n, C, h, w) numbers
        Views of the same images; both sides at least 8 pixels.
    steps, batch : int
        Training steps, and images per step.
    rate : float
        Learning rate.
    width : int
        Of the network, see :class:`PairStatistics`.
    measured : int
        How often the bound is measured on the images of the choice.
    seed : int
        0 ≤ seed < 2⁶⁴: of the parts, the weights and the batches.
    device : str or torch.device
        Where the network is trained.

    Returns
    -------
    ViewInformation

    Raises
    ------
    DataError
        When views have other shapes, are not finite, or are those of too few images for a batch.
    SetsupError
        When an option is out of range.

    Notes
    -----
    No estimate from n pairs exceeds about ln n² with confidence, and in practice it saturates long before that. Images
    cut from few photographs share much by which photograph it is; so compare estimates on one set of images.

    Examples
    --------
    >>> dice = np.random.default_rng(0)
    >>> level = dice.integers(0, 2, 400)[:, None, None, None]
    >>> one, other = (level + dice.normal(0, 0.1, (400, 1, 8, 8)) for _ in range(2))
    >>> found = view_information(one, other, steps=80, batch=32, width=2, rate=3e-3)
    >>> bool(0.5 < found.nats < 0.9)  # ln 2 is 0.69
    True

    """
    check_arguments(view_information, locals(), DataError)
    steps, batch = check_integer(steps, "steps", SetsupError, 1), check_integer(batch, "batch", SetsupError, 2)
    width, measured = (
        check_integer(value, name, SetsupError, 1) for value, name in ((width, "width"), (measured, "measured"))
    )
    rate = check_number(rate, "the learning rate", SetsupError, positive=True)
    check_device(device)
    key = stream_key(seed, "view information")
    views = [_checked(view, name) for view, name in ((first, "first"), (second, "second"))]
    if len(views[0]) != len(views[1]):
        raise DataError(
            f"first and second must have the same number of images, not {len(views[0])} and {len(views[1])}; pass both "
            "views of each image"
        )
    fit, choice, test = _parts(len(views[0]), int(fold(key, 0)))
    if len(fit) < batch or min(len(choice), len(test)) < 2:
        raise DataError(
            f"{len(views[0])} images are too few, because 70 % of them must fill a batch of {batch}; pass more "
            "images, or use a smaller batch"
        )
    views = [_standardised(view, fit).to(device) for view in views]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(fold(key, 1)) >> 1)
        network = PairStatistics(_size(views[0]), _size(views[1]), width).to(device)
    optimizer = torch.optim.Adam(network.parameters(), rate)
    at = {max(1, round(steps * part / measured)) for part in range(1, measured + 1)}
    kept: dict[int, tuple[float, float]] = {}
    trained: list[float] = []
    with progress(steps, "view information", "steps") as advance, torch.enable_grad():
        for step in range(1, steps + 1):
            rows = torch.from_numpy(fit[_drawn(int(fold(fold(key, 2), step)), len(fit), batch)]).to(device)
            bound = donsker_varadhan(network(views[0][rows], views[1][rows]))
            optimizer.zero_grad()
            (-bound).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            trained.append(bound.item())
            if step in at:
                kept[step] = (_bound(network, views, choice), _bound(network, views, test))
            advance()
    best = max(kept, key=lambda step: kept[step][0])
    last = trained[-max(1, steps // 10) :]
    chosen_on = tuple(choice for choice, _ in kept.values())
    return ViewInformation(kept[best][1], best, float(np.mean(last)), tuple(kept), chosen_on)


def _size(view: Tensor) -> tuple[int, int, int]:
    """Channels, height and width of images (n, C, h, w)."""
    _, channels, height, width = view.shape
    return channels, height, width


def _encoder(image: tuple[int, int, int], width: int) -> nn.Sequential:
    """Convolutions of stride 2, and a dense layer."""
    channels, *sides = image
    layers: list[nn.Module] = []
    for factor in (1, 2, 4):
        layers += [nn.Conv2d(channels, factor * width, 3, 2, 1), nn.ReLU()]
        channels, sides = factor * width, [-(-side // 2) for side in sides]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * sides[0] * sides[1], 64), nn.ReLU())


@torch.no_grad()
def _bound(network: PairStatistics, views: list[Tensor], rows: Rows) -> float:
    """The bound on some images, over all their pairs."""
    own: list[Tensor] = []
    others: list[Tensor] = []
    number = torch.from_numpy(rows).to(views[0].device)
    for start in range(0, len(number), _SCORED):
        for other in range(0, len(number), _SCORED):
            firsts, seconds = number[start : start + _SCORED], number[other : other + _SCORED]
            scores = network(views[0][firsts], views[1][seconds]).double()
            if start == other:
                own.append(scores.diagonal().clone())
                scores.fill_diagonal_(-torch.inf)
            others.append(scores.flatten().logsumexp(0))
    count = len(rows)
    return float(torch.cat(own).mean() - torch.stack(others).logsumexp(0)) + float(np.log(count * (count - 1)))


def _checked(view: Any, name: str) -> Tensor:
    images = check_array(view, name, DataError, np.float32)
    if images.ndim != 4 or 0 in images.shape or min(images.shape[2:]) < 8:
        raise DataError(
            f"{name} must have shape (n, channels, height, width) with at least 8 × 8 pixels, not {images.shape}"
        )
    if not np.isfinite(images).all():
        raise DataError(f"{name} contains numbers that are not finite; leave those images out, or replace the numbers")
    return torch.from_numpy(np.ascontiguousarray(images))


def _parts(count: int, key: int) -> tuple[Rows, Rows, Rows]:
    """Images of the training, of the choice and of the test."""
    order = permute(key, count, np.arange(count)).astype(np.int64)
    ends = [round(0.7 * count), round(0.85 * count)]
    fit, choice, test = (np.sort(part) for part in np.split(order, ends))
    return fit, choice, test


def _standardised(view: Tensor, fit: Rows) -> Tensor:
    """Each channel with mean 0 and standard deviation 1 over the images of the training."""
    known = view[torch.from_numpy(fit)]
    mean, deviation = known.mean((0, 2, 3), keepdim=True), known.std((0, 2, 3), keepdim=True, correction=0)
    return (view - mean) / torch.where(deviation > 0, deviation, 1.0)


def _drawn(key: int, count: int, batch: int) -> Rows:
    """A batch of different numbers below a count."""
    start = int(randint_below(fold(key, 0), count))
    return np.asarray(permute(int(fold(key, 1)), count, (start + np.arange(batch)) % count), np.int64)
