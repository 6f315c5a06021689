"""InfoMEC: constructed codes with known scores, its formulas by loops, its log-loss by a general optimiser."""

import logging
import math

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
from scipy.optimize import minimize
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import mutual_info_score

from setsup.errors import DataError
from setsup.evaluation import InfoMEC, infomec

GRID = np.tile(np.indices((4, 5)).reshape(2, -1), 20).T


def scores(found: InfoMEC) -> tuple[float, float, float]:
    return found.modularity, found.explicitness, found.compactness


@pytest.mark.parametrize("discrete", [False, True])
def test_a_code_for_each_factor(discrete: bool) -> None:
    dice = np.random.default_rng(0)
    codes = GRID * [1.0, -3.0] + (0 if discrete else dice.uniform(-0.2, 0.2, GRID.shape))
    found = infomec(codes, GRID, discrete=discrete)
    assert scores(found) == pytest.approx((1, 1, 1), abs=0.06)
    assert found.information.diagonal() == pytest.approx(1, abs=0.05)
    assert found.active.all()
    assert not found.left_out.any()


def test_two_codes_of_each_factor_are_modular_and_half_compact() -> None:
    found = infomec(np.concatenate([GRID, 10 - GRID], axis=1), GRID, discrete=True)
    assert found.modularity == pytest.approx(1)
    assert found.compactness == pytest.approx((1 / 2 - 1 / 4) / (1 - 1 / 4))


def test_codes_that_tell_all_factors_alike_are_compact_only() -> None:
    factors = np.tile(np.indices((4, 4)).reshape(2, -1), 20).T
    both = factors @ [[4], [1]]
    found = infomec(np.concatenate([both, 3 * both + 1, 0 * both], axis=1), factors, discrete=True)
    assert found.active.tolist() == [True, True, False]
    assert found.modularity == pytest.approx(0)
    assert found.compactness == pytest.approx(0), "two codes that tell the same share the factors"
    assert found.explained == pytest.approx([1, 1], abs=0.05)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_active_codes_score_0_with_a_warning(count: int, caplog: pytest.LogCaptureFixture) -> None:
    codes = np.zeros((len(GRID), 3))
    codes[:, :count] = GRID[:, :count]
    with caplog.at_level(logging.WARNING):
        found = infomec(codes, GRID)
    assert (found.modularity, found.compactness) == (0, 0)
    assert f"{count} of 3 codes are active" in caplog.text


def test_codes_of_a_twentieth_of_the_largest_range_are_inactive() -> None:
    codes = GRID[:, [0, 0, 0]] / 3 * [1, 0.0501, 0.05]
    assert infomec(codes, GRID).active.tolist() == [True, True, False]


def by_loops(information: np.ndarray, active: np.ndarray) -> tuple[float, float]:
    rows = [row for row, counts in zip(information.tolist(), active, strict=True) if counts]
    factors, codes = len(rows[0]), len(rows)
    modular = sum(max(row) / sum(row) if sum(row) else 1 / factors for row in rows) / codes
    columns = list(zip(*rows, strict=True))
    compact = sum(max(column) / sum(column) if sum(column) else 1 / codes for column in columns) / factors
    return (modular - 1 / factors) / (1 - 1 / factors), (compact - 1 / codes) / (1 - 1 / codes)


@pytest.mark.long("probes")
@pytest.mark.parametrize(("discrete", "cases"), [(False, 8), (True, 40)])
def test_formulas_of_random_codes(discrete: bool, cases: int) -> None:
    for seed in range(cases):
        dice = np.random.default_rng(seed)
        rows, count, wide = 60, int(dice.integers(2, 4)), int(dice.integers(2, 5))
        factors = dice.integers(0, dice.integers(2, 5, count), (rows, count))
        factors[:4] = np.arange(4)[:, None] % 2
        codes = factors @ dice.normal(size=(count, wide)) + dice.normal(size=(rows, wide)) * dice.uniform(0.1, 2)
        codes = np.round(codes) if discrete else codes
        standard = (codes - codes.mean(axis=0)) / codes.std(axis=0)  # counts of neighbours depend on the last bits
        found = infomec(codes, factors, discrete=discrete)
        for j in range(count):
            entropy = mutual_info_score(factors[:, j], factors[:, j])
            for i in range(wide):
                wanted = (
                    mutual_info_score(codes[:, i], factors[:, j])
                    if discrete
                    else mutual_info_classif(standard[:, [i]], factors[:, j], n_neighbors=10, random_state=0)[0]
                )
                assert found.information[i, j] == pytest.approx(wanted / entropy, abs=1e-9)
        ranges = np.ptp(codes, axis=0)
        assert found.active.tolist() == (ranges > (0 if discrete else ranges.max() / 20)).tolist()
        if found.active.sum() > 1:
            assert (found.modularity, found.compactness) == pytest.approx(by_loops(found.information, found.active))


def test_explicitness_is_that_of_the_best_balanced_classifier() -> None:
    """With classes that overlap the loss has one minimum, which a general optimiser finds too."""
    dice = np.random.default_rng(3)
    factors = np.stack([dice.choice(3, 300, p=[0.6, 0.3, 0.1]), dice.integers(0, 2, 300)], axis=1)
    codes = factors + dice.normal(size=(300, 2))
    found, standard = infomec(codes, factors), (codes - codes.mean(0)) / codes.std(0)
    for j, levels in enumerate((3, 2)):
        right, weight = factors[:, j], 1 / np.bincount(factors[:, j])[factors[:, j]]

        def losses(flat: np.ndarray, levels: int = levels, right: np.ndarray = right) -> np.ndarray:
            table = flat.reshape(3, levels)
            logits = standard @ table[:2] + table[2]
            return np.logaddexp.reduce(logits, axis=1) - logits[np.arange(300), right]

        best = minimize(lambda flat: (weight * losses(flat)).sum(), np.zeros(3 * levels))  # noqa: B023
        wanted = 1 - losses(best.x).mean() / math.log(levels)
        assert found.explained[j] == pytest.approx(wanted, abs=1e-3)
    assert found.explicitness == pytest.approx(found.explained.mean())


def test_unknown_rows_count_for_the_other_factors_only() -> None:
    factors = GRID.copy()
    factors[::3, 1] = -1
    found = infomec(GRID, factors, discrete=True)
    assert found.left_out.tolist() == [0, len(GRID[::3])]
    known = factors[:, 1] >= 0
    alone = infomec(GRID[known], factors[known], discrete=True)
    assert found.information[:, 1] == pytest.approx(alone.information[:, 1])
    assert found.information[:, 0] == pytest.approx(infomec(GRID, GRID, discrete=True).information[:, 0])


@pytest.mark.parametrize(
    ("codes", "factors", "message"),
    [
        (GRID, GRID[:, :1], "two or more factors"),
        (GRID[:, 0], GRID, r"\(n, d\)"),
        (GRID[:-1], GRID, "one row for each embedding"),
        (np.where(GRID == 3, np.nan, GRID), GRID, "not finite"),
        (GRID, GRID * [1, 0], "factor 1 requires at least two known levels"),
    ],
)
def test_mistakes(codes: np.ndarray, factors: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        infomec(codes, factors)
