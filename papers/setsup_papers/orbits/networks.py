"""Networks of the orbit papers: an encoder, its mirror image as a decoder, and a spatial transformer [1]_, [2]_, [3]_.

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders: learning from image
   transformation sets", 2017 (arXiv 1703.04775), section 4.
.. [2] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
   self-supervised visual experience", NeurIPS 2018.
.. [3] M. Jaderberg, K. Simonyan, A. Zisserman, K. Kavukcuoglu, "Spatial transformer networks", NeurIPS 2015.

"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.checks import check_integer
from setsup.errors import SetsupError

__all__ = ["OrbitDecoder", "OrbitEncoder", "SpatialTransformer", "Unpooling"]

Unpooling = Literal["fixed", "nearest", "switches"]

_KERNEL, _PADDING = 3, 1
"""Of a convolution."""


class OrbitEncoder(nn.Module):
    """Four stages of two convolutions with batch normalisation and ReLU, and a max-pool after each; then one layer.

    Convolutions are 3 × 3 with stride 1 and padding 1. A side of n pixels becomes ⌊n / pool⌋ in each stage.

    Parameters
    ----------
    image : (channels, height, width)
        Size of images.
    channels : sequence of int
        Of each stage.
    size : int
        Dimensions of the code.
    pools : sequence of int
        Side and stride of each max-pool.

    """

    def __init__(
        self,
        image: tuple[int, int, int],
        channels: Sequence[int] = (16, 32, 64, 128),
        size: int = 1024,
        pools: Sequence[int] = (2, 2, 2, 2),
    ) -> None:
        super().__init__()
        if len(pools) != len(channels):
            raise SetsupError(
                f"pools must contain one number for each of the {len(channels)} stages, not {tuple(pools)}"
            )
        for number in (*image, *channels, size, *pools):
            check_integer(number, "a number of channels, of dimensions, or the side of a pool", SetsupError, 1)
        self.pools = tuple(pools)
        self.sides: list[tuple[int, int]] = [image[1:]]
        for pool in pools:
            height, width = self.sides[-1]
            self.sides.append((height // pool, width // pool))
        if min(self.sides[-1]) < 1:
            raise SetsupError(
                f"images of {image[1]} × {image[2]} pixels are too small for pools={self.pools}; use larger images or "
                "smaller pools"
            )
        inside = [image[0], *(width for width in channels for _ in range(2))]
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, _KERNEL, padding=_PADDING) for a, b in pairwise(inside))
        self.normalisations = nn.ModuleList(nn.BatchNorm2d(width) for width in inside[1:])
        self.code = nn.Linear(inside[-1] * self.sides[-1][0] * self.sides[-1][1], size)

    def forward(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Codes (n, size) of images (n, C, H, W) float, and the positions of each stage's maxima, for unpooling."""
        features, switches = images, []
        for number, (convolution, normalisation) in enumerate(self.layers()):
            features = functional.relu(normalisation(convolution(features)))
            if number % 2 == 1:
                features, where = functional.max_pool2d(features, self.pools[number // 2], return_indices=True)
                switches.append(where)
        return self.code(features.flatten(1)), switches

    def layers(self) -> list[tuple[nn.Conv2d, nn.BatchNorm2d]]:
        """Each convolution with its normalisation, in order."""
        layers: Any = zip(self.convolutions, self.normalisations, strict=True)
        return list(layers)

    def mirrored_weights(self) -> list[Tensor]:
        """Weights of the transposed layers, the last layer's first."""
        return [self.code.weight.T, *(layer.weight for layer, _ in reversed(self.layers()))]


class OrbitDecoder(nn.Module):
    """The mirror image of an encoder: from a code to an image.

    Each layer is the transpose of the encoder's, with a bias of its own and, but for the last, batch normalisation of
    its own and ReLU. The last layer is linear.

    Parameters
    ----------
    encoder : OrbitEncoder
        Whose mirror image it is.
    tied : bool
        Whether weights are the encoder's (not its biases), or its own.
    unpooling : {"fixed", "nearest", "switches"}
        Where a value goes when a map gets larger: to the upper left of its pixels, with 0 elsewhere; to all of them; or
        to where the encoder's maximum was. Switches tell the decoder how the input was transformed.
    normalised : bool
        Whether there is batch normalisation.

    """

    def __init__(
        self, encoder: OrbitEncoder, tied: bool = True, unpooling: Unpooling = "fixed", normalised: bool = True
    ) -> None:
        super().__init__()
        if unpooling not in get_args(Unpooling):
            raise SetsupError(f"unpooling must be one of {', '.join(get_args(Unpooling))}, not {unpooling!r}")
        self.unpooling: Unpooling = unpooling
        mirrored = list(reversed([layer for layer, _ in encoder.layers()]))
        inside = [layer.in_channels for layer in mirrored]
        own = [] if tied else [nn.Linear(encoder.code.out_features, encoder.code.in_features).weight]
        own += (
            []
            if tied
            else [nn.ConvTranspose2d(layer.out_channels, layer.in_channels, _KERNEL).weight for layer in mirrored]
        )
        self.weights = nn.ParameterList(own)
        self.biases = nn.ParameterList(torch.zeros(width) for width in (encoder.code.in_features, *inside))
        self.normalisations = nn.ModuleList(nn.BatchNorm2d(width) for width in (inside[:-1] if normalised else []))

    def forward(self, encoder: OrbitEncoder, code: Tensor, switches: Sequence[Tensor]) -> Tensor:
        """Images (n, C, H, W) float of codes (n, size), with the switches that the encoder gave."""
        weights = list(self.weights) or encoder.mirrored_weights()
        decoded = functional.linear(code, weights[0], self.biases[0])
        decoded = decoded.reshape(len(code), -1, *encoder.sides[-1])
        for number, (weight, bias) in enumerate(zip(weights[1:], self.biases[1:], strict=True)):
            stage = len(encoder.pools) - 1 - number // 2
            if number % 2 == 0:
                decoded = _unpool(decoded, switches[stage], encoder.pools[stage], encoder.sides[stage], self.unpooling)
            decoded = functional.conv_transpose2d(decoded, weight, bias, padding=_PADDING)
            if number < len(self.biases) - 2:
                decoded = functional.relu(self.normalisations[number](decoded) if self.normalisations else decoded)
        return decoded


class SpatialTransformer(nn.Module):
    """Resamples each image by an affine map that a small network predicts for it [3]_.

    Twice a max-pool of 2 × 2 and a 5 × 5 convolution of 20 channels with ReLU, without padding; then two linear layers.
    It begins with the identity. Images are resampled bilinearly, with 0 outside.

    Parameters
    ----------
    image : (channels, height, width)
        Size of images, at least 26 × 26.
    hidden : int
        Width of the first linear layer.

    """

    def __init__(self, image: tuple[int, int, int], hidden: int = 50) -> None:
        super().__init__()
        sides = [((side // 2 - 4) // 2) - 4 for side in image[1:]]
        if min(sides) < 1:
            raise SetsupError(
                f"a spatial transformer requires images of at least 26 × 26 pixels, not {image[1]} × {image[2]}; "
                "resize the images, or omit the transformer"
            )
        self.layers = nn.Sequential(
            nn.MaxPool2d(2),
            nn.Conv2d(image[0], 20, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(20, 20, 5),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(20 * sides[0] * sides[1], hidden),
            nn.ReLU(),
        )
        self.map = nn.Linear(hidden, 6)
        with torch.no_grad():
            self.map.weight.zero_()
            self.map.bias.copy_(torch.eye(2, 3).flatten())

    def forward(self, images: Tensor) -> Tensor:
        """Resampled images, (n, C, H, W) float as they came."""
        maps = self.map(self.layers(images)).reshape(-1, 2, 3)
        grid = functional.affine_grid(maps.to(images.dtype), list(images.shape), align_corners=False)
        return functional.grid_sample(images, grid, align_corners=False)


def _unpool(values: Tensor, switches: Tensor, pool: int, size: tuple[int, int], unpooling: Unpooling) -> Tensor:
    """Enlarge maps by the side of a pool, to a size that the pool may have rounded down; the rest is 0."""
    if unpooling == "switches":
        return functional.max_unpool2d(values, switches, [pool, pool], output_size=list(size))
    if unpooling == "nearest":
        unpooled = values.repeat_interleave(pool, -1).repeat_interleave(pool, -2)
        return functional.pad(unpooled, (0, size[1] - unpooled.shape[-1], 0, size[0] - unpooled.shape[-2]))
    unpooled = values.new_zeros(*values.shape[:2], *size)
    height, width = values.shape[-2:]
    unpooled[..., : height * pool : pool, : width * pool : pool] = values
    return unpooled
