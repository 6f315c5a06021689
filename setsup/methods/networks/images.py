"""Images of loaders as input of networks.

Images are (..., C, H, W): any number of leading axes (pairs, sets, copies), then channels, rows and columns.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError

__all__ = ["OverImages", "encode_images", "unit_range"]


def unit_range(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Images as floats in [0, 1]: bytes are divided by 255, floats are taken to be there already.

    `images` (...) uint8, or float in [0, 1]; returns (...) dtype.
    """
    if images.dtype == torch.uint8:
        return images.to(dtype) / 255
    if not images.is_floating_point():
        raise SetsupError(
            f"images for a network must be uint8, or floats in [0, 1], not {_short(images.dtype)}; convert them, "
            "for example bytes of a wider type with images.to(torch.uint8)"
        )
    return images.to(dtype)


def encode_images(encode: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """What a function of (n, C, H, W) float32 in [0, 1] gives for images with any leading axes.

    `images` (..., C, H, W) uint8, or float in [0, 1]; returns (..., d) float32, for a function that returns (n, d).
    """
    encoded = encode(unit_range(images.reshape(-1, *images.shape[-3:])))
    return encoded.float().reshape(*images.shape[:-3], -1)


class OverImages(nn.Module):
    """Applies layers to images of one size, with any leading axes."""

    def __init__(self, channels: int, height: int, width: int, layers: nn.Module) -> None:
        super().__init__()
        self.image = (channels, height, width)
        # the memory layout of a loader's images: a step takes a fifth less time on a CPU
        self.layers: nn.Module = layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Apply the layers to each image.

        `images` (..., C, H, W) uint8, or float in [0, 1]; returns (..., D) float, for layers that return (n, D).
        """
        lead = images.shape[:-3]
        if images.shape[-3:] != self.image:
            expected = ", ".join(map(str, self.image))
            raise SetsupError(
                f"images for this network must have the shape (..., {expected}) (channels, height, width), not "
                f"{tuple(images.shape)}; {_advice(tuple(images.shape), self.image)}"
            )
        parameter = next(self.parameters(), None)
        dtype = torch.float32 if parameter is None else parameter.dtype
        # not flatten, which requires a leading axis; neither copies channels-last images
        output = self.layers(unit_range(images.reshape(-1, *self.image), dtype))
        result: Tensor = output.reshape(*lead, *output.shape[1:])
        return result


def _advice(came: tuple[int, ...], image: tuple[int, int, int]) -> str:
    if came[-3:] == (*image[1:], image[0]):
        return "the channels are last; move them to the front with images.movedim(-1, -3)"
    return "resize or crop them, or build a network for this size"


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
