"""room-frames: rooms in which objects and the camera move, frame after frame.

A room is that of :class:`~setsup.scenes.recipes.Room` with the same options, with moving objects added. Kubric's MOVi
videos [1]_ have 24 frames at 12 frames per second, as is the default here; their objects fall and collide, where these
move along straight legs and turn at a constant rate.

What is guaranteed, at all times: no surface of the room is within the ball around an object in which it turns, and the
camera is at least 2.5 cm from every surface of the room and outside of the boxes around the objects that stand still.
The camera keeps 0.3 m from the balls of moving objects where one of 16 legs does, else it takes the leg that keeps
most. Objects may pass through each other.

References
----------
.. [1] K. Greff et al., "Kubric: A scalable dataset generator", CVPR 2022.

"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setsup.arrays import Reals
from setsup.checks import check_integer, check_number
from setsup.errors import DataError, FactorError, SetsupError
from setsup.factors.factor import Factor, Kind
from setsup.random import fold, stream_key, uniform
from setsup.scenes.camera import Camera
from setsup.scenes.motion import Path, moved
from setsup.scenes.portable import length
from setsup.scenes.recipes.models import Model
from setsup.scenes.recipes.room.cameras import BOUNDS, outside
from setsup.scenes.recipes.room.recipe import BuiltRoom, Room, look_at
from setsup.scenes.recipes.room.solids import default_objects
from setsup.scenes.recipes.room.space import CLEARANCE
from setsup.scenes.recipes.room.walkers import Walker, draw_between, make_walkers
from setsup.scenes.recipes.room.walks import Walk
from setsup.scenes.recipes.values import number
from setsup.scenes.scene import Scene

__all__ = ["RoomFrames"]

_VERSION = 1  # raised with every change that changes rendered frames
_MOST = 1 << 20  # frames
_CAMERA_SPEEDS = (0.2, 0.6)  # m/s
_KEEPS = 0.3  # metres between the camera and the balls of moving objects
_EYE = 0.025  # metres: what cameras keep from surfaces between positions, which keep 0.05
_KEPT = 4  # rooms whose motions are kept


@dataclass(frozen=True, eq=False)
class RoomFrames:
    """Rooms with moving objects, seen by a moving camera; see the module for what is guaranteed.

    The factors are ``room`` and ``frame``; a row is a frame of a room's video. A frame depends on seed, room and frame
    number: more frames continue the same video. Motions are defined at all times, also before the first and after the
    last frame, where optical flow leads.

    Parameters
    ----------
    rooms : int
        Number of rooms.
    frames : int
        Number of frames of each room.
    moving : int
        Number of moving objects.
    meshes : mapping of str to Model, optional
        Meshes of rooms, in metres: room n uses mesh n modulo the number of meshes. By name, as for
        :class:`~setsup.scenes.recipes.ObjectView`; by default rooms are generated.
    objects : mapping of str to Model, optional
        Meshes of objects, centred at the origin with bounding boxes of diagonal 1. By name; by default solids of
        several shapes and patterns. A moving object is shrunk where a room is too small for it.
    count : (least, most)
        Number of objects that stand still.
    size : (height, width)
        Image size, in pixels; the focal length is proportional to the height: 500 pixels for a height of 480.
    up : 3 float, optional
        Up direction of the meshes of rooms, accurate to 30°; by default, the axis along which a room is shortest.
    fps : float
        Frames per second: frame n is at n / fps seconds.
    seed : int
        Random seed.

    Raises
    ------
    SetsupError
        When an option is out of its range.

    Examples
    --------
    >>> recipe = RoomFrames(rooms=2, frames=24, moving=2, count=(0, 3), size=(48, 64))
    >>> first, last = (recipe.scene({"room": 1, "frame": frame}) for frame in (0, 23))
    >>> [one is other for one, other in zip(first.placements, last.placements, strict=True)][-3:]
    [True, False, False]
    >>> recipe.motions({"room": 1})[len(first.placements) - 1].pose(0.5).translation.shape
    (3,)

    """

    rooms: int = 100
    frames: int = 24
    moving: int = 5
    meshes: Mapping[str, Model] | None = None
    objects: Mapping[str, Model] | None = None
    count: tuple[int, int] = (1, 10)
    size: tuple[int, int] = (480, 640)
    up: tuple[float, float, float] | None = None
    fps: float = 12.0
    seed: int = 0

    name = "room-frames"
    scene_factors = ("room", "frame")
    pair_factors = ("room",)

    def __post_init__(self) -> None:
        """Check all options."""
        room = Room(self.rooms, 1, self.meshes, self.objects, self.count, self.size, self.up, self.seed)
        for what in ("rooms", "meshes", "objects", "count", "size", "up"):
            object.__setattr__(self, what, getattr(room, what))
        object.__setattr__(self, "frames", check_integer(self.frames, "frames", SetsupError, 1, _MOST))
        object.__setattr__(self, "moving", check_integer(self.moving, "moving", SetsupError, 0, 1000))
        object.__setattr__(self, "fps", check_number(self.fps, "fps", SetsupError, 1e-3, 1e6))
        object.__setattr__(self, "_room", room)
        object.__setattr__(self, "_kept", {})

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Room and frame."""
        return (
            Factor("room", Kind.ORDINAL, tuple(range(self.rooms))),
            Factor("frame", Kind.ORDINAL, tuple(range(self.frames))),
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of what the instances of generated rooms are, as for :class:`~setsup.scenes.recipes.Room`."""
        return self._still.classes

    @property
    def instances(self) -> int:
        """Most placements of a room, with its moving objects."""
        return self._still.instances + self.moving

    def label(self, name: str) -> int:
        """Number of the class of an instance."""
        return self._still.label(name)

    @cached_property
    def key(self) -> str:
        """Name and options, as for :class:`~setsup.scenes.recipes.Room`; numbers of rooms and frames do not count."""
        return f"{self.name} {_VERSION} moving={self.moving} fps={self.fps!r} of {self._still.key}"

    def scene(self, values: Mapping[str, Any]) -> Scene:
        """Build a frame; see :meth:`setsup.scenes.Recipe.scene`.

        Raises
        ------
        FactorError
            When the row names no room of the recipe, or no frame: a number from −1.
        DataError
            As for :meth:`setsup.scenes.recipes.Room.scene`.

        """
        clip, time = self._clip(values)
        return moved(clip.scene, clip.motions(time), time)

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        """Place the camera of a frame; see :meth:`setsup.scenes.Recipe.camera`."""
        clip, time = self._clip(values)
        return look_at(clip.camera.at(np.array([time]))[0], clip.target, self.size)

    def motions(self, values: Mapping[str, Any]) -> dict[int, Path]:
        """Motions of a room's objects until one frame after the last, by the number of the placement.

        Parameters
        ----------
        values : mapping of str to value
            Room, at least.

        """
        clip, time = self._clip({**values, "frame": self.frames})
        return clip.motions(time)

    @property
    def _still(self) -> Room:
        room: Room = self.__dict__["_room"]
        return room

    def _clip(self, values: Mapping[str, Any]) -> tuple["_Clip", float]:
        """What moves in the room of a row, and the time of its frame."""
        frame = number(values, "frame")
        if not -1 <= frame <= _MOST or frame != int(frame):
            raise FactorError(f"frame must be an integer from -1 to {_MOST}, not {values['frame']!r}")
        built = self._still.built(values)
        kept: dict[int, _Clip] = self.__dict__["_kept"]
        clip = kept.get(built.number)
        if clip is None or clip.built is not built:
            # threads may make one twice, with the same content
            clip = kept[built.number] = self._new_clip(built)
            for old in list(kept)[:-_KEPT]:
                kept.pop(old, None)
        return clip, frame / self.fps

    def _new_clip(self, built: BuiltRoom) -> "_Clip":
        models: Mapping[str, Model] = default_objects() if self.objects is None else self.objects
        own = fold(stream_key(self.seed, "room frames objects"), built.number)
        try:
            walkers = make_walkers(own, built, models, self.moving, -1.0 / self.fps)
        except DataError as error:
            raise DataError(f"room {built.number}: {error}") from error
        key = fold(stream_key(self.seed, "room frames camera"), built.number)
        pair = self._still.camera_pair({"room": built.number, "pair": 0})
        eye, target = pair.eyes[0], pair.targets[0]
        points = built.space.points
        away = length(points - built.space.centre)
        (low, high), (near, far) = BOUNDS.height, BOUNDS.distance
        ends = points[(points[:, 2] >= low) & (points[:, 2] <= high) & (away >= near) & (away <= far)]
        ends = ends[outside(ends, built.objects, CLEARANCE)]
        ends = ends[~built.surfaces.rays.blocked(ends, target - ends)]

        def margin(times: Reals, places: Reals) -> float:
            apart = [length(places - walker.walk.at(times)).min() - walker.radius for walker in walkers]
            return float(min(apart, default=math.inf)) - _KEEPS

        camera = Walk(
            fold(key, 0),
            built.surfaces,
            ends,
            eye,
            _EYE,
            draw_between(_CAMERA_SPEEDS, float(uniform(fold(key, 1)))),
            -1.0 / self.fps,
            margin,
            lambda places: outside(places, built.objects, _EYE),
        )
        scene = replace(built.scene, placements=(*built.scene.placements, *(walker.placement for walker in walkers)))
        return _Clip(built, scene, walkers, camera, target)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the rooms that were built last."""
        return {**self.__dict__, "_kept": {}}


@dataclass(frozen=True, slots=True)
class _Clip:
    """A room in which objects move, and the way and the target of its camera."""

    built: BuiltRoom
    scene: Scene
    walkers: Sequence[Walker]
    camera: Walk
    target: Reals

    def motions(self, time: float) -> dict[int, Path]:
        """Motions until a time at least, by the number of the placement."""
        first = len(self.built.scene.placements)
        return {first + nth: walker.motion(time) for nth, walker in enumerate(self.walkers)}
