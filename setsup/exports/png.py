"""Images as PNG files, without loss; also with 16 bits in three channels, which Pillow does not write.

References
----------
.. [1] W3C, "Portable Network Graphics (PNG) Specification", https://www.w3.org/TR/png: chunks, color types, and numbers
   of 16 bits with the most significant byte first.

"""

import io
import struct
import zlib

import numpy as np

from setsup.arrays import Array, Pixels

__all__ = ["encode_png", "opaque"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RGB = 2


def encode_png(image: Array) -> bytes:
    """Encode an image: (h, w) of uint8 or uint16, (h, w, 1, 3 or 4) of uint8, or (h, w, 3) of uint16."""
    pixels: Array = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    if pixels.ndim == 3 and pixels.dtype == np.uint16:
        return _encode_deep(pixels)
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG", compress_level=3)
    return file.getvalue()


def opaque(image: Pixels) -> Pixels:
    """Colors (..., 3) of an image; those with alpha in front of black."""
    if image.shape[-1] < 4:
        return image
    product = image[..., :3].astype(np.uint16) * image[..., 3:]
    return np.asarray((product + 127) // 255, np.uint8)


def _encode_deep(pixels: Array) -> bytes:
    height, width = pixels.shape[:2]
    lines = np.zeros((height, 1 + 6 * width), np.uint8)  # each begins with the number of its filter: none
    lines[:, 1:] = np.ascontiguousarray(pixels, ">u2").view(np.uint8).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 16, _RGB, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
