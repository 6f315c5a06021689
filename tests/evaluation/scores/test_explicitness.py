"""Explicitness of DCI-ES: areas by hand and by a fine sum, and codes that are easy and hard to read."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
from setsup.errors import DataError
from setsup.evaluation import curve_explicitness, explicitness

GRID = np.tile(np.indices((4, 4)).reshape(2, -1), 40).T


def test_published_extremes() -> None:
    sizes = [2, 4, 8, 16]
    curves = {"at once": [0.1] * 4, "evenly": [0.75, 0.5, 0.25, 0], "never": [0.75] * 4}
    found = [curve_explicitness(sizes, np.array([curve]).T, [0.75])[0] for curve in curves.values()]
    assert found == pytest.approx([1, 0, 1])
    # the later the loss falls, the less: at the last step alone -1 is the limit
    late = curve_explicitness(2.0 ** np.arange(1001), np.array([[0.75] * 1000 + [0]]).T, [0.75])
    assert late[0] == pytest.approx(-1, abs=2e-3)


def test_capacities_count_by_their_logarithm_whatever_its_base() -> None:
    curve = np.array([[0.6], [0.2], [0.1]])
    assert curve_explicitness([10, 100, 1000], curve, [0.6]) == pytest.approx(
        curve_explicitness([3, 9, 27], curve, [0.6])
    )


@pytest.mark.parametrize("seed", range(20))
def test_areas_are_those_of_a_fine_sum(seed: int) -> None:
    dice = np.random.default_rng(seed)
    count = int(dice.integers(2, 8))
    sizes, losses = np.cumsum(dice.uniform(0.5, 30, count)), dice.uniform(0, 1, (count, 2))
    baselines = dice.uniform(0.1, 2, 2)
    found = curve_explicitness(sizes, losses, baselines)
    at = np.linspace(np.log(sizes[0]), np.log(sizes[-1]), 20001)
    for factor in range(2):
        least = [min(losses[: i + 1, factor]) for i in range(count)]
        area = (np.interp(at, np.log(sizes), least) - least[-1]).mean()
        assert found[factor] == pytest.approx(1 - 2 * area / baselines[factor], abs=2e-4)


@pytest.mark.long("probes")
def test_codes_that_a_cut_reads_are_more_explicit_than_those_that_are_folded() -> None:
    dice = np.random.default_rng(0)
    straight = GRID + dice.uniform(-0.3, 0.3, GRID.shape)
    folded = np.stack(
        [np.sin(7 * straight[:, 0]) + straight[:, 1], np.cos(9 * straight[:, 1]) - straight[:, 0]], axis=1
    )
    easy, hard = explicitness(straight, GRID, depths=(1, 2, 4, 8)), explicitness(folded, GRID, depths=(1, 2, 4, 8))
    assert easy.value > hard.value + 0.05
    assert (easy.size, explicitness(np.tile(straight, 4), GRID, depths=(1, 2)).size) == (1, 0.25)
    assert easy.baselines.tolist() == [0.75, 0.75]
    assert easy.capacities.tolist() == [2, 4, 16, 256]
    assert easy.parts == pytest.approx(curve_explicitness(easy.capacities, easy.losses, easy.baselines))
    assert explicitness(straight, GRID, depths=(1, 2, 4, 8)).parts.tolist() == easy.parts.tolist()


@pytest.mark.parametrize(
    ("capacities", "losses", "baselines", "message"),
    [
        ([1], [[0.5]], [1], "two or more"),
        ([2, 2], [[0.5], [0.1]], [1], "rise"),
        ([0, 2], [[0.5], [0.1]], [1], "positive"),
        ([1, 2], [[0.5]], [1], r"shape \(2, k\)"),
        ([1, 2], [[0.5], [np.nan]], [1], "finite"),
        ([1, 2], [[0.5], [0.1]], [0], "above 0"),
    ],
)
def test_mistakes(capacities: list[float], losses: list[list[float]], baselines: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        curve_explicitness(capacities, losses, baselines)


@pytest.mark.parametrize("depths", [(2,), (2, 2), (0, 1)])
def test_depths_rise(depths: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="depths must be two or more integers"):
        explicitness(GRID, GRID, depths=depths)
