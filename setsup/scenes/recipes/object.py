"""object: one mesh at a time, seen from around it, as the renderings of KeypointNet [1]_ are made.

Convention
----------
Azimuth and elevation are degrees: at azimuth a and elevation e a camera stands in the direction (cos e · cos a,
cos e · sin a, sin e) of the world, whose z is up. The world is that of the published renderings, into which y-up models
are turned by (x, y, z) → (x, −z, y): azimuth 0 sees the side at the model's +x, azimuth 90 that at its −z, as in
:mod:`setsup.datasets.benchmarks.shapenet_renderings.poses`. At the poles, too, the image turns with the azimuth.

What is published [2]_ holds here by default. The box of a model is centred, and its longest side 2 long. The camera
stands 30 from the middle, with a field of view of 5°; it is turned towards the middle, and then moved by up to 0.2 on
each axis, never below z = 0: so models are seen up to 10 pixels off the middle, and tall ones may lose a pixel or two.
Light falls from a hemisphere above: 1 on what faces up, ½ on what stands upright. The background is transparent;
images have 128 × 128 pixels. What differs: ½ falls on whatever faces down, too, where theirs fades to 0; and
triangles are flat unless their mesh has normals.

References
----------
.. [1] S. Suwajanakorn, N. Snavely, J. Tompson, M. Norouzi, "Discovery of Latent 3D Keypoints via End-to-end Geometric
   Reasoning", NeurIPS 2018.
.. [2] ``render.py`` of that paper's code, github.com/tensorflow/models, research/keypointnet/tools; the field of view
   is that of the command it gives.

"""

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from setsup.checks import check_image_size
from setsup.errors import SetsupError
from setsup.factors.factor import Factor, Kind
from setsup.factors.table import FactorTable
from setsup.random import fold, stream_key, uniform
from setsup.scenes.camera import Camera
from setsup.scenes.portable import product, sin_cos
from setsup.scenes.recipes.models import Model, check_models, identities, loaded
from setsup.scenes.recipes.values import LARGEST, level, number
from setsup.scenes.scene import Ambient, Directional, Light, Placement, Scene

__all__ = ["HEMISPHERE", "ObjectView"]

HEMISPHERE: tuple[Light, ...] = (Ambient((0.5, 0.5, 0.5)), Directional((0, 0, -1), (0.5, 0.5, 0.5)))
"""Light from above: 1 on what faces up, ½ on what stands upright."""

_TURNED = {"y": np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), "z": np.eye(3)}
_LENGTH = 2.0  # of the longest side of every model
_KEPT = 8  # scenes of models that were drawn last


