"""Settings of the methods that DCoDR is compared with: LORD in two stages, DRNET, and ML-VAE."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from setsup.experiments.configs import fit_image
from setsup_papers.dcodr.network_choice import IMAGE, image_distance, image_encoder

if TYPE_CHECKING:
    import torch

    from setsup.factors import FactorTable
    from setsup.loading.batch import Batch
    from setsup_papers.dcodr.drnet import DRNET
    from setsup_papers.dcodr.lord import LORD, AmortisedLORD
    from setsup_papers.dcodr.ml_vae import MLVAE

__all__ = ["AmortisedLORDSettings", "DRNETSettings", "LORDSettings", "MLVAESettings"]

_SMOKE = (16, 16, 32, 32)
"""Channels of networks that are only tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LORDSettings:
    """Settings of :class:`setsup_papers.dcodr.LORD`, the stage that optimises codes.

    Attributes
    ----------
    domain : tuple of str
        Factors whose combinations are the domains.
    image : (int, int, int), optional
        Channels, height and width of images; by default those of the data.
    content, style : int
        Dimensions of the codes of images, and of domains.
    generator_width : int
        Channels of the generator's maps.
    perceptual : {"vgg16", "pyramid"}
        Distance of images: L1 with features of VGG16, or with a Laplacian pyramid of three levels.
    vgg_weights : str
        File of VGG16's weights in torchvision's layout, its published name, or ``random`` for a trial.
    noise : float
        Standard deviation of the noise of images' codes.
    penalty : float
        Weight of their squared length.
    rate, latent_rate : float
        First learning rates of the generator, and of all codes.
    last_rate : float
        Learning rate at the end.
    lazy_codes : bool
        Whether codes of images that a step did not use stay as they are. The published code moves them by their
        moments; so do the presets of the paper's size.

    """

    domain: tuple[str, ...] = field(metadata={"option": "domain", "factors": True})
    image: tuple[int, int, int] | None = None
    content: int = 128
    style: int = 256
    generator_width: int = 256
    perceptual: Literal["vgg16", "pyramid"] = "vgg16"
    vgg_weights: str = "vgg16-imagenet"
    noise: float = 1.0
    penalty: float = 1e-4
    rate: float = 3e-4
    latent_rate: float = 3e-3
    last_rate: float = 1e-5
    lazy_codes: bool = field(default=True, metadata={"added": True})

    def fit_to(self, batch: "Batch") -> "LORDSettings":
        """The same for images of the size of a batch's, SetsupError where another is set."""
        return fit_image(self, batch)

    def shrunk(self) -> "LORDSettings":
        """A narrow generator, and no VGG16."""
        return replace(self, generator_width=min(self.generator_width, 32), perceptual="pyramid")

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LORD":
        """Build the method of a run; weights are torch's own initial ones."""
        from setsup.methods.groups import GroupCodes
        from setsup_papers.dcodr.lord import LORD
        from setsup_papers.dcodr.networks.generator import AdaINGenerator, class_embedding

        domains = GroupCodes(table, self.domain, "domain")
        return LORD(
            AdaINGenerator(self.image or IMAGE, self.content, self.style, self.generator_width),
            class_embedding(len(domains), self.style),
            domains,
            image_distance(self.perceptual, self.vgg_weights),
            rows=len(table),
            content=self.content,
            noise=self.noise,
            penalty=self.penalty,
            rate=self.rate,
            latent_rate=self.latent_rate,
            last_rate=self.last_rate,
            lazy=self.lazy_codes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AmortisedLORDSettings:
    """Settings of :class:`setsup_papers.dcodr.AmortisedLORD`, the stage that trains encoders.

    Attributes
    ----------
    domain : tuple of str
        Factors whose combinations are the domains, as in the first stage.
    image : (int, int, int), optional
        Channels, height and width of images; by default those of the data.
    content, style : int
        Dimensions of the codes of images, and of domains, as in the first stage.
    generator_width : int
        Channels of the generator's maps, as in the first stage.
    encoder : {"resnet50", "small"}
        ResNet-50 with two linear layers, as in DCoDR's tables, or four convolutions with stride 2 and a linear layer.
    channels : tuple of int
        Of the convolutions of ``small``.
    encoder_weights : str, optional
        File, or published name, of the weights of MoCo-v2 that both encoders of ``resnet50`` start from; by default
        they are random. [unclear]
    perceptual : {"vgg16", "pyramid"}
        Distance of images: L1 with features of VGG16, or with a Laplacian pyramid of three levels.
    vgg_weights : str
        File of VGG16's weights in torchvision's layout, its published name, or ``random`` for a trial.
    weights : (float, float)
        Of the errors of images' codes, and of domains' codes.
    rate, last_rate : float
        Learning rates of the first step, and at the end.
    lazy_codes : bool
        As in the first stage.

    """

    domain: tuple[str, ...] = field(metadata={"option": "domain", "factors": True})
    image: tuple[int, int, int] | None = None
    content: int = 128
    style: int = 256
    generator_width: int = 256
    encoder: Literal["resnet50", "small"] = "resnet50"
    channels: tuple[int, ...] = (32, 64, 128, 256)
    encoder_weights: str | None = None
    perceptual: Literal["vgg16", "pyramid"] = "vgg16"
    vgg_weights: str = "vgg16-imagenet"
    weights: tuple[float, float] = (10.0, 10.0)
    rate: float = 1e-4
    last_rate: float = 1e-5
    lazy_codes: bool = field(default=True, metadata={"added": True})

    def fit_to(self, batch: "Batch") -> "AmortisedLORDSettings":
        """The same for images of the size of a batch's, SetsupError where another is set."""
        return fit_image(self, batch)

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

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "AmortisedLORD":
        """Build the method of a run; weights are torch's own initial ones until it takes those of a first stage."""
        from setsup.methods.groups import GroupCodes
        from setsup_papers.dcodr.lord import AmortisedLORD
        from setsup_papers.dcodr.networks.generator import AdaINGenerator, class_embedding

        image, domains = self.image or IMAGE, GroupCodes(table, self.domain, "domain")
        content, style = (
            image_encoder(self.encoder, image, size, self.channels) for size in (self.content, self.style)
        )
        return AmortisedLORD(
            content,
            style,
            AdaINGenerator(image, self.content, self.style, self.generator_width),
            class_embedding(len(domains), self.style),
            domains,
            image_distance(self.perceptual, self.vgg_weights),
            rows=len(table),
            dimensions=self.content,
            weights=self.weights,
            rate=self.rate,
            last_rate=self.last_rate,
            lazy=self.lazy_codes,
            encoder_weights=self.encoder_weights,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DRNETSettings:
    """Settings of :class:`setsup_papers.dcodr.DRNET` and of its networks.

    Attributes
    ----------
    domain : tuple of str
        Factors whose combinations are the domains.
    image : (int, int, int), optional
        Channels, height and width of images; by default those of the data.
    content, pose : int
        Dimensions of the codes of what a domain's images share, and of what they do not; the code has 64 and 5, or 128
        and 10. [unclear]
    channels : tuple of int
        Of the encoders' convolutions, and in reverse of the decoder's.
    discriminator : int
        Width of the discriminator's layers.
    skips : bool
        Whether the decoder takes the maps of the content's encoder, too. The code has both. [unclear]
    similarity : float
        Weight of the similarity of contents.
    adversarial : float
        Weight of the discriminator's confusion; 0.0001 in the code. [unclear]
    rate : float
        Learning rate of Adam.
    betas : (float, float)
        Of Adam.

    """

    domain: tuple[str, ...] = field(metadata={"option": "domain", "factors": True})
    image: tuple[int, int, int] | None = None
    content: int = 128
    pose: int = 10
    channels: tuple[int, ...] = (64, 128, 256, 512)
    discriminator: int = 100
    skips: bool = False
    similarity: float = 1.0
    adversarial: float = 1e-4
    rate: float = 2e-3
    betas: tuple[float, float] = (0.5, 0.999)

    def fit_to(self, batch: "Batch") -> "DRNETSettings":
        """The same for images of the size of a batch's, SetsupError where another is set."""
        return fit_image(self, batch)

    def shrunk(self) -> "DRNETSettings":
        """Narrow networks."""
        return replace(self, channels=_SMOKE)

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "DRNET":
        """Build the method of a run."""
        from setsup.methods.groups import GroupCodes
        from setsup_papers.dcodr.drnet import DRNET
        from setsup_papers.dcodr.networks.drnet import DrnetDecoder, DrnetEncoder, SceneDiscriminator, initialise_drnet

        image = self.image or IMAGE
        content, pose = (DrnetEncoder(image, size, self.channels) for size in (self.content, self.pose))
        decoder = DrnetDecoder(content, self.pose, self.skips)
        discriminator = SceneDiscriminator(self.pose, self.discriminator)
        for network in (content, pose, decoder, discriminator):
            initialise_drnet(network, generator)
        return DRNET(
            content,
            pose,
            decoder,
            discriminator,
            GroupCodes(table, self.domain, "domain"),
            similarity=self.similarity,
            adversarial=self.adversarial,
            rate=self.rate,
            betas=self.betas,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MLVAESettings:
    """Settings of :class:`setsup_papers.dcodr.MLVAE` and of its networks.

    Attributes
    ----------
    domain : tuple of str
        Factors whose combinations are the groups.
    image : (int, int, int), optional
        Channels, height and width of images; by default those of the data.
    networks : {"dense", "convolutional"}
        One hidden layer with tanh, as published for digits, or convolutions with stride 2, as others published for 64 ×
        64 images. Which one the tables have is [unclear].
    style, group : int
        Dimensions of the codes of images, and of groups. [unclear]
    hidden : int
        Width of the hidden layers; 500 of ``dense`` and 256 of ``convolutional`` in public code.
    channels, kernels : tuple of int
        Of the convolutions; kernels have 2 or 4 pixels.
    likelihood : {"gaussian", "bernoulli"}
        Of pixels: normal with a learned variance, as published, or Bernoulli.
    samples : {"image", "group"}
        Whether each image decodes its own sample of the group's posterior, as published, or all of them the same.
    noise : float
        Scale of the noise of these samples; the notes of a public implementation recommend 0.1. [unclear]
    rate : float
        Learning rate of Adam.

    """

    domain: tuple[str, ...] = field(metadata={"option": "domain", "factors": True})
    image: tuple[int, int, int] | None = None
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

    def fit_to(self, batch: "Batch") -> "MLVAESettings":
        """The same for images of the size of a batch's, SetsupError where another is set."""
        return fit_image(self, batch)

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "MLVAE":
        """Build the method of a run."""
        from setsup.methods.groups import GroupCodes
        from setsup_papers.dcodr.ml_vae import MLVAE
        from setsup_papers.dcodr.networks.ml_vae import convolutional_vae, dense_vae

        image, parts = self.image or IMAGE, 2 if self.likelihood == "gaussian" else 1
        options: dict[str, Any] = {"width": self.hidden, "parts": parts}
        if self.networks == "dense":
            encoder, decoder = dense_vae(image, self.style, self.group, generator=generator, **options)
        else:
            options |= {"channels": self.channels, "kernels": self.kernels}
            encoder, decoder = convolutional_vae(image, self.style, self.group, **options)
        return MLVAE(
            encoder,
            decoder,
            GroupCodes(table, self.domain, "domain"),
            likelihood=self.likelihood,
            samples=self.samples,
            noise=self.noise,
            rate=self.rate,
        )
