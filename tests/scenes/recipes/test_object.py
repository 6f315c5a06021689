import json
import math
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from setsup.datasets.benchmarks.shapenet_renderings.poses import azimuth_elevation
from setsup.errors import DataError, FactorError, SetsupError
from setsup.factors import Kind
from setsup.scenes import Ambient, Camera, Material, Mesh, Recipe, load_mesh
from setsup.scenes.recipes import ObjectView
from setsup_renderers.embree import EmbreeRenderer

TO_Y_UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # of the world, whose z is up, to the models' y-up frame
TRIANGLE = Mesh([[0, 0, 0], [4, 0, 0], [0, 2, 0]], [[0, 1, 2]])
RED, GREEN, BLUE, GREY = (255, 0, 0), (0, 255, 0), (0, 0, 255), (128, 128, 128)


def view(azimuth: float, elevation: float, model: str = "a") -> dict[str, Any]:
    return {"model": model, "azimuth": azimuth, "elevation": elevation}


def camera_of(recipe: ObjectView, values: dict[str, Any]) -> Camera:
    return recipe.camera(values, recipe.scene(values))


def marked() -> Mesh:
    """A grey cube of side 2 around (7, 7, 7), y up; its side at +x is red, that at +y green, that at −z blue."""
    vertices, faces, material = [], [], []
    for axis in range(3):
        for sign in (-1, 1):
            square = np.zeros((4, 3))
            square[:, axis] = sign
            square[:, [(axis + 1) % 3, (axis + 2) % 3]] = [[-1, -1], [1, -1], [1, 1], [-1, 1]]
            faces += [[4 * len(vertices) + corner for corner in triangle] for triangle in ((0, 1, 2), (0, 2, 3))]
            material += [{(0, 1): 1, (1, 1): 2, (2, -1): 3}.get((axis, sign), 0)] * 2
            vertices.append(square)
    materials = [Material(color) for color in (GREY, RED, GREEN, BLUE)]
    return Mesh(np.concatenate(vertices) + 7, faces, materials=tuple(materials), material=np.array(material))


def test_it_is_a_recipe_of_a_grid() -> None:
    recipe = ObjectView({"a": TRIANGLE, "b": TRIANGLE}, azimuths=(0, 90, 180, 270), elevations=(0, 45))
    assert isinstance(recipe, Recipe)
    assert [(one.name, one.kind, one.levels, one.unit, one.period) for one in recipe.factors] == [
        ("model", Kind.NOMINAL, ("a", "b"), "", None),
        ("azimuth", Kind.CYCLIC, (0.0, 90.0, 180.0, 270.0), "deg", 360.0),
        ("elevation", Kind.ORDINAL, (0.0, 45.0), "deg", None),
    ]
    assert recipe.scene_factors == ("model",)
    assert recipe.size == (128, 128)


def test_markers_appear_where_they_should() -> None:
    recipe = ObjectView({"a": marked()}, lights=(Ambient(),), jitter=0, size=(64, 64))
    renderer = EmbreeRenderer()
    renderer.load(recipe.scene(view(0, 0)))

    def picture(azimuth: float, elevation: float) -> np.ndarray:
        return renderer.render(camera_of(recipe, view(azimuth, elevation))).rgb

    # the cube has a side of 2 at a distance of 30 − 1: it covers 2 · 733 / 29 = 50.6 pixels of 64
    for azimuth, color in ((0, RED), (90, BLUE), (180, GREY), (270, GREY), (360, RED), (-270, BLUE)):
        front = picture(azimuth, 0)
        assert front[8:56, 8:56].reshape(-1, 4).tolist() == [[*color, 255]] * 48 * 48
        assert not front[:6].any()
        assert not front[:, 58:].any()
    # between red at azimuth 0 and blue at azimuth 90 the camera sees red on the left: it goes round counter-clockwise
    between = picture(45, 0)
    assert between[32, 20].tolist() == [*RED, 255]
    assert between[32, 44].tolist() == [*BLUE, 255]
    above = picture(0, 45)
    assert above[20, 32].tolist() == [*GREEN, 255]
    assert above[44, 32].tolist() == [*RED, 255]
    below = picture(0, -45)
    assert below[20, 32].tolist() == [*RED, 255]
    assert below[44, 32].tolist() == [*GREY, 255]
    assert picture(30, 90)[32, 32].tolist() == [*GREEN, 255]


