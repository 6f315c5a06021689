"""Settings of the pose methods of ABC's tables 1 and 2: ABC, pretrained features, and spherical regression."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

    from setsup.factors import FactorTable
    from setsup.methods.abc import ABC
    from setsup.methods.networks import OverImages
    from setsup.methods.pose import PretrainedFeatures, SphericalRegression

__all__ = ["PoseABCSettings", "PoseFeaturesSettings", "SphericalRegressionSettings"]

_SIZE = 64
"""Dimensions of the encoders' embeddings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseABCSettings:
    """Settings of :class:`setsup.methods.abc.ABC` for poses, and of its encoder; defaults are those of look-up.

    Table 1's row "TCC loss" is the objective ``correspondence`` on single images without augmentation, and "double
    augmentation only" is ``augmentation``. Keras' weights of ResNet50-V2 are an initial run: ``--initial-run
    resnet50v2-imagenet``, or its file; without one, all weights are RANDOM.

    Attributes
    ----------
    encoder : {"resnet50v2", "small"}
        The paper's, for images of 128 × 128 pixels, or that of its experiments on Shapes3D, for 64 × 64.
    pixels : {"unit", "symmetric"}
        Range of the pixels that ResNet50-V2 gets: [0, 1] as in the published evaluation, or [−1, 1], on which Keras'
        weights were trained. [unclear]
    frozen_norm : bool
        Whether its batch norms use their running statistics in training too. [unclear]
    objective : {"double", "correspondence", "augmentation"}
        Loss of pairs of sets whose images come in two copies, of pairs of sets of single images, or of two copies of
        each image alone.
    neighbours : {"second", "first"}
        With ``double``, the copy that soft neighbours are made of. [unclear]
    similarity : {"cosine", "l2sq", "l2", "l1", "linf"}
        Of embeddings.
    temperature : float
        τ > 0, in the unit of the similarity.
    rate : float
        Learning rate of Adam.
    halve_every : int, optional
        Steps after which it is halved.

    """

    encoder: Literal["resnet50v2", "small"] = "resnet50v2"
    pixels: Literal["unit", "symmetric"] = "unit"
    frozen_norm: bool = False
    objective: Literal["double", "correspondence", "augmentation"] = "double"
    neighbours: Literal["second", "first"] = "second"
    similarity: Literal["cosine", "l2sq", "l2", "l1", "linf"] = "cosine"
    temperature: float = 0.1
    rate: float = 1e-4
    halve_every: int | None = 10_000

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "ABC":
        """Build the method of a run."""
        return _abc(self, generator)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseFeaturesSettings:
    """Settings of :class:`setsup.methods.pose.PretrainedFeatures`: ResNet50-V2 up to conv4_block6, flattened.

    At 128 × 128 pixels these are 16,384 numbers. Keras' weights are an initial run, ``--initial-run
    resnet50v2-imagenet``; without one, they are RANDOM. One step stores them.

    Attributes
    ----------
    image : (int, int)
        Height and width of images, multiples of 32.
    pixels : {"symmetric", "unit"}
        Range of the pixels that the network gets: [−1, 1] as it was trained, or [0, 1]. [unclear]

    """

    image: tuple[int, int] = (128, 128)
    pixels: Literal["symmetric", "unit"] = "symmetric"

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "PretrainedFeatures":
        """Build the method of a run."""
        from torch import nn

        from setsup.methods.networks import OverImages, glorot_, resnet50v2
        from setsup.methods.pose import PretrainedFeatures

        layers = nn.Sequential(resnet50v2(pixels=self.pixels, frozen_norm=True), nn.Flatten())
        return PretrainedFeatures(glorot_(OverImages(3, *self.image, layers), generator))


@dataclass(frozen=True, slots=True, kw_only=True)
class SphericalRegressionSettings:
    """Settings of :class:`setsup.methods.pose.SphericalRegression` and of its encoder, as in table 2.

    Attributes
    ----------
    encoder, pixels, frozen_norm
        As of :class:`PoseABCSettings`.
    angles : tuple of str
        Factors that are regressed: ``azimuth``, ``elevation``, and ``theta`` where the data have it; without, it is
        predicted to be 0. The presets of table 2 have all three, as the paper; of renderings theta is 0.
    contrast : float
        Weight of ABC's loss, 1 in the rows with ABC; 0 leaves it out. [unclear]
    objective, neighbours, similarity, temperature
        Of ABC's loss, as of :class:`PoseABCSettings`.
    magnitude : {"cosine", "log"}
        Loss of magnitudes: of ABC's text, or of the published code of spherical regression. [unclear]
    magnitude_weight : float
        Its weight beside the cross-entropy of quadrants; 4 in that code. [unclear]
    rate : float
        Learning rate of Adam.
    halve_every : int, optional
        Steps after which it is halved.

    """

    encoder: Literal["resnet50v2", "small"] = "resnet50v2"
    pixels: Literal["unit", "symmetric"] = "unit"
    frozen_norm: bool = False
    angles: tuple[str, ...] = ("azimuth", "elevation")
    contrast: float = 0.0
    objective: Literal["double", "correspondence", "augmentation"] = "double"
    neighbours: Literal["second", "first"] = "second"
    similarity: Literal["cosine", "l2sq", "l2", "l1", "linf"] = "cosine"
    temperature: float = 0.05
    magnitude: Literal["cosine", "log"] = "cosine"
    magnitude_weight: float = 1.0
    rate: float = 1e-4
    halve_every: int | None = 20_000

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "SphericalRegression":
        """Build the method of a run."""
        from setsup.methods.networks import glorot_
        from setsup.methods.pose import AngleTargets, SphericalHead, SphericalRegression

        targets = AngleTargets(table, self.angles)
        abc = _abc(self, generator)
        return SphericalRegression(
            abc,
            glorot_(SphericalHead(_SIZE, len(self.angles)), generator),
            targets,
            contrast=self.contrast,
            magnitude=self.magnitude,
            magnitude_weight=self.magnitude_weight,
        )


def _abc(settings: PoseABCSettings | SphericalRegressionSettings, generator: "torch.Generator") -> "ABC":
    from setsup.methods.abc import ABC

    return ABC(
        _encoder(settings, generator),
        similarity=settings.similarity,
        temperature=settings.temperature,
        objective=settings.objective,
        neighbours=settings.neighbours,
        rate=settings.rate,
        halve_every=settings.halve_every,
    )


def _encoder(settings: Any, generator: "torch.Generator") -> "OverImages":
    from setsup.methods.networks import pose_encoder, shapes3d_encoder

    if settings.encoder == "small":
        return shapes3d_encoder(generator)
    return pose_encoder(generator, pixels=settings.pixels, frozen_norm=settings.frozen_norm)
