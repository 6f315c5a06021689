"""PCK of keypoints carried between images, against loops over pairs as published code has them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.datasets.keypoint_pairs import PairList
from setsup.errors import DataError
from setsup.evaluation import transfer_keypoints
from setsup.experiments.evaluations import keypoint_transfer
from setsup.experiments.evaluations.measured import BenchmarkResults, Measured
from tests.true_files import spair_71k as true


@pytest.fixture(scope="module")
def spair(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("spair")
    true.write(folder)
    return setsup.load("spair-71k", folder)


def patches(image: np.ndarray) -> np.ndarray:
    """Mean colours of patches of about 9 pixels, and where they are."""
    rows, columns = (-(-side // 9) for side in image.shape[:2])
    parts = [np.array_split(band, columns, axis=1) for band in np.array_split(image.astype(float), rows)]
    means = np.array([[part.mean(axis=(0, 1)) / 255 for part in band] for band in parts])
    y, x = np.mgrid[:rows, :columns]
    return np.concatenate([means, np.stack([y / rows, x / columns], axis=-1)], axis=-1)


@pytest.mark.parametrize("features", ["pixels", "grid"])
def test_numbers_are_those_of_a_loop_over_pairs(spair: Any, features: Any) -> None:
    task = keypoint_transfer.choose(spair, most=None, seed=0)
    assert (len(task), task.total, task.split) == (36, 36, "test")
    steps: list[None] = []
    found = keypoint_transfer.measure(spair, patches, task, features, lambda: steps.append(None))
    assert len(steps) == 36
    numbers = {(one.value, one.group): (one.number, one.count) for one in found}
    words = {name: task.pairs.factors.values(name).tolist() for name in task.pairs.factors.names}
    right: dict[tuple[str, float, int], list[bool]] = {}
    for number, (row1, row2) in enumerate(task.pairs.rows.tolist()):
        one, two = spair.fetch(row1), spair.fetch(row2)
        left, top, far, bottom = two["box"].tolist()
        both = [key for key in range(30) if np.isfinite([*one["keypoints"][key], *two["keypoints"][key]]).all()]
        truth = two["keypoints"][both].astype(float)
        size1, size2 = one["image"].shape[:2], two["image"].shape[:2]
        maps = patches(one["image"]), patches(two["image"])
        places = transfer_keypoints(*maps, one["keypoints"][both], size1, size2, features=features).points
        scales = {
            "bbox": max(far - left, bottom - top),
            "img": max(size2),
            "keypoints": max(truth[:, 0].max() - truth[:, 0].min(), truth[:, 1].max() - truth[:, 1].min()),
        }
        for scale, length in scales.items():
            for alpha in (0.05, 0.1, 0.15):
                right[scale, alpha, number] = [
                    math.hypot(*(place - wanted)) <= alpha * length for place, wanted in zip(places, truth, strict=True)
                ]
    groups = {"all": list(range(36))}
    for name in ("category", "viewpoint", "scale", "truncation", "occlusion"):
        for level in set(words[name]):
            groups[f"{name} {level}"] = [number for number in range(36) if words[name][number] == level]
    assert {group for _, group in numbers} == set(groups)
    for group, inside in groups.items():
        for scale in ("bbox", "img", "keypoints"):
            for alpha in (0.05, 0.1, 0.15):
                shares = [right[scale, alpha, number] for number in inside]
                value, count = numbers[f"PCK {scale}, per image: α {alpha:g}", group]
                assert value == pytest.approx(sum(sum(one) / len(one) for one in shares) / len(shares))
                assert count == len(shares)
                value, count = numbers[f"PCK {scale}, per point: α {alpha:g}", group]
                assert value == pytest.approx(sum(map(sum, shares)) / sum(map(len, shares)))
                assert count == sum(map(len, shares))
    assert keypoint_transfer.main_value(found) == "PCK bbox, per image: α 0.1"


def test_images_are_encoded_once_where_their_pairs_follow_each_other(spair: Any) -> None:
    task = keypoint_transfer.choose(spair, most=None, seed=0)
    calls: list[int] = []

    def encode(image: np.ndarray) -> np.ndarray:
        calls.append(1)
        return patches(image)

    keypoint_transfer.measure(spair, encode, task)
    assert len(calls) == len(np.unique(task.pairs.rows)) == 12


def test_pairs_are_chosen_by_the_split_an_expression_or_a_draw(spair: Any) -> None:
    some = keypoint_transfer.choose(spair, most=10, seed=3)
    assert (len(some), some.total) == (10, 36)
    everything = spair.published_pairs.where("split == 'test'").rows.tolist()
    places = [everything.index(rows) for rows in some.pairs.rows.tolist()]
    assert places == sorted(set(places))
    assert keypoint_transfer.choose(spair, most=10, seed=3).about == some.about
    assert keypoint_transfer.choose(spair, most=10, seed=4).about != some.about
    hard = keypoint_transfer.choose(spair, most=None, seed=0, where="split == 'val' and category == 'car'")
    assert (len(hard), hard.split) == (2, None)
    assert (
        "10 (drawn by --seed) of 36 published pairs of images of the split test"
        in keypoint_transfer.describe(some, "grid")[0]
    )
    with pytest.raises(DataError, match="no published pair of spair-71k is left"):
        keypoint_transfer.choose(spair, most=None, seed=0, where="scale == 'hard' and scale == 'easy'")


def test_examples_are_pairs_with_what_was_found(spair: Any) -> None:
    task = keypoint_transfer.choose(spair, most=None, seed=0)
    shown = keypoint_transfer.examples(spair, patches, task, "pixels", 3)
    assert len(shown) == 3
    for number, one in zip((0, 18, 35), shown, strict=True):
        row1, row2 = task.pairs.rows[number].tolist()
        both = spair.keypoint_pairs([row1, row2])
        assert np.array_equal(one.views[1], spair.fetch(row2, ["image"])["image"])
        assert one.points1.tolist() == both.points1.tolist()
        box = spair.fetch(row2, ["box"])["box"].reshape(2, 2)
        errors = np.linalg.norm(one.points2 - both.points2, axis=1)
        assert one.right.tolist() == (errors <= 0.1 * np.ptp(box, axis=0).max()).tolist()
        assert f"category {spair.factors.values('category', row1)}" in one.caption


def test_pairs_without_a_scale_or_a_keypoint_are_left_out() -> None:
    from setsup.datasets.keypoint_pairs import KeypointPairs
    from setsup.experiments.evaluations.keypoint_transfer import Transfer, score
    from setsup.factors import FactorTable

    one = KeypointPairs([[1, 1]], [[5, 5]], [0], ["0"])
    none = KeypointPairs([], [], [], [])
    pairs = PairList([[0, 1], [1, 0]], FactorTable.from_values({"category": ["a", "b"]}))
    found = score(
        [
            Transfer(one, np.array([[5.0, 6.0]]), {"img": 20.0, "keypoints": 0.0}),
            Transfer(none, np.zeros((0, 2)), {"img": 20.0}),
        ],
        pairs,
        alphas=[0.05],
    )
    numbers = {(value, group): (number, count) for value, group, number, count in found}
    assert numbers["PCK img, per image: α 0.05", "all"] == (1.0, 1)  # a distance equal to α · s is correct
    assert numbers["PCK keypoints, per image: α 0.05", "all"][1] == 0
    assert math.isnan(numbers["PCK img, per image: α 0.05", "category b"][0])


def test_results_are_tables_of_titles_and_of_groups() -> None:
    found = [
        Measured("PCK: α 0.1", "all", 0.5, 4),
        Measured("PCK: α 0.2", "all", 0.75, 4),
        Measured("PCK: α 0.1", "class cat", math.nan, 1),
        Measured("PCK: α 0.2", "class cat", 1.0, 1),
    ]
    results = BenchmarkResults(about={"dataset": "few"}, main="PCK: α 0.1", measured={"a": found, "b": found[:1]})
    assert results.tables() == [
        ("PCK", ["encoder", "α 0.1", "α 0.2"], [["a", "0.500", "0.750"], ["b", "0.500", ""]]),
        ("PCK: α 0.1, by class", ["class", "count", "a", "b"], [["cat", "1", "", ""]]),
    ]
    assert results.to_csv().splitlines()[:4] == [
        "encoder,value,group,number,count",
        "a,PCK: α 0.1,all,0.5,4",
        "a,PCK: α 0.2,all,0.75,4",
        "a,PCK: α 0.1,class cat,,1",
    ]
