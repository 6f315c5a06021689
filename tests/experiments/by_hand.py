"""What training should do, written out: the loss of ABC by its formula, and a loop over single draws."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn

from setsup.datasets import Dataset
from setsup.samplers import Sampler

__all__ = ["abc_loss", "directed", "draws", "looped"]


def directed(queries: torch.Tensor, keys: torch.Tensor, candidates: torch.Tensor | None = None) -> torch.Tensor:
    """L(U, V) of (n, d) and (m, d) under −‖x − y‖², one query after the other (equations 1 and 2 of the paper)."""
    candidates = queries if candidates is None else candidates
    losses = []
    for number, query in enumerate(queries):
        weights = torch.exp(-((query - keys) ** 2).sum(1) + ((query - keys) ** 2).sum(1).min())
        neighbour = (weights[:, None] * keys).sum(0) / weights.sum()
        scores = -((candidates - neighbour) ** 2).sum(1)
        losses.append(torch.logsumexp(scores, 0) - scores[number])
    return torch.stack(losses).mean()


def abc_loss(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Both directions."""
    return directed(u, v) + directed(v, u)


def draws(dataset: Dataset, sampler: Sampler, start: int = 0) -> Iterator[torch.Tensor]:
    """Images of draw after draw, (sets, size, C, H, W) uint8, straight from the sampler and the dataset."""
    for step in range(start, 1 << 30):
        images = dataset.fetch(np.asarray(sampler[step].indices))["image"]
        yield torch.from_numpy(np.moveaxis(images, -1, -3).copy())


def looped(
    encoder: nn.Module,
    images: Iterator[torch.Tensor],
    steps: int,
    ranks: int = 1,
    rate: float = 1e-3,
    *,
    before: Callable[[nn.Module], None] = lambda encoder: None,
    after: Callable[[nn.Module], None] = lambda encoder: None,
) -> list[float]:
    """Train with Adam on the mean loss of so many draws a step; the losses. Calls are before and after each step."""
    adam = torch.optim.Adam(encoder.parameters(), lr=rate, eps=1e-7)
    found = []
    for _ in range(steps):
        losses = [abc_loss(*encoder(next(images))) for _ in range(ranks)]
        loss = torch.stack(losses).mean()
        adam.zero_grad()
        loss.backward()
        before(encoder)
        adam.step()
        after(encoder)
        found.append(loss.item())
    return found
