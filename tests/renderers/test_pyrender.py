import math
import multiprocessing
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError
from setsup.scenes import (
    STUDIO,
    Ambient,
    Camera,
    Directional,
    Lamp,
    Light,
    Material,
    Mesh,
    Placement,
    Rays,
    Renderer,
    Scene,
)
from setsup.scenes.color import linear, to_bytes
from setsup.scenes.meshes.primitives import box, plane, sphere
from setsup_renderers.embree import EmbreeRenderer
from setsup_renderers.pyrender import PyrenderRenderer
from tests.renderers.scenes import AMBIENT, COLORS, alike, around, primitives, room, turned, within

DOWN = Camera.look_at((0, 0, 4), (0, 0, 0), height=48, width=64, field_of_view=0.6)
WHITE = Material((255, 255, 255))


@pytest.fixture(scope="module")
def works() -> str:
    try:
        return PyrenderRenderer.check()
    except DataError as error:
        pytest.skip(str(error))


@pytest.fixture
def renderer(works: str) -> PyrenderRenderer:
    return PyrenderRenderer()


def drawn(scene: Scene, camera: Camera = DOWN) -> np.ndarray:
    made = PyrenderRenderer()
    made.load(scene)
    found = made.render(camera).rgb
    made.close()
    return found


def middle(*lights: Light, material: Material = WHITE, camera: Camera = DOWN) -> list[int]:
    """Byte of the middle of a large face that looks up."""
    return drawn(Scene((Placement(plane((9, 9), material=material)),), lights), camera)[24, 32].tolist()


def test_it_is_a_renderer_and_says_on_what_it_draws(works: str) -> None:
    assert isinstance(PyrenderRenderer(), Renderer)
    assert works
    assert ("software" in works) == ("llvmpipe" in works or "softpipe" in works)


