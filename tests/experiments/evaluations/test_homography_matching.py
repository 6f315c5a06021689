"""Matches and homographies of features on photographs of planes: by loops as published code computes them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import open_photographs
from setsup.errors import DataError
from setsup.experiments.evaluations import homography_matching
from setsup.experiments.evaluations.homography_matching import choose, describe, examples, match_planes, measure, score
from tests.true_files import hpatches

pytest.importorskip("cv2")


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("hpatches")
    hpatches.write(folder)
    return setsup.load("hpatches", folder)


def patches(image: np.ndarray) -> np.ndarray:
    """Mean colours of 12 × 16 cells and of what is around them, neither at the resolution of pixels nor normalized."""
    small = np.asarray(Image.fromarray(image).resize((16, 12), Image.Resampling.BOX), np.float64) / 255
    around = [np.roll(small, (down, across), axis=(0, 1)) for down in (-1, 0, 1) for across in (-1, 0, 1)]
    return np.concatenate(around, axis=-1) - 0.4


def test_pairs_are_the_first_image_with_each_other_one(planes) -> None:
    task = choose(planes, most=None, seed=0)
    assert task.rows.tolist() == [[6 * scene, 6 * scene + view] for scene in range(4) for view in range(1, 6)]
    assert task.groups == ["change illumination"] * 10 + ["change viewpoint"] * 10
    few = choose(planes, most=3, seed=1)
    assert (len(few), few.total) == (3, 20)
    assert {tuple(rows) for rows in few.rows.tolist()} < {tuple(rows) for rows in task.rows.tolist()}
    assert (
        choose(planes, most=3, seed=1).rows.tolist()
        == few.rows.tolist()
        != choose(planes, most=3, seed=2).rows.tolist()
    )
    assert "3 (drawn by --seed) of 20 pairs" in describe(few, "pixels")[0]
    some = choose(planes, most=None, seed=0, where="change == 'viewpoint' and view != 2")
    assert some.rows.tolist() == [[6 * scene, 6 * scene + view] for scene in (2, 3) for view in range(2, 6)]
    of_selection = choose(planes.where("scene == 'v_wall'"), most=None, seed=0)
    assert of_selection.rows.tolist() == [[0, view] for view in range(1, 6)]
    with pytest.raises(DataError, match="no pair of views of a scene of hpatches is left"):
        choose(planes, most=None, seed=0, where="view == 1")


def test_matches_and_errors_by_loops(planes) -> None:
    task = choose(planes, most=None, seed=0, where="scene == 'v_wall'")
    height, width = hpatches.SIZES["v_wall"]
    small = 480, 720  # shorter side 480
    for number, (found, _) in enumerate(match_planes(planes, patches, task, "grid")):
        maps = []
        for view in (1, number + 2):
            shown = Image.fromarray(hpatches.image("v_wall", view))
            maps.append(patches(np.asarray(shown.resize(small[::-1], Image.Resampling.BICUBIC))).reshape(192, -1))
        units = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in maps]
        cosines = units[0] @ units[1].T
        truth = hpatches.homography("v_wall", number + 2)
        expected = []
        for cell in range(192):
            other = int(cosines[cell].argmax())
            if int(cosines[:, other].argmax()) != cell:
                continue
            # centres of the cells, in pixels of the photograph
            places = [
                ((one % 16 + 0.5) * width / 16 - 0.5, (one // 16 + 0.5) * height / 12 - 0.5) for one in (cell, other)
            ]
            moved = truth @ [*places[0], 1]
            expected.append((*places[0], *places[1], np.hypot(*(moved[:2] / moved[2] - places[1]))))
        assert len(expected) > 20
        table = np.concatenate([found.points1, found.points2, found.errors[:, None]], axis=1)
        assert np.allclose(table, expected, atol=1e-5)


def test_numbers_are_those_of_published_formulae() -> None:
    dice = np.random.default_rng(0)
    for _ in range(100):
        errors = [dice.exponential(4, int(dice.integers(0, 7))) for _ in range(int(dice.integers(2, 9)))]
        corners = np.where(dice.random(len(errors)) < 0.2, np.inf, dice.exponential(3, len(errors)))
        groups = [f"change {'illumination' if dice.random() < 0.5 else 'viewpoint'}" for _ in errors]
        found = {one[:2]: one for one in score(errors, corners.tolist(), groups)}
        for group in {"all", *groups}:
            inside = [number for number, name in enumerate(groups) if group in ("all", name)]
            for limit in range(1, 11):  # D2-Net: no match has the error infinity
                shares = [np.mean((errors[at] if len(errors[at]) else np.array([np.inf])) <= limit) for at in inside]
                assert found[f"MMA: {limit} px", group].number == pytest.approx(np.mean(shares))
            for limit in (1, 3, 5):
                right = np.mean([corners[at] <= limit for at in inside])
                assert found[f"homography accuracy: {limit} px", group].number == pytest.approx(right)
                # SuperGlue: (0, 0), then (error, share), cut off at the limit
                ends = [0.0, *sorted(corners[inside])]
                last = int(np.searchsorted(ends, limit))
                heights = np.arange(len(ends)) / len(inside)
                area = np.trapezoid([*heights[:last], heights[last - 1]], [*ends[:last], limit]) / limit
                assert found[f"homography AUC: {limit} px", group].number == pytest.approx(area)
            assert found["MMA: 1 px", group].count == len(inside)


def test_equal_photographs_are_matched_without_error(tmp_path: Path) -> None:
    """An illumination sequence without changes: each cell is its own partner, and the homography the identity."""
    noise = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    for view in (1, 2):
        Image.fromarray(noise).save(tmp_path / f"{view}.png")
    (tmp_path / "H_1_2").write_text("1 0 0\n0 1 0\n0 0 1\n")
    same = open_photographs(tmp_path)
    task = choose(same, most=None, seed=0, step=24)
    for features in ("pixels", "grid"):
        found = {one.value: one.number for one in measure(same, patches, task, features)}
        assert found["MMA: 1 px"] == found["homography accuracy: 1 px"] == 1
        assert found["homography AUC: 1 px"] > 0.999
        assert found["matches: per pair"] == {"pixels": 540, "grid": 192}[features]


def test_features_without_difference_match_nothing_more_than_once(planes) -> None:
    task = choose(planes, most=2, seed=0)
    parts = []
    found = {
        one.value: one.number
        for one in measure(planes, lambda image: np.ones((6, 8, 2)), task, "grid", lambda: parts.append(1))
        if one.group == "all"
    }
    assert len(parts) == 2
    assert found["matches: per pair"] == 1  # the first cells
    assert found["homography accuracy: 5 px"] == found["homography AUC: 5 px"] == 0


def test_pairs_for_a_sheet(planes) -> None:
    task = choose(planes, most=None, seed=0)
    shown = examples(planes, patches, task, "grid", 3)
    assert [one.caption.partition(",")[0] for one in shown] == ["i_dc", "v_talent", "v_wall"]
    for one in shown:
        assert len(one.points1) == len(one.points2) == len(one.right) > 0
        height, width = one.views[0].shape[:2]
        assert (one.points1 > -0.5).all()
        assert (one.points1 < [width - 0.5, height - 0.5]).all()
        assert one.maps[0].shape == (12, 16, 27)
    assert homography_matching.main_value([]) in {one.value for one in score([np.zeros(1)], [0.0])}
