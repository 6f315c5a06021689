"""A writer of small glTF files, for tests of what other writers leave out."""

import json
import struct

import numpy as np

_TYPES = {"b": 5120, "B": 5121, "h": 5122, "H": 5123, "I": 5125, "f": 5126}
_KINDS = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
FACES = np.array([0, 1, 2, 0, 2, 3], np.uint16)


class Writer:
    """Numbers of a file, one buffer view for each accessor, and its JSON."""

    def __init__(self):
        self.content = b""
        self.tree = {"asset": {"version": "2.0"}, "bufferViews": [], "accessors": []}

    def view(self, content, **more):
        self.content += bytes(-len(self.content) % 4)
        self.tree["bufferViews"].append(
            {"buffer": 0, "byteOffset": len(self.content), "byteLength": len(content), **more}
        )
        self.content += content
        return len(self.tree["bufferViews"]) - 1

    def accessor(self, array, **more):
        array = np.asarray(array)
        told = {} if "sparse" in more else {"bufferView": self.view(array.tobytes())}
        columns = 1 if array.ndim == 1 else array.shape[1]
        self.tree["accessors"].append(
            {
                **told,
                "componentType": _TYPES[array.dtype.char],
                "count": len(array),
                "type": _KINDS[columns],
                **more,
            }
        )
        return len(self.tree["accessors"]) - 1

    def square(self, **attributes):
        """A primitive: the unit square, with further attributes by number."""
        return {"attributes": {"POSITION": self.accessor(SQUARE), **attributes}, "indices": self.accessor(FACES)}

    def glb(self):
        self.tree["buffers"] = [{"byteLength": len(self.content)}]
        text = json.dumps(self.tree).encode()
        text += b" " * (-len(text) % 4)
        body = self.content + bytes(-len(self.content) % 4)
        head = struct.pack("<4sII", b"glTF", 2, 28 + len(text) + len(body))
        return head + struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(body), b"BIN\0") + body

    def save(self, folder, **more):
        """Write a file of one node per mesh, unless told otherwise."""
        self.tree |= more
        self.tree.setdefault("nodes", [{"mesh": place} for place in range(len(self.tree.get("meshes", [])))])
        self.tree.setdefault("scenes", [{"nodes": list(range(len(self.tree["nodes"])))}])
        path = folder / "model.glb"
        path.write_bytes(self.glb())
        return path
