"""The encoder of crops of rooms, and a decoder that mirrors it: segmentation, and prediction of another view [1]_.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), table 9.
.. [2] O. Ronneberger, P. Fischer, T. Brox, "U-Net: convolutional networks for biomedical image segmentation", MICCAI
   2015.

"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.methods.networks.layers import convolution
from setsup_papers.cmc.networks.views import ViewEncoder, scaled

__all__ = ["SKIPS", "ViewDecoder", "nyu_view"]

SKIPS = ("conv1", "conv2", "conv3", "conv4", "conv5")
"""Stages whose maps the decoder reads beside the last one."""

_WIDTHS = (64, 128, 256, 256, 512, 512)
_STRIDE = 32
"""Pixels per place of the last map of conv5."""


class _Features(nn.Module):
    """A 1 × 1 convolution, averaged over places: a crop has one place, a larger image several."""

    def __init__(self, before: int, features: int) -> None:
        super().__init__()
        self.layer = nn.Conv2d(before, features, 1)

    def forward(self, maps: Tensor) -> Tensor:
        means: Tensor = self.layer(maps).mean((2, 3))
        return means


def nyu_view(image: tuple[int, int, int], features: int = 256, width: float = 1.0) -> ViewEncoder:
    """The encoder for NYU: seven convolutions, of which conv6 covers what is left of a crop, 4 × 4 of 128 × 128 pixels.

    Batch normalisation and ReLU follow all but the last, the features.

    `image` (channels, height, width), sides multiples of 32, such as 128 × 128; larger images, whose sides are too,
    have several places, whose features are averaged; `width` multiplies all channels; returns `ViewEncoder` with
    ``conv1``, ``pool1``, ``conv2`` … ``conv6``.
    """
    channels, height, width_of_image = image
    if height % _STRIDE or width_of_image % _STRIDE or not height or not width_of_image:
        raise SetsupError(
            f"the height and width of crops must be positive multiples of {_STRIDE} pixels, not {height} × "
            f"{width_of_image}; pass another crop size, such as --crop-size 128"
        )
    a, b, c, d, e, f = (scaled(size, width) for size in _WIDTHS)
    stages = {
        "conv1": convolution(channels, a, 8, 2, 3),
        "pool1": nn.MaxPool2d(2),
        "conv2": convolution(a, b, 4, 2, 1),
        "conv3": convolution(b, c, 4, 2, 1),
        "conv4": convolution(c, d, 3, 1, 1),
        "conv5": convolution(d, e, 4, 2, 1),
        "conv6": convolution(e, f, (height // _STRIDE, width_of_image // _STRIDE), 1, 0),
    }
    return ViewEncoder(stages, _Features(f, features), image)


class ViewDecoder(nn.Module):
    """Mirrors :func:`nyu_view`: from its last map back to pixels, a transposed layer for each of its layers.

    With `skips`, every layer also reads what the encoder had at that resolution, as a U-Net does [2]_. Neither the
    paper nor its code say what the decoder is; batch normalisation and ReLU follow all layers but the last.

    Parameters
    ----------
    encoder : ViewEncoder
        From :func:`nyu_view`; it is read for its sizes, and is not part of the decoder.
    channels : int
        Of the result: classes, or channels of a view.
    skips : bool
        Whether maps of the stages :data:`SKIPS` are read.

    Examples
    --------
    >>> import torch
    >>> encoder = nyu_view((1, 128, 128))
    >>> decoder = ViewDecoder(encoder, channels=13)
    >>> layers = encoder.layers(torch.zeros(2, 1, 128, 128), decoder.reads)
    >>> tuple(decoder(layers).shape)
    (2, 13, 128, 128)

    """

    def __init__(self, encoder: ViewEncoder, channels: int, skips: bool = True) -> None:
        super().__init__()
        try:
            mirrored = [encoder.stages[name][0] for name in (*SKIPS, "conv6")]  # type: ignore[index]
        except (KeyError, TypeError):
            raise SetsupError(
                "the decoder mirrors the encoder for rooms, but this encoder has the stages "
                f"{', '.join(encoder.names)}; build the encoder with nyu_view, or train with --method.encoder nyu"
            ) from None
        self.skips = skips
        a, b, c, d, e, f = (layer.out_channels for layer in mirrored)
        more = 2 if skips else 1
        side = mirrored[-1].kernel_size
        self.up6 = _up(f, e, side, 1, 0)
        self.up5 = _up(more * e, d, 4, 2, 1)
        self.up4 = convolution(more * d, c, 3, 1, 1)
        self.up3 = _up(more * c, b, 4, 2, 1)
        self.up2 = _up(more * b, a, 4, 2, 1)
        self.up1 = nn.ConvTranspose2d(more * a, channels, 8, 2, 3)

    @property
    def reads(self) -> tuple[str, ...]:
        """Stages of the encoder that it reads."""
        return (*SKIPS, "conv6") if self.skips else ("conv6",)

    def forward(self, layers: Mapping[str, Tensor]) -> Tensor:
        """Values (n, channels, H, W) of maps of the encoder's stages, by name, for images (n, C, H, W)."""
        values = layers["conv6"]
        for name, up in (("conv5", self.up6), ("conv4", self.up5), ("conv3", self.up4), ("conv2", self.up3)):
            values = self._joined(up(values), layers, name)
        values = functional.interpolate(self.up2(values), scale_factor=2, mode="nearest")
        result: Tensor = self.up1(self._joined(values, layers, "conv1"))
        return result

    def _joined(self, maps: Tensor, layers: Mapping[str, Tensor], name: str) -> Tensor:
        return torch.cat([maps, layers[name]], 1) if self.skips else maps


def _up(before: int, after: int, kernel: int | tuple[int, int], stride: int, padding: int) -> nn.Sequential:
    """A transposed convolution without bias, batch normalisation and ReLU."""
    layer = nn.ConvTranspose2d(before, after, kernel, stride, padding, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(after), nn.ReLU(inplace=True))
