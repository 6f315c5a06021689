"""From an OBJ file and its lists of materials to the parts of a mesh."""

import io
from typing import Any

import numpy as np

from setsup.arrays import Array, Integers
from setsup.scenes.meshes.formats.mtl import Entry, MapOptions, map_options, read_mtl
from setsup.scenes.meshes.formats.obj import Obj, read_obj
from setsup.scenes.meshes.materials import WHITE, Textures, warn_once
from setsup.scenes.meshes.mesh import Material, Wrap
from setsup.scenes.meshes.mesh_files import Assets
from setsup.scenes.meshes.parts import Part, bounded_uv, color_bytes

__all__ = ["obj_parts"]

_DISSOLVED = "transparency of OBJ materials (d, map_d) is not rendered: such surfaces are opaque; shown once"
_NEUTRAL = {"-mm": (0.0, 1.0), "-boost": (0.0, 0.0), "-t": (0.0, 0.0)}


def obj_parts(content: bytes, kind: str, label: str, assets: Assets) -> list[Part]:
    """Parts of an OBJ file, one for each material, in the order of their first use."""
    obj = read_obj(content, label)
    entries = _entries(obj.libraries, assets)
    textures = _Maps(assets)
    for name, entry in entries.items():
        if entry.map:
            textures.load(name, entry.map)
    order = np.argsort(obj.material, kind="stable")
    sorted_numbers = obj.material[order]
    parts = []
    for number in dict.fromkeys(obj.material.tolist()):
        rows = order[slice(*np.searchsorted(sorted_numbers, [number, number + 1]))]
        name = obj.names[number] if number >= 0 else ""
        if name and entries and name not in entries:
            assets.missing.append(f"the material {name!r} is not defined in its material files")
        parts += _parts(obj, rows, name, entries.get(name), textures.of.get(name))
    return parts


def _entries(libraries: list[str], assets: Assets) -> dict[str, Entry]:
    """Materials of all lists; of two of one name that of the first list."""
    entries: dict[str, Entry] = {}
    for line in dict.fromkeys(libraries):
        for content in assets.libraries(line):
            entries = read_mtl(content) | entries
    return entries


class _Maps:
    """Textures of materials, each with how it lies."""

    def __init__(self, assets: Assets) -> None:
        self._assets, self._textures = assets, Textures(assets.missing)
        self._images: dict[str, Any] = {}
        self.of: dict[str, tuple[Any, MapOptions]] = {}

    def load(self, name: str, text: str) -> None:
        """Read the texture of a material."""
        from PIL import Image

        options = map_options(text)
        if options.name not in self._images:
            try:
                self._images[options.name] = Image.open(io.BytesIO(self._assets.get(options.name)))
            except FileNotFoundError:  # noted
                self._images[options.name] = None
        pixels = self._textures.get(self._images[options.name])
        if pixels is None:
            return
        self.of[name] = pixels, options
        left = [
            option
            for option, usual in _NEUTRAL.items()
            if option in options.words and options.pair(option, usual[1]) != usual
        ]
        if left:
            self._assets.missing.append(f"options of map_Kd that are not rendered: {', '.join(left)}")


def _parts(
    obj: Obj, rows: Integers, name: str, entry: Entry | None, texture: tuple[Any, MapOptions] | None
) -> list[Part]:
    """Parts of one material: apart are faces without normals, and without texture coordinates of a textured one."""
    corners = obj.corners[rows]
    mapped = (corners[:, :, 1] >= 0).all(axis=1) & (texture is not None)
    smooth = (corners[:, :, 2] >= 0).all(axis=1)
    if entry is not None and entry.dissolved:
        warn_once(_DISSOLVED)
    kinds = np.asarray(2 * mapped + smooth, np.int64)
    parts = []
    for key in dict.fromkeys(kinds.tolist()):
        own = corners[kinds == key]
        which, faces = _shared(own, [0, *([1] if key & 2 else []), *([2] if key & 1 else [])])
        colors = None if obj.colors is None else color_bytes(obj.colors[which[:, 0]], light=False)
        uv, material = None, _plain(entry, colors is not None)
        if key & 2 and texture is not None:
            pixels, options = texture
            wrap: tuple[Wrap, Wrap] = ("clamp", "clamp") if _is_on(options, "-clamp") else ("repeat", "repeat")
            material = Material(WHITE, pixels, None, wrap)
            (wide, high), (right, up) = options.pair("-s", 1.0), options.pair("-o", 0.0)
            uv = bounded_uv(obj.uv[which[:, 1]] * [wide, high] + [right, up])
        normals = obj.normals[which[:, 2]] if key & 1 else None
        parts.append(Part(obj.vertices[which[:, 0]], faces, material, normals, uv, colors, name))
    return parts


def _is_on(options: MapOptions, option: str) -> bool:
    return options.words.get(option, [""])[:1] == ["on"]


def _plain(entry: Entry | None, painted: bool) -> Material:
    """Material without its texture."""
    if entry is None or entry.color is None:
        return Material(WHITE) if painted else Material()
    red, green, blue = (int(channel) for channel in color_bytes(np.array([entry.color]), light=False)[0])
    return Material((red, green, blue))


def _shared(corners: Integers, columns: list[int]) -> tuple[Integers, Array]:
    """Different corners by some of their columns, (n, 3), in their order, and the triangles of these, (t, 3)."""
    flat = corners.reshape(-1, 3)
    key = np.zeros(len(flat), np.int64)
    for column in columns:
        # numbered anew at each step, so that it cannot grow beyond 63 bits
        _, key = np.unique(key * (int(flat[:, column].max()) + 1) + flat[:, column], return_inverse=True)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return flat[first], inverse.reshape(-1, 3)
