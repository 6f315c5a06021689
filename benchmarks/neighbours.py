"""Hard negatives from a neighbour table, against numpy as code of one's own would draw them.

The table has the numbers of rows and identities of Market-1501's training set, and 100 neighbours of each row.
"""

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Side
from benchmarks.rows import Row, at_least, compare
from benchmarks.sets import at_random_steps, in_blocks, in_order
from benchmarks.triplets import market
from setsup import NeighbourSampler

__all__ = ["rows"]

TOPIC = "neighbours"
NEIGHBOURS, SETS, BLOCK = 100, 64, 64


def rows(full: bool) -> Iterator[Row]:
    table = market()
    identity = table.codes("id")
    # near in a line of identities, so that of the neighbours some are of the same one
    neighbours = np.random.default_rng(0).permuted(np.arange(-50, 51)[np.arange(101) != 50][None], axis=1)
    neighbours = (np.arange(len(table))[:, None] + neighbours) % len(table)
    sampler = NeighbourSampler(table, neighbours, negative="id != anchor.id", sets=SETS)
    what, name = f"hard negative, {SETS} per step", "numpy, a row's neighbours at a time"
    sides = {f"blocks of {BLOCK}": in_blocks(sampler, BLOCK), "iterating": in_order(sampler)}
    sides["sampler[k] at random k"] = at_random_steps(sampler)
    for how, ours in sides.items():
        bound = at_least(5) if how != "sampler[k] at random k" else None
        other = sieve(identity, neighbours)
        yield compare(TOPIC, f"{what}, {how}", name, Side(ours.run, ours.units * SETS), other, bound)


def sieve(identity: np.ndarray, neighbours: np.ndarray) -> Side:
    random = np.random.default_rng(1)

    def draw() -> object:
        anchor = random.integers(len(identity))
        near = neighbours[anchor]
        valid = near[identity[near] != identity[anchor]]
        return anchor, valid[random.integers(len(valid))] if len(valid) else None

    return Side(draw)
