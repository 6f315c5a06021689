"""Meshes from files and from trimesh, with their materials and textures.

Colours become those of :mod:`setsup.scenes.color`: Kd of an MTL file, vertex and face colours are taken as sRGB; base
colour factors and vertex colours of glTF are linear light, as its specification has them ([1]_, 3.7.2.1 and 3.9.2).

References
----------
.. [1] Khronos Group, "glTF 2.0 Specification", https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html.

"""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from setsup.checks import check_arguments
from setsup.errors import DamagedFile, DataError, SetsupError, imported
from setsup.files.archives.names import shown
from setsup.files.archives.plain_files import read_file
from setsup.scenes.meshes.gltf.reading import read_gltf
from setsup.scenes.meshes.materials import WHITE, Textures, read_material
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.meshes.mesh_files import LARGEST_MESH, Assets, FileAssets, read_mesh, unread
from setsup.scenes.meshes.obj_parts import obj_parts
from setsup.scenes.meshes.parts import Part, bounded_uv, color_bytes, join, moved, unshared
from setsup.scenes.meshes.scan_parts import off_parts, ply_parts

__all__ = ["load_mesh", "mesh_from_trimesh"]


_OWN = "export or copy it again"
_READERS: MappingProxyType[str, Callable[[bytes, str, str, Assets], list[Part]]] = MappingProxyType(
    {"gltf": read_gltf, "glb": read_gltf, "obj": obj_parts, "ply": ply_parts, "off": off_parts}
)

_log = logging.getLogger("setsup")


def load_mesh(path: Path | str, *, scale: float = 1.0, top: Path | str | None = None) -> Mesh:
    r"""Load a mesh from a file: glTF, OBJ, PLY, OFF, or what trimesh reads, such as STL.

    Whatever the file consists of becomes one mesh; triangles stand in the order of the file's parts, which in an OBJ
    file are its materials in the order of their first use. Polygons are cut up within their outlines. Normals are kept
    where the file has some. Textures and materials that cannot be had are logged, and the colour of the material stands
    in for them. glTF files stand in their default pose; their alpha mode MASK makes holes, and what of them is not
    rendered is logged by name. BLEND, emission and the transparency of OBJ materials are not rendered, and said once.

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
        When the file is missing, damaged, of an unknown format, without triangles, has numbers that are not finite,
        requires an extension of glTF that is not read, or needs trimesh, which is missing.

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
        raise SetsupError(f"scale must be a positive number, not {scale!r}")
    label = shown(str(path))
    if not path.is_file():
        raise DataError(
            f"{label} is a folder; pass the mesh files in it, for example {shown(str(path / '*.obj'))}"
            if path.is_dir()
            else f"mesh file {label} does not exist; check the path"
        )
    assets = FileAssets(path, top)
    try:
        mesh = _read(read_file(os.fsencode(path), LARGEST_MESH), path.suffix[1:].lower(), label, assets, scale)
    except DamagedFile as error:
        if error.hint != DamagedFile("").hint:
            raise
        # whose it is, and where from, is not known
        raise DamagedFile(str(error.args[0]), _OWN, file=path) from error
    if assets.missing:
        _log.warning("%s: %s", label, "; ".join(assets.missing))
    return mesh


def _read(content: bytes, kind: str, label: str, assets: Assets, scale: float) -> Mesh:
    reader = _READERS.get(kind)
    scene = read_mesh(content, kind, label, assets) if reader is None else None
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused at the end
            parts = list(_parts(scene, assets.missing)) if reader is None else reader(content, kind, label, assets)
            return join(parts, scale)
    except DataError:
        raise
    except SetsupError as error:
        raise DataError(f"{label} is not a valid mesh: {error}") from error
    except Exception as error:
        # the library's arrays and images are made on demand, and raise whatever they stumble over
        raise unread(label, error) from error


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
    with np.errstate(over="ignore", invalid="ignore"):
        mesh = join(list(_parts(found, missing)))
    if missing:
        _log.warning("a mesh of trimesh: %s", "; ".join(missing))
    return mesh


def _parts(scene: Any, missing: list[str]) -> Iterator[Part]:
    """Geometries with triangles, in the order of the graph, where they stand."""
    trimesh = imported("trimesh", "meshes")
    if isinstance(scene, trimesh.Trimesh):
        placed = [(np.eye(4), scene)]
    elif isinstance(scene, trimesh.Scene):
        at = [scene.graph[node] for node in scene.graph.nodes_geometry]
        placed = [(np.asarray(matrix, np.float64), scene.geometry[name]) for matrix, name in at]
    else:
        raise SetsupError(f"the mesh must be a trimesh.Scene or trimesh.Trimesh, not {type(scene).__name__}")
    textures = Textures(missing)
    for matrix, geometry in placed:
        if isinstance(geometry, trimesh.Trimesh) and len(geometry.faces):
            yield moved(_part(geometry, textures), matrix)


def _part(geometry: Any, textures: Textures) -> Part:
    """A geometry in its own frame."""
    vertices, faces = np.array(geometry.vertices, np.float64), np.array(geometry.faces)
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise SetsupError(
            f"triangles refer to vertices {faces.min()} to {faces.max()}, but there are {len(vertices):,} vertices"
        )
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
    part = Part(vertices, faces, material, normals)
    if material.mask is not None and uv is None:
        uv = np.zeros((len(vertices), 2))  # one texel, a hole
    if (material.texture is not None or material.mask is not None) and uv is not None:
        part = replace(part, uv=bounded_uv(uv))
    if visual.kind == "face":
        part, colors = unshared(part), np.repeat(visual.face_colors, 3, axis=0)
    if colors is not None and len(colors) == len(part.vertices) and np.ndim(colors) == 2:
        light = "from_gltf_primitive" in geometry.metadata  # glTF has no sRGB here
        part = replace(part, colors=color_bytes(np.asarray(colors)[:, :3], light))
    return part
