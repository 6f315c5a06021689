"""Orbits in embeddings: distances against loops over pairs and scipy's test of ranks, canonical members by hand."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import mannwhitneyu

from setsup.errors import DataError
from setsup.evaluation import canonical_retrieval, orbit_distances, orbits, peak_signal_to_noise

DICE = np.random.default_rng(3)


def ragged(rows: int = 60, whole: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Points of orbits of 1 to 20 rows in any order, on a lattice with many equal distances if asked for."""
    codes = DICE.permutation(np.repeat([2, 3, 5, 8, 9], [20, 1, rows - 33, 1, 11]))
    points = DICE.normal(size=(rows, 4)) + DICE.normal(size=(10, 4))[codes]
    return (np.rint(points * 2) if whole else points), codes


@pytest.mark.parametrize("whole", [False, True])
def test_distances_are_those_of_all_pairs(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orbits, "_BLOCK", 500)  # several blocks of rows
    points, codes = ragged(whole=whole)
    found = orbit_distances(points, codes)
    pairs = np.array(list(combinations(range(len(points)), 2)))
    distances = pdist(points)
    same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
    for part, wanted in ((found.within, same), (found.between, ~same)):
        expected = distances[wanted]
        assert part.pairs == wanted.sum()
        assert part.mean == pytest.approx(expected.mean(), rel=1e-6)
        assert part.root_mean_square == pytest.approx(np.sqrt((expected**2).mean()), rel=1e-6)
        assert part.quantiles == pytest.approx(np.quantile(expected, [0.05, 0.25, 0.5, 0.75, 0.95]), rel=1e-6)
    assert found.ratio == pytest.approx(distances[same].mean() / distances[~same].mean(), rel=1e-6)
    exact = np.round(distances, 9)  # scipy's own rounding parts equal distances
    statistic = mannwhitneyu(exact[~same], exact[same]).statistic
    assert found.auc == pytest.approx(statistic / same.sum() / (~same).sum(), rel=1e-9)
    if whole:
        assert len(np.unique(exact)) < len(exact) / 4


def test_root_mean_squares_are_those_of_the_moments() -> None:
    points, codes = ragged()
    found = orbit_distances(points, codes)

    def squares(some: np.ndarray) -> float:
        """Sum of the squared distances of all pairs: n Σ ‖x‖² − ‖Σ x‖²."""
        return len(some) * (some**2).sum() - (some.sum(0) ** 2).sum()

    within = sum(squares(points[codes == code]) for code in set(codes))
    assert found.within.root_mean_square**2 * found.within.pairs == pytest.approx(within, rel=1e-5)
    assert found.between.root_mean_square**2 * found.between.pairs == pytest.approx(squares(points) - within, rel=1e-5)


def test_each_orbit_has_its_own_means_and_single_ones_none_within() -> None:
    points, codes = ragged()
    found = orbit_distances(points, codes)
    assert found.orbits.tolist() == [2, 3, 5, 8, 9]
    assert found.sizes.tolist() == [20, 1, 27, 1, 11]
    assert found.single == 2
    for place, code in enumerate(found.orbits):
        own, others = points[codes == code], points[codes != code]
        across = np.linalg.norm(own[:, None] - others, axis=-1)
        assert found.between_each[place] == pytest.approx(across.mean(), rel=1e-6)
        if len(own) > 1:
            assert found.within_each[place] == pytest.approx(pdist(own).mean(), rel=1e-6)
        else:
            assert np.isnan(found.within_each[place])


def test_scale_shift_and_rows_of_no_orbit_change_nothing() -> None:
    points, codes = ragged()
    found = orbit_distances(points, codes)
    other = orbit_distances(1e3 * np.append(points, np.full((4, 4), 9e9), 0) + 7, np.append(codes, [-1] * 4))
    assert (other.ratio, other.auc) == pytest.approx((found.ratio, found.auc), rel=1e-6)
    assert other.within.root_mean_square / other.between.root_mean_square == pytest.approx(
        found.within.root_mean_square / found.between.root_mean_square, rel=1e-6
    )


def test_invariant_and_constant_embeddings_are_exact() -> None:
    codes = np.repeat(np.arange(6), 5)
    points = DICE.normal(size=(6, 512)).astype(np.float32)[codes] + 100  # whose products do not cancel exactly
    found = orbit_distances(points, codes)
    assert (found.ratio, found.auc, found.within.mean) == (0, 1, 0)
    same = orbit_distances(np.full((30, 3), 0.1), codes)
    assert (same.auc, same.between.mean) == (0.5, 0)
    assert np.isnan(same.ratio)


@pytest.mark.parametrize("codes", [[0, 0, 0, 0], [0, 1, 2, 3], [0, 0, -1, -1]])
def test_distances_need_two_orbits_and_two_members(codes: list[int]) -> None:
    with pytest.raises(DataError, match="require at least two orbits, and one orbit with at least two rows"):
        orbit_distances(np.eye(4), codes)


def test_the_nearest_canonical_is_the_one_of_a_loop() -> None:
    canonicals, members = DICE.normal(size=(7, 3)), DICE.normal(size=(50, 3))
    own = DICE.integers(0, 7, 50)
    found = canonical_retrieval(members, canonicals, own)
    nearest = [min(range(7), key=lambda one: np.linalg.norm(member - canonicals[one])) for member in members]
    assert found.nearest.tolist() == nearest
    assert found.own.tolist() == [float(one == right) for one, right in zip(nearest, own, strict=True)]
    assert found.share == pytest.approx(np.mean(nearest == own))
    assert found.chance == pytest.approx(1 / 7)


def test_of_equally_near_canonicals_one_is_taken_by_chance() -> None:
    found = canonical_retrieval(np.full((3, 2), 0.3), np.full((4, 2), 0.3), [0, 1, 3])
    assert found.share == found.chance == 0.25
    assert canonical_retrieval([[0.0], [0.0]], [[1.0], [-1.0], [2.0]], [1, 2]).own.tolist() == [0.5, 0]


def test_canonicals_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="must have embeddings with the same number of dimensions, not 2 and 3"):
        canonical_retrieval(np.eye(2), np.eye(3), [0, 1])
    with pytest.raises(DataError, match="row numbers of canonicals from 0 to 1, not numbers from -1 to 0"):
        canonical_retrieval(np.eye(2), np.eye(2), [0, -1])


def test_peak_signal_to_noise_is_in_decibels() -> None:
    assert peak_signal_to_noise(1e-3) == pytest.approx(30)
    assert peak_signal_to_noise(1) == 0
    assert peak_signal_to_noise(0) == np.inf
    with pytest.raises(DataError, match="0 or more"):
        peak_signal_to_noise(-1)
