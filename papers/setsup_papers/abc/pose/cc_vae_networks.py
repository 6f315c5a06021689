"""Networks of the cycle-consistent variational autoencoder for images of one size [1]_.

References
----------
.. [1] A. H. Jha, S. Anand, M. Singh, V. S. R. Veeravasarapu, "Disentangling factors of variation with cycle-consistent
   variational auto-encoders", ECCV 2018 (arXiv 1804.10469), and its public code, which has those for digits.

"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError
from setsup.methods.gaussians import Gaussian

__all__ = ["CycleDecoder", "CycleEncoder", "cycle_vae"]

_SLOPE = 0.2
_DEVIATION = 0.05
"""Standard deviation of initial weights."""


class CycleEncoder(nn.Module):
    """Convolutions of 5 × 5 with stride 2, instance normalisation and ReLU, and linear layers for both codes [1]_.

    Parameters
    ----------
    image : (int, int, int)
        Channels, height and width.
    unspecified, specified : int
        Dimensions of the codes of what varies within sets, and of what a set shares.
    channels : sequence of int
        Of the convolutions.
    running_statistics : bool
        Whether normalisation has running statistics, which it uses in evaluation mode.

    Raises
    ------
    SetsupError
        When images are too small for the number of convolutions.

    Examples
    --------
    >>> encoder = CycleEncoder((1, 28, 28), 16, 16)
    >>> sum(weights.numel() for weights in encoder.parameters())
    76848

    """

    def __init__(
        self,
        image: tuple[int, int, int],
        unspecified: int,
        specified: int,
        channels: Sequence[int] = (16, 32, 64),
        *,
        running_statistics: bool = True,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        sides = image[1:]
        for before, after in pairwise((image[0], *channels)):
            sides = ((sides[0] - 3) // 2 + 1, (sides[1] - 3) // 2 + 1)
            norm = nn.InstanceNorm2d(after, track_running_stats=running_statistics)
            layers += [nn.Conv2d(before, after, 5, 2, 1), norm, nn.ReLU()]
        # one value alone cannot be normalised
        if not channels or min(sides) < 1 or sides[0] * sides[1] < 2:
            raise SetsupError(
                f"images of {image[1]} × {image[2]} pixels are too small for {len(channels)} convolutions of 5 × 5 "
                "with stride 2; use larger images, or fewer --method.channels"
            )
        self.image, self.channels, self.sides = image, tuple(channels), sides
        self.features = channels[-1] * sides[0] * sides[1]
        self.layers = nn.Sequential(*layers, nn.Flatten())
        self.unspecified_mean = nn.Linear(self.features, unspecified)
        self.unspecified_log_variance = nn.Linear(self.features, unspecified)
        self.specified = nn.Linear(self.features, specified)

    def forward(self, images: Tensor) -> tuple[Gaussian, Tensor]:
        """Posterior of the unspecified code, and the specified one; (n, C, H, W) float in [0, 1] → float32."""
        features = self.layers(images)
        mean, log_variance = self.unspecified_mean(features), self.unspecified_log_variance(features)
        return Gaussian(mean.float(), log_variance.float()), self.specified(features).float()


class CycleDecoder(nn.Module):
    """A dense layer for each code, and transposed convolutions of 4 × 4 with stride 2 to the size of an encoder [1]_.

    Each but the last has instance normalisation, and all LeakyReLU(0.2), or at the end the logistic function.

    Parameters
    ----------
    encoder : CycleEncoder
        Whose images and channels it has.
    running_statistics : bool
        As of the encoder.

    Raises
    ------
    SetsupError
        When such convolutions do not lead to images of that size.

    Examples
    --------
    >>> decoder = CycleDecoder(CycleEncoder((1, 28, 28), 16, 16))
    >>> sum(weights.numel() for weights in decoder.parameters())
    82737

    """

    def __init__(self, encoder: CycleEncoder, *, running_statistics: bool = True) -> None:
        super().__init__()
        unspecified, specified = encoder.unspecified_mean.out_features, encoder.specified.out_features
        self.sides = encoder.sides
        self.unspecified = nn.Linear(unspecified, encoder.features)
        self.specified = nn.Linear(specified, encoder.features)
        layers: list[nn.Module] = []
        widths = (2 * encoder.channels[-1], *reversed(encoder.channels[:-1]), encoder.image[0])
        paddings = [
            _paddings(side, size, len(widths) - 1) for side, size in zip(self.sides, encoder.image[1:], strict=True)
        ]
        for number, (before, after) in enumerate(pairwise(widths)):
            padding = (paddings[0][number], paddings[1][number])
            layers.append(nn.ConvTranspose2d(before, after, 4, 2, padding))
            if number < len(widths) - 2:
                norm = nn.InstanceNorm2d(after, track_running_stats=running_statistics)
                layers += [norm, nn.LeakyReLU(_SLOPE)]
        self.layers = nn.Sequential(*layers, nn.Sigmoid())

    def forward(self, unspecified: Tensor, specified: Tensor) -> Tensor:
        """Images (n, C, H, W) float32 in [0, 1] of codes (n, unspecified) and (n, specified)."""
        codes = torch.cat([self.unspecified(unspecified), self.specified(specified)], 1)
        maps = nn.functional.leaky_relu(codes, _SLOPE).reshape(len(codes), -1, *self.sides)
        images: Tensor = self.layers(maps).float()
        return images


def cycle_vae(
    image: tuple[int, int, int],
    unspecified: int,
    specified: int,
    channels: Sequence[int] = (16, 32, 64),
    *,
    running_statistics: bool = True,
    generator: torch.Generator,
) -> tuple[CycleEncoder, CycleDecoder]:
    """Encoder and decoder with the published initial weights.

    Those of convolutions and dense layers are normal with a standard deviation of 0.05, and their biases 0; transposed
    convolutions have torch's own, as they have there.
    """
    encoder = CycleEncoder(image, unspecified, specified, channels, running_statistics=running_statistics)
    decoder = CycleDecoder(encoder, running_statistics=running_statistics)
    with torch.no_grad():
        for network in (encoder, decoder):
            for layer in network.modules():
                if isinstance(layer, nn.Conv2d | nn.Linear):
                    layer.weight.normal_(0, _DEVIATION, generator=generator)
                    torch.nn.init.zeros_(layer.bias)  # type: ignore[arg-type]  # all have one
    return encoder, decoder


def _paddings(side: int, size: int, count: int) -> list[int]:
    """Padding, 0 or 1, of each transposed convolution, so that `side` becomes `size`.

    Each makes 2n of n pixels, and 2 more without padding: what is missing from side · 2^count, halved, is a binary
    number whose digits say where there is none.
    """
    missing, odd = divmod(size - side * 2**count, 2)
    if odd or not 0 <= missing < 2**count:
        raise SetsupError(
            f"transposed convolutions of 4 × 4 with stride 2 cannot upsample {side} to {size} pixels; resize the "
            "images to even sides, such as 28 or 64, or change --method.channels"
        )
    return [1 - (missing >> bit & 1) for bit in reversed(range(count))]
