"""Multi-level variational autoencoder (ML-VAE): one code for all images of a group, and one for each image.

References
----------
.. [1] D. Bouchacourt, R. Tomioka, S. Nowozin, "Multi-level variational autoencoder: learning disentangled
   representations from grouped observations", AAAI 2018 (arXiv 1705.08841).

"""

import math
from typing import Any, Literal, get_args

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.nn import functional

from setsup.checks import check_rates
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.gaussians import Gaussian, gaussian_divergence, gaussian_product
from setsup.methods.groups import GroupCodes
from setsup.methods.minimise import log_loss
from setsup.methods.networks.images import encode_images, unit_range
from setsup_papers.dcodr.baseline_settings import MLVAESettings
from setsup_papers.dcodr.networks.ml_vae import GroupedDecoder, GroupedEncoder

__all__ = ["MLVAE", "GroupSamples", "Likelihood"]

GroupSamples = Literal["image", "group"]
Likelihood = Literal["gaussian", "bernoulli"]


class MLVAE(LightningModule):
    """A variational autoencoder with a code of each image, its style, and one of its group [1]_.

    A group is all images of a domain in a batch. The posterior of its code is the product of those that its images
    give, see :func:`~setsup.methods.gaussians.gaussian_product`. The loss is the negative evidence lower bound of
    a batch, divided by the number of its groups:

    (Σ KL(q(style)) + Σ over groups KL(q(group's code)) - Σ log p(image | style, group's code)) / groups

    with standard normal priors. The embedding of an image is the mean of its style, which is not meant to have its
    domain.

    Parameters
    ----------
    settings : MLVAESettings
        What is minimised, and how; those of networks are not read.
    encoder : GroupedEncoder
        Gives posteriors of both codes.
    decoder : GroupedDecoder
        With 2 maps for ``gaussian``, or 1 for ``bernoulli``.
    domains : GroupCodes
        Which images of a batch are of one group.

    Raises
    ------
    SetsupError
        When an argument is none of these, or the decoder has another number of maps.

    """

    def __init__(
        self,
        settings: MLVAESettings,
        encoder: GroupedEncoder,
        decoder: GroupedDecoder,
        domains: GroupCodes,
    ) -> None:
        super().__init__()
        likelihood, samples = settings.likelihood, settings.samples
        if likelihood not in get_args(Likelihood):
            raise SetsupError(f"likelihood must be one of {', '.join(get_args(Likelihood))}, not {likelihood!r}")
        if samples not in get_args(GroupSamples):
            raise SetsupError(f"samples must be 'image' (one per image) or 'group' (one per group), not {samples!r}")
        check_rates(rate=settings.rate)
        if decoder.parts != (2 if likelihood == "gaussian" else 1):
            raise SetsupError(
                f"a decoder with {decoder.parts} maps does not match the likelihood {likelihood!r}; gaussian requires "
                "2 maps, and bernoulli requires 1"
            )
        self.settings = settings
        self.encoder, self.decoder, self.domains = encoder, decoder, domains

    def embed(self, batch: Batch) -> Tensor:
        """Means of the styles of a batch's images, (sets, size, style) float32."""
        return encode_images(lambda images: self.encoder(images)[0].mean, batch["image"])

    def loss(self, batch: Batch) -> Tensor:
        """Negative evidence lower bound per group; its terms are logged.

        Parameters
        ----------
        batch : dict
            ``image`` (sets, size, C, H, W) uint8, or float in [0, 1]; ``mask`` (sets, size) bool; ``factors`` with
            those of domains. Images of unknown domain take no part.

        Returns
        -------
        () float32, nats

        """
        used, codes = self.domains.used(batch)
        images = unit_range(batch["image"].flatten(0, 1)[used])
        known, groups = torch.unique(codes, return_inverse=True)
        style, member = self.encoder(images)
        group = Gaussian(*gaussian_product(member.mean, member.log_variance, groups, len(known)))
        maps = self.decoder(style.sample(), self._sample_groups(group, groups))
        terms = {
            "reconstruction": -self._log_likelihood(maps, images) / len(known),
            "style": gaussian_divergence(*style).sum() / len(known),
            "group": gaussian_divergence(*group).mean(),
        }
        for name, term in terms.items():
            self.log(name, term)
        return terms["reconstruction"] + terms["style"] + terms["group"]

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """Adam with a constant rate."""
        return fuse(torch.optim.Adam(self.parameters(), self.settings.rate))

    def _sample_groups(self, group: Gaussian, groups: Tensor) -> Tensor:
        """A sample of the group's code for each image, (n, d)."""
        if self.settings.samples == "group":
            return group.sample(self.settings.noise)[groups]
        return Gaussian(group.mean[groups], group.log_variance[groups]).sample(self.settings.noise)

    def _log_likelihood(self, maps: Tensor, images: Tensor) -> Tensor:
        """Of all pixels together, ()."""
        if self.settings.likelihood == "bernoulli":
            return -functional.binary_cross_entropy_with_logits(maps[0], images, reduction="sum")
        mean, log_variance = maps[0], maps[1].tanh()
        errors = (images - mean).square() * (-log_variance).exp()
        return -(errors + log_variance + math.log(2 * math.pi)).sum() / 2
