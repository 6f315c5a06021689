"""Depth of BOP datasets: PNG or TIFF, with a scale for each image."""

import io

import numpy as np

from setsup.arrays import Array, Floats, Reals
from setsup.datasets.adapters.frame_maps import fit_depth
from setsup.datasets.formats.depth_images import decode_depth, deep_size
from setsup.datasets.formats.source import Source, source_content
from setsup.errors import DamagedFile

__all__ = ["read_metres"]

_FIX = "replace it, or remove the image"
_MODES = ("I;16", "I;16L", "I;16B", "F")
_MOST_PIXELS = 80_000_000


def read_metres(scales: Reals, source: Source, label: str, row: int, size: tuple[int, int]) -> Floats:
    """Read depth along the optical axis, (height, width) float32 in metres, 0 where unknown.

    `scales` (n,) are the millimetres of one step of each row.
    """
    content = source_content(source)
    stored = deep_size(content)
    values = _decode_tiff(content, label) if stored is None else decode_depth(content, label, stored)
    return fit_depth(values, scales[row] / 1000, size, label)


def _decode_tiff(content: bytes, label: str) -> Array:
    from PIL import Image, UnidentifiedImageError

    expected = "expected a PNG of one channel of 16 bits, or a TIFF of 16 bits or float32"
    try:
        with Image.open(io.BytesIO(content), formats=("TIFF",)) as image:
            if image.mode in _MODES and image.width * image.height <= _MOST_PIXELS:
                return np.asarray(image)
            held = f"has {image.width} × {image.height} pixels (width × height) of the Pillow mode {image.mode}"
    except UnidentifiedImageError:
        held = f"begins with {content[:8]!r}"
    except Exception as error:  # Pillow raises many kinds of errors
        why = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFile(f"{label} could not be decoded as TIFF: {why}", _FIX) from error
    raise DamagedFile(f"{label} {held}; {expected}", _FIX)
