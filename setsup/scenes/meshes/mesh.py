"""Triangle meshes with their materials, as plain arrays.

Convention
----------
Lengths are metres. Colours are sRGB bytes: of materials, vertices and textures alike. Texture coordinates have their
origin at the lower left corner of the image; outside 0 … 1 a texture goes on as the material's ``wrap`` says. Winding
has no meaning: both sides of a triangle are seen, and its normal is turned towards whoever looks.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Floats, Pixels, Reals
from setsup.checks import check_array
from setsup.errors import SetsupError
from setsup.scenes.checks import check_color

__all__ = ["FARTHEST", "Material", "Mesh", "Wrap"]

Wrap = Literal["repeat", "clamp", "mirror"]
"""How a texture goes on outside 0 … 1."""


FARTHEST = 1e6
"""Metres from the origin within which everything lies: beyond, float32 rays are coarser than a decimetre."""

_GREY = (188, 188, 188)  # half of the light comes back


@dataclass(frozen=True, eq=False)
class Material:
    """The color of a surface, which scatters light evenly in all directions (Lambert).

    Parameters
    ----------
    color : 3 ints
        sRGB bytes; multiplied, in linear light, with the texture and with vertex colours.
    texture : (h, w, 3) uint8, optional
        sRGB, row 0 at the top.
    mask : (h, w) bool, optional
        Where the surface is, row 0 at the top: what is False is a hole, to rays and light as to cameras. It has the
        size of the texture, where there is one, and the texel that a point lies on decides. Without texture
        coordinates a mesh has no holes. One that is all True is none.
    wrap : 2 of "repeat", "clamp", "mirror"
        How texture and mask go on outside 0 … 1, across and upwards: again and again, by their outermost texels, or
        turned over at every second time.

    Examples
    --------
    >>> Material((128, 0, 0)).color
    (128, 0, 0)

    """

    color: tuple[int, int, int] = _GREY
    texture: Pixels | None = None
    mask: Bools | None = None
    wrap: tuple[Wrap, Wrap] = ("repeat", "repeat")

    def __post_init__(self) -> None:
        """Check the colour, the texture and the mask."""
        object.__setattr__(self, "color", check_color(self.color, "the color of a material"))
        if self.texture is not None:
            texture = _kept(self.texture, np.uint8, "the texture of a material")
            if texture.ndim != 3 or texture.shape[2] != 3 or 0 in texture.shape:
                raise SetsupError(
                    "the texture of a material must be a non-empty array of shape (h, w, 3), bytes of sRGB, not of "
                    f"shape {texture.shape}"
                )
            object.__setattr__(self, "texture", texture)
        if self.mask is not None:
            object.__setattr__(self, "mask", self._checked_mask(np.asarray(self.mask)))
        wrap = tuple(self.wrap) if isinstance(self.wrap, tuple | list) else ()
        if len(wrap) != 2 or not all(isinstance(mode, str) and mode in get_args(Wrap) for mode in wrap):
            raise SetsupError(
                f"the wrap of a material must be two of {', '.join(get_args(Wrap))}, not {self.wrap!r:.60}"
            )
        object.__setattr__(self, "wrap", wrap)

    def _checked_mask(self, mask: Array) -> Bools | None:
        if mask.dtype != bool or mask.ndim != 2 or 0 in mask.shape:
            raise SetsupError(
                f"the mask of a material must be a non-empty boolean array of shape (h, w), not {mask.dtype} of shape "
                f"{mask.shape}"
            )
        if self.texture is not None and mask.shape != self.texture.shape[:2]:
            raise SetsupError(
                f"the mask of a material must have the size {self.texture.shape[:2]} of its texture, not {mask.shape}"
            )
        return None if mask.all() else _kept(mask, np.bool_, "the mask of a material")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields; whoever unpickles them gets a read-only texture again."""
        return Material, (self.color, self.texture, self.mask, self.wrap)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the material is, in hexadecimal."""
        # without a mask, and with textures that repeat, as before there were any
        more = [*([] if self.mask is None else [self.mask]), *(() if self.wrap == ("repeat", "repeat") else self.wrap)]
        return _digest(np.array(self.color, np.uint8), self.texture, *more)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with their materials, texture coordinates and normals.

    Parameters
    ----------
    vertices : (v, 3) float64, metres
        Positions, finite.
    faces : (f, 3) int32
        Triangles, at least one; triangles without area are kept, so that numbers stay, and are never seen.
    normals : (v, 3) float32, optional
        Of the smooth surface, of any positive length; without them every triangle is flat.
    uv : (v, 2) float32, optional
        Texture coordinates.
    colors : (v, 3) uint8, optional
        sRGB of the vertices, interpolated in linear light.
    materials : tuple of Material
        At least one.
    material : (f,) uint16, optional
        Which material each triangle has; the first by default.

    Raises
    ------
    SetsupError
        When there is no triangle, a shape does not fit, or a number is not finite or out of range, with its row.

    Examples
    --------
    >>> triangle = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> triangle.corners.shape, triangle.digest == Mesh(triangle.vertices, triangle.faces).digest
    ((1, 3, 3), True)

    """

    vertices: Reals
    faces: npt.NDArray[np.int32]
    normals: Floats | None = None
    uv: Floats | None = None
    colors: Pixels | None = None
    materials: tuple[Material, ...] = field(default_factory=lambda: (Material(),))
    material: npt.NDArray[np.uint16] | None = None

    def __post_init__(self) -> None:
        """Check everything once; arrays are kept read-only."""
        vertices = _rows(self.vertices, np.float64, 3, "vertices")
        faces = _indices(self.faces, len(vertices))
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)
        for name, dtype, columns in (("normals", np.float32, 3), ("uv", np.float32, 2), ("colors", np.uint8, 3)):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _rows(given, dtype, columns, name, len(vertices)))
        if self.normals is not None:
            void = np.flatnonzero(~self.normals.any(axis=1))
            if len(void):
                raise SetsupError(
                    f"normals of a mesh must not be zero, but row {void[0]} is zero ({len(void)} such rows)"
                )
        object.__setattr__(self, "materials", tuple(self.materials) if isinstance(self.materials, Sequence) else ())
        if not self.materials or not all(isinstance(material, Material) for material in self.materials):
            raise SetsupError("materials of a mesh must be a list of at least one Material")
        if self.material is not None:
            which = check_array(self.material, "material of a mesh", SetsupError)
            if which.shape != (len(faces),) or which.dtype.kind not in "iu":
                raise SetsupError(
                    f"material of a mesh must be an integer array of shape ({len(faces)},), one integer per triangle, "
                    f"not {which.dtype} of shape {which.shape}"
                )
            most = min(len(self.materials), 1 << 16) - 1
            if which.min() < 0 or which.max() > most:
                raise SetsupError(
                    f"material of a mesh must be from 0 to {most}, not from {which.min()} to {which.max()}"
                )
            object.__setattr__(self, "material", _kept(which, np.uint16, "material of a mesh"))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields; whoever unpickles them gets read-only arrays again."""
        return Mesh, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def corners(self) -> Reals:
        """Positions of the corners of all triangles, (f, 3, 3) float64."""
        return self.vertices[self.faces]

    @cached_property
    def bounds(self) -> Reals:
        """Lowest and highest coordinates of the corners, (2, 3) float64, metres, read-only."""
        used = self.vertices[np.unique(self.faces)]
        corners = np.stack([used.min(axis=0), used.max(axis=0)])
        corners.setflags(write=False)
        return corners

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the mesh is, in hexadecimal."""
        arrays = (self.vertices, self.faces, self.normals, self.uv, self.colors, self.material)
        return _digest(*arrays, *(material.digest for material in self.materials))


