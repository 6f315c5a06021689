"""A step of ``abc/mnist``: the share of the loader and the loss in it, and all 500 steps. On one thread; times are CPU.

The pictures are random, in MNIST's format and number: what they show changes no time.
"""

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_most, duration

__all__ = ["rows", "write_mnist"]

TOPIC = "training"
DIGITS, SIDE = sized(60_000, 4_000), 28
STEPS = 500


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None or peer("lightning") is None:
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
            write_mnist(Path(folder))
            yield from _step(Path(folder))
    finally:
        torch.set_num_threads(threads)


def _step(root: Path) -> Iterator[Row]:
    import torch

    from setsup.experiments import find_preset
    from setsup.experiments.configs import build_method
    from setsup.loading import Loader

    preset = find_preset("abc/mnist")
    dataset = preset.data.open(root)
    batches = iter(Loader(dataset, preset.sampler.build(dataset, 0), workers=0))
    method: Any = build_method(preset.method, dataset.factors, 0)
    adam = method.configure_optimizers()
    embeddings = [method.embed(next(batches)).detach().requires_grad_() for _ in range(4)]
    turn = iter(range(10**9))

    def whole() -> None:
        adam.zero_grad()
        method.loss(next(batches)).backward()
        adam.step()

    def loss() -> object:
        embedded = embeddings[next(turn) % len(embeddings)]
        u, v = embedded[0::2], embedded[1::2]
        from setsup_papers.abc import correspondence_loss

        return torch.autograd.grad(correspondence_loss(u, v), embedded)

    sides = {"whole": Side(whole), "loader": Side(lambda: next(batches)), "loss": Side(loss)}
    found = alternate(sides, blocks=15)
    both, step = found["loader"] + found["loss"], found["whole"]
    share = ratio(100 * both, step)
    yield Row(TOPIC, "abc/mnist: loader and loss", duration(both), "a step", duration(step), share, "%", at_most(15))
    for name in ("loader", "loss"):
        share = ratio(100 * found[name], step)
        yield Row(TOPIC, f"abc/mnist: {name}", duration(found[name]), "a step", duration(step), share, "%")
    run = STEPS * step
    yield Row(TOPIC, "abc/mnist: 500 steps", duration(run), "30 s, a first trial", "30 s", ratio(run, 30 + 0 * run))


def write_mnist(folder: Path) -> None:
    """The training files of MNIST with random pictures."""
    rng = np.random.default_rng(0)
    for part, count in (("train", DIGITS), ("t10k", 10_000)):
        pictures = rng.integers(0, 256, (count, SIDE, SIDE), dtype=np.uint8)
        head = struct.pack(">IIII", 0x803, count, SIDE, SIDE)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + pictures.tobytes())
        labels = rng.integers(0, 10, count, dtype=np.uint8)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels.tobytes())
