"""Images of rows as the page shows them: many thumbnails in one image, or one modality in full."""

import io
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

from setsup.arrays import Array
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError
from setsup.pages.answers import Answer, image
from setsup.reports.thumbnails import thumbnail

__all__ = ["COLUMNS", "encoded", "image_modality", "sprite", "whole"]

COLUMNS = 8
"""Thumbnails side by side in one image."""

_PAPER = (233, 236, 239)
_LARGEST = 4096  # pixels of a side that is shown in full
_LEAST = 5  # pixels: arrays with fewer are no images


def image_modality(dataset: Dataset) -> str | None:
    """Name of the first modality that holds images; None where there is none."""
    return next((name for name, kind in dataset.modalities.items() if kind.color), None)


def sprite(dataset: Dataset, rows: Sequence[int], modality: str, tile: int) -> Answer:
    """Thumbnails of rows in one image, ``COLUMNS`` to a line, each in a square of so many pixels."""
    if not dataset.modalities[modality].color:
        raise DataError(f"{modality} holds no images of colours; ask for one row of it")
    places = np.asarray(rows, dtype=np.int64)
    if None in dataset.modalities[modality].shape[:2]:  # images of several sizes make no array
        small = (thumbnail(dataset.fetch(row, [modality])[modality], tile) for row in places.tolist())
        return tiled([np.asarray(one) for one in small], tile)
    images = dataset.fetch(places, [modality])[modality]
    return tiled([np.asarray(one) for one in images], tile)


def tiled(images: Sequence[Array], tile: int) -> Answer:
    """Images in one, each in a square of so many pixels."""
    lines = -(-len(images) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * tile, lines * tile), _PAPER)
    for place, pixels in enumerate(images):
        small = thumbnail(pixels, tile)
        if max(small.size) > tile:
            small.thumbnail((tile, tile), Image.Resampling.LANCZOS)
        left = place % COLUMNS * tile + (tile - small.width) // 2
        sheet.paste(small, (left, place // COLUMNS * tile + (tile - small.height) // 2))
    return encoded(sheet, exact=False)


def whole(dataset: Dataset, row: int, modality: str) -> tuple[Answer | None, str]:
    """A modality of a row as an image, without loss, None where it is none; and in words."""
    values = np.asarray(dataset.fetch(row, [modality])[modality])
    words = f"{values.dtype} {' × '.join(map(str, values.shape)) or 'a number'}"
    if dataset.modalities[modality].color:
        return encoded(_opened(values), exact=True), words
    axes = values.shape
    if values.dtype.kind in "fiub" and len(axes) in (2, 3) and min(axes[:2]) >= _LEAST and axes[2:] in ((), (1,), (3,)):
        shown, low, high = _scaled(values)
        unit = f" {dataset.modalities[modality].unit}" if dataset.modalities[modality].unit else ""
        return encoded(_opened(shown), exact=True), f"{words}, {low:.4g} to {high:.4g}{unit} from black to white"
    flat = values.reshape(-1)
    some = ", ".join(f"{one:.5g}" if flat.dtype.kind == "f" else str(one) for one in flat[:16])
    return None, f"{words}: {some}{', …' if flat.size > 16 else ''}"


def _scaled(values: Array) -> tuple[Array, float, float]:
    """Numbers as grey levels of 8 bits, with the range that these show; what is not finite is black."""
    numbers = values.astype(np.float64)
    known = np.isfinite(numbers)
    low, high = (float(numbers[known].min()), float(numbers[known].max())) if known.any() else (0.0, 0.0)
    scaled = (np.where(known, numbers, low) - low) * (255 / (high - low or 1))
    return np.rint(scaled).astype(np.uint8).reshape(*values.shape[:2], -1), low, high


def _opened(pixels: Array) -> Image.Image:
    shown: Any = pixels[..., None] if pixels.ndim == 2 else pixels
    if shown.shape[-1] == 2:  # red and green
        shown = np.pad(shown, ((0, 0), (0, 0), (0, 1)))
    found = Image.fromarray(np.ascontiguousarray(shown[..., 0] if shown.shape[-1] == 1 else shown))
    if max(found.size) > _LARGEST:
        found.thumbnail((_LARGEST, _LARGEST))
    return found


@cache
def _webp() -> bool:
    from PIL import WebPImagePlugin  # by itself: Pillow would load all its formats to find it, in 25 ms

    return bool(WebPImagePlugin.SUPPORTED)


def encoded(shown: Image.Image, *, exact: bool) -> Answer:
    """PNG where it is exact; else WebP, or JPEG where Pillow lacks it."""
    buffer = io.BytesIO()
    if exact:
        shown.save(buffer, "PNG")
        return image(buffer.getvalue(), "image/png")
    if _webp():
        shown.save(buffer, "WEBP", quality=86, method=2)  # a fifth fewer bytes than 0, which takes three quarters of it
        return image(buffer.getvalue(), "image/webp")
    shown.save(buffer, "JPEG", quality=88)
    return image(buffer.getvalue(), "image/jpeg")
