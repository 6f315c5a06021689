"""Nodes of a glTF file: which of them are shown, and where they stand in the default pose ([1]_, 3.5).

References
----------
.. [1] Khronos Group, "glTF 2.0 Specification", https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html.

"""

from typing import Any

import numpy as np

from setsup.arrays import Reals
from setsup.files.numbers import refuse
from setsup.scenes.meshes.gltf.tree import Tree, child, item, items, numbers, whole
from setsup.scenes.portable import product

__all__ = ["matrices", "placed"]


def placed(tree: Tree, label: str) -> tuple[list[int], dict[int, Reals]]:
    """Numbers of the nodes that the default scene shows, in its order, and the matrix of every node."""
    nodes = items(tree, "nodes", label)
    below = [_numbers(node, "children", len(nodes), label) for node in nodes]
    inner = {other for some in below for other in some}
    roots = [node for node in range(len(nodes)) if node not in inner]
    everywhere, _ = _walk(nodes, below, roots, label)
    if not tree.get("scenes"):
        first = roots
    else:
        scene = item(tree, "scenes", whole(tree, "scene", label, 0), label)
        first = _numbers(scene, "nodes", len(nodes), label)
    there, shown = _walk(nodes, below, first, label)
    return shown, everywhere | there


def matrices(moves: Reals, turns: Reals, scales: Reals) -> Reals:
    """Matrices of translations (n, 3), unit quaternions (n, 4; the real part last) and factors (n, 3); (n, 4, 4)."""
    length = np.linalg.norm(turns, axis=1, keepdims=True)
    x, y, z, w = (turns / np.where(length > 0, length, 1.0)).T
    result = np.zeros((len(moves), 4, 4))
    result[:, 0, :3] = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], axis=1)
    result[:, 1, :3] = np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], axis=1)
    result[:, 2, :3] = np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], axis=1)
    result[:, :3, :3] *= scales[:, None, :]
    result[:, :3, 3] = moves
    result[:, 3, 3] = 1
    return result


def _walk(
    nodes: list[Tree], below: list[list[int]], roots: list[int], label: str
) -> tuple[dict[int, Reals], list[int]]:
    """Matrices of the nodes below some, and which of them are visible, in the order of the tree."""
    placed: dict[int, Reals] = {}
    shown: list[int] = []
    waiting: list[tuple[int, Reals, bool]] = [(node, np.eye(4), True) for node in reversed(roots)]
    while waiting:
        node, above, visible = waiting.pop()
        if node in placed:
            refuse(label, f"has node {node} with two parents, or as its own descendant")
        told = nodes[node]
        placed[node] = matrix = product(above, _own(told, label))
        extension = child(told, "extensions", label).get("KHR_node_visibility")
        if isinstance(extension, dict) and extension.get("visible") is False:
            visible = False
        if visible:
            shown.append(node)
        waiting += [(other, matrix, visible) for other in reversed(below[node])]
    return placed, shown


def _own(told: Tree, label: str) -> Reals:
    """Matrix of a node against that above it."""
    if "matrix" in told:
        flat = numbers(told, "matrix", tuple(np.eye(4).ravel().tolist()), label)
        return np.ascontiguousarray(np.array(flat).reshape(4, 4).T)
    parts = [
        np.array([numbers(told, name, default, label)])
        for name, default in (
            ("translation", (0.0, 0.0, 0.0)),
            ("rotation", (0.0, 0.0, 0.0, 1.0)),
            ("scale", (1.0, 1.0, 1.0)),
        )
    ]
    matrix: Reals = matrices(*parts)[0]
    return matrix


def _numbers(told: Tree, name: str, count: int, label: str) -> list[int]:
    indices: Any = told.get(name, [])
    if not isinstance(indices, list) or not all(isinstance(index, int) and 0 <= index < count for index in indices):
        refuse(label, f"has {name!r} that is not a list of indices below {count:,}")
    return [int(index) for index in indices]
