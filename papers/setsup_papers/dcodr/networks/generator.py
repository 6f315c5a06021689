"""The generator of LORD and DCoDR: an image from a code of its content and one of its domain [1]_, [2]_.

References
----------
.. [1] A. Gabbay, Y. Hoshen, "Demystifying inter-class disentanglement", ICLR 2020 (arXiv 1906.11796), and its published
   code.
.. [2] X. Huang, S. Belongie, "Arbitrary style transfer in real-time with adaptive instance normalization", ICCV 2017.

"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import SetsupError

__all__ = ["EMBEDDED", "AdaINGenerator", "class_embedding"]

_LAYERS = 4
"""Each doubles the sides."""

_EPSILON = 1e-5

EMBEDDED = 0.05
"""Initial codes are uniform within ± this."""


class AdaINGenerator(nn.Module):
    """Images from codes of content and style, where the style sets mean and spread of every channel [1]_, [2]_.

    The content goes through three linear layers to a map of 1/16 of the sides. Four times it is enlarged to twice the
    sides (nearest), convolved by 3 × 3 and normalised over each image's own pixels, with a scale and a bias per channel
    that are a linear function of the style. Convolutions of 5 × 5 and 7 × 7 and a sigmoid end it. Activations are
    leaky ReLUs with slope 0.01.

    Parameters
    ----------
    image : (channels, height, width)
        Of images; sides are multiples of 16.
    content, style : int
        Dimensions of the codes.
    width : int
        Channels of the maps, a multiple of 8.

    Raises
    ------
    SetsupError
        When a side is not a multiple of 16, or the width none of 8.

    Examples
    --------
    >>> generator = AdaINGenerator((3, 64, 64))
    >>> style = sum(weights.numel() for weights in generator.modulation.parameters())
    >>> sum(weights.numel() for weights in generator.parameters()) - style, style
    (7569155, 526336)
    >>> tuple(generator(torch.zeros(2, 128), torch.zeros(2, 256)).shape)
    (2, 3, 64, 64)

    """

    def __init__(
        self, image: tuple[int, int, int] = (3, 64, 64), content: int = 128, style: int = 256, width: int = 256
    ) -> None:
        super().__init__()
        channels, height, width_of_image = image
        shrunk = 2**_LAYERS
        if height % shrunk or width_of_image % shrunk or not height or not width_of_image:
            raise SetsupError(
                f"the generator doubles the sides of its map {_LAYERS} times, so it cannot generate images of {height} "
                f"× {width_of_image} pixels; resize them to multiples of {shrunk}, for example 64 × 64"
            )
        if width % 8 or width < 8:
            raise SetsupError(f"the width of the generator must be a positive multiple of 8, not {width}")
        self.start = (width, height // shrunk, width_of_image // shrunk)
        places = self.start[1] * self.start[2]
        sizes = (content, places * width // 8, places * width // 4, places * width)
        self.dense = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(sizes))
        self.modulation = nn.ModuleList(nn.Linear(style, 2 * width) for _ in range(_LAYERS))
        self.convolutions = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(_LAYERS))
        self.last = nn.Sequential(
            nn.Conv2d(width, width // 4, 5, padding=2),
            nn.LeakyReLU(),
            nn.Conv2d(width // 4, channels, 7, padding=3),
            nn.Sigmoid(),
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, content: Tensor, style: Tensor) -> Tensor:
        """Images (n, channels, height, width) float in [0, 1] of codes (n, content) and (n, style) float."""
        features = content
        for layer in self.dense:
            features = functional.leaky_relu(layer(features))
        features = features.reshape(-1, *self.start).to(memory_format=torch.channels_last)  # as the weights
        for convolution, modulation in zip(self.convolutions, self.modulation, strict=True):
            features = functional.interpolate(features, scale_factor=2.0, mode="nearest")
            features = _normalise(functional.leaky_relu(convolution(features)), modulation(style))
        images: Tensor = self.last(features)
        return images


def _normalise(maps: Tensor, modulation: Tensor) -> Tensor:
    """Normalise each channel of each of some maps (n, width, h, w) over its places, then scale it and add a bias.

    `modulation` (n, 2 · width) has both. It is one multiplication and one addition: instance_norm copies maps in this
    layout of memory.
    """
    variance, mean = torch.var_mean(maps.float(), (2, 3), correction=0, keepdim=True)
    # bias and scale of a channel follow each other, as in the published code
    bias, scale = modulation.reshape(len(modulation), -1, 2, 1, 1).unbind(2)
    scale = scale * (variance + _EPSILON).rsqrt()
    return torch.addcmul((bias - mean * scale).to(maps.dtype), maps, scale.to(maps.dtype))


def class_embedding(classes: int, size: int = 256) -> nn.Embedding:
    """A learned code for each of some classes, such as domains; uniform within ±0.05 at first, as in [1]_."""
    embedding = nn.Embedding(classes, size)
    nn.init.uniform_(embedding.weight, -EMBEDDED, EMBEDDED)
    return embedding