@pytest.mark.long("renderings")
@pytest.mark.parametrize("background", [(1, 77, 200), None])
def test_every_byte_comes_out_as_it_is_under_ambient_light(works: str, background: tuple[int, int, int] | None) -> None:
    corner = np.array([(x, y) for y in range(16) for x in range(16)], float)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    vertices = np.concatenate([(corner[:, None] + square).reshape(-1, 2) - 8, np.zeros((1024, 1))], axis=1)
    faces = np.arange(1024).reshape(-1, 4)[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    colors = [(byte, 255 - byte, byte * 7 % 256) for byte in range(256)]
    mesh = Mesh(vertices, faces, materials=tuple(map(Material, colors)), material=np.repeat(np.arange(256), 2))
    camera = Camera.look_at((0, 0, 30), (0, 0, 0), height=160, width=200, field_of_view=0.7)
    renderer = PyrenderRenderer()
    renderer.load(Scene((Placement(mesh),), AMBIENT, background))
    frame = renderer.render(camera)
    square_of = frame.triangle // 2
    for number in range(-1, 256):
        seen = frame.rgb[(square_of == number) & alike(square_of)]
        assert len(seen) > 4
        wanted = (*colors[number], 255) if number >= 0 else (0, 0, 0, 0) if background is None else background
        assert (seen == wanted[: seen.shape[1]]).all(), number


def test_light_is_added_up_in_linear_light(works: str) -> None:
    assert middle(Ambient((0.5, 0.2, 0.1)), Ambient((0.0, 0.3, 0.1))) == to_bytes([0.5, 0.5, 0.2]).tolist()
    assert (
        middle(Ambient((3, 3, 3)), material=Material((128, 64, 255)))
        == to_bytes(3 * linear([128 / 255, 64 / 255, 1])).tolist()
    )
    assert middle() == [0, 0, 0]


CAMERAS = {
    "off centre": Camera(48, 64, [[70, 0, 20.3], [0, 60, 31.7], [0, 0, 1]], DOWN.rotation, DOWN.translation),
    "skew": Camera(48, 64, [[60, 9, 31.5], [0, 60, 23.5], [0, 0, 1]], DOWN.rotation, DOWN.translation),
    "mirrored": Camera(48, 64, [[-60, 5, 25], [0, 60, 23.5], [0, 0, 1]], DOWN.rotation, DOWN.translation),
    "upside down": Camera(48, 64, [[-60, 0, 25], [0, -60, 23.5], [0, 0, 1]], DOWN.rotation, DOWN.translation),
    "odd": Camera.look_at((1, -2, 3), (0, 0, 0), height=37, width=53, field_of_view=0.7),
    "a column": Camera.look_at((1, -2, 3), (0, 0, 0), height=64, width=1, field_of_view=0.7),
}


@pytest.mark.parametrize("name", CAMERAS)
def test_pixels_cover_what_rays_through_them_meet(works: str, name: str) -> None:
    camera = CAMERAS[name]
    scene = Scene(primitives().placements[1:], AMBIENT, None)
    renderer = PyrenderRenderer()
    renderer.load(scene)
    frame = renderer.render(camera)
    fine = camera.resized(camera.height * 8, camera.width * 8)
    triangle, _ = Rays(scene).hit(fine.centre, fine.rays())
    shape = (camera.height, 8, camera.width, 8)
    covered = (triangle >= 0).reshape(shape).mean(axis=(1, 3))
    apart = frame.rgb[..., 3] / 255 - covered
    assert np.abs(apart).max() < 0.45  # of four samples
    edges = (covered > 0) & (covered < 1)
    assert edges.sum() > 3
    assert np.abs(apart[edges]).mean() < (0.1 if edges.sum() > 20 else 0.2)
    for slope in np.gradient(np.pad(covered, 1, mode="edge")):
        share = slope[1:-1, 1:-1]
        if (share**2).sum() > 1:  # the shift that explains what is left, in pixels
            assert abs((apart * share).sum() / (share**2).sum()) < 0.06
    inner = alike(frame.instance)
    for number, color in enumerate(COLORS[1:6]):
        instance = scene.placements[number].instance
        of = inner & (frame.instance == (number if instance is None else instance))
        assert (frame.rgb[of] == (*color, 255)).all()


@pytest.mark.parametrize("texels", [1, 3, 8])
def test_textures_lie_where_their_coordinates_say(works: str, texels: int) -> None:
    painted = np.array(
        [[[250, 0, 0], [0, 250, 0], [0, 0, 250]], [[250, 250, 0], [0, 250, 250], [250, 0, 250]]], np.uint8
    )
    painted = painted.repeat(texels, axis=0).repeat(texels, axis=1)
    mesh = replace(plane((6, 4), material=Material((255, 255, 255), painted)))
    scene = Scene((Placement(mesh),), AMBIENT)
    camera = Camera.look_at((0, 0, 10), (0, 0, 0), height=40, width=60, focal_length=100, up=(0, 1, 0))
    rgb = drawn(scene, camera)
    for row, column in product(range(2), range(3)):
        seen = rgb[10 + 20 * row, 10 + 20 * column].astype(int)
        assert np.abs(seen - painted[row * texels, column * texels]).max() <= 20, (row, column)


def test_vertex_colors_are_mixed_in_linear_light_and_times_the_material(works: str) -> None:
    colors = np.array([[0, 0, 0], [255, 255, 255], [255, 255, 255], [0, 0, 0]], np.uint8)
    mesh = replace(plane((6, 6), material=Material((255, 188, 0))), colors=colors)
    camera = Camera.look_at((0, 0, 10), (0, 0, 0), height=31, width=31, focal_length=51, up=(0, 1, 0))
    row = drawn(Scene((Placement(mesh),), AMBIENT), camera)[15]
    share = (np.arange(31) - 15) / 51 * 10 / 6 + 0.5
    wanted = to_bytes(share[:, None] * linear(np.array([255, 188, 0]) / 255))
    assert np.abs(row[2:-2].astype(int) - wanted[2:-2]).max() <= 1


def test_winding_has_no_meaning(works: str) -> None:
    rng = np.random.default_rng(5)
    for body in (box((2, 2, 2)), sphere(1.2), Mesh(sphere(1.2).vertices, sphere(1.2).faces)):
        turn = rng.random(len(body.faces)) < 0.5
        faces = np.where(turn[:, None], body.faces[:, ::-1], body.faces)
        mixed = replace(body, faces=faces)
        lights = (Ambient((0.1, 0.1, 0.1)), Directional((1, 2, -2), (0.8, 0.8, 0.8)))
        one, other = (drawn(Scene((Placement(mesh),), lights)) for mesh in (body, mixed))
        assert np.abs(one.astype(int) - other).max() <= 1
        assert len(np.unique(one[..., 0])) > 1


def test_both_sides_of_a_face_are_lit(works: str) -> None:
    light = Directional((0, 0, 1), of_camera=True)
    for eye in ((0, 0, 4), (0, 0, -4)):
        camera = Camera.look_at(eye, (0, 0, 0), height=48, width=64, field_of_view=0.6)
        assert middle(light, camera=camera) == [255, 255, 255]


@pytest.mark.parametrize(
    ("light", "share"),
    [
        (Directional((0, 0, -2), (0.6, 0.3, 0.1)), 1),
        (Directional((1, 0, -1), (0.6, 0.3, 0.1)), math.sqrt(0.5)),
        (Directional((0, 0, 1), (0.6, 0.3, 0.1), of_camera=True), 1),
        (Directional((0, -1, 1), (0.6, 0.3, 0.1), of_camera=True), math.sqrt(0.5)),
        (Directional((0, 0, 1), (0.6, 0.3, 0.1)), 0),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1), reach=3), 1),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1), reach=1.5), 1 / 4),
        (Lamp((0, 2, 2), (0.6, 0.3, 0.1), reach=2), math.sqrt(0.5) / 2),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1)), 1),
        (Lamp((0, 2, 2), (0.6, 0.3, 0.1)), math.sqrt(0.5)),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1), axis=(0, 0, -4), exponent=5, reach=3), 1),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1), axis=(0, 1, -1), exponent=5, reach=3), 0.5**2.5),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1), axis=(0, 1, -1), exponent=2, reach=3), 1 / 2),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1), axis=(0, 2, -1), exponent=0, reach=3), 1),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1), axis=(0, 0, 1), exponent=0, reach=3), 0),
        (Lamp((0, 0, 3), (0.6, 0.3, 0.1), axis=(0, math.sqrt(0.75), -0.5), exponent=1, reach=3), 1 / 2),
    ],
)
def test_lamps_give_white_what_their_formulas_say(works: str, light: Light, share: float) -> None:
    found = np.array(middle(light), int)
    assert np.abs(found - to_bytes(share * np.array([0.6, 0.3, 0.1]))).max() <= 2 + 3 * (share == 0)


