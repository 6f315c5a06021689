"""Datasets in notebooks: modalities, factors, and a few images."""

import base64
import io
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.modality import first_image
from setsup.errors import SetsupError
from setsup.html import block, counted, facts, image_row
from setsup.random import fold, permute

__all__ = ["dataset_html"]

_IMAGES = 6
_SECONDS = 0.5  # for the images of a display; the first one may take longer
_HEIGHT = 72  # pixels as shown
_LARGEST = 144  # and as they are embedded, for dense screens


def dataset_html(dataset: Any, previews: bool) -> str:
    """Describe a :class:`setsup.datasets.Dataset` in HTML; ``previews`` says whether reading an image is cheap."""
    modalities = [
        " ".join(filter(None, [f"{name}:", _shape(modality.shape), modality.dtype, modality.unit, modality.color]))
        for name, modality in dataset.modalities.items()
    ]
    head = [type(dataset).__name__, counted(len(dataset), "row"), *modalities]
    images = _previews(dataset) if previews else ""
    return block(dataset.name, facts(head), images, dataset.factors._repr_html_())


def _shape(shape: tuple[int | None, ...]) -> str:
    return " × ".join("any" if side is None else str(side) for side in shape)


def _previews(dataset: Any) -> str:
    """A few images of rows from all over the dataset; why not, where they cannot be read."""
    name = first_image(dataset.modalities)
    if name is None:
        return ""
    try:
        return image_row(list(_sources(dataset, name)), _HEIGHT)
    except SetsupError as error:
        return facts([f"no images: {error}"])
    except Exception as error:  # a display must not break, whatever a user's dataset raises
        return facts([f"no images: {type(error).__name__}"])


def _sources(dataset: Any, name: str) -> Iterator[str]:
    started = time.perf_counter()
    for row in np.sort(permute(fold(0, 0), len(dataset), np.arange(min(_IMAGES, len(dataset))))):
        yield _source(np.asarray(dataset.fetch(int(row), [name])[name]))
        if time.perf_counter() - started > _SECONDS:
            return


def _source(pixels: npt.NDArray[Any]) -> str:
    """An image as a data URI."""
    from PIL import Image

    if pixels.shape[2] == 2:  # red and green
        pixels = np.pad(pixels, ((0, 0), (0, 0), (0, 1)))
    image = Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))
    if image.height < _LARGEST:  # pixels stay seen
        times = _LARGEST // image.height
        image = image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
    image.thumbnail((4 * _LARGEST, _LARGEST))
    file = io.BytesIO()
    image.save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
