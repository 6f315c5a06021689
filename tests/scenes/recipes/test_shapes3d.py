import colorsys
import math
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.datasets.benchmarks.shapes3d_procedural import ProceduralShapes3D
from setsup.errors import FactorError, SetsupError
from setsup.factors import FactorTable
from setsup.scenes import Recipe
from setsup.scenes.recipes import Shapes3D
from setsup.scenes.shapes3d import FRAMING, HUES, ORIENTATIONS, SCALES, SHAPES
from setsup.scenes.shapes3d_caster import HUE_FIFTHS, SKY, trace
from setsup_renderers.embree import EmbreeRenderer

ROW: dict[str, Any] = {
    **{"floor_hue": 0.1, "wall_hue": 0.7, "object_hue": 0.4},
    **{"scale": 1.25, "shape": "capsule", "orientation": 25.7143},
}
RECIPE = Shapes3D()


def test_it_is_a_recipe_whose_rows_are_those_of_the_procedural_set() -> None:
    assert isinstance(RECIPE, Recipe)
    table, procedural = FactorTable(RECIPE.factors), ProceduralShapes3D().factors
    assert len(table) == 480_000
    assert table.fingerprint == procedural.fingerprint
    assert table.row(123_456) == procedural.row(123_456)
    assert {*RECIPE.scene_factors, "orientation"} == set(table.names)


@pytest.mark.parametrize("size", [(64, 64), (128, 128), (48, 64)])
@pytest.mark.parametrize("orientation", ORIENTATIONS[::2])
def test_rays_are_those_of_the_framing(size: tuple[int, int], orientation: float) -> None:
    recipe = Shapes3D(size)
    camera = recipe.camera({**ROW, "orientation": orientation}, recipe.scene(ROW))
    assert (camera.height, camera.width) == size
    sine, cosine = math.sin(math.radians(orientation)), math.cos(math.radians(orientation))
    eye = [FRAMING.camera_radius * sine, -FRAMING.camera_radius * cosine, FRAMING.camera_height]
    np.testing.assert_allclose(camera.centre, eye, atol=1e-12)
    focal = FRAMING.focal_length * size[1] / 64
    for x, y in [(0, 0), (5, 40), (size[1] - 1, size[0] - 1)]:
        right, down = (x - (size[1] - 1) / 2) / focal, (y - (size[0] - 1) / 2) / focal
        expected = [right * cosine - sine, right * sine + cosine, -down]
        np.testing.assert_allclose(camera.rays([[x, y]])[0], expected, atol=1e-12)


def test_larger_images_show_the_same() -> None:
    scene = RECIPE.scene(ROW)
    assert Shapes3D((256, 256)).camera(ROW, scene) == RECIPE.camera(ROW, scene).resized(256, 256)


