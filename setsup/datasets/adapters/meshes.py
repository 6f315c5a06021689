"""Meshes with trimesh, which only this module imports; and points on them with their colors.

Convention
----------
Texture coordinates have their origin at the lower left corner of the image, and repeat outside 0 … 1.
"""

import logging
import posixpath
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Pixels
from setsup.datasets import images
from setsup.datasets.adapters.preview import splat, surface
from setsup.errors import imported
from setsup.files.archives.members import MemberIndex
from setsup.scenes.meshes.formats.ply import Ply
from setsup.scenes.meshes.mesh_files import Assets
from setsup.scenes.meshes.obj_parts import obj_parts
from setsup.scenes.meshes.parts import Part

__all__ = ["load_obj", "need_trimesh", "ply_mesh", "preview_mesh", "preview_scene"]


_LARGEST_OBJ = 1 << 30
_POINTS = 30_000  # of an image: enough that gaps between their dots are rare
_GREY = (150, 150, 150)

_log = logging.getLogger("setsup")


def need_trimesh() -> ModuleType:
    """Import trimesh."""
    trimesh: ModuleType = imported("trimesh", "meshes")
    return trimesh


def load_obj(members: MemberIndex, member: int, top: str) -> Any:
    """Load an OBJ file with its materials and textures, from a folder or directly from an archive."""
    label = members.label(member)

    def read(path: str, most: int) -> bytes | None:
        asset = int(members.places([path])[0])
        return None if asset < 0 else members.read(asset, most)

    folder = posixpath.dirname(str(members.names[member]))
    assets = Assets(read, folder, top, lambda content, what: images.decode(content, what, 3))
    scene = _scene(obj_parts(members.read(member, _LARGEST_OBJ), "obj", label, assets))
    scene.metadata["missing"] = assets.missing
    if assets.missing:
        _log.warning("%s: %s", label, "; ".join(assets.missing))
    return scene


def _scene(parts: list[Part]) -> Any:
    """Make a trimesh.Scene with one geometry per part, named after its material."""
    from PIL import Image

    trimesh = need_trimesh()
    images: dict[int, Any] = {}
    scene = trimesh.Scene()
    for part in parts:
        texture, color = part.material.texture, (*part.material.color, 255)
        if texture is not None and id(texture) not in images:
            images[id(texture)] = Image.fromarray(texture)
        material = trimesh.visual.material.SimpleMaterial(
            image=None if texture is None else images[id(texture)],
            diffuse=color,
            kd=[channel / 255 for channel in color[:3]],
            name=part.name,
        )
        if part.colors is not None and texture is None and part.material.color == (255, 255, 255):
            look: dict[str, Any] = {"vertex_colors": part.colors}
        else:
            look = {"visual": trimesh.visual.TextureVisuals(uv=part.uv, material=material)}
            if part.colors is not None:
                look["visual"].vertex_attributes["color"] = part.colors
        geometry = trimesh.Trimesh(part.vertices, part.faces, vertex_normals=part.normals, process=False, **look)
        scene.add_geometry(geometry, geom_name=part.name or "geometry")
    return scene


def ply_mesh(ply: Ply) -> Any:
    """Make a trimesh.Trimesh of a PLY file's triangles and vertex colors, in the order of the file."""
    return need_trimesh().Trimesh(ply.points, ply.faces, vertex_colors=ply.colors, process=False)


def preview_mesh(
    vertices: npt.NDArray[Any],
    faces: npt.NDArray[Any],
    colors: npt.NDArray[np.uint8] | None,
    marks: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> Pixels:
    """Render a preview of a mesh with vertex colors.

    `vertices` (v, 3) float; `faces` (f, 3) int; `colors` (v, 3) uint8 or None; returns (128, 128, 3) uint8 sRGB.
    """
    points, face, weights = surface(vertices, faces, _POINTS)
    corners = np.asarray(faces)[face]
    paint = np.full((len(points), 3), _GREY, np.uint8)
    if colors is not None:
        paint = (weights[:, :, None] * colors[corners]).sum(axis=1).round().astype(np.uint8)
    return splat(points, paint, normals=_normals(np.asarray(vertices, np.float64)[corners]), marks=marks)


def preview_scene(scene: Any) -> Pixels:
    """Render a preview of a scene in the colors of its materials.

    Returns (128, 128, 3) uint8 sRGB.
    """
    parts = [part for part in scene.geometry.values() if len(getattr(part, "faces", ()))]
    if not parts:
        return splat(np.empty((0, 3)), np.empty((0, 3), np.uint8))
    corners = np.concatenate([np.asarray(part.vertices, np.float64)[part.faces] for part in parts])
    numbered = np.arange(3 * len(corners)).reshape(-1, 3)
    points, face, weights = surface(corners.reshape(-1, 3), numbered, _POINTS)
    ends = np.cumsum([0, *(len(part.faces) for part in parts)])
    paint = np.empty((len(points), 3), np.uint8)
    for part, first, last in zip(parts, ends[:-1], ends[1:], strict=True):
        own = slice(*np.searchsorted(face, [first, last]))
        paint[own] = _material_colors(part, face[own] - first, weights[own])
    return splat(points, paint, normals=_normals(corners[face]))


def _normals(corners: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Normals of triangles (n, 3, 3), of any length."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def _material_colors(part: Any, face: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> Any:
    """Colors of points on a geometry: from its texture, otherwise its material, otherwise its vertices."""
    corners = np.asarray(part.faces)[face]
    if part.visual.kind == "vertex":
        return (weights[:, :, None] * np.asarray(part.visual.vertex_colors)[corners, :3]).sum(axis=1).round()
    material: Any = getattr(part.visual, "material", None)
    uv: Any = getattr(part.visual, "uv", None)
    texture: Any = getattr(material, "image", None)
    if hasattr(texture, "convert") and np.shape(uv) == (len(part.vertices), 2):
        pixels = np.asarray(texture.convert("RGB"))
        where = np.nan_to_num((weights[:, :, None] * np.asarray(uv, np.float64)[corners]).sum(axis=1)) % 1.0
        rows = np.minimum(((1 - where[:, 1]) * pixels.shape[0]).astype(int), pixels.shape[0] - 1)
        return pixels[rows, np.minimum((where[:, 0] * pixels.shape[1]).astype(int), pixels.shape[1] - 1)]
    diffuse = getattr(material, "diffuse", None)
    color = np.asarray(_GREY if diffuse is None else diffuse).reshape(-1)
    return color[:3] if color.dtype == np.uint8 and len(color) >= 3 else _GREY