def test_the_gloss_that_remains_is_what_the_documentation_says(works: str) -> None:
    found = {byte: middle(*STUDIO, material=Material((byte,) * 3))[0] - byte for byte in (255, 188, 128, 64, 0)}
    assert found == {
        255: 0,
        188: 1,
        128: pytest.approx(2, abs=1),
        64: pytest.approx(4, abs=1),
        0: pytest.approx(20, abs=1),
    }


def test_only_lights_that_throw_shadows_throw_them(works: str) -> None:
    lid = Placement(plane((1, 1)), translation=(0, 0, 1))
    floor = Placement(plane((20, 20), material=WHITE))
    camera = Camera.look_at((0, -4, 0.6), (0, 0, 0), height=64, width=96, field_of_view=0.7)
    for make in (
        lambda color, shadow: Directional((0, 0, -1), color, shadow=shadow),
        lambda color, shadow: Lamp((0, 0, 4), color, axis=(0, 0, -1), exponent=2, reach=4, shadow=shadow),
    ):
        lights = (make((0.5, 0, 0), True), make((0, 0.5, 0), False))
        renderer = PyrenderRenderer()
        renderer.load(Scene((floor, lid), lights))
        rgb = renderer.render(camera).rgb
        pixel = camera.project([[0, 0, 0], [1.5, 0, 0]])[0].round().astype(int)
        hidden, lit = (rgb[y, x].tolist() for x, y in pixel)
        assert hidden[0] < 8
        assert hidden[1] > 100
        assert lit[0] == pytest.approx(lit[1], abs=2)
        assert lit[0] > 100


