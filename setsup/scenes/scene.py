"""Scenes: meshes where they stand, lights, and what lies behind; plain data with a digest.

Convention
----------
World frame: right-handed, z up, metres. A point p of a mesh stands at ``rotation · (scale ∘ p) + translation``.
Triangles of a scene are numbered through: those of the first placement in the order of its mesh, then the next.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_boolean, check_integer, check_number
from setsup.errors import SetsupError, abbreviate
from setsup.scenes.checks import check_color, check_numbers, check_rotation
from setsup.scenes.meshes.mesh import FARTHEST, Mesh
from setsup.scenes.portable import product

__all__ = ["STUDIO", "Ambient", "Directional", "Lamp", "Light", "Placement", "Scene", "Triangles"]

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Ambient:
    """Light from everywhere.

    Parameters
    ----------
    color : 3 float
        Factors in linear light, not negative; (1, 1, 1) shows every colour as it is.

    Raises
    ------
    SetsupError
        When a number is negative or not finite.

    """

    color: Vector = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        """Check the colour."""
        object.__setattr__(self, "color", _light_color(self.color))


@dataclass(frozen=True, slots=True)
class Directional:
    """Parallel light, as from the sun: ``color · max(0, −n · direction)``.

    Parameters
    ----------
    direction : 3 float
        The way it travels, of any length.
    color : 3 float
        Factors in linear light, where it falls straight on.
    of_camera : bool
        The direction is one of the camera's frame: (0, 0, 1) lights whatever the camera faces.
    shadow : bool
        Things throw shadows; not with ``of_camera``.

    Raises
    ------
    SetsupError
        When a number is not finite, the direction zero, or the colour negative.

    """

    direction: Vector
    color: Vector = (1.0, 1.0, 1.0)
    of_camera: bool = False
    shadow: bool = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "direction", _way(self.direction, "the direction of a light"))
        object.__setattr__(self, "color", _light_color(self.color))
        for name in ("of_camera", "shadow"):
            object.__setattr__(self, name, check_boolean(getattr(self, name), f"{name} of a light", SetsupError))
        if self.of_camera and self.shadow:
            raise SetsupError("a light that moves with the camera cannot cast shadows; set only one of the two")


@dataclass(frozen=True, slots=True)
class Lamp:
    """Light from a point: ``color · max(0, n · l) · (−l · axis)^exponent · (reach / distance)²``, l towards the lamp.

    Parameters
    ----------
    position : 3 float, metres
        Where it stands.
    color : 3 float
        Factors in linear light, where it falls straight on (at ``reach``, if that is given).
    axis : 3 float, optional
        The way a spot shines; without it the lamp shines evenly all around.
    exponent : float
        How fast a spot fades off its axis, 0 or more; it gives nothing backwards.
    reach : float, metres, optional
        With it the light falls with the square of the distance; without it, it does not fall.
    shadow : bool
        Things throw shadows.

    Raises
    ------
    SetsupError
        When a number is not finite, the axis zero, the reach not positive, or the exponent or the colour negative.

    """

    position: Vector
    color: Vector = (1.0, 1.0, 1.0)
    axis: Vector | None = None
    exponent: float = 0.0
    reach: float | None = None
    shadow: bool = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "position", _vector(self.position, "the position of a lamp"))
        object.__setattr__(self, "color", _light_color(self.color))
        if self.axis is not None:
            object.__setattr__(self, "axis", _way(self.axis, "the axis of a lamp"))
        object.__setattr__(self, "exponent", check_number(self.exponent, "exponent of a lamp", SetsupError, 0))
        if self.reach is not None:
            reach = check_number(self.reach, "reach of a lamp", SetsupError, positive=True)
            object.__setattr__(self, "reach", reach)
        object.__setattr__(self, "shadow", check_boolean(self.shadow, "shadow of a lamp", SetsupError))


def _vector(values: npt.ArrayLike, what: str) -> Vector:
    x, y, z = check_numbers(values, (3,), what).tolist()
    return x, y, z


def _way(values: npt.ArrayLike, what: str) -> Vector:
    way = _vector(values, what)
    if not any(way):
        raise SetsupError(f"{what} must not be zero")
    return way


def _light_color(values: npt.ArrayLike) -> Vector:
    color = _vector(values, "the color of a light")
    if min(color) < 0:
        raise SetsupError(f"the color of a light must be three non-negative numbers, not {list(color)}")
    return color


Light = Ambient | Directional | Lamp
"""Any light."""

STUDIO: tuple[Light, ...] = (Ambient((0.35, 0.35, 0.35)), Directional((0, 0, 1), (0.65, 0.65, 0.65), of_camera=True))
"""Soft light with a lamp on the camera: a surface that faces the camera shows its colour as it is."""


@dataclass(frozen=True, eq=False)
class Placement:
    """A mesh with its position, rotation and scale in a scene.

    Parameters
    ----------
    mesh : Mesh
        What stands there; several placements may share one.
    rotation : (3, 3) float64
        A rotation.
    translation : (3,) float64, metres
        Where the mesh's origin stands.
    scale : (3,) float64
        Factors along the mesh's own axes, positive.
    instance : int, optional
        Its number in images of instances; its place in the scene by default. Placements may share one.
    name : str
        What it is: ``"chair"``, ``"floor"``.

    Raises
    ------
    SetsupError
        When the rotation is none, a number not finite, a scale not positive, or the placed mesh gigantic.

    """

    mesh: Mesh
    rotation: Reals = field(default_factory=lambda: np.eye(3))
    translation: Reals = field(default_factory=lambda: np.zeros(3))
    scale: Reals = field(default_factory=lambda: np.ones(3))
    instance: int | None = None
    name: str = ""

    def __post_init__(self) -> None:
        """Check the numbers; arrays are kept read-only."""
        if not isinstance(self.mesh, Mesh):
            raise SetsupError(f"Placement.mesh must be a Mesh, not {type(self.mesh).__name__}")
        object.__setattr__(self, "rotation", check_rotation(self.rotation, "rotation of a placement"))
        for name in ("translation", "scale"):
            object.__setattr__(self, name, check_numbers(getattr(self, name), (3,), f"{name} of a placement"))
        if self.scale.min() <= 0:
            raise SetsupError(f"scale of a placement must be positive, not {self.scale.tolist()}")
        with np.errstate(over="ignore"):
            reach = np.linalg.norm(np.abs(self.mesh.vertices).max(axis=0) * self.scale)
        if max(reach, np.abs(self.translation).max()) > FARTHEST:
            raise SetsupError(
                f"a placement must lie within {FARTHEST:,.0f} m of the origin, but its mesh extends {reach:,.4g} "
                f"m around {self.translation.tolist()} m"
            )
        if self.instance is not None:
            instance = check_integer(self.instance, "instance of a placement", SetsupError, 0, (1 << 31) - 1)
            object.__setattr__(self, "instance", instance)
        if not isinstance(self.name, str):
            raise SetsupError(f"name of a placement must be a string, not {abbreviate(self.name)}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields; whoever unpickles them gets read-only arrays again."""
        return Placement, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def matrix(self) -> Reals:
        """From the mesh's frame to the world, (4, 4) float64."""
        result = np.eye(4)
        result[:3, :3] = self.rotation * self.scale
        result[:3, 3] = self.translation
        return result

    def placed(self, points: npt.ArrayLike) -> Reals:
        """Points (..., 3) of the mesh's frame in the world."""
        return product(np.asarray(points, np.float64) * self.scale, self.rotation.T) + self.translation


