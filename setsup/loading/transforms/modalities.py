"""What transforms and views read of a batch, and what they refuse."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch

from setsup import random
from setsup.arrays import Words
from setsup.checks import is_integer
from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.loading.batch import Batch
from setsup.loading.transforms.slots import Slots

__all__ = ["KINDS", "get_images", "get_tensor", "has_slots", "keyed_slots", "possible_leads"]

_PLANE = ((2, 3), "(sets, size, height, width) or (sets, size, height, width, k)")
KINDS: Mapping[str, tuple[tuple[int, ...], str]] = MappingProxyType(
    {
        "color": ((3,), "(sets, size, channels, height, width)"),
        "clip": ((4,), "(sets, size, frames, channels, height, width)"),
        "label": _PLANE,
        "depth": _PLANE,
        "normal": ((3,), "(sets, size, height, width, 3)"),
        "flow": ((3, 4), "(sets, size, 2·fields, height, width) or (sets, size, fields, 2, height, width)"),
        "points": ((2,), "(sets, size, n, 2)"),
    }
)
"""Kinds of modalities: how many axes follow those of sets and slots, and all in words."""

_LAST = {"normal": 3, "points": 2}  # lengths of last axes
_CHANNELS = 4  # of an image, at most
_NO_SLOT = np.array([2**64 - 1], dtype=np.uint64)  # the number of what stands for a whole set, which no slot has
_CANONICAL = "canonical_"  # what names of modalities of canonical rows begin with, one row a set


def get_tensor(batch: Batch, name: str) -> torch.Tensor:
    """A modality of a batch."""
    if name not in batch:
        raise SetsupError(f"modality {name!r} not found in the batch{did_you_mean(name, batch)}")
    values = batch[name]
    if not isinstance(values, torch.Tensor):
        raise DataError(f"{name!r} must be a tensor, not {type(values).__name__}; load batches with to='torch'")
    return values


def has_slots(batch: Batch, name: str, kind: str, values: torch.Tensor) -> bool | None:
    """Whether a modality has an axis of slots after that of sets; None where its number of axes must tell.

    Those of canonical rows have none, and all have one in a batch without ``indices``. What begins as ``indices`` do
    has one; but of images it may be that of channels, and points and normals have one number of axes.
    """
    if name.startswith(_CANONICAL):
        return False
    rows = batch.get("indices")
    if rows is None:
        return True
    if values.shape[:2] != tuple(rows.shape) or kind in _LAST or (kind == "color" and values.shape[1] <= _CHANNELS):
        return None
    return True


def possible_leads(batch: Batch, name: str, kind: str) -> set[int]:
    """How many axes of a modality may be those of sets and slots: 2; 1 where there is one image a set.

    3 for images that were copied, as by ``resize=`` of the loader, which their homographies tell.
    """
    values = get_tensor(batch, name)
    numbers, axes = KINDS[kind]
    matrices = batch.get("homographies", {}).get(name)
    if kind == "color" and values.ndim == 6 and matrices is not None and matrices.shape[:-2] == values.shape[:3]:
        return {3}
    possible = {None: {1, 2}, True: {2}, False: {1}}[has_slots(batch, name, kind, values)]
    leads = possible & {values.ndim - number for number in numbers}
    if kind == "flow":
        leads = {lead for lead in leads if _flows(values.shape[lead:])}
    if not leads or values.shape[-1] != _LAST.get(kind, values.shape[-1]):
        frames = "; use the kind clip for frames, and put the operations after copies= into the same Augment"
        more = frames if kind == "color" and values.ndim == 6 else ""
        raise DataError(
            f"{name!r} of kind {kind} must have shape {axes}, or the same without the axis size, not "
            f"{tuple(values.shape)}{more}"
        )
    return leads


def _flows(shape: tuple[int, ...]) -> bool:
    """Whether these are the axes of flow: x and y by turns, or on an axis of their own."""
    return shape[-3] == 2 if len(shape) == 4 else shape[-3] > 0 and shape[-3] % 2 == 0


def get_images(batch: Batch, name: str) -> torch.Tensor:
    """A modality that holds images, (sets, size, channels, height, width).

    Copies may stand before the channels; what has one image a set, such as ``canonical_image``, has no slots.
    """
    images = get_tensor(batch, name)
    if images.ndim not in (4, 5, 6) or (images.ndim == 4 and has_slots(batch, name, "color", images)):
        raise DataError(
            f"{name!r} must have shape (sets, size, channels, height, width), with copies, if any, before the "
            f"channels, or (sets, channels, height, width), not {tuple(images.shape)}"
        )
    return images


def keyed_slots(batch: Batch, seed: int, stream: str, lead: Sequence[int], copies: int = 1) -> Slots:
    """Keys of the images of a batch, flat; `lead` (sets,), (sets, size) or (sets, size, copies)."""
    step = batch.get("step")
    if not is_integer(step):
        raise SetsupError(
            f"batch['step'] must be the number of the draw, an integer, not {step!r}; load batches with setsup.loader"
        )
    sets, *size = lead[:2]
    slots = np.arange(size[0], dtype=np.uint64) if size else _NO_SLOT
    keys: Words = random.fold(random.stream_key(seed, stream), int(step))
    for numbers in (np.arange(sets, dtype=np.uint64), slots, np.arange(*lead[2:] or [copies], dtype=np.uint64)):
        keys = random.fold(keys[..., None], numbers)
    return Slots(keys.reshape(-1))
