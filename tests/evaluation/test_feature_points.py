"""Features at points of an image: by torch's bilinear interpolation, and by the cells themselves."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.evaluation.feature_points import features_at, grid_features


def unit(features: np.ndarray) -> np.ndarray:
    return features / np.linalg.norm(features, axis=-1, keepdims=True)


@pytest.mark.parametrize("step", [1, 3, 4])
def test_interpolated_features_are_torchs(step: int) -> None:
    torch = pytest.importorskip("torch")
    maps = np.random.default_rng(0).normal(size=(5, 7, 6))
    whole = torch.nn.functional.interpolate(torch.from_numpy(maps.transpose(2, 0, 1))[None], (30, 42), mode="bilinear")
    flat = whole[0].numpy().transpose(1, 2, 0)
    pixels = unit(flat)
    found = grid_features(maps, (30, 42), "pixels", step)
    x, y = found.points.astype(int).T
    assert sorted(set(y.tolist())) == list(range(step // 2, 30, step))
    assert sorted(set(x.tolist())) == list(range(step // 2, 42, step))
    assert np.allclose(found.directions, pixels[y, x])
    mixed = 0.75 * flat[9, 3:5].mean(axis=0) + 0.25 * flat[10, 3:5].mean(axis=0)  # linear between centres of cells
    found = features_at(maps, (30, 42), [[3.5, 9.25], [-0.4, 29.4], [20, 11]], "pixels")
    assert np.allclose(found[0], unit(mixed))
    assert np.allclose(found[1], unit(maps[4, 0]))
    assert np.allclose(found[2], pixels[11, 20])


def test_cells_are_found_at_their_centres() -> None:
    maps = np.random.default_rng(0).normal(size=(2, 3, 6))
    found = grid_features(maps, (28, 42), "grid", 4)
    assert found.points.tolist() == [[x, y] for y in (6.5, 20.5) for x in (6.5, 20.5, 34.5)]
    assert np.allclose(found.directions, unit(maps.reshape(-1, 6)))
    assert np.allclose(features_at(maps, (28, 42), [[13, 14], [14, 13]], "grid"), unit(maps[[1, 0], [0, 1]]))


@pytest.mark.parametrize("between", ["pixels", "grid"])
def test_maps_of_pixels_are_taken_at_pixels(between: str) -> None:
    maps = np.random.default_rng(0).normal(size=(9, 11, 4))
    found = grid_features(maps, (9, 11), between, 4)
    assert found.points.tolist() == [[x, y] for y in (2, 6) for x in (2, 6, 10)]
    assert np.allclose(found.directions, unit(maps[2::4, 2::4]).reshape(-1, 4))


def test_small_cells_are_taken_at_pixels() -> None:
    maps = np.random.default_rng(0).normal(size=(6, 8, 4))
    found = grid_features(maps, (9, 12), "grid", 4)  # cells of 1.5 × 1.5 pixels
    assert found.points.tolist() == [[x, y] for y in (2, 6) for x in (2, 6, 10)]
    assert np.allclose(found.directions, unit(maps[np.ix_([1, 4], [1, 4, 7])]).reshape(-1, 4))


def test_maps_may_be_finer_than_pixels() -> None:
    maps = np.random.default_rng(0).normal(size=(18, 22, 4))
    found = grid_features(maps, (9, 11), "pixels", 4)
    assert found.points.tolist() == [[x, y] for y in (2, 6) for x in (2, 6, 10)]
    means = maps.reshape(9, 2, 11, 2, 4).mean(axis=(1, 3))  # the centre of a pixel is in the middle of four cells
    assert np.allclose(found.directions, unit(means[2::4, 2::4]).reshape(-1, 4))


def test_what_does_not_fit_is_refused() -> None:
    maps = np.ones((2, 3, 4))
    with pytest.raises(DataError, match="features must be finite"):
        grid_features(np.full((2, 3, 4), np.nan), (4, 6), "pixels", 1)
    with pytest.raises(DataError, match=r"points must be finite and of shape \(n, 2\)"):
        features_at(maps, (4, 6), [[np.nan, 1]], "pixels")
    with pytest.raises(DataError, match="step, the distance of grid points in pixels,"):
        grid_features(maps, (4, 6), "pixels", 0)
    assert not grid_features(np.zeros((2, 3, 4)), (4, 6), "grid", 1).directions.any()
