"""A picture of the first batch of a run as the network gets it: after the augmentation, from the device."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from PIL import Image

from setsup.experiments.training.counting import StepCounter
from setsup.files.atomic import written
from setsup.files.outputs import marked_png
from setsup.reports import image_grid
from setsup.reports.page import PAPER

__all__ = ["FIRST_BATCH", "FirstBatchCallback", "batch_sheet"]

FIRST_BATCH = "first-batch.png"

_ROWS, _COLUMNS, _PER_SET = 12, 12, 4
_LEAST = 5  # pixels: fewer are no image, but a matrix
_LOG = logging.getLogger(__name__)


class FirstBatchCallback(Callback):
    """Writes the sheet before the first step of a run; one that resumes has it."""

    def __init__(self, folder: Path, counter: StepCounter, views: Sequence[str] = ()) -> None:
        self._path, self._counter, self._views = folder / FIRST_BATCH, counter, views

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Write it, if there are images."""
        if self._counter.draws or not trainer.is_global_zero:
            return
        try:
            sheet = batch_sheet(batch, self._views)
            if sheet is not None:
                with written(self._path) as part:
                    part.write_bytes(marked_png(sheet))
        except Exception as error:  # what a user's transform made may be anything, and the training can do without
            _LOG.warning("%s was not written: %s", self._path, str(error).partition("\n")[0] or type(error).__name__)


def batch_sheet(batch: Mapping[str, Any], views: Sequence[str] = (), tile: int | None = None) -> Image.Image | None:
    """Lay out the images of a batch, a block for each modality or view, sets as rows; None where it has none.

    Images are arrays (sets, size, …, channels, height, width), (sets, size, height, width) or (sets, size, height,
    width, channels), and those of canonical rows, which have no axis of size. Their longer side is of ``tile`` pixels.
    """
    mask = batch["mask"].cpu().numpy()
    if views and all(view in batch for view in views):  # what a method says that it reads; else all images
        batch = {view: batch[view] for view in views}
    named_images = _images(batch, mask.shape)
    blocks = [_block(name, value, tuple(batch[name].shape), mask, tile) for name, value in named_images]
    if not blocks:
        return None
    size = max(block.width for block in blocks), sum(block.height for block in blocks)
    sheet = Image.new("RGB", size, PAPER)
    top = 0
    for block in blocks:
        sheet.paste(block, (0, top))
        top += block.height
    return sheet


def _images(batch: Mapping[str, Any], shape: tuple[int, ...]) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and values of what looks like images, (sets, size, …, channels, height, width)."""
    for name, value in batch.items():
        if not isinstance(value, torch.Tensor):
            continue
        images = value[:, None] if name.startswith("canonical_") else value
        if images.shape[:1] != shape[:1] or (images is value and images.shape[:2] != shape):
            continue
        axes = images.shape[2:]
        if len(axes) >= 2 and min(axes[-2:]) >= _LEAST:
            yield name, images if len(axes) > 2 else images[:, :, None]
        elif len(axes) >= 3 and min(axes[-3:-1]) >= _LEAST and axes[-1] <= 3:
            yield name, images.movedim(-1, -3)


class _Shown(NamedTuple):
    """How values are shown: those from `low` to `high` as 0 to 255."""

    low: float
    high: float
    words: str


def _block(
    name: str, images: torch.Tensor, shape: tuple[int, ...], mask: npt.NDArray[np.bool_], tile: int | None
) -> Image.Image:
    """The images of one modality or view."""
    axes, kind = tuple(images.shape[2:-3]), str(images.dtype).removeprefix("torch.")
    if images.shape[-3] > 3:  # no colours: each channel by itself
        axes, images = (*axes, images.shape[-3]), images.unsqueeze(-3)
    if images.dtype in (torch.uint16, torch.uint32, torch.uint64):  # with which torch does little
        images = images.to(torch.int64)
    shown = _range(images)
    inner = list(islice(product(*map(range, axes)), _PER_SET))
    rows = list(islice(((number, *index) for number in range(len(images)) for index in inner), _ROWS))
    columns = min(images.shape[1], _COLUMNS)
    grid: list[list[npt.NDArray[np.uint8] | None]] = [
        [_pixels(images[number, column, *index], shown) if mask[number, column] else None for column in range(columns)]
        for number, *index in rows
    ]
    labels = [f"[{', '.join(map(str, (number, ':', *index)))}]" if axes else f"set {number}" for number, *index in rows]
    parts = [f"{kind} {shape}", shown.words]
    if images.shape[-3] == 2:
        parts.append("channels as red and green")
    if len(rows) < len(images) * int(np.prod(axes)):
        sets = len({number for number, *_ in rows})
        parts.append(f"{sets} of {len(images)} sets" + (f", {len(inner)} of {int(np.prod(axes))} each" if axes else ""))
    if columns < images.shape[1]:
        parts.append(f"{columns} of {images.shape[1]} positions")
    return image_grid(grid, labels, title=f"{name}\n{', '.join(parts)}", tile=tile)


def _range(images: torch.Tensor) -> _Shown:
    """Values of a modality, and how they are shown."""
    if images.dtype == torch.bool:
        return _Shown(0, 1, "False black, True white")
    lost, values = 0, images
    low, high = (float(end) for end in images.aminmax())
    if not (math.isfinite(low) and math.isfinite(high)):
        values = images[images.isfinite()]
        lost = images.numel() - values.numel()
        if not values.numel():
            return _Shown(0, 1, "no value is finite")
        low, high = (float(end) for end in values.aminmax())
    described = f"{low:.4g} to {high:.4g}" + (f", {lost:,} values not finite" if lost else "")
    if images.dtype == torch.uint8:
        return _Shown(0, 255, described)
    if images.is_floating_point() and low >= 0 and high <= 1:
        return _Shown(0, 1, described)
    return _Shown(low, high, f"{described}, shown from black to white")


def _pixels(image: torch.Tensor, shown: _Shown) -> npt.NDArray[np.uint8]:
    """One image (channels, height, width) for display: (height, width, 1 or 3); of two channels red and green."""
    values = np.nan_to_num(image.cpu().to(torch.float32).numpy(), posinf=shown.high, neginf=shown.low)
    scaled = (values - shown.low) * (255 / (shown.high - shown.low or 1))
    pixels = np.moveaxis(np.clip(np.rint(scaled), 0, 255).astype(np.uint8), 0, -1)
    return np.pad(pixels, ((0, 0), (0, 0), (0, 1))) if pixels.shape[-1] == 2 else pixels
