"""Originals: encoded images of any size, of which a box is decoded and resized.

Convention
----------
A box is (left, top, width, height) in pixels from the upper left corner of the image as a person sees it, whole or not:
(0, 0, width, height) is the whole image.

Notes
-----
A box is cut out first and then resized by Pillow, antialiased where it shrinks, so that pixels beyond it, but for parts
of pixels at its sides, are not mixed in. Where a JPEG shrinks to an eighth or less, libjpeg-turbo decodes it at 1/2,
and where it shrinks to 1/24 or less at 1/4: to the means of 2 × 2 or 4 × 4 pixels, made of its coefficients. A filter
over such means differs from one over pixels by its slope within a block, and at the sides of a box, whose blocks may
lie beyond it in part. With `d` the difference of the weights of the two, no grey image differs by more than 127.5 · Σ
|d|, which is 22 levels of 255 (bicubic: 31), and an edge between black and white along one axis by 2.3. On photographs
it was at most 10 levels, in the outermost rows and columns of results and at edges of saturated colors; of 12
megapixels it saves half of the time. With 1/8, or where images shrink less, it was up to 22.

Of images with alpha, colors are averaged by their alpha, as Pillow does; grey and alpha of two channels are averaged
each by itself.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from setsup.arrays import Pixels, Size
from setsup.datasets.formats.jpeg import turned
from setsup.datasets.formats.source import Source
from setsup.datasets.images import decode, fit_channels, jpeg_at_scale, jpeg_head, read_content
from setsup.errors import DataError

__all__ = ["Box", "Interpolation", "OpenImage", "Original", "originals_of", "refuse_changed", "resize_box"]

Box = tuple[float, float, float, float]
Interpolation = Literal["bilinear", "bicubic"]

_LYING, _MIRRORED_X, _MIRRORED_Y = 5, (2, 3, 6, 7), (3, 4, 7, 8)  # Exif orientations: on a side, then mirrored
_REDUCED = ((4, 24), (2, 8))  # scale, and how many times as large as the result a box is, at least
_WHOLE = 1e-9  # pixels: a side this near to an edge of a pixel lies on it


class OpenImage:
    """An image whose size is known, and of which boxes can be cut: made by :meth:`Original.open`, or of an array.

    Attributes
    ----------
    height, width : int
        Pixels, the right side up.

    """

    def __init__(
        self,
        at_scale: Callable[[int], Pixels],
        stored: Size,
        orientation: int = 1,
        *,
        scales: Sequence[tuple[int, int]] = (),
        finish: Callable[[Pixels], Pixels] | None = None,
    ) -> None:
        self.height, self.width = stored[::-1] if orientation >= _LYING else stored
        self._at_scale, self._orientation, self._scales, self._finish = at_scale, orientation, scales, finish
        self._decoded: dict[int, Pixels] = {}

    @classmethod
    def of_array(cls, pixels: Pixels) -> "OpenImage":
        """An image that is decoded already, (height, width, channels) uint8."""
        return cls(lambda scale: pixels, (pixels.shape[0], pixels.shape[1]))

    def cut(self, box: Box, size: Size, interpolation: Interpolation) -> Pixels:
        """Resize a box of the image.

        `size` (height, width); returns (height, width, channels) uint8.
        """
        shrinks = min(box[2] / size[1], box[3] / size[0])
        scale = next((scale for scale, least in self._scales if shrinks >= least), 1)
        if scale not in self._decoded:
            self._decoded[scale] = self._at_scale(scale)
        pixels = resize_box(self._decoded[scale], self._stored_box(box), size, interpolation, scale, self._orientation)
        return pixels if self._finish is None else self._finish(pixels)

    def _stored_box(self, box: Box) -> Box:
        """The box as it lies in the file, before the image is turned the right side up."""
        left, top, width, height = box
        if self._orientation in _MIRRORED_X:
            left = self.width - left - width
        if self._orientation in _MIRRORED_Y:
            top = self.height - top - height
        return (left, top, width, height) if self._orientation < _LYING else (top, left, height, width)


@dataclass(frozen=True, slots=True)
class Original:
    """An encoded image of a dataset that is neither read nor decoded yet; `channels` are those of the modality."""

    source: Source
    label: str
    channels: int
    lenient: bool = False

    def open(self) -> OpenImage:
        """Read the file and its header; a JPEG is decoded when a box is cut, anything else at once."""
        content = read_content(self.source, self.label)
        head = jpeg_head(content, self.label)
        if head is None:
            return OpenImage.of_array(decode(content, self.label, self.channels, lenient=self.lenient))
        frame, orientation = head

        def at_scale(scale: int) -> Pixels:
            return jpeg_at_scale(content, self.label, frame, scale, self.lenient)

        finish = partial(fit_channels, channels=self.channels, label=self.label)
        return OpenImage(at_scale, (frame.height, frame.width), orientation, scales=_REDUCED, finish=finish)


def originals_of(items: Sequence[tuple[Source, str]], channels: int | None, lenient: bool = False) -> list[Original]:
    """Originals of a dataset's images, as ``originals`` of a dataset returns them; `channels` None is three."""
    return [Original(source, label, channels or 3, lenient) for source, label in items]


