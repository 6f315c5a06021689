"""Rendered pairs: what is kept of a pair is what the scene says, from memory, from disk, and through windows."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import setsup
from setsup.correspondence import PixelPairSampler, RenderedPairs, Status, pair_table, spatial, stored, view_pairs
from setsup.correspondence.matching import Match, Window, traced
from setsup.datasets.concatenation import concat
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.random import fold
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.scenes.recipes import Shapes3D

pytest.importorskip("embreex", reason="embreex is not installed")

RECIPE = Shapes3D(size=(24, 32))
WHOLE = Window(0, 0, 24, 32)
KEYS = fold(1, np.arange(3, dtype=np.uint64))


@pytest.fixture(scope="module")
def views() -> RenderedPairs:
    return RenderedPairs(RECIPE, pair_table(RECIPE, pairs=3, seed=2), "embree")


@pytest.fixture(scope="module")
def folder(views: RenderedPairs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "kept"
    render(views, path)
    return path


def test_two_rows_a_pair_share_a_scene_and_differ_in_the_view() -> None:
    table = pair_table(RECIPE, pairs=20, seed=3)
    assert len(table) == 40
    for name in ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "view_pair"):
        codes = table.codes(name, np.arange(40)).reshape(20, 2)
        assert (codes[:, 0] == codes[:, 1]).all()
    turns = table.codes("orientation", np.arange(40)).reshape(20, 2)
    assert (turns[:, 0] != turns[:, 1]).all()
    again = pair_table(RECIPE, pairs=20, seed=3)
    assert again.fingerprint == table.fingerprint
    assert pair_table(RECIPE, pairs=20, seed=4).fingerprint != table.fingerprint


def test_partners_are_those_that_are_traced(views: RenderedPairs) -> None:
    found = views.fetch(np.arange(6), ["partners", "status", "image"])
    assert found["partners"].shape == (6, 24, 32, 2)
    for row in range(6):
        other = row ^ 1
        wanted = spatial(views.scene(row), views.camera(row), views.camera(other))
        np.testing.assert_array_equal(found["status"][row].ravel(), wanted.status)
        np.testing.assert_allclose(found["partners"][row].reshape(-1, 2), wanted.points2, atol=3e-5)
    plain = RenderedDataset(RECIPE, views.factors, "embree").fetch(np.arange(6), ["image"])
    np.testing.assert_array_equal(found["image"], plain["image"])


def test_partners_lead_back(views: RenderedPairs) -> None:
    found = views.fetch([0, 1], ["partners", "status"])
    visible = np.argwhere(found["status"][0] == Status.VISIBLE)
    assert len(visible) > 100
    back = []
    for y, x in visible.tolist():
        place = found["partners"][0, y, x]
        column, row = np.rint(place).astype(int)
        if found["status"][1, row, column] == Status.VISIBLE:
            back.append(np.linalg.norm(found["partners"][1, row, column] - [x, y]))
    # the nearest pixel there is at most 0.71 pixels off, and comes back about as far from here
    assert np.median(back) < 0.8
    assert len(back) > 0.9 * len(visible)


def test_what_is_on_disk_serves_as_the_scenes_do(views: RenderedPairs, folder: Path) -> None:
    kept = setsup.open(folder)
    assert set(kept.modalities) == set(views.modalities)
    assert kept.pair_factors == ("view_pair",)
    for name in ("partners", "status"):
        np.testing.assert_array_equal(kept.fetch(np.arange(6), [name])[name], views.fetch(np.arange(6), [name])[name])
    rows = PixelPairSampler(kept, pairs=3, seed=9)[0].indices
    from_disk, wanted = view_pairs(kept, rows, KEYS, match=stored), view_pairs(views, rows, KEYS)
    for name in ("partner", "positive", "valid"):
        np.testing.assert_array_equal(getattr(from_disk, name), getattr(wanted, name))


def test_windows_of_what_is_on_disk(views: RenderedPairs, folder: Path) -> None:
    kept = setsup.open(folder)
    rows = [[0, 1], [3, 2], [4, 5]]
    windows = [[[2, 3], [5, 1]], [[0, 0], [12, 8]], [[7, 7], [7, 7]]]
    found = [
        view_pairs(data, rows, KEYS, fraction=0.5, windows=windows, size=(16, 20), match=match)
        for data, match in ((kept, stored), (views, stored))
    ]
    wanted = view_pairs(views, rows, KEYS, fraction=0.5, windows=windows, size=(16, 20))
    for one in found:
        np.testing.assert_array_equal(one.positive, wanted.positive)
        np.testing.assert_array_equal(one.partner, wanted.partner)


@pytest.mark.parametrize("match", [stored, traced])
def test_windows_must_lie_in_the_views(views: RenderedPairs, match: Match) -> None:
    for corner in ([-1, 0], [0, -1], [13, 0], [0, 9]):
        with pytest.raises(SetsupError, match=r"a window of 16 × 20 pixels at .* lies outside the view of 24 × 32"):
            view_pairs(views, [[0, 1]], KEYS[:1], windows=[[[0, 0], corner]], size=(16, 20), match=match)


def test_some_pairs_of_a_table(views: RenderedPairs, folder: Path, tmp_path: Path) -> None:
    some = render(views.where("view_pair != 1"), tmp_path / "some")
    kept = setsup.open(folder)
    for name, array in some.fetch(np.arange(4)).items():
        np.testing.assert_array_equal(array, kept.fetch([0, 1, 4, 5], [name])[name])
    later = kept.where("view_pair == 2")
    found, wanted = (
        view_pairs(data, [rows], KEYS[:1], match=stored) for data, rows in ((later, [0, 1]), (kept, [4, 5]))
    )
    np.testing.assert_array_equal(found.partner, wanted.partner)


def test_what_cannot_be_found_is_said(views: RenderedPairs, folder: Path, tmp_path: Path) -> None:
    kept = setsup.open(folder)
    with pytest.raises(SetsupError, match=r"no scenes to trace; omit match="):
        view_pairs(kept, [[0, 1]], KEYS[:1], match=traced)
    with pytest.raises(SetsupError, match="has no pixel correspondences; pass a folder of `setsup"):
        view_pairs(concat(kept, kept), [[0, 1]], KEYS[:1])
    with pytest.raises(SetsupError, match=r"the cameras of .* are unknown"):
        view_pairs(concat(kept, kept), [[0, 1]], KEYS[:1], match=stored)
    half = render(views, tmp_path / "half", ["image", "partners"])
    with pytest.raises(SetsupError, match="does not store the modalities partners and status"):
        view_pairs(half, [[0, 1]], KEYS[:1], match=stored)


def test_points_in_space_are_where_depth_says(folder: Path) -> None:
    kept = setsup.open(folder)
    pairs = stored(kept, 0, 1, WHOLE, WHOLE, 1.0, 0)
    pixels, _ = kept.camera(1).project(pairs.xyz[pairs.visible])
    # depth is kept in float32
    np.testing.assert_allclose(pixels, pairs.points2[pairs.visible], atol=1e-3)


def test_the_same_bytes_for_two_processes_and_after_pickling(
    views: RenderedPairs, folder: Path, tmp_path: Path
) -> None:
    render(pickle.loads(pickle.dumps(views)), tmp_path / "again", processes=2)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_what_is_no_pair_is_refused(views: RenderedPairs, folder: Path) -> None:
    with pytest.raises(DataError, match="views 0 and 1 of the same pair"):
        RenderedPairs(RECIPE, FactorTable(RECIPE.factors), "embree")
    table = views.factors
    for rows in ([0, 1, 2], [1, 0], [0, 2], [0, 1, 0, 1], [0, 3, 2, 1]):
        with pytest.raises(DataError, match="views 0 and 1 of the same pair"):
            RenderedPairs(RECIPE, table.select(rows), "embree")
    codes = {name: table.codes(name).copy() for name in table.names}
    codes["scale"][1] = (codes["scale"][1] + 1) % 8
    with pytest.raises(DataError, match="two views of a pair differ in 'scale', so they show different scenes"):
        RenderedPairs(RECIPE, FactorTable(table.factors, codes), "embree")
    kept = setsup.open(folder)
    with pytest.raises(SetsupError, match="rows 0 and 2 of rendered shapes3d are not the two views of a pair"):
        stored(kept, 0, 2, WHOLE, WHOLE, 1.0, 0)
    twice = kept.select([0, 1, 0])
    with pytest.raises(SetsupError, match="rows 0 and 2 of rendered shapes3d are not the two views"):
        stored(twice, 0, 2, WHOLE, WHOLE, 1.0, 0)
    plain = RenderedDataset(RECIPE, renderer="embree")
    with pytest.raises(SetsupError, match="does not store the modalities partners and status"):
        stored(plain, 0, 1, WHOLE, WHOLE, 1.0, 0)
    named = FactorTable(
        [*RECIPE.factors, Factor("view", Kind.ORDINAL, (0, 1))],
        {factor.name: np.zeros(4, int) for factor in RECIPE.factors}
        | {"orientation": np.arange(4), "view": [0, 1, 0, 1]},
    )
    with pytest.raises(DataError, match="already have a factor 'view'"):
        pair_table(RECIPE, 2, factors=named)
