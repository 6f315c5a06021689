"""Ways through a room: straight legs from one free position to another, drawn one after the other.

A walker is a ball around a point. At every point of its way, no surface of the room is in the ball: clearance is tested
exactly every 5 cm, with the ball enlarged by 2.5 cm. A leg depends on the legs before it and not on how many follow, so
a longer way begins with the shorter one.
"""

from collections.abc import Callable

import numpy as np

from setsup.arrays import Bools, Reals, Words
from setsup.random import fold, randint_below
from setsup.scenes.motion import Path
from setsup.scenes.portable import length
from setsup.scenes.recipes.room.space import Space, Surfaces

__all__ = ["Margin", "Walk", "free_places", "free_way"]

Margin = Callable[[Reals, Reals], float]
"""From times (n,) and points (n, 3) of a leg: how far it keeps from what moves, metres; not positive if too near."""

_STEP = 0.05  # metres between points at which the clearance is tested
_LEG = (0.3, 2.0)  # metres
_TRIES = 16  # ends of a leg
_PAUSE = 0.5  # seconds, where no end can be reached


def free_places(surfaces: Surfaces, space: Space, radius: float) -> Reals:
    """Free positions at which a ball may begin or end a leg, (n, 3)."""
    return np.asarray(space.points[surfaces.clear(space.points, space.clearance, radius + _STEP / 2)])


def free_way(surfaces: Surfaces, start: Reals, end: Reals, radius: float) -> bool:
    """Whether a ball moves from one point to another, (3,), and meets no surface."""
    steps = max(1, int(np.ceil(float(length(end - start)) / _STEP)))
    points = start + np.linspace(0.0, 1.0, steps + 1)[:, None] * (end - start)
    return bool(surfaces.clear(points, surfaces.clearance(points), radius + _STEP / 2).all())


class Walk:
    """A way of legs at a constant speed, as long as it is asked for.

    `ends` (n, 3) float64, metres, where legs may end; `start` (3,) float64, metres; `radius` of the ball, metres;
    `speed` m/s; `begin` seconds; `clear` maps points (n, 3) to (n,) bool: whether no standing object is near.
    """

    def __init__(
        self,
        key: Words,
        surfaces: Surfaces,
        ends: Reals,
        start: Reals,
        radius: float,
        speed: float,
        begin: float,
        margin: Margin | None = None,
        clear: Callable[[Reals], Bools] | None = None,
    ) -> None:
        # replaced as a whole, so that threads that make the way longer at once find the same legs
        self._way = np.array([begin]), start[None]
        self._key, self._surfaces, self._ends, self._radius, self._speed = key, surfaces, ends, radius, speed
        self._margin, self._clear = margin, clear

    def until(self, time: float) -> tuple[Reals, Reals]:
        """Times (n,) and places (n, 3) of the ends of all legs, of which the last is later than a time."""
        times, points = self._way
        while times[-1] <= time:
            end, place = self._next(times, points)
            times, points = np.append(times, end), np.append(points, place[None], axis=0)
            self._way = times, points
        return times, points

    def at(self, at: Reals) -> Reals:
        """Places at times, (n, 3)."""
        times, points = self.until(float(at.max()))
        return Path(times, points, smooth=False).pose(at).translation

    def _next(self, times: Reals, points: Reals) -> tuple[float, Reals]:
        """Time and place of the end of the next leg: the first that keeps its margin, else the one with most."""
        here, now = points[-1], float(times[-1])
        away = length(self._ends - here)
        near = np.flatnonzero((away >= _LEG[0]) & (away <= _LEG[1]))
        best: tuple[float, float, Reals] | None = None
        if len(near):
            key = fold(fold(self._key, len(points)), np.arange(_TRIES))
            for row in near[randint_below(key, len(near))].tolist():
                found = self._leg(here, now, self._ends[row], float(away[row]) / self._speed)
                if found is not None and (best is None or found[0] > best[0]):
                    best = found
                if best is not None and best[0] > 0:
                    return best[1:]
        if self._margin is None and len(points) > 1 and (back := float(length(points[-2] - here))) > 0:
            return now + back / self._speed, points[-2]  # the way it came is free
        stay = self._leg(here, now, here, _PAUSE)
        if best is None or (stay is not None and stay[0] > best[0]):
            return now + _PAUSE, here
        return best[1:]

    def _leg(self, start: Reals, now: float, end: Reals, seconds: float) -> tuple[float, float, Reals] | None:
        """Margin, time and place of the end of a leg; None if a surface or a standing object is in the way."""
        if not free_way(self._surfaces, start, end, self._radius):
            return None
        if self._margin is None:
            return 1.0, now + seconds, end
        share = np.linspace(0.0, 1.0, max(2, int(np.ceil(seconds / 0.05))))
        points = start + share[:, None] * (end - start)
        if self._clear is not None and not self._clear(points).all():
            return None
        return self._margin(now + share * seconds, points), now + seconds, end
