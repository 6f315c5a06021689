"""Settings of baselines of ABC's paper: CC-VAE, and the two stages of Sanchez et al.; ML-VAE's are those of DCoDR."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from setsup.experiments.configs import ImageSettings, import_method

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

    from setsup.factors import FactorTable
    from setsup_papers.abc.pose.information_networks import MapEncoder

__all__ = ["CCVAESettings", "ExclusiveInformationSettings", "PairInformationSettings", "SharedInformationSettings"]

_IMAGE = (3, 64, 64)
"""Of settings that are built without data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CCVAESettings(ImageSettings):
    """Settings of :class:`setsup_papers.abc.pose.CCVAE` and of its networks; defaults are those published for digits.

    A step uses two sets or more of an even size, whose images form pairs; 64 pairs in the published code.

    Attributes
    ----------
    unspecified, specified : int
        Dimensions of the code of what varies within a set, and of the code of what a set shares. [unclear]
    channels : tuple of int
        Channels of the convolutions with stride 2: three for 28 × 28 pixels; four, such as ``16 32 64 128``, for 64 ×
        64. [unclear]
    running_statistics : bool
        Whether instance norms use running statistics in evaluations, as the published networks declare, or the
        statistics of each image, as in training. [unclear]
    reconstruction, divergence, cycle : float
        Weights of the squared error, the divergence and the reverse cycle.
    rate : float
        Learning rate of Adam.
    decay_every : int, optional
        Steps after which the learning rate is multiplied by `decay`; the published code does so after 80 of 100 epochs.
    decay : float
        Factor of the learning rate; see `decay_every`.

    """

    unspecified: int = 16
    specified: int = 16
    channels: tuple[int, ...] = (16, 32, 64)
    running_statistics: bool = True
    reconstruction: float = 2.0
    divergence: float = 3.0
    cycle: float = 10.0
    rate: float = 1e-4
    decay_every: int | None = None
    decay: float = 0.1

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run; weights are the published initial ones."""
        from setsup_papers.abc.pose.cc_vae_networks import cycle_vae

        encoder, decoder = cycle_vae(
            self.image or _IMAGE,
            self.unspecified,
            self.specified,
            self.channels,
            running_statistics=self.running_statistics,
            generator=generator,
        )
        method = import_method("setsup_papers.abc.pose.cc_vae:CCVAE")
        return method(self, encoder, decoder)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairInformationSettings(ImageSettings):
    """Settings that both stages of Sanchez et al. have.

    A step uses two sets or more of an even size, whose images form pairs; 64 pairs in the public code.

    Attributes
    ----------
    shared : int
        Dimensions of the shared code.
    filters : int
        Channels of the encoder's first convolution; each further convolution doubles them.
    convolutions : int
        Number of convolutions: 3 for 28 × 28 pixels, as in the public code, and 4 for 64 × 64. [unclear]
    width : int
        Width of the hidden layers of statistics networks.
    two_encoders : bool
        Whether the second image of a pair has its own networks, as for pairs from two domains. [unclear]
    local_weight, global_weight : float
        Weights of the losses of mutual information, for each position and for whole maps.
    rate : float
        Learning rate of Adam.

    """

    shared: int = 64
    filters: int = 64
    convolutions: int = 3
    width: int = 512
    two_encoders: bool = False
    local_weight: float = 1.0
    global_weight: float = 0.5
    rate: float = 1e-4

    def shrunk(self) -> Self:
        """Narrow networks."""
        return replace(self, filters=min(self.filters, 4), width=min(self.width, 16))

    def build_encoders(self, size: int) -> "list[MapEncoder]":
        """Build an encoder of codes of this size, or one for each image of a pair."""
        from setsup_papers.abc.pose.information_networks import MapEncoder

        image = self.image or _IMAGE
        return [MapEncoder(image, size, self.filters, self.convolutions) for _ in range(1 + self.two_encoders)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedInformationSettings(PairInformationSettings):
    """Settings of :class:`setsup_papers.abc.pose.SharedInformation`, the first stage of Sanchez et al.

    Attributes
    ----------
    distance_weight : float
        Weight of the absolute difference of shared codes.

    """

    distance_weight: float = 0.1

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run; weights are torch's own initial ones."""
        from setsup_papers.abc.pose.information_networks import StatisticsNetworks

        encoders = self.build_encoders(self.shared)
        statistics = [StatisticsNetworks(encoder.maps, self.shared, self.width) for encoder in encoders]
        method = import_method("setsup_papers.abc.pose.shared_information:SharedInformation")
        return method(self, encoders, statistics)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveInformationSettings(PairInformationSettings):
    """Settings of :class:`setsup_papers.abc.pose.ExclusiveInformation`, the second stage of Sanchez et al.

    The initial run is a run of the first stage with the same settings, where both stages have them.

    Attributes
    ----------
    exclusive : int
        Dimensions of the exclusive code: 8 in the method's own paper, 64 in ABC's comparison.
    independence_weight : float
        Weight of the loss that makes both codes independent.

    """

    exclusive: int = 64
    independence_weight: float = 0.1

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run; weights are torch's own initial ones until it takes those of a first stage."""
        from setsup_papers.abc.pose.information_networks import StatisticsNetworks, discriminator

        shared, encoders = self.build_encoders(self.shared), self.build_encoders(self.exclusive)
        channels, *sides = encoders[0].maps
        maps, size = (2 * channels, sides[0], sides[1]), self.shared + self.exclusive
        statistics = [StatisticsNetworks(maps, size, self.width) for _ in encoders]
        method = import_method("setsup_papers.abc.pose.exclusive_information:ExclusiveInformation")
        return method(self, shared, encoders, statistics, [discriminator(size) for _ in encoders])
