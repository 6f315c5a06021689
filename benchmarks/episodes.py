"""Episodes of 5 classes with 1 + 15 rows, against easyfsl; 2 × 4 × 8 rows, against pytorch-metric-learning."""

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np

from benchmarks.measure import Side
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, compare
from benchmarks.sets import at_random_steps, in_blocks, in_order
from benchmarks.tables import grid
from setsup import EpisodeSampler, HierarchicalSampler

__all__ = ["rows"]

TOPIC = "episodes"
LABEL, OUTER = "object_hue", "wall_hue"
WAYS, SHOTS, QUERIES = 5, 1, 15
CATEGORIES, CLASSES, SIZE = 2, 4, 8
BLOCK = 64


def rows(full: bool) -> Iterator[Row]:
    yield from _episodes()
    yield from _hierarchy()


def _episodes() -> Iterator[Row]:
    module = peer("easyfsl")
    if module is None:
        return
    sampler = EpisodeSampler(grid(), LABEL, WAYS, SHOTS, QUERIES)
    tasks = chain.from_iterable(repeat(_tasks(module)))
    what, name = f"{WAYS}-way {SHOTS}-shot episode, {QUERIES} queries", "easyfsl TaskSampler"
    other = Side(lambda: next(tasks))
    yield compare(TOPIC, f"{what}, blocks of {BLOCK}", name, in_blocks(sampler, BLOCK), other, at_least(5))
    yield compare(TOPIC, f"{what}, iterating", name, in_order(sampler), other)
    yield compare(TOPIC, f"{what}, sampler[k] at random k", name, at_random_steps(sampler), other)
    across = EpisodeSampler(grid(), LABEL, WAYS, SHOTS, QUERIES, across=OUTER)
    yield compare(TOPIC, f"{what} of two domains, blocks of {BLOCK}", name, in_blocks(across, BLOCK), other)


def _tasks(module: Any) -> Any:
    """A sampler of easyfsl as its constructor makes it; that of 1.5.0 calls one of torch that has no argument now."""
    sampler = object.__new__(module.TaskSampler)
    sampler.n_way, sampler.n_shot, sampler.n_query, sampler.n_tasks = WAYS, SHOTS, QUERIES, 1000
    groups = grid().group_by([LABEL])
    sampler.items_per_label = {label: groups.members(label).tolist() for label in range(len(groups))}
    return sampler


def _hierarchy() -> Iterator[Row]:
    module = peer("pytorch-metric-learning")
    if module is None:
        return
    table = grid()
    sampler = HierarchicalSampler(table, [OUTER, LABEL], [CATEGORIES, CLASSES], SIZE)
    labels = np.stack([table.codes(LABEL), table.codes(OUTER)], axis=1)
    batches = module.HierarchicalSampler(labels, CATEGORIES * CLASSES * SIZE, SIZE, super_classes_per_batch=CATEGORIES)
    what, name = f"batch of {CATEGORIES} × {CLASSES} × {SIZE}", "PML HierarchicalSampler"
    # its iterator makes the batches of all pairs of categories at once
    other = Side(lambda: list(batches), len(batches))
    yield compare(TOPIC, f"{what}, blocks of {BLOCK}", name, in_blocks(sampler, BLOCK), other, at_least(10), blocks=5)
    yield compare(TOPIC, f"{what}, iterating", name, in_order(sampler), other, blocks=5)
