"""PNG files of numbers: 16-bit depth, and labels in three or four channels; read exactly or refused.

The checksums of all chunks are checked first, since damaged depth is a wrong measurement.
"""

import struct

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.png import check_png, png_head, png_pixels
from setsup.datasets.formats.source import Source, source_content
from setsup.errors import DamagedFile

__all__ = ["decode_channels", "decode_deep", "decode_depth", "deep_size"]

_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_HEAD = 33  # bytes
_MOST_TIMES = 1040  # what deflate can pack at best
_COLORS, _MODES, _NAMED = {1: 0, 3: 2}, {1: "mono", 3: "rgb"}, {1: "one channel", 3: "three channels"}
_FIX = "replace it, or remove the frame"


def decode_depth(source: Source, label: str, size: tuple[int, int]) -> npt.NDArray[np.uint16]:
    """Decode a depth image: a PNG of one channel of 16 bits.

    `size` (height, width); returns (height, width) uint16.
    """
    return decode_deep(source, label, size)[..., 0]


def decode_deep(source: Source, label: str, size: tuple[int, int], channels: int = 1) -> npt.NDArray[np.uint16]:
    """Decode a PNG of one or three channels of 16 bits.

    `size` (height, width); returns (height, width, channels) uint16.
    """
    from kornia_rs.io import decode_image_png_u16

    content = _content(source, label)
    width, height, bits, color, _, _, interlaced = struct.unpack_from(">IIBBBBB", content, 16)
    if (bits, color, interlaced) != (16, _COLORS[channels], 0):
        raise DamagedFile(
            f"{label} is a PNG of {bits} bits, color type {color}{', interlaced' * bool(interlaced)}; expected "
            f"{_NAMED[channels]} of 16 bits, without interlacing",
            _FIX,
        )
    _check_size((height, width), size, content, bits * channels, label)
    try:
        pixels: npt.NDArray[np.uint16] = decode_image_png_u16(content, size, _MODES[channels])
    except Exception as error:
        raise DamagedFile(f"{label}: the compressed data is truncated or corrupt", _FIX) from error
    return pixels.reshape(*size, channels)


def deep_size(content: bytes) -> tuple[int, int] | None:
    """Height and width of a PNG with one channel of 16 bits; None for other files."""
    if not content.startswith(_START) or len(content) < _HEAD or (content[24], content[25]) != (16, 0):
        return None
    return int.from_bytes(content[20:24], "big"), int.from_bytes(content[16:20], "big")


def decode_channels(source: Source, label: str, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Decode a PNG of three or four channels of 8 bits, in the order in which they are stored.

    `size` (height, width); returns (height, width, 3 or 4) uint8.
    """
    content = _content(source, label)
    head = png_head(content)
    if head is None or head.channels not in (3, 4):
        raise DamagedFile(f"{label} is not a PNG with three or four channels of 8 bits", _FIX)
    _check_size((head.height, head.width), size, content, 8 * head.channels, label)
    try:
        return png_pixels(content, head)
    except ValueError as error:
        raise DamagedFile(f"{label} is damaged: {error}", _FIX) from error


def _content(source: Source, label: str) -> bytes:
    """Content of a PNG with complete chunks."""
    try:
        content = source_content(source)
    except OSError as error:
        raise DamagedFile.unreadable(label, error, _FIX) from error
    if not content.startswith(_START) or len(content) < _HEAD:
        raise DamagedFile(f"{label} is not a PNG: it begins with {content[:8]!r}", _FIX)
    try:
        check_png(content)
    except ValueError as error:
        raise DamagedFile(f"{label} is damaged: {error}", _FIX) from error
    return content


def _check_size(actual: tuple[int, int], size: tuple[int, int], content: bytes, bits: int, label: str) -> None:
    if actual != tuple(size):
        raise DamagedFile(
            f"{label} is {actual[0]} × {actual[1]} pixels (height × width); expected {size[0]} × {size[1]}",
            _FIX,
        )
    if actual[0] * actual[1] * bits > 8 * _MOST_TIMES * len(content):
        raise DamagedFile(
            f"{label} has {len(content):,} bytes, which cannot contain {actual[0]} × {actual[1]} pixels (height × "
            "width)",
            _FIX,
        )
