"""Names of what views add to a batch."""

from collections.abc import Sequence

import torch

from setsup.errors import SetsupError
from setsup.loading.batch import Batch

__all__ = ["add_views", "check_names"]


def add_views(batch: Batch, names: Sequence[str], views: Sequence[torch.Tensor], lead: Sequence[int]) -> Batch:
    """The batch with views under their names, their first axis folded out to sets, slots and perhaps copies."""
    for name in names:
        if name in batch:
            raise SetsupError(f"the batch already contains {name!r}; choose another name for the result of the view")
    return {**batch, **{name: view.reshape(*lead, *view.shape[1:]) for name, view in zip(names, views, strict=True)}}


def check_names(names: tuple[str, ...], count: int) -> None:
    """Refuse what is no tuple of so many different texts."""
    texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    if not texts or not len(names) == len(set(names)) == count:
        raise SetsupError(f"names must be a tuple of {count} distinct strings, not {names!r}")
