"""Settings of the pose methods of ABC's tables 1 and 2: ABC, pretrained features, and spherical regression."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from setsup.experiments.configs import import_method
from setsup_papers.abc.settings import ABCObjective

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

    from setsup.factors import FactorTable
    from setsup.methods.networks import OverImages
    from setsup_papers.abc.pose.features import PretrainedFeatures

__all__ = ["PoseABCSettings", "PoseEncoderSettings", "PoseFeaturesSettings", "SphericalRegressionSettings"]

_SIZE = 64
"""Dimensions of the encoders' embeddings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseEncoderSettings(ABCObjective):
    """Settings of ABC's loss on poses, and of the encoder of images of objects.

    Keras' weights of ResNet50-V2 are an initial run: ``--initial-run resnet50v2-imagenet``, or its file; without one,
    all weights are RANDOM.

    Attributes
    ----------
    encoder : {"resnet50v2", "small"}
        The paper's encoder, for images of 128 × 128 pixels, or the encoder of its experiments on Shapes3D, for 64 × 64.
    pixels : {"unit", "symmetric"}
        Range of the input pixels of ResNet50-V2: [0, 1] as in the published evaluation, or [−1, 1], with which Keras'
        weights were trained. [unclear]
    frozen_norm : bool
        Whether the batch norms of ResNet50-V2 also use their running statistics in training. [unclear]
    neighbours : {"second", "first"}
        With ``double``, the copy whose embeddings are averaged into soft neighbours. [unclear]

    """

    encoder: Literal["resnet50v2", "small"] = "resnet50v2"
    pixels: Literal["unit", "symmetric"] = "unit"
    frozen_norm: bool = False
    neighbours: Literal["second", "first"] = "second"
    objective: Literal["correspondence", "double", "augmentation"] = "double"
    similarity: Literal["l2sq", "l2", "l1", "linf", "cosine"] = "cosine"
    rate: float = 1e-4

    def build_encoder(self, generator: "torch.Generator") -> "OverImages":
        """Build the encoder of a run."""
        from setsup_papers.abc.networks import pose_encoder, shapes3d_encoder

        if self.encoder == "small":
            return shapes3d_encoder(generator)
        return pose_encoder(generator, pixels=self.pixels, frozen_norm=self.frozen_norm)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseABCSettings(PoseEncoderSettings):
    """Settings of :class:`setsup_papers.abc.ABC` for poses; defaults are those of look-up.

    Table 1's row "TCC loss" is the objective ``correspondence`` on single images without augmentation, and "double
    augmentation only" is ``augmentation``.
    """

    temperature: float = 0.1
    halve_every: int | None = 10_000

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        method = import_method("setsup_papers.abc.method:ABC")
        return method(self, self.build_encoder(generator))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseFeaturesSettings:
    """Settings of :class:`setsup_papers.abc.pose.PretrainedFeatures`: ResNet50-V2 up to conv4_block6, flattened.

    At 128 × 128 pixels these are 16,384 numbers. Keras' weights are an initial run, ``--initial-run
    resnet50v2-imagenet``; without one, they are RANDOM. One step stores them.

    Attributes
    ----------
    image : (int, int)
        Height and width of images, multiples of 32.
    pixels : {"symmetric", "unit"}
        Range of the network's input: [−1, 1], as in its training, or [0, 1]. [unclear]

    """

    image: tuple[int, int] = (128, 128)
    pixels: Literal["symmetric", "unit"] = "symmetric"

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "PretrainedFeatures":
        """Build the method of a run."""
        from torch import nn

        from setsup.methods.networks import OverImages, glorot_
        from setsup_papers.abc.pose.features import PretrainedFeatures
        from setsup_papers.abc.resnet_v2 import resnet50v2

        layers = nn.Sequential(resnet50v2(pixels=self.pixels, frozen_norm=True), nn.Flatten())
        return PretrainedFeatures(glorot_(OverImages(3, *self.image, layers), generator))


@dataclass(frozen=True, slots=True, kw_only=True)
class SphericalRegressionSettings(PoseEncoderSettings):
    """Settings of :class:`setsup_papers.abc.pose.SphericalRegression` and of its encoder, as in table 2.

    Attributes
    ----------
    angles : tuple of str
        Factors to predict: ``azimuth``, ``elevation``, and ``theta`` if the data have it; otherwise theta is predicted
        to be 0. The presets of table 2 use all three, as in the paper; theta is 0 for renderings.
    contrast : float
        Weight of ABC's loss, 1 in the rows with ABC; 0 disables it. [unclear]
    magnitude : {"cosine", "log"}
        Loss of the magnitudes: that of ABC's text, or that of the published code of spherical regression. [unclear]
    magnitude_weight : float
        Weight of the magnitudes' loss relative to the cross-entropy of quadrants; 4 in that code. [unclear]

    """

    angles: tuple[str, ...] = ("azimuth", "elevation")
    contrast: float = 0.0
    temperature: float = 0.05
    magnitude: Literal["cosine", "log"] = "cosine"
    magnitude_weight: float = 1.0
    halve_every: int | None = 20_000

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        from setsup.methods.networks import glorot_
        from setsup_papers.abc.pose.angles import AngleTargets
        from setsup_papers.abc.pose.spherical import SphericalHead

        targets, encoder = AngleTargets(table, self.angles), self.build_encoder(generator)
        head = glorot_(SphericalHead(_SIZE, len(self.angles)), generator)
        method = import_method("setsup_papers.abc.pose.spherical_regression:SphericalRegression")
        return method(self, encoder, head, targets)