@given(st.floats(-720, 720), st.floats(-90, 90))
def test_angles_are_those_of_the_published_renderings(azimuth: float, elevation: float) -> None:
    camera = camera_of(ObjectView({"a": TRIANGLE}), view(azimuth, elevation))
    # their matrices take y-up models to a camera whose y is up, and which looks along −z
    rotation = np.diag([1.0, -1, -1]) @ camera.rotation @ TO_Y_UP.T
    found = azimuth_elevation(rotation)
    assert found[1] == pytest.approx(elevation, abs=1e-5)
    if abs(elevation) < 89.9:
        assert (found[0] - azimuth + 180) % 360 - 180 == pytest.approx(0, abs=1e-4)
        assert rotation[0, 1] == pytest.approx(0, abs=1e-9)  # no roll: what is level stays level
        assert rotation[1, 1] > 0


@given(st.floats(0, 359), st.sampled_from([-90.0, 90.0]))
def test_poles_are_the_limits_of_what_lies_beside_them(azimuth: float, pole: float) -> None:
    recipe = ObjectView({"a": TRIANGLE}, jitter=0)
    at, beside = (camera_of(recipe, view(azimuth, elevation)) for elevation in (pole, pole * (1 - 1e-7)))
    np.testing.assert_allclose(at.rotation, beside.rotation, atol=1e-6)


def test_a_camera_is_as_published() -> None:
    camera = camera_of(ObjectView({"a": TRIANGLE}, jitter=0), view(0, 0))
    np.testing.assert_allclose(camera.centre, [30, 0, 0], atol=1e-12)
    # in units of half a picture, as their projection.txt has it
    assert camera.k[0, 0] / 64 == pytest.approx(1 / math.tan(math.radians(2.5)))
    assert camera.project([0, 0, 0])[0].tolist() == pytest.approx([63.5, 63.5])
    assert camera.project([0, 1, 0])[0][0] == pytest.approx(63.5 + 64 / math.tan(math.radians(2.5)) / 30)


@pytest.mark.long("renderings")
def test_jitter_moves_the_camera_after_it_was_aimed() -> None:
    recipe, still = ObjectView({"a": TRIANGLE}, seed=3), ObjectView({"a": TRIANGLE}, jitter=0)
    moves = []
    for step in range(1500):
        values = view(0.24 * step, 5 + 0.05 * step)
        moved, aimed = camera_of(recipe, values), camera_of(still, values)
        assert moved.rotation.tolist() == aimed.rotation.tolist()
        moves.append(moved.centre - aimed.centre)
    found = np.array(moves)
    assert np.abs(found).max() <= 0.2 + 1e-12
    # uniform: sorted values are close to even ones (Kolmogorov–Smirnov at 1e-6: 2.69 / √n), and axes do not go together
    even = (np.arange(1500) + 0.5) / 1500
    assert np.abs(np.sort(found, axis=0) / 0.4 + 0.5 - even[:, None]).max() < 2.69 / math.sqrt(1500)
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.15


def test_jitter_never_leads_below_the_ground() -> None:
    recipe = ObjectView({"a": TRIANGLE})
    heights = np.array([camera_of(recipe, view(azimuth, 0)).centre[2] for azimuth in range(360)])
    assert heights.min() >= 0
    assert 0.08 < heights.mean() < 0.12  # even over 0 … 0.2
    assert np.ptp([camera_of(recipe, view(azimuth, -1)).centre[2] for azimuth in range(360)]) > 0.3


