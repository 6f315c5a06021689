"""Images of rows as the page shows them: many thumbnails in one image, or one modality in full."""

import io
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from setsup.arrays import Array
from setsup.datasets.dataset import Dataset
from setsup.datasets.modality import first_image
from setsup.errors import DataError, SetsupError
from setsup.pages.answers import Answer, DamagedRows, Query
from setsup.pages.places import without_folders
from setsup.reports.masks import mask_colors
from setsup.reports.thumbnails import thumbnail

__all__ = ["CHUNK", "COLUMNS", "TILE", "draw_thumbs", "encoded", "image_modality", "sprite", "whole"]

COLUMNS = 8
"""Thumbnails side by side in one image."""
CHUNK = 64
"""Thumbnails of one question."""
TILE = 64
"""Pixels of a thumbnail's side."""

_PAPER = (233, 236, 239)  # around images where a format has no transparency
_CROSS = (154, 52, 18)
_LARGEST = 4096  # pixels of a side that is shown in full
_LEAST = 5  # pixels: arrays with fewer are no images


def image_modality(dataset: Dataset) -> str | None:
    """Name of the first modality that holds images; None where there is none."""
    return first_image(dataset.modalities)


def draw_thumbs(dataset: Dataset, query: Query, images: bool) -> Answer:
    """Thumbnails of the rows that a question names; DataError where images are left out, or there are none."""
    modality = image_modality(dataset)
    if not images or modality is None:
        raise DataError(
            f"images of {dataset.name} are not included in this page" if modality else f"{dataset.name} has no images"
        )
    return sprite(dataset, query.integers("rows", CHUNK, len(dataset) - 1), modality, TILE)


def sprite(dataset: Dataset, rows: Sequence[int], modality: str, tile: int, *, partly: bool = False) -> Answer:
    """Thumbnails of rows in one image, ``COLUMNS`` to a line, each in a square of so many pixels.

    DamagedRows where images of some rows cannot be read; with `partly`, where those of all: others have a cross.
    """
    try:
        return tiled(_small(dataset, rows, modality, tile), tile)
    except SetsupError:  # of one row or of several: which, and why, is told
        damaged = {row: damage for row in dict.fromkeys(rows) if (damage := _damage(dataset, row, modality))}
        if not damaged:
            raise
        if not partly or len(damaged) == len(set(rows)):
            raise DamagedRows(damaged) from None
    kept = {row: thumb for row in set(rows) - set(damaged) for thumb in _small(dataset, [row], modality, tile)}
    return tiled([kept.get(row) for row in rows], tile)


def _small(dataset: Dataset, rows: Sequence[int], modality: str, tile: int) -> list[Array]:
    """Images of rows, those of several sizes as thumbnails."""
    places = np.asarray(rows, dtype=np.int64)
    if None in dataset.modalities[modality].shape[:2]:  # images of several sizes make no array
        return [np.asarray(thumbnail(dataset.fetch(row, [modality])[modality], tile)) for row in places.tolist()]
    return [np.asarray(image) for image in dataset.fetch(places, [modality])[modality]]


def _damage(dataset: Dataset, row: int, modality: str) -> str:
    """Why a modality of a row cannot be read; empty where it can."""
    try:
        dataset.fetch(row, [modality])
    except SetsupError as error:
        return without_folders(str(error)).replace(f" (row {row})", "")
    return ""


def _cross(side: int) -> Image.Image:
    """What is shown for an image that is not there."""
    image = Image.new("RGB", (side, side), _PAPER)
    for ends in ((0, 0, side, side), (0, side, side, 0)):
        ImageDraw.Draw(image).line(ends, _CROSS, 2)
    return image


def tiled(images: Sequence[Array | None], tile: int) -> Answer:
    """Images in one, each in a square of so many pixels; a cross for one that is not there.

    The ground of the page is seen around those that are not square.
    """
    lines = -(-len(images) // COLUMNS)
    thumbs = [_cross(tile // 2) if pixels is None else thumbnail(pixels, tile) for pixels in images]
    for small in thumbs:
        if max(small.size) > tile:
            small.thumbnail((tile, tile), Image.Resampling.LANCZOS)
    clear = _webp() and any(small.size != (tile, tile) for small in thumbs)
    sheet = Image.new("RGBA" if clear else "RGB", (COLUMNS * tile, lines * tile), (0, 0, 0, 0) if clear else _PAPER)
    for number, small in enumerate(thumbs):
        left = number % COLUMNS * tile + (tile - small.width) // 2
        sheet.paste(small, (left, number // COLUMNS * tile + (tile - small.height) // 2))
    return encoded(sheet, exact=False)


def whole(dataset: Dataset, row: int, modality: str) -> tuple[Answer | None, str]:
    """A modality of a row as an image, without loss, None where it is none; and in words."""
    try:
        values = np.asarray(dataset.fetch(row, [modality])[modality])
    except SetsupError:
        if damage := _damage(dataset, row, modality):
            raise DamagedRows({row: damage}) from None
        raise
    text = f"{values.dtype} {' × '.join(map(str, values.shape)) or 'a number'}"
    if dataset.modalities[modality].color:
        return encoded(_opened(values), exact=True), text
    axes = values.shape
    if _is_packed(dataset, modality, values):
        return encoded(_opened(mask_colors(values)), exact=True), f"{text}, bits of objects, with a color for each"
    shown_axes = ((), (1,), (2,), (3,))
    if values.dtype.kind in "fiub" and len(axes) in (2, 3) and min(axes[:2]) >= _LEAST and axes[2:] in shown_axes:
        shown, low, high = _scaled(values)
        unit = f" {dataset.modalities[modality].unit}" if dataset.modalities[modality].unit else ""
        return encoded(_opened(shown), exact=True), f"{text}, {low:.4g} to {high:.4g}{unit} from black to white"
    flat = values.reshape(-1)
    some = ", ".join(f"{number:.5g}" if flat.dtype.kind == "f" else str(number) for number in flat[:16])
    return None, f"{text}: {some}{', …' if flat.size > 16 else ''}"


def _is_packed(dataset: Dataset, modality: str, values: Array) -> bool:
    """Whether a modality is the mask of the objects of a rendering, not one of a recording."""
    rendered = values.shape[2:] > (1,) or hasattr(dataset, "recipe") or hasattr(dataset, "recipe_key")
    return modality == "mask" and values.dtype == np.uint8 and values.ndim == 3 and rendered


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
    image = Image.fromarray(np.ascontiguousarray(shown[..., 0] if shown.shape[-1] == 1 else shown))
    if max(image.size) > _LARGEST:
        image.thumbnail((_LARGEST, _LARGEST))
    return image


@cache
def _webp() -> bool:
    from PIL import WebPImagePlugin  # by itself: Pillow would load all its formats to find it, in 25 ms

    return bool(WebPImagePlugin.SUPPORTED)


def encoded(shown: Image.Image, *, exact: bool) -> Answer:
    """PNG where it is exact; else WebP, or JPEG where Pillow lacks it."""
    buffer = io.BytesIO()
    if exact:
        shown.save(buffer, "PNG")
        return Answer(buffer.getvalue(), "image/png")
    if _webp():
        shown.save(buffer, "WEBP", quality=86, method=2)  # a fifth fewer bytes than 0, which takes three quarters of it
        return Answer(buffer.getvalue(), "image/webp")
    shown.save(buffer, "JPEG", quality=88)
    return Answer(buffer.getvalue(), "image/jpeg")