@dataclass(frozen=True, slots=True)
class Triangles:
    """All triangles of a scene in the world's frame.

    Attributes
    ----------
    corners : (n, 3, 3) float64, metres, read-only
        Positions.
    placement, face, instance : (n,) int32, read-only
        To which placement a triangle belongs, which triangle of its mesh it is, and its number in instance images.

    """

    corners: Reals
    placement: npt.NDArray[np.int32]
    face: npt.NDArray[np.int32]
    instance: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Scene:
    """Placements of meshes, lights and a background.

    A scene is immutable. What renderers and rays build for it is kept as long as the scene object.

    Parameters
    ----------
    placements : tuple of Placement
        Placed meshes; may be empty.
    lights : tuple of Light
        :data:`STUDIO` by default; with none at all it is dark.
    background : 3 ints or None
        sRGB bytes of what lies behind everything; None for transparent images of four channels.

    Examples
    --------
    >>> from setsup.scenes import Mesh
    >>> triangle = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> scene = Scene((Placement(triangle), Placement(triangle, translation=(0, 0, 1), name="upper")))
    >>> scene.triangles.instance.tolist(), scene.bounds.tolist(), scene.names
    ([0, 1], [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], {0: '', 1: 'upper'})

    """

    placements: tuple[Placement, ...] = ()
    lights: tuple[Light, ...] = STUDIO
    background: tuple[int, int, int] | None = (255, 255, 255)

    def __post_init__(self) -> None:
        """Check the kinds and the background; keep tuples."""
        for name in ("placements", "lights"):
            given = getattr(self, name)
            if not isinstance(given, Sequence) or isinstance(given, str | bytes):
                raise SetsupError(f"{name} of a scene must be a list, not a {type(given).__name__}")
            object.__setattr__(self, name, tuple(given))
        for placement in self.placements:
            if not isinstance(placement, Placement):
                raise SetsupError(f"placements of a scene must be Placement instances, not {type(placement).__name__}")
        for light in self.lights:
            if not isinstance(light, Light):
                raise SetsupError(f"lights of a scene must be Ambient, Directional or Lamp, not {type(light).__name__}")
        if self.background is not None:
            object.__setattr__(self, "background", check_color(self.background, "the background of a scene"))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields, and nothing that was computed of them."""
        return Scene, (self.placements, self.lights, self.background)

    @cached_property
    def triangles(self) -> Triangles:
        """All triangles, numbered as in images of triangles."""
        counts = np.array([len(placement.mesh.faces) for placement in self.placements], dtype=np.int64)
        owners = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        corners = [placement.placed(placement.mesh.vertices)[placement.mesh.faces] for placement in self.placements]
        faces = [np.arange(count, dtype=np.int32) for count in counts.tolist()]
        instances = np.array([self._instance(number) for number in range(len(counts))], dtype=np.int32)
        made = Triangles(
            np.concatenate([np.empty((0, 3, 3)), *corners]),
            owners,
            np.concatenate([np.empty(0, np.int32), *faces]),
            instances[owners],
        )
        for array in (made.corners, made.placement, made.face, made.instance):
            array.setflags(write=False)
        return made

    @cached_property
    def bounds(self) -> Reals:
        """Lowest and highest coordinates, (2, 3) float64, metres, read-only; zeros for an empty scene."""
        corners = np.zeros((2, 3))
        if self.placements:
            columns = self.triangles.corners.reshape(-1, 3).T  # numpy takes 15 times as long over all three at once
            corners[:] = [column.min() for column in columns], [column.max() for column in columns]
        corners.setflags(write=False)
        return corners

    @property
    def names(self) -> dict[int, str]:
        """What each instance is; the first placement's name where several share a number."""
        named: dict[int, str] = {}
        for number, placement in enumerate(self.placements):
            named.setdefault(self._instance(number), placement.name)
        return named

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the scene is, in hexadecimal: equal digests, equal images."""
        content = hashlib.sha256(repr((self.lights, self.background)).encode())
        for number, placement in enumerate(self.placements):
            content.update(placement.mesh.digest.encode())
            for array in (placement.rotation, placement.translation, placement.scale):
                content.update(array.tobytes())
            content.update(repr((self._instance(number), placement.name)).encode())
        return content.hexdigest()

    def _instance(self, number: int) -> int:
        own = self.placements[number].instance
        return number if own is None else own
