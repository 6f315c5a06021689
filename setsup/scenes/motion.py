"""Rigid motions: where a placement or a camera is at any time, and scenes whose placements move.

A motion has a method ``pose(time)``, the rotation and translation of a placement at a time in seconds, or at many. A
moving scene is a function of time that returns a :class:`~setsup.scenes.Scene`: at every time, it has the same
placements in the same order, with the same meshes and scales, so a triangle has one number at all times, and a point on
it is carried from one time to another by two poses. :func:`moved` makes such a scene.

Results are the same on every machine, to the last bit: see :mod:`setsup.scenes.portable`.

References
----------
.. [1] K. Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985: interpolation at a constant rate.

"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_array, check_boolean, check_integer, check_number
from setsup.errors import DataError, SetsupError, abbreviate
from setsup.scenes.checks import check_numbers, check_rotation
from setsup.scenes.portable import length, product
from setsup.scenes.rotations import matrix_product, rotation_matrix, rotation_vector
from setsup.scenes.scene import Scene

__all__ = ["Keyframes", "Motion", "Path", "Pose", "Velocity", "moved", "same_placements"]

_MOST = 1e9
"""Radians from time 0: the last bit of larger angles is more than 10⁻⁷, and soon more than a turn."""


class Pose(NamedTuple):
    """Rotation and translation of a placement, at one time or at many.

    Attributes
    ----------
    rotation : (..., 3, 3) float64
        From the frame of the mesh to the world.
    translation : (..., 3) float64, metres
        Where the origin of the mesh is.

    """

    rotation: Reals
    translation: Reals


@runtime_checkable
class Motion(Protocol):
    """Anything with a pose at every time."""

    def pose(self, time: npt.ArrayLike) -> Pose:
        """Pose at a time, or at an array of times (...), in seconds."""
        ...


@dataclass(frozen=True, eq=False)
class Keyframes:
    """Poses at some times, and interpolation between them.

    Between two keyframes, the rotation turns at a constant rate about one axis, the shorter way round (slerp [1]_), and
    the translation is linear. Before the first and after the last keyframe, the pose is that of the keyframe.

    Parameters
    ----------
    times : (n,) float, seconds
        Increasing, at least one.
    rotations : (n, 3, 3) float
        Rotations. Half a turn between two keyframes is ambiguous: add a keyframe between them.
    translations : (n, 3) float, metres
        Translations.

    Raises
    ------
    SetsupError
        If shapes differ, a number is not finite, times do not increase, or a matrix is not a rotation.

    References
    ----------
    .. [1] K. Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985.

    Examples
    --------
    >>> import numpy as np
    >>> quarter = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    >>> motion = Keyframes([0, 2], [np.eye(3), quarter], [[0, 0, 0], [4, 0, 0]])
    >>> pose = motion.pose(1)
    >>> pose.rotation.round(3).tolist(), pose.translation.tolist()
    ([[0.707, -0.707, 0.0], [0.707, 0.707, 0.0], [0.0, 0.0, 1.0]], [2.0, 0.0, 0.0])

    """

    times: Reals
    rotations: Reals
    translations: Reals

    def __post_init__(self) -> None:
        """Check the numbers; arrays are kept read-only."""
        times = _times_of(self.times, "times of keyframes")
        object.__setattr__(self, "times", times)
        count = len(times)
        rotations = check_numbers(self.rotations, (count, 3, 3), "rotations of keyframes")
        for number, rotation in enumerate(rotations):
            check_rotation(rotation, f"rotation {number} of keyframes")
        object.__setattr__(self, "rotations", rotations)
        object.__setattr__(
            self, "translations", check_numbers(self.translations, (count, 3), "translations of keyframes")
        )
        # from each rotation to the next, about axes of the mesh
        turns = rotation_vector(matrix_product(np.swapaxes(rotations[:-1], 1, 2), rotations[1:]))
        object.__setattr__(self, "_turns", turns)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields; whoever unpickles them gets read-only arrays again."""
        return Keyframes, (self.times, self.rotations, self.translations)

    def pose(self, time: npt.ArrayLike) -> Pose:
        """Pose at times.

        Parameters
        ----------
        time : float or (...) float, seconds

        Returns
        -------
        Pose
            Rotation (..., 3, 3) and translation (..., 3).

        """
        at, share = _legs(self.times, _checked(time))
        if len(self.times) == 1:
            return Pose(self.rotations[at], self.translations[at])
        turns: Reals = self.__dict__["_turns"]
        rotation = matrix_product(self.rotations[at], rotation_matrix(share[..., None] * turns[at]))
        translation = _between(self.translations, at, share)
        return Pose(np.where(share[..., None, None] == 1, self.rotations[at + 1], rotation), translation)


