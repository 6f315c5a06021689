"""Outputs of pixels beside images of flat light, and of one renderer beside those of another."""

from dataclasses import replace

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.rendered.outputs import pixel_outputs
from setsup.scenes import Ambient, Camera, Frame, Scene, renderer
from setsup.scenes.recipes import Room
from tests.renderers.scenes import around, primitives

FLAT = (Ambient((1, 1, 1)),)
MAPS = ("albedo", "object_coordinates", "nocs", "uv", "barycentrics", "material")


def views(name: str) -> tuple[Scene, list[Camera]]:
    if name == "primitives":
        return primitives(FLAT), around(3, 4.0, 2.5)
    recipe = Room(rooms=1, pairs=1, size=(96, 128))
    rows = [{"room": 0, "pair": 0, "side": side} for side in (0, 1)]
    scene = recipe.scene(rows[0])
    return replace(scene, lights=FLAT), [recipe.camera(row, scene) for row in rows]


def frames(name: str, scene: Scene, cameras: list[Camera]) -> list[Frame]:
    drawing = renderer(name)
    try:
        drawing.check()
        drawing.load(scene)
        return [drawing.render(camera) for camera in cameras]
    except DataError as error:
        pytest.skip(f"{name}: {error}")
    finally:
        drawing.close()


@pytest.mark.long("renderings")
@pytest.mark.parametrize("name", ["embree", "gl"])
@pytest.mark.parametrize("shown", ["primitives", "room"])
def test_albedo_is_what_flat_light_shows(name: str, shown: str) -> None:
    """But for pyrender, which samples textures in its own way."""
    scene, cameras = views(shown)
    for camera, frame in zip(cameras, frames(name, scene, cameras), strict=True):
        albedo = pixel_outputs(scene, camera, frame.triangle, ["albedo"])["albedo"]
        seen = frame.triangle >= 0
        apart = np.abs(albedo.astype(int) - frame.rgb[..., :3])[seen]
        assert apart.max() <= 1
        assert not albedo[~seen].any()


@pytest.mark.long("renderings")
@pytest.mark.parametrize("shown", ["primitives", "room"])
def test_renderers_give_equal_outputs_where_they_see_one_triangle(shown: str) -> None:
    """They see another in at most one pixel in a thousand, on an edge."""
    scene, cameras = views(shown)
    pixels = other = 0
    for camera, *found in zip(cameras, *(frames(name, scene, cameras) for name in ("embree", "gl")), strict=True):
        outputs = [pixel_outputs(scene, camera, frame.triangle, MAPS) for frame in found]
        same = found[0].triangle == found[1].triangle
        pixels, other = pixels + same.size, other + (~same).sum()
        for name in MAPS:
            np.testing.assert_array_equal(outputs[0][name][same], outputs[1][name][same])
    assert other <= pixels / 1000
