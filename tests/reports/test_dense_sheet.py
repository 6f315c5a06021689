"""Sheets of dense features: right matches are green, wrong ones red."""

from collections import Counter

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.reports.dense_sheet import dense_sheet


def sheet(right: bool) -> np.ndarray:
    view = np.zeros((48, 64, 3), np.uint8)
    features = np.zeros((12, 16, 5))
    matches = (np.array([[10.0, 20.0]]), np.array([[50.0, 30.0]]), np.array([right]))
    return np.asarray(dense_sheet([(view, view)], [(features, features)], [matches], "one match", tile=64)).astype(int)


def test_right_matches_are_green_and_wrong_ones_red() -> None:
    for right in (True, False):
        red, green, _ = np.moveaxis(sheet(right), -1, 0)
        assert ((green > red + 60).any(), (red > green + 60).any()) == (right, not right)


def test_equal_features_have_equal_colors_and_patches_are_squares() -> None:
    view = np.zeros((48, 64, 3), np.uint8)
    patches = np.zeros((2, 2, 3))
    patches[0, 1], patches[1] = 1, 2
    nothing = (np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, dtype=bool))
    drawn = np.asarray(dense_sheet([(view, view)], [(patches, patches)], [nothing], "", tile=64))
    counts = Counter(map(tuple, drawn.reshape(-1, 3).tolist()))
    patch = 24 * 32  # pixels of a patch in a view of the sheet, less what rounding takes away
    assert counts[255, 0, 0] >= 2 * 2 * 0.8 * patch, "the lower half of both views"
    assert counts[127, 0, 0] >= 2 * 0.7 * patch, "one patch of each"


def test_pairs_must_be_as_many() -> None:
    with pytest.raises(DataError, match="a sheet requires at least one pair of views"):
        dense_sheet([], [], [], "nothing")
