"""Poses of rows of a dataset, whatever the data say of them."""

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup_papers.abc.pose.poses import read_rotations
from setsup_papers.abc.pose.rotations import rotation_from_euler

IMAGES = np.zeros((3, 4, 4, 3), np.uint8)
ANGLES = {"azimuth": np.array([10.0, 200.0, 359.0]), "elevation": np.array([-5.0, 0.0, 80.0])}


def of_angles(unit: str, whole: float) -> setsup.datasets.Dataset:
    factors = [Factor(name, Kind.CONTINUOUS, unit=unit) for name in ANGLES]
    return setsup.from_arrays(IMAGES, FactorTable(factors, {n: one / 360 * whole for n, one in ANGLES.items()}))


@pytest.mark.parametrize(("unit", "whole"), [("", 360), ("deg", 360), ("°", 360), ("rad", 2 * np.pi), ("turn", 1)])
def test_angles_are_in_their_unit(unit: str, whole: float) -> None:
    expected = rotation_from_euler(ANGLES["azimuth"], ANGLES["elevation"])
    np.testing.assert_allclose(read_rotations(of_angles(unit, whole)), expected, atol=1e-6)


@pytest.mark.parametrize("unit", ["gon", "m"])
def test_other_units_are_refused(unit: str) -> None:
    with pytest.raises(DataError, match=f"'azimuth' of arrays must be 'deg', 'rad' or 'turn', not '{unit}'"):
        read_rotations(of_angles(unit, 400))


@pytest.mark.parametrize("wrong", [2 * np.eye(3), -np.eye(3), np.zeros((3, 3)), np.full((3, 3), 1e200)])
def test_matrices_that_are_no_rotations_are_named(wrong: np.ndarray) -> None:
    matrices = np.stack([np.eye(3), np.full((3, 3), np.nan), wrong])
    poses = setsup.from_arrays({"image": IMAGES, "rotation": matrices}, {"number": [0, 1, 2]})
    assert np.isnan(read_rotations(poses, [1])).all()
    with pytest.raises(DataError, match=r"'rotation' of row 2 of arrays is not a rotation"):
        read_rotations(poses, [0, 1, 2])
