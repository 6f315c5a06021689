import logging
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError
from setsup.scenes import (
    Ambient,
    Camera,
    Directional,
    Frame,
    Lamp,
    Light,
    Material,
    Mesh,
    Placement,
    Renderer,
    Scene,
)
from setsup.scenes.color import linear, to_bytes
from setsup_renderers.gl import GLRenderer, _warn_of_shadows
from setsup_renderers.gl_context import Context

EVEN: tuple[Light, ...] = (Ambient(),)
WHITE = Material((255, 255, 255))
SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
HALVES = np.array([[0, 1, 2], [0, 2, 3]])
DOWN = Camera.look_at((0, 0, 4), (0, 0, 0), height=48, width=64, focal_length=80)


def drawn(scene: Scene, camera: Camera = DOWN, supersample: int = 1) -> Frame:
    renderer = GLRenderer(supersample)
    renderer.load(scene)
    frame = renderer.render(camera)
    renderer.close()
    return frame


def square(size: float = 9, **how: object) -> Mesh:
    return Mesh(SQUARE * size, HALVES, **{"materials": (WHITE,), **how})


def cast(scene: Scene, camera: Camera, shift: tuple[float, float] = (0, 0)) -> tuple[np.ndarray, np.ndarray]:
    """Triangles that rays through pixels meet and their depths, float64 brute force (Möller and Trumbore, 1997)."""
    rays = camera.rays(camera.pixels() + shift)
    a, b, c = np.moveaxis(scene.triangles.corners, 1, 0)
    across, up, start = b - a, c - a, camera.centre - a
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.cross(rays[:, None], up)
        scale = 1 / (across * p).sum(-1)
        u = (start * p).sum(-1) * scale
        q = np.cross(start, across)
        v = (rays[:, None] * q).sum(-1) * scale
        t = (up * q).sum(-1) * scale
        t = np.where((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0), t, np.inf)
    first = t.argmin(axis=1)
    depth = t[np.arange(len(first)), first]
    return np.where(np.isfinite(depth), first, -1), np.where(np.isfinite(depth), depth, 0)


def turned(rng: np.random.Generator) -> np.ndarray:
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def soup(rng: np.random.Generator, middle: np.ndarray) -> Scene:
    """Three placements of loose triangles of either winding, one stretched, near a point of the world."""
    placements = []
    for number in range(3):
        corners = rng.normal(size=(30, 1, 3)) + 0.5 * rng.normal(size=(30, 3, 3))
        mesh = Mesh(corners.reshape(-1, 3), np.arange(90).reshape(-1, 3))
        at = middle + rng.normal(size=3)
        placements.append(Placement(mesh, turned(rng), at, rng.uniform(0.3, 2, 3), instance=7 * number))
    return Scene(tuple(placements), EVEN)


def odd_camera(rng: np.random.Generator, target: np.ndarray) -> Camera:
    """Camera with skew, unequal focal lengths, and an axis that meets the picture off its middle."""
    way = rng.normal(size=3)
    eye = target + way / np.linalg.norm(way) * rng.uniform(3, 6)
    camera = Camera.look_at(eye, target, height=40, width=56, focal_length=40)
    k = np.array(
        [[rng.uniform(30, 60), rng.uniform(-8, 8), rng.uniform(-10, 66)], [0, 45, rng.uniform(0, 40)], [0, 0, 1]]
    )
    k[1, 1] *= rng.choice([-1, 1])
    return replace(camera, k=k)


def test_it_is_a_renderer_and_says_on_what_it_draws(gl: str) -> None:
    assert isinstance(GLRenderer(), Renderer)
    assert ("software" in gl) == ("llvmpipe" in gl or "softpipe" in gl)
    drawn(Scene())
    assert GLRenderer.check() == gl  # now of a context


