"""Set samplers: one draw at any step, draws in order, blocks; against disent, sieving the table, and torch."""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Side, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, at_most, compare
from benchmarks.tables import NAMES, SIZES, factors, grid, random_columns
from setsup import EpochSampler, Factor, FactorTable, Kind, SetSampler

__all__ = ["rows"]

TOPIC = "sets"
BLOCK = 64
SMALL, MILLION = 480_000, sized(1_000_000, 48_000)
HELD = {1: NAMES[1:2], 3: NAMES[:3], 5: NAMES[:5]}
"""Inactive factors by their number; the groups of the grid have 48,000, 480 and 15 rows."""

Draw = Callable[[], object]


def rows(full: bool) -> Iterator[Row]:
    yield from against_disent()
    yield from against_sieve()
    yield from flatness()
    yield from large_tables(full)
    yield from own_way()
    yield from by_weight()


# -- ours --------------------------------------------------------------------------------------------------------


def at_random_steps(sampler: Any) -> Side:
    """``sampler[k]`` at steps in no order."""
    steps = cycle(np.random.default_rng(1).integers(0, 2**40, 4096).tolist())
    return Side(lambda: sampler[next(steps)])


def in_order(sampler: Any) -> Side:
    draws = iter(sampler)
    return Side(lambda: next(draws))


def in_blocks(sampler: Any, block: int = BLOCK) -> Side:
    """``sampler.block`` at consecutive stretches of steps; the unit is one draw."""
    starts = cycle(range(0, block * 4096, block))

    def draw() -> object:
        start = next(starts)
        return sampler.block(start, start + block)

    return Side(draw, block)


# -- the other sides -----------------------------------------------------------------------------------------------


def disent_set(held: Sequence[str], size: int) -> Draw | None:
    """Rows of one set as disent draws them: base factors, the free ones drawn anew, positions to row numbers."""
    module = peer("disent")
    if module is None:
        return None
    space = module.StateSpace(SIZES, NAMES)
    free = np.array([i for i, name in enumerate(NAMES) if name not in held])

    def draw() -> object:
        base = space.sample_factors(1).repeat(size, axis=0)
        return space.pos_to_idx(space.resample_given_factors(base, free))

    return draw


def sieve(columns: dict[str, npt.NDArray[np.uint8]], held: Sequence[str], size: int) -> Draw:
    """Best way to sieve: narrow columns, one mask narrowed in place, a choice among what is left."""
    random = np.random.default_rng(2)
    kept = [columns[name] for name in held]
    sizes = [SIZES[NAMES.index(name)] for name in held]

    def draw() -> object:
        values = random.integers(0, sizes)
        mask = kept[0] == values[0]
        for column, value in zip(kept[1:], values[1:], strict=True):
            mask &= column == value
        return _choose(random, np.flatnonzero(mask), size)

    return draw


def float_sieve(labels: npt.NDArray[np.float64], held: Sequence[str], size: int) -> Draw:
    """ABC's own way: compare the float64 label table with the held values for every set."""
    random = np.random.default_rng(3)
    index = [NAMES.index(name) for name in held]
    sizes = [SIZES[i] for i in index]

    def draw() -> object:
        mask = (labels[:, index] == random.integers(0, sizes)).all(axis=1)
        return _choose(random, np.flatnonzero(mask), size)

    return draw


