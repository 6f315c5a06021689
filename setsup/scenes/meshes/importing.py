"""Meshes from files and from trimesh, with their materials and textures.

Colours become those of :mod:`setsup.scenes.color`: Kd of an MTL file, vertex and face colours are taken as sRGB; base
colour factors and vertex colours of glTF are linear light, as its specification has them ([1]_, 3.7.2.1 and 3.9.2).

References
----------
.. [1] Khronos Group, "glTF 2.0 Specification", https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html.

"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array, Pixels, Reals
from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError, imported
from setsup.files.archives.names import shown
from setsup.files.archives.plain_files import read_file
from setsup.scenes.color import to_bytes
from setsup.scenes.meshes.materials import WHITE, Textures, read_material
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.meshes.mesh_files import LARGEST_MESH, FileAssets, read_mesh, unread
from setsup.scenes.portable import product

__all__ = ["load_mesh", "mesh_from_trimesh"]


_MOST_UV = 1e6  # turns of a texture, beyond which float32 has lost its place anyway

_log = logging.getLogger("setsup")


def load_mesh(path: Path | str, *, scale: float = 1.0, top: Path | str | None = None) -> Mesh:
    r"""Load a mesh from a file that trimesh reads: OBJ, PLY, OFF, STL, glTF and more.

    Whatever the file consists of becomes one mesh; triangles stand in the order of the file's parts (trimesh sorts
    those of an OBJ file by material), polygons are cut up. Normals are kept where the file has some. Textures and
    materials that cannot be had are logged, and the colour of the material stands in for them. The alpha mode MASK of
    glTF makes holes; BLEND, emission and the transparency of OBJ materials are not rendered, and said once.

    Parameters
    ----------
    path : Path or str
        The file; its ending tells the format.
    scale : float
        Factor on all lengths, positive: 0.001 for a file in millimetres.
    top : Path or str, optional
        Folder in which materials and textures may lie: that of the file by default. Names and links that lead out of
        it are not followed; ShapeNet's models, whose textures lie in ``../images``, want the folder above.

    Returns
    -------
    Mesh

    Raises
    ------
    DataError
        When trimesh is missing, or the file is missing, damaged, of an unknown format, without triangles, or has
        numbers that are not finite.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "square.obj"
    >>> _ = file.write_text("v 0 0 0\nv 1000 0 0\nv 1000 1000 0\nv 0 1000 0\nf 1 2 3 4\n")
    >>> mesh = load_mesh(file, scale=0.001)
    >>> mesh.faces.shape, mesh.bounds.tolist()
    ((2, 3), [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])

    """
    check_arguments(load_mesh, locals(), DataError)
    path = Path(path)
    if not 0 < scale < np.inf:
        raise SetsupError(f"the scale of a mesh is a positive factor, not {scale!r}")
    label = shown(str(path))
    if not path.is_file():
        raise DataError(
            f"{label} is a folder: name the mesh files in it, such as {shown(str(path / '*.obj'))}"
            if path.is_dir()
            else f"there is no mesh file {label}"
        )
    assets = FileAssets(path, top)
    found = read_mesh(read_file(os.fsencode(path), LARGEST_MESH), path.suffix[1:].lower(), label, assets)
    missing = assets.missing
    try:
        mesh = _mesh(found, missing, scale)
    except SetsupError as error:
        raise DataError(f"{label} is not a valid mesh: {error}") from error
    except Exception as error:
        # the library's arrays and images are made on demand, and raise whatever they stumble over
        raise unread(label, error) from error
    if missing:
        _log.warning("%s: %s", label, "; ".join(missing))
    return mesh


def mesh_from_trimesh(found: Any) -> Mesh:
    """Make one mesh, of several materials, of what trimesh holds.

    Parameters
    ----------
    found : trimesh.Scene or trimesh.Trimesh
        Geometries are joined in the order of the scene's graph, where they stand; what has no triangles is left out.

    Returns
    -------
    Mesh
        Vertex normals are kept of geometries that hold some: those of their file, or those that were asked of trimesh
        before, which it computes. Other geometries stay flat.

    Raises
    ------
    SetsupError
        When there are no triangles, or numbers are not finite.

    Examples
    --------
    >>> import trimesh
    >>> box = trimesh.creation.box((1, 1, 1))
    >>> box.visual.face_colors = [255, 0, 0, 255]
    >>> mesh = mesh_from_trimesh(box)
    >>> mesh.faces.shape, mesh.colors[0].tolist(), mesh.normals is None
    ((12, 3), [255, 0, 0], True)

    """
    missing: list[str] = []
    mesh = _mesh(found, missing)
    if missing:
        _log.warning("a mesh of trimesh: %s", "; ".join(missing))
    return mesh


@dataclass(frozen=True, slots=True)
class _Part:
    """One geometry; what it lacks is None."""

    vertices: Reals
    faces: Array
    material: Material
    normals: Reals | None = None
    uv: Array | None = None
    colors: Pixels | None = None


def _mesh(found: Any, missing: list[str], scale: float = 1.0) -> Mesh:
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused at the end
        return _joined(list(_parts(found, missing)), scale)


def _parts(found: Any, missing: list[str]) -> Iterator[_Part]:
    """Geometries with triangles, in the order of the graph, where they stand."""
    trimesh = imported("trimesh", "meshes")
    if isinstance(found, trimesh.Trimesh):
        placed = [(np.eye(4), found)]
    elif isinstance(found, trimesh.Scene):
        at = [found.graph[node] for node in found.graph.nodes_geometry]
        placed = [(np.asarray(matrix, np.float64), found.geometry[name]) for matrix, name in at]
    else:
        raise SetsupError(f"a mesh is made of a trimesh.Scene or trimesh.Trimesh, not of {type(found).__name__}")
    textures = Textures(missing)
    for matrix, geometry in placed:
        if isinstance(geometry, trimesh.Trimesh) and len(geometry.faces):
            yield _moved(_part(geometry, textures), matrix)


def _part(geometry: Any, textures: Textures) -> _Part:
    """A geometry in its own frame."""
    vertices, faces = np.array(geometry.vertices, np.float64), np.array(geometry.faces)
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise SetsupError(f"a triangle names vertex {faces.min()} or {faces.max()} of {len(vertices):,}")
    # trimesh makes normals up when it is asked for them; those that it was given are in its cache before
    normals = np.array(geometry.vertex_normals, np.float64) if "vertex_normals" in geometry._cache else None
    visual, uv, colors = geometry.visual, None, None
    if visual.kind == "texture":
        uv = np.asarray(visual.uv if visual.uv is not None else [], np.float64)
        uv = uv[:, :2] if uv.ndim == 2 and len(uv) == len(vertices) and uv.shape[1] >= 2 else None
        material = read_material(visual.material, uv is not None, textures)
        colors = visual.vertex_attributes["color"] if "color" in visual.vertex_attributes else None
    else:
        material = Material(WHITE) if visual.kind else Material()
        colors = visual.vertex_colors if visual.kind == "vertex" else None
    part = _Part(vertices, faces, material, normals)
    if material.mask is not None and uv is None:
        uv = np.zeros((len(vertices), 2))  # one texel, a hole
    if (material.texture is not None or material.mask is not None) and uv is not None:
        part = replace(part, uv=np.clip(np.nan_to_num(uv, posinf=0, neginf=0), -_MOST_UV, _MOST_UV))
    if visual.kind == "face":
        part, colors = _unshared(part), np.repeat(visual.face_colors, 3, axis=0)
    if colors is not None and len(colors) == len(part.vertices) and np.ndim(colors) == 2:
        light = "from_gltf_primitive" in geometry.metadata  # glTF has no sRGB here
        part = replace(part, colors=_color_bytes(np.asarray(colors)[:, :3], light))
    return part


def _color_bytes(colors: Array, light: bool) -> Pixels:
    """SRGB bytes of vertex colours: integers up to their type's largest, or floats 0 … 1."""
    parts = colors / np.iinfo(colors.dtype).max if colors.dtype.kind in "iu" else np.nan_to_num(colors)
    return to_bytes(parts) if light else np.floor(np.clip(parts, 0, 1) * 255 + 0.5).astype(np.uint8)


