"""Sets of embeddings as losses take them: one type, one axis of pairs, padding that can do no harm."""

import math

import torch
from torch import Tensor

from setsup.errors import DataError, SetsupError

__all__ = ["check_temperature", "padded", "the_same_type"]


def the_same_type(*sets: Tensor) -> tuple[Tensor, ...]:
    """Check that sets of embeddings go together; give them in one type, float32 or float64.

    Parameters
    ----------
    *sets : (..., any, d) floating
        Embeddings. Half precision becomes float32.

    Returns
    -------
    tuple of tensors shaped as ``sets``

    Raises
    ------
    DataError
        When one has no members or no numbers with a point, or leading axes or d differ.

    Examples
    --------
    >>> [some.dtype for some in the_same_type(torch.ones(2, 3), torch.ones(4, 3, dtype=torch.bfloat16))]
    [torch.float32, torch.float32]

    """
    first, dtype = sets[0], torch.float32
    for some in sets:
        if some.ndim < 2 or 0 in some.shape:
            raise DataError(f"a set of embeddings is (..., n, d) with at least one of each, not {tuple(some.shape)}")
        if not some.is_floating_point():
            raise DataError(f"embeddings are floating point, not {some.dtype}: convert them, as in x.float()")
        if some.shape[:-2] != first.shape[:-2] or some.shape[-1] != first.shape[-1]:
            shapes = " and ".join(str(tuple(each.shape)) for each in (first, some))
            raise DataError(f"the sets of a pair have the same leading axes and dimensions (..., any, d), not {shapes}")
        dtype = torch.promote_types(dtype, some.dtype)
    return tuple(some.to(dtype) for some in sets)


def padded(embeddings: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Put a member of each set in place of its padding.

    So padding is nothing that the set does not have anyway: not NaN, not far away, not 0, where a function of one's own
    might have no gradient. An empty set becomes zeros.

    Parameters
    ----------
    embeddings : (..., n, d) floating
        Sets of embeddings.
    mask : (..., n) bool, optional
        False for padding.

    Returns
    -------
    tuple of (pairs, n, d) floating and (pairs, n) bool, or None where no mask is given

    Raises
    ------
    DataError
        When the mask does not fit.

    Examples
    --------
    >>> padded(torch.tensor([[2.0], [torch.nan]]), torch.tensor([True, False]))
    (tensor([[[2.],
             [2.]]]), tensor([[ True, False]]))

    """
    members = embeddings.reshape(-1, *embeddings.shape[-2:])
    if mask is None:
        return members, None
    if mask.dtype != torch.bool or mask.shape != embeddings.shape[:-1]:
        given, wanted = f"{tuple(mask.shape)} of {mask.dtype}", tuple(embeddings.shape[:-1])
        raise DataError(f"a mask of {tuple(embeddings.shape)} embeddings is {wanted} of torch.bool, not {given}")
    flat = mask.reshape(-1, mask.shape[-1])
    some = flat.byte().argmax(-1)[:, None, None].expand(-1, 1, members.shape[-1])
    filling = members.detach().gather(-2, some).masked_fill(~flat.any(-1)[:, None, None], 0)
    return torch.where(flat.unsqueeze(-1), members, filling), flat


def check_temperature(temperature: float) -> None:
    """Raise SetsupError unless a temperature is positive and finite.

    Examples
    --------
    >>> check_temperature(0.1)

    """
    if not 0 < temperature < math.inf:
        raise SetsupError(f"a temperature is a positive number, not {temperature!r}")
