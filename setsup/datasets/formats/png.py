"""PNG: checks that a file is complete, and decodes common kinds with a compiled decoder."""

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["PngHead", "check_png", "png_head", "png_pixels"]

_MAGIC = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 6: 4}
_MODES = {1: "mono", 3: "rgb", 4: "rgba"}
_PLAIN = frozenset((b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"bKGD", b"hIST", b"pHYs", b"tIME", b"tEXt", b"eXIf"))
_MOST_TIMES = 1040  # what deflate can pack at best


@dataclass(frozen=True, slots=True)
class PngHead:
    """Pixels and channels of a plain PNG: 8 bits, without interlacing, palette or transparent color."""

    height: int
    width: int
    channels: int


def png_head(content: bytes) -> PngHead | None:
    r"""Read the chunks before the image; None if the PNG is not plain, or malformed.

    Examples
    --------
    >>> start = b"\x89PNG\r\n\x1a\n" + bytes.fromhex("0000000d 49484452 00000002 00000003 08 02 00 00 00 00000000")
    >>> png_head(start + bytes.fromhex("00000000 49444154 00000000"))
    PngHead(height=3, width=2, channels=3)

    """
    if not content.startswith(_MAGIC + b"\0\0\0\rIHDR") or len(content) < 33:
        return None
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    depth, kind, packing, filtering, interlaced = content[24:29]
    if depth != 8 or kind not in _CHANNELS or packing or filtering or interlaced or not (width and height):
        return None
    at = 33
    while (name := content[at + 4 : at + 8]) != b"IDAT":
        if name not in _PLAIN:
            return None
        at += 12 + int.from_bytes(content[at : at + 4], "big")
    return PngHead(height, width, _CHANNELS[kind])


def png_pixels(content: bytes, head: PngHead) -> npt.NDArray[np.uint8]:
    """Decode a plain PNG.

    Returns (height, width, 1, 3 or 4) uint8.
    """
    from kornia_rs.io import decode_image_png_u8

    if head.height * (1 + head.width * head.channels) > len(content) * _MOST_TIMES:
        raise ValueError(
            f"its {len(content):,} bytes cannot contain {head.width} × {head.height} pixels (width × height)"
        )
    try:
        pixels: npt.NDArray[np.uint8] = decode_image_png_u8(content, (head.height, head.width), _MODES[head.channels])
    except Exception as error:
        raise ValueError("its compressed data is truncated or corrupt") from error
    # the decoder has looked at the checksums up to the last pixel, and at nothing behind it
    check_png(content, pixels=False)
    return pixels


def check_png(content: bytes, pixels: bool = True) -> None:
    """Check that all chunks of a PNG are present with correct checksums; Pillow ignores those of the pixels."""
    view, at, name = memoryview(content), len(_MAGIC), b""
    while name != b"IEND":
        name = content[at + 4 : at + 8]
        end = at + 12 + int.from_bytes(content[at : at + 4], "big")
        if len(name) < 4 or end > len(content):
            raise ValueError("it is truncated")
        # ancillary chunks, whose names begin with a small letter, do not bear on the pixels
        if (name[0] < 0x60 and (pixels or name != b"IDAT")) and (
            zlib.crc32(view[at + 4 : end - 4]) != int.from_bytes(content[end - 4 : end], "big")
        ):
            raise ValueError("a checksum does not match")
        at = end
