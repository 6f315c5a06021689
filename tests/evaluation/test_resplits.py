"""Re-splits: what they may share, how they are distributed, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError
from setsup.evaluation import check_disjoint, draw_labelled, draw_parts, draw_resamples


def ragged(seed: int, classes: int = 3, orbits: int = 4) -> tuple[Any, Any]:
    """Labels and orbits of images in random order; classes of `orbits` orbits or more, orbits of 1 to 6 images."""
    dice = np.random.default_rng(seed)
    of_orbit = np.repeat(np.arange(classes) * 2 + 1, dice.integers(orbits, orbits + 4, classes))
    names = dice.permutation(50)[: len(of_orbit)]
    orbit = dice.permutation(np.repeat(np.arange(len(names)), dice.integers(1, 7, len(names))))
    return of_orbit[orbit], names[orbit]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 0.95))
def test_parts_share_no_orbit_and_have_their_share_of_each_class(seed: int, share: float) -> None:
    labels, orbits = ragged(seed)
    for first in draw_parts(orbits, labels, 5, share=share, seed=seed):
        check_disjoint(orbits[first], orbits[~first])
        for label in np.unique(labels):
            whole = len(np.unique(orbits[labels == label]))
            inside = len(np.unique(orbits[first & (labels == label)]))
            assert inside == min(max(round(share * whole), 1), whole - 1)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_labelled_images_are_candidates_of_the_part_and_one_per_class(seed: int) -> None:
    labels, orbits = ragged(seed, orbits=5)
    parts = draw_parts(orbits, labels, 4, share=0.4, seed=seed)
    candidates = np.random.default_rng(seed).random(len(labels)) < 0.3
    candidates[np.unique(orbits, return_index=True)[1]] = True  # each orbit has one
    drawn = draw_labelled(labels, orbits, 4, candidates=candidates, within=~parts, seed=seed)
    assert (labels[drawn] == np.unique(labels)).all()
    assert candidates[drawn].all()
    assert not np.take_along_axis(parts, drawn, axis=1).any()
    everything = draw_labelled(labels, orbits, 4, within=np.ones_like(parts), seed=seed)
    np.testing.assert_array_equal(everything, draw_labelled(labels, orbits, 4, seed=seed))


def test_re_splits_are_a_function_of_the_seed_and_of_their_number() -> None:
    labels, orbits = ragged(3)
    for draw in (draw_labelled, lambda a, b, n, seed=0: draw_parts(b, a, n, seed=seed)):
        few, many = draw(labels, orbits, 5), draw(labels, orbits, 40)  # type: ignore[operator]
        np.testing.assert_array_equal(few, many[:5])
        assert (draw(labels, orbits, 40, seed=1) != many).any()  # type: ignore[operator]
        assert len(np.unique(many, axis=0)) > 10


def test_every_image_and_every_group_is_drawn_equally_often() -> None:
    labels, orbits = np.arange(24) // 12, np.arange(24) // 3
    counts = np.bincount(draw_labelled(labels, orbits, 6_000).reshape(-1))
    assert abs(counts - 500).max() < 5 * np.sqrt(500)
    shares = draw_parts(orbits, labels, 4_000, share=0.25).mean(axis=0)
    assert abs(shares - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 4_000)


def test_norb_has_two_toys_of_five_for_validation() -> None:
    toys, categories = np.repeat(np.arange(25), 6), np.repeat(np.arange(5), 30)
    first = draw_parts(toys, categories, 20, share=0.4)
    assert {len(np.unique(toys[one])) for one in first} == {10}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_fits_and_tests_share_no_orbit_and_have_no_image_twice(seed: int) -> None:
    labels, orbits = ragged(seed, orbits=6)
    for drawn in draw_resamples(labels, orbits, 3, most=3, test=2, seed=seed):
        check_disjoint(orbits[drawn.train.reshape(-1)], orbits[drawn.test.reshape(-1)])
        both = np.concatenate([drawn.train, drawn.test], axis=1)
        assert len(np.unique(both)) == both.size
        assert (labels[both] == np.unique(labels)[:, None]).all()


def test_larger_fits_and_more_resamples_do_not_change_the_first() -> None:
    labels, orbits = np.arange(200) // 100, np.arange(200) // 10
    few, many = (draw_resamples(labels, orbits, n, most=m, test=8) for n, m in ((2, 3), (4, 9)))
    for one, other in zip(few, many, strict=False):
        np.testing.assert_array_equal(one.train, other.train[:, :3])
        np.testing.assert_array_equal(one.test, other.test)


def test_a_shared_orbit_is_named() -> None:
    check_disjoint([[1, 2], [1, 3]], [[1, 4]])
    with pytest.raises(DataError, match=r"orbit \(1, 3\) is in both a and b \(1 orbit is in both\)"):
        check_disjoint([[1, 2], [1, 3]], [[1, 3], [1, 4]], names=("a", "b"))
    with pytest.raises(DataError, match=r"orbit 2 is in both the first part and the second \(2 orbits are in both\)"):
        check_disjoint([1, 3, 2], [3, 2])
    with pytest.raises(DataError, match="must be an integer array"):
        check_disjoint([0.5], [1])
    with pytest.raises(DataError, match="must have the same number of factors"):
        check_disjoint([1], [[1, 2]])


LABELS, ORBITS = [0, 0, 1, 1], [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: draw_labelled([0, 0, 1, -1], ORBITS, 1), r"labels contains unknown values .* \(first: image 3\)"),
        (lambda: draw_labelled(LABELS, [0, 1, -1, 3], 1), r"orbits contains unknown values .* \(first: image 2\)"),
        (lambda: draw_labelled(np.array([0, 0, 1, np.nan]), ORBITS, 1), "labels must contain integer codes"),
        (lambda: draw_labelled([0, 0, 0, 0], ORBITS, 1), "one-shot accuracy requires at least two classes, not 1"),
        (lambda: draw_labelled(LABELS, [0, 1, 2, 2], 1), "class 1 has 1 orbit among its 2 images, but requires two"),
        (lambda: draw_labelled(LABELS, ORBITS, 0), "resplits must be an integer of at least 1"),
        (lambda: draw_labelled(LABELS, ORBITS, 1, candidates=[1, 1, 0, 0]), "class 1 has no candidate"),
        (lambda: draw_labelled(LABELS, ORBITS, 1, candidates=[1, 1]), "candidates must be a boolean array"),
        (
            lambda: draw_labelled(LABELS, ORBITS, 2, within=[[1] * 4, [1, 1, 0, 0]]),
            "class 1 has no image of re-split 1",
        ),
        (
            lambda: draw_parts([0, 0, 1, 1], [0, 1, 1, 1], 1),
            "group 0 must contain images of only one class to be split by class, not of classes 0 and 1",
        ),
        (lambda: draw_parts([0, 1, 2, 2], LABELS, 1), "class 1 has only one group"),
        (lambda: draw_parts(ORBITS, LABELS, 1, share=1), "share must be between 0 and 1"),
        (
            lambda: draw_resamples(LABELS, ORBITS, 1, most=2, test=1),
            "class 0 has only 1 of the 2 images required to fit the classifier; reduce",
        ),
        (
            lambda: draw_resamples(LABELS, ORBITS, 1, most=1, test=2),
            "class 0 has only 1 of the 2 images required to test the classifier; reduce",
        ),
        (
            lambda: draw_resamples(LABELS, [0, 1, 2, 2], 1, most=1, test=1),
            "class 1 has only one orbit, but training and test",
        ),
        (
            lambda: draw_resamples(LABELS, [0, 1, 1, 2], 1),
            "orbit 1 must contain images of only one class, not of classes 0 and 1",
        ),
    ],
)
def test_what_cannot_be_split_is_refused_in_a_sentence(call: Any, words: str) -> None:
    with pytest.raises((DataError, SetsupError), match=words):
        call()
