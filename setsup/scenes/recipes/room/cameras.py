"""Pairs of cameras that look at the same part of a room from two sides, after the code of [1]_.

Cameras stand at free positions 0.5 … 3 m above the floor and 1 … 3 m from the most open position, 0.5 … 3 m apart from
each other. Either looks at a target of its own, the most open position moved by up to 0.5 m along x and y; nothing of
the room stands between a camera and its target, and the two look in directions at most 65° apart. Where no pair can be
had, lower bounds fall by 20 %, upper bounds rise by 20 % and the angle by 10°, up to five times; and if that does not
help, the pair is taken that misses the bounds least.

Theirs draws a hundred positions and relaxes the bounds where none will do; here one is drawn among all that will do,
which is the same where there are some, and for the second camera eight first ones are tried before bounds are relaxed.
Theirs gives up after five times. Theirs does not look whether a camera stands inside of an object; here it stands
outside of the boxes around all of them, and nothing of an object is nearer than 0.3 m ahead of it.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks",
   arXiv:2512.04970, 2025; github.com/stefanradev93/oxels.

"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Words
from setsup.errors import DataError
from setsup.random import fold, randint_below, uniform
from setsup.scenes.portable import product
from setsup.scenes.rays import Rays
from setsup.scenes.recipes.room.space import CLEARANCE, Space
from setsup.scenes.scene import Placement

__all__ = ["BOUNDS", "RELAXATIONS", "Bounds", "CameraPair", "camera_pair", "outside"]


RELAXATIONS = 5
"""How often bounds are relaxed at most."""

_TRIES = 8  # first cameras, with targets of their own, before bounds are relaxed
_JITTER = 0.5  # metres, of targets along x and y
_AHEAD = 0.3  # metres along the axis of a camera in which there is no object


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the cameras of a pair may stand.

    Attributes
    ----------
    height, distance, separation : (least, most), metres
        Above the floor; from the most open position; from each other.
    angle : float, degrees
        Most between the directions in which they look.

    Examples
    --------
    >>> BOUNDS.relaxed(1).distance, BOUNDS.relaxed(2).angle
    ((0.8, 3.5999999999999996), 85.0)

    """

    height: tuple[float, float] = (0.5, 3.0)
    distance: tuple[float, float] = (1.0, 3.0)
    separation: tuple[float, float] = (0.5, 3.0)
    angle: float = 65.0

    def relaxed(self, times: int) -> "Bounds":
        """Bounds after some relaxations."""
        low, high = math.prod([0.8] * times), math.prod([1.2] * times)
        height, distance, separation = (
            (least * low, most * high) for least, most in (self.height, self.distance, self.separation)
        )
        return Bounds(height, distance, separation, self.angle + 10.0 * times)


BOUNDS = Bounds()
"""Those of the paper's code."""


@dataclass(frozen=True, slots=True)
class CameraPair:
    """Where two cameras stand and look.

    Attributes
    ----------
    eyes, targets : (2, 3) float64, metres
    relaxed : int
        How often the bounds were relaxed, 0 … 5; 6 where even then no pair would do, and the best was taken.

    """

    eyes: Reals
    targets: Reals
    relaxed: int


def camera_pair(rays: Rays, space: Space, objects: Sequence[Placement], key: Words) -> CameraPair:
    """Draw a pair of cameras."""
    points = space.points[outside(space.points, objects, CLEARANCE)]
    if len(points) < 2:
        raise DataError(
            f"found no positions for two cameras in a room with {len(space.points)} free positions and {len(objects)} "
            "objects; use a larger room, or smaller objects"
        )
    search = _Search(rays, space.centre, points, objects, key)
    for times in range(RELAXATIONS + 1):
        pair = search.pair(BOUNDS.relaxed(times), times)
        if pair is not None:
            return pair
    return search.nearest()


def outside(points: Reals, objects: Sequence[Placement], clearance: float) -> Bools:
    """Whether points lie outside of the boxes around objects, which are turned with them, by a clearance; (n,) bool."""
    free = np.ones(len(points), bool)
    for thing in objects:
        low, high = thing.mesh.bounds * thing.scale
        within = product(points - thing.translation, thing.rotation)
        free &= ((within < low - clearance) | (within > high + clearance)).any(axis=1)
    return free