def _choose(random: np.random.Generator, found: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    return found[random.choice(len(found), size, replace=len(found) < size, shuffle=False)]


# -- measurements ----------------------------------------------------------------------------------------------------


def against_disent() -> Iterator[Row]:
    other = disent_set(HELD[1], 32)
    if other is None:
        return
    sampler = SetSampler(grid(), inactive=HELD[1], size=32, sets=1)
    ways = (
        ("set of 32, sampler[k] at random k", at_random_steps(sampler), 1),
        ("set of 32, iterating", in_order(sampler), 10),
        (f"set of 32, blocks of {BLOCK} steps", in_blocks(sampler), 30),
    )
    for what, ours, least in ways:
        yield compare(TOPIC, what, "disent StateSpace", ours, Side(other), at_least(least))


def against_sieve() -> Iterator[Row]:
    table = grid()
    columns = {name: table.column(name) for name in NAMES}
    for held, size, least in ((1, 32, 8), (5, 8, 25)):
        ours = at_random_steps(SetSampler(table, inactive=HELD[held], size=size, sets=1))
        other = Side(sieve(columns, HELD[held], size))
        what = f"set of {size}, {held} inactive, sampler[k] at random k"
        yield compare(TOPIC, what, "numpy sieve, uint8 columns", ours, other, at_least(least))


def flatness() -> Iterator[Row]:
    """Compare groups of 15 rows made by five factors with groups of 15 made by one of 32,000 levels."""
    orientation = factors()[-1]
    one = FactorTable([Factor("cell", Kind.NOMINAL, tuple(range(32_000))), orientation])
    five = grid()
    pairs = {"grids": (one, five), "columns": (_as_columns(one), _as_columns(five))}
    for layout, (narrow, wide) in pairs.items():
        once = SetSampler(narrow, inactive=["cell"], size=8, sets=1)
        often = SetSampler(wide, inactive=HELD[5], size=8, sets=1)
        for how, way in (("sampler[k]", at_random_steps), ("blocks", in_blocks)):
            what = f"flat: 5 inactive, sets of 8, {layout}, {how}"
            yield _growth(what, "1 inactive", way(often), way(once), 1.25)


def large_tables(full: bool) -> Iterator[Row]:
    small = SetSampler(_random_table(SMALL), inactive=HELD[1], size=32, sets=1)
    for millions in (10, 100) if full else (10,):
        large = SetSampler(_random_table(millions * MILLION), inactive=HELD[1], size=32, sets=1)
        for how, way in (("sampler[k]", at_random_steps), ("blocks", in_blocks)):
            what = f"flat: {millions} M rows, set of 32, {how}"
            yield _growth(what, "480 k rows", way(large), way(small), 2)
        del large


def own_way() -> Iterator[Row]:
    """Sieve the label table for every set: what an index spares."""
    for rows, name in ((SMALL, "480 k"), (10 * MILLION, "10 M")):
        columns = random_columns(rows)
        labels = np.stack([columns[name] for name in NAMES], axis=1).astype(np.float64)
        table = FactorTable(factors(), columns)
        for held in (1, 3):
            ours = at_random_steps(SetSampler(table, inactive=HELD[held], size=32, sets=1))
            other = Side(float_sieve(labels, HELD[held], 32))
            what = f"set of 32, {held} inactive, {name} rows"
            yield compare(TOPIC, what, "ABC's own way (float64 sieve)", ours, other, blocks=5)


def by_weight() -> Iterator[Row]:
    """Batches by weight without repeats: torch looks at every row for each of them."""
    import torch

    weights = np.random.default_rng(4).random(SMALL)
    other = torch.utils.data.WeightedRandomSampler(weights.tolist(), 128, replacement=False)
    ours = at_random_steps(EpochSampler(_random_table(SMALL), size=128, weights=weights))
    what = "batch of 128 of 480 k rows by weight, sampler[k] at random k"
    yield compare(TOPIC, what, "torch WeightedRandomSampler", ours, Side(lambda: list(other)), at_least(5), blocks=5)


def _random_table(rows: int) -> FactorTable:
    return FactorTable(factors(), random_columns(rows))


def _as_columns(table: FactorTable) -> FactorTable:
    return FactorTable(table.factors, {name: table.column(name) for name in table.names})


def _growth(what: str, against: str, ours: Side, base: Side, most: float) -> Row:
    """How many times as long ours takes in the harder case."""
    flipped = compare(TOPIC, what, against, base, ours, at_most(most))
    return Row(TOPIC, what, flipped.other, against, flipped.ours, flipped.figure, "×", at_most(most))
