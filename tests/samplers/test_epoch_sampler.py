"""Passes over the data: exact, in keyed or given order, with the last batch dropped or padded."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import FactorError, RowError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import EpochSampler


def table_of(rows):
    return FactorTable([Factor("third", Kind.ORDINAL, (0, 1, 2))], {"third": np.arange(rows) % 3})


def counts_of(draw, steps):
    """Counted slots of each of the steps, in order."""
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    return [draw.indices[step, 0][mask[step, 0]].tolist() for step in range(steps)]


@given(data=st.data())
def test_an_epoch_is_one_exact_pass(data):
    rows, size = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 50))
    partial = data.draw(st.sampled_from(["drop", "pad"]))
    where = data.draw(st.sampled_from([None, "third != 1"]))
    shuffle = data.draw(st.booleans())
    table = table_of(rows)
    kept = [row for row in range(rows) if where is None or row % 3 != 1]
    options = {"shuffle": shuffle, "partial": partial, "where": where, "seed": data.draw(st.integers(0, 2**64 - 1))}
    if partial == "drop" and len(kept) < size:
        with pytest.raises(SamplerError, match=rf"{len(kept)} rows do not fill .* size={size}.*partial='pad'"):
            EpochSampler(table, size, **options)
        return
    sampler = EpochSampler(table, size, epochs=3, **options)
    steps = len(kept) // size if partial == "drop" else (len(kept) + size - 1) // size
    assert sampler.steps_per_epoch == steps
    assert len(sampler) == 3 * steps
    for epoch in range(3):
        draw = sampler.block(epoch * steps, (epoch + 1) * steps)
        assert draw.indices.shape == (steps, 1, size)
        batches = counts_of(draw, steps)
        walked = list(itertools.chain.from_iterable(batches))
        if partial == "drop":
            assert draw.mask is None
            assert len(walked) == steps * size == len(set(walked))
            assert set(walked) <= set(kept)
        else:
            assert sorted(walked) == kept
            assert (draw.mask is None) == (len(kept) % size == 0)
            # padding repeats the epoch's own order from its start, as often as it takes
            again = list(itertools.islice(itertools.cycle(walked), steps * size))
            assert draw.indices.ravel().tolist() == again
        if not shuffle:
            assert walked == kept[: len(walked)]


@given(data=st.data())
def test_copies_are_adjacent_and_an_epoch_still_has_every_row_in_one_batch(data):
    rows, distinct, repeats = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 8)), data.draw(st.integers(2, 5))
    partial = data.draw(st.sampled_from(["drop", "pad"]))
    table, size = table_of(rows), distinct * repeats
    if partial == "drop" and rows < distinct:
        with pytest.raises(SamplerError, match=rf"{rows} rows, {repeats} copies of each, do not fill one batch"):
            EpochSampler(table, size, repeats=repeats)
        return
    sampler = EpochSampler(table, size, partial=partial, repeats=repeats, epochs=2, seed=data.draw(st.integers(0, 99)))
    steps = rows * repeats // size if partial == "drop" else -(-rows * repeats // size)
    assert (sampler.steps_per_epoch, len(sampler)) == (steps, 2 * steps)
    for epoch in range(2):
        walked = []
        for batch in counts_of(sampler.block(epoch * steps, (epoch + 1) * steps), steps):
            copies = np.array(batch).reshape(-1, repeats)
            assert (copies == copies[:, :1]).all()
            assert partial == "pad" or len(copies) == distinct
            walked += copies[:, 0].tolist()
        assert len(set(walked)) == len(walked)  # no row in two batches
        assert len(walked) == (rows if partial == "pad" else steps * distinct)


def test_copies_come_in_every_order_of_the_rows():
    draw = EpochSampler(table_of(4), 6, repeats=2).block(0, 6000)
    orders = list(itertools.permutations(range(4), 3))
    counts = Counter(map(tuple, draw.indices[:, 0, ::2].tolist()))
    assert chisquare([counts[order] for order in orders]).pvalue > 1e-4
    assert "2 copies of each of 3 rows" in str(EpochSampler(table_of(4), 6, repeats=2).report())


def test_copies_of_rows_drawn_by_weight():
    table, weights = table_of(9), np.arange(9)
    once, twice = (EpochSampler(table, 3 * copies, repeats=copies, weights=weights).block(0, 50) for copies in (1, 2))
    assert np.array_equal(twice.indices, np.repeat(once.indices, 2, axis=-1))


@pytest.mark.parametrize("rows", [100, 4096, 4097, 10_007])
def test_every_epoch_has_an_order_of_its_own(rows):
    size = rows // 4
    sampler = EpochSampler(table_of(rows), size, partial="pad")
    steps = sampler.steps_per_epoch
    passes = [counts_of(sampler.block(e * steps, (e + 1) * steps), steps) for e in (0, 1, 2, 10**12)]
    orders = [list(itertools.chain.from_iterable(batches)) for batches in passes]
    for order in orders:
        assert sorted(order) == list(range(rows))
        assert abs(np.corrcoef(np.arange(rows), order)[0, 1]) < 5 / np.sqrt(rows)
    for one, other in itertools.combinations(orders, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(rows)


def test_orders_are_uniform_and_rows_left_out_change():
    sampler = EpochSampler(table_of(4), 3)
    draw = sampler.block(0, 6000)
    assert sampler.steps_per_epoch == 1
    counts = Counter(map(tuple, draw.indices[:, 0].tolist()))
    orders = list(itertools.permutations(range(4), 3))
    assert set(counts) == set(orders)
    assert chisquare([counts[order] for order in orders]).pvalue > 1e-4


def test_where_keeps_row_numbers():
    sampler = EpochSampler(table_of(30), 5, epochs=1, shuffle=False, where="third == 2")
    assert sampler.block(0, 2).indices.ravel().tolist() == list(range(2, 30, 3))


def test_a_table_smaller_than_one_batch_is_padded_round_and_round():
    draw = EpochSampler(table_of(3), 8, epochs=1, shuffle=False, partial="pad")[0]
    assert draw.indices.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1]]
    assert draw.mask.tolist() == [[True] * 3 + [False] * 5]


def test_only_the_last_batch_of_an_epoch_has_a_mask():
    sampler = EpochSampler(table_of(10), 4, partial="pad", epochs=2)
    assert [draw.mask is None for draw in map(sampler.__getitem__, range(6))] == [True, True, False] * 2


def test_a_batch_has_128_rows_unless_it_is_said():
    assert EpochSampler(table_of(300))[0].indices.shape == (1, 128)


def test_it_ends_after_its_epochs():
    sampler = EpochSampler(table_of(10), 5, epochs=3)
    assert len(sampler) == 6
    assert len(list(sampler)) == 6
    assert sampler[5].indices.shape == (1, 5)
    for step in (6, 7, 2**63, -1):
        with pytest.raises(IndexError, match=rf"step {step} is out of range.* 6"):
            sampler[step]
    with pytest.raises(RowError, match="6"):
        sampler.block(4, 7)
    assert "left out" not in str(sampler.report())


def test_without_epochs_there_is_no_end():
    sampler = EpochSampler(table_of(10), 4)
    with pytest.raises(TypeError, match="epochs="):
        len(sampler)
    assert sampler.length is None
    assert len(set(sampler[2**63 - 1].indices.ravel().tolist())) == 4
    assert "2 rows are left out of each epoch" in str(sampler.report())


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"size": 0}, SamplerError, "size must be an integer"),
        ({"size": 11}, SamplerError, "10 rows do not fill one batch of size=11"),
        ({"epochs": 0}, SamplerError, "epochs must be an integer"),
        ({"epochs": 1.0}, SamplerError, "epochs must be an integer"),
        ({"epochs": 2**62}, SamplerError, r"more than 2\*\*63 - 1 steps"),
        ({"repeats": 0}, SamplerError, "repeats must be an integer from 1"),
        ({"repeats": 3}, SamplerError, "size=4 is not a multiple of repeats=3"),
        ({"partial": "keep"}, SamplerError, "partial must be one of drop, pad, not 'keep'"),
        ({"where": "third > 2"}, SamplerError, "where= \\(third > 2\\) leaves none of the 10 rows"),
        ({"where": "thrid == 2"}, FactorError, "third"),
        ({"seed": 1.5}, SamplerError, "seed"),
    ],
)
def test_wrong_arguments(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        EpochSampler(table_of(10), **{"size": 4, **arguments})
