"""From PLY and OFF files, of which each is one geometry, to the part of a mesh."""

import io
from typing import Any

import numpy as np

from setsup.arrays import Array, Pixels, Reals
from setsup.scenes.meshes.formats.off import read_off
from setsup.scenes.meshes.formats.ply import Ply, read_ply
from setsup.scenes.meshes.materials import WHITE, Textures
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.meshes.mesh_files import Assets
from setsup.scenes.meshes.parts import Part, bounded_uv, color_bytes, unshared

__all__ = ["off_parts", "ply_parts"]

_UV = (("texture_u", "texture_v"), ("u", "v"), ("s", "t"))


def off_parts(content: bytes, kind: str, label: str, assets: Assets) -> list[Part]:
    """Parts of an OFF file."""
    off = read_off(content, label)
    if not len(off.faces):
        return []
    colors, painted = (
        None if given is None else color_bytes(given, light=False) for given in (off.colors, off.face_colors)
    )
    return [_part(off.vertices, off.faces, off.normals, colors, painted)]


def ply_parts(content: bytes, kind: str, label: str, assets: Assets) -> list[Part]:
    """Parts of a PLY file."""
    ply = read_ply(content, label)
    if not len(ply.faces):
        return []
    normals, uv = ply.table("nx", "ny", "nz"), _corner_uv(ply)
    texture = _texture(ply, assets) if uv is not None else None
    part = _part(
        ply.points.astype(np.float64),
        ply.faces,
        None if normals is None else normals.astype(np.float64),
        _bytes(ply.table("red", "green", "blue") if texture is None else None),
        _bytes(ply.face_colors if texture is None else None),
    )
    if texture is None or uv is None:
        return [part]
    own = unshared(part)
    flat = bounded_uv(uv.reshape(-1, 2).astype(np.float64))
    return [Part(own.vertices, own.faces, Material(WHITE, texture), own.normals, flat)]


def _corner_uv(ply: Ply) -> Array | None:
    """Texture coordinates of the corners of triangles, (m, 3, 2)."""
    if ply.corner_uv is not None:
        return ply.corner_uv
    of_vertices = next((table for table in (ply.table(*names) for names in _UV) if table is not None), None)
    return None if of_vertices is None else of_vertices[ply.faces]


def _texture(ply: Ply, assets: Assets) -> Pixels | None:
    from PIL import Image

    if not ply.textures:
        return None
    if len(ply.textures) > 1:
        assets.missing.append(f"of its {len(ply.textures)} textures the last one is read")
    try:
        image: Any = Image.open(io.BytesIO(assets.get(ply.textures[-1])))
    except FileNotFoundError:  # noted
        return None
    return Textures(assets.missing).get(image)


def _bytes(colors: Array | None) -> Pixels | None:
    """SRGB bytes of colors: unsigned integers up to their type's largest, other integers up to 255, or floats 0 … 1."""
    if colors is None:
        return None
    if colors.dtype.kind == "i":
        return np.clip(colors, 0, 255).astype(np.uint8)
    return color_bytes(colors, light=False)


def _part(vertices: Reals, faces: Array, normals: Reals | None, colors: Pixels | None, painted: Pixels | None) -> Part:
    """A part of one material; of colors of vertices and of triangles the former count."""
    white = colors is not None or painted is not None
    part = Part(vertices, faces, Material(WHITE) if white else Material(), normals, None, colors)
    if colors is not None or painted is None:
        return part
    own = unshared(part)
    return Part(own.vertices, own.faces, own.material, own.normals, None, np.repeat(painted, 3, axis=0))
