"""Parts of a mesh, each with one material: moved, and joined into one mesh."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setsup.arrays import Array, Pixels, Reals
from setsup.errors import SetsupError
from setsup.scenes.color import to_bytes
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.portable import product

__all__ = ["Part", "bounded_uv", "color_bytes", "join", "moved", "unshared"]

_MOST_UV = 1e6  # turns of a texture, beyond which float32 has lost its place anyway


@dataclass(frozen=True, slots=True)
class Part:
    """One geometry; what it lacks is None. Its name is that of its material, where the file has one."""

    vertices: Reals
    faces: Array
    material: Material
    normals: Reals | None = None
    uv: Array | None = None
    colors: Pixels | None = None
    name: str = ""


def bounded_uv(uv: Array) -> Reals:
    """Texture coordinates that are finite, and near enough that float32 keeps their place."""
    return np.asarray(np.clip(np.nan_to_num(uv, posinf=0, neginf=0), -_MOST_UV, _MOST_UV))


def color_bytes(colors: Array, light: bool) -> Pixels:
    """SRGB bytes of vertex colours: integers up to their type's largest, or floats 0 … 1; of linear light or sRGB."""
    parts = colors / np.iinfo(colors.dtype).max if colors.dtype.kind in "iu" else np.nan_to_num(colors)
    return to_bytes(parts) if light else np.floor(np.clip(parts, 0, 1) * 255 + 0.5).astype(np.uint8)


def unshared(part: Part) -> Part:
    """Give every triangle three vertices of its own."""
    at = part.faces.reshape(-1)

    def rows(values: Any) -> Any:
        return None if values is None else values[at]

    faces = np.arange(len(at)).reshape(-1, 3)
    parts = (rows(part.normals), rows(part.uv), rows(part.colors))
    return Part(part.vertices[at], faces, part.material, *parts, part.name)


def moved(part: Part, matrix: Reals) -> Part:
    """Put a geometry where a matrix says."""
    if np.array_equal(matrix, np.eye(4)):
        return part
    linear = matrix[:3, :3]
    # cofactors: what inverse and transposed is up to a factor, also of a matrix that flattens
    cofactors = np.cross(linear[[1, 2, 0]], linear[[2, 0, 1]])
    mirrored = np.linalg.det(linear) < 0
    return replace(
        part,
        vertices=product(part.vertices, linear.T) + matrix[:3, 3],
        faces=part.faces[:, ::-1] if mirrored else part.faces,
        normals=None if part.normals is None else product(part.normals, cofactors.T) * (-1 if mirrored else 1),
    )


def join(parts: Sequence[Part], scale: float = 1.0) -> Mesh:
    """One mesh of all parts."""
    if not parts:
        raise SetsupError("the mesh contains no triangles")
    smooth = any(part.normals is not None for part in parts)
    if smooth:
        parts = [_with_normals(part) for part in parts]
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    kinds = {part.material.digest: part.material for part in parts}
    numbers = {digest: number for number, digest in enumerate(kinds)}
    which = [np.full(len(part.faces), numbers[part.material.digest]) for part in parts]
    uv = [np.zeros((len(part.vertices), 2)) if part.uv is None else part.uv for part in parts]
    white = [np.full((len(part.vertices), 3), 255, np.uint8) if part.colors is None else part.colors for part in parts]
    return Mesh(
        np.concatenate([part.vertices for part in parts]) * scale,
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=True)]),
        np.concatenate([part.normals for part in parts if part.normals is not None]) if smooth else None,
        np.concatenate(uv) if any(part.uv is not None for part in parts) else None,
        np.concatenate(white) if any(part.colors is not None for part in parts) else None,
        tuple(kinds.values()),
        np.concatenate(which) if len(kinds) > 1 else None,
    )


def _with_normals(part: Part) -> Part:
    """Normals for all vertices: flat ones where there are none, those of the triangles around where one is void."""
    if part.normals is None:
        part = unshared(part)
        return replace(part, normals=_around(part, np.arange(len(part.vertices))))
    length = np.linalg.norm(part.normals, axis=1)
    void = np.flatnonzero(~((length > 1e-30) & (length < np.inf)))
    if not len(void):
        return replace(part, normals=part.normals / length[:, None])
    length[void] = 1.0
    normals = part.normals / length[:, None]
    normals[void] = _around(part, void)
    return replace(part, normals=normals)


def _around(part: Part, which: Array) -> Reals:
    """Mean normals of the triangles around vertices, weighted by area; z where there is no area."""
    corners = part.vertices[part.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    total = np.zeros_like(part.vertices)
    np.add.at(total, part.faces.reshape(-1), np.repeat(normal, 3, axis=0))
    normals = total[which]
    length = np.linalg.norm(normals, axis=1)
    normals[~(length > 0)] = (0, 0, 1)
    return normals / np.where(length > 0, length, 1.0)[:, None]
