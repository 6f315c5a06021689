"""Settings of the methods that DCoDR is compared with: LORD in two stages, DRNET, and ML-VAE."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from setsup.experiments.configs import import_method
from setsup_papers.dcodr.network_choice import image_encoder
from setsup_papers.dcodr.settings import DomainSettings, ReconstructionSettings

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule
    from torch import nn

    from setsup.factors import FactorTable
    from setsup.methods.groups import GroupCodes
    from setsup_papers.dcodr.networks.generator import AdaINGenerator

__all__ = ["AmortisedLORDSettings", "DRNETSettings", "LORDSettings", "LORDStageSettings", "MLVAESettings"]

_SMOKE = (16, 16, 32, 32)
"""Channels of networks that are only tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LORDStageSettings(ReconstructionSettings):
    """Settings that both stages of LORD have.

    Attributes
    ----------
    content : int
        Dimensions of the codes of images.
    last_rate : float
        Learning rate at the end.
    lazy_codes : bool
        Whether a step of the first stage leaves the codes of images that it does not use unchanged. The published code
        updates them by their moments, as do the presets of the paper's size.

    """

    content: int = 128
    last_rate: float = 1e-5
    lazy_codes: bool = field(default=True, metadata={"added": True})

    def build_shared(self, table: "FactorTable") -> "tuple[AdaINGenerator, nn.Embedding, GroupCodes, nn.Module]":
        """Build the generator, codes of domains, the domains, and the distance of images."""
        from setsup_papers.dcodr.networks.generator import class_embedding

        domains = self.domains(table)
        generator = self.build_generator(self.content)
        return generator, class_embedding(len(domains), self.style), domains, self.build_distance()


@dataclass(frozen=True, slots=True, kw_only=True)
class LORDSettings(LORDStageSettings):
    """Settings of :class:`setsup_papers.dcodr.LORD`, the stage that optimises codes.

    Attributes
    ----------
    noise : float
        Standard deviation of the noise added to images' codes.
    penalty : float
        Weight of the squared length of images' codes.
    rate, latent_rate : float
        Initial learning rates of the generator, and of all codes.

    """

    noise: float = 1.0
    penalty: float = 1e-4
    rate: float = 3e-4
    latent_rate: float = 3e-3

    def shrunk(self) -> "LORDSettings":
        """A narrow generator, and no VGG16."""
        return replace(self, generator_width=min(self.generator_width, 32), perceptual="pyramid")

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run; weights are torch's own initial ones."""
        method = import_method("setsup_papers.dcodr.lord:LORD")
        return method(self, *self.build_shared(table), rows=len(table))


@dataclass(frozen=True, slots=True, kw_only=True)
class AmortisedLORDSettings(LORDStageSettings):
    """Settings of :class:`setsup_papers.dcodr.AmortisedLORD`, the stage that trains encoders.

    Dimensions and the generator are those of the first stage.

    Attributes
    ----------
    encoder : {"resnet50", "small"}
        ResNet-50 with two linear layers, as in DCoDR's tables, or four convolutions with stride 2 and a linear layer.
    channels : tuple of int
        Channels of the convolutions of ``small``.
    encoder_weights : str, optional
        File, or published name, of the weights of MoCo-v2 that both encoders of ``resnet50`` start from; by default
        they are random. [unclear]
    weights : (float, float)
        Weights of the errors of images' codes and of domains' codes.
    rate : float
        Initial learning rate.

    """

    encoder: Literal["resnet50", "small"] = "resnet50"
    channels: tuple[int, ...] = (32, 64, 128, 256)
    encoder_weights: str | None = None
    weights: tuple[float, float] = (10.0, 10.0)
    rate: float = 1e-4

    def shrunk(self) -> "AmortisedLORDSettings":
        """A narrow generator, small encoders, and no VGG16."""
        return replace(
            self,
            generator_width=min(self.generator_width, 32),
            encoder="small",
            channels=_SMOKE,
            encoder_weights=None,
            perceptual="pyramid",
        )

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run; weights are torch's own initial ones until it takes those of a first stage."""
        content = image_encoder(self.encoder, self.image_shape, self.content, self.channels)
        style = image_encoder(self.encoder, self.image_shape, self.style, self.channels)
        method = import_method("setsup_papers.dcodr.lord:AmortisedLORD")
        return method(self, content, style, *self.build_shared(table), rows=len(table))


