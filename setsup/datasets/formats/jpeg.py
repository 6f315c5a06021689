"""JPEG: the markers of a file, and its image decoded by libjpeg-turbo, which detects damage."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Frame", "jpeg_frame", "jpeg_pixels", "turned"]

_SKIPPED = frozenset((0xC4, 0xDB, 0xDD, 0xFE, *range(0xE0, 0xF0)))
_APP1, _APP2 = 0xE1, 0xE2
_HUFFMAN = (0xC0, 0xC1, 0xC2)
_OTHER_FRAMES = frozenset((0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF))
_SAMPLINGS = (0x11, 0x21, 0x12, 0x22, 0x41, 0x14)
_BETWEEN_SEGMENTS = re.compile(r"extraneous bytes before marker 0x(?!d[0-9])")  # those end compressed data
_BEFORE_END = re.compile(r"extraneous bytes before marker 0xd9")
_PIXELS_A_BYTE = 512  # a block of 64 pixels takes at least one bit


@dataclass(frozen=True, slots=True)
class Frame:
    """Content of the markers: pixels, channels, and whether Exif or XMP data may contain an orientation.

    ``plain`` is False for images that libjpeg-turbo's direct decoding to grayscale or color does not support: CMYK,
    more than 8 bits, lossless and arithmetic coding, rare sampling of the colors, several images in one file.
    """

    height: int
    width: int
    channels: int
    noted: bool
    plain: bool


def jpeg_frame(content: bytes) -> Frame | None:
    """Read the markers up to the frame; None if their sequence is invalid.

    Examples
    --------
    >>> jpeg_frame(bytes.fromhex("ffd8 ffc0 000b 08 0003 0002 01 01 11 00"))
    Frame(height=3, width=2, channels=1, noted=False, plain=True)

    """
    at, noted, several = 2, False, False
    while at + 4 <= len(content):
        if content[at] != 0xFF:
            return None
        marker = content[at + 1]
        length = content[at + 2] << 8 | content[at + 3]
        if marker in _HUFFMAN or marker in _OTHER_FRAMES:
            frame = _frame(content[at + 4 : at + 2 + length], noted)
            plain = frame is not None and frame.plain and marker in _HUFFMAN and not several
            return None if frame is None else Frame(frame.height, frame.width, frame.channels, noted, plain)
        if marker not in _SKIPPED or length < 2:
            return None
        noted |= marker == _APP1
        several |= marker == _APP2 and content.startswith(b"MPF\0", at + 4)
        at += 2 + length
    return None


def jpeg_pixels(
    content: bytes,
    frame: Frame,
    out: npt.NDArray[np.uint8] | None = None,
    stray: Callable[[str], object] | None = None,
    reduce: int = 1,
) -> npt.NDArray[np.uint8]:
    """Decode a plain image, as stored in the file; with `reduce` 2, 4 or 8 at that part of its height and width.

    `out` (height, width, channels) uint8 in C order, optional; returns (height, width, 1 or 3) uint8, or what is left
    of height and width, rounded up.
    """
    from simplejpeg import decode_jpeg

    height, width, channels = frame.height, frame.width, frame.channels
    if height * width > len(content) * _PIXELS_A_BYTE:
        raise ValueError(f"its {len(content):,} bytes cannot contain {width} × {height} pixels (width × height)")
    color = "GRAY" if channels == 1 else "RGB"
    shape = (-(-height // reduce), -(-width // reduce), channels)
    # the decoder takes the smallest of its scales that is not below these; 0 is the scale of the file
    least = {"min_height": shape[0], "min_width": shape[1]} if reduce > 1 else {}
    try:
        pixels: npt.NDArray[np.uint8] = decode_jpeg(content, color, buffer=out, **least)
    except ValueError as error:
        if stray is not None and _BEFORE_END.search(str(error)):
            stray(str(error))  # the first warning, and nothing follows the end: the image is complete
        elif not _BETWEEN_SEGMENTS.search(str(error)):
            raise ValueError(f"its compressed data is truncated or corrupt: {error}") from error
        pixels = decode_jpeg(content, color, buffer=out, strict=False, **least)
    if pixels.shape != shape:
        raise ValueError(f"it decodes to the shape {pixels.shape}; expected {shape}")
    return pixels if out is None else out


def turned(pixels: npt.NDArray[np.uint8], orientation: int) -> npt.NDArray[np.uint8]:
    """Apply an Exif orientation, 1 to 8, to an image; returns a view where possible."""
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    mirrored: Any = {
        2: np.s_[:, ::-1],
        3: np.s_[::-1, ::-1],
        4: np.s_[::-1],
        6: np.s_[:, ::-1],
        7: np.s_[::-1, ::-1],
        8: np.s_[::-1],
    }
    return pixels[mirrored[orientation]] if orientation in mirrored else pixels


def _frame(body: bytes, noted: bool) -> Frame | None:
    if len(body) < 6 or len(body) != 6 + 3 * body[5]:
        return None
    height, width, components = body[1] << 8 | body[2], body[3] << 8 | body[4], body[5]
    if not (height and width and components in (1, 3, 4)):
        return None
    sampled = components == 1 or (components == 3 and body[7] in _SAMPLINGS and body[10] == body[13] == 0x11)
    return Frame(height, width, 1 if components == 1 else 3, noted, body[0] == 8 and sampled)
