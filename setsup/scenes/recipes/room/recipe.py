"""room: a room with objects in it, seen by pairs of cameras, as in the 3D experiment of the single-pixel paper [1]_.

What is published, and holds here: the floor is found by random sample consensus; of 5,000 positions those are free that
keep 0.05 m from all surfaces and have walls on three of four sides; 1 … 15 objects stand at free positions at least
0.35 m apart, the first at the most open one, the others likelier the more room there is around them; they are scaled by
0.3 … 0.75 along each of their axes, turned by any angles about x, y and z, and held by nothing; two cameras look at the
most open position; pictures have 480 × 640 pixels at a focal length of 500. See :mod:`.floor`, :mod:`.space`
and :mod:`.cameras` for each step, and for where this recipe differs.

The paper puts models of ShapeNet, whose boxes have diagonals of about 1, into rooms of SceneNN, with meshes in metres,
y up. Where neither is at hand, rooms and objects are made up: :mod:`.made`, :mod:`.solids`.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks",
   arXiv:2512.04970, 2025, second experiment; its code, github.com/stefanradev93/oxels.

"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Words
from setsup.checks import check_image_size, check_integer
from setsup.errors import DataError, FactorError, LibraryError, SetsupError
from setsup.factors.factor import Factor, Kind
from setsup.random import fold, randint_below, stream_key, uniform
from setsup.scenes.camera import Camera
from setsup.scenes.meshes.mesh import Mesh
from setsup.scenes.portable import product, sin_cos
from setsup.scenes.rays import Rays
from setsup.scenes.recipes.models import Model, check_models, identities, loaded
from setsup.scenes.recipes.room.cameras import CameraPair, camera_pair
from setsup.scenes.recipes.room.classes import CLASSES, class_number
from setsup.scenes.recipes.room.floor import direction, levelled
from setsup.scenes.recipes.room.lights import room_lights
from setsup.scenes.recipes.room.made import MOST_PLACEMENTS, SKY, made_room
from setsup.scenes.recipes.room.solids import default_objects
from setsup.scenes.recipes.room.space import Space, Surfaces, free_space
from setsup.scenes.recipes.values import LARGEST, number
from setsup.scenes.scene import Placement, Scene
from setsup.scenes.units import check_size

__all__ = ["BuiltRoom", "Room", "check_objects", "euler", "look_at", "placed_objects", "spread_positions"]


_FOCAL, _HEIGHT = 500.0, 480  # pixels, of the paper's pictures
_VERSION = 2  # of what is drawn: raised with every change that draws rooms anew, for folders that keep pictures
_APART = 0.35  # metres
_SCALES = (0.3, 0.75)
_MOST = 1 << 20  # rooms, pairs
_KEPT = 4  # rooms that were built last, and meshes of rooms


@dataclass(frozen=True, eq=False)
class Room:
    """Rooms with objects, each seen by pairs of cameras; see the module for what is published.

    The factors are ``room``, ``pair`` and ``side``: the two views of a pair are the two rows that agree in room and
    pair. A row may have the factor ``candidate`` as well, 0 by default: each of its numbers draws the two cameras of
    the pair again, from the same distribution, and :func:`setsup.correspondence.pair_table` chooses one by overlap.
    Everything is a function of seed, room, pair, candidate and side; whether a position is free is decided by rays in
    float32, so that a processor that traces differently could tip a draw.

    Parameters
    ----------
    rooms : int
        Number of rooms.
    pairs : int
        Number of pairs of views of each room.
    meshes : mapping of str to Model, optional
        Meshes of rooms, in metres: room n uses mesh n modulo the number of meshes, with different objects each time. By
        name, as for :class:`~setsup.scenes.recipes.ObjectView`; by default rooms are generated.
    objects : mapping of str to Model, optional
        Meshes of objects to place in the rooms, centred at the origin with bounding boxes of diagonal 1, as in
        ShapeNet. By name; by default solids of several shapes and patterns.
    count : (least, most)
        Number of objects in a room; fewer if there is no space left.
    size : (height, width)
        Image size, in pixels; the focal length is proportional to the height: 500 pixels for a height of 480.
    up : 3 float, optional
        Up direction of the meshes of rooms, accurate to 30°; in SceneNN the y axis, 0 1 0. By default, the axis along
        which a room is shortest.
    seed : int
        Random seed.

    Raises
    ------
    SetsupError
        When an option is out of its range.

    Examples
    --------
    >>> recipe = Room(rooms=2, pairs=1)
    >>> row = {"room": 1, "pair": 0, "side": 0}
    >>> scene = recipe.scene(row)
    >>> list(scene.names.values())[:3], float(recipe.camera(row, scene).k[0, 0])
    (['walls', 'floor', 'ceiling'], 500.0)
    >>> recipe.camera_pair(row).relaxed, recipe.light_mode(row)
    (0, 'sun with shadows')

    """

    rooms: int = 100
    pairs: int = 10
    meshes: Mapping[str, Model] | None = None
    objects: Mapping[str, Model] | None = None
    count: tuple[int, int] = (1, 15)
    size: tuple[int, int] = (_HEIGHT, 640)
    up: tuple[float, float, float] | None = None
    seed: int = 0

    name = "room"
    scene_factors = ("room",)
    pair_factors = ("room", "pair")
    candidate_factor = "candidate"

    def __post_init__(self) -> None:
        """Check all options."""
        for what in ("rooms", "pairs"):
            object.__setattr__(self, what, check_integer(getattr(self, what), what, SetsupError, 1, _MOST))
        for what in ("meshes", "objects"):
            if getattr(self, what) is not None:
                object.__setattr__(self, what, check_models(getattr(self, what), what))
        if not isinstance(self.count, tuple | list) or len(self.count) != 2:
            raise _wrong_count(self.count)
        least, most = (check_integer(some, "count", SetsupError, 0, 1000) for some in self.count)
        if least > most:
            raise _wrong_count(self.count)
        object.__setattr__(self, "count", (least, most))
        object.__setattr__(self, "size", check_image_size(self.size, "size", SetsupError, LARGEST))
        if self.up is not None:
            object.__setattr__(self, "up", tuple(direction(self.up).tolist()))
        stream_key(self.seed, "room")  # raises where the seed is none
        object.__setattr__(self, "_kept", {})

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Room, pair and side."""
        return (
            Factor("room", Kind.ORDINAL, tuple(range(self.rooms))),
            Factor("pair", Kind.ORDINAL, tuple(range(self.pairs)), within="room"),
            Factor("side", Kind.ORDINAL, (0, 1)),
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of what the instances of generated rooms are: "nothing", "wall", …; none for rooms of meshes."""
        return CLASSES if self.meshes is None else ()

    @property
    def instances(self) -> int:
        """Most placements of a room: those of its shell, and all objects."""
        return self.count[1] + (MOST_PLACEMENTS if self.meshes is None else 1)

    def label(self, name: str) -> int:
        """Number of the class of an instance; that of ``objects`` is "object", whatever their names."""
        return class_number(name)

    @cached_property
    def key(self) -> str:
        """Name, options and digests of all meshes, as for :class:`~setsup.scenes.recipes.ObjectView`.

        How many rooms and pairs there are does not count: it changes no picture.
        """
        digest = hashlib.sha256()
        for models in (self.meshes, self.objects):
            digest.update(b"made up\0" if models is None else b"given\0" + identities(models))
        options = f"size={self.size!r} count={self.count!r} up={self.up!r} seed={self.seed}"
        return f"room {_VERSION} {options} models={digest.hexdigest()}"

    def scene(self, values: Mapping[str, Any]) -> Scene:
        """Build a room; see :meth:`setsup.scenes.Recipe.scene`.

        Raises
        ------
        FactorError
            When the row names no room of the recipe.
        DataError
            When a mesh cannot be loaded or has no floor, a room has no free position, or an object is larger than it.

        """
        return self.built(values).scene

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        """Place a camera of a pair; see :meth:`setsup.scenes.Recipe.camera`.

        Raises
        ------
        FactorError
            When the row names no view of the recipe.
        DataError
            When there is no place for two cameras.

        """
        pair, side = self.camera_pair(values), self._level(values, "side", 2)
        return look_at(pair.eyes[side], pair.targets[side], self.size)

    def camera_pair(self, values: Mapping[str, Any]) -> CameraPair:
        """Where the two cameras of a pair stand and look, and how often bounds were relaxed; raises as :meth:`camera`.

        Parameters
        ----------
        values : mapping of str to value
            Room and pair, at least.

        """
        built, pair = self.built(values), self._level(values, "pair", self.pairs)
        candidate = self._level(values, "candidate", _MOST) if "candidate" in values else 0
        cameras = built.pairs.get((pair, candidate))
        if cameras is None:
            key = fold(fold(stream_key(self.seed, "room cameras"), built.number), pair)
            if candidate:
                key = fold(fold(fold(stream_key(self.seed, "room candidates"), built.number), pair), candidate)
            cameras = built.pairs[pair, candidate] = camera_pair(built.surfaces.rays, built.space, built.objects, key)
        return cameras

    def light_mode(self, values: Mapping[str, Any]) -> str:
        """The lighting of a room: one of :data:`.lights.MODES`."""
        return self.built(values).mode

    def _level(self, values: Mapping[str, Any], name: str, levels: int) -> int:
        level = number(values, name)
        if not 0 <= level < levels or level != int(level):
            raise FactorError(f"{name} must be an integer from 0 to {levels - 1}, not {values[name]!r}")
        return int(level)

    def built(self, values: Mapping[str, Any]) -> "BuiltRoom":
        """The room of a row, with what is drawn in it; raises as :meth:`scene`."""
        room = self._level(values, "room", self.rooms)
        # threads may build a room twice, with the same content: so no lock is needed, which a fork might copy locked
        built: BuiltRoom = _kept(self.__dict__["_kept"], ("room", room), lambda: self._build(room))
        return built

    def _build(self, room: int) -> "BuiltRoom":
        keys = [fold(stream_key(self.seed, f"room {what}"), room) for what in ("shell", "space", "objects", "lights")]
        if self.meshes is None:
            shell = made_room(keys[0])
            surfaces, what = Surfaces(Rays(shell)), f"room {room}"
        else:
            name = tuple(self.meshes)[room % len(self.meshes)]
            surfaces = _kept(self.__dict__["_kept"], ("mesh", name), lambda: self._surfaces(name))
            shell, what = surfaces.rays.scene, f"room {room}, which is mesh {name!r}"
        try:
            space = free_space(surfaces, keys[1])
            objects = self._objects(keys[2], space, shell)
        except LibraryError:  # not a fault of the room
            raise
        except DataError as error:
            raise DataError(f"{what}: {error}") from error
        mode, lights = room_lights(keys[3], surfaces.rays, space)
        scene = Scene((*shell.placements, *objects), lights, SKY)
        return BuiltRoom(room, scene, objects, surfaces, space, mode, {})

    def _surfaces(self, name: str) -> Surfaces:
        mesh = loaded((self.meshes or {})[name])
        check_size(mesh, f"the room {name!r}", (1.0, 100.0))
        try:
            return Surfaces(Rays(Scene((levelled(mesh, up=self.up),), background=SKY)))
        except LibraryError:
            raise
        except DataError as error:
            raise DataError(f"room {name!r}: {error}") from error

    def _objects(self, key: Words, space: Space, shell: Scene) -> tuple[Placement, ...]:
        models: Mapping[str, Model] = default_objects() if self.objects is None else self.objects
        names = tuple(models)
        least, most = self.count
        wanted = least + int(randint_below(fold(key, 0), most - least + 1))
        positions = spread_positions(fold(key, 1), space, wanted)
        chosen = [
            names[row] for row in randint_below(fold(fold(key, 2), np.arange(len(positions))), len(names)).tolist()
        ]
        meshes = {name: loaded(models[name]) for name in dict.fromkeys(chosen)}
        check_objects(meshes, shell)
        return placed_objects(fold(key, 3), positions, [(name, meshes[name]) for name in chosen])

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the rooms that were built last."""
        return {**self.__dict__, "_kept": {}}


@dataclass(frozen=True, slots=True)
class BuiltRoom:
    """A room, with what its cameras need."""

    number: int
    scene: Scene
    objects: tuple[Placement, ...]
    surfaces: Surfaces
    space: Space
    mode: str
    pairs: dict[tuple[int, int], CameraPair]


def look_at(eye: Reals, target: Reals, size: tuple[int, int]) -> Camera:
    """A camera with the field of view of the paper's."""
    height, width = size
    return Camera.look_at(eye, target, height=height, width=width, focal_length=_FOCAL * height / _HEIGHT)


def check_objects(meshes: Mapping[str, Mesh], shell: Scene) -> None:
    """Refuse objects that are larger than their room."""
    largest = float(np.ptp(shell.bounds, axis=0).max())
    for name, mesh in meshes.items():
        extent = float(np.linalg.norm(np.ptp(mesh.bounds, axis=0)))
        if extent * _SCALES[0] > largest:
            raise DataError(
                f"object {name!r} has a diagonal of {extent:.4g} m, which does not fit into its room of "
                f"{largest:.3g} m even when scaled by {_SCALES[0]}; use objects with diagonals of about 1 m"
            )


def _wrong_count(count: object) -> SetsupError:
    return SetsupError(f"count must be (least, most) objects in a room, not {count!r}")


def spread_positions(key: Words, space: Space, count: int) -> Reals:
    """Draw free positions that are at least 0.35 m apart.

    Returns (n, 3) float64, metres.
    """
    rows = [int(np.argmax(space.clearance))][:count]
    weights = space.clearance.copy()
    for chance in uniform(fold(key, np.arange(count))).tolist()[1:]:
        weights[np.linalg.norm(space.points - space.points[rows[-1]], axis=1) < _APART] = 0
        total = np.cumsum(weights)
        if not total[-1] > 0:
            break
        rows.append(int(np.searchsorted(total, chance * total[-1], side="right")))
    return np.asarray(space.points[rows])


def placed_objects(key: Words, positions: Reals, meshes: list[tuple[str, Mesh]]) -> tuple[Placement, ...]:
    """Place objects at positions, each scaled by U(0.3, 0.75) along its axes and turned by :func:`euler`.

    `positions` (n, 3) float64, metres.
    """
    at = uniform(fold(fold(key, np.arange(len(meshes)))[:, None], np.arange(6)))
    scales = _SCALES[0] + (_SCALES[1] - _SCALES[0]) * at[:, :3]
    return tuple(
        Placement(mesh, euler(360 * turn), position, scale, name=name)
        for (name, mesh), position, scale, turn in zip(meshes, positions, scales, at[:, 3:], strict=True)
    )


def euler(angles: npt.ArrayLike) -> Reals:
    """Turn about the x axis, then the y axis, then the z axis of the world.

    `angles` (3,) float, degrees; returns (3, 3) float64.
    """
    sines, cosines = sin_cos(np.radians(angles))
    rotation = np.eye(3)
    for axis, (sine, cosine) in enumerate(zip(sines, cosines, strict=True)):
        turn = np.eye(3)
        first, second = (axis + 1) % 3, (axis + 2) % 3
        turn[first, first], turn[first, second], turn[second, first], turn[second, second] = cosine, -sine, sine, cosine
        rotation = product(turn, rotation)
    return rotation


def _kept(cache: dict[Any, Any], key: tuple[str, Any], make: Any) -> Any:
    """Find what was made before, or make it; a few of each kind are kept."""
    value = cache.get(key)
    if value is None:
        value = cache[key] = make()
        for old in [some for some in list(cache) if some[0] == key[0]][:-_KEPT]:
            cache.pop(old, None)
    return value
