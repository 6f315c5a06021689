"""From a glTF 2.0 file to the parts of a mesh, in the pose that the file has without its animations.

Own reading rather than trimesh's, which gives wrong geometry, and no word, for much that is core glTF: normalised
texture coordinates and colours, sparse accessors, fans, morph targets, skins, a second set of texture coordinates, the
wrap modes of samplers; and for every extension.

Conventions are glTF's ([1]_): y up, metres; colours are linear light, and become sRGB bytes.

References
----------
.. [1] Khronos Group, "glTF 2.0 Specification", https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html.

"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from setsup.arrays import Array, Reals
from setsup.errors import DataError
from setsup.files.numbers import refuse
from setsup.scenes.meshes.gltf.accessors import Accessors
from setsup.scenes.meshes.gltf.features import check_features
from setsup.scenes.meshes.gltf.materials import Materials
from setsup.scenes.meshes.gltf.nodes import matrices, placed
from setsup.scenes.meshes.gltf.tree import Tree, child, item, items, read_tree, whole
from setsup.scenes.meshes.mesh_files import Assets
from setsup.scenes.meshes.parts import Part, bounded_uv, color_bytes, moved
from setsup.scenes.portable import product

__all__ = ["read_gltf"]

_TRIANGLES, _STRIP, _FAN = 4, 5, 6
_INSTANCING = "EXT_mesh_gpu_instancing"
_ALPHA = "alpha of vertex colors is not rendered"
_LINES = "points and lines are not rendered"
_FEWEST = 1 << 24
"""Triangles that a file may show by naming its numbers many times; more need as many bytes."""


def read_gltf(content: bytes, kind: str, label: str, assets: Assets) -> list[Part]:
    """Parts of a ``gltf`` or ``glb`` file, where they stand; what is not rendered is noted as missing."""
    tree, own = read_tree(content, kind, label)
    assets.missing += check_features(tree, label)
    reader = _Reader(tree, own, assets, label)
    notes, parts, triangles = list[str](), list[Part](), 0
    for part in reader.parts():
        triangles += len(part.faces)
        if triangles > max(_FEWEST, len(content) + reader.accessors.size):
            refuse(label, f"repeats its meshes until they have more than {_FEWEST:,} triangles")
        parts.append(part)
    notes += sorted(reader.notes)
    if notes and not parts:
        raise DataError(f"{label} has no triangles: {'; '.join(notes)}; export the mesh with triangles")
    if len(items(tree, "scenes", label)) > 1:
        notes.append(f"of its {len(items(tree, 'scenes', label))} scenes only the default one is read")
    assets.missing += notes
    return parts


class _Reader:
    def __init__(self, tree: Tree, own: bytes | None, assets: Assets, label: str) -> None:
        self.tree, self.label, self.notes = tree, label, set[str]()
        self.accessors = Accessors(tree, own, assets, label)
        self.materials = Materials(tree, self.accessors, assets, label)

    def parts(self) -> Iterator[Part]:
        """All parts that the default scene shows."""
        shown, everywhere = placed(self.tree, self.label)
        for number in shown:
            node = item(self.tree, "nodes", number, self.label)
            if "mesh" not in node:
                continue
            mesh = item(self.tree, "meshes", node["mesh"], self.label)
            weights = node.get("weights", mesh.get("weights", []))
            skin = None if "skin" not in node else self._joints(node["skin"], everywhere)
            for primitive in items(mesh, "primitives", self.label):
                part = self._part(primitive, weights, skin)
                if part is None:
                    continue
                # a skin says where its vertices stand, whatever node it is of
                for matrix in self._instances(node, everywhere[number]) if skin is None else [np.eye(4)]:
                    yield moved(part, matrix)

    def _instances(self, node: Tree, matrix: Reals) -> Iterator[Reals]:
        told = child(node, "extensions", self.label).get(_INSTANCING)
        if not isinstance(told, dict):
            yield matrix
            return
        attributes = child(told, "attributes", self.label)
        given = [
            self.accessors.reals(attributes[name], columns) if name in attributes else None
            for name, columns in (("TRANSLATION", 3), ("ROTATION", 4), ("SCALE", 3))
        ]
        counts = {len(array) for array in given if array is not None}
        if len(counts) > 1:
            refuse(self.label, f"has instances with different numbers of values ({sorted(counts)})")
        count = counts.pop() if counts else 1
        defaults = (np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.ones(3))
        parts = [
            np.tile(default, (count, 1)) if own is None else own for own, default in zip(given, defaults, strict=True)
        ]
        for own in matrices(*parts):
            yield product(matrix, own)

    def _joints(self, index: object, everywhere: dict[int, Reals]) -> Reals:
        """Matrices of the joints of a skin, (j, 4, 4)."""
        told = item(self.tree, "skins", index, self.label)
        joints: Any = told.get("joints", [])
        if not isinstance(joints, list) or not joints or not all(isinstance(joint, int) for joint in joints):
            refuse(self.label, f"has skin {index} without joints")
        if not all(joint in everywhere for joint in joints):
            refuse(self.label, f"has skin {index} with a joint that is not a node")
        matrices = np.stack([everywhere[joint] for joint in joints])
        if "inverseBindMatrices" not in told:
            return matrices
        inverse = self.accessors.reals(told["inverseBindMatrices"], 16)
        if len(inverse) < len(joints):
            refuse(self.label, f"has skin {index} of {len(joints)} joints and {len(inverse)} matrices")
        inverse = inverse[: len(joints)].reshape(-1, 4, 4)  # columns stand in rows
        return np.asarray(np.einsum("jab,jcb->jac", matrices, inverse))

    def _part(self, primitive: Tree, weights: object, skin: Reals | None) -> Part | None:
        """One primitive in its own frame; None where it has no triangles."""
        label = self.label
        mode = whole(primitive, "mode", label, _TRIANGLES)
        if mode not in (_TRIANGLES, _STRIP, _FAN):
            self.notes.add(_LINES)
            return None
        attributes = child(primitive, "attributes", label)
        if "POSITION" not in attributes:
            self.notes.add("a primitive without POSITION is ignored")
            return None
        self._check_data(primitive, attributes)
        vertices = self._morphed(primitive, attributes, "POSITION", weights, (3,))
        faces = self._faces(primitive, mode, len(vertices))
        if not len(faces):
            return None
        surface = self.materials.get(primitive.get("material"))
        normals = uv = colors = None
        if "NORMAL" in attributes:
            normals = self._morphed(primitive, attributes, "NORMAL", weights, (3,))
        material, name = surface.plain, f"TEXCOORD_{surface.texcoord}"
        if surface.texcoord is not None and name in attributes:
            material = surface.material
            uv = bounded_uv(surface.uv(self._morphed(primitive, attributes, name, weights, (2,))))
        elif surface.texcoord is not None:
            self.notes.add(f"a texture is ignored where {name} is missing")
        if material.mask is not None and uv is None:
            uv = np.zeros((len(vertices), 2))  # one texel, a hole
        if "COLOR_0" in attributes:
            given = self._morphed(primitive, attributes, "COLOR_0", weights, (3, 4))
            if given.shape[1] == 4 and (given[:, 3] < 1).any():
                self.notes.add(_ALPHA)
            colors = color_bytes(given[:, :3], light=True)
        part = Part(vertices, faces, material, normals, uv, colors)
        for array in (normals, uv, colors):
            if array is not None and len(array) != len(vertices):
                refuse(label, f"has a primitive of {len(vertices):,} positions and {len(array):,} other values")
        return part if skin is None else self._skinned(part, attributes, skin)

    def _check_data(self, primitive: Tree, attributes: Tree) -> None:
        """Refuse positions and indices that only an extension would give: as core glTF has them, all are 0."""
        needed = [attributes["POSITION"], *([primitive["indices"]] if "indices" in primitive else [])]
        if all(self.accessors.has_data(accessor) for accessor in needed):
            return
        named = sorted(name for name in child(primitive, "extensions", self.label) if isinstance(name, str))
        if named:
            raise DataError(
                f"{self.label}: the positions or indices of a primitive require the extension {named[0]}, which is "
                "not supported; export the mesh without this extension"
            )
        refuse(self.label, "has a primitive without positions or indices")

    def _morphed(
        self, primitive: Tree, attributes: Tree, name: str, weights: object, columns: tuple[int, ...]
    ) -> Reals:
        """Values of an attribute, with those of morph targets by their default weights."""
        base = self.accessors.reals(attributes[name], *columns)
        for target, weight in zip(items(primitive, "targets", self.label), self._weights(weights), strict=False):
            if weight and name in target:
                more = self.accessors.reals(target[name], *columns)
                if more.shape != base.shape:
                    refuse(self.label, f"has a morph target of {len(more):,} values for {len(base):,} vertices")
                base = base + weight * more
        return base

    def _weights(self, weights: object) -> list[float]:
        if not isinstance(weights, list) or not all(isinstance(weight, int | float) for weight in weights):
            refuse(self.label, "has weights of morph targets that are not a list of numbers")
        return [float(weight) for weight in weights]

    def _faces(self, primitive: Tree, mode: int, vertices: int) -> Array:
        if "indices" in primitive:
            order = self.accessors.integers(primitive["indices"])[:, 0]
            if len(order) and order.max() >= vertices:
                refuse(self.label, f"has a triangle that refers to vertex {order.max()} of {vertices:,}")
        else:
            order = np.arange(vertices)
        if mode == _TRIANGLES:
            if len(order) % 3:
                refuse(
                    self.label,
                    f"has a primitive of triangles with {len(order):,} corners, which is not a multiple of 3",
                )
            return order.reshape(-1, 3)
        if len(order) < 3:
            return np.zeros((0, 3), np.int64)
        if mode == _FAN:
            return np.stack([order[1:-1], order[2:], np.broadcast_to(order[0], len(order) - 2)], axis=1)
        triangles = np.stack([order[:-2], order[1:-1], order[2:]], axis=1)
        triangles[1::2] = triangles[1::2][:, [0, 2, 1]]
        return triangles

    def _skinned(self, part: Part, attributes: Tree, skin: Reals) -> Part:
        """Vertices where the joints put them."""
        total, blend = np.zeros(len(part.vertices)), np.zeros((len(part.vertices), 4, 4))
        for turn in range(len(attributes)):
            names = f"JOINTS_{turn}", f"WEIGHTS_{turn}"
            if not all(name in attributes for name in names):
                break
            joints, weights = (
                self.accessors.integers(attributes[names[0]], 4),
                self.accessors.reals(attributes[names[1]], 4),
            )
            if not len(joints) == len(weights) == len(total):
                refuse(self.label, f"has a skin of {len(joints):,} values for {len(total):,} vertices")
            for column in range(4):
                which, weight = joints[:, column], weights[:, column]
                if len(which) and which[weight != 0].max(initial=0) >= len(skin):
                    refuse(self.label, f"has a vertex with joint {which[weight != 0].max()} of {len(skin)}")
                which = np.where(weight != 0, which, 0)
                blend += skin[which] * weight[:, None, None]
                total += weight
        if not total.any():
            self.notes.add("a skin without JOINTS_0 or WEIGHTS_0 is ignored")
            return part
        blend /= np.where(total > 0, total, 1.0)[:, None, None]
        linear = blend[:, :3, :3]
        vertices = np.einsum("vij,vj->vi", linear, part.vertices) + blend[:, :3, 3]
        normals = part.normals
        if normals is not None:
            cofactors = np.cross(linear[:, [1, 2, 0]], linear[:, [2, 0, 1]])
            normals = np.einsum("vij,vj->vi", cofactors, normals)
        return replace(part, vertices=vertices, normals=normals)