def test_jitter_depends_on_seed_model_and_angles_alone() -> None:
    recipe = ObjectView({"a": TRIANGLE, "b": TRIANGLE})
    first = camera_of(recipe, view(15, 30))
    assert camera_of(ObjectView({"b": TRIANGLE, "a": marked()}), view(15, 30)) == first
    assert camera_of(recipe, view(375, 30)) == first
    # numbers of a continuous column are float32: they give the same picture
    for azimuth, elevation in ((15.1, 30.7), (0.1, 0.3)):
        single = view(np.float32(azimuth), np.float32(elevation))  # type: ignore[arg-type]
        np.testing.assert_allclose(
            camera_of(recipe, single).centre, camera_of(recipe, view(azimuth, elevation)).centre, atol=1e-5
        )
    others = [
        camera_of(recipe, view(15, 30, "b")).centre - first.centre,
        camera_of(ObjectView({"a": TRIANGLE}, seed=1), view(15, 30)).centre - first.centre,
        camera_of(recipe, view(15.001, 30)).centre - first.centre,
        camera_of(recipe, view(15, 30.001)).centre - first.centre,
    ]
    assert min(np.abs(other).max() for other in others) > 0.01


def test_another_process_draws_the_same(tmp_path: Path) -> None:
    recipe = ObjectView({"a": marked()}, seed=7)
    (tmp_path / "recipe").write_bytes(pickle.dumps(recipe))
    program = (
        "import pickle, sys; recipe = pickle.load(open(sys.argv[1], 'rb')); row = eval(sys.argv[2]);"
        "print(recipe.scene(row).digest, recipe.camera(row, recipe.scene(row)).to_dict(), recipe.key)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "recipe"), repr(view(33, 44))]
    other = subprocess.run(command, capture_output=True, text=True, check=True)
    values = view(33, 44)
    scene = recipe.scene(values)
    assert other.stdout.strip() == f"{scene.digest} {recipe.camera(values, scene).to_dict()} {recipe.key}"


@given(
    st.lists(st.tuples(*[st.floats(-1000, 1000)] * 3), min_size=3, max_size=9),
    st.floats(1e-3, 50),
    st.sampled_from(["y", "z"]),
)
def test_models_are_centred_and_two_long(points: list[tuple[float, ...]], unit: float, up: Any) -> None:
    vertices = np.array(points) * unit
    longest = np.ptp(vertices, axis=0).max()
    assume(longest > max(1e-300, 1e-4 * np.abs(vertices).max()))  # what is smaller cannot be made 2 long
    lonely = vertices[0] + 5 * longest  # a vertex of no triangle does not count
    mesh = Mesh(np.concatenate([vertices, [lonely]]), [[i, i + 1, i + 2] for i in range(len(points) - 2)])
    (placement,) = ObjectView({"a": mesh}, up=up).scene(view(0, 0)).placements
    placed = placement.placed(vertices)
    np.testing.assert_allclose((placed.min(axis=0) + placed.max(axis=0)) / 2, 0, atol=1e-6)
    assert np.ptp(placed, axis=0).max() == pytest.approx(2, abs=1e-6)
    turned = np.stack([vertices[:, 0], -vertices[:, 2], vertices[:, 1]], 1) if up == "y" else vertices
    scale = 2 / longest
    np.testing.assert_allclose(placed - placed[0], scale * (turned - turned[0]), atol=1e-6)


@pytest.mark.parametrize("factor", [1e-300, 1e-9, 2.4e5])
def test_tiny_and_gigantic_models_look_alike(factor: float) -> None:
    renderer, pictures = EmbreeRenderer(), []
    for mesh in (TRIANGLE, Mesh(TRIANGLE.vertices * factor, TRIANGLE.faces)):
        recipe = ObjectView({"a": mesh}, size=(32, 32))
        renderer.load(recipe.scene(view(90, 30)))
        pictures.append(renderer.render(camera_of(recipe, view(90, 30))).rgb)
    assert pictures[0][..., 3].any()
    assert np.abs(pictures[0].astype(int) - pictures[1]).max() <= 1


def test_models_without_extent() -> None:
    for vertices in ([[3, 3, 3]] * 3, [[0, 0, 0], [5e-324, 0, 0], [0, 5e-324, 0]]):
        recipe = ObjectView({"dot": Mesh(vertices, [[0, 1, 2]])})
        with pytest.raises(SetsupError, match="model 'dot' has no extent: all its triangles lie at"):
            recipe.scene({"model": "dot"})
    flat = ObjectView({"line": Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]])})
    assert flat.scene({"model": "line"}).bounds.tolist() == [[-1, 0, 0], [1, 0, 0]]