@pytest.mark.long("renderings")
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_geometry_is_that_of_a_ray_caster_in_float64(gl: str, far: float) -> None:
    rng = np.random.default_rng(3)
    equal, pixels, renderer = 0, 0, GLRenderer()
    for _ in range(12):
        middle = far * rng.normal(size=3)
        scene, camera = soup(rng, middle), odd_camera(rng, middle)
        renderer.load(scene)
        frame = renderer.render(camera)
        triangle, depth = cast(scene, camera)
        near = [cast(scene, camera, (x, y))[0] for x in (-0.01, 0.01) for y in (-0.01, 0.01)]
        sure = np.all([one == triangle for one in near], axis=0)
        same = (frame.triangle.ravel() == triangle) & sure
        equal, pixels = equal + same.sum(), pixels + sure.sum()
        instance = np.where(triangle >= 0, scene.triangles.instance[triangle], -1)
        assert (frame.instance.ravel() == instance)[same].all()
        met = same & (triangle >= 0)
        assert met.sum() > 50
        assert np.abs(frame.depth.ravel()[met] / depth[met] - 1).max() < 1e-4
        a, b, c = np.moveaxis(scene.triangles.corners[triangle[met]], 1, 0)
        normal = np.cross(b - a, c - a) @ camera.rotation.T
        ray = camera.rays()[met] @ camera.rotation.T
        normal *= -np.sign((normal * ray).sum(-1, keepdims=True)) / np.linalg.norm(normal, axis=-1, keepdims=True)
        np.testing.assert_allclose(frame.normal.reshape(-1, 3)[met], normal, atol=1e-4)
        nothing = same & (triangle < 0)
        assert not frame.depth.ravel()[nothing].any()
        assert not frame.normal.reshape(-1, 3)[nothing].any()
    assert equal / pixels >= 0.999