@dataclass(frozen=True, eq=False)
class ObjectView:
    """Views around single models, as in KeypointNet; see the module for what is published.

    By itself it stands for the grid model × azimuth × elevation; :meth:`sampled` gives random views instead, and
    whatever numbers a table has are drawn.

    Parameters
    ----------
    models : mapping of str to Model
        Meshes to render. Their names are the levels of the factor ``model``. Files are loaded by
        :func:`setsup.scenes.load_mesh` when they are first drawn. A function, such as ``partial(load_mesh, path,
        top=folder)``, gives a :class:`~setsup.scenes.Mesh`, or a scene or mesh of trimesh; it is called again from time
        to time, and must be picklable if the recipe is to be. Where it has an attribute ``key``, that text stands for
        what it gives.
    azimuths, elevations : tuple of float, degrees
        Levels of the grid, in degrees.
    size : (height, width)
        Image size, in pixels.
    distance : float
        Distance of the camera from the centre of a model, which is scaled so that its longest side is 2.
    jitter : float
        Maximum shift of the camera along each axis, after it is turned towards the centre, in the unit of `distance`.
        The shift is a function of seed, model, azimuth and elevation.
    field_of_view : float, degrees
        Vertical field of view of the camera, from the top edge to the bottom edge of the image, in degrees.
    up : "y" or "z"
        Axis of the models that points up; y in ShapeNet, OBJ and glTF.
    lights : tuple of Light
        :data:`HEMISPHERE` by default.
    background : 3 ints, optional
        Background color in sRGB bytes; transparent by default.
    seed : int
        Seed of the jitter and of sampled views.

    Raises
    ------
    SetsupError
        When there is no model, or an option is out of its range.

    Examples
    --------
    >>> from setsup.scenes import Mesh
    >>> roof = Mesh([[0, 0, 0], [4, 0, 0], [0, 0, -2]], [[0, 1, 2]])
    >>> views = ObjectView({"roof": roof}, jitter=0.0)
    >>> row = {"model": "roof", "azimuth": 90.0, "elevation": 0.0}
    >>> scene = views.scene(row)
    >>> scene.bounds.tolist(), views.camera(row, scene).centre.round(9).tolist()
    ([[-1.0, -0.5, 0.0], [1.0, 0.5, 0.0]], [0.0, 30.0, 0.0])

    """

    models: Mapping[str, Model]
    azimuths: tuple[float, ...] = tuple(15.0 * step for step in range(24))
    elevations: tuple[float, ...] = (0.0, 15.0, 30.0, 45.0, 60.0, 75.0)
    size: tuple[int, int] = (128, 128)
    distance: float = 30.0
    jitter: float = 0.2
    field_of_view: float = 5.0
    up: Literal["y", "z"] = "y"
    lights: tuple[Light, ...] = HEMISPHERE
    background: tuple[int, int, int] | None = None
    seed: int = 0

    name = "object"
    scene_factors = ("model",)
    instances = 1

    def __post_init__(self) -> None:
        """Check all options."""
        object.__setattr__(self, "models", check_models(self.models, "models"))
        options: dict[str, Any] = {name: getattr(self, name) for name in ("distance", "jitter", "field_of_view")}
        object.__setattr__(self, "distance", number(options, "distance", 1e-6, 1e6))
        object.__setattr__(self, "jitter", number(options, "jitter", 0, 1e6))
        object.__setattr__(self, "field_of_view", number(options, "field_of_view", 1e-3, 179, "degrees"))
        for name, low, high in (("azimuths", 0, 360), ("elevations", -90, 90)):
            given = getattr(self, name)
            if not np.iterable(given):
                raise SetsupError(f"{name} must be a list of angles in degrees, not {given!r}")
            levels = [number({name: angle}, name, low, high, "degrees") for angle in given]
            object.__setattr__(self, name, tuple(levels))
        if {0.0, 360.0} <= set(self.azimuths):
            raise SetsupError("azimuths 0 and 360 are the same angle; omit one of them")
        if self.up not in _TURNED:
            raise SetsupError(f"up must be 'y' or 'z', not {self.up!r}")
        object.__setattr__(self, "size", check_image_size(self.size, "size", SetsupError, LARGEST))
        empty = Scene((), self.lights, self.background)  # raises where they are none
        object.__setattr__(self, "lights", empty.lights)
        object.__setattr__(self, "background", empty.background)
        stream_key(self.seed, "object")  # raises where the seed is none
        object.__setattr__(self, "_kept", {})

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Model, azimuth and elevation."""
        return (
            Factor("model", Kind.NOMINAL, tuple(self.models)),
            Factor("azimuth", Kind.CYCLIC, self.azimuths, unit="deg", period=360.0),
            Factor("elevation", Kind.ORDINAL, self.elevations, unit="deg"),
        )

    @cached_property
    def key(self) -> str:
        """Name, options and digests of all models.

        A file counts with its bytes, and with those of the materials and textures that it names; a function with its
        attribute ``key``, else it is called. The levels of the grid do not count: they change no image.
        """
        names = ("size", "distance", "jitter", "field_of_view", "up", "lights", "background", "seed")
        options = " ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"object {options} models={hashlib.sha256(identities(self.models)).hexdigest()}"

    def sampled(self, views: int, elevation: tuple[float, float] = (0.0, 90.0)) -> FactorTable:
        """Draw views at random, evenly over the sphere between two elevations.

        Parameters
        ----------
        views : int
            Of each model; those of one do not depend on which other models there are.
        elevation : (low, high), degrees
            Limits. The whole upper half as KeypointNet; the pose experiment of ABC [1]_ keeps what lies below
            ``math.degrees(0.5)`` of its cars, and ``math.degrees(1.3)`` of its chairs.

        Returns
        -------
        FactorTable
            Model, and continuous azimuth and elevation, model after model.

        References
        ----------
        .. [1] K. Murphy et al., "Learning ABCs: Approximate Bijective Correspondence for isolating factors of
           variation with weak supervision", CVPR 2022.

        Examples
        --------
        >>> table = ObjectView({"a": "a.obj", "b": "b.obj"}).sampled(3, elevation=(0, 30))
        >>> table.values("model").tolist(), bool(table.values("elevation").max() <= 30)
        (['a', 'a', 'a', 'b', 'b', 'b'], True)

        """
        if not isinstance(elevation, tuple | list) or len(elevation) != 2:
            raise SetsupError(f"elevation must be (low, high) in degrees, not {elevation!r}")
        low, high = (number({"elevation": limit}, "elevation", -90, 90, "degrees") for limit in elevation)
        if low > high or isinstance(views, bool) or not isinstance(views, int) or views < 1:
            raise SetsupError(
                f"views must be 1 or more, and elevation (low, high) with low ≤ high, not {views!r} and {elevation!r}"
            )
        keys = np.array([stream_key(self.seed, f"object views of {name}") for name in self.models], np.uint64)
        words = fold(keys[:, None], np.arange(views, dtype=np.uint64))[:, :, None]
        parts = uniform(fold(words, np.arange(2, dtype=np.uint64))).reshape(-1, 2)
        bottom, top = math.sin(math.radians(low)), math.sin(math.radians(high))
        heights = np.degrees(np.arcsin(bottom + (top - bottom) * parts[:, 1]))
        model, _, _ = self.factors
        angles = (
            Factor("azimuth", Kind.CONTINUOUS, unit="deg", period=360.0),
            Factor("elevation", Kind.CONTINUOUS, unit="deg"),
        )
        columns = {
            "model": np.repeat(np.arange(len(self.models)), views),
            "azimuth": (360 * parts[:, 0]).astype(np.float32) % np.float32(360),
            "elevation": np.clip(heights, low, high).astype(np.float32),
        }
        return FactorTable((model, *angles), columns)

    def scene(self, values: Mapping[str, Any]) -> Scene:
        """Place a model in the middle; see :meth:`setsup.scenes.Recipe.scene`.

        Raises
        ------
        FactorError
            When the row names no model of the recipe.
        SetsupError
            When the model cannot be loaded, or has no extent.

        """
        name = level(values, "model", self.models)
        kept: dict[str, Scene] = self.__dict__["_kept"]
        scene = kept.get(name)
        if scene is None:
            # threads may build a scene twice, with the same content: so no lock is needed, which a fork might copy
            scene = kept[name] = Scene((self._placed(name),), self.lights, self.background)
            for old in list(kept)[:-_KEPT]:
                kept.pop(old, None)
        return scene

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        """Place the camera of a view; see :meth:`setsup.scenes.Recipe.camera`.

        Raises
        ------
        FactorError
            When the row has no model of the recipe, or its angles are not numbers.

        """
        name = level(values, "model", self.models)
        azimuth = number(values, "azimuth", unit="degrees") % 360.0 % 360.0  # of −1e-20 the first leaves 360
        elevation = number(values, "elevation", -90, 90, "degrees")
        turn, rise = math.radians(azimuth), math.radians(elevation)
        (sine, rising), (cosine, flattened) = sin_cos([turn, rise])
        right = np.array([-sine, cosine, 0.0])
        flat = np.array([cosine, sine, 0.0])
        outwards = flattened * flat + [0, 0, rising]
        # downwards in the image is where the direction goes as the elevation falls: so it is known at the poles, too
        down = rising * flat - [0, 0, flattened]
        rotation = np.stack([right, down, -outwards])
        eye = self.distance * outwards
        if self.jitter:
            eye = eye + self._jitter(name, azimuth, elevation, float(eye[2]))
        return Camera(*self.size, self._intrinsics, rotation, product(eye, -rotation.T))

    @cached_property
    def _intrinsics(self) -> np.ndarray[Any, Any]:
        height, width = self.size
        return Camera.intrinsics(height, width, field_of_view=math.radians(self.field_of_view))

    def _jitter(self, name: str, azimuth: float, elevation: float, height: float) -> np.ndarray[Any, Any]:
        """By how much a camera is moved, (3,) float64."""
        key = stream_key(self.seed, f"object jitter of {name}")
        for angle in (azimuth, elevation):
            # as a table stores numbers that are no levels, so that either gives the same image
            key = int(fold(key, *struct.unpack("<I", struct.pack("<f", angle))))
        parts = uniform(fold(key, np.arange(3, dtype=np.uint64)))
        lowest = np.full(3, -self.jitter)
        if height >= 0:  # what would be moved below the ground is drawn again: even over what is left
            lowest[2] = max(-self.jitter, -height)
        return np.asarray(lowest + parts * (self.jitter - lowest))

    def _placed(self, name: str) -> Placement:
        mesh = loaded(self.models[name])
        low, high = mesh.bounds
        longest = float((high - low).max())
        if not longest > 0 or not math.isfinite(_LENGTH / longest):
            raise SetsupError(
                f"model {name!r} has no extent: all its triangles lie at {low.tolist()}; remove the model"
            )
        scale, turned = _LENGTH / longest, _TURNED[self.up]
        return Placement(mesh, turned, scale * product(low + (high - low) / 2, -turned.T), np.full(3, scale), name=name)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the scenes that were drawn last."""
        return {**self.__dict__, "_kept": {}}
