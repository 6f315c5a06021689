"""The JSON of a glTF file, and what it is asked for: whatever stands there, the answer is right or a DamagedFile."""

import json
import struct
from typing import Any

from setsup.errors import DataError
from setsup.files.numbers import refuse

__all__ = ["Tree", "child", "item", "items", "number", "numbers", "read_tree", "whole"]

Tree = dict[str, Any]

_HEAD = struct.Struct("<4sII")
_CHUNK = struct.Struct("<I4s")
_MOST = 1 << 53


def read_tree(content: bytes, kind: str, label: str) -> tuple[Tree, bytes | None]:
    """JSON of a ``gltf`` or ``glb`` file, and the numbers that a ``glb`` file holds itself."""
    text, own = _chunks(content, label) if kind == "glb" else (content, None)
    try:
        tree = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        refuse(label, f"cannot be read as a mesh (its JSON is damaged: {str(error)[:80]})")
    if not isinstance(tree, dict):
        refuse(label, "cannot be read as a mesh (its JSON is not an object)")
    return tree, own


def _chunks(content: bytes, label: str) -> tuple[bytes, bytes | None]:
    if content[:4] != b"glTF":
        refuse(label, f"cannot be read as a mesh (it begins with {content[:4]!r}, not with b'glTF')")
    if len(content) < _HEAD.size:
        refuse(
            label,
            f"cannot be read as a mesh (it is truncated: it has {len(content):,} of the {_HEAD.size} bytes of its "
            "header)",
        )
    _, version, length = _HEAD.unpack_from(content)
    if version != 2:
        raise DataError(f"{label} uses version {version} of glTF, but only 2 is supported; convert it")
    if length > len(content):
        refuse(label, f"cannot be read as a mesh (it is truncated: it has {len(content):,} of {length:,} bytes)")
    at, chunks = _HEAD.size, list[tuple[bytes, bytes]]()
    while at + _CHUNK.size <= length and len(chunks) < 2:
        size, name = _CHUNK.unpack_from(content, at)
        at += _CHUNK.size
        if size > length - at:
            refuse(label, f"cannot be read as a mesh (its chunk {name!r} extends beyond the end of the file)")
        chunks.append((name, content[at : at + size]))
        at += size
    if not chunks or chunks[0][0] != b"JSON":
        refuse(label, "cannot be read as a mesh (its first chunk is not JSON)")
    return chunks[0][1], chunks[1][1] if len(chunks) > 1 and chunks[1][0] == b"BIN\0" else None


def items(tree: Tree, name: str, label: str) -> list[Tree]:
    """All objects of a list; none where it is not there."""
    objects = tree.get(name, [])
    if not isinstance(objects, list) or not all(isinstance(entry, dict) for entry in objects):
        refuse(label, f"has {name!r} that is not a list of objects")
    return objects


def item(tree: Tree, name: str, index: object, label: str) -> Tree:
    """One object of a list of the file, by its number."""
    listed = tree.get(name, [])
    if not isinstance(listed, list):
        refuse(label, f"has {name!r} that is not a list")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(listed):
        refuse(label, f"refers to index {index!r:.20} of its {len(listed):,} {name}")
    entry = listed[index]
    if not isinstance(entry, dict):
        refuse(label, f"has an element {index} of {name} that is not an object")
    return entry


def child(tree: Tree, name: str, label: str) -> Tree:
    """An object within an object; an empty one where it is not there."""
    inner = tree.get(name, {})
    if not isinstance(inner, dict):
        refuse(label, f"has {name!r} that is not an object")
    return inner


def whole(tree: Tree, name: str, label: str, default: int | None = None) -> int:
    """An integer of 0 or more."""
    value = tree.get(name, default)
    # some programs write 3.0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        refuse(label, f"has {name!r} of {value!r:.20}, which must be an integer")
    return value


def number(tree: Tree, name: str, label: str, default: float) -> float:
    """A number."""
    return _number(tree.get(name, default), name, label)


def numbers(tree: Tree, name: str, default: tuple[float, ...], label: str) -> list[float]:
    """Numbers, as many as by default."""
    values = tree.get(name, default)
    if not isinstance(values, list | tuple) or len(values) != len(default):
        refuse(label, f"has {name!r} of {values!r:.40}, which must be {len(default)} numbers")
    return [_number(value, name, label) for value in values]


def _number(value: object, name: str, label: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e300:
        refuse(label, f"has {name!r} of {value!r:.20}, which must be a number")
    return float(value)
