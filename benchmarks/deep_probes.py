"""Deep probes of six factors and of twelve fitted as one batched network, against one network after the other.

The other side is a plain loop: `torch.nn` layers, autograd and `torch.optim.Adam`, a network and step at a time, as
published. Both sides have equal threads: by the clock with a thread for each core, then the CPU time on one thread.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Side
from benchmarks.mine import each, on_threads
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, compare

__all__ = ["rows"]

TOPIC = "deep_probes"
LEVELS = (4, 10, 10, 10, 8, 15)
DIMENSION, BATCH = 128, 128


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None:
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for times in (1, 2):
        levels = LEVELS * times
        for count, clock in ((cores, time.perf_counter), (1, time.process_time)):
            how = {"blocks": 15, "seconds": 0.2, "clock": clock}
            words = f"{count} thread{'s' * (count > 1)}, {'CPU time' if count == 1 else 'wall clock'}"
            with on_threads(count):
                batched, plain = Side(_ours(levels)), Side(each([_plain(one) for one in levels]))
                what = f"step of {len(levels)} probes of six layers, 128 wide, batch normalisation, {words}"
                bound = at_least(2.5) if count > 1 else None  # products fill one thread, see README.md
                yield compare(TOPIC, what, "torch.nn, one after the other", batched, plain, bound, **how)


def _points() -> tuple[Any, Any]:
    import torch

    generator = np.random.default_rng(0)
    points = torch.from_numpy(generator.standard_normal((BATCH, DIMENSION), dtype=np.float32))
    return points, lambda levels: torch.from_numpy(generator.integers(0, levels, BATCH))


def _ours(levels: tuple[int, ...]) -> Callable[[], object]:
    import torch

    from setsup.evaluation.batched.deep_probes import DeepNetworks, Optimizer, Training

    points, draw = _points()
    wanted = torch.stack([draw(one) for one in levels], dim=1)
    optimizer = Optimizer(DeepNetworks.initial(DIMENSION, levels, Training(), 0, "cpu"), 1e-3)
    return lambda: optimizer.step(points, wanted, "classes")


def _plain(levels: int) -> Callable[[], object]:
    import torch
    from torch import nn

    points, draw = _points()
    wanted = draw(levels)
    layers: list[Any] = []
    for _ in range(5):
        layers += [nn.Linear(DIMENSION, 128, bias=False), nn.BatchNorm1d(128), nn.LeakyReLU()]
    network = nn.Sequential(*layers, nn.Linear(128, levels))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def step() -> None:
        loss = nn.functional.cross_entropy(network(points), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
