"""Losses on sets of embeddings, on one thread: against one query after the other, and against their matrix products.

One direction of the ABC loss is three products: queries with keys, weights with keys, soft neighbours with candidates.
They alone, into tensors that are there already, are the least that it can take. "forward" records no gradient, as an
evaluation; "recorded" does, as a training. Times are CPU time.
"""

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import Seconds, Side, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Bound, Row, at_least, at_most, duration

__all__ = ["rows"]

TOPIC = "losses"
DIMENSIONS = 64
SIZES = sized((32, 64, 128, 256, 512, 1024), (32, 256))


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None:
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, temperature in (("l2sq", 64.0), ("cosine", 0.1)):
            for size in SIZES:
                yield from _of(name, temperature, size)
    finally:
        torch.set_num_threads(threads)


def _of(name: str, temperature: float, size: int) -> Iterator[Row]:
    import torch

    from setsup_papers.abc import directed_loss

    generator = torch.Generator().manual_seed(size)
    u, v = (torch.randn(size, DIMENSIONS, generator=generator) for _ in range(2))
    leaves = [some.clone().requires_grad_() for some in (u, v)]

    @torch.enable_grad()
    def recorded() -> object:
        return directed_loss(*leaves, name, temperature)

    @torch.enable_grad()
    def both() -> object:
        return torch.autograd.grad(directed_loss(*leaves, name, temperature), leaves)

    sides = {
        "forward": Side(lambda: directed_loss(u, v, name, temperature)),
        "floor": Side(_products(u, v)),
        "loop": Side(lambda: one_by_one(u, v, name, temperature)),
        "recorded": Side(recorded),
        "both": Side(both),
    }
    with torch.no_grad():
        found = alternate(sides, blocks=11)
    backward, what = found["both"] - found["recorded"], f"{name}, n = {size}, d = {DIMENSIONS}"
    loop = ratio(found["loop"], found["forward"])
    yield _row(f"{what}: forward", found["forward"], "one query at a time", found["loop"], loop, "×", at_least(10))
    floor = ratio(100 * found["floor"], found["forward"])
    bound = at_least(60) if size >= 256 else None
    yield _row(f"{what}: forward", found["forward"], "its three products", found["floor"], floor, "%", bound)
    back = ratio(backward, found["recorded"])
    bound = at_most(3.5) if size >= 128 else None
    yield _row(f"{what}: backward", backward, "forward, recorded", found["recorded"], back, "×", bound)


def _row(what: str, ours: Seconds, against: str, other: Seconds, figure: Any, unit: str, bound: Bound | None) -> Row:
    return Row(TOPIC, what, duration(ours), against, duration(other), figure, unit, bound)


def _products(u: Any, v: Any) -> Callable[[], object]:
    """The three products alone; the weights are whatever the first one gave."""
    import torch

    scores, averages, picks = u @ v.T, torch.empty_like(u), torch.empty(len(u), len(u))

    def products() -> object:
        torch.mm(u, v.T, out=scores)
        torch.mm(scores, v, out=averages)
        return torch.mm(averages, u.T, out=picks)

    return products


def one_by_one(u: Any, v: Any, name: str, temperature: float) -> Any:
    """L(U, V) as it is written down: for each query its similarities, its soft neighbour, and what that picks."""
    import torch
    from torch.nn.functional import cosine_similarity

    def similarity(x: Any, others: Any) -> Any:
        if name == "cosine":
            return cosine_similarity(x[None], others) / temperature
        return -(x - others).square().sum(-1) / temperature

    losses = []
    for i, query in enumerate(u):
        neighbour = similarity(query, v).softmax(-1) @ v
        losses.append(-similarity(neighbour, u).log_softmax(-1)[i])
    return torch.stack(losses).mean()
