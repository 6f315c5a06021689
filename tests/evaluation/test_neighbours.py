"""Nearest-neighbour estimators: against counting over all pairs, and where the information is known."""

import math

import numpy as np
import pytest
from scipy.special import digamma

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch")

from setsup.evaluation import neighbour_information  # noqa: E402
from tests.evaluation import channels  # noqa: E402


def scaled(points: np.ndarray) -> np.ndarray:
    centred = points - points.mean(axis=0)
    return centred / math.sqrt((centred**2).mean())


def apart(points: np.ndarray) -> np.ndarray:
    return np.abs(points[:, None] - points[None]).max(axis=-1)


def kraskov(points: np.ndarray, values: np.ndarray, k: int) -> float:
    x, y = apart(scaled(points)), apart(scaled(values[:, None]))
    both = np.maximum(x, y)
    radius = np.sort(both, axis=1)[:, k]  # column 0 is the row itself
    inside = [(some < radius[:, None]).sum(axis=1) - 1 for some in (x, y)]
    return float(digamma(k) + digamma(len(x)) - sum(digamma(count + 1).mean() for count in inside))


def ross(points: np.ndarray, levels: np.ndarray, k: int) -> float:
    sizes = np.bincount(levels)[levels]
    points, levels = points[sizes > 1], levels[sizes > 1]
    x, terms = apart(points), []
    for row, level in enumerate(levels):
        mates = np.sort(x[row][levels == level])
        some = min(k, len(mates) - 1)
        within = np.count_nonzero(x[row] <= mates[some]) - 1
        terms.append(digamma(some) - digamma(len(mates)) - digamma(within))
    return float(digamma(len(x)) + np.mean(terms))


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("dimension", [1, 3])
def test_continuous_factors_as_counted_over_all_pairs(k: int, dimension: int) -> None:
    rng = np.random.default_rng(k)
    points = rng.standard_normal((300, dimension)) * 5
    values = points[:, 0] / 3 + rng.standard_normal(300)
    found = neighbour_information(points, values, neighbours=k).nats[0]
    assert found == pytest.approx(kraskov(points, values, k), abs=1e-9)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_discrete_factors_as_counted_over_all_pairs(k: int) -> None:
    rng = np.random.default_rng(k)
    levels = np.concatenate([rng.integers(0, 5, 290), [5, 5, 5, 6, 6, 7]])
    points = rng.standard_normal((296, 2)) + levels[:, None]
    found = neighbour_information(points, levels, neighbours=k)
    assert found.nats[0] == pytest.approx(ross(points, levels, k), abs=1e-9)
    assert found.left_out[0] == 1  # level 7 has one row
    assert found.ceilings[0] == math.log(8)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_correlated_gaussians(rho: float) -> None:
    x, y, wanted = channels.gaussians(rho, 4000)
    assert neighbour_information(x, y).nats[0] == pytest.approx(wanted, abs=0.05)
    # a linear map of either side changes nothing
    assert neighbour_information(100 * x + 7, -y / 9).nats[0] == pytest.approx(wanted, abs=0.05)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
def test_binary_symmetric_channel_under_noise(sigma: float) -> None:
    levels, codes = channels.sent(channels.symmetric(2, 0.1), 4000)
    wanted = channels.two_codes(0.1, sigma)
    assert neighbour_information(codes, levels, sigma=sigma).nats[0] == pytest.approx(wanted, abs=0.04)


@pytest.mark.parametrize("channel", [channels.symmetric(4, 0.3), channels.erasure(4, 0.3)])
def test_channels_of_four_levels(channel: np.ndarray) -> None:
    levels, codes = channels.sent(channel, 4000)
    found = neighbour_information(codes, levels, sigma=0.05).nats[0]
    assert found == pytest.approx(channels.without_noise(channel), abs=0.05)


def test_several_factors_are_each_as_if_alone_and_unknown_rows_are_left_out() -> None:
    rng = np.random.default_rng(0)
    points, factors = rng.standard_normal((400, 2)), rng.integers(0, 3, (400, 2))
    factors[:50, 1] = -1
    found = neighbour_information(points, factors, sigma=0.5, seed=4)
    assert found.left_out.tolist() == [0, 50]
    for at in range(2):
        assert found.nats[at] == neighbour_information(points, factors[:, at], sigma=0.5, seed=4).nats[0]


def test_ties_and_equal_embeddings_give_finite_numbers() -> None:
    levels = np.arange(200) % 4
    assert neighbour_information(np.zeros((200, 2)), levels).nats[0] == pytest.approx(0, abs=0.2)
    assert neighbour_information(np.eye(4)[levels], levels).nats[0] == pytest.approx(math.log(4), abs=0.05)
    assert np.isfinite(neighbour_information(np.eye(4)[levels], levels.astype(float)).nats[0])


def test_factors_without_a_choice_have_no_information() -> None:
    points = np.random.default_rng(0).standard_normal((50, 2))
    assert neighbour_information(points, np.full(50, 3)).nats[0] == 0
    assert neighbour_information(points, np.full(50, 0.5)).nats[0] == 0
    alone = neighbour_information(points, np.arange(50))
    assert (alone.nats[0], alone.left_out[0]) == (0, 50)


def test_bad_options_are_refused() -> None:
    points, levels = np.zeros((5, 1)), np.arange(5)
    with pytest.raises(SetsupError, match="neighbours must be an integer"):
        neighbour_information(points, levels, neighbours=0)
    with pytest.raises(SetsupError, match="sigma must be a finite number"):
        neighbour_information(points, levels, sigma=[1, 2])
    with pytest.raises(DataError, match="known in 5 rows, but 5 neighbours requires at least 6"):
        neighbour_information(points, levels, neighbours=5)
