"""Objects that move through a room: which meshes, how large, from where, along which ways, and how they turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from setsup.arrays import Reals, Words
from setsup.random import fold, randint_below, uniform
from setsup.scenes.meshes.mesh import Mesh
from setsup.scenes.motion import Path
from setsup.scenes.portable import length, sphere_direction
from setsup.scenes.recipes.models import Model, loaded
from setsup.scenes.recipes.room.recipe import BuiltRoom, check_objects, placed_objects
from setsup.scenes.recipes.room.walks import Walk, free_places
from setsup.scenes.scene import Placement

__all__ = ["Walker", "draw_between", "make_walkers"]

_SPEEDS, _TURNS = (0.3, 1.0), (0.3, 1.5)  # m/s and rad/s
_SHRINK, _SHARE = 0.8, 20  # an object is shrunk until one in so many free positions has room for its ball


@dataclass(frozen=True, slots=True)
class Walker:
    """A moving object at time 0, its way, the radius of its ball in metres, and its angular velocity in rad/s."""

    placement: Placement
    walk: Walk
    radius: float
    angular: Reals

    def motion(self, time: float) -> Path:
        """Motion until a time at least."""
        return Path(*self.walk.until(time), self.placement.rotation, self.angular, smooth=False)


def make_walkers(
    key: Words, built: BuiltRoom, models: Mapping[str, Model], count: int, begin: float
) -> Sequence[Walker]:
    """Moving objects of a room, whose ways begin at a time; they start apart from each other where there is space.

    Raises a DataError if a model cannot be loaded, or is larger than the room.
    """
    names = [tuple(models)[row] for row in randint_below(fold(fold(key, 0), np.arange(count)), len(models))]
    meshes = {name: loaded(models[name]) for name in dict.fromkeys(names)}
    check_objects(meshes, built.surfaces.rays.scene)
    placed = placed_objects(fold(key, 1), np.zeros((count, 3)), [(name, meshes[name]) for name in names])
    taken = [(one.translation, _reach(one.mesh, one.scale)) for one in built.objects]
    walkers = []
    for nth, placement in enumerate(placed):
        own = fold(fold(key, 2), nth)
        scale, radius, places = _fit(placement, built)
        start = _start(fold(own, 4), places, radius, taken)
        taken.append((start, radius))
        up, turn, rate, speed = uniform(fold(own, np.arange(4))).tolist()
        walk = Walk(fold(own, 5), built.surfaces, places, start, radius, draw_between(_SPEEDS, speed), begin)
        angular = draw_between(_TURNS, rate) * sphere_direction(up, turn)
        walkers.append(Walker(replace(placement, scale=scale, translation=start), walk, radius, angular))
    return walkers


def draw_between(ends: tuple[float, float], share: float) -> float:
    """A number between two, from a share of 0 … 1."""
    return ends[0] + (ends[1] - ends[0]) * share


def _fit(placement: Placement, built: BuiltRoom) -> tuple[Reals, float, Reals]:
    """Scale at which an object has room, the radius of its ball, and free positions for it."""
    scale = placement.scale
    while True:
        radius = _reach(placement.mesh, scale)
        places = free_places(built.surfaces, built.space, radius)
        if len(places) * _SHARE >= len(built.space.points):
            return scale, radius, places
        scale = _SHRINK * scale


def _start(key: Words, places: Reals, radius: float, taken: Sequence[tuple[Reals, float]]) -> Reals:
    """One of some positions (n, 3) at which a ball meets none of those that are taken, if there is one."""
    apart = np.ones(len(places), bool)
    for place, other in taken:
        apart &= length(places - place) > radius + other
    rows = np.flatnonzero(apart) if apart.any() else np.arange(len(places))
    return np.asarray(places[rows[randint_below(key, len(rows))]])


def _reach(mesh: Mesh, scale: Reals) -> float:
    """How far a mesh reaches from its origin, metres."""
    return float(length(mesh.vertices * scale).max(initial=0.0))
