"""Where rays meet the Shapes3D objects: cube, cylinder, sphere and capsule, as exact surfaces.

Convention
----------
As in :mod:`setsup.scenes.shapes3d`. Directions need not be unit vectors; distances along a ray are in multiples of
its direction. Only ``+ − × ÷ √``, minimum, maximum and comparisons are used, each rounded correctly by IEEE 754: the
numbers are the same on every machine.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setsup.scenes.shapes3d import Framing

__all__ = ["Hit", "Vector", "dot", "meet", "unit", "vector"]

Array = NDArray[np.float64]
Vector = tuple[Array, Array, Array]
"""x, y and z as arrays of one shape, or that broadcast."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Where rays first meet an object from outside.

    `distance` (n,) float64.
    """

    distance: Array
    normal: Vector


def vector(x: float, y: float, z: float) -> Vector:
    """One vector for all rays."""
    return np.array([x]), np.array([y]), np.array([z])


def dot(a: Vector, b: Vector) -> Array:
    """Dot product, added from x to z."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def unit(a: Vector) -> Vector:
    """Vectors scaled to length 1."""
    length = np.sqrt(dot(a, a))
    return a[0] / length, a[1] / length, a[2] / length


def meet(shape: str, scale: float, framing: Framing, origin: Vector, direction: Vector) -> Hit:
    """First intersection of rays with the object that stands on the floor at the origin."""
    if shape == "cube":
        half = framing.cube_half_side * scale
        return _box(half, origin, direction)
    if shape == "cylinder":
        return _cylinder(framing.cylinder_radius * scale, 0.0, framing.cylinder_height * scale, origin, direction)
    if shape == "sphere":
        radius = framing.sphere_radius * scale
        return _sphere(radius, radius, origin, direction)
    return _capsule(framing.capsule_radius * scale, framing.capsule_straight * scale, origin, direction)


def _slab(low: float, high: float, start: Array, step: Array) -> tuple[Array, Array]:
    """Where rays enter and leave the space between two parallel planes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (low - start) / step, (high - start) / step
    # A ray inside the slab and along it divides by zero twice: -inf and inf, as it should be.
    return np.fmin(first, second), np.fmax(first, second)


def _box(half: float, origin: Vector, direction: Vector) -> Hit:
    """Cube of half side ``half``, standing on the floor."""
    near_x, far_x = _slab(-half, half, origin[0], direction[0])
    near_y, far_y = _slab(-half, half, origin[1], direction[1])
    near_z, far_z = _slab(0.0, 2.0 * half, origin[2], direction[2])
    enter = np.maximum(np.maximum(near_x, near_y), near_z)
    leave = np.minimum(np.minimum(far_x, far_y), far_z)
    by_x = near_x == enter
    by_y = ~by_x & (near_y == enter)
    by_z = ~by_x & ~by_y
    x, y, z = (np.where(by, -np.sign(step), 0.0) for by, step in zip((by_x, by_y, by_z), direction, strict=True))
    return Hit(np.where((enter < leave) & (leave > 0.0), enter, np.inf), (x, y, z))


def _round(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Between which ``t`` the form ``a t² + 2 b t + c`` is negative (a = b = 0 or a > 0); inf and -inf if nowhere."""
    inside = b * b - a * c
    root = np.sqrt(np.maximum(inside, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.where(a > 0.0, (-b - root) / a, -np.inf), np.where(a > 0.0, (-b + root) / a, np.inf)
    some = np.where(a > 0.0, inside, -c) > 0.0
    return np.where(some, low, np.inf), np.where(some, high, -np.inf)


def _cylinder(radius: float, bottom: float, top: float, origin: Vector, direction: Vector) -> Hit:
    """Upright cylinder around the z axis between two heights, with its lids."""
    near_side, near_lid, distance = _to_cylinder(radius, bottom, top, origin, direction)
    side = near_side >= near_lid
    at = np.where(distance < np.inf, distance, 0.0)
    x = np.where(side, origin[0] + at * direction[0], 0.0)
    y = np.where(side, origin[1] + at * direction[1], 0.0)
    return Hit(distance, (x, y, np.where(side, 0.0, -np.sign(direction[2]))))


def _to_cylinder(
    radius: float, bottom: float, top: float, origin: Vector, direction: Vector
) -> tuple[Array, Array, Array]:
    """Distances to the endless cylinder and to the space between the lids, and to what is in both."""
    a = direction[0] * direction[0] + direction[1] * direction[1]
    b = origin[0] * direction[0] + origin[1] * direction[1]
    c = origin[0] * origin[0] + origin[1] * origin[1] - radius * radius
    near_side, far_side = _round(a, b, c)
    near_lid, far_lid = _slab(bottom, top, origin[2], direction[2])
    enter, leave = np.maximum(near_side, near_lid), np.minimum(far_side, far_lid)
    return near_side, near_lid, np.where((enter < leave) & (leave > 0.0), enter, np.inf)


def _sphere(radius: float, height: float, origin: Vector, direction: Vector) -> Hit:
    """Sphere with its centre on the z axis."""
    distance = _to_sphere(radius, height, origin, direction)
    at = np.where(distance < np.inf, distance, 0.0)
    x, y = origin[0] + at * direction[0], origin[1] + at * direction[1]
    return Hit(distance, (x, y, (origin[2] - height) + at * direction[2]))


def _to_sphere(radius: float, height: float, origin: Vector, direction: Vector) -> Array:
    """Distances to a sphere."""
    rise = origin[2] - height
    a = dot(direction, direction)
    b = origin[0] * direction[0] + origin[1] * direction[1] + rise * direction[2]
    c = origin[0] * origin[0] + origin[1] * origin[1] + rise * rise - radius * radius
    inside = b * b - a * c
    root = np.sqrt(np.maximum(inside, 0.0))
    return np.where((inside > 0.0) & (root > b), (-b - root) / a, np.inf)


def _capsule(radius: float, straight: float, origin: Vector, direction: Vector) -> Hit:
    """Cylinder between two spheres, which reach beyond its lids."""
    top = radius + straight
    _, _, side = _to_cylinder(radius, radius, top, origin, direction)
    low, high = (_to_sphere(radius, height, origin, direction) for height in (radius, top))
    ends = np.minimum(low, high)
    distance = np.minimum(side, ends)
    at = np.where(distance < np.inf, distance, 0.0)
    x, y = origin[0] + at * direction[0], origin[1] + at * direction[1]
    rise = np.where(low <= high, origin[2] - radius, origin[2] - top)
    return Hit(distance, (x, y, np.where(side <= ends, 0.0, rise + at * direction[2])))