class _Search:
    """One draw: what its steps share."""

    def __init__(self, rays: Rays, centre: Reals, points: Reals, objects: Sequence[Placement], key: Words) -> None:
        self.rays, self.centre, self.points, self.objects, self.key = rays, centre, points, objects, key
        self.distance = np.linalg.norm(points - centre, axis=1)

    def pair(self, bounds: Bounds, times: int) -> CameraPair | None:
        """A pair within bounds that were relaxed some times; None where a few tries give none."""
        stands = np.flatnonzero(_within(self.points[:, 2], bounds.height) & _within(self.distance, bounds.distance))
        for number in range(_TRIES):
            key = fold(fold(self.key, times), number)
            targets = self._targets(key)
            first = self._drawn(stands, targets[0], fold(key, 4))
            if first is None:
                continue
            apart = np.linalg.norm(self.points[stands] - self.points[first], axis=1)
            turned = _angles(self.points[stands], targets[1], targets[0] - self.points[first])
            others = stands[_within(apart, bounds.separation) & (turned <= bounds.angle)]
            second = self._drawn(others, targets[1], fold(key, 5))
            if second is not None:
                return CameraPair(self.points[[first, second]], targets, times)
        return None

    def nearest(self) -> CameraPair:
        """The pair that misses the unrelaxed bounds least; cameras that see their targets come before others."""
        targets = self._targets(fold(fold(self.key, RELAXATIONS + 1), 0))
        alone = _missed(self.points[:, 2], BOUNDS.height) + _missed(self.distance, BOUNDS.distance)
        first = int(np.argmin(alone + 100.0 * ~self._sees(self.points, targets[0])))
        apart = np.linalg.norm(self.points - self.points[first], axis=1)
        turned = _angles(self.points, targets[1], targets[0] - self.points[first])
        both = alone + _missed(apart, BOUNDS.separation) + _missed(turned, (0.0, BOUNDS.angle))
        both[first] = np.inf
        second = int(np.argmin(both + 100.0 * ~self._sees(self.points, targets[1])))
        return CameraPair(self.points[[first, second]], targets, RELAXATIONS + 1)

    def _targets(self, key: Words) -> Reals:
        """One for each camera, (2, 3)."""
        moved = np.zeros((2, 3))
        moved[:, :2] = _JITTER * (2 * uniform(fold(key, np.arange(4))) - 1).reshape(2, 2)
        return np.asarray(self.centre + moved)

    def _drawn(self, rows: Rows, target: Reals, key: Words) -> int | None:
        """One of the positions that see a target."""
        seeing = rows[self._sees(self.points[rows], target)]
        return int(seeing[randint_below(key, len(seeing))]) if len(seeing) else None

    def _sees(self, eyes: Reals, target: Reals) -> Bools:
        """Whether nothing of the room stands before the target, and no object right before the eye."""
        way = target - eyes
        length = np.linalg.norm(way, axis=1)
        visible: Bools = (length > 1e-3) & ~self.rays.blocked(eyes, way)
        ahead = np.minimum(_AHEAD / np.maximum(length, 1e-3), 1.0)
        for thing in self.objects:
            visible &= ~_crosses(eyes, way * ahead[:, None], thing)
        return visible


def _crosses(starts: Reals, ways: Reals, thing: Placement) -> Bools:
    """Whether segments meet the box around an object, which is turned with it; (n,) bool."""
    low, high = thing.mesh.bounds * thing.scale
    start, way = product(starts - thing.translation, thing.rotation), product(ways, thing.rotation)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(low - start) / way, (high - start) / way])
    level = way == 0  # such a segment is between two sides all along, or never
    between = (start >= low) & (start <= high)
    enters = np.where(level, np.where(between, -np.inf, np.inf), ends.min(axis=0)).max(axis=1)
    leaves = np.where(level, np.where(between, np.inf, -np.inf), ends.max(axis=0)).min(axis=1)
    return np.asarray((enters <= leaves) & (leaves >= 0) & (enters <= 1))


def _angles(eyes: Reals, target: Reals, direction: Reals) -> Reals:
    """Angles between the ways from eyes to a target and a direction, (n,) degrees, rounded."""
    way = target - eyes
    sine = np.linalg.norm(np.cross(way, direction), axis=1)
    # the last bits of an arc tangent are not the same everywhere
    return np.asarray(np.degrees(np.arctan2(sine, product(way, direction))).round(6))


def _within(values: Reals, bounds: tuple[float, float]) -> Bools:
    return np.asarray((values >= bounds[0]) & (values <= bounds[1]))


def _missed(values: Reals, bounds: tuple[float, float]) -> Reals:
    """How far values lie outside of bounds, as a part of the upper one."""
    return np.asarray((np.maximum(bounds[0] - values, 0) + np.maximum(values - bounds[1], 0)) / bounds[1])
