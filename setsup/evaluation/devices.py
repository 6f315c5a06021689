"""Where estimators that train networks run."""

import torch

from setsup.errors import SetsupError, abbreviate

__all__ = ["check_device"]


def check_device(device: str | torch.device) -> None:
    """Raise SetsupError unless torch knows a device of this name."""
    try:
        torch.device(device)
    except RuntimeError:
        raise SetsupError(
            f"device must be a torch device, such as 'cpu' or 'cuda:0', not {abbreviate(device)}"
        ) from None
