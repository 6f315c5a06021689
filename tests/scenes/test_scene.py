import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from setsup.errors import SetsupError
from setsup.scenes import STUDIO, Ambient, Directional, Lamp, Material, Mesh, Placement, Scene
from setsup.scenes.meshes.primitives import box, sphere

TURN = Rotation.from_euler("xyz", [20, 40, 60], degrees=True).as_matrix()


def test_points_are_scaled_along_the_axes_of_the_mesh_then_turned_then_moved():
    placement = Placement(box(), TURN, (1, 2, 3), (2, 3, 4))
    points = np.random.default_rng(0).normal(size=(5, 7, 3))
    found = placement.placed(points)
    for at in np.ndindex(5, 7):
        scaled = [points[at][axis] * (2, 3, 4)[axis] for axis in range(3)]
        turned = [sum(TURN[row, axis] * scaled[axis] for axis in range(3)) for row in range(3)]
        assert found[at] == pytest.approx([turned[0] + 1, turned[1] + 2, turned[2] + 3])
    trimesh = pytest.importorskip("trimesh")
    shift, turn, stretch = np.eye(4), np.eye(4), np.diag([2.0, 3, 4, 1])
    shift[:3, 3], turn[:3, :3] = (1, 2, 3), TURN
    assert np.allclose(placement.matrix, shift @ turn @ stretch)
    assert np.allclose(found.reshape(-1, 3), trimesh.transform_points(points.reshape(-1, 3), placement.matrix))


def test_a_quarter_turn_about_z_takes_x_to_y():
    quarter = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    assert Placement(box(), quarter, scale=(5, 1, 1)).placed([1, 0, 0]).tolist() == [0, 5, 0]


def test_triangles_are_numbered_through():
    ball, cube = sphere(segments=6), box((1, 2, 3))
    placements = (
        Placement(cube, name="first", instance=7),
        Placement(ball, TURN, (5, 0, 0), (1, 2, 3)),
        Placement(cube, translation=(0, 0, 9), instance=7, name="again"),
    )
    scene = Scene(placements)
    found = scene.triangles
    number = 0
    for place, placement in enumerate(placements):
        for face, corners in enumerate(placement.mesh.faces):
            expected = [placement.placed(placement.mesh.vertices[vertex]) for vertex in corners]
            assert np.allclose(found.corners[number], expected, atol=1e-12)
            assert (found.placement[number], found.face[number]) == (place, face)
            assert found.instance[number] == (7, 1, 7)[place]
            number += 1
    assert number == len(found.corners)
    assert scene.names == {7: "first", 1: ""}
    assert np.allclose(scene.bounds, [found.corners.min(axis=(0, 1)), found.corners.max(axis=(0, 1))])
    for array in (found.corners, found.placement, found.face, found.instance):
        assert not array.flags.writeable


def test_a_scene_may_be_empty():
    scene = Scene()
    assert scene.triangles.corners.shape == (0, 3, 3)
    assert scene.triangles.instance.shape == scene.triangles.face.shape == (0,)
    assert scene.bounds.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert scene.names == {}
    assert scene.lights == STUDIO


LAMP = Lamp((1, 2, 3), (1, 1, 1), axis=(0, 0, -1), exponent=2, reach=3, shadow=True)
BASE = Scene(
    (Placement(box(), name="box"), Placement(sphere(segments=8), TURN, (1, 2, 3), (1, 2, 3), instance=4, name="ball")),
    (Ambient((0.1, 0.2, 0.3)), Directional((0, 0, -1), shadow=True), LAMP),
    (10, 20, 30),
)


def _placed(**changed):
    return replace(BASE, placements=(BASE.placements[0], replace(BASE.placements[1], **changed)))


def _lit(number, **changed):
    lights = list(BASE.lights)
    lights[number] = replace(lights[number], **changed)
    return replace(BASE, lights=tuple(lights))


CHANGES = {
    "a mesh": lambda: _placed(mesh=sphere(segments=9)),
    "a material": lambda: _placed(mesh=sphere(segments=8, material=Material((1, 1, 1)))),
    "rotation": lambda: _placed(rotation=TURN.T),
    "translation": lambda: _placed(translation=(1, 2, np.nextafter(3, 4))),
    "scale": lambda: _placed(scale=(1, 3, 2)),
    "instance": lambda: _placed(instance=5),
    "name": lambda: _placed(name="balls"),
    "order of placements": lambda: replace(BASE, placements=BASE.placements[::-1]),
    "fewer": lambda: replace(BASE, placements=BASE.placements[:1]),
    "more": lambda: replace(BASE, placements=BASE.placements + BASE.placements[:1]),
    "nothing": lambda: replace(BASE, placements=()),
    "no lights": lambda: replace(BASE, lights=()),
    "order of lights": lambda: replace(BASE, lights=BASE.lights[::-1]),
    "ambient": lambda: _lit(0, color=(0.1, 0.2, 0.30001)),
    "direction": lambda: _lit(1, direction=(0, 1, -1)),
    "shadow": lambda: _lit(1, shadow=False),
    "of the camera": lambda: _lit(1, of_camera=True, shadow=False),
    "position": lambda: _lit(2, position=(1, 2, 4)),
    "colour": lambda: _lit(2, color=(1, 1, 0)),
    "no axis": lambda: _lit(2, axis=None),
    "exponent": lambda: _lit(2, exponent=1),
    "no reach": lambda: _lit(2, reach=None),
    "background": lambda: replace(BASE, background=(10, 20, 31)),
    "no background": lambda: replace(BASE, background=None),
}


def test_digests_differ_for_whatever_differs():
    digests = [BASE.digest, *(make().digest for make in CHANGES.values())]
    assert len(set(digests)) == len(digests)


