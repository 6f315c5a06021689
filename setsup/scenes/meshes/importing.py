"""Meshes from files and from trimesh, with their materials and textures; and a word on meshes in the wrong unit.

Colours become those of :mod:`setsup.scenes.color`: Kd of an MTL file, vertex and face colours are taken as sRGB; base
colour factors and vertex colours of glTF are linear light, as its specification has them ([1]_, 3.7.2.1 and 3.9.2).

References
----------
.. [1] Khronos Group, "glTF 2.0 Specification", https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html.

"""

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError, imported
from setsup.files.archives.names import shown
from setsup.files.archives.plain_files import read_file
from setsup.scenes.color import to_bytes
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.meshes.mesh_files import LARGEST_MESH, MOST_PIXELS, FileAssets, read_mesh, unread, why
from setsup.scenes.portable import product
from setsup.scenes.scene import Scene

__all__ = ["check_size", "load_mesh", "mesh_from_trimesh"]

Array = npt.NDArray[Any]
Reals = npt.NDArray[np.float64]
Picture = npt.NDArray[np.uint8]

_WHITE = (255, 255, 255)
_STAND_IN, _STAND_IN_PICTURE = 102, 100  # what trimesh paints where nothing was asked for
_MOST_UV = 1e6  # turns of a texture, beyond which float32 has lost its place anyway

_BLEND = "alpha mode BLEND is not rendered: such surfaces are opaque (OPAQUE and MASK are); said once"
_DISSOLVED = "transparency of OBJ materials (d, map_d) is not rendered: such surfaces are opaque; said once"
_EMISSION = "emission of glTF materials is not rendered: such surfaces only reflect light; said once"

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
        raise DataError(f"{label} holds no sound mesh: {error}") from error
    except Exception as error:
        # the library's arrays and pictures are made on demand, and raise whatever they stumble over
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


