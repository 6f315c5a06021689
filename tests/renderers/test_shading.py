"""Colours against the formulas: materials, textures, lights and shadows, as the reference renderer draws them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from setsup.scenes import Ambient, Camera, Directional, Lamp, Material, Mesh, Placement, Scene
from setsup.scenes.color import LINEAR, to_bytes
from setsup.scenes.meshes.primitives import box, plane, sphere
from setsup_renderers.embree import EmbreeRenderer
from tests.renderers.scenes import turned

GREY = Material((188, 188, 188))


def drawn(scene, camera, **options):
    renderer = EmbreeRenderer(**options)
    renderer.load(scene)
    return renderer.render(camera)


def quad(corners=((-1, 1), (1, 1), (1, -1), (-1, -1)), uv=None, **parts):
    """A quad at z = 0, in corners (x, y); uv 0 … 1 from the lower left."""
    vertices = [(x, y, 0) for x, y in corners]
    uv = [(0, 1), (1, 1), (1, 0), (0, 0)] if uv is None else uv
    return Mesh(vertices, [[0, 1, 2], [0, 2, 3]], uv=uv, **parts)


def front(height, width, distance=2.0):
    """A camera before z = 0, y up, whose picture is as high as the quad."""
    return Camera.look_at(
        (0, 0, distance), (0, 0, 0), height=height, width=width, focal_length=height * distance / 2, up=(0, 1, 0)
    )


def points_of(frame, camera):
    """World points of a frame, (H, W, 3), in float64."""
    rays = camera.rays().reshape(camera.height, camera.width, 3)
    return camera.centre + rays * frame.depth[..., None].astype(np.float64)


def test_ambient_light_of_one_shows_every_color_as_it_is():
    dice = np.random.default_rng(0)
    colors = np.stack([np.arange(256), dice.permutation(256), dice.permutation(256)], axis=1)
    faces = np.arange(3 * 256).reshape(-1, 3)
    corners = [(x + dx, y + dy, 0) for x in range(16) for y in range(16) for dx, dy in ((0, 0), (1, 0), (0.5, 1))]
    materials = tuple(Material(tuple(color)) for color in colors.tolist())
    mesh = Mesh(corners, faces, materials=materials, material=np.arange(256))
    camera = Camera.look_at((8, 8, 30), (8, 8, 0), height=200, width=200, focal_length=370, up=(0, 1, 0))
    frame = drawn(Scene((Placement(mesh),), (Ambient(),)), camera)
    met = frame.triangle >= 0
    assert len(np.unique(frame.triangle[met])) == 256
    assert np.array_equal(frame.rgb[met], colors[frame.triangle[met]])


def test_lights_add_up_in_linear_light():
    mesh = quad(materials=(Material((200, 100, 50)),))
    lights = (Ambient((0.25, 0.5, 0.125)), Ambient((0.25, 0.125, 0.0)), Ambient((0, 0, 0)))
    frame = drawn(Scene((Placement(mesh),), lights), front(2, 2))
    assert (frame.rgb == to_bytes(LINEAR[[200, 100, 50]] * (0.5, 0.625, 0.125))).all()
    assert (drawn(Scene((Placement(mesh),), ()), front(2, 2)).rgb == 0).all()  # no light: dark
    assert (drawn(Scene((Placement(mesh),), (Ambient((99, 99, 99)),)), front(2, 2)).rgb == 255).all()


@pytest.mark.parametrize("degrees", [-75, -30, 0, 45, 80])
@pytest.mark.parametrize("both", ["front", "back"])
@pytest.mark.parametrize("kind", ["directional", "of_camera", "lamp", "falling lamp", "spot"])
def test_lambert_by_the_formula(kind, both, degrees):
    """A plane turned about x; seen from the front, or with its winding turned round."""
    light = {
        "directional": Directional((0.3, -0.2, -2.0), (0.9, 0.5, 0.2)),
        "of_camera": Directional((0.1, 0.3, 3.0), (0.9, 0.5, 0.2), of_camera=True),
        "lamp": Lamp((0.5, 1.0, 1.5), (0.9, 0.5, 0.2)),
        "falling lamp": Lamp((0.5, 1.0, 1.5), (0.9, 0.5, 0.2), reach=1.2),
        "spot": Lamp((0.5, 1.0, 1.5), (0.9, 0.5, 0.2), axis=(-1, -1, -3), exponent=3.5),
    }[kind]
    mesh = quad(materials=(Material((255, 188, 128)),))
    if both == "back":
        mesh = Mesh(mesh.vertices, mesh.faces[:, ::-1], materials=mesh.materials)
    camera = Camera.look_at((0.3, -0.2, 3), (0, 0, 0), height=40, width=40, focal_length=60, up=(0, 1, 0))
    frame = drawn(Scene((Placement(mesh, turned(degrees, 0)),), (light,)), camera)
    met = frame.triangle >= 0
    assert met.sum() > 50
    points = points_of(frame, camera)[met]
    normal = turned(degrees, 0) @ (0, 0, 1)
    normal = normal * np.sign(normal @ (camera.centre - points[0]))
    if isinstance(light, Lamp):
        to = light.position - points
        distance = np.linalg.norm(to, axis=1)
        to /= distance[:, None]
        share = np.maximum(to @ normal, 0)
        if light.axis:
            share *= np.maximum(-to @ np.array(light.axis) / np.linalg.norm(light.axis), 0) ** light.exponent
        if light.reach:
            share *= (light.reach / distance) ** 2
    else:
        way = np.array(light.direction) / np.linalg.norm(light.direction)
        way = camera.rotation.T @ way if light.of_camera else way
        share = np.full(len(points), max(-way @ normal, 0))
    expected = to_bytes(share[:, None] * np.array(light.color) * LINEAR[[255, 188, 128]])
    assert np.abs(frame.rgb[met].astype(int) - expected).max() <= 1
    assert (frame.rgb[met] == expected).mean() > 0.98  # but halves of a byte


def test_a_spot_without_exponent_gives_nothing_backwards():
    scene = Scene((Placement(quad(materials=(GREY,))),), (Lamp((0, 0, 1), axis=(0, 0, 1)),))
    assert (drawn(scene, front(3, 3)).rgb == 0).all()
    scene = Scene((Placement(quad(materials=(GREY,))),), (Lamp((0, 0, 1), axis=(0, 0, -1)),))
    assert drawn(scene, front(3, 3)).rgb[1, 1].tolist() == [188] * 3


@pytest.mark.long("renderings")
def test_a_smooth_mesh_is_lit_by_its_interpolated_normals():
    """A sphere, stretched along its axes: the normal of the surface is the gradient of its equation."""
    mesh, scale, turn = sphere(1.0, segments=256, material=GREY), np.array([1.0, 0.5, 1.6]), turned(35, 0)
    light = Directional((1, 2, -3))
    camera = Camera.look_at((3, -4, 2), (0, 0, 0), height=90, width=90, focal_length=110)
    scenes = [Scene((Placement(mesh, turn, scale=scale),), (light,))]
    # neither winding nor the side of the normals has a meaning
    inside_out = Mesh(mesh.vertices, mesh.faces[:, ::-1], normals=-3 * mesh.normals, materials=mesh.materials)
    scenes.append(Scene((Placement(inside_out, turn, scale=scale),), (light,)))
    first, second = (drawn(scene, camera) for scene in scenes)
    met = first.triangle >= 0
    gradient = (points_of(first, camera)[met] @ turn) / scale**2 @ turn.T
    gradient /= np.linalg.norm(gradient, axis=1, keepdims=True)
    cosine = (first.normal[met] @ camera.rotation * gradient).sum(axis=1)
    assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).max() < 0.6
    share = np.maximum(gradient @ (-1, -2, 3) / math.sqrt(14), 0)
    assert np.abs(first.rgb[met].astype(int) - to_bytes(share * LINEAR[188])[:, None]).max() <= 3
    assert np.abs(first.rgb.astype(int) - second.rgb).max() <= 1
    assert np.allclose(first.normal, second.normal, atol=1e-5)


def test_smooth_and_flat_meshes_stand_side_by_side():
    ball, brick = sphere(0.5, segments=24, material=GREY), box(material=GREY)
    camera = Camera.look_at((0, -6, 2), (0, 0, 0), height=60, width=80, focal_length=90)
    both = drawn(Scene((Placement(brick, translation=(-1, 0, 0)), Placement(ball, translation=(1, 0, 0)))), camera)
    alone = [
        drawn(Scene((Placement(mesh, translation=(x, 0, 0)),)), camera) for mesh, x in ((brick, -1.0), (ball, 1.0))
    ]
    for number, one in enumerate(alone):
        met = one.triangle >= 0
        assert (both.instance[met] == number).all()
        assert np.array_equal(both.rgb[met], one.rgb[met])
        assert np.allclose(both.normal[met], one.normal[met], atol=1e-5)


def test_normals_that_cancel_leave_the_triangle_flat():
    mesh = quad(normals=[[0, 0, 1], [0, 0, -1], [0, 0, 1], [0, 0, -1]], materials=(GREY,))
    frame = drawn(Scene((Placement(mesh),), (Directional((0, 0, -1)),)), front(3, 3))
    assert np.isfinite(frame.normal).all()
    assert (frame.rgb == 188).all()


PATCHES = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 0]]], np.uint8)


def test_the_first_row_of_a_texture_is_its_top():
    mesh = quad(materials=(Material((255, 255, 255), PATCHES),))
    frame = drawn(Scene((Placement(mesh),), (Ambient(),)), front(2, 2))
    assert np.array_equal(frame.rgb, PATCHES)


@pytest.mark.long("renderings")
@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    low=st.floats(-3, 0),
    high=st.floats(0.5, 4),
    seed=st.integers(0, 1 << 20),
)
def test_textures_are_bilinear_in_linear_light_and_repeat(height, width, low, high, seed):
    texture = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    corners = np.array([(low, high), (high, high), (high, low), (low, low)], np.float32)
    mesh = quad(uv=corners, materials=(Material((255, 255, 255), texture),))
    camera = front(24, 24)
    frame = drawn(Scene((Placement(mesh),), (Ambient(),)), camera)
    low, high = corners[3, 0].astype(np.float64), corners[1, 0].astype(np.float64)
    at = low + (high - low) * (points_of(frame, camera)[..., :2] + 1) / 2
    row, column = (1 - at[..., 1]) * height - 0.5, at[..., 0] * width - 0.5
    expected = np.stack(
        [ndimage.map_coordinates(LINEAR[texture[..., c]], [row, column], order=1, mode="grid-wrap") for c in range(3)],
        axis=-1,
    )
    # float32 texture coordinates: a ten-thousandth of a texel
    assert np.abs(LINEAR[frame.rgb] - expected).max() < 5e-3


def test_textures_multiply_colors_and_differ_from_material_to_material():
    white, plain = np.full((3, 5, 3), 255, np.uint8), Material((10, 200, 30))
    materials = (Material((128, 255, 64), PATCHES), plain, Material((90, 90, 90), white))
    parts = [quad(materials=materials, material=[kind, kind]) for kind in range(3)]
    scene = Scene(tuple(Placement(mesh, translation=(2.5 * k, 0, 0)) for k, mesh in enumerate(parts)), (Ambient(),))
    for kind, color in ((1, (10, 200, 30)), (2, (90, 90, 90))):
        camera = Camera.look_at((2.5 * kind, 0, 2), (2.5 * kind, 0, 0), height=2, width=2, focal_length=2, up=(0, 1, 0))
        assert (drawn(scene, camera).rgb == color).all()
    expected = to_bytes(LINEAR[PATCHES] * LINEAR[[128, 255, 64]])
    assert np.array_equal(drawn(scene, front(2, 2)).rgb, expected)


def test_a_texture_without_coordinates_is_not_seen():
    bare = Mesh(quad().vertices, quad().faces, materials=(Material((1, 2, 3), PATCHES),))
    mapped = quad(materials=(Material((255, 255, 255), PATCHES),))
    frame = drawn(Scene((Placement(bare), Placement(mapped, translation=(9, 0, 0))), (Ambient(),)), front(2, 2))
    assert (frame.rgb == (1, 2, 3)).all()


def test_vertex_colors_are_interpolated_in_linear_light_and_multiplied():
    colors = np.array([[255, 0, 0], [255, 255, 0], [0, 255, 128], [0, 0, 128]], np.uint8)
    mesh = quad(colors=colors, materials=(Material((188, 255, 255)),))
    camera = front(20, 20)
    frame = drawn(Scene((Placement(mesh),), (Ambient(),)), camera)
    x, y = (points_of(frame, camera)[..., :2] + 1).transpose(2, 0, 1) / 2
    expected = np.stack([y * LINEAR[188], x, (1 - y) * LINEAR[128]], axis=-1)
    assert np.abs(frame.rgb.astype(int) - to_bytes(expected)).max() <= 1


SCENES = {"millimetres": (1e-3, 0.0), "metres": (1.0, 0.0), "a kilometre": (1e3, 0.0), "far away": (1.0, 1e5)}


@pytest.mark.parametrize("unit", SCENES)
def test_what_is_round_throws_no_shadow_on_itself(unit):
    """On a convex mesh the side away from the light is dark with or without shadows, the other lit."""
    scale, away = SCENES[unit]
    stands = Placement(
        Mesh(sphere(1.0, segments=96).vertices, sphere(1.0, segments=96).faces, materials=(GREY,)),
        turned(20, 0),
        np.full(3, away),
        np.full(3, scale),
    )
    middle = np.full(3, away)
    for eye in ((3, -4, 2), (30, 10, -50)):
        camera = Camera.look_at(middle + np.array(eye) * scale, middle, height=120, width=120, field_of_view=0.9)
        camera = camera if eye[0] < 9 else camera.windowed(55, 55, 10, 10).resized(120, 120)
        for shadow in (
            Directional((1, 2, -3), shadow=True),
            Lamp(tuple(middle + np.array((-2, -3, 3)) * scale), shadow=True),
        ):
            frames = [
                drawn(Scene((stands,), (Ambient((0.1, 0.1, 0.1)), one)), camera) for one in (shadow, _bare(shadow))
            ]
            assert (frames[0].triangle >= 0).mean() > 0.1
            assert np.array_equal(frames[0].rgb, frames[1].rgb)


def _bare(light):
    if isinstance(light, Lamp):
        return Lamp(light.position)
    return Directional(light.direction)


@pytest.mark.parametrize("kind", ["sun", "lamp"])
@pytest.mark.parametrize("unit", SCENES)
def test_a_box_throws_its_shadow_where_geometry_has_it(kind, unit):
    scale, away = SCENES[unit]
    middle = np.full(3, away)
    sun, lamp = np.array([0.6, 0.3, -1.0]), np.array([-1.0, 0.5, 2.2])
    light = Directional(tuple(sun), shadow=True) if kind == "sun" else Lamp(tuple(middle + lamp * scale), shadow=True)
    floor = Placement(plane((6, 6), material=GREY), translation=middle, scale=np.full(3, scale))
    brick = Placement(
        box(), translation=middle + np.array([0, 0, 0.8]) * scale, scale=np.full(3, scale)
    )  # 0.3 above the floor
    camera = Camera.look_at(middle + np.array((0, -5, 4)) * scale, middle, height=150, width=150, field_of_view=0.9)
    frame = drawn(Scene((floor, brick), (light,)), camera)
    ground = frame.instance == 0
    points = (points_of(frame, camera)[ground] - middle) / scale
    to = np.broadcast_to(-sun, points.shape) if kind == "sun" else lamp - points
    surely, perhaps = (_crosses(points, to, size) for size in (0.49, 0.51))
    lit = frame.rgb[ground].max(axis=1) > 0
    assert surely.sum() > 300
    assert not lit[surely].any()
    assert lit[~perhaps].all()


def _crosses(points, to, half):
    """Whether points + t · to, 0 ≤ t ≤ 1 or on and on, meet the box about (0, 0, 0.8): the slab test."""
    with np.errstate(divide="ignore"):
        first, second = ((sign * half + np.array([0, 0, 0.8]) - points) / to for sign in (-1, 1))
    enter, leave = np.minimum(first, second).max(axis=1), np.maximum(first, second).min(axis=1)
    return (enter <= leave) & (leave >= 0)


def test_a_lamp_is_not_shaded_by_what_is_behind_it():
    wall = Placement(plane((20, 20)), translation=(0, 0, 3))
    scene = Scene((Placement(quad(materials=(GREY,))), wall), (Lamp((0, 0, 2.5), shadow=True),))
    assert drawn(scene, front(3, 3)).rgb[1, 1].tolist() == [188] * 3
    shaded = Scene((Placement(quad(materials=(GREY,))), wall), (Lamp((0, 0, 3.5), shadow=True),))
    assert drawn(shaded, front(3, 3)).rgb[1, 1].tolist() == [0] * 3


def test_light_does_not_come_through_a_surface():
    """Seen from below, a sheet is not lit from above; its own shadow sees to that where lights have shadows."""
    for light in (
        Directional((0, 0, -1), shadow=True),
        Directional((0, 0, -1)),
        Lamp((0, 0, 5)),
        Lamp((0, 0, 5), shadow=True),
    ):
        camera = Camera.look_at((0, 0, -2), (0, 0, 0), height=4, width=4, focal_length=4, up=(0, 1, 0))
        assert (drawn(Scene((Placement(quad(materials=(GREY,))),), (light,)), camera).rgb == 0).all()
