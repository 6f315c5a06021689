"""What views read of a batch and add to it, and what they refuse."""

from collections.abc import Sequence

import numpy as np
import torch

from setsup.errors import DataError, SetsupError, near
from setsup.loading.batch import Batch
from setsup.loading.transforms.slots import Slots, slots_of
from setsup.random import stream_key

__all__ = ["added", "check_names", "check_whole", "images_of", "keyed", "tensor_of"]


def tensor_of(batch: Batch, name: str) -> torch.Tensor:
    """A modality of a batch.

    Raises
    ------
    SetsupError
        When the batch has none of that name.
    DataError
        When it is no tensor.

    """
    if name not in batch:
        raise SetsupError(f"the batch has no modality {name!r}{near(name, batch)}")
    found = batch[name]
    if not isinstance(found, torch.Tensor):
        raise DataError(f"{name!r} must be a tensor, not {type(found).__name__}: make batches with to='torch'")
    return found


def images_of(batch: Batch, name: str) -> torch.Tensor:
    """A modality that holds pictures, (sets, size, channels, height, width) or with copies before the channels.

    Raises
    ------
    SetsupError
        When the batch has none of that name.
    DataError
        When it has other axes.

    """
    found = tensor_of(batch, name)
    if found.ndim not in (5, 6):
        raise DataError(
            f"{name!r} must be (sets, size, channels, height, width), with copies before the channels where there are "
            f"any, not {tuple(found.shape)}"
        )
    return found


def keyed(batch: Batch, seed: int, stream: str, shape: Sequence[int]) -> Slots:
    """Keys of the images of a batch, flat.

    Parameters
    ----------
    batch : dict
        With ``step``.
    seed, stream : int, str
        Of the view.
    shape : (sets, size) or (sets, size, copies)
        Leading axes of the images.

    Raises
    ------
    SetsupError
        When the batch does not say its step.

    """
    step = batch.get("step")
    if isinstance(step, bool) or not isinstance(step, int | np.integer):
        raise SetsupError(
            f"the batch needs the number of its draw as batch['step'], a whole number, not {step!r}: "
            "it comes from setsup.loader"
        )
    sets, size, *copies = shape
    return Slots(slots_of(stream_key(seed, stream), int(step), (sets, size), *copies).reshape(-1))


def added(batch: Batch, names: Sequence[str], views: Sequence[torch.Tensor], lead: Sequence[int]) -> Batch:
    """The batch with views under their names, their first axis folded out to sets, slots and perhaps copies.

    Raises
    ------
    SetsupError
        When one of the names is taken: no modality is replaced.

    """
    for name in names:
        if name in batch:
            raise SetsupError(f"the batch has {name!r} already: give what the view adds another name")
    return {**batch, **{name: view.reshape(*lead, *view.shape[1:]) for name, view in zip(names, views, strict=True)}}


def check_whole(name: str, value: int, least: int = 1) -> None:
    """Refuse what is no whole number from ``least`` on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SetsupError(f"{name} must be a whole number from {least} on, not {value!r}")


def check_names(names: tuple[str, ...], count: int) -> None:
    """Refuse what is no tuple of so many different texts."""
    texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    if not texts or not len(names) == len(set(names)) == count:
        raise SetsupError(f"names must be {count} different texts in a tuple, not {names!r}")
