"""Materials and textures of meshes that trimesh holds."""

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Pixels
from setsup.errors import DataError
from setsup.scenes.color import to_bytes
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.meshes.mesh_files import MOST_PIXELS, why

__all__ = ["WHITE", "Textures", "alpha_mask", "read_material", "warn_once"]


WHITE = (255, 255, 255)

_DEFAULT_COLOR, _DEFAULT_TEXTURE = 102, 100  # trimesh's own, for materials that state none
_BLEND = (
    "alpha mode BLEND is not supported: such surfaces are rendered as opaque (OPAQUE and MASK are supported); shown "
    "once"
)
_DISSOLVED = "transparency of OBJ materials (d, map_d) is not rendered: such surfaces are opaque; shown once"
_EMISSION = "emission of glTF materials is not rendered: such surfaces only reflect light; shown once"


_log = logging.getLogger("setsup")


class Textures:
    """Images as arrays; those that materials share are decoded once."""

    def __init__(self, missing: list[str]) -> None:
        self._missing = missing
        self._known: dict[int, tuple[Any, Pixels | None]] = {}

    def get(self, image: Any) -> Pixels | None:
        """(h, w, 3) uint8; None where there is no image, or none that can be read."""
        if not hasattr(image, "convert"):
            return None
        if id(image) not in self._known:
            # the image is kept too, so that its id stays its own
            self._known[id(image)] = image, self._decoded(image)
        return self._known[id(image)][1]

    def opacity(self, image: Any) -> Pixels | None:
        """Alpha of an image that :meth:`get` gives, (h, w) uint8; None where it has none."""
        return np.asarray(image.convert("RGBA").getchannel("A")) if image.has_transparency_data else None

    def _decoded(self, image: Any) -> Pixels | None:
        try:
            if image.width * image.height > MOST_PIXELS:
                raise DataError(f"it has {image.width} × {image.height} pixels, more than the limit of {MOST_PIXELS:,}")
            if image.mode.startswith("I;16"):
                pixels = np.repeat((np.asarray(image) >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
            else:
                # palettes with alpha want a detour; what an alpha of 0 hides is shown
                pixels = np.asarray((image.convert("RGBA") if image.mode == "P" else image).convert("RGB"))
        except Exception as error:
            # Pillow decodes here, and its readers raise whatever they stumble over
            self._missing.append(f"a texture cannot be read ({why(error)})")
            return None
        return pixels


def read_material(material: Any, mapped: bool, textures: Textures) -> Material:
    """Make a material of trimesh's; its texture counts only where there are texture coordinates."""
    if hasattr(material, "baseColorFactor"):
        factor = material.baseColorFactor
        color = WHITE if factor is None else _triple(to_bytes(np.asarray(factor)[:3] / 255))
        texture = textures.get(material.baseColorTexture) if mapped else None
        if material.alphaMode == "BLEND":
            warn_once(_BLEND)
        if np.any(material.emissiveFactor if material.emissiveFactor is not None else 0):
            warn_once(_EMISSION)
        return Material(color, texture, _mask(material, texture, textures))
    texture = textures.get(getattr(material, "image", None)) if mapped else None
    if texture is not None and texture.shape == (2, 2, 3) and (texture == _DEFAULT_TEXTURE).all():
        texture = None
    if _is_dissolved(getattr(material, "kwargs", {})):
        warn_once(_DISSOLVED)
    if texture is not None:
        return Material(WHITE, texture)
    diffuse = np.asarray(getattr(material, "diffuse", ()))
    stated = "kd" in getattr(material, "kwargs", {}) or (diffuse[:3] != _DEFAULT_COLOR).any()
    return Material(_triple(diffuse)) if diffuse.shape == (4,) and stated else Material()


def _mask(material: Any, texture: Pixels | None, textures: Textures) -> npt.NDArray[np.bool_] | None:
    """Where a material of glTF's alpha mode MASK is."""
    if material.alphaMode != "MASK":
        return None
    factor, cutoff = material.baseColorFactor, material.alphaCutoff
    share = 1.0 if factor is None or len(factor) < 4 else factor[3] / 255
    alpha = None if texture is None else textures.opacity(material.baseColorTexture)
    return alpha_mask(share, alpha, 0.5 if cutoff is None else cutoff, texture)


def alpha_mask(share: float, alpha: Pixels | None, cutoff: float, texture: Pixels | None) -> npt.NDArray[np.bool_]:
    """Where a surface is whose alpha is cut off: of the size of its texture, or one texel."""
    if alpha is None:
        alpha = np.full((1, 1) if texture is None else texture.shape[:2], 255, np.uint8)
    return np.asarray(share * (alpha / 255) >= cutoff)


def _is_dissolved(options: Mapping[str, Any]) -> bool:
    """Whether a material of an OBJ file is transparent anywhere."""
    try:
        return "map_d" in options or float(options.get("d", [1])[-1]) < 1
    except (ValueError, IndexError, TypeError):
        return False


def _triple(color: npt.NDArray[Any]) -> tuple[int, int, int]:
    red, green, blue = (int(channel) for channel in color[:3])
    return red, green, blue


@cache
def warn_once(what: str) -> None:
    """Log a warning the first time."""
    _log.warning(what)
