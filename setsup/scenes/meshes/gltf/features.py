"""Which features a glTF file uses beyond what is read: refused by name where it requires them, else named.

What stands on no list here is unknown: refused where a file requires it, and named where it does not.
"""

from collections.abc import Iterator
from typing import Any

from setsup.errors import DataError
from setsup.files.numbers import refuse
from setsup.scenes.meshes.gltf.tree import Tree, child

__all__ = ["check_features"]

_APPLIED = frozenset(
    {
        "EXT_mesh_gpu_instancing",
        "EXT_texture_webp",
        "KHR_materials_pbrSpecularGlossiness",
        "KHR_mesh_quantization",
        "KHR_node_visibility",
        "KHR_texture_transform",
    }
)
_FALLBACK = frozenset(
    {
        "EXT_meshopt_compression",
        "EXT_texture_avif",
        "KHR_draco_mesh_compression",
        "KHR_meshopt_compression",
        "KHR_texture_basisu",
        "MSFT_texture_dds",
    }
)
"""Another form of data that core glTF gives as well, unless the extension is required: that is read."""
_LIGHT = frozenset({"EXT_lights_ies", "EXT_lights_image_based", "KHR_lights_punctual"})
_NOTHING_SEEN = frozenset(
    {
        "EXT_instance_features",
        "EXT_mesh_features",
        "EXT_structural_metadata",
        "KHR_animation_pointer",
        "KHR_materials_variants",
        "KHR_node_hoverability",
        "KHR_node_selectability",
        "KHR_xmp",
        "KHR_xmp_json_ld",
    }
)
"""What an image in the default pose and the default variant does not show."""


def check_features(tree: Tree, label: str) -> list[str]:
    """Refuse what a file requires and is not read; sentences on what it uses and is not rendered."""
    asset = child(tree, "asset", label)
    version = str(asset.get("minVersion") or asset.get("version", "2.0"))
    if version.partition(".")[0] != "2" or version > "2.0":
        raise DataError(f"{label} uses version {version[:10]} of glTF, but only 2.0 is supported; convert it")
    unknown = sorted(name for name in _names(tree, "extensionsRequired", label) if not _is_readable(name))
    if unknown:
        raise DataError(
            f"{label} requires {', '.join(unknown[:8])}, which is not supported; export the mesh without these "
            "extensions, or convert it with another program"
        )
    used = _names(tree, "extensionsUsed", label) | set(_extensions(tree))
    left = sorted(used - _APPLIED - _FALLBACK - _NOTHING_SEEN)
    if not left:
        return []
    shown = ", ".join(left[:16]) + (f" and {len(left) - 16} more" if len(left) > 16 else "")
    return [f"extensions of glTF that are not rendered: {shown}"]


def _is_readable(name: str) -> bool:
    """Whether a file that requires this extension has the right shape and base colours without more."""
    appearance = name.startswith("KHR_materials_") or name in _LIGHT
    return name in _APPLIED or name in _NOTHING_SEEN or appearance


def _names(tree: Tree, what: str, label: str) -> set[str]:
    names = tree.get(what, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        refuse(label, f"has {what!r} that is not a list of names")
    return {name[:80] for name in names}


def _extensions(tree: Tree) -> Iterator[str]:
    """Names of extensions that stand anywhere, also where the file does not list them."""
    waiting: list[Any] = [tree]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, dict):
            own = entry.get("extensions")
            if isinstance(own, dict):
                yield from (name[:80] for name in own)
            waiting += [value for name, value in entry.items() if name != "extras" and isinstance(value, dict | list)]
        elif entry and isinstance(entry[0], dict | list):
            waiting += [value for value in entry if isinstance(value, dict | list)]
