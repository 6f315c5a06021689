"""Recipes: from the values of factors to a scene and a camera.

The factors of a recipe fall in two: those of ``scene_factors`` settle what stands in the scene, the others only where
the camera is. Rows that agree in the former share one scene, which is built once for all of them.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from setsup.factors.factor import Factor
from setsup.scenes.camera import Camera
from setsup.scenes.scene import Scene

__all__ = ["Recipe"]


@runtime_checkable
class Recipe(Protocol):
    """A recipe of a rendered dataset: pure functions of factor values.

    A recipe can be pickled, and holds whatever else its scenes depend on: sizes, meshes, a seed.

    Attributes
    ----------
    name : str
        ``"shapes3d"``, ``"object"``, ``"room"``.
    factors : tuple of Factor
        What varies; the full grid of their levels is the dataset that the recipe stands for by itself.
    scene_factors : tuple of str
        Names of the factors on which the scene depends.
    size : (height, width)
        Pixels of its cameras.
    pair_factors : tuple of str, optional
        Names of the factors in which two views of a pair agree; the scene factors where a recipe has none.
    candidate_factor : str, optional
        Name of a factor that rows may have beside those of the recipe, 0 where they lack it: each of the numbers 0, 1,
        … draws the cameras of a pair again, from the same distribution. Pairs that are chosen by overlap have it.
    classes : tuple of str, optional
        Names of semantic classes, of which the first is that of nothing. A recipe that has some has a method
        ``label(name)`` as well, which gives the number of the class of an instance.
    instances : int, optional
        1 + the largest number of an instance in any of its scenes, for which masks and poses of objects have room;
        by default that of the scene of the first row.
    key : str
        Tells apart recipes that draw different images: the name and all options, meshes by their digests.

    """

    @property
    def name(self) -> str:
        """Name of the recipe."""
        ...

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors that vary."""
        ...

    @property
    def scene_factors(self) -> tuple[str, ...]:
        """Names of the factors on which the scene depends."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of its cameras' images, in pixels."""
        ...

    @property
    def key(self) -> str:
        """A string that identifies the recipe: recipes that render differently have different keys."""
        ...

    def scene(self, values: Mapping[str, Any]) -> Scene:
        """Build the scene of a row.

        Parameters
        ----------
        values : mapping of str to value
            Of every scene factor, at least.

        """
        ...

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        """Place the camera of a row.

        Parameters
        ----------
        values : mapping of str to value
            Of all factors.
        scene : Scene
            What :meth:`scene` gives for these values.

        """
        ...
