"""The reference renderer against brute force in float64, and how it is used."""

import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError
from setsup.scenes import Ambient, Camera, Directional, Material, Mesh, Placement, Scene, renderer
from setsup.scenes.color import LINEAR, to_bytes
from setsup.scenes.meshes.primitives import box, plane, sphere
from setsup_renderers import embree
from setsup_renderers.embree import EmbreeRenderer
from tests.renderers.scenes import primitives
from tests.scenes.ray_scenes import first_by_brute_force


def drawn(scene, camera, **options):
    made = EmbreeRenderer(**options)
    made.load(scene)
    return made.render(camera)


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in one.__slots__)


@st.composite
def views(draw):
    """Boxes anywhere, turned and stretched; a camera anywhere, with any pinhole."""
    dice = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    stands = []
    for _ in range(draw(st.integers(1, 5))):
        turn = np.linalg.qr(dice.normal(size=(3, 3)))[0]
        turn *= np.sign(np.linalg.det(turn))
        number = draw(st.none() | st.integers(0, 99))
        stands.append(Placement(box(), turn, dice.normal(size=3), dice.uniform(0.3, 1.5, 3), number))
    base = Camera.look_at(dice.normal(size=3) * 3, dice.normal(size=3), height=13, width=17, focal_length=10)
    k = [
        [dice.uniform(5, 20), dice.normal(), 8 + dice.normal()],
        [0, dice.uniform(5, 20), 6 + dice.normal()],
        [0, 0, 1],
    ]
    return Scene(tuple(stands)), Camera(13, 17, k, base.rotation, base.translation)


@pytest.mark.long("renderings")
@given(view=views())
def test_geometry_is_that_of_brute_force(view):
    scene, camera = view
    frame = drawn(scene, camera)
    rays = camera.rays()
    triangle, depth, sure = first_by_brute_force(scene, camera.centre, rays)
    assert np.array_equal(frame.triangle.ravel()[sure], triangle[sure])
    met = sure & (triangle >= 0)
    nothing = sure & (triangle < 0)
    assert np.allclose(frame.depth.ravel()[met], depth[met], rtol=1e-4)
    assert (frame.depth.ravel()[nothing] == 0).all()
    triangles = scene.triangles
    assert np.array_equal(frame.instance.ravel()[met], triangles.instance[triangle[met]])
    assert (frame.instance.ravel()[nothing] == -1).all()
    a, b, c = triangles.corners[triangle[met]].transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    normal *= -np.sign((normal * rays[met]).sum(axis=1))[:, None] / np.linalg.norm(normal, axis=1)[:, None]
    assert np.allclose(frame.normal.reshape(-1, 3)[met], normal @ camera.rotation.T, atol=1e-5)
    assert (frame.normal.reshape(-1, 3)[nothing] == 0).all()
    assert (frame.rgb.reshape(-1, 3)[nothing] == 255).all()


def test_depth_is_along_the_axis():
    wall = Placement(plane((40, 40)), translation=(0, 0, 2))
    camera = Camera.look_at((0, 0, 0), (0, 0, 2), height=31, width=41, field_of_view=2.4)
    frame = drawn(Scene((wall,)), camera)
    assert frame.depth.dtype == np.float32
    assert np.allclose(frame.depth, 2, rtol=1e-6)
    assert np.allclose(frame.normal, (0, 0, -1))


def test_dtypes_and_shapes():
    for background, channels in (((1, 2, 3), 3), (None, 4)):
        scene = Scene((Placement(box()),), background=background)
        frame = drawn(scene, Camera.look_at((3, 0, 0), (0, 0, 0), height=5, width=7, focal_length=6))
        assert (frame.rgb.shape, frame.rgb.dtype) == ((5, 7, channels), np.uint8)
        assert (frame.depth.shape, frame.depth.dtype) == ((5, 7), np.float32)
        assert (frame.normal.shape, frame.normal.dtype) == ((5, 7, 3), np.float32)
        for numbers in (frame.instance, frame.triangle):
            assert (numbers.shape, numbers.dtype) == ((5, 7), np.int32)


def test_what_lies_behind():
    camera = Camera.look_at((3, 0, 0), (0, 0, 0), height=9, width=9, focal_length=12)
    frame = drawn(Scene((Placement(box()),), background=(10, 20, 30)), camera)
    assert frame.rgb[0, 0].tolist() == [10, 20, 30]
    frame = drawn(Scene((Placement(box()),), background=None), camera)
    assert np.array_equal(frame.rgb[..., 3], np.where(frame.triangle >= 0, 255, 0))
    assert (frame.rgb[frame.triangle < 0] == 0).all()
    assert frame.rgb[4, 4].tolist() == [188, 188, 188, 255]  # faces the camera, in the light of a studio


