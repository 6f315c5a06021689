"""Image files as arrays: headers are checked first, and decoding is strict.

Convention
----------
Arrays are uint8 (height, width, channels) in display orientation: the orientation in the metadata of a JPEG or AVIF
file is applied.

Notes
-----
Grayscale and color JPEG files are decoded by simplejpeg, plain PNG files by kornia-rs, all other files by Pillow; the
pixels are bit-for-bit identical. simplejpeg and Pillow both use libjpeg-turbo. simplejpeg takes half to three quarters
of the time of Pillow, which spends the rest on header objects and copies; it releases the GIL; and it reports
libjpeg-turbo's warnings, where Pillow returns a partially decoded image with gray or shifted blocks. Such files are
refused here, except for extraneous bytes before the end marker, which a dataset may allow: some images of ImageNet were
published with them. JPEG files that Pillow decodes (CMYK, rare sampling) are treated with Pillow's leniency. For PNG
files, kornia-rs takes about a third of Pillow's time and verifies the checksums of the pixels, which Pillow does not;
those of files that Pillow decodes are verified here. kornia-rs does not release the GIL, so on more than three cores a
single process decodes PNG files with Pillow; a loader's worker processes, with one thread each, do not. OpenCV is as
fast for JPEG, but many times larger, and conflicts with another installed OpenCV. PyAV, which is made for video, was
not tried.
"""

import io
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from setsup.checks import check_image_size
from setsup.datasets.formats.image_formats import pillow_formats
from setsup.datasets.formats.jpeg import Frame, jpeg_frame, jpeg_pixels, turned
from setsup.datasets.formats.png import check_png, png_head, png_pixels
from setsup.datasets.formats.source import Source, source_content
from setsup.errors import DataError
from setsup.files.lfs import is_pointer, pointer_error

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "MOST_BYTES",
    "Header",
    "check_size",
    "common_channels",
    "corner",
    "decode",
    "fit_channels",
    "header",
    "jpeg_at_scale",
    "jpeg_head",
    "need_image",
    "parallel",
    "read_content",
    "resize",
    "several_sizes",
]

_log = logging.getLogger("setsup")

S = TypeVar("S")
T = TypeVar("T")

_MOST_PIXELS = 80_000_000
MOST_BYTES = 4 * _MOST_PIXELS + (1 << 24)
"""Bytes that no file of an image has which is not refused for its pixels."""
_ORIENTATION = 0x0112
_NOTING = ("JPEG", "MPO", "AVIF")  # formats in which cameras note how they were turned
_MODES = {
    **dict.fromkeys(("1", "L"), 1),
    **dict.fromkeys(("P", "RGB", "CMYK", "YCbCr"), 3),
    **dict.fromkeys(("LA", "PA", "RGBA"), 4),
}
_CHANNEL_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
_FEW, _MANY = 8, 3

threads = min(8, os.cpu_count() or 1)
"""Threads that read and decode images at once; 1 in a loader's worker processes, which share the cores."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header of an image file: size in pixels, and channels of its own mode (1, 3 or 4)."""

    height: int
    width: int
    channels: int


def header(source: Source, label: str) -> Header:
    """Read the size and the mode of an image without decoding it."""
    with _open(source if isinstance(source, Path) else read_content(source, label), label) as image:
        return _header(image)


def need_image(begin: bytes, label: str) -> None:
    """Raise unless a file may be an image by its first bytes, before it is read whole."""
    from PIL import Image

    Image.init()
    readers = [Image.OPEN[name][1] for name in pillow_formats() if name in Image.OPEN]
    if not any(accept is None or accept(begin[:16]) for accept in readers):
        raise _not_readable(label)


def decode(
    source: Source,
    label: str,
    channels: int,
    size: tuple[int, int] | None = None,
    out: npt.NDArray[np.uint8] | None = None,
    lenient: bool = False,
) -> npt.NDArray[np.uint8]:
    """Decode an image.

    `size` (height, width), optional; `out` (height, width, channels) uint8 in C order, optional; returns (height,
    width, channels) uint8.
    """
    pixels = _pixels(read_content(source, label), label, channels, out, lenient)
    return np.require(resize(fit_channels(pixels, channels, label), size), requirements=["C", "W"])


def fit_channels(pixels: npt.NDArray[np.uint8], channels: int, label: str) -> npt.NDArray[np.uint8]:
    """Give an image the channels that its dataset has: grey to color, and alpha added or removed.

    `pixels` (height, width, 1, 3 or 4) uint8; returns (height, width, channels) uint8.
    """
    if channels == 1 and pixels.shape[2] != 1:
        raise DataError(
            f"{label} is a color image, but the images sampled when the table was opened are grayscale; convert all of "
            "them to the same mode"
        )
    return _with_channels(pixels, channels)


