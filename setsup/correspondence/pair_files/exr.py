"""Depth as OpenEXR: one channel ``Y`` of float32, in blocks of 16 lines, compressed without loss.

References
----------
.. [1] "Technical Introduction to OpenEXR" and "OpenEXR File Layout", openexr.com: magic number, attributes, offset
   table, and the ZIP compression of blocks.

"""

import struct
import zlib

import numpy as np

from setsup.arrays import Array

__all__ = ["encode_exr"]

_MAGIC = struct.pack("<ii", 20000630, 2)
_FLOAT, _ZIP, _LINES = 2, 3, 16


def encode_exr(values: Array) -> bytes:
    """Encode numbers (height, width) as float32."""
    rows = np.ascontiguousarray(values, "<f4")
    height, width = rows.shape
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    channel = b"Y\0" + struct.pack("<iB3xii", _FLOAT, 0, 1, 1) + b"\0"
    attributes = (
        (b"channels", b"chlist", channel),
        (b"compression", b"compression", bytes([_ZIP])),
        (b"dataWindow", b"box2i", window),
        (b"displayWindow", b"box2i", window),
        (b"lineOrder", b"lineOrder", bytes([0])),
        (b"pixelAspectRatio", b"float", struct.pack("<f", 1)),
        (b"screenWindowCenter", b"v2f", struct.pack("<2f", 0, 0)),
        (b"screenWindowWidth", b"float", struct.pack("<f", 1)),
    )
    head = _MAGIC + b"".join(
        b"%b\0%b\0%b%b" % (name, kind, struct.pack("<i", len(value)), value) for name, kind, value in attributes
    )
    head += b"\0"
    blocks = []
    for line in range(0, height, _LINES):
        content = _compress(rows[line : line + _LINES].tobytes())
        blocks.append(struct.pack("<ii", line, len(content)) + content)
    sizes = [len(head) + 8 * len(blocks), *map(len, blocks)]
    offsets = np.cumsum(sizes)[:-1].astype("<u8")
    return b"".join([head, offsets.tobytes(), *blocks])


def _compress(content: bytes) -> bytes:
    """Bytes at even places, then those at odd ones, as differences, deflated; unchanged where that is no shorter."""
    plain = np.frombuffer(content, np.uint8)
    parted = np.concatenate([plain[::2], plain[1::2]])
    steps = parted.copy()
    steps[1:] = parted[1:] - parted[:-1] + np.uint8(128)
    packed = zlib.compress(steps.tobytes())
    return packed if len(packed) < len(content) else content