def test_any_number_of_lights_adds_up(works: str) -> None:
    for light in (Directional((0, 0, -1), (0.1, 0.1, 0.1)), Lamp((0, 0, 3), (0.1, 0.1, 0.1))):
        assert middle(*[light] * 7)[0] == pytest.approx(int(to_bytes(0.7)), abs=2)


@pytest.mark.long("renderings")
def test_lamps_give_what_embree_gives_on_white(works: str) -> None:
    lamps = (
        Lamp((1, -1.2, 2.3), (0.3, 0.6, 0.2), axis=(-0.3, 0.5, -1), exponent=0.4, shadow=True),
        Lamp((-1, 1, 2), (0.2, 0.1, 0.5), reach=1.3, shadow=True),
        Lamp((-1.5, -1.5, 0.2), (3, 3, 3), axis=(1, 1, 0.5), exponent=9, reach=0.5),
        Directional((1, 0.5, -1), (0.2, 0.1, 0.1), shadow=True),
    )
    white = [replace(one, mesh=replace(one.mesh, materials=(WHITE,))) for one in room().placements]
    scene = Scene(tuple(white), (Ambient((0.1, 0.1, 0.1)), *lamps))
    reference = EmbreeRenderer()
    reference.load(scene)
    for camera in within():
        frame = reference.render(camera)
        inner = alike(frame.instance) & alike(frame.triangle)
        apart = np.abs(drawn(scene, camera)[inner].astype(int) - frame.rgb[inner])
        assert np.median(apart) <= 2
        assert np.percentile(apart, 99) <= 8
        assert frame.rgb[inner].std() > 20


def test_edges_against_nothing_are_lit_by_lamps_too(works: str) -> None:
    scene = Scene((Placement(plane((1, 1), material=WHITE), turned(20)),), (Lamp((0, 0, 3), reach=3),), None)
    rgb = drawn(scene)
    edge = (rgb[..., 3] > 0) & (rgb[..., 3] < 255)
    assert edge.sum() > 20
    assert rgb[edge][:, :3].min() > 220


def test_far_from_the_origin_scenes_look_the_same(works: str) -> None:
    off = np.array([40_000.0, -70_000.0, 3_000.0])
    near = primitives()
    far = replace(near, placements=tuple(replace(one, translation=one.translation + off) for one in near.placements))
    camera = around(1, 4, 2.5)[0]
    moved = replace(camera, translation=-camera.rotation @ (camera.centre + off))
    one, other = drawn(near, camera).astype(int), drawn(far, moved).astype(int)
    assert (np.abs(one - other).max(axis=-1) > 2).mean() < 0.005


def test_nothing_to_see(renderer: PyrenderRenderer) -> None:
    renderer.load(Scene(background=(3, 4, 5), lights=(*STUDIO, Directional((0, 0, -1), shadow=True))))
    frame = renderer.render(DOWN)
    assert (frame.rgb == (3, 4, 5)).all()
    assert (frame.triangle == -1).all()
    renderer.load(Scene((Placement(plane(), translation=(0, 0, 9)),), background=None))
    frame = renderer.render(DOWN)
    assert not frame.rgb.any()
    assert not frame.depth.any()


def test_what_touches_the_camera_is_drawn(works: str) -> None:
    camera = Camera.look_at((0, 0, 1e-3), (0, 1, 0), height=32, width=32, field_of_view=1.5)
    rgb = drawn(Scene((Placement(plane((1000, 1000), material=Material((9, 99, 199)))),), AMBIENT, (0, 0, 0)), camera)
    assert (rgb[18:] == (9, 99, 199)).all()
    assert (rgb[:14] == 0).all()