def jpeg_head(content: bytes, label: str) -> tuple[Frame, int] | None:
    """What the markers of a JPEG say, and its orientation, 1 to 8; None for what Pillow decodes, and no JPEG."""
    if not content.startswith(_JPEG):
        return None
    frame, orientation = jpeg_frame(content), 1
    if frame is None or frame.noted:
        with _open(content, label) as image:
            orientation = _orientation(image)
            frame = frame or Frame(image.height, image.width, _MODES[image.mode], True, image.mode in ("L", "RGB"))
    if not frame.plain:
        return None
    _check(frame.width, frame.height, label)
    return frame, orientation


def jpeg_at_scale(content: bytes, label: str, frame: Frame, reduce: int, lenient: bool) -> npt.NDArray[np.uint8]:
    """Decode a JPEG of :func:`jpeg_head` as it is stored, at 1, 1/2, 1/4 or 1/8 of its sides, rounded up."""
    try:
        return jpeg_pixels(content, frame, stray=partial(_warn, label) if lenient else None, reduce=reduce)
    except ValueError as error:
        raise _unreadable(error, label) from error


def common_channels(headers: Sequence[Header]) -> int:
    """Common number of channels of images: 1 if all are grayscale, 4 if all have alpha, else 3."""
    numbers = {header.channels for header in headers}
    return numbers.pop() if len(numbers) == 1 else 3


@overload
def check_size(value: Sequence[int], name: str = ...) -> tuple[int, int]: ...
@overload
def check_size(value: Sequence[int] | None, name: str = ...) -> tuple[int, int] | None: ...
def check_size(value: Sequence[int] | None, name: str = "size") -> tuple[int, int] | None:
    """Check a size that a dataset is opened with.

    `value` (height, width) or None, pixels; returns (height, width) or None, as plain integers.
    """
    return None if value is None else check_image_size(value, name, DataError)


def corner(whole: tuple[int, int], part: tuple[int, int]) -> tuple[int, int]:
    """Row and column at which a central crop starts; if the margin is odd, the smaller half is before it.

    `whole, part` (height, width), pixels.
    """
    return (whole[0] - part[0]) // 2, (whole[1] - part[1]) // 2