def test_nothing_to_see():
    camera = Camera.look_at((3, 0, 0), (0, 0, 0), height=4, width=6, focal_length=6)
    away = Camera.look_at((3, 0, 0), (9, 0, 0), height=4, width=6, focal_length=6)
    for frame in (drawn(Scene(), camera), drawn(Scene((Placement(box()),)), away)):
        assert (frame.rgb == 255).all()
        assert (frame.triangle == -1).all()
        assert (frame.instance == -1).all()
        assert not frame.depth.any()
        assert not frame.normal.any()
    assert not drawn(Scene(background=None), camera).rgb.any()
    assert not drawn(Scene(background=None), camera, supersample=2).rgb.any()


def test_inside_a_closed_box_every_pixel_sees_it():
    for target in ((1, 0, 0), (1, 1, 1), (0.3, -0.7, 0.2)):
        camera = Camera.look_at((0, 0, 0), target, height=101, width=101, field_of_view=2.0)
        frame = drawn(Scene((Placement(box((2, 2, 2))),)), camera)
        assert (frame.triangle >= 0).all()
        points = camera.centre + camera.rays() * frame.depth.reshape(-1, 1)
        assert np.allclose(np.abs(points).max(axis=1), 1, atol=1e-5)


def test_any_size_of_image():
    scene = primitives()
    for height, width in ((1, 1), (1, 300), (3, 9000), (200, 1)):  # a row of 9000 is more than is traced at a time
        camera = Camera.look_at((4, -5, 3), (0, 0, 0.5), height=height, width=width, focal_length=max(height, width))
        frame = drawn(scene, camera)
        assert frame.depth.shape == (height, width)
        assert frame.depth[height // 2, width // 2] > 0


def test_bands_of_rows_do_not_show(monkeypatch):
    scene, camera = primitives(), Camera.look_at((4, -5, 3), (0, 0, 0.5), height=60, width=80, focal_length=70)
    whole = drawn(scene, camera)
    monkeypatch.setattr(embree, "_RAYS", 7 * 80)
    banded = drawn(scene, camera)
    assert np.array_equal(banded.triangle, whole.triangle)
    assert np.array_equal(banded.depth, whole.depth)
    assert np.allclose(banded.normal, whole.normal, atol=1e-6)
    assert np.abs(banded.rgb.astype(int) - whole.rgb).max() <= 1


def test_the_same_bytes_every_time_and_in_every_thread():
    scene, camera = primitives(), Camera.look_at((4, -5, 3), (0, 0, 0.5), height=60, width=80, focal_length=70)
    expected = drawn(scene, camera)
    one = EmbreeRenderer()
    one.load(scene)
    frames = []
    threads = [threading.Thread(target=lambda: frames.append(one.render(camera))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(frames) == 6
    assert all(same(frame, expected) for frame in [*frames, drawn(primitives(), camera)])
    another = pickle.loads(pickle.dumps(one))
    another.load(scene)
    assert same(another.render(camera), expected)


def test_the_scene_loaded_last_is_drawn():
    camera = Camera.look_at((3, 0, 0), (0, 0, 0), height=5, width=5, focal_length=6)
    first = Scene((Placement(box(material=Material((255, 0, 0)))),), (Ambient(),))
    second = Scene((Placement(sphere(material=Material((0, 0, 255)))),), (Ambient(),))
    one = EmbreeRenderer()
    for scene, color in ((first, [255, 0, 0]), (second, [0, 0, 255]), (first, [255, 0, 0]), (first, [255, 0, 0])):
        one.load(scene)
        assert one.render(camera).rgb[2, 2].tolist() == color


def test_frames_stay_when_the_next_is_drawn():
    one = EmbreeRenderer()
    one.load(Scene((Placement(box()),)))
    frame = one.render(Camera.look_at((3, 0, 0), (0, 0, 0), height=5, width=5, focal_length=6))
    kept = frame.depth.copy()
    one.render(Camera.look_at((9, 0, 0), (0, 0, 0), height=5, width=5, focal_length=6))
    assert np.array_equal(frame.depth, kept)


def test_misuse_is_said_in_one_sentence():
    camera = Camera.look_at((3, 0, 0), (0, 0, 0), height=5, width=5, focal_length=6)
    one = EmbreeRenderer()
    with pytest.raises(SetsupError, match=r"no scene; call load\(scene\)"):
        one.render(camera)
    one.load(Scene())
    one.close()
    one.close()
    for misuse in (lambda: one.render(camera), lambda: one.load(Scene())):
        with pytest.raises(SetsupError, match="this renderer is closed; create another"):
            misuse()
    for wrong in (0, 17, 1.5, True, "2"):
        with pytest.raises(SetsupError, match="supersample must be an integer from 1 to 16"):
            EmbreeRenderer(supersample=wrong)


def test_it_says_with_what_it_draws(monkeypatch):
    assert EmbreeRenderer.check().startswith("Embree by embreex ")
    assert "software" in EmbreeRenderer.check()
    assert isinstance(renderer("embree"), EmbreeRenderer)

    def without(*missing):
        def found(module, extra):
            if module.partition(".")[0] in missing:
                raise DataError(f"this needs {module}")
            return SimpleNamespace()

        return found

    monkeypatch.setattr(embree, "imported", without("embreex"))
    assert "many times slower, software" in EmbreeRenderer.check()
    monkeypatch.setattr(embree, "imported", without("embreex", "rtree"))
    with pytest.raises(DataError, match="this needs embreex"):  # which is what should be installed
        EmbreeRenderer.check()


def test_more_samples_a_pixel_average_light_and_leave_the_geometry():
    """An upright edge at x, black on white: a pixel has the share of samples that lie on either side."""
    times = 4
    left = Mesh(
        [(-9, 0, -9), (0.3, 0, -9), (0.3, 0, 9), (-9, 0, 9)], [[0, 1, 2], [0, 2, 3]], materials=(Material((0,) * 3),)
    )
    camera = Camera.look_at((0, -8, 0), (0, 0, 0), height=4, width=8, focal_length=8)  # a pixel is a metre
    scene = Scene((Placement(left),), (Ambient(),))
    plain, fine = drawn(scene, camera), drawn(scene, camera, supersample=times)
    for name in ("depth", "normal", "instance", "triangle"):
        assert np.array_equal(getattr(plain, name), getattr(fine, name))
    samples = (np.arange(8 * times) + 0.5) / times - 4  # metres
    white = (samples > 0.3).reshape(8, times).mean(axis=1)
    assert 0 < white[4] < 1
    assert np.array_equal(fine.rgb, np.broadcast_to(to_bytes(white)[None, :, None], (4, 8, 3)))
    clear = drawn(Scene((Placement(left),), (Ambient(),), None), camera, supersample=times)
    assert (clear.rgb[..., :3] == 0).all()
    assert np.array_equal(clear.rgb[..., 3], np.broadcast_to(np.floor(255 * (1 - white) + 0.5), (4, 8)))


def test_colors_of_what_covers_a_pixel_in_part_are_not_multiplied_with_alpha():
    scene = Scene((Placement(sphere(material=Material((200, 100, 50)))),), (Ambient(),), None)
    frame = drawn(scene, Camera.look_at((3, 0, 0), (0, 0, 0), height=20, width=20, focal_length=50), supersample=3)
    alpha = frame.rgb[..., 3]
    assert len(np.unique(alpha)) >= 5
    assert (frame.rgb[alpha > 0, :3] == (200, 100, 50)).all()


@pytest.mark.long("renderings")
@settings(max_examples=10)
@given(times=st.integers(2, 5), seed=st.integers(0, 99))
def test_an_averaged_image_is_the_mean_of_a_larger_one(times, seed):
    turn = np.random.default_rng(seed).uniform(0, 6.28)
    camera = Camera.look_at((5 * np.sin(turn), 5 * np.cos(turn), 3), (0, 0, 0.5), height=11, width=13, focal_length=14)
    lights = (Ambient((0.3, 0.3, 0.3)), Directional((1, 1, -2), (0.6, 0.6, 0.6), shadow=True))
    scene = primitives(lights)
    large = drawn(scene, camera.resized(11 * times, 13 * times)).rgb
    mean = LINEAR[large].reshape(11, times, 13, times, 3).mean(axis=(1, 3))
    assert np.abs(drawn(scene, camera, supersample=times).rgb.astype(int) - to_bytes(mean)).max() <= 1


@pytest.mark.parametrize("wrong", [None, 3, "camera"])
def test_only_a_camera_renders(wrong):
    with pytest.raises(SetsupError, match="what is rendered from must be a Camera, not"):
        drawn(primitives(), wrong)
