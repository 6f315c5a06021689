"""Principal components: the covariance's eigenvectors, shares of variance, and the sign."""

import numpy as np
import pytest

pytest.importorskip("torch")
from setsup.errors import DataError, SetsupError
from setsup.evaluation.projection import principal_components
from setsup.random import fold, stream_key, uniform

POINTS = uniform(fold(stream_key(0, "test"), np.arange(200))).reshape(40, 5) * [5, 1, 3, 0.1, 0.5] + 100


def test_components_are_eigenvectors_of_the_covariance() -> None:
    found = principal_components(POINTS)
    values, vectors = np.linalg.eigh(np.cov(POINTS.T))
    np.testing.assert_allclose(found.explained, values[::-1] / values.sum(), atol=1e-12)
    np.testing.assert_allclose(np.abs(found.directions), np.abs(vectors.T[::-1]), atol=1e-9)
    np.testing.assert_allclose(found.mean, POINTS.mean(axis=0))


def test_projections_keep_distances_and_have_the_shares() -> None:
    found = principal_components(POINTS)
    placed = found.project(POINTS)
    np.testing.assert_allclose(placed.var(axis=0) / placed.var(axis=0).sum(), found.explained, atol=1e-12)
    np.testing.assert_allclose(np.cov(placed.T), np.diag(placed.var(axis=0, ddof=1)), atol=1e-12)
    apart = np.linalg.norm(POINTS[:, None] - POINTS, axis=2)
    np.testing.assert_allclose(np.linalg.norm(placed[:, None] - placed, axis=2), apart, atol=1e-9)


def test_the_greatest_entry_is_positive() -> None:
    for sign in (1, -1):
        directions = principal_components(POINTS * sign).directions
        assert (np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1) > 0).all()
    # of two entries of equal magnitude the first decides
    found = principal_components([[1.0, -1.0], [-1.0, 1.0], [0.1, 0.1], [-0.1, -0.1]])
    np.testing.assert_allclose(found.directions, np.array([[1, -1], [1, 1]]) / np.sqrt(2), atol=1e-12)


def test_fewer_components_are_the_first_ones() -> None:
    some, every = principal_components(POINTS, 2), principal_components(POINTS)
    np.testing.assert_array_equal(some.directions, every.directions[:2])
    np.testing.assert_array_equal(some.explained, every.explained[:2])
    np.testing.assert_allclose(some.project(POINTS), every.project(POINTS)[:, :2])


def test_points_of_a_plane_have_two_components() -> None:
    plane = POINTS[:, :2] @ np.array([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]])
    np.testing.assert_allclose(principal_components(plane).explained[2], 0, atol=1e-15)


def test_bad_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(SetsupError, match=r"embeddings of shape \(3, 5\) have only 3 components, fewer than k=4"):
        principal_components(POINTS[:3], 4)
    with pytest.raises(DataError, match="all 4 embeddings are equal"):
        principal_components(np.full((4, 2), 0.1))
    with pytest.raises(DataError, match="embeddings must have the 5 dimensions of the components, not 4"):
        principal_components(POINTS).project(POINTS[:, :4])
    with pytest.raises(DataError, match="row 1 of 2"):
        principal_components([[0.0], [np.inf]])