def test_models_of_all_kinds(tmp_path: Path) -> None:
    import trimesh

    path = tmp_path / "triangle.off"
    path.write_text("OFF\n3 1 0\n0 0 0\n4 0 0\n0 2 0\n3 0 1 2\n")
    models: dict[str, Any] = {
        **{"mesh": TRIANGLE, "text": str(path), "path": path, "partial": partial(load_mesh, path, scale=3)},
        "trimesh": partial(trimesh.load_scene, path, process=False),
    }
    recipe = ObjectView(models)
    corners = [recipe.scene({"model": name}).triangles.corners for name in models]
    for other in corners[1:]:
        np.testing.assert_allclose(np.sort(other, axis=1), np.sort(corners[0], axis=1), atol=1e-12)
    assert pickle.loads(pickle.dumps(recipe)).key == recipe.key


def test_files_are_loaded_when_they_are_drawn() -> None:
    recipe = ObjectView({"a": TRIANGLE, "b": "not/there.obj"})
    assert recipe.scene(view(0, 0)).placements
    assert camera_of(recipe, view(0, 0)).width == 128
    with pytest.raises(DataError, match=r"not/there\.obj"):
        recipe.scene(view(0, 0, "b"))
    with pytest.raises(DataError, match=r"not/there\.obj is not an existing mesh file"):
        _ = recipe.key


def test_scenes_are_kept_for_a_while_and_never_pickled() -> None:
    calls: list[int] = []

    def load(number: int) -> Mesh:
        calls.append(number)
        return Mesh(TRIANGLE.vertices + np.eye(3)[0] * number * [[1], [0], [0]], TRIANGLE.faces)

    recipe = ObjectView({str(number): partial(load, number) for number in range(40)})
    first = recipe.scene({"model": "0"})
    assert recipe.scene({"model": "0"}) is first
    digests = [recipe.scene({"model": str(number)}).digest for number in range(40)]
    assert calls == list(range(40))
    assert recipe.scene({"model": "0"}).digest == digests[0] == first.digest
    assert calls == [*range(40), 0]
    small = ObjectView({"a": marked()})
    before = len(pickle.dumps(small))
    small.scene(view(0, 0))
    assert len(pickle.dumps(small)) < before + 200


class Keyed:
    key = "model 17 of the set"

    def __call__(self) -> Mesh:
        raise AssertionError("not asked for")


def test_keys_follow_models_and_options() -> None:
    recipe = ObjectView({"a": TRIANGLE})
    others = [
        ObjectView({"b": TRIANGLE}),
        ObjectView({"a": marked()}),
        ObjectView({"a": TRIANGLE, "b": marked()}),
        ObjectView({"a": Keyed()}),
        ObjectView({"a": TRIANGLE}, distance=3),
        ObjectView({"a": TRIANGLE}, jitter=0),
        ObjectView({"a": TRIANGLE}, field_of_view=50),
        ObjectView({"a": TRIANGLE}, size=(64, 128)),
        ObjectView({"a": TRIANGLE}, up="z"),
        ObjectView({"a": TRIANGLE}, lights=(Ambient(),)),
        ObjectView({"a": TRIANGLE}, background=(255, 255, 255)),
        ObjectView({"a": TRIANGLE}, seed=1),
    ]
    assert len({recipe.key, *(other.key for other in others)}) == 13
    assert ObjectView({"a": lambda: TRIANGLE}, azimuths=(0,), elevations=(0,)).key == recipe.key


