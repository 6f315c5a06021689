"""Triplets of re-identification: positives of another camera, negatives of the same kind, by constraints.

The table has the numbers of rows, identities and cameras of Market-1501's training set. The others draw less: those of
pytorch-metric-learning know labels only, so that a positive may come from the anchor's camera, and a negative be of any
kind; a sieve compares the whole columns for each triplet, as code of one's own would.
"""

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Side, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, compare
from benchmarks.sets import in_blocks, in_order
from setsup import Factor, FactorTable, Kind, TripletSampler

__all__ = ["rows"]

TOPIC = "triplets"
ROWS, IDENTITIES, CAMERAS, KINDS = *sized((12_936, 751), (900, 60)), 6, 8
TRIPLETS, BLOCK = 64, 64
CLASSES, IMAGES = 16, 4
POSITIVE, NEGATIVE = "id == anchor.id and camera != anchor.camera", "kind == anchor.kind and id != anchor.id"


def rows(full: bool) -> Iterator[Row]:
    table = market()
    sampler = TripletSampler(table, triplets=TRIPLETS, positive=POSITIVE, negative=NEGATIVE)
    others = {
        "PML FixedSetOfTriplets": fixed_triplets(table),
        "PML MPerClassSampler and random triplets": mined_triplets(table),
        "numpy sieve, uint16 columns": sieve(table),
    }
    for name, other in others.items():
        if other is not None:
            what = f"triplet by constraints, {TRIPLETS} per step"
            for how, ours in ((f"blocks of {BLOCK}", in_blocks(sampler, BLOCK)), ("iterating", in_order(sampler))):
                side = Side(ours.run, ours.units * TRIPLETS)
                yield compare(TOPIC, f"{what}, {how}", name, side, other, at_least(20))


def market() -> FactorTable:
    random = np.random.default_rng(0)
    identity = np.sort(random.integers(0, IDENTITIES, ROWS))
    columns = {"id": identity, "camera": random.integers(0, CAMERAS, ROWS), "kind": identity % KINDS}
    sizes = {"id": IDENTITIES, "camera": CAMERAS, "kind": KINDS}
    return FactorTable([Factor(name, Kind.NOMINAL, tuple(range(size))) for name, size in sizes.items()], columns)


def fixed_triplets(table: FactorTable, triplets: int = 64) -> Side | None:
    module = peer("pytorch-metric-learning")
    if module is None:
        return None
    labels = table.codes("id")
    sampler = module.FixedSetOfTriplets(labels, triplets)
    return Side(sampler.create_fixed_set_of_triplets, triplets)


def mined_triplets(table: FactorTable, batches: int = 16) -> Side | None:
    """Batches of 16 x 4 rows, a pass of 16 of them at once, and a random triplet of its batch for each row."""
    module = peer("pytorch-metric-learning")
    if module is None:
        return None
    import torch
    from pytorch_metric_learning.utils.loss_and_miner_utils import get_random_triplet_indices

    labels = table.codes("id")
    batch = CLASSES * IMAGES
    sampler = module.MPerClassSampler(labels, IMAGES, batch, length_before_new_iter=batch * batches)

    def draw() -> object:
        drawn = torch.as_tensor(labels[list(sampler)]).split(batch)
        return [get_random_triplet_indices(found, t_per_anchor=1) for found in drawn]

    return Side(draw, batch * batches)


def sieve(table: FactorTable) -> Side:
    random = np.random.default_rng(1)
    identity, camera, kind = (table.column(name) for name in ("id", "camera", "kind"))

    def draw() -> object:
        anchor = random.integers(len(identity))
        same = identity == identity[anchor]
        positives = np.flatnonzero(same & (camera != camera[anchor]))
        negatives = np.flatnonzero((kind == kind[anchor]) & ~same)
        return anchor, _one_of(random, positives), _one_of(random, negatives)

    return Side(draw)


def _one_of(random: np.random.Generator, found: np.ndarray) -> object:
    return found[random.integers(len(found))] if len(found) else None
