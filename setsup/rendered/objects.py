"""Objects of a scene: their frames, their boxes, where they are for a camera, and what they would cover alone.

An object is what has one number in images of instances: a placement, or all placements that share a number. Its frame
is that of its (first) placement after scaling: x of the frame is at R x + t in the world, with the placement's rotation
and translation, so that lengths are metres.
"""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bytes, Floats, Numbers, Reals
from setsup.errors import DataError
from setsup.scenes import Camera, Placement, Scene
from setsup.scenes.rays import Rays
from setsup.scenes.surfaces.per_scene import PerScene

__all__ = ["Objects", "amodal_masks", "object_poses", "objects_of", "pack"]

_NEAR = 1e-6  # metres before a camera, from where on a box has a place in the image


class Objects:
    """Objects of a scene.

    Attributes
    ----------
    numbers : list of int
        Of the objects, as in images of instances, in the order of their first placements.
    owners : (p,) int64
        For each placement, the row of its object.
    frames : (n, 4, 4) float64
        From the object's frame to the world: rotation and translation.
    lows, highs : (n, 3) float64, metres
        Tight box in the object's frame.

    """

    def __init__(self, scene: Scene) -> None:
        parts: dict[int, list[Placement]] = {}
        owners = []
        for row, placement in enumerate(scene.placements):
            number = row if placement.instance is None else placement.instance
            parts.setdefault(number, []).append(placement)
            owners.append(number)
        self.numbers = list(parts)
        self.owners = np.array([self.numbers.index(number) for number in owners], np.int64)
        self.frames: Reals = np.tile(np.eye(4), (len(parts), 1, 1))
        self.lows, self.highs = np.zeros((2, len(parts), 3))
        for row, placements in enumerate(parts.values()):
            first = placements[0]
            self.frames[row, :3, :3], self.frames[row, :3, 3] = first.rotation, first.translation
            corners = [_in_frame(placement, first) for placement in placements]
            self.lows[row] = np.min([points.min(axis=0) for points in corners], axis=0)
            self.highs[row] = np.max([points.max(axis=0) for points in corners], axis=0)
        self._parts = [tuple(placements) for placements in parts.values()]
        self._rays: dict[int, Rays] = {}

    def rays(self, row: int) -> Rays:
        """Rays through an object alone."""
        if row not in self._rays:
            self._rays[row] = Rays(Scene(self._parts[row]))
        return self._rays[row]

    @property
    def centres(self) -> Reals:
        """Middles of the boxes, (n, 3) float64, metres."""
        return (self.lows + self.highs) / 2

    @property
    def diagonals(self) -> Reals:
        """Lengths of the boxes' diagonals, (n,) float64, metres."""
        return np.asarray(np.linalg.norm(self.highs - self.lows, axis=1))


def _in_frame(placement: Placement, first: Placement) -> Reals:
    """Corners of a placement's triangles in the frame of an object."""
    mesh = placement.mesh
    if placement is first:  # not by way of the world, which would round
        return np.asarray(mesh.bounds * placement.scale)
    return np.asarray((placement.placed(mesh.vertices[np.unique(mesh.faces)]) - first.translation) @ first.rotation)


objects_of = PerScene(Objects)
"""The objects of each scene."""


def _numbers(objects: Objects, count: int) -> list[int]:
    """Numbers of objects, each below the count."""
    if objects.numbers and max(objects.numbers) >= count:
        raise DataError(
            f"its scene has an instance with the number {max(objects.numbers)}, but arrays of instances have room for "
            f"0 to {count - 1}; give the recipe an attribute instances, 1 + the largest number of an instance"
        )
    return objects.numbers


def object_poses(scene: Scene, camera: Camera, count: int) -> Reals:
    """From the frame of each object to the camera's, (count, 4, 4) float64; NaN for numbers without an object."""
    objects, poses = objects_of(scene), np.full((count, 4, 4), np.nan)
    to_camera = np.eye(4)
    to_camera[:3, :3], to_camera[:3, 3] = camera.rotation, camera.translation
    poses[_numbers(objects, count)] = to_camera @ objects.frames
    return poses


def pack(covered: npt.NDArray[np.bool_]) -> Bytes:
    """Masks (..., k) as bits of bytes (..., ⌈k / 8⌉), the first in the lowest bit."""
    return np.packbits(covered, axis=-1, bitorder="little")


def amodal_masks(scene: Scene, camera: Camera, triangle: Numbers, count: int) -> Bytes:
    """Which objects the ray through each pixel's centre meets, whatever stands before them.

    `triangle` (h, w) int32 is what is seen; returns (h, w, ⌈count / 8⌉) uint8: bit k modulo 8 of byte ⌊k / 8⌋ is that
    of the object with number k. What is seen is always covered.
    """
    objects = objects_of(scene)
    masks = np.zeros((camera.height, camera.width, -(-count // 8)), np.uint8)
    instance = np.append(scene.triangles.instance, np.int32(-1))[triangle]
    ways = _ways(camera)
    for row, number in enumerate(_numbers(objects, count)):
        window = _window(objects, row, camera)
        covered = instance[window] == number
        hidden = np.nonzero(~covered)
        covered[hidden] = _met(objects.rays(row), camera, ways[window][hidden])
        masks[(*window, number // 8)] |= covered.astype(np.uint8) << np.uint8(number % 8)
    return masks


def _ways(camera: Camera) -> Floats:
    """Rays through the centres of all pixels, (h, w, 3), several times as fast as :meth:`Camera.rays`."""
    corner, right, below = camera.rays([[0, 0], [1, 0], [0, 1]])
    across = np.arange(camera.width)[:, None] * (right - corner)
    down = corner + np.arange(camera.height)[:, None] * (below - corner)
    ways: Floats = (down[:, None] + across).astype(np.float32)
    return ways


def _met(rays: Rays, camera: Camera, ways: Floats) -> npt.NDArray[np.bool_]:
    return rays.blocked(camera.centre, ways, np.inf)


def _window(objects: Objects, row: int, camera: Camera) -> tuple[slice, slice]:
    """Rows and columns of pixels outside of which an object is not seen."""
    box = np.stack([objects.lows[row], objects.highs[row]])
    corners = np.stack([box[list(which), [0, 1, 2]] for which in np.ndindex(2, 2, 2)])
    frame = objects.frames[row]
    pixels, depth = camera.project(corners @ frame[:3, :3].T + frame[:3, 3])
    if depth.max() <= 0:
        return slice(0, 0), slice(0, 0)
    if depth.min() < _NEAR:
        return slice(0, camera.height), slice(0, camera.width)
    size = np.array([camera.width, camera.height])
    low = np.clip(np.floor(pixels.min(axis=0)), 0, size).astype(int)
    high = np.clip(np.ceil(pixels.max(axis=0)) + 1, 0, size).astype(int)
    return slice(low[1], high[1]), slice(low[0], high[0])
