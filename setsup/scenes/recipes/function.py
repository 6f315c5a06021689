"""Any user's functions as a recipe."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from setsup.checks import check_image_size, check_integer
from setsup.errors import SetsupError, did_you_mean
from setsup.factors.factor import Factor
from setsup.scenes.camera import Camera
from setsup.scenes.recipes.values import LARGEST
from setsup.scenes.scene import Scene

__all__ = ["FunctionRecipe"]


@dataclass(frozen=True)
class FunctionRecipe:
    """A recipe made of two functions.

    Parameters
    ----------
    name : str
        What the recipe is called.
    factors : sequence of Factor
        What varies.
    build : callable
        From a mapping of the values of ``scene_factors`` to a :class:`~setsup.scenes.Scene`: a pure function.
    look : callable
        From a mapping of all factor values and the scene to a :class:`~setsup.scenes.Camera`: a pure function.
    scene_factors : sequence of str, optional
        Factors that ``build`` reads; all by default. Rows that agree in them share one scene.
    size : (height, width)
        Pixels of the cameras that ``look`` gives.
    version : str, optional
        Tells images of one version of the functions from those of another. By default a digest of the functions'
        source, in which what they call or read from elsewhere does not count: where that changes, give a version.
    instances : int, optional
        1 + the largest number of an instance in any scene, for masks and poses of objects; by default that of the scene
        of the first row.

    Raises
    ------
    SetsupError
        When a factor, a function or the size is invalid, a scene factor is not a factor, or the source of a function
        was not found and no version is given.

    Examples
    --------
    >>> import math
    >>> from setsup.factors import Factor, Kind
    >>> from setsup.scenes import Camera, Material, Mesh, Placement, Scene
    >>> def build(values):
    ...     triangle = Mesh([[0, 0, 0], [1, 0, 0], [0, 0, 1]], [[0, 1, 2]], materials=[Material((values["red"], 0, 0))])
    ...     return Scene((Placement(triangle),))
    >>> def look(values, scene):
    ...     eye = (values["x"], -3, 0.5)
    ...     return Camera.look_at(eye, (0, 0, 0.5), height=32, width=32, field_of_view=math.radians(40))
    >>> factors = [Factor("red", Kind.ORDINAL, (0, 255)), Factor("x", Kind.ORDINAL, (-1.0, 0.0, 1.0))]
    >>> recipe = FunctionRecipe("triangle", factors, build, look, ["red"], size=(32, 32), version="1")
    >>> scene = recipe.scene({"red": 255})
    >>> recipe.camera({"red": 255, "x": 0.0}, scene).centre.tolist(), recipe.key
    ([0.0, -3.0, 0.5], 'triangle 32×32 1')

    """

    name: str
    factors: tuple[Factor, ...]
    build: Callable[[Mapping[str, Any]], Scene]
    look: Callable[[Mapping[str, Any], Scene], Camera]
    scene_factors: tuple[str, ...] | None = None
    size: tuple[int, int] = (128, 128)
    version: str | None = None
    instances: int | None = None

    def __post_init__(self) -> None:
        """Check names and size; find the source where a version is missing."""
        object.__setattr__(self, "factors", tuple(self.factors))
        if not all(isinstance(factor, Factor) for factor in self.factors):
            raise SetsupError(f"factors of recipe {self.name!r} must be Factor instances, not {self.factors!r:.100}")
        if not (callable(self.build) and callable(self.look)):
            raise SetsupError(f"recipe {self.name!r} requires two functions: build(values) and look(values, scene)")
        object.__setattr__(self, "size", check_image_size(self.size, "size", SetsupError, LARGEST))
        names = tuple(factor.name for factor in self.factors)
        chosen = names if self.scene_factors is None else tuple(self.scene_factors)
        for name in chosen:
            if name not in names:
                raise SetsupError(
                    f"scene factor {name!r} of recipe {self.name!r} is not one of its "
                    f"factors{did_you_mean(name, names)}"
                )
        object.__setattr__(self, "scene_factors", chosen)
        if self.instances is not None:
            check_integer(self.instances, "instances", SetsupError, 1)
        if self.version is None:
            object.__setattr__(self, "version", _source_digest(self.name, self.build, self.look))

    @cached_property
    def key(self) -> str:
        """Name, size and version."""
        return f"{self.name} {self.size[0]}×{self.size[1]} {self.version}"

    def scene(self, values: Mapping[str, Any]) -> Scene:
        """Build the scene of a row; see :meth:`setsup.scenes.Recipe.scene`."""
        known = {name: values[name] for name in self.scene_factors or () if name in values}
        try:
            built: Any = self.build(known)
        except KeyError as error:
            if error.args and error.args[0] in {factor.name for factor in self.factors} - known.keys():
                raise SetsupError(
                    f"the function that builds scenes of recipe {self.name!r} reads {error.args[0]!r}, which is not "
                    "one of its scene_factors; add it there"
                ) from error
            raise
        if not isinstance(built, Scene):
            raise SetsupError(
                f"the function that builds scenes of recipe {self.name!r} must return a Scene, not {built!r:.100}"
            )
        return built

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        """Place the camera of a row; see :meth:`setsup.scenes.Recipe.camera`."""
        placed: Any = self.look(values, scene)
        if not isinstance(placed, Camera):
            raise SetsupError(
                f"the function that places cameras of recipe {self.name!r} must return a Camera, not {placed!r:.100}"
            )
        if (placed.height, placed.width) != self.size:
            raise SetsupError(
                f"recipe {self.name!r} has the image size {self.size} (height, width), but its camera has "
                f"{(placed.height, placed.width)} pixels; use the same size in both"
            )
        return placed


def _source_digest(name: str, *functions: Any) -> str:
    digest = hashlib.sha256()
    for function in functions:
        try:
            digest.update(inspect.getsource(function).encode() + b"\0")
        except (OSError, TypeError) as error:
            raise SetsupError(
                f"recipe {name!r}: the source code of {function!r:.100} cannot be read; pass version='1', and change "
                "it when the function changes"
            ) from error
    return digest.hexdigest()[:16]
