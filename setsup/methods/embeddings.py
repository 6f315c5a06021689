"""Sets of embeddings as losses take them: one type, one axis of pairs, padding that can do no harm."""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from setsup import checks
from setsup.errors import DataError, SetsupError

__all__ = ["check_arguments", "check_temperature", "fill_padding", "match_types", "without_autocast"]

_AS_IT_IS = nullcontext()


def check_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check arguments as :func:`setsup.checks.check_arguments` does, but not while ``torch.compile`` traces.

    Examples
    --------
    >>> check_arguments(without_autocast, {"embeddings": 3})
    Traceback (most recent call last):
    setsup.errors.DataError: embeddings of without_autocast must be a Tensor, not 3

    """
    if not torch.compiler.is_compiling():
        checks.check_arguments(function, given, DataError)


def match_types(*sets: Tensor) -> tuple[Tensor, ...]:
    """Check that sets of embeddings go together; give them in one type, float32 or float64.

    `*sets` (..., any, d) floating.

    Examples
    --------
    >>> [some.dtype for some in match_types(torch.ones(2, 3), torch.ones(4, 3, dtype=torch.bfloat16))]
    [torch.float32, torch.float32]

    """
    first, dtype = sets[0].shape, torch.float32
    for some in sets:
        shape = some.shape
        if len(shape) < 2 or 0 in shape:
            raise DataError(f"embeddings must have the shape (..., n, d) with n and d at least 1, not {tuple(shape)}")
        if not some.is_floating_point():
            raise DataError(
                f"embeddings must be floating-point, not {some.dtype}; convert them, for example with x.float()"
            )
        if shape != first and (shape[:-2] != first[:-2] or shape[-1] != first[-1]):
            shapes = f"{tuple(first)} and {tuple(shape)}"
            raise DataError(
                f"both sets of a pair must have the same shape except for their size, (..., any, d), not {shapes}"
            )
        if some.dtype == torch.float64:
            dtype = torch.float64
    return tuple(some if some.dtype == dtype else some.to(dtype) for some in sets)


def fill_padding(embeddings: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Put a member of each set in place of its padding.

    So padding is nothing that the set does not have anyway: not NaN, not far away, not 0, where a function of one's own
    might have no gradient. An empty set becomes zeros.

    `embeddings` (..., n, d) floating; `mask` (..., n) bool, optional.
    """
    members = embeddings.unsqueeze(0) if embeddings.ndim == 2 else embeddings.flatten(0, -3)
    if mask is None:
        return members, None
    if mask.dtype != torch.bool or mask.shape != embeddings.shape[:-1]:
        raise DataError(
            f"the mask of embeddings of shape {tuple(embeddings.shape)} must be a torch.bool tensor of shape "
            f"{tuple(embeddings.shape[:-1])}, not {mask.dtype} {tuple(mask.shape)}"
        )
    flat = mask.reshape(-1, mask.shape[-1])
    some = flat.byte().argmax(-1)[:, None, None].expand(-1, 1, members.shape[-1])
    filling = members.detach().gather(-2, some).masked_fill(~flat.any(-1)[:, None, None], 0)
    return torch.where(flat.unsqueeze(-1), members, filling), flat


def without_autocast(embeddings: Tensor) -> AbstractContextManager[None]:
    """Compute in the types that tensors have, on the device of these embeddings, whatever autocast is about.

    Examples
    --------
    >>> x = torch.ones(2, 2)
    >>> with torch.autocast("cpu", dtype=torch.bfloat16), without_autocast(x):
    ...     (x @ x).dtype
    torch.float32

    """
    kind = embeddings.device.type
    # entering a region takes as long as three small operations, and mostly there is nothing to leave
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else _AS_IT_IS


def check_temperature(temperature: float) -> None:
    """Raise SetsupError unless a temperature is positive and finite.

    Examples
    --------
    >>> check_temperature(0.1)

    """
    if not 0 < temperature < math.inf:
        raise SetsupError(f"temperature must be a positive number, not {temperature!r}")
