"""What a pixel shows, computed from its triangle and the ray through its centre in float64, for every renderer alike.

Convention
----------
The point of a pixel is where the ray through its centre meets its triangle. Where the ray passes beside the triangle,
as on an edge that a renderer in float32 sees elsewhere, it is a point on the triangle's edge.

- ``barycentrics``: shares of the triangle's three corners, which add up to 1; (0, 0, 0) where there is nothing.
- ``object_coordinates``: the point in the frame of its object (see :mod:`setsup.rendered.objects`), metres: what its
  mesh has there, times the placement's scale; NaN where there is nothing.
- ``nocs``: the same about the middle of the object's tight axis-aligned box, divided by the box's diagonal, and 0.5
  added: 0 … 1 ([1]_, section 3); (0, 0, 0) where there is nothing, which no point has.
- ``uv``: texture coordinates as the mesh has them, also outside 0 … 1; NaN where there is nothing, or the mesh has no
  such coordinates.
- ``albedo``: colour of material, texture and vertices without light, sRGB; black where there is nothing.
- ``material``: number of the material, by :func:`materials`; −1 where there is nothing.

References
----------
.. [1] H. Wang, S. Sridhar, J. Huang, J. Valentin, S. Song, L. Guibas, "Normalized Object Coordinate Space for
   Category-Level 6D Object Pose and Size Estimation", CVPR 2019.

"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Numbers, Reals
from setsup.errors import DataError, did_you_mean
from setsup.rendered.modalities import describe
from setsup.rendered.objects import amodal_masks, object_poses, objects_of
from setsup.scenes import Camera, Material, Scene
from setsup.scenes.color import to_bytes
from setsup.scenes.surfaces.appearance import appearance_of
from setsup.scenes.surfaces.per_scene import PerScene

__all__ = ["COMPUTED", "OF_INSTANCES", "barycentric", "materials", "pixel_outputs"]

_PIXELS = 1 << 13  # at a time, so that what they need stays in the processor's cache


def pixel_outputs(
    scene: Scene, camera: Camera, triangle: npt.ArrayLike, names: Iterable[str], instances: int | None = None
) -> dict[str, Array]:
    """Compute what the pixels of an image show from the triangles that a renderer found.

    Parameters
    ----------
    scene : Scene
        What is shown.
    camera : Camera
        From where.
    triangle : (H, W) int32
        Triangle of each pixel, as :attr:`setsup.scenes.Frame.triangle` has it; −1 for nothing.
    names : iterable of str
        Names of outputs: those of the module; ``pose`` (4, 4) float64, from the camera's frame to the world;
        ``intrinsics`` (3, 3) float64, pixels; and those of instances. ``mask`` (H, W, ⌈K / 8⌉) uint8 has bit
        k modulo 8, from the lowest, of byte ⌊k / 8⌋ set where the ray meets the object with number k, whatever stands
        before it. ``object_poses`` (K, 4, 4) float64 are rigid, from the frames of the objects to the camera's, metres;
        NaN where the scene has no object of that number.
    instances : int, optional
        K; by default 1 + the largest number of an instance of the scene.

    Returns
    -------
    dict of str to array
        In the order of the names: float32 ``barycentrics`` (H, W, 3), ``object_coordinates`` (H, W, 3), ``nocs``
        (H, W, 3) and ``uv`` (H, W, 2), uint8 ``albedo`` (H, W, 3), int32 ``material`` (H, W), and the others.

    Raises
    ------
    DataError
        When a name is unknown, the triangles are not those of an image of the camera and the scene, or the scene has an
        instance of a number from K on.

    Examples
    --------
    >>> from setsup.scenes import Mesh, Placement
    >>> mesh = Mesh([[0, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> scene = Scene((Placement(mesh, translation=(0, 0, 4), scale=(2, 2, 2)),))
    >>> camera = Camera(1, 2, [[4, 0, 0], [0, 4, 0], [0, 0, 1]], np.eye(3), np.zeros(3))
    >>> found = pixel_outputs(scene, camera, [[0, 0]], ["object_coordinates", "barycentrics", "nocs"])
    >>> found["object_coordinates"][0, 1].tolist(), found["barycentrics"][0, 1].tolist()
    ([1.0, 0.0, 0.0], [0.75, 0.25, 0.0])
    >>> found["nocs"][0, 0].astype(float).round(3).tolist()
    [0.053, 0.276, 0.5]

    """
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in COMPUTED:
            raise DataError(f"{name!r} is not an output of pixels{did_you_mean(name, COMPUTED)}")
    seen = _checked(triangle, scene, camera) if set(wanted) & {*_OF_PIXELS, "mask"} else np.asarray(triangle)
    maps = _maps(scene, camera, seen, [name for name in wanted if name in _OF_PIXELS])
    slots = max(scene.names, default=0) + 1 if instances is None else instances
    for name in wanted:
        if name in _OF_CAMERA:
            maps[name] = _OF_CAMERA[name](camera)
        elif name == "mask":
            maps[name] = amodal_masks(scene, camera, seen, slots)
        elif name == "object_poses":
            maps[name] = object_poses(scene, camera, slots)
    return {name: maps[name] for name in wanted}


def _checked(triangle: npt.ArrayLike, scene: Scene, camera: Camera) -> Numbers:
    """Triangles of an image of a scene."""
    seen: Numbers = np.asarray(triangle)
    count = len(scene.triangles.face)
    if seen.shape != (camera.height, camera.width) or not np.issubdtype(seen.dtype, np.integer):
        raise DataError(
            f"triangles of an image of {camera.height} × {camera.width} pixels must be integers of that shape, not "
            f"{seen.dtype} of shape {seen.shape}"
        )
    if seen.size and not -1 <= seen.min() <= seen.max() < count:
        raise DataError(f"triangles must be from -1 to {count - 1}, but the image has {seen.min()} to {seen.max()}")
    return seen


def _maps(scene: Scene, camera: Camera, triangle: Numbers, names: list[str]) -> dict[str, Array]:
    """Those that have a value for each pixel."""
    maps = {}
    for name in names:
        about = describe(name, (camera.height, camera.width))
        last = [length or 1 for length in about.shape[2:]]
        maps[name] = np.full((triangle.size, *last), _OF_PIXELS[name][1], about.dtype)
    if names:
        corner, right, below = camera.rays([[0, 0], [1, 0], [0, 1]])
        across, down, flat = right - corner, below - corner, triangle.reshape(-1)
        for start in range(0, triangle.size, _PIXELS):
            some = start + np.flatnonzero(flat[start : start + _PIXELS] >= 0)
            y, x = np.divmod(some, camera.width)
            ways = corner[:, None] + across[:, None] * x + down[:, None] * y
            points = _Points(scene, camera, flat[some], ways)
            whole = len(some) == len(flat[start : start + _PIXELS])
            for name in names:
                maps[name][slice(start, start + _PIXELS) if whole else some] = _OF_PIXELS[name][0](points)
    return {name: values.reshape(*triangle.shape, *values.shape[1:]) for name, values in maps.items()}


class _Points:
    """Points that pixels show."""

    def __init__(self, scene: Scene, camera: Camera, triangle: Numbers, ways: Reals) -> None:
        self.scene, self.triangle = scene, triangle
        self._corners = _columns(scene).take(triangle, axis=1)
        self.u, self.v = barycentric(camera.centre, ways, self._corners)

    @cached_property
    def owner(self) -> npt.NDArray[np.int64]:
        """Rows of their objects."""
        return objects_of(self.scene).owners.take(self.scene.triangles.placement.take(self.triangle))

    @cached_property
    def local(self) -> Reals:
        """In the frames of their objects, (3, n)."""
        frames = objects_of(self.scene).frames
        place = [_of(frames[:, axis, 3], self.owner) for axis in range(3)]
        moved = self._corners[:3] + self.u * self._corners[3:6] + self.v * self._corners[6:9] - place
        return np.stack([_dot([_of(frames[:, row, axis], self.owner) for row in range(3)], moved) for axis in range(3)])


def _of(values: Reals, rows: npt.NDArray[np.int64]) -> Reals:
    """Values of some rows; one number where there is one row alone."""
    return values if len(values) == 1 else values.take(rows)


def _barycentrics(points: _Points) -> Reals:
    return np.stack([np.maximum(1 - points.u - points.v, 0), points.u, points.v], axis=1) + 0.0  # never −0


def _nocs(points: _Points) -> Reals:
    objects = objects_of(points.scene)
    diagonals = np.maximum(objects.diagonals, np.finfo(np.float64).tiny)  # a mesh may be a single point
    centred = points.local - [_of(middle, points.owner) for middle in objects.centres.T]
    return (centred / _of(diagonals, points.owner) + 0.5).T


def _albedo(points: _Points) -> Array:
    return to_bytes(appearance_of(points.scene).albedo(points.triangle, points.u, points.v))


def _uv(points: _Points) -> Reals:
    return appearance_of(points.scene).uv(points.triangle, points.u, points.v)


def _material(points: _Points) -> Numbers:
    return _numbered(points.scene)[appearance_of(points.scene).material.take(points.triangle)]


_OF_PIXELS: Mapping[str, tuple[Callable[[_Points], Array], float]] = {
    "nocs": (_nocs, 0),
    "object_coordinates": (lambda points: points.local.T, np.nan),
    "uv": (_uv, np.nan),
    "barycentrics": (_barycentrics, 0),
    "albedo": (_albedo, 0),
    "material": (_material, -1),
}
"""What computes each output of pixels, and what stands for nothing."""


def materials(scene: Scene) -> tuple[Material, ...]:
    """Materials of a scene by the numbers that ``material`` has: equal materials have one number.

    Numbers follow the order of the placements and of their meshes' materials; those that no triangle has count, too.

    Parameters
    ----------
    scene : Scene
        Any.

    Returns
    -------
    tuple of Material

    Examples
    --------
    >>> from setsup.scenes import Mesh, Placement
    >>> sides = [Material((255, 0, 0)), Material((0, 0, 255)), Material((255, 0, 0))]
    >>> mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], materials=sides)
    >>> [material.color for material in materials(Scene((Placement(mesh), Placement(mesh))))]
    [(255, 0, 0), (0, 0, 255)]

    """
    found: dict[str, Material] = {}
    for material in appearance_of(scene).materials:
        found.setdefault(material.digest, material)
    return tuple(found.values())


def _number(scene: Scene) -> Numbers:
    """Number of each material of the appearance."""
    numbers = {material.digest: number for number, material in enumerate(materials(scene))}
    return np.array([numbers[material.digest] for material in appearance_of(scene).materials], np.int32)


_numbered = PerScene(_number)


def _column(scene: Scene) -> Reals:
    """First corners of triangles, and the ways to the others, (9, n): fetched faster than rows."""
    a, b, c = (scene.triangles.corners[:, corner].T for corner in range(3))
    return np.concatenate([a, b - a, c - a])


_columns = PerScene(_column)


def _pose(camera: Camera) -> Reals:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = camera.rotation.T, camera.centre
    return pose


_OF_CAMERA: Mapping[str, Callable[[Camera], Array]] = {"pose": _pose, "intrinsics": lambda camera: camera.k}


def barycentric(origin: Reals, ways: Reals, corners: Reals) -> tuple[Reals, Reals]:
    """Shares of the second and third corner of triangles where rays meet them, (n,) each [1]_.

    `origin` (3,); `ways` (3, n); `corners` (9 or more, n): a, b − a and c − a. Where a ray passes beside its triangle,
    the shares are those of a point on an edge of it.

    References
    ----------
    .. [1] T. Möller, B. Trumbore, "Fast, minimum storage ray/triangle intersection", Journal of Graphics Tools 2(1),
       1997.

    """
    a, first, second = corners[:3], corners[3:6], corners[6:9]
    start = origin[:, None] - a
    p, q = _cross(ways, second), _cross(start, first)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1 / _dot(first, p)
        u, v = _dot(start, p) * scale, _dot(ways, q) * scale
    outside = np.flatnonzero(~((u >= 0) & (v >= 0) & (u + v <= 1)))
    if len(outside):
        shares = np.stack([1 - u[outside] - v[outside], u[outside], v[outside]])
        shares = np.maximum(np.nan_to_num(shares, nan=1 / 3, posinf=1e300, neginf=0), 0)
        shares /= shares.max(axis=0)  # the largest first, since a sum may overflow
        u[outside], v[outside] = shares[1:] / shares.sum(axis=0)
    return u, v


def _cross(a: Reals, b: Reals) -> Reals:
    found = np.empty_like(b)
    for axis in range(3):
        first, second = (axis + 1) % 3, (axis + 2) % 3
        np.subtract(a[first] * b[second], a[second] * b[first], out=found[axis])
    return found


def _dot(a: Sequence[Reals] | Reals, b: Reals) -> Reals:
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


OF_INSTANCES = ("mask", "object_poses")
"""Outputs with room for a number of instances."""

COMPUTED = (*_OF_PIXELS, *_OF_CAMERA, *OF_INSTANCES)
"""Names of all outputs."""
