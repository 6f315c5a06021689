"""Networks of Sanchez et al.: encoders with maps, statistics networks of maps and codes, and a discriminator [1]_.

References
----------
.. [1] E. H. Sanchez, M. Serrurier, M. Ortner, "Learning disentangled representations via mutual information
   estimation", ECCV 2020 (arXiv 1912.03915), and a public reimplementation,
   github.com/MehdiZouitine/Learning-Disentangled-Representations-via-Mutual-Information-Estimation.

"""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError

__all__ = ["MapEncoder", "StatisticsNetworks", "discriminator"]

_KERNEL = 4


class MapEncoder(nn.Module):
    """Convolutions of 4 × 4 without padding, the first with stride 1 and others with 2, and a linear layer [1]_.

    Channels double from one to the next. LeakyReLU(0.01) follows the first, batch normalisation the others, and
    LeakyReLU the last of them: there is none in between, as in the public code.

    Parameters
    ----------
    image : (int, int, int)
        Channels, height and width.
    size : int
        Dimensions of the code.
    filters : int
        Channels of the first convolution.
    convolutions : int
        How many; 3 for digits of 28 × 28 pixels.

    Raises
    ------
    SetsupError
        When images are too small for the number of convolutions.

    Examples
    --------
    >>> encoder = MapEncoder((3, 28, 28), 64)
    >>> encoder.maps, sum(weights.numel() for weights in encoder.parameters())
    ((256, 4, 4), 921856)

    """

    def __init__(self, image: tuple[int, int, int], size: int, filters: int = 64, convolutions: int = 3) -> None:
        super().__init__()
        channels = [filters * 2**number for number in range(convolutions)]
        sides = image[1:]
        layers: list[nn.Module] = []
        for number, (before, after) in enumerate(pairwise((image[0], *channels))):
            stride = 1 if number == 0 else 2
            sides = ((sides[0] - _KERNEL) // stride + 1, (sides[1] - _KERNEL) // stride + 1)
            layers.append(nn.Conv2d(before, after, _KERNEL, stride))
            layers.append(nn.BatchNorm2d(after) if number else nn.LeakyReLU())
        if convolutions < 1 or min(sides) < 1:
            raise SetsupError(
                f"images of {image[1]} × {image[2]} pixels are too small for {convolutions} convolutions of 4 × 4, all "
                "but the first with stride 2; use larger images, or fewer --method.convolutions"
            )
        if convolutions > 1:
            layers.append(nn.LeakyReLU())
        self.image = image
        self.layers = nn.Sequential(*layers)
        self.maps: tuple[int, int, int] = (channels[-1], *sides)
        self.code = nn.Linear(channels[-1] * sides[0] * sides[1], size)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Codes (n, size) and maps (n, *maps) of images (n, C, H, W) float in [0, 1]."""
        maps: Tensor = self.layers(images)
        code: Tensor = self.code(maps.flatten(1))
        return code, maps


class StatisticsNetworks(nn.Module):
    """Two networks that tell maps and codes of one image from those of two: of whole maps, and place by place [1]_.

    Both have two hidden layers of one width with ReLU; the one place by place sees the code at each place.

    Parameters
    ----------
    maps : (int, int, int)
        Channels, height and width.
    size : int
        Dimensions of the code.
    width : int
        Of hidden layers.

    Examples
    --------
    >>> networks = StatisticsNetworks((256, 4, 4), 64)
    >>> [sum(weights.numel() for weights in part.parameters()) for part in (networks.whole, networks.places)]
    [2393601, 427521]

    """

    def __init__(self, maps: tuple[int, int, int], size: int, width: int = 512) -> None:
        super().__init__()
        self.whole = nn.Sequential(
            nn.Linear(math.prod(maps) + size, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )
        self.places = nn.Sequential(
            nn.Conv2d(maps[0] + size, width, 1),
            nn.ReLU(),
            nn.Conv2d(width, width, 1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 1),
        )

    def forward(self, maps: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Statistics (n, 1) of whole maps, and (n, 1, height, width) of places, float32."""
        whole: Tensor = self.whole(torch.cat([maps.flatten(1), codes], 1))
        spread = codes[:, :, None, None].expand(-1, -1, *maps.shape[2:])
        places: Tensor = self.places(torch.cat([maps, spread], 1))
        return whole.float(), places.float()


def discriminator(size: int, widths: tuple[int, int] = (1000, 200)) -> nn.Sequential:
    """Dense layers with ReLU from codes of both kinds, (n, size) float, to a logit (n, 1) [1]_."""
    first, second = widths
    return nn.Sequential(nn.Linear(size, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, 1))