def test_backgrounds() -> None:
    values = view(90, 20)
    for background, corner in ((None, [0, 0, 0, 0]), ((1, 2, 3), [1, 2, 3])):
        recipe = ObjectView({"a": marked()}, background=background)
        renderer = EmbreeRenderer()
        renderer.load(recipe.scene(values))
        assert renderer.render(camera_of(recipe, values)).rgb[0, 0].tolist() == corner


def test_light_falls_from_above() -> None:
    """1 on what faces up, ½ on what stands: 188 is the byte of half the light that 255 shows."""
    white = Mesh(marked().vertices, marked().faces, materials=(Material((255, 255, 255)),))
    recipe, renderer = ObjectView({"a": white}, jitter=0), EmbreeRenderer()
    renderer.load(recipe.scene(view(0, 0)))
    assert renderer.render(camera_of(recipe, view(0, 90))).rgb[64, 64].tolist() == [255] * 4
    assert renderer.render(camera_of(recipe, view(0, 0))).rgb[64, 64].tolist() == [188, 188, 188, 255]


def test_sampled_views_are_even_over_the_sphere() -> None:
    recipe = ObjectView({"a": TRIANGLE, "b": TRIANGLE}, seed=5)
    table = recipe.sampled(2000)
    assert [(factor.name, factor.kind) for factor in table.factors] == [
        *[("model", Kind.NOMINAL), ("azimuth", Kind.CONTINUOUS), ("elevation", Kind.CONTINUOUS)]
    ]
    assert table["azimuth"].period == 360
    assert table.values("model").tolist() == ["a"] * 2000 + ["b"] * 2000
    even = (np.arange(4000) + 0.5) / 4000
    limit = 2.69 / math.sqrt(4000)
    azimuth, elevation = table.values("azimuth"), np.radians(table.values("elevation").astype(np.float64))
    assert azimuth.min() >= 0
    assert azimuth.max() < 360
    assert np.abs(np.sort(azimuth) / 360 - even).max() < limit
    assert np.abs(np.sort(np.sin(elevation)) - even).max() < limit
    assert abs(np.corrcoef(azimuth, elevation)[0, 1]) < 0.08
    cars = recipe.sampled(500, elevation=(-10, math.degrees(0.5)))
    low, high = math.sin(math.radians(-10)), math.sin(0.5)
    heights = np.sin(np.radians(cars.values("elevation").astype(np.float64)))
    assert np.abs(np.sort(heights - low) / (high - low) - (np.arange(1000) + 0.5) / 1000).max() < 2.69 / math.sqrt(1000)
    assert all(camera_of(recipe, table.row(row)).width == 128 for row in (0, 1999, 3999))


