import functools
import math
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from setsup.errors import FactorError, SetsupError
from setsup.factors import Factor, Kind
from setsup.scenes import Camera, Mesh, Placement, Recipe, Scene
from setsup.scenes.recipes import FunctionRecipe
from setsup.scenes.recipes.values import level, number

FACTORS = (Factor("height", Kind.ORDINAL, (1.0, 2.0)), Factor("x", Kind.ORDINAL, (0.0, 1.0)))


def build(values: Mapping[str, Any]) -> Scene:
    return Scene((Placement(Mesh([[0, 0, 0], [1, 0, 0], [0, 0, values["height"]]], [[0, 1, 2]])),))


def look(values: Mapping[str, Any], scene: Scene) -> Camera:
    return Camera.look_at((values["x"], -3, 0), scene.bounds[0], height=8, width=6, focal_length=9)


def test_it_is_what_the_functions_give() -> None:
    recipe = FunctionRecipe("triangle", FACTORS, build, look, ["height"], (8, 6))
    assert isinstance(recipe, Recipe)
    assert (recipe.name, recipe.factors, recipe.scene_factors, recipe.size) == (
        "triangle",
        FACTORS,
        ("height",),
        (8, 6),
    )
    scene = recipe.scene({"height": 2.0})
    assert scene.bounds.tolist() == [[0, 0, 0], [1, 0, 2]]
    assert recipe.camera({"height": 2.0, "x": 1.0}, scene) == look({"x": 1.0}, scene)
    again = pickle.loads(pickle.dumps(recipe))
    assert again.key == recipe.key
    assert again.scene({"height": 2.0}).digest == scene.digest


def test_every_factor_is_a_scene_factor_unless_told() -> None:
    assert FunctionRecipe("triangle", FACTORS, build, look, size=(8, 6)).scene_factors == ("height", "x")
    assert FunctionRecipe("triangle", FACTORS, build, look, (), (8, 6)).scene_factors == ()


def test_keys_follow_the_source_or_the_version() -> None:
    plain = FunctionRecipe("triangle", FACTORS, build, look)
    assert plain.key == FunctionRecipe("triangle", FACTORS, build, look).key
    others = [
        FunctionRecipe("triangle", FACTORS, lambda values: build(values), look),
        FunctionRecipe("triangle", FACTORS, build, look, size=(64, 64)),
        FunctionRecipe("triangle", FACTORS, build, look, version="1"),
        FunctionRecipe("triangle", FACTORS, build, look, version="2"),
        FunctionRecipe("square", FACTORS, build, look),
    ]
    assert len({plain.key, *(other.key for other in others)}) == 6
    partial = functools.partial(build)
    with pytest.raises(SetsupError, match=r"the source code of functools.partial.* cannot be read; pass version="):
        FunctionRecipe("triangle", FACTORS, partial, look)
    assert FunctionRecipe("triangle", FACTORS, partial, look, version="1").scene({"height": 1.0}).placements


def test_what_is_no_scene_or_camera_is_refused() -> None:
    recipe: Any = FunctionRecipe("odd", FACTORS, lambda values: None, lambda values, scene: 3, size=(8, 6))  # type: ignore[arg-type,return-value]
    with pytest.raises(SetsupError, match="builds scenes of recipe 'odd' must return a Scene, not None"):
        recipe.scene({})
    with pytest.raises(SetsupError, match="places cameras of recipe 'odd' must return a Camera, not 3"):
        recipe.camera({}, Scene())
    large = FunctionRecipe("triangle", FACTORS, build, look, size=(16, 6))
    with pytest.raises(SetsupError, match=r"the image size \(16, 6\) .*, but its camera has \(8, 6\)"):
        large.camera({"x": 0.0}, build({"height": 1.0}))


def test_bad_descriptions() -> None:
    with pytest.raises(
        SetsupError, match="scene factor 'hight' of recipe 'triangle' is not one of its factors; did you mean 'height'"
    ):
        FunctionRecipe("triangle", FACTORS, build, look, ["hight"])
    with pytest.raises(SetsupError, match="size must be"):
        FunctionRecipe("triangle", FACTORS, build, look, size=(8, -6))
    bad: Any = "height"
    with pytest.raises(SetsupError, match="factors of recipe 'triangle' must be Factor instances"):
        FunctionRecipe("triangle", [bad], build, look)
    with pytest.raises(SetsupError, match="recipe 'triangle' requires two functions"):
        FunctionRecipe("triangle", FACTORS, build, bad)


def test_numbers_of_all_kinds_and_what_is_none() -> None:
    for value in (3, 3.0, np.float32(3), np.int64(3)):
        assert number({"a": value}, "a") == 3.0
        assert type(number({"a": value}, "a")) is float
    assert math.copysign(1, number({"a": -0.0}, "a")) == 1
    for bad in (math.nan, math.inf, None, "3", True, 3j, np.array([3.0]), np.bool_(True)):
        with pytest.raises(FactorError, match="a must be a finite number, not"):
            number({"a": bad}, "a")
    with pytest.raises(FactorError, match="a must be from 0 to 2 m, not 3"):
        number({"a": 3}, "a", 0, 2, "m")
    with pytest.raises(
        FactorError, match="requires the factor 'azimuth', which is missing from the row; did you mean 'azimut'"
    ):
        number({"azimut": 3}, "azimuth")
    assert level({"a": np.str_("x")}, "a", ["x"]) == "x"
    with pytest.raises(FactorError, match=r"a has no level \['x'\]"):
        level({"a": ["x"]}, "a", ["x"])


def test_a_factor_that_scenes_read_and_do_not_name_is_pointed_out() -> None:
    recipe = FunctionRecipe("triangle", FACTORS, build, look, ["x"], (8, 6))
    with pytest.raises(SetsupError, match="reads 'height', which is not one of its scene_factors"):
        recipe.scene({"height": 2.0, "x": 1.0})
    strange = FunctionRecipe("triangle", FACTORS, lambda values: values["width"], look, ["x"], (8, 6))
    with pytest.raises(KeyError, match="width"):
        strange.scene({"height": 2.0, "x": 1.0})
