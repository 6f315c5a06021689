"""MIG, modularity and SAP: closed forms, tables by hand, and what must not change them."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
from setsup.errors import DataError, SetsupError
from setsup.evaluation.held_out import held_out
from setsup.evaluation.scores import discretise, mig, modularity, mutual_information, sap

thresholds = partial(sap, learner="thresholds")
GRID = np.indices((4, 3, 5)).reshape(3, -1).T  # every combination once: factors are exactly independent


def slow_information(bins, levels) -> float:
    """By entropies, from dictionaries."""

    def entropy(things):
        counts = {thing: things.count(thing) for thing in things}
        return -sum(c / len(things) * math.log(c / len(things)) for c in counts.values())

    known = [(int(b), int(v)) for b, v in zip(bins, levels, strict=True) if v >= 0]
    return entropy([b for b, _ in known]) + entropy([v for _, v in known]) - entropy(known)


def keyed(rows: int, columns: int, levels: int, seed: int = 1):
    """Whole numbers without an order that a factor might have."""
    cells = np.arange(rows * columns).reshape(rows, columns) + 97 * seed
    return (np.floor(1e4 * np.abs(np.sin(cells * 12.9898))) % levels).astype(np.int64)


def test_bins_have_their_lower_edge_and_the_last_both() -> None:
    found = discretise(np.array([[-1.0, 7.0], [-0.51, 7.0], [-0.5, 7.0], [0.0, 7.0], [1.0, 7.0]]), bins=4)
    assert found.T.tolist() == [[0, 0, 1, 2, 3], [0, 0, 0, 0, 0]]


def test_information_equals_the_sum_of_entropies() -> None:
    bins, factors = keyed(200, 3, 6), keyed(200, 2, 4, seed=5) - 1
    expected = [[slow_information(b, v) for v in factors.T] for b in bins.T]
    np.testing.assert_allclose(mutual_information(bins, factors), expected, atol=1e-12)


def test_information_of_a_binary_symmetric_channel() -> None:
    # 100 of each input, 11 of which arrive wrong: ln 2 − H(0.11)
    sent = np.repeat([0, 1], 100)
    got = np.where(np.tile(np.arange(100) < 11, 2), 1 - sent, sent)
    expected = math.log(2) + 0.11 * math.log(0.11) + 0.89 * math.log(0.89)
    assert mutual_information(got[:, None], sent[:, None]).item() == pytest.approx(expected, abs=1e-12)


def test_perfect_codes() -> None:
    for codes in (GRID, GRID[:, [2, 0, 1]] * [-3.0, 0.01, 5.0] + 7):
        assert mig(codes, GRID).value == pytest.approx(1)
        assert modularity(codes, GRID).value == 1
        assert sap(codes, GRID, linear=True).value == pytest.approx(1)
        np.testing.assert_allclose(thresholds(codes, GRID).parts, [3 / 4, 2 / 3, 4 / 5])  # 1 − 1/levels


def test_codes_that_are_independent_of_all_factors() -> None:
    factors = GRID[:, :2]
    codes = np.stack([GRID[:, 2], GRID[:, 2] % 2], axis=1)
    assert mig(codes, factors).value == 0
    assert modularity(codes, factors).value == 0
    assert thresholds(codes, factors).value == pytest.approx(0)
    assert sap(codes, factors, linear=True).value == pytest.approx(0)


def test_a_duplicated_code_closes_the_gaps_and_stays_modular() -> None:
    codes = np.concatenate([GRID, GRID], axis=1)
    assert mig(codes, GRID).value == 0
    assert thresholds(codes, GRID).value == sap(codes, GRID, linear=True).value == 0
    assert modularity(codes, GRID).value == 1


def test_one_code_for_two_factors() -> None:
    factors = np.indices((4, 4)).reshape(2, -1).T
    code = (4 * factors[:, :1] + factors[:, 1:]).astype(float)
    assert modularity(code, factors).value == pytest.approx(0)  # it tells ln 4 of both
    assert mig(code, factors).value == pytest.approx(1)  # which MIG does not mind
    # R² of 4a + b: the share of each in the variance
    np.testing.assert_allclose(sap(code, factors, linear=True).parts, [16 / 17, 1 / 17])


def test_rotated_codes_close_the_gaps() -> None:
    factors = np.indices((4, 4)).reshape(2, -1).T
    turned = np.stack([factors[:, 0] + factors[:, 1], factors[:, 0] - factors[:, 1]], axis=1) / math.sqrt(2)
    assert mig(turned, factors).value == pytest.approx(0, abs=1e-12)
    assert modularity(turned, factors).value == pytest.approx(0, abs=1e-12)
    assert thresholds(turned, factors).value == pytest.approx(0, abs=1e-12)
    assert sap(turned, factors, linear=True).value == pytest.approx(0, abs=1e-12)


def test_a_table_by_hand() -> None:
    # code 0 is the first factor but for one row of four in each level; code 1 is constant
    factors = np.array([[0, 0], [0, 1], [0, 0], [0, 1], [1, 0], [1, 1], [1, 0], [1, 1]])
    codes = np.array([[0, 5], [0, 5], [0, 5], [1, 5], [1, 5], [1, 5], [1, 5], [0, 5]], dtype=float)
    told = math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25)
    # of the second factor: bins 0 and 1 hold (2, 2) each, so nothing
    found = mig(codes, factors)
    np.testing.assert_allclose(found.parts, [told / math.log(2), 0], atol=1e-12)
    assert found.value == pytest.approx(told / math.log(2) / 2)
    np.testing.assert_allclose(thresholds(codes, factors).parts, [0.75 - 0.5, 0])
    np.testing.assert_allclose(sap(codes, factors, linear=True).parts, [0.25, 0], atol=1e-12)  # correlation ½
    assert modularity(codes, factors).parts.tolist() == [1, 0]


def test_modularity_by_hand() -> None:
    # information about the two factors: ln 2 and (ln 2 less the entropy of a quarter)
    factors = np.array([[0, 0], [0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 1], [1, 0]])
    told = math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25)
    expected = 1 - (told / math.log(2)) ** 2
    assert modularity(factors[:, :1], factors).value == pytest.approx(expected)


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(3)), st.tuples(*[st.sampled_from([-4.0, -0.5, 1.0, 8.0])] * 3), st.integers(0, 50))
def test_order_sign_and_scale_of_codes_do_not_matter(order, scale, seed) -> None:
    # midway between edges of 20 bins over the whole range, so that no sign moves a code across one
    codes = np.concatenate([np.full((1, 3), 0.0), np.full((1, 3), 20.0), keyed(58, 3, 20, seed) + 0.5])
    factors = keyed(60, 2, 3, seed + 100)
    changed = codes[:, list(order)] * scale
    for score in (mig, thresholds, modularity):
        assert score(changed, factors).value == pytest.approx(score(codes, factors).value, abs=1e-12)
    assert sap(changed, factors, linear=True).value == pytest.approx(sap(codes, factors, linear=True).value)


def test_names_of_levels_do_not_matter_but_to_linear_sap() -> None:
    codes, factors = keyed(90, 3, 20) * 1.0, keyed(90, 2, 4, seed=3)
    renamed = np.array([7, 0, 100, 2])[factors]
    for score in (mig, thresholds, modularity):
        assert score(codes, renamed).value == pytest.approx(score(codes, factors).value)


def test_unknown_rows_are_left_out_and_counted() -> None:
    factors, codes = keyed(90, 2, 4, seed=3), keyed(90, 3, 20) * 1.0
    factors[::9, 1] = -1
    for score in (mig, thresholds):
        found = score(codes, factors)
        assert found.left_out.tolist() == [0, 10]
        kept = np.ones(90, dtype=bool)
        kept[::9] = False
        bounds = np.stack([codes.min(axis=0), codes.max(axis=0)])  # bins are those of all rows
        assert (codes[kept].min(axis=0) == bounds[0]).all()
        assert (codes[kept].max(axis=0) == bounds[1]).all()
        assert found.parts[1] == pytest.approx(score(codes[kept], factors[kept, 1:]).value)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("score", [mig, sap, modularity])
def test_bad_input_is_refused_in_a_sentence(score) -> None:
    good = GRID.astype(float)
    with pytest.raises(DataError, match="one row per image"):
        score(good[:, 0], GRID)
    with pytest.raises(DataError, match="row 2 of 60 in codes contains a value that is not finite"):
        score(np.where(np.arange(60)[:, None] == 2, np.nan, good), GRID)
    with pytest.raises(DataError, match="one row for each embedding"):
        score(good, GRID[:-1])
    with pytest.raises(DataError, match="integer codes"):
        score(good, GRID * 1.0)
    with pytest.raises(DataError, match=r"-1 for unknown values, not -2"):
        score(good, GRID - 2)
    with pytest.raises(DataError, match="factor 1 requires at least two known levels among 60 rows, not 1"):
        score(good, GRID * [1, 0, 1])
    with pytest.raises(SetsupError, match="bins must be an integer of at least 2, not 1"):
        score(good, GRID, bins=1)


def test_modularity_needs_two_factors() -> None:
    with pytest.raises(DataError, match="requires at least two factors"):
        modularity(GRID * 1.0, GRID[:, :1])


def test_the_support_vector_is_that_of_scikit_learn() -> None:
    svm = pytest.importorskip("sklearn.svm", reason="scikit-learn is not installed")
    factors = np.tile(GRID[:, :2], (5, 1))
    codes = np.concatenate([factors, GRID[:, :1].repeat(5, axis=0)], axis=1) + np.sin(np.arange(900)).reshape(-1, 3)
    codes[:, 2] = 1.0
    found = sap(codes, factors, seed=2)
    for at, column in enumerate(factors.T):
        test = held_out(300, 2, column)
        right = []
        for code in codes.T:
            model = svm.LinearSVC(C=0.01, class_weight="balanced", random_state=0)
            right.append(model.fit(code[~test, None], column[~test]).score(code[test, None], column[test]))
        assert found.parts[at] == pytest.approx(np.sort(right)[-1] - np.sort(right)[-2])
    assert 0 < found.value == pytest.approx(found.parts.mean())
    assert [sap(codes, factors, **how).learner for how in ({}, {"linear": True}, {"learner": "thresholds"})] == [
        "svm",
        "correlation",
        "thresholds",
    ]


def test_of_one_code_the_second_is_a_constant_that_names_the_commonest_level() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    levels = np.repeat([0, 1], [30, 70])
    assert sap(10.0 * levels[:, None], levels[:, None]).value == pytest.approx(1 - 0.7)


def test_a_learner_that_there_is_not() -> None:
    with pytest.raises(SetsupError, match=r"^the learner must be one of svm, thresholds, not 'forest'"):
        sap(GRID, GRID, learner="forest")  # type: ignore[arg-type]
