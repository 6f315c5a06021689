"""Plain convolutional encoders, built from a table."""

from collections.abc import Sequence

import torch
from torch import nn

from setsup.errors import SetsupError
from setsup.methods.networks.images import OverImages
from setsup.methods.networks.initialisation import bare, glorot_
from setsup.methods.networks.layers import FullPrecision

__all__ = ["convolutional"]

_KERNEL = 3


def convolutional(
    image: tuple[int, int, int],
    convolutions: Sequence[tuple[int, int]],
    dense: Sequence[int],
    generator: torch.Generator,
) -> OverImages:
    """Encoder of 3 × 3 convolutions and dense layers, with ReLU after all but the last, initialised by `glorot_`.

    Convolutions have *valid* padding, that is none: a side of n pixels becomes ⌊(n − 3) / stride⌋ + 1.

    `image` (channels, height, width); returns `OverImages` (..., channels, height, width) uint8, or float in [0, 1] →
    (..., dense[-1]) float32.
    """
    if not dense:
        raise SetsupError(
            "dense must have at least one width (the last is the width of the embedding), for example [64]"
        )
    channels, *sides = image
    layers: list[nn.Module] = []
    for number, (out, stride) in enumerate(convolutions):
        if min(sides) < _KERNEL:
            raise SetsupError(
                f"convolution {number} requires an input of at least {_KERNEL} × {_KERNEL} pixels, not {sides[0]} × "
                f"{sides[1]}; use larger images, fewer convolutions or smaller strides"
            )
        layers += [bare(nn.Conv2d, channels, out, _KERNEL, stride), nn.ReLU()]
        channels, sides = out, [(side - _KERNEL) // stride + 1 for side in sides]
    layers.append(nn.Flatten())
    width = channels * sides[0] * sides[1]
    head: list[nn.Module] = []
    for out in dense:
        head += [bare(nn.Linear, width, out), nn.ReLU()]
        width = out
    return glorot_(OverImages(*image, nn.Sequential(*layers, FullPrecision(nn.Sequential(*head[:-1])))), generator)
