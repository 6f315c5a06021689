"""Meshes of simple bodies: plane, box, sphere, cylinder, capsule.

Convention
----------
Bodies are centred on the origin, with their axes along z; the plane lies in z = 0 and faces up. Corners of triangles
run counter-clockwise as seen from outside. Plane and box are flat; round surfaces carry the normals of the exact
surface, on which all their vertices lie, and the lids of a cylinder carry their own. A texture covers every side of a
box, the lids and the plane once, and goes once around what is round, its lower edge at the bottom.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_integer
from setsup.errors import SetsupError
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.portable import sin_cos

__all__ = ["box", "capsule", "cylinder", "plane", "sphere"]

Surface = tuple[Reals, npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.float32]]

_MOST_SEGMENTS = 4096
_SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
_HALVES = np.array([[0, 1, 2], [0, 2, 3]], np.int32)


def plane(size: Sequence[float] = (1.0, 1.0), *, material: Material | None = None) -> Mesh:
    """Rectangle in z = 0.

    Parameters
    ----------
    size : (x, y), metres
        Its sides.
    material : Material, optional
        Grey by default.

    Examples
    --------
    >>> plane((2, 1)).bounds.tolist()
    [[-1.0, -0.5, 0.0], [1.0, 0.5, 0.0]]

    """
    sides = _positive(size, 2, "the sides of a plane")
    vertices = np.concatenate([(_SQUARE - 0.5) * sides, np.zeros((4, 1))], axis=1)
    return Mesh(vertices, _HALVES, uv=_SQUARE, materials=(material or Material(),))


def box(size: Sequence[float] = (1.0, 1.0, 1.0), *, material: Material | None = None) -> Mesh:
    """Cuboid, of 12 triangles: two each of the sides at −x, +x, −y, +y, −z, +z.

    Parameters
    ----------
    size : (x, y, z), metres
        Its sides.
    material : Material, optional
        Grey by default.

    Examples
    --------
    >>> box((1, 2, 3)).bounds.tolist(), len(box().faces)
    ([[-0.5, -1.0, -1.5], [0.5, 1.0, 1.5]], 12)

    """
    sides = _positive(size, 3, "the sides of a box")
    # each side is told by the ways in which u and v run on it, with u × v outwards; walls have their v upwards
    x, y, z = np.eye(3)
    runs = [(-y, z), (y, z), (x, z), (-x, z), (-x, y), (x, y)]
    corners = [np.cross(u, v) / 2 + (_SQUARE - 0.5) @ np.stack([u, v]) for u, v in runs]
    faces = _HALVES + 4 * np.arange(6, dtype=np.int32)[:, None, None]
    uv = np.tile(_SQUARE, (6, 1))
    return Mesh(
        np.concatenate(corners) * sides,
        faces.reshape(-1, 3),
        uv=uv,
        materials=(material or Material(),),
    )


def sphere(radius: float = 0.5, *, segments: int = 64, material: Material | None = None) -> Mesh:
    """Ball.

    Parameters
    ----------
    radius : float, metres
        Of the ball.
    segments : int
        Edges of its equator, 3 or more; half as many, rounded down, from pole to pole. Where their number is even,
        triangles run at most ``radius · (1 − cos² (π / segments))`` below the surface.
    material : Material, optional
        Grey by default.

    Examples
    --------
    >>> ball = sphere(2, segments=32)
    >>> len(ball.faces), float(np.linalg.norm(ball.vertices, axis=1).min().round(12))
    (960, 2.0)

    """
    (radius,) = _positive([radius], 1, "the radius of a sphere")
    angle = np.linspace(
        -np.pi / 2, np.pi / 2, max(2, check_integer(segments, "segments", SetsupError, 3, _MOST_SEGMENTS) // 2) + 1
    )
    return _joined([_revolved(radius * _unit(angle), _unit(angle), segments)], material)


def cylinder(radius: float = 0.5, height: float = 1.0, *, segments: int = 64, material: Material | None = None) -> Mesh:
    """Upright cylinder with its lids.

    Parameters
    ----------
    radius, height : float, metres
        Of the cylinder.
    segments : int
        Edges of its lids, 3 or more.
    material : Material, optional
        Grey by default.

    Examples
    --------
    >>> cylinder(1, 3).bounds.round(12).tolist()
    [[-1.0, -1.0, -1.5], [1.0, 1.0, 1.5]]

    """
    radius, height = _positive([radius, height], 2, "radius and height of a cylinder")
    side = np.array([[radius, -height / 2], [radius, height / 2]])
    middle = side * [0, 1]
    return _joined(
        [
            _revolved(np.stack([middle[0], side[0]]), np.array([[0.0, -1], [0, -1]]), segments, lid=True),
            _revolved(side, np.array([[1.0, 0], [1, 0]]), segments),
            _revolved(np.stack([side[1], middle[1]]), np.array([[0.0, 1], [0, 1]]), segments, lid=True),
        ],
        material,
    )


def capsule(
    radius: float = 0.25, straight: float = 0.5, *, segments: int = 64, material: Material | None = None
) -> Mesh:
    """Upright cylinder with a half ball at each end.

    Parameters
    ----------
    radius : float, metres
        Of the cylinder and the half balls.
    straight : float, metres
        Height of the cylinder between them; the whole measures ``straight + 2 · radius``.
    segments : int
        Edges around it, 3 or more; half as many from pole to pole, and one for the straight part.
    material : Material, optional
        Grey by default.

    Examples
    --------
    >>> capsule(1, 3).bounds.round(12).tolist()
    [[-1.0, -1.0, -2.5], [1.0, 1.0, 2.5]]

    """
    radius, straight = _positive([radius, straight], 2, "radius and straight part of a capsule")
    half = np.linspace(
        0, np.pi / 2, max(1, check_integer(segments, "segments", SetsupError, 3, _MOST_SEGMENTS) // 4) + 1
    )
    normals = _unit(np.concatenate([-half[::-1], half]))
    middle = np.repeat([[0, -straight / 2], [0, straight / 2]], len(half), axis=0)
    return _joined([_revolved(radius * normals + middle, normals, segments)], material)


def _revolved(profile: Reals, normals: Reals, segments: int, lid: bool = False) -> Surface:
    """Surface of (distance from the axis, height) turned around z; the profile runs upwards on the outside."""
    turns = np.arange(check_integer(segments, "segments", SetsupError, 3, _MOST_SEGMENTS) + 1)
    angle = 2 * np.pi * (turns % segments) / segments  # the last column stands exactly on the first
    around = _unit(angle)

    def turned(rows: Reals) -> Reals:
        flat = rows[:, None, :1] * around
        return np.concatenate([flat, np.broadcast_to(rows[:, None, 1:], (*flat.shape[:2], 1))], axis=2).reshape(-1, 3)

    vertices = turned(profile)
    if lid:
        uv = 0.5 + vertices[:, :2] / (2 * profile[:, 0].max())
    else:
        along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(profile, axis=0), axis=1))])
        uv = np.stack(np.meshgrid(turns / segments, along / along[-1]), axis=-1).reshape(-1, 2)
    numbers = np.arange(len(profile) * len(turns)).reshape(len(profile), len(turns))
    here, right, above, beyond = numbers[:-1, :-1], numbers[:-1, 1:], numbers[1:, :-1], numbers[1:, 1:]
    triangles = np.stack([np.stack([here, right, beyond], axis=-1), np.stack([here, beyond, above], axis=-1)], axis=2)
    solid = np.ones(triangles.shape[:3], bool)
    solid[:, :, 0] = profile[:-1, :1] > 0  # at a pole one triangle of each quad has no area
    solid[:, :, 1] = profile[1:, :1] > 0
    return vertices, triangles[solid].astype(np.int32), turned(normals).astype(np.float32), uv.astype(np.float32)


def _joined(surfaces: list[Surface], material: Material | None) -> Mesh:
    """One mesh of surfaces: vertices, faces, normals and texture coordinates."""
    starts = np.cumsum([0, *(len(surface[0]) for surface in surfaces[:-1])], dtype=np.int32)
    return Mesh(
        np.concatenate([surface[0] for surface in surfaces]),
        np.concatenate([surface[1] + start for surface, start in zip(surfaces, starts, strict=True)]),
        np.concatenate([surface[2] for surface in surfaces]),
        np.concatenate([surface[3] for surface in surfaces]),
        materials=(material or Material(),),
    )


def _unit(angle: Reals) -> Reals:
    """(cos, sin) of angles from −π/2 to 2π, exactly 0 where quarters of a turn should be."""
    circle = np.stack(sin_cos(angle)[::-1], axis=1)
    circle[np.abs(circle) < 1e-15] = 0.0
    return circle


def _positive(values: Sequence[float], count: int, what: str) -> list[float]:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (count,) or not ((numbers > 0) & (numbers < np.inf)).all():
        raise SetsupError(f"{what} must be {count} positive lengths in metres, not {values!r}")
    return [float(value) for value in numbers]
