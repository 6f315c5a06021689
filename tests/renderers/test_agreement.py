"""All renderers draw the same: ids, depth, normals, colours."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError
from setsup.scenes import Ambient, Camera, Light, Material, Mesh, Placement, Rays, Renderer, Scene, renderer
from setsup.scenes.color import linear
from setsup.scenes.meshes.primitives import plane
from setsup.scenes.recipes.room import Room
from tests.renderers.scenes import (
    AMBIENT,
    LIT,
    MODELS,
    alike,
    angles,
    around,
    checker,
    compared,
    model,
    primitives,
    room,
    turned,
    within,
)
from tests.scenes import pierced

NAMES = ("embree", "gl", "pyrender")
Lights = tuple[Light, ...]
Drawing = Callable[[str], Renderer]
Views = Callable[[Lights], tuple[Scene, list[Camera]]]


@pytest.fixture(scope="module")
def drawing() -> Iterator[Drawing]:
    """Renderers by name; a test that needs one that cannot render here is skipped."""
    made: dict[str, Renderer] = {}

    def by_name(name: str) -> Renderer:
        if name not in made:
            fresh = renderer(name)
            try:
                fresh.check()
            except DataError as error:
                pytest.skip(f"{name}: {error}")
            made[name] = fresh
        return made[name]

    yield by_name
    for one in made.values():
        one.close()


@pytest.fixture(params=["primitives", "room", "made room", *MODELS])
def views(request: pytest.FixtureRequest) -> Views:
    """A scene in whatever light, and cameras that see it."""
    if request.param == "primitives":
        return lambda lights: (primitives(lights), around(3, 4.0, 2.5))
    if request.param == "room":
        return lambda lights: (room(lights), within())
    if request.param == "made room":
        made, seen = furnished()
        return lambda lights: (replace(made, lights=lights), seen)
    folder = request.getfixturevalue("genuine")
    return lambda lights: (model(folder, request.param, lights), around(2))


@cache
def furnished() -> tuple[Scene, list[Camera]]:
    """A room of the recipe, and a pair of its cameras."""
    recipe = Room(rooms=1, pairs=1, size=(96, 128))
    rows = [dict(zip(("room", "pair", "side"), (0, 0, side), strict=True)) for side in (0, 1)]
    scene = recipe.scene(rows[0])
    return scene, [recipe.camera(row, scene) for row in rows]


@pytest.mark.long("renderings")
@pytest.mark.parametrize("name", NAMES)
def test_geometry_is_that_of_rays_through_the_centres_of_pixels(drawing: Drawing, views: Views, name: str) -> None:
    scene, cameras = views(AMBIENT)
    draws = drawing(name)
    draws.load(scene)
    for camera in cameras:
        frame = draws.render(camera)
        shape = (camera.height, camera.width)
        rays, way = Rays(scene), camera.rays()
        triangle, _ = rays.hit(camera.centre, way)
        met = triangle >= 0
        depth = np.zeros(len(way))
        depth[met] = rays.refined(camera.centre, way[met], triangle[met])
        instance = np.where(met, scene.triangles.instance[triangle], -1)
        inner = alike(instance.reshape(shape)).ravel()
        assert (frame.instance.ravel() == instance)[inner].mean() >= 0.999
        same = inner & met & (frame.triangle.ravel() == triangle)
        assert np.abs(frame.depth.ravel()[same] / depth[same] - 1).max() < 1e-4
        # where another triangle was taken it is a neighbour, or one in the same place
        seen = inner & met & (frame.triangle.ravel() >= 0)
        assert (np.abs(frame.depth.ravel()[seen] / depth[seen] - 1) < 1e-4).mean() > 0.999
        a, b, c = np.moveaxis(scene.triangles.corners[triangle[same]], 1, 0)
        flat = np.cross(b - a, c - a) @ camera.rotation.T
        side = (flat * (way[same] @ camera.rotation.T)).sum(axis=1, keepdims=True)
        flat *= -np.sign(side) / np.linalg.norm(flat, axis=1, keepdims=True)
        given = frame.normal.reshape(-1, 3)[same]
        np.testing.assert_allclose(np.linalg.norm(given, axis=1), 1, atol=1e-5)
        assert ((given * flat).sum(axis=1) > -1e-6).all()
        smooth = np.array([one.mesh.normals is not None for one in scene.placements])
        of_flat = ~smooth[scene.triangles.placement[triangle[same]]]
        assert angles(given[of_flat], flat[of_flat]).max(initial=0) < 0.5
        assert not frame.depth[frame.triangle < 0].any()
        assert not frame.normal[frame.triangle < 0].any()
        assert ((frame.instance < 0) == (frame.triangle < 0)).all()


@pytest.mark.parametrize(("one", "other"), list(combinations(NAMES, 2)))
def test_renderers_agree_on_geometry(drawing: Drawing, views: Views, one: str, other: str) -> None:
    scene, cameras = views(AMBIENT)
    for name in (one, other):
        drawing(name).load(scene)
    for camera in cameras:
        first, second = drawing(one).render(camera), drawing(other).render(camera)
        found = compared(first, second)
        assert found["other instance"] <= 1e-3
        assert found["depth"] <= 1e-4
        assert found["normal"] <= 0.5
        assert found["off"] <= 1e-3
        if {one, other} == {"embree", "pyrender"}:
            for part in ("depth", "normal", "instance", "triangle"):
                assert (getattr(first, part) == getattr(second, part)).all()


@pytest.mark.parametrize(("one", "other"), list(combinations(NAMES, 2)))
def test_even_colors_in_even_light_are_equal_bytes(drawing: Drawing, views: Views, one: str, other: str) -> None:
    scene, cameras = views(AMBIENT)
    even = np.array([all(mat.texture is None for mat in one.mesh.materials) for one in scene.placements])
    for name in (one, other):
        drawing(name).load(scene)
    for camera in cameras:
        first, second = drawing(one).render(camera), drawing(other).render(camera)
        whole = (first.triangle < 0) | even[scene.triangles.placement[first.triangle]]
        inner = alike(first.instance) & alike(second.instance) & whole
        assert inner.sum() > 50
        assert (first.rgb[inner] == second.rgb[inner]).all()


@pytest.mark.long("renderings")
def test_lit_colors_of_embree_and_gl_are_within_two_bytes(drawing: Drawing, views: Views) -> None:
    scene, cameras = views(LIT)
    for name in ("embree", "gl"):
        drawing(name).load(scene)
    for camera in cameras:
        first, second = (drawing(name).render(camera) for name in ("embree", "gl"))
        same = first.triangle == second.triangle
        assert same.sum() > 1000
        assert np.abs(first.rgb[same].astype(int) - second.rgb[same]).max() <= 2


@pytest.mark.long("renderings")
def test_lit_colors_of_pyrender_are_near_but_for_its_gloss(drawing: Drawing, views: Views) -> None:
    scene, cameras = views(LIT)
    for name in ("embree", "pyrender"):
        drawing(name).load(scene)
    for camera in cameras:
        first, second = (drawing(name).render(camera) for name in ("embree", "pyrender"))
        inner = alike(first.instance) & alike(first.triangle)
        apart = second.rgb[inner].astype(int) - first.rgb[inner]
        assert np.median(np.abs(apart)) <= 6
        assert np.abs(apart.mean()) <= 6


@pytest.mark.long("renderings")
@pytest.mark.parametrize("name", NAMES)
def test_checkers_are_registered_to_a_tenth_of_a_pixel(drawing: Drawing, name: str) -> None:
    texture = checker(12, 12, (255, 255, 255), (0, 0, 0), texels=32)
    tiles = plane((4, 4), material=Material((255, 255, 255), texture))
    scene = Scene((Placement(tiles, turned(20)),), AMBIENT)
    camera = Camera.look_at((0.3, -1.2, 3), (0, 0, 0), height=192, width=256, field_of_view=0.7)
    fine = camera.resized(192 * 8, 256 * 8)
    way, centre = fine.rays(), fine.centre
    at = (centre - way * (centre[2] / way[:, 2])[:, None]) @ turned(20)  # in the plane's frame
    white = (np.floor(3 * (at[:, 0] + 2)) + np.floor(3 * (2 - at[:, 1]))) % 2 == 0
    wanted = white.reshape(192, 8, 256, 8).mean(axis=(1, 3))
    inside = (np.abs(at[:, :2]) < 1.9).all(axis=1).reshape(192, 8, 256, 8).all(axis=(1, 3))
    drawing(name).load(scene)
    given = linear(drawing(name).render(camera).rgb[..., 0] / 255)
    for slope in np.gradient(wanted):
        # the shift that explains what is left, in pixels
        assert abs(((given - wanted) * slope)[inside].sum() / (slope**2)[inside].sum()) < 0.1
    assert np.abs(given - wanted)[inside].mean() < 0.1


def test_the_comparison_notices_what_is_wrong(drawing: Drawing) -> None:
    draws = drawing("embree")
    draws.load(room(AMBIENT))
    camera = within()[0]
    reference = draws.render(camera)
    rotated = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    errors = {
        "half a pixel": camera.windowed(0.5, 0, camera.height, camera.width),
        "a tenth of a pixel": camera.windowed(0, 0.1, camera.height, camera.width),
        "a transposed rotation": replace(camera, rotation=camera.rotation.T),
        "swapped axes": replace(camera, rotation=rotated @ camera.rotation, translation=rotated @ camera.translation),
    }
    for what, wrong in errors.items():
        found = compared(reference, draws.render(wrong))
        assert found["depth"] > 1e-4 or found["off"] > 1e-3, what
    turned_away = replace(reference, normal=-reference.normal)
    assert compared(reference, turned_away)["normal"] > 170
    assert compared(reference, reference) == pytest.approx({**compared(reference, reference), "off": 0, "depth": 0})


def test_closing_one_leaves_the_others_drawing(drawing: Drawing) -> None:
    scene, camera = primitives(), around(1, 4.0, 2.5)[0]
    for name in NAMES:
        drawing(name).load(scene)
    before = {name: drawing(name).render(camera).rgb for name in NAMES}
    for closed in NAMES:
        fresh = renderer(closed)
        fresh.load(scene)
        fresh.render(camera)
        fresh.close()
        for name in NAMES:
            assert (drawing(name).render(camera).rgb == before[name]).all(), (closed, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", [1, -1])
def test_of_triangles_in_one_place_the_one_that_faces_the_camera_is_seen(
    drawing: Drawing, name: str, order: int
) -> None:
    leaf = [[-1.0, 0, -1], [1, 0, -1], [0, 0, 1]]
    faces, colors = [[2, 1, 0], [0, 1, 2]][::order], [(200, 0, 0), (0, 0, 200)][::order]
    mesh = Mesh(leaf, faces, materials=tuple(map(Material, colors)), material=np.array([0, 1], np.uint16))
    draws = drawing(name)
    draws.load(Scene((Placement(mesh),), AMBIENT))
    for side, corners, color in ((-3, [0, 1, 2], (0, 0, 200)), (3, [2, 1, 0], (200, 0, 0))):
        camera = Camera.look_at((0.1, side, 0), (0, 0, 0), height=40, width=40, field_of_view=0.9)
        pixels, _ = camera.project(np.array(leaf)[corners])
        (ax, ay), (bx, by) = pixels[1] - pixels[0], pixels[2] - pixels[0]
        assert ax * by - ay * bx < 0, "counterclockwise as one sees them, with y down"
        frame = draws.render(camera)
        inner = (frame.instance >= 0) & alike(frame.instance)
        assert inner.sum() > 100
        assert (frame.rgb[inner] == color).all()
        assert set(frame.triangle[inner].tolist()) == {faces.index(corners)}


@pytest.mark.parametrize("name", NAMES)
def test_a_renderer_that_has_drawn_pickles_as_its_options(drawing: Drawing, name: str) -> None:
    draws = drawing(name)
    scene, (camera, *_) = primitives(AMBIENT), around(1)
    draws.load(scene)
    wanted = draws.render(camera)
    packed = pickle.dumps(draws)
    assert len(packed) < 500, "the scene is not in it"
    again = pickle.loads(packed)
    with pytest.raises(SetsupError):
        again.render(camera)
    again.load(scene)
    assert (again.render(camera).rgb == wanted.rgb).all()
    again.close()


@pytest.mark.long("worker processes")
@pytest.mark.parametrize(("before", "after"), [("gl", "pyrender"), ("pyrender", "gl")])
def test_a_fork_after_one_renderer_drew_refuses_the_other_and_does_not_hang(
    drawing: Drawing, before: str, after: str
) -> None:
    drawing(before), drawing(after)  # or the test is skipped
    program = """
