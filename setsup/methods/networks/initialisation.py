"""Weights to begin with.

References
----------
.. [1] X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.

"""

import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import nn

from setsup.errors import SetsupError

__all__ = ["bare", "glorot_"]

M = TypeVar("M", bound=nn.Module)
P = ParamSpec("P")

_WEIGHED = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)


def glorot_(module: M, generator: torch.Generator) -> M:
    """Glorot-uniform weights and zero biases in every linear and convolutional layer, in place [1]_.

    Weights are uniform in ±√(6 / (fan in + fan out)), where a fan is the number of channels times the extent of the
    kernel. This is what Keras does by default, and ABC's results rest on it: with torch's own default the network for
    MNIST does not train. Other layers (normalisation, …) are unchanged.

    Numbers are drawn as float64 on the CPU, layer by layer in the order of ``module.modules()``, and rounded to the
    layer's type at the end: a seed gives the same weights on every device.
    """
    if generator.device.type != "cpu":
        raise SetsupError(
            f"generator must be on the CPU, not on {generator.device}, so that a seed gives equal weights everywhere; "
            "pass torch.Generator().manual_seed(seed)"
        )
    with torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, _WEIGHED):
                weight = layer.weight
                fans = (weight.shape[0] + weight.shape[1]) * math.prod(weight.shape[2:])
                bound = math.sqrt(6 / fans)
                drawn = torch.rand(weight.shape, generator=generator, dtype=torch.float64, device="cpu")
                weight.copy_((2 * drawn - 1) * bound)
                if layer.bias is not None:
                    layer.bias.zero_()
    return module


def bare(kind: Callable[P, M], *args: P.args, **kwargs: P.kwargs) -> M:
    """A layer on the CPU whose weights are unwritten memory: :func:`glorot_` or a checkpoint has to fill them.

    Unlike a layer's own constructor, it draws nothing from the global generator.
    """
    with torch.device("meta"):
        layer = kind(*args, **kwargs)
    return layer.to_empty(device="cpu")
