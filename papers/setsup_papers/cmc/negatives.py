"""Random rows as negatives, and random features that a memory bank begins with: functions of the seed, not of ranks."""

import numpy as np
import torch
from torch import Tensor

from setsup.arrays import Words
from setsup.random import below_few, fold, mix, spread, uniform

__all__ = ["draw_features", "draw_negatives"]

_CHUNK = 1 << 15
"""Numbers that are drawn at a time: what lies between two operations stays in the cache."""


def draw_negatives(key: int, step: int, rows: Tensor, count: int, images: int) -> Tensor:
    """Rows of negatives for each row, uniform over all N images, with replacement; the row itself may be among them.

    They are a function of the key, the step and the row, so that they do not depend on what else is in a batch, nor on
    how many processes share it.

    Parameters
    ----------
    key : int
        From :func:`setsup.random.stream_key`.
    step : int
        Number of the draw.
    rows : (n,) int64
        Rows of a batch.
    count : int
        m.
    images : int
        N.

    Returns
    -------
    (n, m) int64, on the device of `rows`

    Examples
    --------
    >>> from setsup.random import stream_key
    >>> found = draw_negatives(stream_key(0, "negatives"), 7, torch.tensor([2, 5]), 4096, 10_000)
    >>> found.shape, int(found.min()) >= 0, int(found.max()) < 10_000
    (torch.Size([2, 4096]), True, True)

    """
    keys: Words = fold(fold(key, step), rows.detach().cpu().numpy())
    places = spread(np.arange(count, dtype=np.uint64))
    negatives = np.empty((len(keys), count), dtype=np.int64)
    lines = max(1, _CHUNK // max(1, count))
    for start in range(0, len(keys), lines):
        some = slice(start, start + lines)
        negatives[some] = below_few(mix(keys[some, None], places), images)
    return torch.from_numpy(negatives).to(rows.device)


def draw_features(rows: Tensor, key: int, size: int) -> Tensor:
    """Features that a bank begins with, (n, size) float32: uniform in ±√(3/size), so that their length is about 1."""
    bits = mix(fold(key, rows.numpy())[:, None], spread(np.arange(size, dtype=np.uint64)))
    return torch.from_numpy((2 * uniform(bits) - 1) * (3 / size) ** 0.5).float()
