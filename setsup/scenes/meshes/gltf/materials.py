"""Materials of a glTF file ([1]_, 3.8 and 3.9): base colour, its texture and where that lies, holes.

References
----------
.. [1] Khronos Group, "glTF 2.0 Specification", https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html.

"""

import io
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from setsup.arrays import Array, Reals
from setsup.scenes.color import to_bytes
from setsup.scenes.meshes.gltf.accessors import Accessors, data_uri
from setsup.scenes.meshes.gltf.tree import Tree, child, item, number, numbers, whole
from setsup.scenes.meshes.materials import Textures, alpha_mask, warn_once
from setsup.scenes.meshes.mesh import Material, Wrap
from setsup.scenes.meshes.mesh_files import Assets, why
from setsup.scenes.portable import product, sin_cos

__all__ = ["Materials", "Surface"]

_WRAPS: MappingProxyType[int, Wrap] = MappingProxyType({10497: "repeat", 33071: "clamp", 33648: "mirror"})
_NEAREST = frozenset({9728, 9984, 9986})
_GLOSSY = "KHR_materials_pbrSpecularGlossiness"
_PLACES = ("EXT_texture_webp",)  # extensions that name another image, which Pillow reads
_OTHERS = ("KHR_texture_basisu", "EXT_texture_avif", "MSFT_texture_dds")
_BLEND = (
    "alpha mode BLEND is not supported: such surfaces are rendered as opaque (OPAQUE and MASK are supported); shown "
    "once"
)
_EMISSION = "emission of glTF materials is not rendered: such surfaces only reflect light; shown once"
_DETAIL = (
    "normalTexture, occlusionTexture and metallicRoughnessTexture of glTF are not rendered: surfaces scatter light "
    "evenly; shown once"
)
_SHARP = "the filter NEAREST of glTF's samplers is not rendered: textures are interpolated; shown once"


@dataclass(frozen=True, slots=True)
class Surface:
    """A material, and which texture coordinates it wants.

    Attributes
    ----------
    material : Material
        As it is with texture coordinates.
    texcoord : int or None
        Set of texture coordinates; None without a texture.
    transform : (2, 3) float64
        Of texture coordinates, in glTF's frame.
    plain : Material
        As it is without.

    """

    material: Material
    texcoord: int | None
    transform: Reals
    plain: Material

    def uv(self, given: Array) -> Reals:
        """Texture coordinates of the mesh, whose origin is the lower left corner, (n, 2)."""
        turned = product(given, self.transform[:, :2].T) + self.transform[:, 2]
        return np.stack([turned[:, 0], 1.0 - turned[:, 1]], axis=1)


class Materials:
    """Materials of a glTF file, each read once."""

    def __init__(self, tree: Tree, accessors: Accessors, assets: Assets, label: str) -> None:
        self._tree, self._accessors, self._assets, self._label = tree, accessors, assets, label
        self._textures = Textures(assets.missing)
        self._known: dict[object, Surface] = {}
        self._images: dict[object, Any] = {}

    def get(self, index: object) -> Surface:
        """Surface of a material by number; of glTF's default material where it has none."""
        key = index if isinstance(index, int) else None
        if key not in self._known:
            told = {} if index is None else item(self._tree, "materials", index, self._label)
            self._known[key] = self._read(told)
        return self._known[key]

    def _read(self, told: Tree) -> Surface:
        label = self._label
        rough = child(told, "pbrMetallicRoughness", label)
        glossy = child(told, "extensions", label).get(_GLOSSY)
        own, names = (
            (glossy, ("diffuseFactor", "diffuseTexture"))
            if isinstance(glossy, dict)
            else (rough, ("baseColorFactor", "baseColorTexture"))
        )
        factor = numbers(own, names[0], (1.0, 1.0, 1.0, 1.0), label)
        color = tuple(int(channel) for channel in to_bytes(np.array(factor[:3])))
        if any(numbers(told, "emissiveFactor", (0.0, 0.0, 0.0), label)):
            warn_once(_EMISSION)
        if told.get("alphaMode") == "BLEND":
            warn_once(_BLEND)
        if "normalTexture" in told or "occlusionTexture" in told or "metallicRoughnessTexture" in rough:
            warn_once(_DETAIL)
        info = child(own, names[1], label)
        image, wrap = self._texture(info) if info else (None, ("repeat", "repeat"))
        texture = None if image is None else self._textures.get(image)
        mask = plain_mask = None
        if told.get("alphaMode") == "MASK":
            cutoff = number(told, "alphaCutoff", label, 0.5)
            alpha = None if texture is None else self._textures.opacity(image)
            mask = alpha_mask(factor[3], alpha, cutoff, texture)
            plain_mask = alpha_mask(factor[3], None, cutoff, None)
        transform, texcoord = self._placed(info)
        plain = Material(color, None, plain_mask)  # type: ignore[arg-type]
        if texture is None:
            return Surface(plain, None, transform, plain)
        return Surface(Material(color, texture, mask, wrap), texcoord, transform, plain)  # type: ignore[arg-type]

    def _placed(self, info: Tree) -> tuple[Reals, int]:
        """Transform of texture coordinates, and which of them (KHR_texture_transform)."""
        told = child(child(info, "extensions", self._label), "KHR_texture_transform", self._label)
        right, down = numbers(told, "offset", (0.0, 0.0), self._label)
        wide, high = numbers(told, "scale", (1.0, 1.0), self._label)
        angle = number(told, "rotation", self._label, 0.0)
        sin, cos = (float(number) for number in sin_cos(angle))
        matrix = np.array([[cos * wide, sin * high, right], [-sin * wide, cos * high, down]])
        return matrix, whole(told if "texCoord" in told else info, "texCoord", self._label, 0)

    def _texture(self, info: Tree) -> tuple[Any, tuple[Wrap, Wrap]]:
        """Image of a texture, as Pillow has it, and how it continues."""
        told = item(self._tree, "textures", info.get("index"), self._label)
        sampler = item(self._tree, "samplers", told["sampler"], self._label) if "sampler" in told else {}
        if sampler.get("magFilter") in _NEAREST or sampler.get("minFilter") in _NEAREST:
            warn_once(_SHARP)
        wraps = [_WRAPS.get(whole(sampler, name, self._label, 10497), "repeat") for name in ("wrapS", "wrapT")]
        extensions = child(told, "extensions", self._label)
        source = next((child(extensions, name, self._label)["source"] for name in _PLACES if name in extensions), None)
        if source is None:
            source = told.get("source")
        if source is None:
            other = next((name for name in _OTHERS if name in extensions), "an extension")
            self._assets.missing.append(f"a texture is ignored because {other} is not supported")
            return None, ("repeat", "repeat")
        if source not in self._images:
            self._images[source] = self._image(source)
        return self._images[source], (wraps[0], wraps[1])

    def _image(self, index: object) -> Any:
        from PIL import Image

        told = item(self._tree, "images", index, self._label)
        name = told.get("uri")
        try:
            if isinstance(name, str):
                embedded = data_uri(name)
                content = self._assets.get(name) if embedded is None else embedded
            else:
                content = self._accessors.view(told.get("bufferView"))
            return Image.open(io.BytesIO(content))
        except FileNotFoundError:
            return None  # noted
        except Exception as error:
            # Pillow's readers raise whatever they stumble over
            self._assets.missing.append(f"a texture cannot be read ({why(error)})")
            return None