@dataclass(frozen=True, eq=False)
class Velocity:
    """Constant linear and angular velocity.

    At time t, a point at x relative to the centre has turned to exp(t [ω]ₓ) x, and the centre has moved by t v.

    Parameters
    ----------
    rotation : (3, 3) float
        Rotation at time 0; none by default.
    translation : (3,) float, metres
        Translation at time 0.
    linear : (3,) float, m/s
        Velocity v of the centre.
    angular : (3,) float, rad/s
        Angular velocity ω, about axes of the world.
    centre : (3,) float, metres, optional
        The point in the world about which it turns, at time 0; by default the origin of the mesh.

    Raises
    ------
    SetsupError
        If a number is not finite, or the matrix is not a rotation.

    Examples
    --------
    >>> import math
    >>> motion = Velocity(translation=(1, 0, 0), linear=(0, 0, 3), angular=(0, 0, math.pi / 2), centre=(0, 0, 0))
    >>> motion.pose([0, 1]).translation.round(9).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 3.0]]

    """

    rotation: Reals = field(default_factory=lambda: np.eye(3))
    translation: Reals = field(default_factory=lambda: np.zeros(3))
    linear: Reals = field(default_factory=lambda: np.zeros(3))
    angular: Reals = field(default_factory=lambda: np.zeros(3))
    centre: Reals | None = None

    def __post_init__(self) -> None:
        """Check the numbers; arrays are kept read-only."""
        object.__setattr__(self, "rotation", check_rotation(self.rotation, "rotation of a motion"))
        for name in ("translation", "linear", "angular", "centre"):
            value = self.translation if getattr(self, name) is None else getattr(self, name)
            object.__setattr__(self, name, check_numbers(value, (3,), f"{name} of a motion"))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields; whoever unpickles them gets read-only arrays again."""
        return Velocity, (self.rotation, self.translation, self.linear, self.angular, self.centre)

    def pose(self, time: npt.ArrayLike) -> Pose:
        """Pose at times; see :meth:`Keyframes.pose`. Raises a SetsupError if it turns by more than 10⁹ radians."""
        at = _checked(time)[..., None]
        turned = _turned_at(at, self.angular)
        centre = self.translation if self.centre is None else self.centre
        arm = product(turned, self.translation - centre)
        return Pose(product(turned, self.rotation), centre + at * self.linear + arm)


@dataclass(frozen=True, eq=False)
class Path:
    """A way through points, smooth or straight, while turning at a constant rate.

    A smooth path is a cubic Hermite spline through all points, whose velocity at a point is that from the point before
    to the point after it (as in Catmull-Rom splines); otherwise the points are joined by straight lines. Before the
    first and after the last point, the place is that of the point. The rotation is as that of :class:`Velocity`, at all
    times.

    Parameters
    ----------
    times : (n,) float, seconds
        Times at which the points are passed; increasing, at least one.
    points : (n, 3) float, metres
        Points in the world that the origin of the mesh passes.
    rotation : (3, 3) float
        Rotation at time 0; none by default.
    angular : (3,) float, rad/s
        Angular velocity, about axes of the world.
    smooth : bool
        Whether the path is a spline.

    Raises
    ------
    SetsupError
        If shapes differ, a number is not finite, times do not increase, or the matrix is not a rotation.

    Examples
    --------
    >>> corner = [0, 1, 2], [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    >>> Path(*corner, smooth=False).pose(0.5).translation.tolist(), Path(*corner).pose(0.5).translation.tolist()
    ([0.5, 0.0, 0.0], [0.5625, -0.0625, 0.0])

    """

    times: Reals
    points: Reals
    rotation: Reals = field(default_factory=lambda: np.eye(3))
    angular: Reals = field(default_factory=lambda: np.zeros(3))
    smooth: bool = True

    def __post_init__(self) -> None:
        """Check the numbers; arrays are kept read-only."""
        object.__setattr__(self, "times", _times_of(self.times, "times of a path"))
        object.__setattr__(self, "points", check_numbers(self.points, (len(self.times), 3), "points of a path"))
        object.__setattr__(self, "rotation", check_rotation(self.rotation, "rotation of a path"))
        object.__setattr__(self, "angular", check_numbers(self.angular, (3,), "angular velocity of a path"))
        object.__setattr__(self, "smooth", check_boolean(self.smooth, "smooth", SetsupError))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields; whoever unpickles them gets read-only arrays again."""
        return Path, (self.times, self.points, self.rotation, self.angular, self.smooth)

    def pose(self, time: npt.ArrayLike) -> Pose:
        """Pose at times; see :meth:`Velocity.pose`."""
        seconds = _checked(time)
        rotation = product(_turned_at(seconds[..., None], self.angular), self.rotation)
        at, share = _legs(self.times, seconds)
        if len(self.times) == 1:
            return Pose(rotation, self.points[at])
        straight = _between(self.points, at, share)
        if not self.smooth:
            return Pose(rotation, straight)
        span = (self.times[at + 1] - self.times[at])[..., None]
        along = self.points[at + 1] - self.points[at]
        speeds = self._speeds()
        # the cubic differs from the straight line by how velocities at both ends differ from that along it
        here, there = share[..., None], 1 - share[..., None]
        bend = there * (span * speeds[at] - along) - here * (span * speeds[at + 1] - along)
        return Pose(rotation, straight + here * there * bend)

    def _speeds(self) -> Reals:
        """Velocities at the points, (n, 3)."""
        before, after = np.arange(len(self.times)) - 1, np.arange(len(self.times)) + 1
        before[0], after[-1] = 0, len(self.times) - 1
        return np.asarray(
            (self.points[after] - self.points[before]) / (self.times[after] - self.times[before])[:, None]
        )


def moved(scene: Scene, motions: Mapping[int, Motion], time: float) -> Scene:
    """Scene at a time: some placements moved, all others as they are.

    Parameters
    ----------
    scene : Scene
        Things, lights and background.
    motions : mapping of int to Motion
        Motions by the number of the placement.
    time : float, seconds
        Time.

    Returns
    -------
    Scene
        With the same meshes, scales, names, lights and background.

    Raises
    ------
    SetsupError
        If there is no such placement, a motion has no pose, or the time is not a finite number.

    Examples
    --------
    >>> from setsup.scenes import Placement
    >>> from setsup.scenes.meshes.primitives import box
    >>> scene = Scene((Placement(box((1, 1, 1))), Placement(box((1, 1, 1)), name="moving")))
    >>> later = moved(scene, {1: Velocity(linear=(0, 2, 0))}, 0.5)
    >>> later.placements[1].translation.tolist(), same_placements(scene, later)
    ([0.0, 1.0, 0.0], True)

    """
    check_arguments(moved, locals(), DataError)
    seconds = check_number(time, "time", SetsupError)
    placements = list(scene.placements)
    for number, motion in motions.items():
        at = check_integer(number, "number of a placement that moves", SetsupError, 0, len(placements) - 1)
        if isinstance(motion, type) or not isinstance(motion, Motion):
            raise SetsupError(
                f"the motion of placement {at} must have a method pose(time), as Keyframes, Velocity and Path have, "
                f"but {abbreviate(motion)} has none"
            )
        pose = motion.pose(seconds)
        placements[at] = replace(placements[at], rotation=pose.rotation, translation=pose.translation)
    return replace(scene, placements=tuple(placements))


def same_placements(one: Scene, two: Scene) -> bool:
    """Whether two scenes are one scene at two times: equal meshes, scales, names and instances, in one order.

    Parameters
    ----------
    one, two : Scene
        Scenes; lights and backgrounds do not count.

    Examples
    --------
    >>> same_placements(Scene(), Scene(background=None))
    True

    """
    if one is two:
        return True
    return len(one.placements) == len(two.placements) and all(
        first is second
        or (
            (first.mesh is second.mesh or first.mesh.digest == second.mesh.digest)
            and bool((first.scale == second.scale).all())
            and (first.name, first.instance) == (second.name, second.instance)
        )
        for first, second in zip(one.placements, two.placements, strict=True)
    )


def _times_of(values: npt.ArrayLike, what: str) -> Reals:
    """Increasing times, (n,), read-only."""
    given = check_array(values, what, SetsupError, np.float64)
    times = check_numbers(given, (given.size,), what)
    if not len(times) or (np.diff(times) <= 0).any():
        raise SetsupError(f"{what} must be one or more increasing numbers, not {times.tolist()}")
    return times


def _checked(time: npt.ArrayLike) -> Reals:
    seconds = check_array(time, "time", SetsupError, np.float64)
    if not np.isfinite(seconds).all():
        raise SetsupError("times must be finite numbers of seconds")
    return seconds


def _legs(times: Reals, at: Reals) -> tuple[npt.NDArray[np.int64], Reals]:
    """For each time, the number of the last keyframe before it, and the share of the way to the next, 0 … 1."""
    if len(times) == 1:
        return np.zeros(at.shape, np.int64), np.zeros(at.shape)
    leg = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    return leg, np.clip((at - times[leg]) / (times[leg + 1] - times[leg]), 0.0, 1.0)


def _between(points: Reals, at: npt.NDArray[np.int64], share: Reals) -> Reals:
    """Points on straight lines, which end exactly where the next begins."""
    part = share[..., None]
    return np.where(part == 1, points[at + 1], points[at] + part * (points[at + 1] - points[at]))


def _turned_at(times: Reals, angular: Reals) -> Reals:
    """Rotations at times (..., 1) by an angular velocity (3,), (..., 3, 3)."""
    with np.errstate(over="ignore"):
        vectors = times * angular
        most = float(length(vectors).max(initial=0.0))
    if not most <= _MOST:
        raise SetsupError(
            f"a motion turns by {most:g} radians, more than {_MOST:g}, beyond which float64 does not give its "
            "direction; use a lower angular velocity, or times closer to 0"
        )
    return rotation_matrix(vectors)
