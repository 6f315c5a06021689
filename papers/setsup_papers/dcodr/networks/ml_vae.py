"""Networks of the multi-level variational autoencoder: the original ones of dense layers [1]_, and convolutions [2]_.

References
----------
.. [1] D. Bouchacourt, R. Tomioka, S. Nowozin, "Multi-level variational autoencoder: learning disentangled
   representations from grouped observations", AAAI 2018 (arXiv 1705.08841), and its public code.
.. [2] F. Locatello, B. Poole, G. Rätsch, B. Schölkopf, O. Bachem, M. Tschannen, "Weakly-supervised disentanglement
   without compromises", ICML 2020 (arXiv 2002.02886), whose public code has ML-VAE with the networks of β-VAE for
   64 × 64 images.

"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError
from setsup.methods.gaussians import Gaussian
from setsup.methods.networks.layers import halved_sides

__all__ = ["GroupedDecoder", "GroupedEncoder", "convolutional_vae", "dense_vae"]


class GroupedEncoder(nn.Module):
    """Posteriors of an image's style and, from that image alone, of its group's code.

    Parameters
    ----------
    layers : nn.Module
        (n, C, H, W) float in [0, 1] → (n, features) float.
    features : int
        Outputs of the layers.
    style, group : int
        Dimensions of the two codes.

    """

    def __init__(self, layers: nn.Module, features: int, style: int, group: int) -> None:
        super().__init__()
        self.layers = layers
        self.style_mean, self.style_log_variance = nn.Linear(features, style), nn.Linear(features, style)
        self.group_mean, self.group_log_variance = nn.Linear(features, group), nn.Linear(features, group)

    def forward(self, images: Tensor) -> tuple[Gaussian, Gaussian]:
        """Style and group of each image; (n, C, H, W) float in [0, 1] → float32."""
        features = self.layers(images)
        style = Gaussian(self.style_mean(features).float(), self.style_log_variance(features).float())
        return style, Gaussian(self.group_mean(features).float(), self.group_log_variance(features).float())


class GroupedDecoder(nn.Module):
    """Parameters of the distribution of an image, from its style and its group's code.

    Parameters
    ----------
    layers : nn.Module
        (n, style + group) float → (n, parts · C · H · W) float, of any shape.
    image : (int, int, int)
        Channels, height and width.
    parts : int
        Maps of the image's size that the layers return: 1 of Bernoulli logits, or 2 of means and log-variances.

    """

    def __init__(self, layers: nn.Module, image: tuple[int, int, int], parts: int) -> None:
        super().__init__()
        self.layers, self.image, self.parts = layers, image, parts

    def forward(self, style: Tensor, group: Tensor) -> Tensor:
        """Maps (parts, n, C, H, W) float32 for codes (n, style) and (n, group)."""
        maps: Tensor = self.layers(torch.cat([style, group], 1)).float()
        return maps.reshape(len(style), self.parts, *self.image).transpose(0, 1)


def dense_vae(
    image: tuple[int, int, int],
    style: int,
    group: int,
    *,
    width: int = 500,
    parts: int = 2,
    generator: torch.Generator,
) -> tuple[GroupedEncoder, GroupedDecoder]:
    """Encoder and decoder of one hidden layer with tanh each, as published for digits [1]_.

    Weights are normal with the variance 1 / fan in, and biases with 1 / their number.
    """
    size = math.prod(image)
    encoder = GroupedEncoder(nn.Sequential(nn.Flatten(), nn.Linear(size, width), nn.Tanh()), width, style, group)
    layers = nn.Sequential(nn.Linear(style + group, width), nn.Tanh(), nn.Linear(width, parts * size))
    decoder = GroupedDecoder(layers, image, parts)
    for network in (encoder, decoder):
        _lecun_(network, generator)
    return encoder, decoder


def convolutional_vae(
    image: tuple[int, int, int],
    style: int,
    group: int,
    *,
    channels: Sequence[int] = (32, 32, 64, 64),
    kernels: Sequence[int] = (4, 4, 2, 2),
    width: int = 256,
    parts: int = 2,
) -> tuple[GroupedEncoder, GroupedDecoder]:
    """Encoder of convolutions with stride 2 and a dense layer, and decoder of 4 × 4 ones in reverse [2]_.

    Kernels have 2 or 4 pixels, so that each convolution halves the sides. Weights are torch's own initial ones.
    """
    if len(kernels) != len(channels) or not channels or any(kernel not in (2, 4) for kernel in kernels):
        raise SetsupError(
            f"kernels must contain one size, 2 or 4 pixels, for each of the channels {tuple(channels)}, not "
            f"{tuple(kernels)}"
        )
    smallest = (channels[-1], *halved_sides(image, len(channels)))
    size = math.prod(smallest)
    layers: list[nn.Module] = []
    for (before, after), kernel in zip(pairwise((image[0], *channels)), kernels, strict=True):
        layers += [nn.Conv2d(before, after, kernel, 2, kernel // 2 - 1), nn.ReLU()]
    encoder = GroupedEncoder(
        nn.Sequential(*layers, nn.Flatten(), nn.Linear(size, width), nn.ReLU()), width, style, group
    )
    back: list[nn.Module] = [nn.Linear(style + group, width), nn.ReLU(), nn.Linear(width, size), nn.ReLU()]
    back.append(nn.Unflatten(1, smallest))
    for before, after in pairwise((*reversed(channels), parts * image[0])):
        back += [nn.ConvTranspose2d(before, after, 4, 2, 1), nn.ReLU()]
    return encoder, GroupedDecoder(nn.Sequential(*back[:-1]), image, parts)


def _lecun_(network: nn.Module, generator: torch.Generator) -> None:
    """Initialise dense layers by the generator, layer by layer."""
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.Linear):
                layer.weight.normal_(0, layer.in_features**-0.5, generator=generator)
                layer.bias.normal_(0, layer.out_features**-0.5, generator=generator)
