"""Images with one channel of more than 8 bits, such as depth, read exactly as arrays of numbers."""

import io

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.fetching import Images, sample_images
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.png import check_png
from setsup.datasets.formats.source import Source, source_content
from setsup.datasets.images import parallel
from setsup.errors import DamagedFile, DataError

__all__ = ["Measured", "deep_dtype", "stack"]

_LOOKED_AT = 8  # images that are decoded when a dataset is opened
_DEEP = {"I;16": "uint16", "I;16B": "uint16", "I": "int32", "F": "float32"}
_PNG = b"\x89PNG\r\n\x1a\n"
_FORMATS = ("PNG", "TIFF")
_FIX = "replace or remove it"


class Measured:
    """Images of one channel of 16 bits, 32 bits or float32, such as depth: (height, width), exact."""

    def __init__(self, images: Images, dtype: str, label: str) -> None:
        sizes = {_measure(*item, dtype).shape for item in sample_images(images, _LOOKED_AT)}
        self.modality = Modality(sizes.pop() if len(sizes) == 1 else (None, None), dtype)
        self._images, self._label = images, label

    def fetch(self, rows: Rows, out: Array | None = None) -> Array:
        """Decode the images of (n,) rows."""
        distinct, inverse = np.unique(rows, return_inverse=True)
        dtype = self.modality.dtype
        measured = parallel(lambda item: _measure(*item, dtype), self._images.take(distinct))
        return stack(measured, self.modality, self._label)[inverse]


def deep_dtype(source: Source, label: str) -> str | None:
    """Name of the dtype of an image of more than 8 bits; None for other images, and for files that are not images."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(source_content(source)), formats=_FORMATS) as image:
            return _DEEP.get(image.mode)
    except Exception:
        return None  # who reads its header says what is wrong


def _measure(source: Source, label: str, dtype: str) -> Array:
    from PIL import Image

    try:
        content = source_content(source)
        if content.startswith(_PNG):
            check_png(content)  # Pillow does not compare the checksums of pixels
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            if _DEEP.get(image.mode) != dtype:
                raise DamagedFile(f"{label} has the Pillow mode {image.mode}; expected pixels of dtype {dtype}", _FIX)
            return np.asarray(image).astype(dtype)
    except DataError:
        raise
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFile(f"{label} cannot be decoded as PNG or TIFF: {why}", _FIX) from error


def stack(arrays: list[Array], modality: Modality, label: str) -> Array:
    """Arrays of one shape as one array."""
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        first, second = sorted(shapes)[:2]
        raise DataError(
            f"{label}: arrays of the shapes {first} and {second} cannot be stacked; fetch rows of the same shape"
        )
    if not arrays:
        return np.empty((0, *(length or 0 for length in modality.shape)), modality.dtype)
    fits = all(wanted in (None, had) for wanted, had in zip(modality.shape, arrays[0].shape, strict=True))
    if not fits:
        raise DataError(
            f"{label} has arrays of shape {arrays[0].shape}; expected {modality.shape}, the shape of the modality"
        )
    return np.stack(arrays)
