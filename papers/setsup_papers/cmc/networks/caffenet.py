"""CaffeNet for views of videos: frames, and fields of motion [1]_, [2]_.

References
----------
.. [1] Y. Jia et al., "Caffe: convolutional architecture for fast feature embedding", 2014 (arXiv 1408.5093).
.. [2] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849).

"""

from typing import Literal

from torch import nn

from setsup.methods.networks.layers import flat_size
from setsup_papers.cmc.networks.views import ViewEncoder, scaled

__all__ = ["caffenet_view"]


def caffenet_view(
    image: tuple[int, int, int],
    features: int = 128,
    width: float = 1.0,
    norm: Literal["batch", "local"] = "batch",
    dropout: float = 0.5,
) -> ViewEncoder:
    """CaffeNet up to fc6, and a dense layer to the features: two pooled stages, three convolutions, one dense layer.

    Convolutions 2, 4 and 5 are in two groups. With ``norm="local"`` responses of the first two stages are normalised
    across channels, after their pools, as in [1]_; with ``"batch"`` all convolutions and fc6 are batch-normalised.
    Sizes of pooled maps are rounded up, as in [1]_, so that fc6 reads 6 × 6 places of 224 × 224 or 227 × 227 pixels.

    `image` (channels, height, width), 224 × 224 in the paper and at least 55 × 55; `width` multiplies all channels;
    returns `ViewEncoder` with ``conv1`` … ``conv5`` and ``fc6``.
    """
    sizes = [image[0], *(2 * scaled(size // 2, width) for size in (96, 256, 384, 384, 256))]
    shapes = [(11, 4, 0, 1), (5, 1, 2, 2), (3, 1, 1, 1), (3, 1, 1, 2), (3, 1, 1, 2)]  # kernel, stride, padding, groups
    batch = norm == "batch"
    stages: dict[str, nn.Module] = {}
    for at, (kernel, stride, padding, groups) in enumerate(shapes):
        before, after = sizes[at], sizes[at + 1]
        layers: list[nn.Module] = [nn.Conv2d(before, after, kernel, stride, padding, groups=groups, bias=not batch)]
        layers += [nn.BatchNorm2d(after)] if batch else []
        layers += [nn.ReLU(inplace=True)]
        layers += [nn.MaxPool2d(3, 2, ceil_mode=True)] if at in (0, 1, 4) else []  # as Caffe rounds
        layers += [nn.LocalResponseNorm(5)] if at in (0, 1) and not batch else []
        stages[f"conv{at + 1}"] = nn.Sequential(*layers)
    hidden = scaled(4096, width)
    last: list[nn.Module] = [nn.Flatten(), nn.Linear(flat_size(stages, image), hidden)]
    last += [nn.BatchNorm1d(hidden)] if batch else []
    stages["fc6"] = nn.Sequential(*last, nn.ReLU(inplace=True), nn.Dropout(dropout))
    return ViewEncoder(stages, nn.Linear(hidden, features), image)