def refuse_changed(name: str, **options: Size | None) -> None:
    """DataError where a dataset was told by an option, such as ``size``, to resize or crop its images."""
    for option, value in options.items():
        if value is not None:
            raise DataError(
                f"{name} was opened with {option}=, which resizes or crops its images before resize= is applied; "
                f"open it without {option}="
            )


def resize_box(
    pixels: Pixels, box: Box, size: Size, interpolation: Interpolation, scale: int = 1, orientation: int = 1
) -> Pixels:
    """Cut a box out of an image and resize it, antialiased where it shrinks.

    `pixels` (height, width, 1 to 4) uint8, an image at 1/`scale` of its size as it is stored, with the Exif orientation
    that it is turned by; `box` in pixels of the stored image at full size; `size` (height, width) of the turned result.
    """
    rows, columns = pixels.shape[:2]
    left, top, width, height = (side / scale for side in box)
    first_x, last_x = _span(left, left + width, columns)
    first_y, last_y = _span(top, top + height, rows)
    window = turned(pixels[first_y:last_y, first_x:last_x], orientation)
    # margins of the window around the box, in the directions of the result
    before_x, after_x = max(0.0, left - first_x), max(0.0, last_x - left - width)
    before_y, after_y = max(0.0, top - first_y), max(0.0, last_y - top - height)
    if orientation >= _LYING:
        before_x, after_x, before_y, after_y = before_y, after_y, before_x, after_x
    if orientation in _MIRRORED_X:
        before_x, after_x = after_x, before_x
    if orientation in _MIRRORED_Y:
        before_y, after_y = after_y, before_y
    inner = (before_x, before_y, window.shape[1] - after_x, window.shape[0] - after_y)
    if inner == (0, 0, size[1], size[0]) and window.shape[:2] == size:
        return window
    return _resized(window, inner, size, interpolation)


def _span(begin: float, end: float, length: int) -> tuple[int, int]:
    """First pixel of a span and the one behind its last, at least one pixel of those there are."""
    first = min(max(0, math.floor(begin + _WHOLE)), length - 1)
    return first, min(max(first + 1, math.ceil(end - _WHOLE)), length)


def _resized(window: Pixels, box: Box, size: Size, interpolation: Interpolation) -> Pixels:
    from PIL import Image

    channels = window.shape[2]
    if channels == 2:
        parts = [_resized(window[..., [channel]], box, size, interpolation) for channel in (0, 1)]
        return np.concatenate(parts, axis=2)
    image = Image.fromarray(window[..., 0] if channels == 1 else np.ascontiguousarray(window))
    method = Image.Resampling.BILINEAR if interpolation == "bilinear" else Image.Resampling.BICUBIC
    made = np.asarray(image.resize((size[1], size[0]), method, box))
    return made.reshape(*size, channels)
