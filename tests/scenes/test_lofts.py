"""Lofted bodies: their mirror plane, their volume, and the materials of their strips."""

import numpy as np
import pytest

from setsup.scenes.meshes.lofts import loft, mirrored, outline
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.meshes.primitives import cylinder


def _triangles(mesh):
    """Corners of each triangle, sorted, so that sets of triangles can be compared."""
    corners = mesh.vertices[mesh.faces].round(9) + 0.0  # no negative zeros
    return sorted(sorted(map(tuple, triangle)) for triangle in corners.tolist())


def test_a_loft_is_its_own_mirror_image():
    stations = [outline([0.4, 0.5 + 0.1 * x, 0.3], [0.1, 0.4, 0.8 - 0.1 * x], x) for x in (-1.0, 0.2, 1.3)]
    body = loft(stations, (Material((9, 9, 9)), Material((8, 8, 8))), [[0, 1, 0, 1], [1, 1, 1, 1]])
    other = type(body)(body.vertices * [1, -1, 1], body.faces)
    assert _triangles(body) == _triangles(other)
    assert body.bounds[0, 1] == -body.bounds[1, 1] == pytest.approx(-0.63)


def test_strips_have_their_materials_and_ends_the_first():
    stations = [outline([0.5, 0.5], [0.0, 1.0], x) for x in (0.0, 2.0)]
    body = loft(stations, (Material(), Material(), Material()), [[0, 1, 2]])
    counts = np.bincount(body.material)
    assert counts.tolist() == [2 * (2 + 4), 2 * 2, 2 * 2]  # of either half: two triangles a quad, two an end
    normals = np.cross(*np.swapaxes(np.diff(body.vertices[body.faces], axis=1), 0, 1))
    area = np.linalg.norm(normals, axis=1).sum() / 2
    assert area == pytest.approx(2 * (1 * 1 + 1 * 2 + 1 * 2))  # a box of 1 × 1 × 2, all of whose sides are there


def test_mirrored_bodies_keep_normals():
    wheel = cylinder(0.3, 0.2, segments=12)
    pair = mirrored(wheel)
    half = len(wheel.vertices)
    np.testing.assert_array_equal(pair.normals[half:], wheel.normals * np.float32([1, -1, 1]))
    np.testing.assert_array_equal(pair.vertices[:half], wheel.vertices)
    assert len(pair.faces) == 2 * len(wheel.faces)
