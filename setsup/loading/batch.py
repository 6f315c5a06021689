"""From a draw to a batch: one dict of arrays, the same wherever it is made."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset
from setsup.samplers import Draw

__all__ = ["Batch", "batch_of"]

Array = npt.NDArray[Any]
Batch = dict[str, Any]


def batch_of(
    dataset: Dataset, draw: Draw, modalities: Sequence[str], buffers: Mapping[str, Array] | None = None
) -> Batch:
    """Fetch what a draw names.

    Parameters
    ----------
    dataset : Dataset
        Whose rows the draw holds.
    draw : Draw
        One step.
    modalities : sequence of str
        What to fetch.
    buffers : mapping of str to array, optional
        Where to put modalities, each of the shape ``draw.indices.shape + modality.shape``.

    Returns
    -------
    dict
        Modalities ``(sets, size, …)``; ``indices`` (sets, size) int64; ``mask`` (sets, size) bool, all True where
        every slot counts; ``inactive``, name → (sets,) codes; ``factors``, name → (sets, size) codes, or float32 of
        continuous ones; and where the draw has canonical rows ``canonical`` (sets,) and ``canonical_<modality>``.

    """
    batch: Batch = {}
    if buffers:
        dataset.fetch_into(draw.indices, buffers)
        batch.update(buffers)
    else:
        batch.update(dataset.fetch(draw.indices, modalities))
    if draw.canonical is not None:
        canonical = dataset.fetch(draw.canonical, modalities)
        batch |= {f"canonical_{name}": array for name, array in canonical.items()}
        batch["canonical"] = draw.canonical
    batch["indices"] = draw.indices
    batch["mask"] = np.ones(draw.indices.shape, dtype=bool) if draw.mask is None else draw.mask
    batch["inactive"] = dict(draw.inactive)
    batch["factors"] = {name: dataset.factors.codes(name, draw.indices) for name in dataset.factors.names}
    return batch
