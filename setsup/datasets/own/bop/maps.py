"""Depth of BOP datasets: PNG or TIFF, with a scale for each image."""

import io

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.formats.depth_images import decode_depth, deep_size
from setsup.datasets.formats.source import Source, source_content
from setsup.datasets.own.captures.maps import fit_map
from setsup.errors import DamagedFile

__all__ = ["read_metres"]

_FIX = "replace it, or remove the image"
_MODES = ("I;16", "I;16L", "I;16B", "F")
_MOST_PIXELS = 80_000_000


def read_metres(
    scales: npt.NDArray[np.float64], source: Source, label: str, row: int, size: tuple[int, int]
) -> npt.NDArray[np.float32]:
    """Read depth along the optical axis, (height, width) float32 in metres, 0 where unknown.

    `scales` (n,) are the millimetres of one step of each row.
    """
    content = source_content(source)
    stored = deep_size(content)
    values = _decode_tiff(content, label) if stored is None else decode_depth(content, label, stored)
    depth = fit_map(values.astype(np.float32), size, label) * np.float32(scales[row] / 1000)
    return np.where(np.isfinite(depth) & (depth > 0), depth, np.float32(0))


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
