"""Encoders of DCoDR: a ResNet-50 that MoCo-v2 pretrained [1]_, [2]_, and a small one that fits two cores.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A contrastive objective for learning disentangled representations", ECCV 2022
   (arXiv 2203.11284), and its published code.
.. [2] X. Chen, H. Fan, R. Girshick, K. He, "Improved baselines with momentum contrastive learning", 2020
   (arXiv 2003.04297).

"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from setsup.errors import DataError, SetsupError, require_modules
from setsup.methods.networks.pretrained import check_weights, named_weights

if TYPE_CHECKING:
    from transformers import ResNetConfig

__all__ = ["ResNetEncoder", "contrast_head", "small_encoder"]

_HEADS = ("fc.", "classifier.")
_FIRST_OF_HEAD = "fc.0."
"""The layer of MoCo-v2's head that the encoder keeps."""


class ResNetEncoder(nn.Module):
    """ResNet-50, average over places, and two linear layers without a nonlinearity between them [1]_.

    Images are in [0, 1], without mean and standard deviation of ImageNet; grey ones are repeated to three channels.

    Parameters
    ----------
    size : int
        Dimensions of the code.
    config : transformers.ResNetConfig, optional
        Of the ResNet; that of a ResNet-50 by default.

    Raises
    ------
    SetsupError
        When transformers is not installed.

    Examples
    --------
    >>> with torch.device("meta"):
    ...     encoder = ResNetEncoder()
    >>> sum(weights.numel() for weights in encoder.parameters())
    27966656

    """

    def __init__(self, size: int = 128, config: "ResNetConfig | None" = None) -> None:
        super().__init__()
        require_modules("a ResNet encoder needs", "transformers")
        from transformers import ResNetConfig, ResNetModel

        config = ResNetConfig() if config is None else config
        width = list(config.hidden_sizes or ())[-1]
        self.backbone = ResNetModel(config)
        self.first = nn.Linear(width, width)
        self.last = nn.Linear(width, size)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Codes (n, size) float of images (n, 1 or 3, H, W) float in [0, 1], of any length."""
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        pooled: Tensor = self.backbone(images).pooler_output.flatten(1)
        code: Tensor = self.last(self.first(pooled))
        return code

    def load_moco(self, weights: Mapping[str, Any], source: Path | str = "the file") -> None:
        """Take the weights of MoCo-v2's query encoder and of the first layer of its head; the last layer stays.

        Parameters
        ----------
        weights : mapping of str to Tensor
            By the names of MoCo's checkpoints (``module.encoder_q.layer1.0.conv1.weight``), as
            :func:`~setsup.methods.networks.read_weights` reads their files, or by those of transformers.
        source : Path or str
            Where they are from, for errors.

        Raises
        ------
        DataError
            When they are not the weights of such a network, or have no head of two layers.

        """
        named = named_weights(weights, source)
        body = {name: weight for name, weight in named.items() if not name.startswith(_HEADS)}
        head = {
            name.removeprefix(_FIRST_OF_HEAD): weight
            for name, weight in named.items()
            if name.startswith(_FIRST_OF_HEAD)
        }
        if not head:
            raise DataError(
                f"{source} has no two-layer head (fc.0.weight), whose first layer initialises the encoder; pass the "
                "checkpoint of a MoCo-v2 run, for example moco_v2_800ep_pretrain.pth.tar"
            )
        self.backbone.load_state_dict(check_weights(source, body, self.backbone.state_dict()))
        self.first.load_state_dict(check_weights(source, head, self.first.state_dict()))


def contrast_head(size: int = 128, layers: int = 3) -> nn.Sequential:
    """Linear layers of one width, with leaky ReLUs of slope 0.01 between them; what is evaluated is their output."""
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(size, size), nn.LeakyReLU()]
    return nn.Sequential(*parts[:-1])


def small_encoder(
    image: tuple[int, int, int] = (3, 64, 64), size: int = 128, channels: Sequence[int] = (32, 64, 128, 256)
) -> nn.Sequential:
    """Convolutions of 4 × 4 with stride 2 and ReLU, which halve the sides, and one linear layer.

    It is not a network of the paper: ``-small`` presets have it in place of ResNet-50.

    Parameters
    ----------
    image : (channels, height, width)
        Size of images.
    size : int
        Dimensions of the code.
    channels : sequence of int
        Of each convolution.

    Returns
    -------
    nn.Sequential
        (n, channels, height, width) float → (n, size) float.

    Raises
    ------
    SetsupError
        When images are too small to be halved so often.

    Examples
    --------
    >>> encoder = small_encoder()
    >>> tuple(encoder(torch.zeros(2, 3, 64, 64)).shape), sum(weights.numel() for weights in encoder.parameters())
    ((2, 128), 1214560)

    """
    before, height, width = image
    if min(height, width) < 2 ** len(channels):
        raise SetsupError(
            f"images of {height} × {width} pixels cannot be halved {len(channels)} times; use larger images, or fewer "
            "channels=(…)"
        )
    layers: list[nn.Module] = []
    for after in channels:
        layers += [nn.Conv2d(before, after, 4, 2, 1), nn.ReLU()]
        before, height, width = after, height // 2, width // 2
    parts = OrderedDict(body=nn.Sequential(*layers), flat=nn.Flatten(), code=nn.Linear(before * height * width, size))
    encoder = nn.Sequential(parts)
    encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return encoder
