"""Held-out classifiers where the information is known."""

import math

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch")

from setsup.evaluation import probe_information  # noqa: E402
from tests.evaluation import channels  # noqa: E402

QUICK = {"steps": 500, "rate": 5e-3}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
def test_binary_symmetric_channel_under_noise(sigma: float) -> None:
    levels, codes = channels.sent(channels.symmetric(2, 0.1), 20_000)
    found = probe_information(codes, levels, sigma=sigma, **QUICK)
    assert found.nats[0] == pytest.approx(channels.two_codes(0.1, sigma), abs=0.04)
    crossed = 0.5 * math.erfc(1 / math.sqrt(2) / sigma / math.sqrt(2))  # half of √2 away
    assert found.accuracy[0] == pytest.approx(0.9 * (1 - crossed) + 0.1 * crossed, abs=0.03)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("channel", [channels.symmetric(4, 0.3), channels.erasure(4, 0.3)])
def test_channels_of_four_levels(channel: np.ndarray) -> None:
    levels, codes = channels.sent(channel, 20_000)
    found = probe_information(codes, levels, sigma=0.05, **QUICK)
    assert found.nats[0] == pytest.approx(channels.without_noise(channel), abs=0.05)
    assert found.ceilings[0] == math.log(4)


@pytest.mark.long("large or genuine files")
def test_independent_factors_with_unequal_levels_have_none() -> None:
    rng = np.random.default_rng(0)
    points, factor = rng.standard_normal((8000, 3)), rng.choice(3, 8000, p=[0.8, 0.15, 0.05])
    assert probe_information(points, factor, **QUICK).nats[0] == pytest.approx(0, abs=0.04)


@pytest.mark.long("large or genuine files")
def test_what_was_learned_by_heart_does_not_count() -> None:
    rng = np.random.default_rng(0)
    points, factor = rng.standard_normal((300, 20)), rng.integers(0, 4, 300)
    assert probe_information(points, factor, sigma=0, batch=64, **QUICK).nats[0] < 0.05


def test_each_factor_is_as_if_alone_whatever_its_codes_are() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (400, 2))
    points = np.eye(3)[factors[:, 0]]
    factors[:50, 1] = -1
    how = {"steps": 20, "batch": 64, "seed": 9}
    found = probe_information(points, factors, **how)
    assert found.left_out.tolist() == [0, 50]
    for at in range(2):
        column = factors[:, at]
        alone = probe_information(points, np.where(column < 0, -1, 5 + 4 * column), **how).nats[0]
        assert found.nats[at] == pytest.approx(alone, abs=1e-5)
        assert alone == probe_information(points, np.where(column < 0, np.nan, column), **how).nats[0]


def test_estimates_are_a_function_of_the_seed() -> None:
    levels, codes = channels.sent(channels.symmetric(2, 0.1), 400)
    first = probe_information(codes, levels, steps=5)
    torch.manual_seed(5)
    assert first.nats[0] == probe_information(codes, levels, steps=5).nats[0]
    assert first.nats[0] != probe_information(codes, levels, steps=5, seed=1).nats[0]


def test_factors_without_a_choice_have_no_information() -> None:
    found = probe_information(np.zeros((300, 2)), np.full(300, 3))
    assert (found.nats[0], found.ceilings[0], found.accuracy[0]) == (0, 0, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"steps": 0}, "steps"),
        ({"batch": 0}, "batch"),
        ({"sigma": [1.0, 2.0]}, "sigma must be a number"),
        ({"held_out": 0}, "held_out"),
        ({"held_out": 1.0}, "held_out"),
        ({"held_out": 1e-4}, "0 held out"),
        ({"rate": -1.0}, "rate"),
    ],
)
def test_options_out_of_range_are_refused(options, said: str) -> None:
    with pytest.raises(SetsupError, match=said):
        probe_information(np.zeros((300, 2)), np.arange(300) % 3, **options)


def test_continuous_factors_are_refused() -> None:
    with pytest.raises(DataError, match="a probe requires classes"):
        probe_information(np.zeros((300, 2)), np.linspace(0, 1, 300))
    with pytest.raises(DataError, match="known in 200 rows, but a batch of 256"):
        probe_information(np.zeros((200, 2)), np.arange(200) % 3)