@pytest.mark.long("renderings")
def test_renderers_take_turns(works: str) -> None:
    one, other = PyrenderRenderer(), PyrenderRenderer()
    scenes = primitives(), room()
    alone = [drawn(scenes[0], around(1, 4, 2.5)[0]), drawn(scenes[1], within()[0])]
    one.load(scenes[0])
    other.load(scenes[1])
    for _ in range(2):
        assert (one.render(around(1, 4, 2.5)[0]).rgb == alone[0]).all()
        assert (other.render(within()[0]).rgb == alone[1]).all()
    other.close()
    assert (one.render(around(1, 4, 2.5)[0]).rgb == alone[0]).all()


def test_threads_may_share_a_process(works: str) -> None:
    scenes = [Scene((Placement(plane(material=Material((9 * number, 1, 2)))),), AMBIENT) for number in range(12)]
    with ThreadPoolExecutor(4) as threads:
        colors = list(threads.map(lambda scene: drawn(scene)[24, 32].tolist(), scenes))
    assert colors == [[9 * number, 1, 2] for number in range(12)]


def test_closed_or_empty_renderers_say_so(works: str) -> None:
    renderer = PyrenderRenderer()
    with pytest.raises(SetsupError, match="no scene"):
        renderer.render(DOWN)
    renderer.load(primitives())
    renderer.close()
    renderer.close()
    for use in (lambda: renderer.render(DOWN), lambda: renderer.load(primitives())):
        with pytest.raises(SetsupError, match="closed"):
            use()


def test_images_too_large_for_the_driver_are_refused(renderer: PyrenderRenderer) -> None:
    renderer.load(Scene())
    with pytest.raises(SetsupError, match=r"at most [0-9]+ pixels per side, not 32767 × 1"):
        renderer.render(Camera(1, 32767, [[9, 0, 0], [0, 9, 0], [0, 0, 1]], np.eye(3), np.zeros(3)))


def elsewhere(code: str, **environment: str) -> str:
    """What a process of its own prints, and that it ends."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PYOPENGL_PLATFORM", "EGL_DEVICE_ID")
    }
    start = "from setsup.scenes import *\nfrom setsup_renderers.pyrender import PyrenderRenderer\n"
    start += "from setsup.errors import DataError\nfrom setsup.scenes.meshes.primitives import plane\n"
    start += "camera = Camera.look_at((0, 0, 4), (0, 0, 0), height=48, width=64, field_of_view=0.6)\n"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", start + textwrap.dedent(code)],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


FAILS = """
try:
    print(PyrenderRenderer.check())
except DataError as error:
    print(error)
