"""Pairs of views and what is known of them, against rays, cameras and stored modalities."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("embreex")
pytest.importorskip("scipy")

from PIL import Image

import setsup
from setsup.correspondence import PixelPairs, RenderedPairs, Status, pair_table
from setsup.evaluation.pixels import edge_pixels
from setsup.experiments.evaluations.dense import DenseSettings, measure_pairs
from setsup.experiments.evaluations.view_pairs import ViewPair, draw_view_pairs, scene_codes, view_pair
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.scenes.recipes import Shapes3D


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs") / "views"
    recipe = Shapes3D(size=(32, 48))
    views = RenderedPairs(recipe, pair_table(recipe, 5, seed=0), "embree")
    render(views, folder, ["image", "depth", "instances", "partners", "status"])
    return folder


@pytest.mark.long("renderings")
def test_stored_pairs_have_points_edges_and_angles(stored: Path) -> None:
    dataset = setsup.open(stored)
    rows = draw_view_pairs(dataset, 5, seed=0)
    assert len({tuple(sorted(pair)) for pair in rows.tolist()}) == len(rows) == 5
    for row1, row2 in rows.tolist():
        pair = view_pair(dataset, row1, row2)
        truth = {name: values[0] for name, values in dataset.fetch([row1], ["depth", "instances", "status"]).items()}
        assert np.array_equal(pair.pairs.status.reshape(32, 48), truth["status"])
        assert np.array_equal(pair.instances, truth["instances"])
        assert np.array_equal(pair.edges, edge_pixels(truth["instances"], truth["depth"]))
        cameras = dataset.camera(row1), dataset.camera(row2)
        seen = pair.surface2 & np.isfinite(pair.xyz2).all(axis=2)
        y, x = np.nonzero(seen)
        np.testing.assert_allclose(cameras[1].project(pair.xyz2[seen])[0], np.stack([x, y], 1), atol=1e-3)
        cosine = (np.trace(cameras[0].rotation.T @ cameras[1].rotation) - 1) / 2
        assert pair.angle == pytest.approx(np.degrees(np.arccos(np.clip(cosine, -1, 1))), abs=1e-4)


@pytest.mark.long("renderings")
def test_two_ways_to_match_give_the_same_values(stored: Path) -> None:
    folder = setsup.open(stored)
    scenes = RenderedPairs(Shapes3D(size=(32, 48)), pair_table(Shapes3D(size=(32, 48)), 5, seed=0), "embree")
    rows = draw_view_pairs(folder, 3, seed=1)
    dice = np.random.default_rng(0)
    features = {row: dice.normal(size=(32, 48, 6)) for row in rows.ravel().tolist()}
    found = [
        measure_pairs(
            [view_pair(dataset, *two) for two in rows.tolist()],
            rows,
            lambda two: [features[row] for row in two.tolist()],
            DenseSettings(queries=None),
            0,
        )
        for dataset in (folder, scenes)
    ]
    for name, values in found[0].items():
        np.testing.assert_allclose(values, found[1][name], atol=2e-3, err_msg=name)


def test_scenes_are_numbered_by_what_views_have_in_common() -> None:
    shapes = RenderedDataset(Shapes3D(size=(16, 24)))
    rows = draw_view_pairs(shapes, 6, seed=0)
    codes = scene_codes(shapes, rows)
    keys = [tuple(shapes.factors.codes(name, [row])[0] for name in shapes.pair_factors) for row in rows[:, 0].tolist()]
    for first in range(6):
        for second in range(6):
            assert (codes[first] == codes[second]) == (keys[first] == keys[second])


def test_sparse_pairs_have_recall_and_neither_rejection_nor_metres() -> None:
    dice = np.random.default_rng(0)
    points = dice.uniform(0, 20, (30, 2))
    status = np.where(np.arange(30) < 25, Status.VISIBLE, Status.UNKNOWN)
    sparse = PixelPairs(points, points, np.zeros((30, 3)), np.zeros(30), status, sparse=True)
    features = dice.normal(size=(2, 24, 24, 5))
    features[1] = features[0]
    values = measure_pairs(
        [ViewPair((0, 1), sparse, ((24, 24), (24, 24)))], np.array([[0, 1]]), lambda _: features, DenseSettings(), 0
    )
    assert values["visible: within 1 px"] == [1.0]
    assert values["visible: matches"] == [25.0]
    for name in ("visible: within 2 cm", "rejection", "instances", "edges"):
        assert np.isnan(values[name]).all()


@pytest.mark.parametrize("case", range(10))
def test_values_of_a_pair_are_those_of_loops(case: int) -> None:
    dice = np.random.default_rng(case)
    y, x = np.mgrid[:7, :9].reshape(2, -1)
    status = dice.integers(0, 4, 63).astype(np.uint8)
    points2 = dice.uniform(0, 8, (63, 2))
    xyz, xyz2 = dice.normal(0, 0.02, (63, 3)), dice.normal(0, 0.02, (6, 10, 3))
    xyz[status == Status.NO_SURFACE] = np.nan
    pairs = PixelPairs(np.stack([x, y], 1), points2, xyz, np.zeros(63), status)
    edges = dice.random((7, 9)) < 0.1
    pair = ViewPair((0, 1), pairs, ((7, 9), (6, 10)), xyz2, edges=edges)
    features = [dice.normal(size=(7, 9, 4)), dice.normal(size=(6, 10, 4))]
    settings = DenseSettings(queries=None, step=1, matches=20)
    values = measure_pairs([pair], np.array([[0, 1]]), lambda _: features, settings, 0)

    def nearest(feature: np.ndarray, candidates: np.ndarray) -> tuple[float, int, int]:
        return min(
            (float(np.linalg.norm(candidates[row, column] - feature)), row, column)
            for row in range(candidates.shape[0])
            for column in range(candidates.shape[1])
        )

    errors, metres, mutual = [], [], []
    distances: dict[int, list[float]] = {Status.VISIBLE: [], Status.OCCLUDED: []}
    for number in range(63):
        if status[number] in distances:
            distance, row, column = nearest(features[0][y[number], x[number]], features[1])
            distances[status[number]].append(distance)
            if status[number] == Status.VISIBLE:
                errors.append(np.hypot(column - points2[number, 0], row - points2[number, 1]))
                metres.append(np.linalg.norm(xyz2[row, column] - xyz[number]))
                mutual.append(nearest(features[1][row, column], features[0])[1:] == (y[number], x[number]))
    for limit in (1, 3, 5, 25, 50):
        share = sum(error <= limit for error in errors) / len(errors)
        assert values[f"visible: within {limit} px"] == [pytest.approx(share)]
        kept = [error <= limit for error, both in zip(errors, mutual, strict=True) if both]
        assert values[f"visible, mutual: within {limit} px"] == [pytest.approx(sum(kept) / len(kept))]
    for limit in (1, 2, 5):
        share = sum(error <= limit / 100 for error in metres) / len(metres)
        assert values[f"visible: within {limit} cm"] == [pytest.approx(share)]
    assert values["visible: mutual"] == [pytest.approx(sum(mutual) / len(mutual))]
    wins = [
        (hidden > seen) + (hidden == seen) / 2
        for hidden in distances[Status.OCCLUDED]
        for seen in distances[Status.VISIBLE]
    ]
    assert values["rejection"] == [pytest.approx(sum(wins) / len(wins))]
    marked = np.argwhere(edges)
    near = [np.hypot(*(marked - [row, column]).T).min() <= 2 for row in range(7) for column in range(9)]
    areas = []
    for channel in features[0].reshape(63, 4).T:
        true = [value for value, one in zip(channel, near, strict=True) if one]
        other = [value for value, one in zip(channel, near, strict=True) if not one]
        areas.append(sum((a > b) + (a == b) / 2 for a in true for b in other) / (len(true) * len(other)))
    assert values["edges"] == [pytest.approx(max(max(area, 1 - area) for area in areas))]
    assert values["ratio: matches"] == [20.0]


def test_planes_have_neither_metres_nor_angles(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8)
    for view, left in ((1, 0), (2, 6)):
        Image.fromarray(noise[:, left : left + 32]).save(tmp_path / f"{view}.png")
    (tmp_path / "H_1_2").write_text("1 0 -6\n0 1 0\n0 0 1\n")
    planes = setsup.open(tmp_path)
    pair = view_pair(planes, 0, 1)
    assert np.isnan(pair.angle)
    assert (pair.xyz2, pair.instances, pair.edges) == (None, None, None)
    rows = np.array([[0, 1]])
    values = measure_pairs([pair], rows, lambda two: planes.fetch(two)["image"] / 255, DenseSettings(step=1), 0)
    assert values["visible: within 1 px"] == [1.0]
    assert np.isnan(values["visible: within 2 cm"]).all()