def test_sampled_views_of_a_model_are_its_own() -> None:
    both = ObjectView({"a": TRIANGLE, "b": TRIANGLE}).sampled(10)
    alone = ObjectView({"b": TRIANGLE}).sampled(12)
    assert both.values("azimuth")[10:].tolist() == alone.values("azimuth")[:10].tolist()
    assert both.values("elevation")[10:].tolist() == alone.values("elevation")[:10].tolist()
    assert both.values("azimuth")[0] != both.values("azimuth")[10]
    assert ObjectView({"b": TRIANGLE}, seed=1).sampled(1).values("azimuth")[0] != alone.values("azimuth")[0]
    assert ObjectView({"b": TRIANGLE}).sampled(3, elevation=(90, 90)).values("elevation").tolist() == [90, 90, 90]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model", "A", "model has no level 'A'; did you mean 'a'"),
        ("model", None, "model has no level None"),
        ("azimuth", math.nan, "azimuth must be a finite number of degrees, not nan"),
        ("azimuth", None, "azimuth must be"),
        ("azimuth", math.inf, "azimuth must be"),
        ("elevation", 90.5, "elevation must be from -90 to 90 degrees, not 90.5"),
        ("elevation", -91, "elevation must be"),
        ("elevation", np.float32(np.nan), "elevation must be"),
        ("elevation", "high", "elevation must be"),
    ],
)
def test_bad_values(name: str, value: Any, message: str) -> None:
    recipe = ObjectView({"a": TRIANGLE})
    with pytest.raises(FactorError, match=message):
        recipe.camera({**view(0, 0), name: value}, recipe.scene(view(0, 0)))
    values = view(0, 0)
    del values[name]
    with pytest.raises(FactorError, match=f"requires the factor '{name}', which is missing from the row"):
        recipe.camera(values, recipe.scene(view(0, 0)))


@pytest.mark.parametrize(
    "options",
    [
        *({"models": models} for models in ({}, None, {"a": 3}, {3: TRIANGLE}, [TRIANGLE])),
        *({"distance": value} for value in (0, -1, math.nan, "30")),
        *({"jitter": value} for value in (-0.1, math.inf)),
        *({"field_of_view": value} for value in (0, 180, math.nan)),
        *({"azimuths": value} for value in ((), (-5,), (0, 360), (0, 0), (math.nan,), ("a",), 30.0)),
        *({"elevations": value} for value in ((), (91,), (math.nan,))),
        *({"up": "x"}, {"size": (0, 4)}, {"seed": -1}, {"background": (300, 0, 0)}, {"lights": ("sun",)}),
    ],
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(SetsupError):
        _ = ObjectView(**{"models": {"a": TRIANGLE}, **options}).factors


@pytest.mark.parametrize(
    ("views", "elevation"),
    [(0, (0, 90)), (True, (0, 90)), (3, (40, 30)), (3, (0, 91)), (2.5, (0, 1)), (3, 30), (3, (1, 2, 3))],
)
def test_bad_samples(views: Any, elevation: tuple[float, float]) -> None:
    with pytest.raises(SetsupError):
        ObjectView({"a": TRIANGLE}).sampled(views, elevation)


@pytest.mark.long("renderings")
def test_keypoints_of_the_genuine_chair_lie_on_it(genuine: Path) -> None:
    """Points annotated in the model's own frame fall on the model in every picture, and at its depth or behind."""
    folder = genuine / "keypointnet"
    model = "88382b877be91b2a572f8e1c1caad99e"
    chair = folder / "models" / "03001627" / model
    annotated = json.loads((folder / "annotations" / "chair.json").read_text())
    points = [point["xyz"] for one in annotated if one["model_id"] == model for point in one["keypoints"]]
    assert len(points) > 5
    recipe = ObjectView({"chair": partial(load_mesh, chair / "models" / "model_normalized.obj", top=chair)})
    scene, renderer = recipe.scene({"model": "chair"}), EmbreeRenderer()
    renderer.load(scene)
    assert any(material.texture is not None for material in scene.placements[0].mesh.materials)
    world = scene.placements[0].placed(points)
    seen = 0
    for azimuth in range(0, 360, 45):
        camera = recipe.camera(view(azimuth, 25, "chair"), scene)
        frame = renderer.render(camera)
        pixels, depth = camera.project(world)
        for (x, y), away in zip(np.rint(pixels).astype(int), depth, strict=True):
            if not (1 <= x <= 126 and 1 <= y <= 126):  # the jitter may lead a leg out of the picture
                continue
            around = frame.depth[y - 1 : y + 2, x - 1 : x + 2]
            assert (around > 0).any()
            assert away > around[around > 0].min() - 0.03
            seen += bool(np.abs(around - away).min() < 0.03)
    assert seen > 3 * len(points)
