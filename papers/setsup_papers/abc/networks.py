"""Encoders of ABC, with the paper's layers [1]_.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240.

"""

from collections import OrderedDict

import torch
from torch import nn

from setsup.methods.networks.convolutional import convolutional
from setsup.methods.networks.images import OverImages
from setsup.methods.networks.initialisation import bare, glorot_
from setsup.methods.networks.layers import FullPrecision
from setsup_papers.abc.resnet_v2 import PixelRange, resnet50v2

__all__ = ["mnist_encoder", "pose_encoder", "shapes3d_encoder"]


def shapes3d_encoder(generator: torch.Generator) -> OverImages:
    """Encoder of ABC's experiments on Shapes3D: six convolutions and two dense layers; 2,654,688 parameters.

    ====================  ========  ======  ========
    layer                 channels  stride  side out
    ====================  ========  ======  ========
    convolution 3 × 3     32        1       62
    convolution 3 × 3     32        1       60
    convolution 3 × 3     64        2       29
    convolution 3 × 3     64        1       27
    convolution 3 × 3     128       1       25
    convolution 3 × 3     128       2       12
    dense, ReLU           128
    dense                 64
    ====================  ========  ======  ========

    Returns `OverImages` (..., 3, 64, 64) uint8, or float in [0, 1] → (..., 64) float32.
    """
    return convolutional((3, 64, 64), [(32, 1), (32, 1), (64, 2), (64, 1), (128, 1), (128, 2)], [128, 64], generator)


def mnist_encoder(generator: torch.Generator) -> OverImages:
    """Encoder of ABC's experiment on MNIST: five convolutions and two dense layers; 239,176 parameters.

    All convolutions are 3 × 3 with 32 channels, the third has stride 2: sides are 26, 24, 11, 9, 7. Then a dense layer
    of 128 with ReLU, and one of 8.

    Returns `OverImages` (..., 1, 28, 28) uint8, or float in [0, 1] → (..., 8) float32.
    """
    return convolutional((1, 28, 28), [(32, 1), (32, 1), (32, 2), (32, 1), (32, 1)], [128, 8], generator)


def pose_encoder(generator: torch.Generator, *, pixels: PixelRange = "unit", frozen_norm: bool = False) -> OverImages:
    """Encoder of ABC's experiments on pose: ResNet50-V2 up to conv4_block6, and a small head.

    ``layers.backbone`` gives (n, 1024, 4, 4), flattened the 16,384 numbers of the paper's baseline. ``layers.head`` is
    a 3 × 3 valid convolution to 256 channels with ReLU, an average over its 2 × 2 places, a dense layer of 128 with
    tanh and one of 64; 2,400,704 parameters. All weights are Glorot-uniform: the paper starts from a backbone trained
    on ImageNet, whose weights ``layers.backbone.load_keras`` takes. As in the authors' evaluation, images reach it in
    [0, 1]; `pixels` and `frozen_norm` are those of :class:`ResNet50V2`.

    Returns `OverImages` (..., 3, 128, 128) uint8, or float in [0, 1] → (..., 64) float32.
    """
    head = nn.Sequential(
        bare(nn.Conv2d, 1024, 256, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        FullPrecision(nn.Sequential(bare(nn.Linear, 256, 128), nn.Tanh(), bare(nn.Linear, 128, 64))),
    )
    layers = nn.Sequential(OrderedDict(backbone=resnet50v2(pixels=pixels, frozen_norm=frozen_norm), head=head))
    return glorot_(OverImages(3, 128, 128, layers), generator)
