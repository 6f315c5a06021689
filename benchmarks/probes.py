"""Probes of several factors, layers and seeds trained as one batched network, against one probe after the other.

The other side is a plain loop: `torch.nn` layers, autograd and `torch.optim.Adam`, once a probe and step. Both sides
have equal threads: by the clock with a thread for each core, then the CPU time on one thread.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Side, sized
from benchmarks.mine import each, on_threads
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, compare

__all__ = ["rows"]

TOPIC = "probes"
LEVELS = (10, 10, 10, 8, 4, 15)
ROWS, DIMENSION, BATCH, RATE = sized(50_000, 2_000), 64, 256, 1e-3
SEEDS = (0, 1, 2, 3)


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None:
        return
    points, factors = _data()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = [(at, seed) for seed in SEEDS for at in range(len(LEVELS))]
    for kind, hidden in (("linear", ()), ("32, 32, 32 hidden", (32, 32, 32))):
        for count, clock in ((cores, time.perf_counter), (1, time.process_time)):
            how = {"blocks": 15, "seconds": 0.2, "clock": clock}
            words = f"{count} thread{'s' * (count > 1)}, {'CPU time' if count == 1 else 'wall clock'}"
            with on_threads(count):
                batched = Side(_ours(points, factors, jobs, hidden))
                plain = Side(each([_plain(points, factors[:, at], hidden) for at, _ in jobs]))
                alone = Side(each([_ours(points, factors, [job], hidden) for job in jobs]))
                what = f"step of {len(jobs)} probes ({len(LEVELS)} factors, {len(SEEDS)} seeds), {kind}, {words}"
                yield compare(TOPIC, what, "torch.nn, one after the other", batched, plain, at_least(2.5), **how)
                yield compare(TOPIC, what, "ours, one after the other", batched, alone, **how)


def _data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    factors = np.stack([generator.integers(0, levels, ROWS) for levels in LEVELS], axis=1)
    return generator.standard_normal((ROWS, DIMENSION), dtype=np.float32), factors


def _ours(
    points: np.ndarray, factors: np.ndarray, jobs: list[tuple[int, int]], hidden: tuple[int, ...]
) -> Callable[[], object]:
    from setsup.evaluation.batched.probe_networks import Probe, ProbeNetworks

    all_rows, held = np.arange(len(points)), np.arange(1)
    probes = [Probe(0, factors[:, at], LEVELS[at], all_rows, held, seed) for at, seed in jobs]
    losses = ProbeNetworks([points], probes, hidden, standardize=True).losses(1 << 40, BATCH, RATE)
    return lambda: next(losses)


def _plain(points: np.ndarray, values: np.ndarray, hidden: tuple[int, ...]) -> Callable[[], object]:
    import torch
    from torch import nn

    x, y = torch.from_numpy((points - points.mean(axis=0)) / points.std(axis=0)), torch.from_numpy(values)
    layers: list[Any] = []
    widths = (DIMENSION, *hidden)
    for into, out in zip(widths, hidden, strict=False):
        layers += [nn.Linear(into, out), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(widths[-1], int(values.max()) + 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, eps=1e-7)

    def step() -> None:
        which = torch.randint(len(x), (BATCH,))
        loss = nn.functional.cross_entropy(network(x[which]), y[which])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
