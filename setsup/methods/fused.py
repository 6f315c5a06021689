"""Optimisers that update all weights in one pass."""

from typing import TypeVar

import torch

__all__ = ["fuse"]

_Optimiser = TypeVar("_Optimiser", torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)


def fuse(optimiser: _Optimiser) -> _Optimiser:
    """Let an optimiser without steps update all weights in one pass, a third of the time on a CPU.

    torch's own argument ``fused`` would do more: let the optimiser unscale gradients of float16 itself, after they were
    clipped.
    """
    for group in optimiser.param_groups:
        group["fused"] = True
    return optimiser
