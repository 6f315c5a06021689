"""The floor of a room's mesh, found by random sample consensus [1]_, and the room turned so that it stands on z = 0.

Three points of the surface span a plane; of many such planes that are about level, those near which a large part of
the surface lies are kept, and of these the lowest is the floor: tables and ceilings lie higher. Points are drawn evenly
over the area, so that the density of a mesh does not matter, and by a fixed key, so that a mesh has one floor.

References
----------
.. [1] M. A. Fischler, R. C. Bolles, "Random sample consensus", Communications of the ACM 24(6), 1981.
.. [2] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks",
   arXiv:2512.04970, 2025, and its code, github.com/stefanradev93/oxels: planes within 0.05 m, the axis along which a
   room is shortest is up; theirs is the plane near which most of the surface lies, floor or not.

"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.errors import DataError, SetsupError
from setsup.random import fold, stream_key, uniform
from setsup.scenes.checks import check_numbers
from setsup.scenes.meshes.mesh import Mesh
from setsup.scenes.portable import length, product
from setsup.scenes.scene import Placement

__all__ = ["Floor", "direction", "find_floor", "levelled"]


_POINTS, _TRIPLES, _PLANES = 20_000, 40_000, 2_000  # of the triples, the first that span about level planes
_JUDGED = 4_000  # points by which planes are compared before the best is fitted to all
_STEEPEST = np.cos(np.radians(30))  # of a plane against what is taken for up
_SHARE = 1 / 3  # of what lies near the best plane must lie near a lower one, so that it is preferred
_NEAR = 0.05  # metres from a plane within which its points lie
_LEAST = 0.03  # of the area: less is no floor


@dataclass(frozen=True, slots=True)
class Floor:
    """A level plane in a mesh.

    Attributes
    ----------
    normal : (3,) float64
        Unit vector, upwards, in the frame of the mesh.
    height : float, metres
        ``normal · x`` of points x on the floor.
    share : float
        Part of the mesh's area that lies within 0.05 m of the plane.

    """

    normal: Reals
    height: float
    share: float

    @property
    def rotation(self) -> Reals:
        """Smallest rotation that turns the normal to +z, (3, 3) float64."""
        x, y, z = self.normal.tolist()
        if z < -1 + 1e-9:
            return np.diag([1.0, -1.0, -1.0])
        # Rodrigues' formula for the axis normal × z, whose sine and cosine are those of the normal itself
        return np.array(
            [
                [1 - x * x / (1 + z), -x * y / (1 + z), -x],
                [-x * y / (1 + z), 1 - y * y / (1 + z), -y],
                [x, y, z],
            ]
        )


def find_floor(mesh: Mesh, *, up: npt.ArrayLike | None = None) -> Floor:
    """Find the floor of a room.

    `up` (3,) float, optional.

    `up`: about what is up in the mesh's frame, within 30°. By default the positive direction of the axis along
    which the mesh is shortest (of equally long ones the last), as in the paper's code [2]_: right for most rooms,
    wrong for those that are higher than wide, and for those that stand on their heads.
    """
    above = _shortest(mesh) if up is None else direction(up)
    points = _surface(mesh)
    planes = _planes(points, above)
    some = points[:_JUDGED]
    near = np.zeros(len(planes))
    for start in range(0, len(planes), 256):  # in blocks that stay in the cache
        part = planes[start : start + 256]
        near[start : start + 256] = (np.abs(product(some, part[:, :3].T) - part[:, 3]) < _NEAR).mean(axis=0)
    good = np.flatnonzero(near >= max(_LEAST, _SHARE * near.max(initial=0.0)))
    middle = points.mean(axis=0)
    # heights where the middle of the room stands, so that planes that are tilted differently can be compared
    levels = (planes[:, 3] - product(planes[:, :3], middle)) / product(planes[:, :3], above)
    tried = -np.inf
    for start in good[np.argsort(levels[good], kind="stable")].tolist():
        if levels[start] < tried + _NEAR:
            continue
        tried = levels[start]
        # planes about as high as this one are other guesses at the same floor: the best of them is fitted
        peers = good[np.abs(levels[good] - levels[start]) < 2 * _NEAR]
        floor = _fitted(planes[peers[np.argmax(near[peers])]], points)
        if floor is not None and product(floor.normal, above) >= _STEEPEST:
            return floor
    sides = " × ".join(f"{side:.3g}" for side in np.ptp(mesh.bounds, axis=0))
    raise DataError(
        f"found no floor in a mesh of {sides} m with the up direction {above.round(3).tolist()}: no level plane "
        f"contains {_LEAST:.0%} of the area of the mesh within {_NEAR:g} m; check the up direction and the unit"
    )


def levelled(mesh: Mesh, *, up: npt.ArrayLike | None = None) -> Placement:
    """Place a room so that its floor is z = 0 and up is +z; its middle stands at x = y = 0."""
    floor = find_floor(mesh, up=up)
    rotation = floor.rotation
    turned = product(mesh.vertices[np.unique(mesh.faces)], rotation.T)
    middle = (turned.min(axis=0) + turned.max(axis=0)) / 2
    return Placement(mesh, rotation, np.array([-middle[0], -middle[1], -floor.height]), name="room")


def direction(up: npt.ArrayLike) -> Reals:
    """Unit vector, (3,) float64, of what is told to be up in a room."""
    way = check_numbers(up, (3,), "up of a room")
    with np.errstate(over="ignore"):
        far = length(way)
    if not 0 < far < np.inf:
        raise SetsupError(f"up of a room must be a direction, such as (0, 1, 0), not {up!r}")
    return np.asarray(way / far)


def _shortest(mesh: Mesh) -> Reals:
    """Unit vector along the axis along which a mesh is shortest; of equally long ones the last."""
    sides = np.ptp(mesh.bounds, axis=0)
    return np.roll((0.0, 0.0, 1.0), -int(np.argmin(sides[::-1])))


def _surface(mesh: Mesh) -> Reals:
    """Points spread evenly over the area of a mesh, in random order, (n, 3)."""
    corners = mesh.corners
    sides = corners[:, 1:] - corners[:, :1]
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    total = np.cumsum(areas)
    if not total[-1] > 0:
        raise DataError("found no floor in a mesh without area: all triangles are degenerate; check the mesh")
    keys = fold(stream_key(0, "room floor points"), np.arange(_POINTS))
    at = uniform(fold(keys[:, None], np.arange(3)))
    face = np.minimum(np.searchsorted(total, at[:, 0] * total[-1], side="right"), len(total) - 1)
    root = np.sqrt(at[:, 1])  # the square root spreads points evenly over a triangle
    weights = np.stack([root * (1 - at[:, 2]), root * at[:, 2]], axis=1)
    return np.asarray(corners[face, 0] + (weights[:, :, None] * sides[face]).sum(axis=1))


def _planes(points: Reals, above: Reals) -> Reals:
    """About level planes through three points each: normal and height, (n, 4)."""
    keys = fold(stream_key(0, "room floor planes"), np.arange(_TRIPLES))
    three = points[(uniform(fold(keys[:, None], np.arange(3))) * len(points)).astype(np.int64)]
    normals = np.cross(three[:, 1] - three[:, 0], three[:, 2] - three[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    rising = product(normals, above)
    level = (lengths > 0) & (np.abs(rising) >= _STEEPEST * lengths)
    normals = normals[level] * (np.sign(rising[level]) / lengths[level])[:, None]
    return np.concatenate([normals, (normals * three[level, 0]).sum(axis=1)[:, None]], axis=1)[:_PLANES]


def _fitted(plane: Reals, points: Reals) -> Floor | None:
    """Plane of least squares through the points near a plane; None where they are no plane at all."""
    normal, height = plane[:3], float(plane[3])
    reach = _NEAR
    for _ in range(8):
        away = np.abs(product(points, normal) - height)
        near = points[away < reach]
        if len(near) < 3:
            return None
        # what is many times as far as most is no floor, but walls and feet that stand on it, and would lift the plane
        reach = min(_NEAR, max(4 * float(np.median(away[away < reach])), 1e-3))
        middle = near.mean(axis=0)
        spread = near - middle
        moments = (spread[:, :, None] * spread[:, None]).sum(axis=0)
        # the last bits of an eigenvector are not the same everywhere: a step of the grid is 1 µm in a room of 10 m
        least = np.linalg.eigh(moments)[1][:, 0].round(7)
        normal = (least if product(least, normal) >= 0 else -least) / length(least)
        height = float(product(normal, middle))
    away = np.abs(product(points, normal) - height)
    inside, beside = (away < _NEAR).mean(), ((away >= _NEAR) & (away < 3 * _NEAR)).mean()
    # walls, slopes and balls have as much area in every slice; a floor stands out against the slices above and below
    return Floor(normal, height, float(inside)) if inside >= _LEAST and inside >= beside else None
