"""Domain batches of 8 × 32 rows without replacement, against the samplers of WILDS and pytorch-metric-learning."""

from collections.abc import Iterator
from itertools import chain, repeat

from benchmarks.measure import Side
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, compare
from benchmarks.sets import in_blocks, in_order
from benchmarks.tables import grid
from setsup import DomainSampler

__all__ = ["rows"]

TOPIC = "domains"
DOMAIN = "wall_hue"
DOMAINS, SIZE, BLOCK = 8, 32, 64


def rows(full: bool) -> Iterator[Row]:
    sampler = DomainSampler(grid(), DOMAIN, sets=DOMAINS, size=SIZE)
    others = {"WILDS GroupSampler": wilds_batches(), "PML MPerClassSampler": metric_learning_batches()}
    for name, other in others.items():
        if other is not None:
            what = f"batch of {DOMAINS} × {SIZE}, 10 domains of 48,000"
            yield compare(TOPIC, f"{what}, blocks of {BLOCK}", name, in_blocks(sampler, BLOCK), other, at_least(40))
            yield compare(TOPIC, f"{what}, iterating", name, in_order(sampler), other)


def wilds_batches() -> Side | None:
    module = peer("wilds")
    if module is None:
        return None
    import torch

    groups = torch.from_numpy(grid().codes(DOMAIN))
    sampler = module.GroupSampler(groups, DOMAINS * SIZE, DOMAINS, uniform_over_groups=True, distinct_groups=True)
    batches = chain.from_iterable(repeat(sampler))
    return Side(lambda: next(batches))


def metric_learning_batches(batches: int = 16) -> Side | None:
    """Its iterator lists all rows of a pass at once; a pass is made 16 batches long."""
    module = peer("pytorch-metric-learning")
    if module is None:
        return None
    batch = DOMAINS * SIZE
    sampler = module.MPerClassSampler(grid().codes(DOMAIN), SIZE, batch, length_before_new_iter=batch * batches)
    return Side(lambda: iter(sampler), batches)
