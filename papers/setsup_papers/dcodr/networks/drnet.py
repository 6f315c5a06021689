"""Networks of DRNET for images of one size: encoders of content and pose, a decoder, and a scene discriminator [1]_.

References
----------
.. [1] E. Denton, V. Birodkar, "Unsupervised learning of disentangled representations from video", NeurIPS 2017
   (arXiv 1705.10915), and its public code.

"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from setsup.methods.networks.layers import halved_sides

__all__ = ["DrnetDecoder", "DrnetEncoder", "SceneDiscriminator", "initialise_drnet"]

_CHANNELS = (64, 128, 256, 512)


class DrnetEncoder(nn.Module):
    """Four convolutions with stride 2, and one of what is left, to a code in (-1, 1), as of DCGAN [1]_.

    Each has batch normalisation, and LeakyReLU(0.2) or at the end tanh.

    Parameters
    ----------
    image : (int, int, int)
        Channels, height and width; sides are multiples of 16 for four convolutions.
    dimensions : int
        Of the code.
    channels : sequence of int
        Of the convolutions with stride 2.

    Raises
    ------
    SetsupError
        When a side is no such multiple.

    """

    def __init__(self, image: tuple[int, int, int], dimensions: int, channels: Sequence[int] = _CHANNELS) -> None:
        super().__init__()
        self.image, self.channels, self.dimensions = image, tuple(channels), dimensions
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(before, after, 4, 2, 1), nn.BatchNorm2d(after), nn.LeakyReLU(0.2))
            for before, after in pairwise((image[0], *channels))
        )
        last = nn.Conv2d(channels[-1], dimensions, halved_sides(image, len(channels)))
        self.code = nn.Sequential(last, nn.BatchNorm2d(dimensions), nn.Tanh())

    def forward(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Codes (n, dimensions), and the maps after each stage; images are (n, C, H, W) float in [0, 1]."""
        maps = []
        for stage in self.stages:
            images = stage(images)
            maps.append(images)
        return self.code(images).flatten(1), maps


class DrnetDecoder(nn.Module):
    """Images in (0, 1) from codes of content and pose, by the convolutions of an encoder in reverse [1]_.

    Parameters
    ----------
    content : DrnetEncoder
        Encoder of the content, of the same image.
    pose : int
        Dimensions of the pose's code.
    skips : bool
        Whether each convolution takes the map of the content's encoder that has its size, too.

    """

    def __init__(self, content: DrnetEncoder, pose: int, skips: bool = False) -> None:
        super().__init__()
        channels, self.skips = content.channels, skips
        smallest = halved_sides(content.image, len(channels))
        first = nn.ConvTranspose2d(content.dimensions + pose, channels[-1], smallest)
        self.first = nn.Sequential(first, nn.BatchNorm2d(channels[-1]), nn.LeakyReLU(0.2))
        *convolutions, last = (
            nn.ConvTranspose2d(before * (1 + skips), after, 4, 2, 1)
            for before, after in pairwise((*reversed(channels), content.image[0]))
        )
        stages = [nn.Sequential(layer, nn.BatchNorm2d(layer.out_channels), nn.LeakyReLU(0.2)) for layer in convolutions]
        self.stages = nn.ModuleList([*stages, nn.Sequential(last, nn.Sigmoid())])

    def forward(self, content: Tensor, maps: Sequence[Tensor], pose: Tensor) -> Tensor:
        """Images (n, C, H, W); `content` (n, …) and `maps` are what the encoder gave, `pose` is (n, …)."""
        decoded: Tensor = self.first(torch.cat([content, pose], 1)[:, :, None, None])
        for stage, skip in zip(self.stages, reversed(maps), strict=True):
            decoded = stage(torch.cat([decoded, skip], 1) if self.skips else decoded)
        return decoded


class SceneDiscriminator(nn.Module):
    """Logit of whether two codes of poses are of one scene: three dense layers with ReLU between them [1]_."""

    def __init__(self, pose: int, width: int = 100) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 * pose, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Logits (n,) float32 of pairs of codes, two of (n, pose)."""
        logits: Tensor = self.layers(torch.cat([first, second], 1))
        return logits[:, 0].float()


def initialise_drnet(network: nn.Module, generator: torch.Generator) -> None:
    """Initialise as published: weights N(0, 0.02²), those of batch normalisation N(1, 0.02²), biases 0 [1]_."""
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear, nn.BatchNorm2d)):
                layer.weight.normal_(float(isinstance(layer, nn.BatchNorm2d)), 0.02, generator=generator)
                if layer.bias is not None:
                    layer.bias.zero_()