def test_pixels_are_where_the_camera_projects_points(gl: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        camera = odd_camera(rng, np.zeros(3))
        x, y = rng.integers(4, 50), rng.integers(4, 36)
        ray = camera.rays([[x, y]])[0]
        point = camera.centre + 5 * ray
        # a square that covers the half pixel about (x, y), and no other centre
        corners = camera.centre + 5 * camera.rays(np.array([[x, y]]) + 0.5 * SQUARE[:, :2])
        np.testing.assert_allclose(camera.project(point)[0], [x, y], atol=1e-9)
        frame = drawn(Scene((Placement(Mesh(corners, HALVES)),)), camera)
        assert np.argwhere(frame.triangle >= 0).tolist() == [[y, x]]
        assert frame.depth[y, x] == pytest.approx(5, rel=1e-5)


@pytest.mark.parametrize("eye", [(0.0, 0.0, 1.2), (1.98, 0.5, 1.2), (-1.9, -1.9, 0.002)])
def test_a_room_is_seen_from_within(gl: str, eye: tuple[float, float, float]) -> None:
    low, high = np.array([-2, -2, 0.0]), np.array([2, 2, 2.5])
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * (high - low) + low
    sides = np.array([[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]])
    scene = Scene((Placement(Mesh(corners, sides[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3))),), EVEN)
    for target in ((0.3, 1.7, 0.4), (-1, 0.2, 2.4), (1.5, -1.7, 0.1)):
        camera = Camera.look_at(eye, target, height=60, width=80, field_of_view=1.4)
        frame = drawn(scene, camera)
        walls = []
        for shift in ((0, 0), (0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01)):
            rays = camera.rays(camera.pixels() + shift)
            with np.errstate(divide="ignore"):
                walls.append(np.maximum((low - eye) / rays, (high - eye) / rays))
        seen = walls[0].min(axis=1) > 0.002
        assert (frame.triangle.ravel()[seen] >= 0).all()
        inner = seen & np.all([wall.argmin(axis=1) == walls[0].argmin(axis=1) for wall in walls], axis=0)
        assert inner.mean() > 0.9
        np.testing.assert_allclose(frame.depth.ravel()[inner], walls[0].min(axis=1)[inner], rtol=1e-4)


def test_layers_a_millimetre_apart_are_kept_apart_ten_metres_away(gl: str) -> None:
    floor, carpet = Placement(square(20)), Placement(square(20), translation=(0, 0, 0.001))
    camera = Camera.look_at((0, -15, 1.5), (0, 0, 0.8), height=100, width=100, field_of_view=0.5)
    frame = drawn(Scene((floor, carpet)), camera)
    far = (frame.depth > 0) & (frame.depth < 15)
    assert far.sum() > 1000
    assert (frame.instance[far] == 1).all()


def test_every_color_comes_out_as_it_is_in_even_light(gl: str) -> None:
    corners = np.array([(x, y) for y in range(16) for x in range(16)], float)
    vertices = (corners[:, None] + [[0, 0], [1, 0], [1, 1], [0, 1]]).reshape(-1, 2) - 8
    faces = np.arange(1024).reshape(-1, 4)[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    colors = [(byte, 255 - byte, byte * 7 % 256) for byte in range(256)]
    mesh = Mesh(
        np.pad(vertices, ((0, 0), (0, 1))),
        faces,
        materials=tuple(map(Material, colors)),
        material=np.repeat(np.arange(256), 2),
    )
    for background in ((1, 77, 200), None):
        for samples in (1, 3):
            scene = Scene((Placement(mesh),), EVEN, background)
            frame = drawn(scene, Camera.look_at((0, 0, 9), (0, 0, 0), height=90, width=90, focal_length=45), samples)
            inner = np.lib.stride_tricks.sliding_window_view(np.pad(frame.triangle // 2, 1, mode="edge"), (3, 3))
            inner = (inner == inner[..., 1:2, 1:2]).all(axis=(2, 3)) & (frame.triangle >= 0)
            assert len(np.unique(frame.triangle[inner] // 2)) == 256
            assert (frame.rgb[inner][:, :3] == np.array(colors)[frame.triangle[inner] // 2]).all()
            empty = frame.rgb[0, 0].tolist()
            assert empty == ([0, 0, 0, 0] if background is None else [1, 77, 200])
            if background is None:
                assert (frame.rgb[inner][:, 3] == 255).all()


def test_lights_follow_their_distribution(gl: str) -> None:
    color, half = (200, 128, 60), math.sqrt(0.5)
    albedo = linear(np.array(color) / 255)
    face = Scene((Placement(square(materials=(Material(color),))),), ())
    spot = Lamp((1, 0, 2), (0.9, 0.8, 0.7), axis=(0, 0, -1), exponent=3, reach=1.5)
    distance = math.sqrt(5)
    cases: list[tuple[tuple[Light, ...], float | np.ndarray]] = [
        ((), 0.0),
        ((Ambient((0.2, 0.3, 0.4)), Ambient((0.1, 0.1, 0.1))), np.array([0.3, 0.4, 0.5])),
        ((Directional((0, 3, -3), (1, 0.5, 0.2)),), half * np.array([1, 0.5, 0.2])),
        ((Directional((0, 3, 3)),), 0.0),
        ((Directional((0, 1, 1), of_camera=True), Ambient((0.1, 0.1, 0.1))), half + 0.1),
        ((Lamp((0, 0, 3), (0.5, 0.6, 0.7)),), np.array([0.5, 0.6, 0.7])),
        ((Lamp((0, 0, 3), reach=2.0),), 4 / 9),
        ((spot,), np.array(spot.color) * (2 / distance) * (2 / distance) ** 3 * 1.5**2 / 5),
        ((replace(spot, axis=(0, 0, 1)),), 0.0),
        ((replace(spot, axis=(0, 0, 1), exponent=0),), 0.0),
        ((Ambient((5.0, 5.0, 5.0)),), 5.0),
    ]
    camera = Camera.look_at((0, 0, 4), (0, 0, 0), height=49, width=65, focal_length=80)
    for lights, arrives in cases:
        found = drawn(replace(face, lights=lights), camera).rgb[24, 32].astype(int)
        assert np.abs(found - to_bytes(albedo * arrives)).max() <= 1, lights


def test_both_sides_are_lit_alike(gl: str) -> None:
    lights = (Directional((0, 0, 1), of_camera=True),)
    mesh = square(normals=np.tile([0, 0, -1.0], (4, 1)))
    for faces in (HALVES, HALVES[:, ::-1]):
        for one in (Mesh(mesh.vertices, faces), Mesh(mesh.vertices, faces, mesh.normals)):
            frame = drawn(Scene((Placement(one),), lights))
            np.testing.assert_allclose(frame.normal[20, 20], [0, 0, -1], atol=1e-6)
            assert frame.rgb[20, 20].tolist() == [188, 188, 188]


def ball(flip: bool = False) -> Mesh:
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 97), np.linspace(0.02, np.pi - 0.02, 49), indexing="ij")
    points = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], -1).reshape(-1, 3)
    corner = np.arange(len(points)).reshape(97, 49)
    a, b, c, d = (part.ravel() for part in (corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    return Mesh(points, faces[:, ::-1] if flip else faces, 3 * points)


@pytest.mark.parametrize("flip", [False, True])
def test_smooth_normals_of_a_stretched_ball(gl: str, flip: bool) -> None:
    scale, rotation = np.array([0.5, 1.0, 1.4]), turned(np.random.default_rng(2))
    scene = Scene((Placement(ball(flip), rotation, (0.2, 0.1, 0.3), scale),), EVEN)
    camera = Camera.look_at((3, 2, 1), (0.2, 0.1, 0.3), height=90, width=120, field_of_view=0.7)
    frame = drawn(scene, camera)
    met = (frame.triangle >= 0).ravel()
    points = camera.centre + camera.rays()[met] * frame.depth.ravel()[met, None]
    own = (points - (0.2, 0.1, 0.3)) @ rotation
    normal = (own / scale**2) @ rotation.T @ camera.rotation.T
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    cosine = (frame.normal.reshape(-1, 3)[met] * normal).sum(1)
    assert np.median(cosine) > math.cos(math.radians(0.1))
    steep = (normal * camera.rays()[met] @ camera.rotation.T).sum(1) > -0.2  # the mesh's own edge is not the ball's
    assert cosine[~steep].min() > math.cos(math.radians(0.5))
    np.testing.assert_allclose(np.linalg.norm(frame.normal.reshape(-1, 3)[met], axis=1), 1, atol=1e-5)


class TestTextures:
    UV = (SQUARE[:, :2] + 1) / 2

    def face(self, texture: np.ndarray, uv: np.ndarray = UV, **how: object) -> Scene:
        return Scene((Placement(square(1, uv=uv, materials=(Material((255, 255, 255), texture),), **how)),), EVEN)

    def test_texels_stand_upright_and_come_out_as_they_are(self, gl: str) -> None:
        texture = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
        camera = Camera.look_at((0, 0, 1), (0, 0, 0), height=50, width=70, focal_length=35)
        camera = replace(camera, k=np.diag([35.0, 25.0, 1]) + np.array([[0, 0, 34.5], [0, 0, 24.5], [0, 0, 0]]))
        rgb = drawn(self.face(texture), camera).rgb
        light = linear(texture / 255)
        place = (np.arange(70) + 0.5) / 10 - 0.5
        level = (np.arange(50) + 0.5) / 10 - 0.5
        left, top = np.floor(place).astype(int), np.floor(level).astype(int)
        across, down_ = (place - left)[None, :, None], (level - top)[:, None, None]
        upper = light[top % 5][:, left % 7] * (1 - across) + light[top % 5][:, (left + 1) % 7] * across
        lower = light[(top + 1) % 5][:, left % 7] * (1 - across) + light[(top + 1) % 5][:, (left + 1) % 7] * across
        wanted = to_bytes(upper * (1 - down_) + lower * down_)
        assert np.abs(rgb.astype(int) - wanted).max() <= 2
        assert (rgb == wanted).mean() > 0.5

    def test_it_repeats(self, gl: str) -> None:
        texture = np.random.default_rng(1).integers(0, 256, (8, 8, 3)).astype(np.uint8)
        near, far = drawn(self.face(texture, self.UV)), drawn(self.face(texture, self.UV + np.array([3, -7])))
        assert np.abs(near.rgb.astype(int) - far.rgb).max() <= 1

    def test_it_is_multiplied_with_what_else_colors(self, gl: str) -> None:
        texture = np.full((2, 2, 3), 188, np.uint8)
        mesh = square(
            1, uv=self.UV, colors=np.full((4, 3), 128, np.uint8), materials=(Material((200, 100, 50), texture),)
        )
        wanted = to_bytes(linear(188 / 255) * linear(128 / 255) * linear(np.array([200, 100, 50]) / 255))
        assert np.abs(drawn(Scene((Placement(mesh),), EVEN)).rgb[24, 32].astype(int) - wanted).max() <= 1

    def test_without_coordinates_there_is_none(self, gl: str) -> None:
        mesh = square(1, materials=(Material((9, 99, 199), np.zeros((2, 2, 3), np.uint8)),))
        assert drawn(Scene((Placement(mesh),), EVEN)).rgb[24, 32].tolist() == [9, 99, 199]


def test_colors_of_vertices_mix_in_linear_light(gl: str) -> None:
    colors = np.array([[0, 0, 0], [255, 0, 255], [255, 0, 255], [0, 0, 0]], np.uint8)
    scene = Scene((Placement(square(1, colors=colors)),), EVEN)
    camera = Camera.look_at((0, 0, 1), (0, 0, 0), height=41, width=41, focal_length=41)
    assert np.abs(drawn(scene, camera).rgb[20, 20].astype(int) - [188, 0, 188]).max() <= 1


def test_many_materials_kinds_and_copies_keep_their_numbers(gl: str) -> None:
    rng = np.random.default_rng(4)
    picture = rng.integers(0, 256, (4, 4, 3)).astype(np.uint8)
    materials = (Material((255, 0, 0)), Material((0, 255, 0), picture), Material((0, 0, 255)))
    vertices = (np.array([[x, 0, 0] for x in range(6)])[:, None] + SQUARE * 0.4).reshape(-1, 3) - (2.5, 0, 0)
    faces = np.arange(24).reshape(6, 4)[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    mesh = Mesh(vertices, faces, uv=np.zeros((24, 2)), materials=materials, material=np.repeat([0, 1, 2, 0, 2, 1], 2))
    smooth = Mesh(vertices, faces, normals=np.tile([0, 0, 1.0], (24, 1)), materials=materials[:1])
    high = (1 << 31) - 1
    placements = (
        Placement(mesh, translation=(0, 1.2, 0)),
        Placement(smooth, instance=(1 << 24) + 1),
        Placement(mesh, translation=(0, -1.2, 0), instance=high),
    )
    scene = Scene(placements, EVEN)
    camera = Camera.look_at((0, 0, 5), (0, 0, 0), height=120, width=160, focal_length=100)
    frame, (triangle, _) = drawn(scene, camera), cast(scene, camera)
    assert (frame.triangle.ravel() // 2 == triangle // 2).mean() > 0.999  # diagonals go through centres of pixels
    assert set(np.unique(frame.instance)) == {-1, 0, (1 << 24) + 1, high}
    assert (np.unique(frame.triangle) == np.arange(-1, 36)).all()
    color = {0: [255, 0, 0], 4: [0, 0, 255]}
    for number, wanted in color.items():
        assert (frame.rgb[frame.triangle == number] == wanted).all()


@pytest.mark.long("renderings")
def test_millions_of_triangles(gl: str) -> None:
    columns, rows = 1280, 900
    x, y = np.meshgrid(np.arange(columns + 1), np.arange(rows + 1))
    vertices = np.stack([x, y, np.zeros_like(x)], -1).reshape(-1, 3) - (columns / 2, rows / 2, 0)
    first = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)).reshape(-1, 1)
    faces = (first + np.array([0, 1, columns + 2, 0, columns + 2, columns + 1])).reshape(-1, 3)
    scene = Scene((Placement(Mesh(vertices, faces), translation=(0, 0, 7)),), EVEN)
    assert len(faces) > 2_300_000
    camera = Camera.look_at((0.1, 0.2, 1000), (0.1, 0.2, 0), height=64, width=64, focal_length=70, up=(0, 1, 0))
    frame = drawn(scene, camera)
    at = camera.centre + camera.rays() * 993
    spot = at[:, :2] + (columns / 2, rows / 2)
    cell = np.floor(spot).astype(int)
    inside = ((cell >= 0) & (cell < (columns, rows))).all(1)
    upper = (spot - cell)[:, 1] > (spot - cell)[:, 0]
    number = np.where(inside, 2 * (cell[:, 1] * columns + cell[:, 0]) + upper, -1)
    share = spot - cell
    sure = (np.abs(share - 0.5) < 0.4).all(1) & (np.abs(share[:, 0] - share[:, 1]) > 0.1) | ~inside
    assert (frame.triangle.ravel() == number)[sure].mean() > 0.999
    np.testing.assert_allclose(frame.depth.ravel()[inside & sure], 993, rtol=1e-6)


@pytest.mark.long("renderings")
def test_more_samples_smooth_colors_and_nothing_else(gl: str) -> None:
    rng = np.random.default_rng(8)
    camera = odd_camera(rng, np.zeros(3))
    scene = replace(soup(rng, np.zeros(3)), background=None)
    plain, fine = drawn(scene, camera), drawn(scene, camera, supersample=4)
    for part in ("depth", "normal", "instance", "triangle"):
        assert (getattr(plain, part) == getattr(fine, part)).all()
    samples = cast(scene, camera.resized(160, 224))[0].reshape(40, 4, 56, 4) >= 0
    np.testing.assert_allclose(fine.rgb[..., 3] / 255, samples.mean(axis=(1, 3)), atol=0.13)
    assert np.abs(fine.rgb[..., 3] / 255 - samples.mean(axis=(1, 3))).mean() < 0.002
    assert (fine.rgb[fine.rgb[..., 3] > 0][:, :3] == 188).all(), "colours are not multiplied with alpha"


def test_a_face_over_a_background_mixes_in_linear_light(gl: str) -> None:
    edge = Mesh([[0, -9, 0], [9, -9, 0], [9, 9, 0], [0, 9, 0]], HALVES, materials=(WHITE,))
    camera = Camera.look_at((0, 0, 4), (0, 0, 0), height=9, width=9, focal_length=40)
    found = drawn(Scene((Placement(edge),), EVEN, (0, 0, 0)), camera, supersample=2).rgb[4, :, 0]
    assert found.tolist() == [0, 0, 0, 0, 188, 255, 255, 255, 255]


class TestOddScenes:
    def test_nothing(self, gl: str) -> None:
        for scene in (
            Scene(background=(3, 4, 5)),
            Scene((Placement(square(), translation=(0, 0, 50)),), background=(3, 4, 5)),
        ):
            frame = drawn(scene)
            assert (frame.rgb == (3, 4, 5)).all()
            assert frame.rgb.shape == (48, 64, 3)
            assert (frame.triangle == -1).all()
            assert (frame.instance == -1).all()
            assert not frame.depth.any()
            assert not frame.normal.any()

    def test_triangles_without_area_keep_their_numbers_and_are_not_seen(self, gl: str) -> None:
        faces = [[0, 0, 1], [0, 1, 2], [0, 2, 2], [0, 2, 3], [3, 1, 3]]
        frame = drawn(Scene((Placement(Mesh(SQUARE * 9, faces)),)))
        assert set(np.unique(frame.triangle)) == {1, 3}
        assert drawn(Scene((Placement(Mesh(SQUARE, [[1, 1, 1]])),))).triangle.max() == -1

    def test_normals_that_cancel_are_those_of_the_triangle(self, gl: str) -> None:
        frame = drawn(Scene((Placement(square(1, normals=np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, 1.0, 0]]))),)))
        np.testing.assert_allclose(np.linalg.norm(frame.normal[frame.triangle >= 0], axis=1), 1, atol=1e-5)

    @pytest.mark.parametrize("size", [1e-6, 7e5])
    def test_the_tiny_and_the_gigantic(self, gl: str, size: float) -> None:
        camera = Camera.look_at((0, 0, 3 * size), (0, 0, 0), height=9, width=9, focal_length=9)
        frame = drawn(Scene((Placement(square(size)),)), camera)
        assert frame.depth[4, 4] == pytest.approx(3 * size, rel=1e-5)

    @settings(max_examples=40)
    @given(
        numbers=st.lists(st.floats(-1e3, 1e3, width=32), min_size=9, max_size=9),
        eye=st.tuples(*[st.floats(-5, 5)] * 3),
        size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    )
    def test_any_triangle_from_anywhere(
        self, gl: str, numbers: list[float], eye: tuple[float, float, float], size: tuple[int, int]
    ) -> None:
        if np.linalg.norm(eye) < 1e-3:
            return
        scene = Scene((Placement(Mesh(np.reshape(numbers, (3, 3)), [[0, 1, 2]])),))
        camera = Camera.look_at(eye, (0, 0, 0), height=size[0], width=size[1], field_of_view=1.0)
        frame = drawn(scene, camera)
        met = frame.triangle == 0
        assert ((frame.triangle == -1) == ~met).all()
        assert np.isfinite(frame.depth).all()
        assert ((frame.depth > 0) == met).all()
        np.testing.assert_allclose(np.linalg.norm(frame.normal, axis=-1), met, atol=1e-4)


class TestUse:
    def test_frames_stay_as_they_are(self, gl: str) -> None:
        renderer = GLRenderer()
        renderer.load(Scene((Placement(square(1)),)))
        cameras = [replace(DOWN, translation=DOWN.translation + np.array([0.05 * step, 0, 0])) for step in range(12)]
        first = [renderer.render(camera) for camera in cameras]
        copies = [frame.rgb.copy() for frame in first]
        kept = first[3].depth  # of the rest nothing is kept
        wanted = kept.copy()
        del first
        for _ in range(2):
            for camera, copy in zip(cameras, copies, strict=True):
                assert (renderer.render(camera).rgb == copy).all()
        assert (kept == wanted).all()
        frame = renderer.render(DOWN)
        for part in (frame.rgb, frame.depth, frame.normal, frame.instance, frame.triangle):
            assert part.flags.c_contiguous
            part[...] = 0  # it is the caller's
        assert (renderer.render(DOWN).rgb == copies[0]).all()

    def test_sizes_change(self, gl: str) -> None:
        renderer = GLRenderer(2)
        renderer.load(Scene((Placement(square()),), EVEN))
        for size in [(8, 8), (9, 7), (1, 1), (2, 300), (8, 8), (33, 65), (1100, 1000)]:
            frame = renderer.render(
                Camera.look_at((0, 0, 4), (0, 0, 0), height=size[0], width=size[1], focal_length=9999)
            )
            assert frame.rgb.shape == (*size, 3)
            assert (frame.rgb == 255).all()
            assert (frame.instance == 0).all()

    def test_threads_and_renderers_share_the_context(self, gl: str) -> None:
        def draw(byte: int) -> list[int]:
            renderer = GLRenderer()
            renderer.load(Scene((Placement(square(materials=(Material((byte, 0, 0)),))),), EVEN))
            found = {int(value) for _ in range(10) for value in np.unique(renderer.render(DOWN).rgb[..., 0])}
            renderer.close()
            return sorted(found)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(draw, range(100, 132))) == [[byte] for byte in range(100, 132)]

    def test_one_renderer_of_several_threads(self, gl: str) -> None:
        renderer = GLRenderer()
        renderer.load(Scene((Placement(square()),), EVEN))
        with ThreadPoolExecutor(4) as pool:
            assert {int(frame.rgb.min()) for frame in pool.map(lambda _: renderer.render(DOWN), range(40))} == {255}

    def test_what_is_loaded_is_drawn(self, gl: str) -> None:
        renderer, other = GLRenderer(), GLRenderer()
        picture = np.full((2, 2, 3), 77, np.uint8)
        scenes = [
            Scene((Placement(square(uv=np.zeros((4, 2)), materials=(Material((255, 255, 255), one),))),), EVEN)
            for one in (picture, picture, picture // 7)
        ]
        for scene, byte in zip(scenes, (77, 77, 11), strict=True):
            renderer.load(scene)
            renderer.load(scene)
            other.load(Scene())
            assert abs(int(renderer.render(DOWN).rgb[9, 9, 0]) - byte) <= 1
            assert other.render(DOWN).rgb[9, 9].tolist() == [255, 255, 255]

    def test_it_ends(self, gl: str) -> None:
        renderer = GLRenderer()
        with pytest.raises(SetsupError, match="has no scene"):
            renderer.render(DOWN)
        renderer.load(Scene())
        renderer.close()
        renderer.close()
        for use in (lambda: renderer.render(DOWN), lambda: renderer.load(Scene())):
            with pytest.raises(SetsupError, match="is closed"):
                use()
        GLRenderer().close()

    def test_lights_with_shadows_are_told_of_once(self, gl: str, caplog: pytest.LogCaptureFixture) -> None:
        _warn_of_shadows.cache_clear()
        caplog.set_level(logging.WARNING, logger="setsup")
        for _ in range(2):
            drawn(Scene((Placement(square()),), (Lamp((0, 0, 3), shadow=True),)))
        assert [record.message for record in caplog.records].count(caplog.records[0].message) == 1
        assert "does not support shadows" in caplog.text

    def test_images_beyond_the_driver_s_limit(self, gl: str) -> None:
        renderer = GLRenderer(supersample=16)
        renderer.load(Scene())
        with pytest.raises(SetsupError, match=r"at most [\d,]+ pixels per side of 16 × 16 samples.*windowed"):
            renderer.render(Camera.look_at((0, 0, 4), (0, 0, 0), height=2, width=1 << 15, focal_length=9))

    def test_a_device_that_is_not_there(self, gl: str) -> None:
        with pytest.raises(DataError, match=r"GPU 63 does not exist: EGL found (only one device|\d+ devices), number"):
            GLRenderer(device=63).load(Scene())

    @pytest.mark.parametrize(
        "wrong", [{"supersample": 0}, {"supersample": 17}, {"supersample": 1.5}, {"device": -1}, {"device": "0"}]
    )
    def test_options_that_are_none(self, wrong: dict[str, object]) -> None:
        with pytest.raises(SetsupError, match=next(iter(wrong))):
            GLRenderer(**wrong)

    def test_too_many_lights(self, gl: str) -> None:
        lights = (Lamp((0, 0, 3), (0.01, 0.01, 0.01)),) * 64
        assert drawn(Scene((Placement(square()),), lights)).rgb[24, 32, 0] == pytest.approx(to_bytes(0.64), abs=1)
        with pytest.raises(SetsupError, match="at most 64 lights"):
            drawn(Scene(lights=(*lights, Directional((0, 0, 1)))))


def sized(height: int, width: int) -> Camera:
    return Camera.look_at((0, 0, 4), (0, 0, 0), height=height, width=width, focal_length=width)


@pytest.fixture
def memory() -> Callable[[], float]:
    """Tells how many megabytes this process takes."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("no /proc here to tell how much memory a process has")
    return lambda: int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def grows(memory: Callable[[], float], render: Callable[[int], object]) -> bool:
    """Whether 42 frames take over 30 MB in each of three rounds: other libraries in this process grow it once."""
    for start in (0, 50, 100):
        for number in range(start, start + 50):
            render(number)
            if number == start + 8:
                before = memory()
        if memory() - before < 30:
            return False
    return True


class TestMemory:
    """What is rendered once takes no memory afterwards; of each case all frames together would take over 100 MB."""

    def test_large_frames(self, gl: str, memory: Callable[[], float], monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("gl", "gl_targets"):
            monkeypatch.setattr(f"setsup_renderers.{module}.LARGE", 1 << 16)
        renderer = GLRenderer(supersample=2)
        renderer.load(Scene((Placement(square()),), EVEN))
        assert not grows(memory, lambda _: renderer.render(sized(300, 300)))

    def test_sizes_that_are_no_longer_kept(self, gl: str, memory: Callable[[], float]) -> None:
        renderer = GLRenderer()
        renderer.load(Scene((Placement(square()),), EVEN))
        assert not grows(memory, lambda number: renderer.render(sized(300, 300 + number)))

    def test_frames_that_fail(self, gl: str, memory: Callable[[], float], monkeypatch: pytest.MonkeyPatch) -> None:
        """A buffer that the driver refuses is told of once; the next task is not blamed, and nothing is kept."""
        renderer, scene = GLRenderer(), Scene((Placement(square()),), EVEN)
        renderer.load(scene)
        renderer.render(DOWN)
        before = memory()
        with monkeypatch.context() as patched:
            whole = Context.depth_buffer

            def refused(place: Context, height: int, width: int) -> object:
                found = whole(place, 1, 1)
                for _ in range(3):
                    place._depth_storage(found.glo, 0x8CAC, -1, -1)  # GL_INVALID_VALUE
                return found

            patched.setattr(Context, "depth_buffer", refused)
            for number in range(30):
                with pytest.raises(DataError, match=r"cannot render images of 4\d\d × 400 pixels.*camera\.windowed"):
                    renderer.render(sized(400, 400 + number))
        assert memory() - before < 30
        other = GLRenderer()
        other.load(scene)
        assert (other.render(DOWN).rgb == 255).all()
        assert (renderer.render(DOWN).rgb == 255).all()

    def test_a_scene_that_fails(self, gl: str, monkeypatch: pytest.MonkeyPatch) -> None:
        renderer = GLRenderer()
        with monkeypatch.context() as patched:
            patched.setattr("setsup_renderers.gl._SRGB8", 0xFFFF)  # no format of texels
            picture = np.zeros((2, 2, 3), np.uint8)
            textured = square(uv=np.zeros((4, 2)), materials=(Material((255, 255, 255), picture),))
            with pytest.raises(DataError):
                renderer.load(Scene((Placement(textured),), EVEN))
        renderer.load(Scene((Placement(square()),), EVEN))
        assert (renderer.render(DOWN).rgb == 255).all()


def test_a_release_that_fails_is_one_error_and_not_the_end_of_the_thread(
    gl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(place: Context, **_: bool) -> None:
        raise RuntimeError("the context is lost")

    renderer = GLRenderer()
    renderer.load(Scene((Placement(square()),), EVEN))
    with monkeypatch.context() as patched:
        patched.setattr(Context, "_give_back", lost)
        with pytest.raises(RuntimeError, match="the context is lost"):
            renderer.render(DOWN)
    assert (renderer.render(DOWN).rgb == 255).all()
