"""Two views of a scene in which a pixel of either is visible, occluded, outside or of nothing in the other."""

from functools import cache

import numpy as np

from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.scenes import Camera, Mesh, Placement, Scene
from setsup.scenes.recipes import FunctionRecipe

__all__ = ["HEIGHT", "WIDTH", "views"]

HEIGHT, WIDTH = 24, 32


def _square(size: float, distance: float, color: tuple[int, int, int]) -> Placement:
    corners = [(-size, distance, -size), (size, distance, -size), (size, distance, size), (-size, distance, size)]
    mesh = Mesh(corners, [(0, 1, 2), (0, 2, 3)], colors=np.array([color] * 4, np.uint8))
    return Placement(mesh)


@cache
def views() -> RenderedDataset:
    """A small square before a large one, seen from the left and from the right; two scenes."""

    def build(values: dict) -> Scene:
        return Scene((_square(4.5, 6.0, (200, 80, 40)), _square(0.6 + values["scene"], 4.0, (40, 90, 210))))

    def look(values: dict, scene: Scene) -> Camera:
        place = float(values["place"])
        return Camera.look_at((place, 0, 0), (place, 1, 0), height=HEIGHT, width=WIDTH, focal_length=24.0)

    factors = [Factor("scene", Kind.ORDINAL, (0, 1)), Factor("place", Kind.ORDINAL, (-1.0, 1.0, 4.0))]
    recipe = FunctionRecipe("squares", factors, build, look, ["scene"], (HEIGHT, WIDTH), "1")
    return RenderedDataset(recipe, FactorTable(factors), "embree")