def _rows(values: npt.ArrayLike, dtype: type, columns: int, name: str, rows: int | None = None) -> Array:
    """Check finite rows of numbers."""
    rows_given = _kept(values, dtype, f"{name} of a mesh")
    if rows_given.ndim != 2 or rows_given.shape[1] != columns or (rows is not None and len(rows_given) != rows):
        wanted = f"({'v' if rows is None else rows}, {columns})"
        raise SetsupError(
            f"{name} of a mesh must be a numeric array of shape {wanted}, not of shape {rows_given.shape}"
        )
    most = FARTHEST if name == "vertices" else np.inf
    bad = np.flatnonzero(~(np.isfinite(rows_given) & (np.abs(rows_given) <= most)).all(axis=1))
    if len(bad):
        far = f", and positions within {FARTHEST:,.0f} m" if name == "vertices" else ""
        raise SetsupError(
            f"{name} of a mesh must be finite{far}, but row {bad[0]} is {rows_given[bad[0]].tolist()} ({len(bad)} such "
            "rows)"
        )
    return rows_given


def _indices(values: npt.ArrayLike, vertices: int) -> Array:
    faces = check_array(values, "faces of a mesh", SetsupError)
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces):
        raise SetsupError(
            "faces of a mesh must be an integer array of shape (f, 3) with at least one row, not of shape "
            f"{faces.shape}"
        )
    if faces.dtype.kind not in "iu":
        raise SetsupError(f"faces of a mesh must be integers, not {faces.dtype}")
    bad = np.flatnonzero(((faces < 0) | (faces >= vertices)).any(axis=1))
    if len(bad):
        raise SetsupError(
            f"faces of a mesh must be indices of its {vertices} vertices, but triangle {bad[0]} is "
            f"{faces[bad[0]].tolist()}"
        )
    return _kept(faces, np.int32, "faces of a mesh")


def _kept(values: npt.ArrayLike, dtype: type, what: str) -> Array:
    """Read-only array of a dtype; what is read-only already is not copied."""
    given = check_array(values, what, SetsupError)
    if dtype is np.uint8 and given.dtype != np.uint8:
        raise SetsupError(f"{what} must be uint8, not {given.dtype}")
    if given.dtype.kind not in "biufO":
        raise SetsupError(f"{what} must contain numbers, not {given.dtype}")
    try:
        with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused as such
            kept: Array = np.ascontiguousarray(given, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise SetsupError(f"{what} must contain numbers, not {given.dtype}") from error
    if kept is given and kept.flags.writeable:
        kept = kept.copy()
    kept.setflags(write=False)
    return kept


def _digest(*parts: Array | str | None) -> str:
    """SHA-256 of arrays with their shapes and dtypes, and of texts."""
    digest = hashlib.sha256()
    for part in parts:
        if part is None or isinstance(part, str):
            digest.update(repr(part).encode())
        else:
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        digest.update(b"\0")
    return digest.hexdigest()