def parallel(function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Call a function for every item, many of them in several threads at once."""
    workers = min(threads, len(items))
    if len(items) <= _FEW or workers <= 1:
        return [function(item) for item in items]
    results: dict[int, T] = {}
    failures: dict[int, BaseException] = {}
    turns = iter(range(len(items)))  # handed out one by one: a task for each item would cost more than a small image

    def work() -> None:
        for turn in turns:
            try:
                results[turn] = function(items[turn])
            except BaseException as error:
                failures[turn] = error
            if failures:
                return

    with ThreadPoolExecutor(workers - 1) as others:
        for _ in range(workers - 1):
            others.submit(work)
        work()
    if failures:
        # turns are taken in order, so the first item that fails is among them in whatever order threads ran
        raise failures[min(failures)]
    return [results[turn] for turn in range(len(items))]


@contextmanager
def _open(source: Path | bytes, label: str) -> "Iterator[Image.Image]":
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(source if isinstance(source, Path) else io.BytesIO(source), formats=pillow_formats()) as image:
            _check(image.width, image.height, label)
            if image.mode not in _MODES:
                raise DataError(f"{label} has pixels of mode {image.mode}; expected 8 bits per channel; convert it")
            yield image
    except DataError:
        raise
    except UnidentifiedImageError as error:
        if is_pointer(read_content(source, label)):
            raise pointer_error(label) from None
        raise _not_readable(label) from error
    except Exception as error:
        # Pillow's readers raise whatever they stumble over in a damaged file, a struct.error as well as a TypeError
        raise _unreadable(error, label) from error


def _not_readable(label: str) -> DataError:
    known = ", ".join(pillow_formats())
    return DataError(f"{label} is not a readable image; supported formats: {known}; replace or remove it")


def read_content(source: Source, label: str) -> bytes:
    """Bytes of an image file, or a DataError that says why it cannot be read."""
    try:
        return source_content(source)
    except DataError:
        raise
    except Exception as error:
        raise _unreadable(error, label) from error


def _unreadable(error: Exception, label: str) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{label} is missing; add it, or remove its row")
    if isinstance(error, PermissionError):
        return DataError(f"{label} is not readable by the current user; change the file's permissions")
    why = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"{label} could not be decoded: {why}; replace or remove it")


def _check(width: int, height: int, label: str) -> None:
    if width * height > _MOST_PIXELS:
        raise DataError(
            f"{label} has {width} × {height} pixels, more than the limit of {_MOST_PIXELS:,}; resize or remove it"
        )


def _pixels(
    content: bytes, label: str, channels: int, out: npt.NDArray[np.uint8] | None, lenient: bool
) -> npt.NDArray[np.uint8]:
    """Image the right side up, with the channels asked for or those of its own mode."""
    try:
        if content.startswith(_JPEG):
            return _jpeg(content, label, channels, out, lenient)
        if content.startswith(_PNG):
            return _png(content, label, channels)
        return _by_pillow(content, label, channels)
    except ValueError as error:
        raise _unreadable(error, label) from error


def _jpeg(
    content: bytes, label: str, channels: int, out: npt.NDArray[np.uint8] | None, lenient: bool
) -> npt.NDArray[np.uint8]:
    head = jpeg_head(content, label)
    if head is None:
        return _by_pillow(content, label, channels)
    frame, orientation = head
    fits = out is not None and orientation == 1 and out.shape == (frame.height, frame.width, frame.channels)
    stray = partial(_warn, label) if lenient else None
    return turned(jpeg_pixels(content, frame, out if fits else None, stray), orientation)


@lru_cache(maxsize=1 << 16)  # so that a process warns once of a file, and not in every epoch
def _warn(label: str, why: str) -> None:
    _log.warning("%s: %s; decoding the data before the extraneous bytes", label, why)


def _png(content: bytes, label: str, channels: int) -> npt.NDArray[np.uint8]:
    head = png_head(content)
    if head is None or threads > _MANY:
        pixels = _by_pillow(content, label, channels)
        check_png(content)
        return pixels
    _check(head.width, head.height, label)
    return png_pixels(content, head)


def _by_pillow(content: bytes, label: str, channels: int) -> npt.NDArray[np.uint8]:
    with _open(content, label) as image:
        channels = _MODES[image.mode] if channels == 1 else channels
        # np.array would copy a second time; what asarray gives cannot be written to; decode sees to that
        pixels = np.asarray(_upright(image).convert(_CHANNEL_MODES[channels]))
    return pixels.reshape(*pixels.shape[:2], channels)


def _with_channels(pixels: npt.NDArray[np.uint8], channels: int) -> npt.NDArray[np.uint8]:
    if channels < pixels.shape[2]:
        return pixels[:, :, :channels]
    if pixels.shape[2] == 1 < channels:
        pixels = np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] < channels:
        pixels = np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255, np.uint8)], axis=2)
    return pixels


def resize(pixels: npt.NDArray[np.uint8], size: tuple[int, int] | None) -> npt.NDArray[np.uint8]:
    """Resize an image, antialiased, until it just covers a size, and crop the centre.

    `pixels` (height, width, 1, 3 or 4) uint8; `size` (height, width) or None; returns (*size, channels) uint8; the
    image itself if it has that size.
    """
    if size is None or pixels.shape[:2] == size:
        return pixels
    from PIL import Image, ImageOps

    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else np.ascontiguousarray(pixels))
    fitted = np.asarray(ImageOps.fit(image, (size[1], size[0]), Image.Resampling.BICUBIC))
    return fitted.reshape(*size, pixels.shape[2])


def _header(image: "Image.Image") -> Header:
    width, height = image.size
    if _orientation(image) >= 5:
        width, height = height, width
    return Header(height, width, _MODES[image.mode])


def _orientation(image: "Image.Image") -> int:
    """1 for upright, 5 and more for what lies on its side; 1 for formats where that is rare, and may need decoding."""
    noted: Any = image.getexif().get(_ORIENTATION, 1) if image.format in _NOTING else 1
    return noted if isinstance(noted, int) and 1 <= noted <= 8 else 1


def _upright(image: "Image.Image") -> "Image.Image":
    from PIL import ImageOps

    return ImageOps.exif_transpose(image) if _orientation(image) > 1 else image


def several_sizes(what: str) -> DataError:
    """The error for images of several sizes where one is needed; `what` says which they are."""
    return DataError(
        f"images of different sizes cannot be stacked: {what}; open the dataset with size=(height, width) (--option "
        "size=64,64) to resize them, or pass resize= to the loader"
    )
