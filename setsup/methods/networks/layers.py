"""Layers with normalisation and ReLU, layers in full precision, and what convolutions make of a size of images."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError

__all__ = ["FullPrecision", "convolution", "dense", "flat_size", "halved_sides"]


class FullPrecision(nn.Module):
    """Layers in float32 under autocast, too: embeddings of 8 bits would be coarser than the lengths that losses see."""

    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, features: Tensor) -> Tensor:
        """Apply the layers to features of any type."""
        with torch.autocast(features.device.type, enabled=False):
            output: Tensor = self.layers(features.to(next(self.parameters()).dtype))
        return output


def convolution(before: int, after: int, kernel: int | tuple[int, int], stride: int, padding: int) -> nn.Sequential:
    """A convolution without bias, batch normalisation and ReLU."""
    layer = nn.Conv2d(before, after, kernel, stride, padding, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(after), nn.ReLU(inplace=True))


def dense(before: int, after: int) -> nn.Sequential:
    """A dense layer, batch normalisation and ReLU."""
    return nn.Sequential(nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU(inplace=True))


def flat_size(stages: Mapping[str, nn.Module], image: Sequence[int]) -> int:
    """Numbers that stages give for an image (channels, height, width), found by the sizes of convolutions and pools.

    Nothing is computed: it draws no random numbers, and changes no statistics.
    """
    channels, *sides = image
    for name, stage in stages.items():
        for layer in stage.modules():
            if isinstance(layer, nn.Conv2d | nn.MaxPool2d):
                reduced = [_side(layer, side, axis) for axis, side in enumerate(sides)]
                if min(reduced) < 1:
                    raise SetsupError(
                        f"images of {image[1]} × {image[2]} pixels are too small: the input of {name} would be "
                        f"{sides[0]} × {sides[1]}; use larger images, or another encoder"
                    )
                sides = reduced
                channels = layer.out_channels if isinstance(layer, nn.Conv2d) else channels
    return channels * math.prod(sides)


def halved_sides(image: Sequence[int], times: int) -> tuple[int, int]:
    """Height and width of an image (channels, height, width) after convolutions that halve them exactly."""
    _, height, width = image
    factor = 2**times
    if height % factor or width % factor:
        raise SetsupError(
            f"the height and width of images must be multiples of {factor} for {times} convolutions with stride 2, "
            f"not {height} × {width}; resize the images, or use fewer convolutions"
        )
    return height // factor, width // factor


def _side(layer: nn.Conv2d | nn.MaxPool2d, side: int, axis: int) -> int:
    kernel, stride, padding = (_at(value, axis) for value in (layer.kernel_size, layer.stride, layer.padding))
    room = side + 2 * padding - kernel
    if isinstance(layer, nn.MaxPool2d) and layer.ceil_mode and room >= 0:
        steps = -(-room // stride)
        # a window that would begin beyond the map is left out, as torch does
        return steps + 1 if steps * stride < side + padding else steps
    return room // stride + 1


def _at(value: Any, axis: int) -> int:
    return int(value[axis] if isinstance(value, tuple) else value)
