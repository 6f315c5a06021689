"""The last step of a batch: conversion to tensors, then the user's transform."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from setsup.datasets.dataset import Modality
from setsup.errors import SetsupError
from setsup.loading.batch import Batch, Transform
from setsup.loading.torch import TensorConverter

__all__ = ["Finish"]


@dataclass(frozen=True, slots=True)
class Finish:
    """Converts a fetched batch to tensors, if asked to, and applies the transform."""

    converter: TensorConverter | None
    transform: Transform | None
    described: Mapping[str, Modality]
    modalities: tuple[str, ...]

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch that the loader delivers."""
        shape = batch["indices"].shape
        if self.converter is not None:
            batch = self.converter.deliver(batch, self.described, self.modalities)
        if self.transform is not None:
            batch = _check_positions(self.transform(batch), self.modalities, shape)
        return batch


def _check_positions(batch: Batch, modalities: Sequence[str], shape: tuple[int, ...]) -> Batch:
    """Return a transform's batch, after a check that arrays which kept their names kept their leading axes."""
    if not isinstance(batch, dict):
        raise SetsupError(f"the transform must return the batch, a dict, not {type(batch).__name__}")
    for name, value, axes in _with_axes(batch, modalities):
        own_shape = getattr(value, "shape", None)
        if own_shape is None and name in modalities:
            raise SetsupError(
                f"the transform replaced {name!r} with a {type(value).__name__}; return an array with one entry per "
                "position"
            )
        if own_shape is not None and tuple(own_shape[:axes]) != shape[:axes]:
            sets, thing = (f"{shape[0]} sets of {shape[1]}", "position") if axes == 2 else (f"{shape[0]} sets", "set")
            raise SetsupError(
                f"the transform changed {name!r} from {sets} to {tuple(own_shape[:axes])}, but must keep one entry "
                f"per {thing}; put further copies on an axis after the {thing}s, or under other names"
            )
    return batch


def _with_axes(batch: Batch, modalities: Sequence[str]) -> Iterator[tuple[str, Any, int]]:
    """Names, values and number of leading axes: 1 for sets, 2 for sets and positions."""
    canonical = ("canonical", *(f"canonical_{name}" for name in modalities))
    for names, axes in (((*modalities, "indices", "mask"), 2), (canonical, 1)):
        yield from ((name, batch[name], axes) for name in names if name in batch)
    for role, axes in (("factors", 2), ("inactive", 1)):
        codes = batch.get(role)
        if isinstance(codes, dict):
            yield from ((f"{role}: {name}", values, axes) for name, values in codes.items())
