"""object-frames: one mesh at a time, turning before a camera that stands still."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from setsup.arrays import Reals
from setsup.checks import check_integer
from setsup.errors import FactorError, SetsupError
from setsup.factors.factor import Factor, Kind
from setsup.random import fold, stream_key, uniform
from setsup.scenes.camera import Camera
from setsup.scenes.motion import Velocity, moved
from setsup.scenes.portable import sphere_direction
from setsup.scenes.recipes.models import Model
from setsup.scenes.recipes.object import HEMISPHERE, ObjectView
from setsup.scenes.recipes.values import number
from setsup.scenes.scene import Light, Scene

__all__ = ["ObjectFrames"]

_MOST = 1 << 20  # frames


@dataclass(frozen=True, eq=False)
class ObjectFrames:
    """Turning models, one at a time, with the camera and the light of :class:`~setsup.scenes.recipes.ObjectView`.

    The factors are ``model`` and ``frame``; a row is a frame of a model's video. A model turns about the centre of its
    box by the same angle from each frame to the next, also before the first and after the last frame.

    Parameters
    ----------
    models : mapping of str to Model
        Meshes to render. As for :class:`~setsup.scenes.recipes.ObjectView`.
    frames : int
        Number of frames of each model.
    turn : float, degrees
        Angle from each frame to the next, in degrees, counterclockwise seen from above.
    axis : "up" or "any"
        Turn about the vertical axis, or about an axis that is drawn for each model, uniformly over the sphere.
    azimuth : float, degrees
        Direction of the camera from the model, in degrees about the vertical axis.
    elevation : float, degrees
        Direction of the camera from the model, in degrees above the horizontal plane.
    size : (height, width)
        Image size, in pixels.
    distance : float
        Distance of the camera from the centre of a model, which is scaled so that its longest side is 2.
    jitter : float
        Maximum shift of the camera along each axis, in the unit of `distance`; the same in all frames of a model.
    field_of_view : float, degrees
        Vertical field of view of the camera, from the top edge to the bottom edge of the image, in degrees.
    up : "y" or "z"
        Axis of the models that points up; y in ShapeNet, OBJ and glTF.
    lights : tuple of Light
        :data:`~setsup.scenes.recipes.HEMISPHERE` by default.
    background : 3 ints, optional
        Background color in sRGB bytes; transparent by default.
    seed : int
        Seed of axes and jitter.

    Raises
    ------
    SetsupError
        When there is no model, or an option is out of its range.

    Examples
    --------
    >>> from setsup.scenes.meshes.primitives import box
    >>> recipe = ObjectFrames({"box": box((1, 1, 1))}, turn=90, up="z")
    >>> recipe.scene({"model": "box", "frame": 1}).placements[0].rotation.round(9).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]

    """

    models: Mapping[str, Model]
    frames: int = 24
    turn: float = 15.0
    axis: Literal["up", "any"] = "up"
    azimuth: float = 30.0
    elevation: float = 20.0
    size: tuple[int, int] = (128, 128)
    distance: float = 45.0
    jitter: float = 0.0
    field_of_view: float = 5.0
    up: Literal["y", "z"] = "y"
    lights: tuple[Light, ...] = HEMISPHERE
    background: tuple[int, int, int] | None = None
    seed: int = 0

    name = "object-frames"
    scene_factors = ("model", "frame")
    pair_factors = ("model",)
    instances = 1

    def __post_init__(self) -> None:
        """Check all options."""
        object.__setattr__(self, "frames", check_integer(self.frames, "frames", SetsupError, 1, _MOST))
        options: dict[str, Any] = {name: getattr(self, name) for name in ("turn", "azimuth", "elevation")}
        object.__setattr__(self, "turn", number(options, "turn", -360, 360, "degrees"))
        object.__setattr__(self, "azimuth", number(options, "azimuth", 0, 360, "degrees"))
        object.__setattr__(self, "elevation", number(options, "elevation", -90, 90, "degrees"))
        if self.axis not in ("up", "any"):
            raise SetsupError(f"axis must be 'up' or 'any', not {self.axis!r}")
        own = ("size", "distance", "jitter", "field_of_view", "up", "lights", "background", "seed")
        still = ObjectView(
            self.models, (self.azimuth,), (self.elevation,), **{name: getattr(self, name) for name in own}
        )
        for name in ("models", *own):
            object.__setattr__(self, name, getattr(still, name))
        object.__setattr__(self, "_still", still)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Model and frame."""
        return (
            Factor("model", Kind.NOMINAL, tuple(self.models)),
            Factor("frame", Kind.ORDINAL, tuple(range(self.frames))),
        )

    @cached_property
    def key(self) -> str:
        """Name, options and digests of all models; the number of frames does not count."""
        own = f"turn={self.turn!r} axis={self.axis} azimuth={self.azimuth!r} elevation={self.elevation!r}"
        return f"{self.name} {own} of {hashlib.sha256(self._view.key.encode()).hexdigest()}"

    def scene(self, values: Mapping[str, Any]) -> Scene:
        """Turn a model; see :meth:`setsup.scenes.Recipe.scene`.

        Raises
        ------
        FactorError
            When the row names no model of the recipe, or its frame is not an integer.
        SetsupError
            When the model cannot be loaded, or has no extent.

        """
        frame = number(values, "frame", -_MOST, _MOST)
        if frame != int(frame):
            raise FactorError(f"frame must be an integer, not {values['frame']!r}")
        still = self._view.scene(values)
        return moved(still, {0: self._motion(still, values["model"])}, frame)

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        """Place the camera, which is the same in all frames; see :meth:`setsup.scenes.Recipe.camera`."""
        return self._view.camera({**values, "azimuth": self.azimuth, "elevation": self.elevation}, scene)

    @property
    def _view(self) -> ObjectView:
        still: ObjectView = self.__dict__["_still"]
        return still

    def _motion(self, still: Scene, name: str) -> Velocity:
        """Motion of a model, about the middle; time counts frames."""
        placement = still.placements[0]
        angular = self._axis(name) * (self.turn * (np.pi / 180))
        return Velocity(placement.rotation, placement.translation, angular=angular, centre=np.zeros(3))

    def _axis(self, name: str) -> Reals:
        if self.axis == "up":
            return np.array([0.0, 0.0, 1.0])
        at = uniform(fold(stream_key(self.seed, f"object axis of {name}"), np.arange(2)))
        return sphere_direction(*at.tolist())