"""


@pytest.mark.long("renderings")
def test_importing_the_module_loads_no_gl() -> None:
    loaded = elsewhere(
        "import sys; PyrenderRenderer(); print([name in sys.modules for name in ('OpenGL', 'pyrender')])"
    )
    assert loaded == "[False, False]\n"


@pytest.mark.long("renderings")
def test_missing_libraries_are_one_sentence_with_the_packages() -> None:
    hidden = """
        import ctypes
        from setsup_renderers.pyrender_context import context
        real = ctypes.CDLL.__init__
        def refuse(self, name, *rest, **more):
            if any(word in str(name) for word in ("GL", "mesa", "Mesa")):
                raise OSError(f"{name}: cannot open shared object file")
            real(self, name, *rest, **more)
        ctypes.CDLL.__init__ = refuse
    """
    said = elsewhere(textwrap.dedent(hidden) + FAILS.replace("PyrenderRenderer.check()", "context()"))
    assert said.startswith("pyrender could not load OpenGL for egl (")
    assert said.endswith("on Debian: apt-get install libegl1 libgl1 libxrender1\n")


@pytest.mark.long("renderings")
def test_other_platforms_are_refused(works: str) -> None:
    said = "PYOPENGL_PLATFORM is 'glx', but pyrender renders offscreen only on 'egl' or 'osmesa'; set it to one of "
    said += "these before starting Python\n"
    assert elsewhere(FAILS, PYOPENGL_PLATFORM="glx") == said
    said = "pyrender requires PyOpenGL to use EGLPlatform, but PyOpenGL was already imported with GLXPlatform; "
    said += "set PYOPENGL_PLATFORM=egl before starting Python\n"
    before = "import os, OpenGL.platform\ndel os.environ['PYOPENGL_PLATFORM']\n"
    assert elsewhere(before + FAILS, PYOPENGL_PLATFORM="glx") == said


@pytest.mark.long("renderings")
def test_gpus_that_do_not_exist_are_refused(works: str) -> None:
    each = f"import os\nfor os.environ['EGL_DEVICE_ID'] in ('99', '-1', 'first'):{textwrap.indent(FAILS, '    ')}"
    lines = elsewhere(each).splitlines()
    assert len(lines) == 3
    assert all(line.startswith("EGL_DEVICE_ID must be from 0 to ") for line in lines)


@pytest.mark.long("worker processes")
def test_forked_processes_are_refused_and_do_not_hang(works: str) -> None:
    said = elsewhere(
        """
        import multiprocessing
        def draw(scene):
            try:
                renderer.load(scene)
                return renderer.render(camera).rgb.tolist()
            except DataError as error:
                return str(error)
            finally:
                renderer.close()
        renderer, scene = PyrenderRenderer(), Scene((Placement(plane()),))
        renderer.load(scene)
        with multiprocessing.get_context("fork").Pool(1) as pool:  # nothing was drawn yet: it draws
            first = pool.apply_async(draw, [scene]).get(60)
        assert renderer.render(camera).rgb.tolist() == first
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(pool.apply_async(draw, [scene]).get(60))
        assert renderer.render(camera).rgb.tolist() == first
        """
    )
    assert said == (
        "this process was forked after rendering with pyrender, and OpenGL does not work after a fork; "
        "start processes with multiprocessing.get_context('spawn')\n"
    )


@pytest.mark.long("worker processes")
def test_checking_leaves_forked_processes_free_to_draw(works: str) -> None:
    said = elsewhere(
        """
        import multiprocessing, sys
        def draw():
            renderer = PyrenderRenderer()
            renderer.load(Scene((Placement(plane((9, 9))),)))
            return renderer.render(camera).rgb[24, 32].tolist()
        print(PyrenderRenderer.check(), "OpenGL" in sys.modules)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(pool.apply_async(draw).get(60))
        """
    )
    assert said == f"{works} False\n[189, 189, 189]\n"


@pytest.mark.long("worker processes")
def test_spawned_processes_draw(works: str) -> None:
    scene = primitives()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert (pool.apply_async(drawn, [scene]).get(100) == drawn(scene)).all()


@pytest.mark.long("renderings")
def test_scenes_do_not_pile_up(works: str) -> None:
    said = elsewhere(
        """
        import numpy as np, os, pathlib
        def used():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        renderer = PyrenderRenderer()
        shady = (*STUDIO, Directional((1, 0, -1), shadow=True))
        small = Camera.look_at((0, 0, 4), (0, 0, 0), height=8, width=8, field_of_view=0.6)
        peaks = []
        for number in range(200):
            texture = np.full((256, 256, 3), number % 256, np.uint8)
            vertices = np.random.default_rng(number).random((6000, 3))
            faces, painted = np.arange(6000).reshape(-1, 3), Material(texture=texture)
            mesh = Mesh(vertices, faces, uv=vertices[:, :2], materials=(painted,))
            renderer.load(Scene((Placement(mesh),), shady if number % 20 == 0 else STUDIO))
            renderer.render(small)
            if number >= 40:
                peaks.append(used())
        peaks = np.array(peaks).reshape(4, 40).max(axis=1)
        print(peaks.round().tolist())
        assert peaks[-1] < peaks[0] + 40, peaks  # 120 scenes that stay would be 90 MB
        """
    )
    assert said
