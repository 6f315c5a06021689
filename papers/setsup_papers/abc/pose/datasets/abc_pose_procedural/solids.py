"""Parts of made-up objects, in metres, each its own mirror image in y = 0, or there with its mirror image."""

import numpy as np
import numpy.typing as npt

from setsup.scenes.meshes.lofts import mirrored
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.meshes.primitives import box, capsule, cylinder

__all__ = ["across", "bar", "bars", "disc", "pair", "turned"]

Point = tuple[float, float, float]


def turned(mesh: Mesh, turn: npt.NDArray[np.float64], to: Point) -> Mesh:
    """A mesh that is turned about its origin by a rotation (3, 3), then moved."""
    normals = None if mesh.normals is None else (mesh.normals @ turn.T).astype(np.float32)
    return Mesh(mesh.vertices @ turn.T + np.array(to), mesh.faces, normals, materials=mesh.materials)


def pair(size: Point, at: Point, material: Material, lean: float = 0.0) -> Mesh:
    """A box on either side; leaning backwards by an angle, in radians, about its own middle."""
    return mirrored(turned(box(size, material=material), _lean(lean), at))


def across(size: Point, at: tuple[float, float], material: Material, lean: float = 0.0) -> Mesh:
    """A box across the middle, made of two halves; `at` is x and z of its centre."""
    length, width, height = size
    return pair((length, width / 2, height), (at[0], width / 4, at[1]), material, lean)


def bars(start: Point, end: Point, radius: float, material: Material) -> Mesh:
    """A round bar from point to point, and its mirror image."""
    return mirrored(_bar(start, end, radius, material))


def bar(start: tuple[float, float], end: tuple[float, float], radius: float, material: Material) -> Mesh:
    """A round bar in the plane y = 0; `start` and `end` are x and z."""
    return _bar((start[0], 0.0, start[1]), (end[0], 0.0, end[1]), radius, material)


def disc(radius: float, height: float, at: Point, material: Material) -> Mesh:
    """An upright cylinder; mirrored where it does not stand in the middle."""
    made = turned(cylinder(radius, height, segments=24, material=material), np.eye(3), at)
    return mirrored(made) if at[1] else made


def _bar(start: Point, end: Point, radius: float, material: Material) -> Mesh:
    first, last = np.array(start), np.array(end)
    length = float(np.linalg.norm(last - first))
    along = (last - first) / length
    side = np.cross((0.0, 1.0, 0.0) if abs(along[1]) < 0.9 else (1.0, 0.0, 0.0), along)
    side /= np.linalg.norm(side)
    turn = np.stack([side, np.cross(along, side), along], axis=1)
    x, y, z = ((first + last) / 2).tolist()
    return turned(capsule(radius, length, segments=12, material=material), turn, (x, y, z))


def _lean(angle: float) -> npt.NDArray[np.float64]:
    """Rotation that moves what is above towards the rear, −x."""
    sine, cosine = np.sin(angle), np.cos(angle)
    return np.array([[cosine, 0.0, -sine], [0.0, 1.0, 0.0], [sine, 0.0, cosine]])
