"""Which files a mesh file names: those that trimesh asks for when it reads it, found without loading the mesh."""

import json
import re
import struct
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["asset_names"]

_LIBRARY = re.compile(rb"(?:\A|[\r\n])[ \t]*mtllib[ \t]+((?:\\\r?\n|[^\r\n]){1,4096})")
_TEXTURE = re.compile(rb"(?i)texturefile([^\r\n]*)")
_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 16
_GLB = struct.Struct("<4sIII4s")


def asset_names(path: Path, kind: str) -> list[str]:
    """Names of the files that a mesh file, or a list of materials, names."""
    with path.open("rb") as file:
        if kind == "obj":
            return _libraries(file)
        if kind == "mtl":
            return _maps(file.read().decode("utf-8", "replace"))
        if kind == "ply":
            names = _TEXTURE.findall(file.read(_BLOCK).partition(b"end_header")[0])
            return [_text(names[-1])] if names else []
        if kind == "gltf":
            return _addresses(file.read())
        if kind == "glb":
            head = file.read(_GLB.size)
            return _addresses(file.read(_GLB.unpack(head)[3])) if len(head) == _GLB.size else []
    return []


def _libraries(file: BinaryIO) -> list[str]:
    """Names after every ``mtllib``: the whole line is one, or its words are several."""
    window, lines = b"", list[bytes]()
    while block := file.read(_BLOCK):
        window += block
        cut = _line_end(window, len(window))
        # a line that goes on in the next one is left to the next block
        while cut > 0 and window[:cut].rstrip(b"\r").endswith(b"\\"):
            cut = _line_end(window, cut)
        lines += _LIBRARY.findall(window[: max(cut, 0)])
        window = window[max(cut, 0) :][-_LONGEST_LINE:]
    lines += _LIBRARY.findall(window)
    joined = [_text(re.sub(rb"\\\r?\n", b" ", line)) for line in lines]
    return list(dict.fromkeys(name for line in joined for name in (line, *line.split())))


def _line_end(window: bytes, before: int) -> int:
    return max(window.rfind(b"\n", 0, before), window.rfind(b"\r", 0, before))


def _maps(text: str) -> list[str]:
    """Names after ``map_Kd``: other maps are not read."""
    lines = (line.strip() for line in text.splitlines())
    return [line[len("map_kd") :].strip() for line in lines if re.match(r"map_kd\s+\S", line, re.IGNORECASE)]


def _addresses(content: bytes) -> list[str]:
    """Names of the buffers and images of a glTF file that do not lie within it."""
    try:
        tree: Any = json.loads(content.decode("utf-8", "replace"))
        addresses = [entry.get("uri") for kind in ("buffers", "images") for entry in tree.get(kind, [])]
    except (ValueError, AttributeError, TypeError, RecursionError):  # damaged, so that it cannot be loaded either
        return []
    return [address for address in addresses if isinstance(address, str) and not address.lower().startswith("data:")]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace").strip()