@dataclass(frozen=True, slots=True, kw_only=True)
class DRNETSettings(DomainSettings):
    """Settings of :class:`setsup_papers.dcodr.DRNET` and of its networks.

    Attributes
    ----------
    content, pose : int
        Dimensions of the code of what a domain's images share, and of the code of the rest; 64 and 5, or 128 and 10, in
        the published code. [unclear]
    channels : tuple of int
        Channels of the encoders' convolutions, and in reverse order of the decoder's.
    discriminator : int
        Width of the discriminator's layers.
    skips : bool
        Whether the decoder also gets the feature maps of the content encoder. The published code has both variants.
        [unclear]
    similarity : float
        Weight of the similarity of contents.
    adversarial : float
        Weight of the adversarial loss; 0.0001 in the published code. [unclear]
    rate : float
        Learning rate of Adam.
    betas : (float, float)
        β₁ and β₂ of Adam.

    """

    content: int = 128
    pose: int = 10
    channels: tuple[int, ...] = (64, 128, 256, 512)
    discriminator: int = 100
    skips: bool = False
    similarity: float = 1.0
    adversarial: float = 1e-4
    rate: float = 2e-3
    betas: tuple[float, float] = (0.5, 0.999)

    def shrunk(self) -> "DRNETSettings":
        """Narrow networks."""
        return replace(self, channels=_SMOKE)

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        from setsup_papers.dcodr.networks.drnet import DrnetDecoder, DrnetEncoder, SceneDiscriminator, initialise_drnet

        content = DrnetEncoder(self.image_shape, self.content, self.channels)
        pose = DrnetEncoder(self.image_shape, self.pose, self.channels)
        decoder = DrnetDecoder(content, self.pose, self.skips)
        discriminator = SceneDiscriminator(self.pose, self.discriminator)
        for network in (content, pose, decoder, discriminator):
            initialise_drnet(network, generator)
        method = import_method("setsup_papers.dcodr.drnet:DRNET")
        return method(self, content, pose, decoder, discriminator, self.domains(table))


@dataclass(frozen=True, slots=True, kw_only=True)
class MLVAESettings(DomainSettings):
    """Settings of :class:`setsup_papers.dcodr.MLVAE` and of its networks.

    Attributes
    ----------
    networks : {"dense", "convolutional"}
        One hidden layer with tanh, as published for digits, or convolutions with stride 2, as others published for 64 ×
        64 images. The paper does not say which one its tables use. [unclear]
    style, group : int
        Dimensions of the codes of images and of groups. [unclear]
    hidden : int
        Width of the hidden layers; in public code 500 for ``dense`` and 256 for ``convolutional``.
    channels, kernels : tuple of int
        Channels and kernel sizes of the convolutions; kernels have 2 or 4 pixels.
    likelihood : {"gaussian", "bernoulli"}
        Likelihood of pixels: normal with a learned variance, as published, or Bernoulli.
    samples : {"image", "group"}
        Whether each image decodes its own sample of the group's posterior, as published, or all images the same sample.
    noise : float
        Scale of the noise of these samples; the notes of a public implementation recommend 0.1. [unclear]
    rate : float
        Learning rate of Adam.

    """

    networks: Literal["dense", "convolutional"] = "dense"
    style: int = 10
    group: int = 10
    hidden: int = 500
    channels: tuple[int, ...] = (32, 32, 64, 64)
    kernels: tuple[int, ...] = (4, 4, 2, 2)
    likelihood: Literal["gaussian", "bernoulli"] = "gaussian"
    samples: Literal["image", "group"] = "image"
    noise: float = 1.0
    rate: float = 1e-3

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        from setsup_papers.dcodr.networks.ml_vae import convolutional_vae, dense_vae

        options: dict[str, Any] = {"width": self.hidden, "parts": 2 if self.likelihood == "gaussian" else 1}
        if self.networks == "dense":
            encoder, decoder = dense_vae(self.image_shape, self.style, self.group, generator=generator, **options)
        else:
            options |= {"channels": self.channels, "kernels": self.kernels}
            encoder, decoder = convolutional_vae(self.image_shape, self.style, self.group, **options)
        method = import_method("setsup_papers.dcodr.ml_vae:MLVAE")
        return method(self, encoder, decoder, self.domains(table))
