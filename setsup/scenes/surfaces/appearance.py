"""The albedo of surfaces: colours of materials, textures and vertices.

Convention
----------
The albedo of a point is the colour of its material, times its texture, times its vertex colours, each in linear light
(:mod:`setsup.scenes.color`). Textures are sampled bilinearly in linear light, between the centres of texels, and go on
outside 0 … 1 as their material says; there are no smaller copies of them (mipmaps), so that a texture seen from far
away is not averaged: ask for more samples a pixel.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats, Numbers, Reals
from setsup.scenes.color import LINEAR
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.meshes.wrapping import folded, wrap_numbers
from setsup.scenes.scene import Scene
from setsup.scenes.surfaces.per_scene import PerScene

__all__ = ["Appearance", "appearance_of", "gathered", "mixed"]

Coordinates = Floats | Reals

_LINEAR = LINEAR.astype(np.float32)
_HALF = np.float32(0.5)


class Appearance:
    """What the colours of a scene's triangles are made of; it does not hold the scene.

    Attributes
    ----------
    materials : list of Material
        Those of the placements' meshes, one after the other.
    material : (n,) int32
        For each triangle, its place in ``materials``.

    """

    def __init__(self, scene: Scene) -> None:
        meshes = [placement.mesh for placement in scene.placements]
        counts = [len(mesh.faces) for mesh in meshes]
        self._painted, self._paint = gathered(
            [None if mesh.colors is None else mesh.colors[mesh.faces] for mesh in meshes], counts, np.uint8
        )
        self._mapped, self._uv = gathered(
            [None if mesh.uv is None else mesh.uv[mesh.faces] for mesh in meshes], counts, np.float32
        )
        before = np.cumsum([0, *(len(mesh.materials) for mesh in meshes)])
        which = [
            np.zeros(len(mesh.faces), np.int32) if mesh.material is None else mesh.material.astype(np.int32)
            for mesh in meshes
        ]
        self.material: Numbers = np.concatenate(
            [np.empty(0, np.int32), *(own + np.int32(first) for own, first in zip(which, before, strict=False))]
        )
        self.materials = [material for mesh in meshes for material in mesh.materials]
        colors = np.array([material.color for material in self.materials], np.intp).reshape(-1, 3)
        self._colors: Floats = _LINEAR[colors]
        self._textures = Textures(self.materials)

    def albedo(self, triangle: Numbers, u: Coordinates, v: Coordinates) -> Floats:
        """Share of the light that comes back from points, (n, 3) float32 in linear light.

        `triangle` (n,) int, numbered as :attr:`Scene.triangles`; `u, v` (n,) float, shares of its second and third
        corner.
        """
        which = self.material[triangle]
        colors = self._colors.take(which, axis=0)
        if self._textures.any and self._mapped is not None:
            rows = self._mapped[triangle]
            some = np.flatnonzero((rows >= 0) & (self._textures.first[which] >= 0))
            uv = mixed(self._uv.take(rows[some], axis=0), u[some], v[some])
            colors[some] *= self._textures.sample(which[some], uv)
        if self._painted is not None:
            rows = self._painted[triangle]
            some = np.flatnonzero(rows >= 0)
            colors[some] *= mixed(_LINEAR.take(self._paint.take(rows[some], axis=0)), u[some], v[some])
        return colors

    def uv(self, triangle: Numbers, u: Coordinates, v: Coordinates) -> Reals:
        """Texture coordinates of points, (n, 2); NaN for meshes without. Arguments as for :meth:`albedo`."""
        found = np.full((len(triangle), 2), np.nan)
        if self._mapped is not None:
            rows = self._mapped[triangle]
            some = np.flatnonzero(rows >= 0)
            found[some] = mixed(self._uv.take(rows[some], axis=0), u[some], v[some])
        return found


appearance_of = PerScene(Appearance)
"""The appearance of each scene."""


class Textures:
    """Textures of materials, texel after texel in one array.

    Attributes
    ----------
    any : bool
        Whether a material has one.
    first : (m,) int
        Place of a material's first texel; −1 for materials without a texture.

    """

    def __init__(self, materials: Sequence[Material]) -> None:
        textures = [material.texture for material in materials]
        self._wraps = wrap_numbers(materials)
        self.any = any(texture is not None for texture in textures)
        starts: dict[int, int] = {}  # materials often share one
        parts = [np.empty((0, 3), np.uint8)]
        first = [-1] * len(textures)
        self._height, self._width = np.ones(len(textures), np.int32), np.ones(len(textures), np.int32)
        size = 0
        for row, texture in enumerate(textures):
            if texture is None:
                continue
            self._height[row], self._width[row] = texture.shape[:2]
            if id(texture) not in starts:
                starts[id(texture)] = size
                parts.append(texture.reshape(-1, 3))
                size += len(parts[-1])
            first[row] = starts[id(texture)]
        self.first: npt.NDArray[np.integer[Any]] = np.array(first, np.int32 if size < 1 << 31 else np.int64)
        texels = np.zeros((size, 4), np.uint8)
        np.concatenate(parts, out=texels[:, :3])
        self._texels = texels.view(np.uint32)[:, 0]  # one number is fetched faster than three

    def sample(self, which: Numbers, uv: npt.NDArray[Any]) -> Floats:
        """Linear light of textures at texture coordinates, (n, 3)."""
        height, width, first = self._height.take(which), self._width.take(which), self.first.take(which)
        wraps = None if self._wraps is None else self._wraps[which].T
        if wraps is not None:
            uv = np.stack([folded(coordinate, wrap) for coordinate, wrap in zip(uv.T, wraps, strict=True)], axis=1)
        across = (uv[:, 0] - np.floor(uv[:, 0])) * width - _HALF
        down = (np.ceil(uv[:, 1]) - uv[:, 1]) * height - _HALF
        left, top = np.floor(across), np.floor(down)
        across -= left
        down -= top
        x, y = left.astype(np.int32), top.astype(np.int32)
        right, bottom = x + 1, y + 1
        if wraps is not None:
            # beyond its outermost texels a texture that does not repeat has these again
            sideways, upwards = wraps > 0
            np.maximum(x, 0, out=x, where=sideways)
            np.maximum(y, 0, out=y, where=upwards)
            np.minimum(right, width - 1, out=right, where=sideways)
            np.minimum(bottom, height - 1, out=bottom, where=upwards)
        right[right == width] = 0
        bottom[bottom == height] = 0
        np.add(x, width, out=x, where=x < 0)
        np.add(y, height, out=y, where=y < 0)
        upper, lower = y * width + first, bottom * width + first
        share = across[:, None]
        above, below = (_between(self._light(row + x), self._light(row + right), share) for row in (upper, lower))
        return _between(above, below, down[:, None])[:, :3]

    def _light(self, texels: npt.NDArray[np.integer[Any]]) -> Floats:
        """Linear light of texels, (n, 4), of which the last column has no meaning."""
        return _LINEAR.take(self._texels.take(texels).view(np.uint8)).reshape(-1, 4)


def _between(before: Floats, after: Floats, share: npt.NDArray[Any]) -> Floats:
    after -= before
    after *= share
    after += before
    return after


def gathered(
    parts: Sequence[npt.NDArray[Any] | None], counts: Sequence[int], dtype: type
) -> tuple[Numbers | None, npt.NDArray[Any]]:
    """Rows of those that have some, one after the other; and which row each triangle has, None where none has."""
    if all(part is None for part in parts):
        return None, np.empty((0, 3, 3), dtype)
    rows, first = [], 0
    for part, count in zip(parts, counts, strict=True):
        rows.append(np.full(count, -1, np.int32) if part is None else np.arange(first, first + count, dtype=np.int32))
        first += 0 if part is None else count
    values = np.concatenate([part for part in parts if part is not None])
    return np.concatenate(rows), values.astype(dtype, copy=False)


def mixed(corners: npt.NDArray[Any], u: Coordinates, v: Coordinates) -> Any:
    """Interpolate what the three corners have, (n, 3, k), by the shares of the second and the third."""
    shares = np.stack([1 - u - v, u, v], axis=1)
    return np.asarray(np.einsum("ij,ijk->ik", shares, corners))
