"""Arrays and factor values as the content of members.

Notes
-----
PNG is compressed by runs (zlib's ``Z_RLE``): more than twice as fast as at zlib's usual level for files that are up to
a third larger. No hash of earlier bytes is kept, in which builds of zlib for different processors differ: zlib and
zlib-ng give the same bytes. WebP at ``method=2`` takes about five times as long, for files of two thirds of the size.
"""

import io
import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.dataset import Modality
from setsup.errors import DataError, advice, did_you_mean
from setsup.factors import Factor, FactorTable
from setsup.shards.layout import Member

__all__ = ["FORMATS", "Labels", "encoded", "stored"]


FORMATS = {"png": "png", "webp": "webp", "jpeg": "jpg", "npy": "npy"}
"""What images are stored as, and the last part of their members' extensions."""

_QUALITY = 95  # of a JPEG
_NUMBERS = {np.dtype(code).name for code in "?bhilqBHILQefdFD"}
_FEW = 1 << 16  # levels whose texts are kept


def stored(name: str, modality: Modality, format: str) -> Member:
    """How a modality is stored.

    Images, uint8 of three axes with a color space, are stored in the format; all else, and images of two channels,
    as npy. What a format has no place for is PNG: grey in WebP, alpha in JPEG.
    """
    if format not in FORMATS:
        raise DataError(f"unknown image format {format!r}{did_you_mean(format, FORMATS)}")
    if not (name.isascii() and name.replace("_", "a").isalnum() and name == name.lower()):
        raise DataError(
            f"the name of the modality {name!r} must consist of lower-case letters, digits and underscores, because "
            "it names files in a tar; rename the modality, or leave it out with "
            f"{advice('modalities=', '--modalities')}"
        )
    if modality.dtype not in _NUMBERS:
        raise DataError(f"the modality {name!r} must be numeric, not {modality.dtype}; leave it out")
    last = FORMATS[format] if modality.is_eight_bit_image else "npy"
    channels = modality.shape[-1] if modality.shape else None
    if (last == "webp" and channels == 1) or (last == "jpg" and channels == 4):
        last = "png"
    return Member(modality, last if name == "image" else f"{name}.{last}")


def encoded(arrays: Array | Sequence[Array], member: Member) -> list[bytes]:
    """Content of the members of one modality.

    `arrays` (n, ...) array, or n arrays.
    """
    dtype = np.dtype(member.modality.dtype)
    wanted = member.modality.shape
    examples = [arrays[0]] if isinstance(arrays, np.ndarray) else arrays
    for shape, given in {(array.shape, array.dtype) for array in examples}:
        as_said = given == dtype and len(shape) == len(wanted)
        if not as_said or any(size not in (None, here) for size, here in zip(wanted, shape, strict=True)):
            raise DataError(
                f"the dataset returned {given} of shape {shape}, but its modality specifies {dtype} of shape "
                f"{wanted}; correct the dataset"
            )
    if member.format == "npy":
        little = dtype.newbyteorder("<")
        if isinstance(arrays, np.ndarray):
            return _npy_rows(np.ascontiguousarray(arrays, little))
        return [_npy_rows(np.ascontiguousarray(array[None], little))[0] for array in arrays]
    encode = _ENCODERS[member.format]
    try:
        return [encode(np.ascontiguousarray(array)) for array in arrays]
    except (ValueError, OSError) as error:
        raise DataError(f"an image cannot be stored as {member.format}: {error}; choose another format") from error


def _npy_rows(rows: Array) -> list[bytes]:
    """Each row as a file of its own."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(rows[0]))
    head, size = stream.getvalue(), rows[0].nbytes
    content = memoryview(rows.reshape(-1).view(np.uint8).data) if rows.size else memoryview(b"")
    return [b"".join((head, content[at * size : at * size + size])) for at in range(len(rows))]


def _pillow(format: str, **options: Any) -> Callable[[Array], bytes]:
    def encode(image: Array) -> bytes:
        from PIL import Image

        stream = io.BytesIO()
        Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(stream, format, **options)
        return stream.getvalue()

    return encode


def _jpeg(image: Array) -> bytes:
    from simplejpeg import encode_jpeg

    grey = image.shape[2] == 1
    content: bytes = encode_jpeg(image, _QUALITY, "GRAY" if grey else "RGB", "Gray" if grey else "444", fastdct=False)
    return content


_ENCODERS: dict[str, Callable[[Array], bytes]] = {
    "png": _pillow("PNG", compress_level=1, compress_type=zlib.Z_RLE),
    # exact: what lies under transparent pixels is kept
    "webp": _pillow("WEBP", lossless=True, exact=True, method=2, quality=0),
    "jpg": _jpeg,
}


class Labels:
    """JSON of the factor values of rows: compact, unknown values null, float32 as the shortest text that gives it."""

    def __init__(self, factors: Sequence[Factor]) -> None:
        signs = ["{", *[","] * (len(factors) - 1)]
        self._starts = [f"{sign}{_json(factor.name)}:" for sign, factor in zip(signs, factors, strict=True)]
        self._texts: dict[str, Array] = {}
        for start, factor in zip(self._starts, factors, strict=True):
            if factor.levels is not None and len(factor) <= _FEW:
                # unknown, −1, is the last
                texts = [*(f"{start}{_json(level)}".encode() for level in factor.levels), f"{start}null".encode()]
                self._texts[factor.name] = np.array(texts, object)

    def of(self, table: FactorTable, rows: npt.ArrayLike) -> list[bytes]:
        """Texts of some rows of a table, as UTF-8."""
        columns = []
        for start, factor in zip(self._starts, table.factors, strict=True):
            codes = table.codes(factor.name, rows)
            texts = self._texts.get(factor.name)
            columns.append(_texts(start, factor, codes) if texts is None else texts[codes].tolist())
        return [b"".join((*parts, b"}")) for parts in zip(*columns, strict=True)]


def _texts(start: str, factor: Factor, codes: Array) -> list[bytes]:
    """Texts of numbers, or of levels too many to keep them all."""
    if factor.levels is None:
        return [f"{start}{'null' if text == 'nan' else text}".encode() for text in codes.astype("U").tolist()]
    levels = (*factor.levels, None)
    return [f"{start}{_json(levels[code])}".encode() for code in codes.tolist()]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
