import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import SetsupError
from setsup.scenes import Material
from setsup.scenes.meshes.primitives import box, capsule, cylinder, plane, sphere

trimesh = pytest.importorskip("trimesh")

LENGTHS = st.floats(0.01, 100)


def as_trimesh(mesh):
    found = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    found.merge_vertices(merge_tex=True, merge_norm=True)
    return found


@given(st.tuples(LENGTHS, LENGTHS, LENGTHS))
def test_a_box(size):
    found = as_trimesh(box(size))
    x, y, z = size
    assert found.is_watertight
    assert found.is_winding_consistent
    assert found.volume == pytest.approx(x * y * z)
    assert found.area == pytest.approx(2 * (x * y + y * z + z * x))
    assert np.allclose(found.bounds, [-np.array(size) / 2, np.array(size) / 2])


def test_sides_of_a_box_stand_in_their_order_each_with_the_whole_texture():
    mesh = box((2, 4, 6))
    corners = mesh.corners
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    ways = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]]
    assert np.array_equal(normals, np.repeat(ways, 2, axis=0))
    assert mesh.normals is None
    for side in range(6):
        own = slice(4 * side, 4 * side + 4)
        assert sorted(mesh.uv[own].tolist()) == [[0, 0], [0, 1], [1, 0], [1, 1]]
        if side < 4:  # walls: the top of the picture is at the top
            assert np.array_equal(mesh.uv[own, 1] > 0.5, mesh.vertices[own, 2] > 0)
        # the picture is not mirrored for whoever looks from outside
        u = mesh.vertices[4 * side + 1] - mesh.vertices[4 * side]
        v = mesh.vertices[4 * side + 3] - mesh.vertices[4 * side]
        assert np.cross(u, v) @ ways[side] > 0


def test_a_plane_faces_up():
    mesh = plane((2, 3))
    corners = mesh.corners
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.allclose(normals, [[0, 0, 6]] * 2)
    assert np.allclose(mesh.vertices[:, :2], (mesh.uv - 0.5) * [2, 3])


ROUND = {
    # volume and area of the exact body, and the distance of points to its surface (negative inside)
    "sphere": (
        lambda n: sphere(2.0, segments=n),
        4 / 3 * np.pi * 8,
        4 * np.pi * 4,
        lambda p: np.linalg.norm(p, axis=1) - 2,
    ),
    "cylinder": (
        lambda n: cylinder(2.0, 3.0, segments=n),
        np.pi * 4 * 3,
        2 * np.pi * 2 * 3 + 2 * np.pi * 4,
        lambda p: np.maximum(np.linalg.norm(p[:, :2], axis=1) - 2, np.abs(p[:, 2]) - 1.5),
    ),
    "capsule": (
        lambda n: capsule(2.0, 3.0, segments=n),
        np.pi * 4 * 3 + 4 / 3 * np.pi * 8,
        2 * np.pi * 2 * 3 + 4 * np.pi * 4,
        lambda p: np.linalg.norm(p - np.clip(p, [0, 0, -1.5], [0, 0, 1.5]), axis=1) - 2,
    ),
}


@pytest.mark.parametrize("name", ROUND)
@pytest.mark.parametrize("segments", [8, 32, 128])
def test_round_bodies_against_the_exact_ones(name, segments):
    make, volume, area, distance = ROUND[name]
    mesh = make(segments)
    found = as_trimesh(mesh)
    assert found.is_watertight
    assert found.is_winding_consistent
    error = (np.pi / segments) ** 2  # of inscribed polygons, relatively, times 2/3 for one direction
    assert volume * (1 - 2 * error) < found.volume < volume
    assert area * (1 - 2 * error) < found.area < area
    assert np.abs(distance(mesh.vertices)).max() < 1e-12
    points, _ = trimesh.sample.sample_surface(found, 2000, seed=1)
    deepest = 2 * (1 - np.cos(np.pi / segments) ** 2)
    assert -deepest - 1e-9 < distance(points).min()
    assert distance(points).max() < 1e-9


@pytest.mark.parametrize("name", ROUND)
def test_normals_are_those_of_the_exact_surface(name):
    make, _, _, distance = ROUND[name]
    mesh = make(16)
    assert np.allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-6)
    # just outside along the normal the distance grows as fast as one moves
    step = 1e-4
    assert np.allclose(distance(mesh.vertices + step * mesh.normals), step, atol=1e-7)
    corners = mesh.corners
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.linalg.norm(faces, axis=1) > 0).all()
    faces /= np.linalg.norm(faces, axis=1, keepdims=True)
    assert (np.einsum("fi,fci->fc", faces, mesh.normals[mesh.faces]) > 0.9).all()  # outwards, all of them


def test_lids_are_flat_and_carry_the_texture_as_a_disc():
    mesh = cylinder(1.0, 2.0, segments=12)
    top = mesh.vertices[:, 2] == 1
    lid = top & (mesh.normals[:, 2] == 1)
    assert lid.sum() == 26
    assert np.allclose(mesh.uv[lid], 0.5 + mesh.vertices[lid, :2] / 2)
    assert (mesh.normals[top & ~lid][:, 2] == 0).all()


@pytest.mark.parametrize("make", [sphere, cylinder, capsule])
def test_seams_close_exactly_and_textures_go_around_once(make):
    mesh = make(segments=24)
    side = np.abs(mesh.normals[:, 2]) < 0.99
    first, last = side & (mesh.uv[:, 0] == 0), side & (mesh.uv[:, 0] == 1)
    assert np.array_equal(mesh.vertices[first], mesh.vertices[last])
    order = np.argsort(mesh.vertices[first, 2])
    assert (np.diff(mesh.uv[first, 1][order]) > 0).all()
    quarter = side & (mesh.uv[:, 0] == 0.25)
    assert (mesh.vertices[quarter, 1] > 0).all()  # counter-clockwise from x
    assert (mesh.vertices[quarter, 0] == 0).all()


@pytest.mark.parametrize("segments", [3, 4, 5, 7])
def test_few_segments(segments):
    for make in (sphere, cylinder, capsule):
        assert as_trimesh(make(segments=segments)).is_watertight


def test_materials_are_kept():
    red = Material((200, 0, 0))
    for make in (plane, box, sphere, cylinder, capsule):
        assert make(material=red).materials == (red,)
        assert make().materials[0].color == (188, 188, 188)


@pytest.mark.parametrize(
    "make",
    [
        lambda: plane((1, 0)),
        lambda: plane(3),
        lambda: box((1, 1)),
        lambda: box((1, 1, -1)),
        lambda: box((1, 1, float("nan"))),
        lambda: box("abc"),
        lambda: sphere(0),
        lambda: sphere(float("inf")),
        lambda: cylinder(1, -1),
        lambda: capsule(-1, 1),
        lambda: sphere(segments=2),
        lambda: cylinder(segments=3.5),
        lambda: capsule(segments=1 << 20),
        lambda: capsule(segments=True),
    ],
)
def test_sizes_that_are_none(make):
    with pytest.raises(SetsupError, match=r"must be|integer"):
        make()