def _unshared(part: _Part) -> _Part:
    """Give every triangle three vertices of its own."""
    at = part.faces.reshape(-1)

    def rows(values: Any) -> Any:
        return None if values is None else values[at]

    faces = np.arange(len(at)).reshape(-1, 3)
    return _Part(part.vertices[at], faces, part.material, rows(part.normals), rows(part.uv), rows(part.colors))


def _moved(part: _Part, matrix: Reals) -> _Part:
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


def _joined(parts: list[_Part], scale: float) -> Mesh:
    """One mesh of all parts."""
    if not parts:
        raise SetsupError("there are no triangles")
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


def _with_normals(part: _Part) -> _Part:
    """Normals for all vertices: flat ones where there are none, those of the triangles around where one is void."""
    if part.normals is None:
        part = _unshared(part)
        return replace(part, normals=_around(part, np.arange(len(part.vertices))))
    length = np.linalg.norm(part.normals, axis=1)
    void = np.flatnonzero(~((length > 1e-30) & (length < np.inf)))
    if not len(void):
        return replace(part, normals=part.normals / length[:, None])
    length[void] = 1.0
    normals = part.normals / length[:, None]
    normals[void] = _around(part, void)
    return replace(part, normals=normals)


def _around(part: _Part, which: Array) -> Reals:
    """Mean normals of the triangles around vertices, weighted by area; z where there is no area."""
    corners = part.vertices[part.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    total = np.zeros_like(part.vertices)
    np.add.at(total, part.faces.reshape(-1), np.repeat(normal, 3, axis=0))
    found = total[which]
    length = np.linalg.norm(found, axis=1)
    found[~(length > 0)] = (0, 0, 1)
    return found / np.where(length > 0, length, 1.0)[:, None]
