"""Pairs that differ in k factors: against disent on a grid, and against sieving where rows are missing."""

import importlib
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.measure import Side, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, compare
from benchmarks.sets import BLOCK, at_random_steps, in_blocks
from benchmarks.tables import NAMES, SIZES, factors, grid
from setsup import FactorPairSampler, FactorTable

__all__ = ["rows"]

TOPIC = "pairs"
PAIRS = 64
ROWS = sized(480_000, 12_000)

Draw = Callable[[], object]


def rows(full: bool) -> Iterator[Row]:
    yield from on_a_grid()
    yield from where_rows_are_missing()


def on_a_grid() -> Iterator[Row]:
    """One to five of six factors differ, in each pair others: exactly what both draw."""
    other = disent_pairs()
    if other is None:
        return
    sampler = FactorPairSampler(grid(), PAIRS)
    what, against = f"{PAIRS} pairs, 1 to 5 of 6 factors differ", "disent GroundTruthPairSampler"
    yield compare(TOPIC, f"{what}, sampler[k] at random k", against, at_random_steps(sampler), Side(other), at_least(5))
    yield compare(TOPIC, f"{what}, blocks of {BLOCK} steps", against, in_blocks(sampler), Side(other), at_least(30))


def where_rows_are_missing() -> Iterator[Row]:
    """Half of the cells are missing, so that partners are counted."""
    kept = np.sort(np.random.default_rng(0).permutation(len(grid()))[: ROWS // 2])
    columns = {name: grid().codes(name, kept).astype(np.uint8) for name in NAMES}
    table = FactorTable(factors(), columns)
    for k in (1, 2, 4):
        sampler = FactorPairSampler(table, PAIRS, k=k)
        what, other = f"{PAIRS} pairs, {k} of 6 factors differ, {len(table):,} rows with gaps", sieve(columns, k)
        for way, ours in (("sampler[k]", at_random_steps(sampler)), ("blocks", in_blocks(sampler, 16))):
            bound = at_least(3) if way == "blocks" else None
            yield compare(TOPIC, f"{what}, {way}", "numpy sieve, uint8 columns", ours, Side(other, 1), bound, blocks=5)


def disent_pairs() -> Draw | None:
    """Rows of pairs as disent draws them, one pair after the other from the dataset's indices."""
    if peer("disent") is None:
        return None
    _spare_torchvision()
    data = importlib.import_module("disent.dataset.data")
    sampling = importlib.import_module("disent.dataset.sampling")

    class Grid(data.GroundTruthData):  # type: ignore[misc, name-defined]
        factor_names, factor_sizes, img_shape = NAMES, SIZES, (64, 64, 3)

        def _get_observation(self, index: int) -> Any:
            raise NotImplementedError

    sampler = sampling.GroundTruthPairSampler(p_k_range=(1, 5)).init(Grid())
    random = np.random.default_rng(1)

    def draw() -> object:
        return [sampler(index) for index in random.integers(0, len(grid()), PAIRS).tolist()]

    return draw


def _spare_torchvision() -> None:
    """Let disent's datasets be imported where torchvision is not installed: its samplers have no use for it."""
    if find_spec("torchvision") is not None or "disent.dataset.data" in sys.modules:
        return
    names = ("torchvision", "torchvision.datasets")
    for name in names:
        sys.modules[name] = ModuleType(name)
    sys.modules["torchvision.datasets"].ImageFolder = object  # type: ignore[attr-defined]
    try:
        importlib.import_module("disent.dataset.data")
    finally:
        for name in names:
            del sys.modules[name]


def sieve(columns: dict[str, Any], k: int) -> Draw:
    """Best way to sieve: one mask a pair, narrowed in place by every factor, and a choice among what is left."""
    random = np.random.default_rng(2)
    count = len(columns[NAMES[0]])

    def draw() -> object:
        found: list[tuple[int, int]] = []
        while len(found) < PAIRS:
            changed = random.choice(len(NAMES), k, replace=False)
            anchor = int(random.integers(count))
            mask = np.ones(count, dtype=bool)
            for place, name in enumerate(NAMES):
                column = columns[name]
                mask &= column != column[anchor] if place in changed else column == column[anchor]
            partners = np.flatnonzero(mask)
            if len(partners):  # else this anchor has none
                found.append((anchor, int(random.choice(partners))))
        return found

    return draw
