"""One-shot accuracy of all re-splits at once, against a loop over them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError
from setsup.evaluation import distances, draw_labelled, draw_parts, one_shot, one_shot_accuracy
from tests.evaluation.test_resplits import ragged


def loop(points: Any, labels: Any, orbits: Any, drawn: Any, within: Any = None) -> Any:
    """Accuracy by a loop over re-splits and queries."""
    found = []
    for split, images in enumerate(drawn):
        right = []
        for query in range(len(points)):
            inside = within is None or within[split, query]
            if inside and orbits[query] not in orbits[images]:
                apart = [float(((points[query] - points[image]) ** 2).sum()) for image in images]
                right.append(labels[images[apart.index(min(apart))]] == labels[query])
        found.append(np.mean(right))
    return np.array(found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([1.0, 0.1]), st.sampled_from([0.0, 1e6]))
def test_it_equals_a_loop_with_ties(seed: int, parted: bool, unit: float, far: float) -> None:
    labels, orbits = ragged(seed)
    points = np.random.default_rng(seed).integers(0, 3, (len(labels), 3)) * unit + far  # many alike
    within = draw_parts(orbits, labels, 6, seed=seed) if parted and seed % 2 else None
    if within is not None and any(
        len(np.unique(orbits[~one & (labels == c)])) < 2 for one in within for c in (1, 3, 5)
    ):
        within = None
    within = None if within is None else ~within
    drawn = draw_labelled(labels, orbits, 6, within=within, seed=seed)
    found = one_shot_accuracy(points, labels, orbits, drawn, within=within)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, loop(points, labels, orbits, drawn, within))


@pytest.mark.parametrize("block", [1, 50, 1 << 21])
def test_blocks_do_not_change_it(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, orbits = ragged(5)
    points = np.random.default_rng(0).integers(0, 2, (len(labels), 2))
    drawn = draw_labelled(labels, orbits, 9)
    expected = loop(points, labels, orbits, drawn)
    monkeypatch.setattr(one_shot, "_BLOCK", block)
    monkeypatch.setattr(distances, "_BLOCK", block)
    np.testing.assert_array_equal(one_shot_accuracy(points, labels, orbits, drawn), expected)


def test_it_equals_scikit_learn() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    labels, orbits = ragged(1)
    points = np.random.default_rng(1).standard_normal((len(labels), 16)).astype(np.float32)
    drawn = draw_labelled(labels, orbits, 20)
    found = one_shot_accuracy(points, labels, orbits, drawn)
    for images, share in zip(drawn, found, strict=True):
        queries = ~np.isin(orbits, orbits[images])
        told = neighbors.KNeighborsClassifier(1).fit(points[images], labels[images]).predict(points[queries])
        assert share == (told == labels[queries]).mean()


def test_cosine_ignores_lengths() -> None:
    labels, orbits = ragged(2)
    dice = np.random.default_rng(2)
    points = dice.standard_normal((len(labels), 8))
    drawn = draw_labelled(labels, orbits, 20)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    found = one_shot_accuracy(points * dice.uniform(0.1, 9, (len(labels), 1)), labels, orbits, drawn, metric="cosine")
    np.testing.assert_array_equal(found, one_shot_accuracy(unit, labels, orbits, drawn))


def test_small_differences_far_from_the_origin() -> None:
    points = 1e8 + np.array([[0.0], [0.25], [1.0], [0.75]])
    assert one_shot_accuracy(points, [0, 0, 1, 1], [0, 1, 2, 3], [[0, 2]]).tolist() == [1.0]


def test_images_of_labelled_orbits_are_no_queries() -> None:
    """They would all be right: the others are all wrong."""
    labels, orbits = np.repeat([0, 1], 6), np.repeat([0, 1, 2, 3], 3)
    points = np.where(np.isin(orbits, (0, 3)), 0.0, 1.0)[:, None]
    assert one_shot_accuracy(points, labels, orbits, [[0, 6]]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"embeddings": [[0.0], [np.nan], [1.0], [2.0]]},
            "row 1 of 4 in embeddings contains a value that is not finite",
        ),
        (
            {"embeddings": [[0.0], [1.0], [1.0], [np.inf]]},
            "row 3 of 4 in embeddings contains a value that is not finite",
        ),
        ({"labels": [0, -1, 1, 1]}, r"labels contains unknown values .* \(first: image 1\)"),
        ({"orbits": [0, 1, 2, -1]}, r"orbits contains unknown values .* \(first: image 3\)"),
        ({"orbits": [0, 1]}, "orbits must be an array"),
        ({"labelled": [[0, 1]]}, "re-split 0 has two labelled images of the same class"),
        ({"labelled": [[0, 4]]}, "labelled must contain numbers of images"),
        ({"labelled": [0, 2]}, r"labelled must be an integer array of shape \(resplits, classes\)"),
        ({"orbits": [0, 0, 1, 1]}, "re-split 0 has no query"),
        ({"within": [[0, 1, 1, 1]]}, "a labelled image of re-split 0 is not part"),
        ({"metric": "euclid"}, "metric must be one of l2sq, cosine"),
        ({"metric": "cosine"}, "row 0 of embeddings is zero, so its cosine is undefined"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(changed: dict[str, Any], words: str) -> None:
    given_ones: dict[str, Any] = {
        "embeddings": [[0.0], [0.5], [1.0], [2.0]],
        "labels": [0, 0, 1, 1],
        "orbits": [0, 1, 2, 3],
        "labelled": [[0, 2]],
    }
    with pytest.raises((DataError, SetsupError), match=words):
        one_shot_accuracy(**given_ones | changed)
