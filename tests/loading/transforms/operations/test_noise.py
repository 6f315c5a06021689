"""Keyed noise: its bits are those of setsup.random, its values those of the normal distribution, all independent."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from setsup import random

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms.operations.noise import TABLE, normal, pick

RARE = 1e-4  # every statistic below is a fixed number, for its key is
CPU = torch.device("cpu")


def keys_of(n: int, seed: int = 0) -> np.ndarray:
    return random.fold(random.stream_key(seed, "noise"), np.arange(n, dtype=np.uint64))


def parts(key: int, count: int) -> list[int]:
    """The law in Python's integers: number 4b + j is bits 16j … 16j + 15 of the key's fold with b."""
    words = [int(random.fold(np.array(key, dtype=np.uint64), np.array(b, dtype=np.uint64))) for b in range(count)]
    return [(words[at // 4] >> (16 * (at % 4))) & 0xFFFF for at in range(count)]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4), st.integers(1, 9), st.integers(1, 9))
def test_bits_are_those_of_setsup_random(keys: list[int], height: int, width: int) -> None:
    found = pick(np.array(keys, dtype=np.uint64), (height, width), torch.arange(TABLE))
    assert found.shape == (len(keys), height, width)
    assert found.flatten(1).tolist() == [parts(key, height * width) for key in keys]


def test_a_table_is_looked_up() -> None:
    keys = keys_of(3)
    where = pick(keys, (5, 7), torch.arange(TABLE))
    table = torch.rand(TABLE, generator=torch.Generator().manual_seed(0))
    assert torch.equal(pick(keys, (5, 7), table), table[where])


def test_an_image_has_its_numbers_whatever_stands_beside_it() -> None:
    keys = keys_of(6)
    together = normal(keys, (3, 9, 11), CPU)
    assert all(torch.equal(normal(keys[at : at + 1], (3, 9, 11), CPU)[0], together[at]) for at in range(6))
    assert torch.equal(normal(keys[::-1].copy(), (3, 9, 11), CPU).flip(0), together)


def test_values_are_quantiles_of_the_normal_distribution() -> None:
    values = np.sort(normal(keys_of(64), (64, 64), CPU).numpy().ravel()).astype(np.float64)
    shares = stats.norm.cdf(values) * TABLE - 0.5
    tails = np.abs(values) < 3  # where rounding to single precision is small beside the density
    assert np.abs(shares - np.rint(shares))[tails].max() < 0.02
    assert -0.01 < shares.min()
    assert shares.max() < TABLE - 0.9


def test_moments() -> None:
    values = normal(keys_of(200), (100, 100), CPU).double().numpy()
    n = values.size
    assert abs(values.mean()) < 4 / math.sqrt(n)
    assert abs(values.var() - 1) < 4 * math.sqrt(2 / n)
    assert abs((values**3).mean()) < 4 * math.sqrt(15 / n)
    assert abs((values**4).mean() - 3) < 4 * math.sqrt(96 / n)


def test_the_distribution_is_normal() -> None:
    values = normal(keys_of(40), (3, 32, 32), CPU).double().numpy().ravel()
    assert stats.kstest(values, "norm").pvalue > RARE


def test_each_part_of_a_word_is_uniform() -> None:
    found = pick(keys_of(16), (256, 256), torch.arange(TABLE)).reshape(-1, 4).numpy()
    for part in found.T:
        for byte in (part & 255, part >> 8):
            assert stats.chisquare(np.bincount(byte, minlength=256)).pvalue > RARE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((slice(None), slice(None), slice(None), slice(1, None)), (slice(None), slice(None), slice(None), slice(-1))),
        ((slice(None), slice(None), slice(1, None)), (slice(None), slice(None), slice(-1))),
        ((slice(None), 0), (slice(None), 1)),
        ((slice(1, None),), (slice(-1),)),
    ],
    ids=["columns", "rows", "channels", "images"],
)
def test_neighbours_are_independent(one: tuple[slice, ...], other: tuple[slice, ...]) -> None:
    values = normal(np.arange(100, dtype=np.uint64), (3, 32, 32), CPU).double()
    a, b = values[one].flatten().numpy(), values[other].flatten().numpy()
    for f in (lambda x: x, np.abs):
        assert abs(np.corrcoef(f(a), f(b))[0, 1]) < 4.5 / math.sqrt(a.size)
    quarters = np.histogram2d(*(np.floor(4 * stats.norm.cdf(x)) for x in (a, b)), bins=4)[0]
    assert stats.chi2_contingency(quarters).pvalue > RARE
