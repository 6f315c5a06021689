"""What transforms read of a batch and add to it, and what they refuse."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import torch

from setsup.checks import is_integer
from setsup.errors import DataError, SetsupError, near
from setsup.loading.batch import Batch
from setsup.loading.transforms.slots import Slots, slots_of
from setsup.random import stream_key

__all__ = [
    "KINDS",
    "add_views",
    "check_names",
    "has_slots",
    "images_of",
    "keyed_slots",
    "leads_of",
    "planes_of",
    "tensor_of",
]

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
_CANONICAL = "canonical_"  # what names of modalities of canonical rows begin with, one row a set


def tensor_of(batch: Batch, name: str) -> torch.Tensor:
    """A modality of a batch."""
    if name not in batch:
        raise SetsupError(f"the batch has no modality {name!r}{near(name, batch)}")
    found = batch[name]
    if not isinstance(found, torch.Tensor):
        raise DataError(f"{name!r} must be a tensor, not {type(found).__name__}: make batches with to='torch'")
    return found


def has_slots(batch: Batch, name: str, kind: str, found: torch.Tensor) -> bool | None:
    """Whether a modality has an axis of slots after that of sets; None where its number of axes must tell.

    Those of canonical rows have none, and all have one in a batch without ``indices``. What begins as ``indices`` do
    has one; but of images it may be that of channels, and points and normals have one number of axes.
    """
    if name.startswith(_CANONICAL):
        return False
    rows = batch.get("indices")
    if rows is None:
        return True
    if found.shape[:2] != tuple(rows.shape) or kind in _LAST or (kind == "color" and found.shape[1] <= _CHANNELS):
        return None
    return True


def leads_of(batch: Batch, name: str, kind: str) -> set[int]:
    """How many axes of a modality may be those of sets and slots: 2; 1 where there is one image a set."""
    found = tensor_of(batch, name)
    numbers, axes = KINDS[kind]
    possible = {None: {1, 2}, True: {2}, False: {1}}[has_slots(batch, name, kind, found)]
    leads = possible & {found.ndim - number for number in numbers}
    if kind == "flow":
        leads = {lead for lead in leads if _flows(found.shape[lead:])}
    if not leads or found.shape[-1] != _LAST.get(kind, found.shape[-1]):
        frames = "; frames are a clip, and what follows copies= goes into the same Augment"
        more = frames if kind == "color" and found.ndim == 6 else ""
        raise DataError(
            f"{name!r} must be {axes}, or the same without size, to be {kind}, not {tuple(found.shape)}{more}"
        )
    return leads


def _flows(shape: tuple[int, ...]) -> bool:
    """Whether these are the axes of flow: x and y by turns, or on an axis of their own."""
    return shape[-3] == 2 if len(shape) == 4 else shape[-3] > 0 and shape[-3] % 2 == 0


def images_of(batch: Batch, name: str) -> torch.Tensor:
    """A modality that holds images, (sets, size, channels, height, width).

    Copies may stand before the channels; what has one image a set, such as ``canonical_image``, has no slots.
    """
    found = tensor_of(batch, name)
    if found.ndim not in (4, 5, 6) or (found.ndim == 4 and has_slots(batch, name, "color", found)):
        raise DataError(
            f"{name!r} must be (sets, size, channels, height, width), with copies before the channels where there are "
            f"any, or (sets, channels, height, width), not {tuple(found.shape)}"
        )
    return found


def planes_of(
    batch: Batch, name: str, kind: str
) -> tuple[torch.Tensor, tuple[int, ...], Callable[[torch.Tensor], torch.Tensor]]:
    """A modality as planes of pixels, which are cut in one way whatever its kind.

    Returns `planes` (n, channels, height, width).

    `kind`: ``color`` as in :func:`images_of`; ``label`` and ``depth``, (sets, size, height, width); ``normal``,
    (sets, size, height, width, 3): with copies after the slots, or without slots, as images may be. A label or
    depth (…, height, width, k) is refused; what has copies is told from it by images, or ``homographies``, of
    as many.
    """
    if kind == "color":
        images = images_of(batch, name)
        return images.flatten(0, -4), tuple(images.shape[:-3]), lambda planes: planes
    found, after = tensor_of(batch, name), 3 if kind == "normal" else 2
    if found.ndim - after not in (1, 2, 3) or (kind == "normal" and found.shape[-1] != 3):
        axes = KINDS[kind][1].split(" or ")[0]
        raise DataError(
            f"{name!r} must be {axes} to be {kind}, with copies after size or without size, not {tuple(found.shape)}"
        )
    lead = tuple(found.shape[:-after])
    axes_of_sets = 2 if has_slots(batch, name, kind, found) else 1
    if kind != "normal" and len(lead) > axes_of_sets and not _copied(batch, name, lead, found):
        raise DataError(
            f"{name!r}, {tuple(found.shape)}, has an axis more than images of {kind}, and nothing in the batch was "
            "copied so: cut each of its k planes (…, height, width) alone, under a name of its own"
        )
    if kind == "normal":
        return found.flatten(0, -4).movedim(-1, 1), lead, lambda planes: planes.movedim(-3, -1)
    return found.flatten(0, -3)[:, None], lead, lambda planes: planes.squeeze(-3)


def _copied(batch: Batch, name: str, lead: tuple[int, ...], found: torch.Tensor) -> bool:
    """Whether the last axis of a lead is that of copies: those of matrices, or of images of the same size."""
    matrices = batch.get("homographies", {}).get(name)
    if matrices is not None and tuple(matrices.shape[:-2]) == lead:
        return True
    size = tuple(found.shape[-2:])
    tensors = (one for one in batch.values() if isinstance(one, torch.Tensor) and one.ndim == len(lead) + 3)
    return any(tuple(one.shape[: len(lead)]) == lead and tuple(one.shape[-2:]) == size for one in tensors)


def keyed_slots(batch: Batch, seed: int, stream: str, lead: Sequence[int], copies: int = 1) -> Slots:
    """Keys of the images of a batch, flat.

    `lead` (sets,), (sets, size) or (sets, size, copies).
    """
    step = batch.get("step")
    if not is_integer(step):
        raise SetsupError(
            f"the batch needs the number of its draw as batch['step'], an integer, not {step!r}: "
            "it comes from setsup.loader"
        )
    many = lead[2] if len(lead) > 2 else copies
    return Slots(slots_of(stream_key(seed, stream), int(step), tuple(lead[:2]), many).reshape(-1))


def add_views(batch: Batch, names: Sequence[str], views: Sequence[torch.Tensor], lead: Sequence[int]) -> Batch:
    """The batch with views under their names, their first axis folded out to sets, slots and perhaps copies."""
    for name in names:
        if name in batch:
            raise SetsupError(f"the batch has {name!r} already: give what the view adds another name")
    return {**batch, **{name: view.reshape(*lead, *view.shape[1:]) for name, view in zip(names, views, strict=True)}}


def check_names(names: tuple[str, ...], count: int) -> None:
    """Refuse what is no tuple of so many different texts."""
    texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    if not texts or not len(names) == len(set(names)) == count:
        raise SetsupError(f"names must be {count} different strings in a tuple, not {names!r}")
