"""Six estimates of mutual information trained as one batched network, against one network after the other.

The other side is a plain loop: `torch.nn` layers, autograd and `torch.optim.Adam`, six times a step. By the clock, with
a thread for each core, as one would run it; then the CPU time on one thread, where both sides are bound by the same
matrix products, and only what stands around them can be saved.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.measure import Side, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, compare

__all__ = ["each", "on_threads", "rows"]

TOPIC = "mine"
LEVELS = (10, 10, 10, 8, 4, 15)
ROWS, DIMENSION, BATCH, RATE = sized(50_000, 2_000), 64, 256, 3e-4


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None:
        return
    points, factors = _data()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for threads, clock, bound in ((cores, time.perf_counter, at_least(2.5)), (1, time.process_time, None)):
        how = {"blocks": 15, "seconds": 0.2, "clock": clock}
        words = f"{threads} thread{'s' * (threads > 1)}, {'wall clock' if bound else 'CPU time'}"
        with on_threads(threads):
            six = Side(_ours(points, factors, range(len(LEVELS))))
            plain = each([_plain(points, factors[:, at]) for at in range(len(LEVELS))])
            alone = each([_ours(points, factors, [at]) for at in range(len(LEVELS))])
            what = f"step of 6 estimates, batch {BATCH}, {DIMENSION} dimensions, {words}"
            yield compare(TOPIC, what, "torch.nn, one after the other", six, Side(plain), bound, **how)
            yield compare(TOPIC, what, "ours, one after the other", six, Side(alone), **how)


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    factors = np.stack([generator.integers(0, levels, ROWS) for levels in LEVELS], axis=1)
    return generator.standard_normal((ROWS, DIMENSION), dtype=np.float32), factors


def each(steps: list[Callable[[], object]]) -> Callable[[], object]:
    return lambda: [step() for step in steps]


def _ours(points: np.ndarray, factors: np.ndarray, which: Any) -> Callable[[], object]:
    from setsup.evaluation.information import check_columns
    from setsup.evaluation.statistics_networks import Training

    training = Training(check_columns(points, factors, BATCH, "a batch"), list(which), np.ones(len(which)), 0, "cpu")
    losses = training.losses(1 << 40, BATCH, RATE)
    return lambda: next(losses)


def _plain(points: np.ndarray, values: np.ndarray) -> Callable[[], object]:
    import torch
    from torch import nn

    u, g = torch.from_numpy(points), torch.from_numpy(values).float()
    hidden = [layer for into in (DIMENSION + 1, 128, 128) for layer in (nn.Linear(into, 128), nn.ReLU())]
    network = nn.Sequential(*hidden, nn.Linear(128, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)

    def step() -> None:
        which = torch.randint(len(u), (BATCH,))
        noisy, value = u[which] + torch.randn(BATCH, DIMENSION), g[which, None]
        joint = network(torch.cat([noisy, value], dim=1))
        marginal = network(torch.cat([noisy, value[torch.randperm(BATCH)]], dim=1))
        loss = marginal.logsumexp(dim=0).sum() - np.log(BATCH) - joint.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
