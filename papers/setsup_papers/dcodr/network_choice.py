"""Networks that the settings of several methods name: encoders, and distances of images."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import nn

__all__ = ["image_distance", "image_encoder"]


def image_encoder(
    kind: Literal["resnet50", "small"], image: tuple[int, int, int], size: int, channels: tuple[int, ...]
) -> "nn.Module":
    """ResNet-50 with two linear layers, or the small encoder, which has these channels."""
    from setsup_papers.dcodr.networks.domain_encoders import ResNetEncoder, small_encoder

    return ResNetEncoder(size) if kind == "resnet50" else small_encoder(image, size, channels)


def image_distance(kind: Literal["vgg16", "pyramid"], vgg_weights: str) -> "nn.Module":
    """L1 with features of VGG16, or with a Laplacian pyramid."""
    from setsup_papers.dcodr.networks.perceptual import PerceptualDistance, PyramidDistance

    return PerceptualDistance(vgg_weights) if kind == "vgg16" else PyramidDistance()
