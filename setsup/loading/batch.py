"""From a draw to a batch: one dict of arrays, the same wherever it is made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError
from setsup.loading.resizing.fetch import ResizedRows
from setsup.samplers import Draw

__all__ = ["Batch", "Transform", "check_names", "make_batch"]

_ROLES = ("step", "indices", "mask", "inactive", "pair_labels", "factors")

Batch = dict[str, Any]
Transform = Callable[[Batch], Batch]


def make_batch(
    dataset: Dataset,
    step: int,
    draw: Draw,
    modalities: Sequence[str],
    buffers: Mapping[str, Array] | None = None,
    resized: ResizedRows | None = None,
) -> Batch:
    """Fetch the rows of a draw.

    Returns: Modalities ``(sets, size, …)``; ``step``, an int; ``indices`` (sets, size) int64; ``mask`` (sets,
    size) bool, all True where every position counts; ``inactive``, name → (sets,) codes; ``factors``, name → (sets,
    size) codes, or float32 of continuous ones; where the draw has labels of pairs, ``pair_labels``, name → (sets,)
    bool; and where it has canonical rows, ``canonical`` (sets,) and ``canonical_<modality>``. With `resized`, also
    ``homographies`` by modality, and ``<name>_inside`` of points and boxes.
    """
    batch: Batch = {}
    if resized is not None:
        batch.update(resized.fetch(draw.indices, step, buffers))
    elif buffers:
        dataset.fetch_into(draw.indices, buffers)
        batch.update(buffers)
    else:
        batch.update(dataset.fetch(draw.indices, modalities))
    if draw.canonical is not None:
        canonical: Batch
        if resized is None:
            canonical = dict(dataset.fetch(draw.canonical, modalities))
        else:
            canonical = resized.fetch(draw.canonical, step)
            own = canonical.pop("homographies")
            batch["homographies"] |= {f"canonical_{name}": matrices for name, matrices in own.items()}
        batch |= {f"canonical_{name}": array for name, array in canonical.items()}
        batch["canonical"] = draw.canonical
    batch["step"] = step
    batch["indices"] = draw.indices
    batch["mask"] = np.ones(draw.indices.shape, dtype=bool) if draw.mask is None else draw.mask
    batch["inactive"] = dict(draw.inactive)
    if draw.pair_labels:
        batch["pair_labels"] = dict(draw.pair_labels)
    batch["factors"] = dataset.factors.all_codes(draw.indices)
    return batch


def check_names(dataset: str, modalities: Sequence[str]) -> None:
    """Refuse modalities whose names are reserved in a batch."""
    for name in modalities:
        if name in _ROLES or name.startswith("canonical"):
            raise DataError(
                f"the modality name {name!r} of {dataset} is reserved in batches; leave the modality out with "
                "modalities=[…], and fetch it with dataset.fetch(batch['indices'], …)"
            )
