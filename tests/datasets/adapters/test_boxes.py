import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from setsup.datasets.adapters.boxes import clipped, crop, edges, jittered

PICTURE = np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)


def test_clipping():
    boxes = [[1, 1, 60, 40], [-5, -7, 90, 90], [60, 40, 60, 40], [61, 1, 70, 10], [10, 10, 9, 20], [np.nan, 1, 2, 3]]
    found = clipped(boxes, [40, 60])
    assert found[:3].tolist() == [[1, 1, 60, 40], [1, 1, 60, 40], [60, 40, 60, 40]]
    assert np.isnan(found[3:]).all()
    assert clipped([3, 4, 500, 600], [np.inf, np.inf]).tolist() == [3, 4, 500, 600]
    assert np.isnan(clipped([3, 4, np.inf, 600], [40, 60])).all()


def test_a_crop_is_the_pixels_of_its_box():
    sides = edges([11, 6, 30, 25])
    assert np.array_equal(crop(PICTURE, sides, (20, 20)), PICTURE[5:25, 10:30])
    one = crop(PICTURE, edges([60, 40, 60, 40]), (3, 2))
    assert (one == PICTURE[39, 59]).all()
    assert np.array_equal(crop(PICTURE, (-9, -9, 99, 99), (40, 60)), PICTURE)


def test_a_crop_is_resized_by_areas():
    """Halved by the antialiased bilinear filter: a triangle over four pixels of each axis."""
    found = crop(PICTURE, (0, 0, 60, 40), (20, 30)).astype(float)
    weights = np.array([1, 3, 3, 1]) / 8
    block = PICTURE[9:13, 19:23].astype(float)
    assert np.abs(found[5, 10] - np.einsum("i,j,ijc", weights, weights, block)).max() <= 1
    reference = Image.fromarray(PICTURE).resize((30, 20), Image.Resampling.BILINEAR)
    assert np.array_equal(found, np.asarray(reference))


def test_jitter_is_a_function_of_the_row_and_the_seed():
    sides = np.tile([10.0, 20.0, 30.0, 60.0], (1000, 1))
    rows = np.arange(1000)
    moved = jittered(sides, rows, 0.0, 0.1, 5, "test") - sides
    lengths = np.array([20, 40, 20, 40])
    assert (np.abs(moved) <= 0.1 * lengths).all()
    # uniform: the mean of the absolute value is half of the most
    assert np.abs(np.abs(moved / lengths).mean(axis=0) - 0.05).max() < 0.005
    assert np.abs(np.corrcoef(moved.T) - np.eye(4)).max() < 0.15
    assert np.array_equal(jittered(sides[:3], rows[[7, 900, 7]], 0.0, 0.1, 5, "test") - sides[:3], moved[[7, 900, 7]])
    assert not np.array_equal(jittered(sides, rows, 0.0, 0.1, 6, "test") - sides, moved)
    assert not np.array_equal(jittered(sides, rows, 0.0, 0.1, 5, "other") - sides, moved)


@given(st.floats(1, 60), st.floats(1, 40), st.floats(0, 59), st.floats(0, 39), st.integers(0, 999), st.floats(0, 0.49))
def test_any_jittered_box_gives_a_picture(left, top, width, height, row, jitter):
    box = clipped([left, top, left + width, top + height], [40, 60])
    sides = jittered(edges(box)[np.newaxis], np.array([row]), 0.2, jitter, 0, "test")
    assert (sides[0, 2:] > sides[0, :2]).all()
    assert crop(PICTURE, sides[0], (8, 8)).shape == (8, 8, 3)


def test_margins():
    assert jittered([[0, 0, 10, 20]], np.array([0]), 0.5, 0.0, 0, "x").tolist() == [[-5, -10, 15, 30]]


@pytest.mark.parametrize("shape", [(0, 4), (2, 3, 4)])
def test_shapes(shape):
    assert clipped(np.ones(shape), [40, 60]).shape == shape
    assert edges(np.ones(shape)).shape == shape
