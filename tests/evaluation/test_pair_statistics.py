"""Information between views: the bound against a loop, and estimates where the information is known."""

import math

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from setsup.errors import DataError, SetsupError
from setsup.evaluation.pair_statistics import PairStatistics, _bound, donsker_varadhan, view_information


def told(levels: int, noise: float = 0.1, images: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Two views that have a level in common, in different form, and nothing else."""
    dice = np.random.default_rng(0)
    level = dice.integers(0, levels, images)
    ramp = np.linspace(-1, 1, 8)
    first = level[:, None, None, None] / levels + dice.normal(0, noise, (images, 1, 8, 8))
    turn = 2 * np.pi * level / levels
    wave = np.cos(turn)[:, None, None] * ramp + np.sin(turn)[:, None, None] * ramp[:, None]
    return first, wave[:, None] + dice.normal(0, noise, (images, 2, 8, 8))


def loop(scores: np.ndarray) -> float:
    own = [scores[i, i] for i in range(len(scores))]
    others = [math.exp(scores[i, j]) for i in range(len(scores)) for j in range(len(scores)) if i != j]
    return float(np.mean(own) - math.log(np.mean(others)))


def test_the_bound_is_that_of_a_loop() -> None:
    scores = torch.randn(7, 7, generator=torch.Generator().manual_seed(0))
    assert math.isclose(float(donsker_varadhan(scores)), loop(scores.double().numpy()), rel_tol=1e-12)


def test_the_bound_of_many_images_is_that_of_all_their_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network, views = PairStatistics((1, 8, 8), (2, 9, 8), width=2), [torch.randn(11, 1, 8, 8), torch.randn(11, 2, 9, 8)]
    rows = np.arange(1, 11)
    with torch.no_grad():
        scores = np.array([[float(network(views[0][[i]], views[1][[j]])) for j in rows] for i in rows])
    monkeypatch.setattr("setsup.evaluation.pair_statistics._SCORED", 4)
    assert math.isclose(_bound(network, views, rows), loop(scores), abs_tol=1e-6)


@pytest.mark.long("trainings")
@pytest.mark.parametrize("levels", [1, 4])
def test_information_that_is_known(levels: int) -> None:
    found = view_information(*told(levels, images=800), steps=180, batch=64, rate=2e-3, width=4)
    assert abs(found.nats - math.log(levels)) < 0.12
    assert found.step in found.steps
    assert max(found.chosen_on) == found.chosen_on[found.steps.index(found.step)]


@pytest.mark.long("trainings")
def test_overfitting_does_not_raise_the_estimate() -> None:
    dice = np.random.default_rng(0)
    found = view_information(
        dice.normal(size=(120, 1, 8, 8)), dice.normal(size=(120, 1, 8, 8)), steps=150, batch=64, rate=3e-3
    )
    assert found.fit_nats > 1
    assert found.nats < 0.2


def test_it_is_a_function_of_the_seed_and_not_of_scale() -> None:
    one, other = told(4, images=100)
    options = {"steps": 6, "batch": 16, "width": 2, "measured": 2}
    first = view_information(one, other, seed=3, **options)
    assert first == view_information(one, other, seed=3, **options)
    assert first.nats != view_information(one, other, seed=4, **options).nats
    scaled = view_information(5 + 100 * one, other, seed=3, **options)
    assert math.isclose(first.nats, scaled.nats, abs_tol=1e-4)


def test_what_is_no_view_is_refused() -> None:
    one, other = told(2, images=20)
    with pytest.raises(DataError, match="20 images are too few"):
        view_information(one, other)
    with pytest.raises(DataError, match="the same number of images, not 19 and 20"):
        view_information(one[:19], other, batch=4)
    with pytest.raises(DataError, match=r"second must have shape \(n, channels, height, width\) with at least 8 × 8"):
        view_information(one, other[..., :7], batch=4)
    with pytest.raises(DataError, match="first contains numbers that are not finite"):
        view_information(np.where(one > 0.5, np.nan, one), other, batch=4)
    with pytest.raises(SetsupError, match="learning rate"):
        view_information(one, other, batch=4, rate=0)
