"""From a draw to a batch: one dict of arrays, the same wherever it is made."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, Modality
from setsup.errors import DataError, SetsupError
from setsup.samplers import Draw

if TYPE_CHECKING:
    from setsup.loading.torch import TensorConverter

__all__ = ["Batch", "Finish", "Transform", "batch_of", "check_names"]

_ROLES = ("step", "indices", "mask", "inactive", "factors")

Array = npt.NDArray[Any]
Batch = dict[str, Any]
Transform = Callable[[Batch], Batch]


def batch_of(
    dataset: Dataset, step: int, draw: Draw, modalities: Sequence[str], buffers: Mapping[str, Array] | None = None
) -> Batch:
    """Fetch what a draw names.

    Returns: Modalities ``(sets, size, …)``; ``step``, an int; ``indices`` (sets, size) int64; ``mask`` (sets,
    size) bool, all True where every slot counts; ``inactive``, name → (sets,) codes; ``factors``, name → (sets,
    size) codes, or float32 of continuous ones; and where the draw has canonical rows ``canonical`` (sets,) and
    ``canonical_<modality>``.
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
    batch["step"] = step
    batch["indices"] = draw.indices
    batch["mask"] = np.ones(draw.indices.shape, dtype=bool) if draw.mask is None else draw.mask
    batch["inactive"] = dict(draw.inactive)
    batch["factors"] = dataset.factors.all_codes(draw.indices)
    return batch


def check_names(dataset: str, modalities: Sequence[str]) -> None:
    """Refuse modalities whose names mean something else in a batch."""
    for name in modalities:
        if name in _ROLES or name.startswith("canonical"):
            raise DataError(
                f"{dataset} has a modality {name!r}, and a batch has something else of that name; leave it out with "
                "modalities=[…], and fetch it with dataset.fetch(batch['indices'], …)"
            )


@dataclass(frozen=True, slots=True)
class Finish:
    """What happens to a fetched batch before it is handed out: to tensors where they are wanted, then the transform."""

    door: "TensorConverter | None"
    transform: Transform | None
    described: Mapping[str, Modality]
    modalities: tuple[str, ...]

    def __call__(self, batch: Batch) -> Batch:
        """The batch as the consumer gets it."""
        shape = batch["indices"].shape
        if self.door is not None:
            batch = self.door.deliver(batch, self.described, self.modalities)
        if self.transform is not None:
            batch = _same_slots(self.transform(batch), self.modalities, shape)
        return batch


def _same_slots(batch: Batch, modalities: Sequence[str], shape: tuple[int, ...]) -> Batch:
    """The batch a transform gave, if what kept its name kept its sets and slots."""
    if not isinstance(batch, dict):
        raise SetsupError(f"the transform returned {type(batch).__name__}, not the batch: let it return a dict")
    for name, value, axes in _with_axes(batch, modalities):
        found = getattr(value, "shape", None)
        if found is None and name in modalities:
            raise SetsupError(f"the transform made {name!r} a {type(value).__name__}: keep one array a slot")
        if found is not None and tuple(found[:axes]) != shape[:axes]:
            sets, thing = (f"{shape[0]} sets of {shape[1]}", "slot") if axes == 2 else (f"{shape[0]} sets", "set")
            raise SetsupError(
                f"the transform changed {name!r} from {sets} to {tuple(found[:axes])}: keep one array a {thing}; "
                f"further copies go on an axis after the {thing}s, or under names of their own"
            )
    return batch


def _with_axes(batch: Batch, modalities: Sequence[str]) -> Iterator[tuple[str, Any, int]]:
    """What has an axis of sets, or of sets and slots, and how many of the two."""
    canonical = ("canonical", *(f"canonical_{name}" for name in modalities))
    for names, axes in (((*modalities, "indices", "mask"), 2), (canonical, 1)):
        yield from ((name, batch[name], axes) for name in names if name in batch)
    for role, axes in (("factors", 2), ("inactive", 1)):
        codes = batch.get(role)
        if isinstance(codes, dict):
            yield from ((f"{role}: {name}", values, axes) for name, values in codes.items())