@pytest.mark.long("renderings")
def test_images_agree_with_those_of_the_procedural_set() -> None:
    """Ids are equal wherever a pixel sees one surface; of colours the module says what may differ, and by how much."""
    procedural, renderer = ProceduralShapes3D(), EmbreeRenderer(supersample=3)
    differences: dict[int, list[np.ndarray]] = {-1: [], 0: [], 1: [], 2: []}
    dice = np.random.default_rng(5)
    pixels = 0
    for state in range(0, 480, 11):  # every shape, scale and orientation
        row = int(dice.integers(1000)) * 480 + state
        values = procedural.factors.row(row)
        scene = RECIPE.scene(values)
        renderer.load(scene)
        frame = renderer.render(RECIPE.camera(values, scene))
        seen = trace(state // 60, state // 15 % 4, state % 15).surface.astype(np.int32) - 1
        pure = (seen == seen[0]).all(axis=0)
        np.testing.assert_array_equal(frame.instance[pure], seen[4][pure])
        apart = np.abs(frame.rgb.astype(int) - procedural.fetch(row)["image"]).mean(axis=-1)
        for surface, found in differences.items():
            found.append(apart[pure & (seen[4] == surface)])
        pixels += int(pure.sum())
    mean = {surface: float(np.concatenate(found).mean()) for surface, found in differences.items()}
    assert pixels > 0.9 * 44 * 64 * 64
    assert mean[SKY - 1] == 0
    assert mean[0] < 1.2
    assert mean[1] < 3.5
    assert mean[2] < 11
    assert np.concatenate([one for found in differences.values() for one in found]).mean() < 3


def test_levels_have_the_colors_of_the_set() -> None:
    for name, number in (("floor_hue", 0), ("wall_hue", 1), ("object_hue", 2)):
        for code, hue in enumerate(HUES):
            (material,) = RECIPE.scene({**ROW, name: hue}).placements[number].mesh.materials
            assert material.color == tuple(51 * HUE_FIFTHS[code])


@given(st.sampled_from(SHAPES), st.floats(0.01, 5))
def test_objects_stand_on_the_floor_in_their_size(shape: str, scale: float) -> None:
    placement = RECIPE.scene({**ROW, "shape": shape, "scale": scale}).placements[2]
    low, high = placement.placed(placement.mesh.vertices).min(axis=0), placement.placed(placement.mesh.vertices).max(0)
    radius, height = {
        "cube": (FRAMING.cube_half_side, 2 * FRAMING.cube_half_side),
        "cylinder": (FRAMING.cylinder_radius, FRAMING.cylinder_height),
        "sphere": (FRAMING.sphere_radius, 2 * FRAMING.sphere_radius),
        "capsule": (FRAMING.capsule_radius, FRAMING.capsule_straight + 2 * FRAMING.capsule_radius),
    }[shape]
    np.testing.assert_allclose(low, np.array([-radius, -radius, 0]) * scale, atol=1e-9)
    np.testing.assert_allclose(high, np.array([radius, radius, height]) * scale, atol=1e-9)


@given(st.floats(-2, 3), st.floats(-1000, 1000))
def test_numbers_between_levels(hue: float, orientation: float) -> None:
    values = {**ROW, "wall_hue": hue, "orientation": orientation}
    scene = RECIPE.scene(values)
    (material,) = scene.placements[1].mesh.materials
    np.testing.assert_allclose(np.array(material.color) / 255, colorsys.hsv_to_rgb(hue % 1, 1, 1), atol=0.51 / 255)
    camera = RECIPE.camera(values, scene)
    again = RECIPE.camera({**values, "orientation": orientation + 360}, scene)
    np.testing.assert_allclose(camera.centre, again.centre, atol=1e-9)
    pixel, depth = camera.project([0, 0, FRAMING.camera_height])
    np.testing.assert_allclose([*pixel, depth], [31.5, 31.5, FRAMING.camera_radius], atol=1e-9)


def test_a_scene_depends_on_its_factors_alone() -> None:
    digest = RECIPE.scene(ROW).digest
    assert RECIPE.scene({name: ROW[name] for name in RECIPE.scene_factors}).digest == digest
    assert RECIPE.scene({**ROW, "orientation": 0.0}).digest == digest
    assert pickle.loads(pickle.dumps(RECIPE)).scene(ROW).digest == digest
    changes = {"floor_hue": 0.2, "wall_hue": 0.2, "object_hue": 0.2, "scale": SCALES[0], "shape": "cube"}
    assert len({digest, *(RECIPE.scene({**ROW, name: value}).digest for name, value in changes.items())}) == 6
    program = f"from setsup.scenes.recipes import Shapes3D; print(Shapes3D().scene({ROW!r}).digest)"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest


def test_keys_tell_sizes_apart() -> None:
    assert RECIPE.key == Shapes3D((64, 64)).key == pickle.loads(pickle.dumps(RECIPE)).key != Shapes3D((64, 65)).key


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("shape", "cub", "shape has no level 'cub'; did you mean 'cube'"),
        ("shape", 0, "shape has no level 0"),
        ("shape", None, "shape has no level None"),
        ("scale", 0.0, "scale must be from 0.001 to 5, not 0.0"),
        ("scale", -1.0, "scale must be"),
        ("scale", 6, "scale must be"),
        ("scale", True, "scale must be"),
        ("scale", "1", "scale must be"),
        ("floor_hue", math.nan, "floor_hue must be a finite number of turns, not nan"),
        ("wall_hue", math.inf, "wall_hue must be a finite number"),
        ("object_hue", None, "object_hue must be a finite number"),
    ],
)
def test_bad_values(name: str, value: object, message: str) -> None:
    with pytest.raises(FactorError, match=message):
        RECIPE.scene({**ROW, name: value})


def test_missing_values_and_bad_orientations() -> None:
    scene = RECIPE.scene(ROW)
    with pytest.raises(FactorError, match=r"requires the factor 'wall_hue', which is missing from the row"):
        RECIPE.scene({name: value for name, value in ROW.items() if name != "wall_hue"})
    for value in (math.nan, -math.inf, "left", None):
        with pytest.raises(FactorError, match="orientation must be a finite number of degrees"):
            RECIPE.camera({**ROW, "orientation": value}, scene)


@pytest.mark.parametrize("size", [64, (64,), (64, 0), (64, 64.0), (64, 1 << 20), "ab", (True, 64)])
def test_bad_sizes(size: Any) -> None:
    with pytest.raises(SetsupError, match=r"size must be \(height, width\)"):
        Shapes3D(size)
