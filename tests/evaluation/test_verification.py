"""Area under the ROC curve over all pairs against scikit-learn, and top-1 against a loop."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError
from setsup.evaluation import distances, identity_retrieval, nearest, shared_keys, verification, verification_auc

metrics = pytest.importorskip("sklearn.metrics")


def by_scikit_learn(points: Any, identities: Any) -> float:
    one, other = np.triu_indices(len(points), 1)
    apart = ((points[one] - points[other]) ** 2).sum(axis=1)
    return float(metrics.roc_auc_score(identities[one] == identities[other], -apart))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 3, 12]), st.sampled_from([1.0, 0.1]), st.sampled_from([0.0, 1e6]))
def test_area_equals_that_of_all_pairs_with_ties(seed: int, many: int, unit: float, far: float) -> None:
    """Two identities have more same pairs than different ones at times, and the others fewer."""
    dice = np.random.default_rng(seed)
    identities = dice.integers(0, many, 40)
    identities[:3] = 0, 0, 1
    points = dice.integers(0, 3, (40, 3)) * unit + far
    found = verification_auc(points, identities)
    assert found.auc == pytest.approx(by_scikit_learn(points, identities), abs=1e-14)
    assert found.same == sum(np.bincount(identities) * (np.bincount(identities) - 1)) // 2
    assert found.same + found.different == 40 * 39 // 2


@pytest.mark.parametrize(("block", "stored"), [(1 << 22, 1 << 26), (37, 11), (1, 1), (500, 1 << 26)])
@pytest.mark.parametrize("many", [2, 9])
def test_blocks_do_not_change_it(block: int, stored: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(0)
    identities = np.arange(60) % many if many == 9 else (np.arange(60) > 50).astype(int)
    points = np.round(dice.standard_normal((60, 4)), 1)
    expected = verification_auc(points, identities)
    for module, name, value in ((verification, "_BLOCK", block), (verification, "_STORED", stored)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(distances, "_BLOCK", block)
    assert verification_auc(points, identities) == expected
    assert expected.auc == pytest.approx(by_scikit_learn(points, identities), abs=1e-14)


def test_equal_images_are_ties_whatever_their_numbers() -> None:
    """Products of such rows differ from 0 by rounding."""
    row = np.random.default_rng(0).standard_normal((1, 300)) * 1e3
    points = np.concatenate([row, row, row, row + 1e-5])
    assert verification_auc(points, [0, 0, 1, 1]).auc == by_scikit_learn(points, np.array([0, 0, 1, 1]))


def test_random_embeddings_are_at_chance_and_separate_ones_are_right() -> None:
    identities = np.arange(300) % 20
    assert verification_auc(np.random.default_rng(0).standard_normal((300, 5)), identities).auc == pytest.approx(
        0.5, abs=0.03
    )
    assert verification_auc(identities[:, None], identities).auc == 1.0
    assert verification_auc(np.zeros((300, 1)), identities).auc == 0.5


def test_area_of_directions() -> None:
    dice = np.random.default_rng(1)
    points, identities = dice.standard_normal((50, 4)), np.arange(50) % 5
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    assert verification_auc(points, identities, metric="cosine") == verification_auc(unit, identities)


@pytest.mark.parametrize("block", [1 << 22, 20])
def test_top_1_equals_a_loop_with_the_gallery_rule(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_BLOCK", block)
    dice = np.random.default_rng(0)
    identities = np.repeat(np.arange(5), 12)
    conditions = np.stack([np.tile(np.repeat(np.arange(4), 3), 5), np.tile(np.arange(3), 20)], axis=1)
    kept = dice.random(60) < 0.7
    kept[48:] = [True, True, True] + [False] * 9  # one identity has a single view
    identities, conditions = identities[kept], conditions[kept]
    conditions[4, 0] = -1
    points = dice.standard_normal((kept.sum(), 3)) + identities[:, None] / 3
    right, left_out = [], 0
    for query in range(len(points)):
        shared = (conditions == conditions[query]) & (conditions[query] >= 0)
        gallery = [
            row
            for row in range(len(points))
            if row != query and not (identities[row] == identities[query] and shared[row].any())
        ]
        if not (identities[gallery] == identities[query]).any():
            left_out += 1
            continue
        apart = ((points[gallery] - points[query]) ** 2).sum(axis=1)
        right.append(identities[gallery[int(apart.argmin())]] == identities[query])
    found = identity_retrieval(points, identities, conditions)
    assert (found.value, found.queries, found.left_out) == (np.mean(right), len(right), left_out)
    assert left_out == 3


def test_32_images_are_removed_on_multi_pie() -> None:
    view, light = (axis.reshape(-1) for axis in np.meshgrid(np.arange(13), np.arange(20), indexing="ij"))
    factors = np.stack([np.repeat([0, 1], 260), np.tile(view, 2), np.tile(light, 2)], axis=1)
    never = [shared_keys(factors, factors, columns) for columns in ([0, 1], [0, 2])]
    rows, _ = nearest(np.arange(520)[:, None], np.arange(520)[:, None], 520, never=never)
    assert ((rows < 0).sum(axis=1) == 13 + 20 - 1).all()
    # one embedding for all of a view, or of a light, finds nothing then; one for all of an identity always does
    for column, share in ((0, 1.0), (1, 0.0), (2, 0.0)):
        assert identity_retrieval(factors[:, [column]], factors[:, 0], factors[:, 1:]).value == share


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: verification_auc([[0.0], [np.inf]], [0, 1]),
            "row 1 of 2 in embeddings contains a value that is not finite",
        ),
        (
            lambda: verification_auc([[0.0], [1.0]], [0, -1]),
            r"identities contains unknown values .* \(first: image 1\)",
        ),
        (lambda: verification_auc([[0.0], [1.0]], [0, 1]), "have 0 and 1;"),
        (lambda: verification_auc([[0.0], [1.0]], [0, 0]), "have 1 and 0;"),
        (lambda: verification_auc([[0.0], [1.0]], [0, 0], metric="l3"), "metric must be one of"),
        (lambda: identity_retrieval([[0.0], [1.0]], [0, 0], [[1], [1]]), "none of the 2 queries"),
        (lambda: identity_retrieval([[0.0], [1.0]], [0, 0], [1, 1]), "conditions must be an array"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call: Any, words: str) -> None:
    with pytest.raises((DataError, SetsupError), match=words):
        call()