def check_size(thing: Mesh | Scene, what: str, expected: tuple[float, float] = (0.01, 100.0)) -> None:
    """Log a warning where something is so large or small that its unit will be a mistake.

    Parameters
    ----------
    thing : Mesh or Scene
        Whose longest side is looked at.
    what : str
        What the warning calls it: ``"the room sofa.ply"``.
    expected : (least, most), metres
        Between which the longest side should be.

    Examples
    --------
    >>> check_size(Mesh([[0, 0, 0], [4, 0, 0], [0, 3, 0]], [[0, 1, 2]]), "the triangle")

    """
    check_arguments(check_size, locals(), DataError)
    sides = np.ptp(thing.bounds, axis=0)
    longest = float(sides.max())
    least, most = expected
    if least <= longest <= most or (isinstance(thing, Scene) and not thing.placements):
        return
    # what is in millimetres, centimetres, inches or feet; and what is in metres, but was scaled as if it were not
    fits = [
        f"{factor:g}" for factor in (0.001, 0.01, 0.0254, 0.3048, 1000.0, 100.0) if least <= longest * factor <= most
    ]
    _log.warning(
        "%s measures %s m, but its longest side should be %g … %g m: is its unit the metre?%s",
        what,
        " × ".join(f"{side:.4g}" for side in sides),
        least,
        most,
        f" A scale of {' or '.join(fits)} would do" if fits else "",
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """One geometry; what it lacks is None."""

    vertices: Reals
    faces: Array
    material: Material
    normals: Reals | None = None
    uv: Array | None = None
    colors: Picture | None = None


class _Textures:
    """Pictures as arrays; those that materials share are decoded once."""

    def __init__(self, missing: list[str]) -> None:
        self._missing = missing
        self._known: dict[int, tuple[Any, Picture | None]] = {}

    def get(self, image: Any) -> Picture | None:
        """(h, w, 3) uint8; None where there is no picture, or none that can be read."""
        if not hasattr(image, "convert"):
            return None
        if id(image) not in self._known:
            # the picture is kept too, so that its id stays its own
            self._known[id(image)] = image, self._decoded(image)
        return self._known[id(image)][1]

    def opacity(self, image: Any) -> Picture | None:
        """Alpha of a picture that :meth:`get` gives, (h, w) uint8; None where it has none."""
        return np.asarray(image.convert("RGBA").getchannel("A")) if image.has_transparency_data else None

    def _decoded(self, image: Any) -> Picture | None:
        try:
            if image.width * image.height > MOST_PIXELS:
                raise DataError(f"{image.width} × {image.height} pixels, more than {MOST_PIXELS:,}")
            if image.mode.startswith("I;16"):
                pixels = np.repeat((np.asarray(image) >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
            else:
                # palettes with alpha want a detour; what an alpha of 0 hides is shown
                pixels = np.asarray((image.convert("RGBA") if image.mode == "P" else image).convert("RGB"))
        except Exception as error:
            # Pillow decodes here, and its readers raise whatever they stumble over
            self._missing.append(f"a texture cannot be read ({why(error)})")
            return None
        return None if pixels.shape == (2, 2, 3) and (pixels == _STAND_IN_PICTURE).all() else pixels


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
    textures = _Textures(missing)
    for matrix, geometry in placed:
        if isinstance(geometry, trimesh.Trimesh) and len(geometry.faces):
            yield _moved(_part(geometry, textures), matrix)


def _part(geometry: Any, textures: _Textures) -> _Part:
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
        material = _material(visual.material, uv is not None, textures)
        colors = visual.vertex_attributes["color"] if "color" in visual.vertex_attributes else None
    else:
        material = Material(_WHITE) if visual.kind else Material()
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


def _material(material: Any, mapped: bool, textures: _Textures) -> Material:
    """Make a material of trimesh's; its texture counts only where there are texture coordinates."""
    if hasattr(material, "baseColorFactor"):
        factor = material.baseColorFactor
        color = _WHITE if factor is None else _triple(to_bytes(np.asarray(factor)[:3] / 255))
        texture = textures.get(material.baseColorTexture) if mapped else None
        if material.alphaMode == "BLEND":
            _warn_once(_BLEND)
        if np.any(material.emissiveFactor if material.emissiveFactor is not None else 0):
            _warn_once(_EMISSION)
        return Material(color, texture, _mask(material, texture, textures))
    texture = textures.get(getattr(material, "image", None)) if mapped else None
    if _is_dissolved(getattr(material, "kwargs", {})):
        _warn_once(_DISSOLVED)
    if texture is not None:
        return Material(_WHITE, texture)
    diffuse = np.asarray(getattr(material, "diffuse", ()))
    stated = "kd" in getattr(material, "kwargs", {}) or (diffuse[:3] != _STAND_IN).any()
    return Material(_triple(diffuse)) if diffuse.shape == (4,) and stated else Material()


def _mask(material: Any, texture: Picture | None, textures: _Textures) -> npt.NDArray[np.bool_] | None:
    """Where a material of glTF's alpha mode MASK is."""
    if material.alphaMode != "MASK":
        return None
    factor, cutoff = material.baseColorFactor, material.alphaCutoff
    share = 1.0 if factor is None or len(factor) < 4 else factor[3] / 255
    alpha = None if texture is None else textures.opacity(material.baseColorTexture)
    if alpha is None:
        alpha = np.full((1, 1) if texture is None else texture.shape[:2], 255, np.uint8)
    return np.asarray(share * (alpha / 255) >= (0.5 if cutoff is None else cutoff))


def _is_dissolved(options: Mapping[str, Any]) -> bool:
    """Whether a material of an OBJ file is transparent anywhere."""
    try:
        return "map_d" in options or float(options.get("d", [1])[-1]) < 1
    except (ValueError, IndexError, TypeError):
        return False


def _triple(color: Array) -> tuple[int, int, int]:
    red, green, blue = (int(channel) for channel in color[:3])
    return red, green, blue


def _color_bytes(colors: Array, light: bool) -> Picture:
    """SRGB bytes of vertex colours: whole numbers up to their type's largest, or floats 0 … 1."""
    parts = colors / np.iinfo(colors.dtype).max if colors.dtype.kind in "iu" else np.nan_to_num(colors)
    return to_bytes(parts) if light else np.floor(np.clip(parts, 0, 1) * 255 + 0.5).astype(np.uint8)


@cache
def _warn_once(what: str) -> None:
    _log.warning(what)


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
