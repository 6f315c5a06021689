"""Image files into arrays: look at headers first, decode strictly, never guess.

Convention
----------
Arrays are uint8 (height, width, channels) as a person sees the picture: the orientation that a camera noted in a JPEG
is applied.
"""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["Header", "channels_of", "decode", "header"]

# bitmaps only: Pillow hands EPS to another program, and some old formats have decoders that nobody looks after
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "JPEG2000")
_MOST_PIXELS = 80_000_000
_ORIENTATION = 0x0112
_MODES = {
    **dict.fromkeys(("1", "L"), 1),
    **dict.fromkeys(("P", "RGB", "CMYK", "YCbCr"), 3),
    **dict.fromkeys(("LA", "PA", "RGBA"), 4),
}
_CHANNEL_MODES = {1: "L", 3: "RGB", 4: "RGBA"}

threads = min(8, os.cpu_count() or 1)
"""Threads that read and decode images at once; 1 in a loader's worker processes, which share the cores."""


@dataclass(frozen=True, slots=True)
class Header:
    """What an image file says of itself: pixels, and channels of its own mode (1, 3 or 4)."""

    height: int
    width: int
    channels: int


def header(source: Path | bytes, label: str) -> Header:
    """Read the size and the mode of an image without decoding it.

    Parameters
    ----------
    source : Path or bytes
        Image file, or its content.
    label : str
        What messages call it: the path and the row.

    Raises
    ------
    DataError
        When it is no image of a known format, has more than 8 bits a channel, or is absurdly large.

    """
    with _opened(source, label) as image:
        return _header(image)


def decode(
    source: Path | bytes, label: str, channels: int, size: tuple[int, int] | None = None
) -> npt.NDArray[np.uint8]:
    """Decode an image.

    Parameters
    ----------
    source : Path or bytes
        Image file, or its content.
    label : str
        What messages call it: the path and the row.
    channels : int
        1 (grey), 3 (sRGB) or 4 (sRGB and alpha). Grey becomes colour, and alpha is dropped or added, as needed.
    size : (height, width), optional
        Resize the image, antialiased, until it just covers this size, and cut out the centre.

    Returns
    -------
    (height, width, channels) uint8

    Raises
    ------
    DataError
        When the image is damaged, or in colour where grey was asked for.

    """
    from PIL import Image, ImageOps

    with _opened(source, label) as image:
        if channels == 1 and _MODES[image.mode] != 1:
            raise DataError(
                f"{label} has colour ({image.mode}), but the images looked at when the table was opened are grey; "
                "convert all to one mode"
            )
        picture = _upright(image).convert(_CHANNEL_MODES[channels])
        if size is not None and picture.size != (size[1], size[0]):
            picture = ImageOps.fit(picture, (size[1], size[0]), Image.Resampling.BICUBIC)
        pixels = np.array(picture, dtype=np.uint8)
    return pixels.reshape(*pixels.shape[:2], channels)


def channels_of(headers: Sequence[Header]) -> int:
    """Channels in which images can be told together: 1 where all are grey, 4 where all have alpha, else 3."""
    found = {header.channels for header in headers}
    return found.pop() if len(found) == 1 else 3


@contextmanager
def _opened(source: Path | bytes, label: str) -> "Iterator[Image.Image]":
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=_FORMATS) as image:
            _check(image, label)
            yield image
    except DataError:
        raise
    except UnidentifiedImageError as error:
        known = ", ".join(_FORMATS)
        raise DataError(f"{label} is no image that can be read; known: {known}; replace it, or take it out") from error
    except FileNotFoundError as error:
        raise DataError(f"{label} is missing; put it there, or take it out") from error
    except PermissionError as error:
        raise DataError(f"{label} may not be read by you; change the file's permissions") from error
    except Exception as error:
        # Pillow's readers raise whatever they stumble over in a damaged file, a struct.error as well as a TypeError
        why = str(error) or type(error).__name__
        raise DataError(f"{label} cannot be read, it may be damaged ({why}); replace it, or take it out") from error


def _check(image: "Image.Image", label: str) -> None:
    width, height = image.size
    if width * height > _MOST_PIXELS:
        raise DataError(f"{label} has {width} × {height} pixels; images of more than {_MOST_PIXELS:,} are refused")
    if image.mode not in _MODES:
        raise DataError(f"{label} has pixels of the mode {image.mode}, not 8 bits a channel; convert it to 8 bits")


def _header(image: "Image.Image") -> Header:
    width, height = image.size
    if _orientation(image) >= 5:
        width, height = height, width
    return Header(height, width, _MODES[image.mode])


def _orientation(image: "Image.Image") -> int:
    """1 for upright, 5 and more for what lies on its side. Only JPEG: elsewhere it is rare, and may need decoding."""
    found: Any = image.getexif().get(_ORIENTATION, 1) if image.format in ("JPEG", "MPO") else 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _upright(image: "Image.Image") -> "Image.Image":
    from PIL import ImageOps

    return ImageOps.exif_transpose(image) if _orientation(image) > 1 else image