import multiprocessing, sys
from setsup.errors import DataError
from setsup.scenes import Camera, Placement, Scene, renderer
from setsup.scenes.meshes.primitives import plane
scene = Scene((Placement(plane((9, 9))),))
camera = Camera.look_at((0, 0, 3), (0, 0, 0), height=8, width=8, focal_length=9)
def draw(name):
    try:
        draws = renderer(name)
        draws.load(scene)
        return draws.render(camera).rgb.shape
    except DataError as error:
        return str(error)
before, after = sys.argv[1:]
draw(before)
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.apply_async(draw, [after]).get(60))
    print(pool.apply_async(draw, ["embree"]).get(60))
"""
    command = [sys.executable, "-W", "ignore", "-c", program, before, after]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
    assert said[0].startswith(f"this process was forked after rendering with {before}, and OpenGL does not")
    assert said[1] == "(8, 8, 3)"


@pytest.mark.long("renderings")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("background", [(90, 120, 160), None])
def test_surfaces_with_holes_are_those_cut_out(
    drawing: Drawing, name: str, background: tuple[int, int, int] | None
) -> None:
    """What is seen through a mask, and lit through it, is what the solid texels let through as squares of their own."""
    render = drawing(name)
    frames = []
    for make in (pierced.sheet, pierced.cut_out):
        scene = pierced.scene(make, background)
        render.load(replace(scene, lights=scene.lights[:1]) if name == "gl" else scene)
        frames.append([render.render(camera) for camera in (pierced.CAMERA, pierced.BELOW, pierced.OTHER)])
    for one, two in zip(*frames, strict=True):
        same = one.instance == two.instance
        assert same.mean() > 0.998
        assert np.unique(one.instance).size >= 4
        np.testing.assert_allclose(one.depth[same], two.depth[same], rtol=1e-5)
        np.testing.assert_allclose(one.normal[same], two.normal[same], atol=1e-4)
        inner = alike(one.instance) & alike(two.instance)  # pyrender averages what is beside edges
        apart = np.abs(one.rgb.astype(int) - two.rgb).max(axis=-1)
        assert inner.sum() > 500
        assert (apart > 2)[inner].mean() < 0.02
        if name != "pyrender":
            assert (apart > 2).mean() < 0.01


@pytest.mark.parametrize("name", ["embree", "gl"])
def test_holes_are_averaged_as_what_is_cut_out(drawing: Drawing, name: str) -> None:
    render = type(drawing(name))(supersample=3)  # type: ignore[call-arg]
    frames = []
    for make in (pierced.sheet, pierced.cut_out):
        render.load(replace(pierced.scene(make, None), lights=(Ambient(),)))
        frames.append(render.render(pierced.CAMERA).rgb.astype(int))
    assert np.abs(frames[0] - frames[1]).mean() < 0.2
    assert len(np.unique(frames[0][..., 3])) > 4
