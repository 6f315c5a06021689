"""Settings of DCoDR and of its sampler, and those that methods on domains share."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from setsup.experiments.configs import ImageSettings, import_method
from setsup.samplers import DomainSampler
from setsup_papers.dcodr.network_choice import image_distance, image_encoder

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule
    from torch import nn

    from setsup.datasets import Dataset
    from setsup.factors import FactorTable
    from setsup.methods.groups import GroupCodes
    from setsup_papers.dcodr.networks.generator import AdaINGenerator

__all__ = ["DCoDRSettings", "DomainBatches", "DomainSettings", "ReconstructionSettings"]

_SMOKE = 4
"""Domains, and images of each, of a batch that is only tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainBatches:
    """Several domains per step, and several images of each; see :class:`setsup.DomainSampler`.

    Attributes
    ----------
    domain : tuple of str
        Factors whose combinations are the domains.
    sets : int
        Domains per step; all of them if there are fewer.
    size : int
        Images per domain.
    domains : {"independent", "balanced"}
        Whether domains and their images are drawn independently in each step, or in rounds in which each domain and
        each of its images is drawn equally often. The published code draws domains independently, and each domain's
        images in passes.
    small : {"short", "drop", "replace", "error"}
        What to do with domains that have fewer than `size` images.
    where : str, optional
        Expression over the factors that drawn rows satisfy.

    """

    domain: tuple[str, ...] = field(metadata={"option": "domain"})
    sets: int = 4
    size: int = 32
    domains: Literal["independent", "balanced"] = "independent"
    small: Literal["short", "drop", "replace", "error"] = "short"
    where: str | None = None

    def build(self, dataset: "Dataset", seed: int) -> DomainSampler:
        """Build the sampler of a run."""
        options: dict[str, Any] = {"on_small_group": self.small, "where": self.where, "seed": seed}
        of_all = DomainSampler(dataset.factors, self.domain, self.sets, self.size, domains="all", **options)
        if self.domains == "balanced":
            return of_all
        return DomainSampler(dataset.factors, self.domain, of_all.sets, self.size, domains=self.domains, **options)

    def shrunk(self) -> "DomainBatches":
        """At most four domains of four images."""
        return replace(self, sets=min(self.sets, _SMOKE), size=min(self.size, _SMOKE))


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSettings(ImageSettings):
    """Settings of a method that knows the domains of images.

    Attributes
    ----------
    domain : tuple of str
        Factors whose combinations are the domains.

    """

    domain: tuple[str, ...] = field(metadata={"option": "domain", "factors": True})

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of images; 3 × 64 × 64 where the data have not been seen."""
        return self.image or (3, 64, 64)

    def domains(self, table: "FactorTable") -> "GroupCodes":
        """Domains of the training data."""
        from setsup.methods.groups import GroupCodes

        return GroupCodes(table, self.domain, "domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionSettings(DomainSettings):
    """Settings of a generator of images from codes and domains, and of the distance that trains it.

    With a generator, the sides of images must be multiples of 16.

    Attributes
    ----------
    generator_width : int
        Channels of the generator's maps.
    style : int
        Dimensions of a domain's learned code.
    perceptual : {"vgg16", "pyramid"}
        Distance of images: L1 with features of VGG16, or with a Laplacian pyramid of three levels.
    vgg_weights : str
        torchvision's file of VGG16, or ``vgg16-imagenet``, which is downloaded if it is missing; ``random`` for random
        weights, to test a run.

    """

    generator_width: int = 256
    style: int = 256
    perceptual: Literal["vgg16", "pyramid"] = "vgg16"
    vgg_weights: str = "vgg16-imagenet"

    def build_generator(self, code: int) -> "AdaINGenerator":
        """Build the generator for codes of images of this size."""
        from setsup_papers.dcodr.networks.generator import AdaINGenerator

        return AdaINGenerator(self.image_shape, code, self.style, self.generator_width)

    def build_distance(self) -> "nn.Module":
        """Build the distance of images."""
        return image_distance(self.perceptual, self.vgg_weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class DCoDRSettings(ReconstructionSettings):
    """Settings of :class:`setsup_papers.dcodr.DCoDR` and of its networks.

    Attributes
    ----------
    encoder : {"resnet50", "small"}
        The paper's encoder, or four convolutions with stride 2. To start from MoCo's weights, pass ``--initial-run
        moco_v2_800ep_pretrain.pth.tar``, or the name ``resnet50-mocov2-800``.
    channels : tuple of int
        Channels of the small encoder's convolutions.
    dimensions : int
        Dimensions of the code.
    head : bool
        Whether three linear layers follow: in the text for SmallNORB and Shapes3D, in the published code only for
        SmallNORB with reconstruction.
    temperature : float
        Temperature τ.
    negatives : {"domain", "batch"}
        Whether negatives are the other images of the domain, or all other images of the batch.
    positives : bool
        Whether augmented copies are positives; if false, their similarity is the constant 1.
    short : {"all", "replace"}
        Negatives of domains of different sizes: all images, or the same number for each domain, drawn as in the
        published code.
    decoupled : bool
        Whether to leave the positive out of the denominator. The published code includes it; equations 5 and 7 of the
        text have two separate terms. [unclear]
    reconstruction : float
        Weight of the reconstruction loss; 0 for DCoDR-norec, which has no generator.
    rate : float
        Learning rate of encoder and head; 1e-4 in the text, other values in the published code.
    generator_rate : float
        Learning rate of the generator.
    style_rate : float
        Learning rate of the domains' codes.
    decay : float
        Factor of all rates, applied every `decay_every` steps; only in the published code.
    decay_every : int, optional
        Number of steps between decays; 30 epochs in the published code. By default rates are constant.

    """

    encoder: Literal["resnet50", "small"] = "resnet50"
    channels: tuple[int, ...] = (32, 64, 128, 256)
    dimensions: int = 128
    head: bool = False
    temperature: float = 0.2
    negatives: Literal["domain", "batch"] = "domain"
    positives: bool = True
    short: Literal["all", "replace"] = "all"
    decoupled: bool = False
    reconstruction: float = 0.3
    rate: float = 1e-4
    generator_rate: float = 3e-4
    style_rate: float = 3e-3
    decay: float = 0.33
    decay_every: int | None = None

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run; weights are torch's own initial ones, and transformers' of the ResNet."""
        from setsup_papers.dcodr.networks.domain_encoders import contrast_head

        image_generator = self.build_generator(self.dimensions) if self.reconstruction else None
        distance = self.build_distance() if self.reconstruction else None
        method = import_method("setsup_papers.dcodr.method:DCoDR")
        return method(
            self,
            image_encoder(self.encoder, self.image_shape, self.dimensions, self.channels),
            self.domains(table),
            head=contrast_head(self.dimensions) if self.head else None,
            generator=image_generator,
            distance=distance,
        )

    def shrunk(self) -> "DCoDRSettings":
        """Small networks, and a VGG16 with random weights."""
        return replace(self, encoder="small", channels=(8, 8, 8, 8), generator_width=8, vgg_weights="random")
