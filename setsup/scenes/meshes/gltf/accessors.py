"""Numbers of a glTF file: accessors, with what is normalised, interleaved or sparse ([1]_, 3.6).

References
----------
.. [1] Khronos Group, "glTF 2.0 Specification", https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html.

"""

import base64
import binascii
from types import MappingProxyType
from urllib.parse import unquote_to_bytes

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Reals
from setsup.errors import DataError
from setsup.files.numbers import refuse
from setsup.scenes.meshes.gltf.tree import Tree, child, item, whole
from setsup.scenes.meshes.mesh_files import Assets

__all__ = ["Accessors", "data_uri"]

_DTYPES = MappingProxyType({5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"})
_COLUMNS = MappingProxyType({"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16})
_MOST_ZEROS = 1 << 22
"""Elements that an accessor without bytes of its own may have."""


class Accessors:
    """Accessors of a glTF file.

    Attributes
    ----------
    size : int
        Bytes of the buffers that were read.

    """

    def __init__(self, tree: Tree, own: bytes | None, assets: Assets, label: str) -> None:
        self._tree, self._own, self._assets, self._label = tree, own, assets, label
        self._buffers: dict[int, bytes] = {}
        self.size = 0

    def reals(self, index: object, *columns: int) -> Reals:
        """Numbers as float64, (n, c); normalised integers become 0 … 1 or −1 … 1."""
        elements, told = self._elements(index, columns)
        if told.get("normalized") and elements.dtype.kind in "iu":
            return np.maximum(elements / np.iinfo(elements.dtype).max, -1.0)
        return elements.astype(np.float64)

    def integers(self, index: object, columns: int = 1) -> npt.NDArray[np.int64]:
        """Integers, (n, c)."""
        elements, _ = self._elements(index, (columns,))
        if elements.dtype.kind == "f":
            refuse(self._label, f"has floats in accessor {index}, which must contain integers")
        return elements.astype(np.int64)

    def has_data(self, index: object) -> bool:
        """Whether an accessor has numbers of its own: without, all are 0, unless an extension gives them."""
        told = item(self._tree, "accessors", index, self._label)
        return "bufferView" in told or "sparse" in told

    def count(self, index: object) -> int:
        """Elements of an accessor."""
        return whole(item(self._tree, "accessors", index, self._label), "count", self._label)

    def view(self, index: object) -> bytes:
        """Bytes of a buffer view."""
        told = item(self._tree, "bufferViews", index, self._label)
        start, length = whole(told, "byteOffset", self._label, 0), whole(told, "byteLength", self._label)
        buffer = self._buffer(told.get("buffer"))
        if start + length > len(buffer):
            refuse(self._label, f"has buffer view {index} that extends beyond the {len(buffer):,} bytes of its buffer")
        return buffer[start : start + length]

    def _elements(self, index: object, columns: tuple[int, ...]) -> tuple[Array, Tree]:
        told = item(self._tree, "accessors", index, self._label)
        kind, wide = told.get("componentType"), told.get("type")
        dtype = _DTYPES.get(kind) if isinstance(kind, int) else None
        width = _COLUMNS.get(wide) if isinstance(wide, str) else None
        if dtype is None or width is None or width not in columns:
            refuse(self._label, f"has accessor {index} of {wide!r:.20} and {kind!r:.20}, which does not match its use")
        count = whole(told, "count", self._label)
        sparse = child(told, "sparse", self._label) if "sparse" in told else None
        if "bufferView" in told:
            start = whole(told, "byteOffset", self._label, 0)
            elements = self._rows(told["bufferView"], start, count, width, np.dtype(dtype))
        elif count <= _MOST_ZEROS:
            elements = np.zeros((count, width), dtype)
        else:
            refuse(self._label, f"has accessor {index} of {count:,} elements without data")
        if sparse is not None:
            elements = self._substituted(elements, sparse, index)
        return elements, told

    def _substituted(self, elements: Array, sparse: Tree, index: object) -> Array:
        """Elements of which some are given apart."""
        label, count = self._label, whole(sparse, "count", self._label)
        where, what = child(sparse, "indices", label), child(sparse, "values", label)
        kind = where.get("componentType")
        if not isinstance(kind, int) or kind not in (5121, 5123, 5125):
            refuse(label, f"has accessor {index} with sparse indices of type {kind!r:.20}")
        start = whole(where, "byteOffset", label, 0)
        rows = self._rows(where.get("bufferView"), start, count, 1, np.dtype(_DTYPES[kind]))[:, 0]
        if len(rows) and rows.max() >= len(elements):
            refuse(label, f"has accessor {index} with sparse index {rows.max()} of {len(elements):,}")
        start = whole(what, "byteOffset", label, 0)
        values = self._rows(what.get("bufferView"), start, count, elements.shape[1], elements.dtype)
        elements = elements.copy()
        elements[rows] = values
        return elements

    def _rows(self, view: object, start: int, count: int, width: int, dtype: np.dtype[np.generic]) -> Array:
        told, size = item(self._tree, "bufferViews", view, self._label), width * dtype.itemsize
        content = self.view(view)
        step = whole(told, "byteStride", self._label, size) or size
        if step < size or (count and start + (count - 1) * step + size > len(content)):
            refuse(self._label, f"has an accessor of {count:,} elements, more than buffer view {view} contains")
        if not count:
            return np.zeros((0, width), dtype)
        return np.ndarray((count, width), dtype, content, start, (step, dtype.itemsize))

    def _buffer(self, index: object) -> bytes:
        told = item(self._tree, "buffers", index, self._label)
        if index not in self._buffers:
            self._buffers[int(str(index))] = content = self._content(told, index)
            self.size += len(content)
            least = whole(told, "byteLength", self._label)
            if len(content) < least:
                refuse(
                    self._label,
                    f"cannot be read as a mesh (its buffer {index} has {len(content):,} of the {least:,} declared "
                    "bytes)",
                )
        return self._buffers[int(str(index))]

    def _content(self, told: Tree, index: object) -> bytes:
        name = told.get("uri")
        if isinstance(name, str):
            embedded = data_uri(name)
            if embedded is not None:
                return embedded
            try:
                return self._assets[name]
            except FileNotFoundError as error:
                refuse(self._label, f"cannot be read as a mesh ({error})")
        if name is None and index == 0 and self._own is not None:
            return self._own
        named = sorted(name for name in child(told, "extensions", self._label) if isinstance(name, str))
        if named:
            raise DataError(
                f"{self._label}: the data of buffer {index} requires the extension {named[0]}, which is not "
                "supported; export the mesh without this extension"
            )
        refuse(self._label, f"has buffer {index} without data")


def data_uri(name: str) -> bytes | None:
    """Content that a URI holds itself; None for the name of a file."""
    if not name[:5].lower() == "data:":
        return None
    head, _, text = name.partition(",")
    try:
        return base64.b64decode(text) if head.endswith(";base64") else unquote_to_bytes(text)
    except (binascii.Error, ValueError):
        return b""