def test_digests_agree_for_whatever_agrees():
    same = Scene(
        [
            Placement(
                box(), np.eye(3).tolist(), [0, -0.0, 0], np.ones(3, np.float32), instance=np.int64(0), name="box"
            ),
            Placement(sphere(segments=8), TURN.tolist(), np.array([1, 2, 3]), [1.0, 2, 3], 4, "ball"),
        ],
        [
            Ambient(np.array([0.1, 0.2, 0.3])),
            Directional([-0.0, 0.0, -1.0], np.ones(3), shadow=True),
            Lamp(np.array([1.0, 2, 3]), axis=[0, 0, -1], exponent=np.float64(2.0), reach=3, shadow=True),
        ],
        np.array([10, 20, 30], np.uint8),
    )
    assert same.digest == BASE.digest
    assert pickle.loads(pickle.dumps(BASE)).digest == BASE.digest


def test_pickles_share_meshes_and_carry_nothing_that_was_computed():
    scene = Scene(tuple(Placement(BASE.placements[1].mesh, translation=(i, 0, 0)) for i in range(50)))
    before = len(pickle.dumps(scene))
    assert len(scene.triangles.corners) == 50 * len(scene.placements[0].mesh.faces)
    assert scene.digest
    assert len(pickle.dumps(scene)) == before
    again = pickle.loads(pickle.dumps(scene))
    assert len({id(one.mesh) for one in again.placements}) == 1
    assert not again.placements[0].translation.flags.writeable
    assert not again.placements[0].mesh.vertices.flags.writeable


NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ambient((1, 1)), "color of a light"),
        (lambda: Ambient((1, 1, NAN)), "color of a light"),
        (lambda: Ambient((1, -0.1, 1)), "three non-negative numbers"),
        (lambda: Ambient("white"), "color of a light"),
        (lambda: Directional((0, 0, 0)), "must not be zero"),
        (lambda: Directional((0, 0, math.inf)), "direction of a light"),
        (lambda: Directional(None), "direction of a light"),
        (lambda: Directional((0, 0, 1), (-1, 0, 0)), "three non-negative numbers"),
        (lambda: Directional((0, 0, 1), of_camera=True, shadow=True), "cannot cast shadows"),
        (lambda: Lamp((0, 0)), "position of a lamp"),
        (lambda: Lamp((0, 0, NAN)), "position of a lamp"),
        (lambda: Lamp((0, 0, 0), (NAN, 1, 1)), "color of a light"),
        (lambda: Lamp((0, 0, 0), axis=(0, 0, 0)), "must not be zero"),
        (lambda: Lamp((0, 0, 0), axis=(0, NAN, 0)), "axis of a lamp"),
        (lambda: Lamp((0, 0, 0), exponent=-1), "exponent of a lamp"),
        (lambda: Lamp((0, 0, 0), exponent=NAN), "exponent of a lamp"),
        (lambda: Lamp((0, 0, 0), exponent=math.inf), "exponent of a lamp"),
        (lambda: Lamp((0, 0, 0), reach=0), "reach of a lamp"),
        (lambda: Lamp((0, 0, 0), reach=-1), "reach of a lamp"),
        (lambda: Lamp((0, 0, 0), reach=NAN), "reach of a lamp"),
        (lambda: Placement("box"), "must be a Mesh, not str"),
        (lambda: Placement(box(), np.diag([1, 1, -1])), "must be a rotation matrix"),
        (lambda: Placement(box(), 2 * np.eye(3)), "must be a rotation matrix"),
        (lambda: Placement(box(), np.full((3, 3), NAN)), "finite numbers"),
        (lambda: Placement(box(), translation=(0, 0)), "finite numbers"),
        (lambda: Placement(box(), translation="here"), "finite numbers"),
        (lambda: Placement(box(), scale=(1, 1, 0)), "must be positive"),
        (lambda: Placement(box(), scale=(1, 1, -1)), "must be positive"),
        (lambda: Placement(box(), scale=2), "finite numbers"),
        (lambda: Placement(box(), scale=(1e7, 1, 1)), "within 1,000,000 m"),
        (lambda: Placement(box(), scale=(1e308, 1e308, 1e308)), "within 1,000,000 m"),
        (lambda: Placement(box(), translation=(0, 0, 1e7)), "within 1,000,000 m"),
        (lambda: Placement(box(), instance=-1), "integer from 0 to 2,147,483,647"),
        (lambda: Placement(box(), instance=1 << 31), "integer from 0 to 2,147,483,647"),
        (lambda: Placement(box(), instance=1.5), "integer from 0 to 2,147,483,647"),
        (lambda: Placement(box(), instance=True), "integer from 0 to 2,147,483,647"),
        (lambda: Placement(box(), name=3), "must be a string"),
        (lambda: Scene((box(),)), "must be Placement instances, not Mesh"),
        (lambda: Scene(lights=("sun",)), "Ambient, Directional or Lamp"),
        (lambda: Scene(background=(0, 0)), "the background of a scene"),
        (lambda: Scene(background=(0, 0, 300)), "the background of a scene"),
        (lambda: Scene(background=(0.0, 0.0, 0.0)), "the background of a scene"),
    ],
)
def test_what_is_no_scene_is_refused(make, message):
    with pytest.raises(SetsupError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_one_mesh_may_stand_in_many_places_at_once():
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    scene = Scene(tuple(Placement(mesh, translation=(i, 0, 0)) for i in range(3)))
    assert all(one.mesh is mesh for one in scene.placements)
    assert scene.triangles.corners[:, 0, 0].tolist() == [0, 1, 2]
