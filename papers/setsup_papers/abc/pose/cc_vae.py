"""Cycle-consistent variational autoencoder (CC-VAE): a code of what a set shares, and one of what varies within it.

References
----------
.. [1] A. H. Jha, S. Anand, M. Singh, V. S. R. Veeravasarapu, "Disentangling factors of variation with cycle-consistent
   variational auto-encoders", ECCV 2018 (arXiv 1804.10469), and its public code.

"""

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.nn import functional

from setsup.checks import check_rates
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.gaussians import gaussian_divergence
from setsup.methods.minimise import minimise
from setsup.methods.networks.images import encode_images
from setsup_papers.abc.pose.baseline_settings import CCVAESettings
from setsup_papers.abc.pose.cc_vae_networks import CycleDecoder, CycleEncoder
from setsup_papers.abc.pose.pairs import pair_images

__all__ = ["CCVAE"]


class CCVAE(LightningModule):
    """A variational autoencoder whose two codes are separated by cycles of pairs of images [1]_.

    With the encoder's posterior q(x) of the unspecified code, its specified code s(x), and the decoder D, a pair x, x'
    of one set goes through the forward cycle

    Σ over both (β KL(q(x)) / P + α ‖D(z, s(x')) - x‖²),  z ~ q(x)

    with a standard normal prior, the number P of values of an image, and the mean square over them; and images x, y
    of different sets through the reverse cycle

    γ |q̄(D(z, s(x))) - q̄(D(z, s(y)))|,  z ~ N(0, 1)

    with means q̄ of posteriors and the mean of absolute differences. A step minimises the first by encoder and decoder,
    then the second by the encoder alone, each by Adam; images of the reverse cycle are those of the same draw. The
    embedding of an image is the mean of its unspecified code, which is not meant to have what its set shares.

    Parameters
    ----------
    settings : CCVAESettings
        What is minimised, and how; α, β and γ are ``reconstruction``, ``divergence`` and ``cycle``. Those of networks
        are not read.
    encoder : CycleEncoder
        Gives both codes.
    decoder : CycleDecoder
        For images of the same size.

    Raises
    ------
    SetsupError
        When a setting is none of these.

    """

    def __init__(self, settings: CCVAESettings, encoder: CycleEncoder, decoder: CycleDecoder) -> None:
        super().__init__()
        decay_every, decay = settings.decay_every, settings.decay
        check_rates(rate=settings.rate)
        if decay_every is not None and (type(decay_every) is not int or decay_every < 1):
            raise SetsupError(
                f"decay_every must be 1 or more (steps), or None for a constant rate, not {decay_every!r}"
            )
        if not 0 < decay <= 1:
            raise SetsupError(f"decay must be above 0 and at most 1, not {decay}")
        self.automatic_optimization = False
        self.encoder, self.decoder = encoder, decoder
        self.settings = settings

    def embed(self, batch: Batch) -> Tensor:
        """Means of the unspecified codes of a batch's images, (sets, size, d) float32."""
        return encode_images(lambda images: self.encoder(images)[0].mean, batch["image"])

    def loss(self, batch: Batch) -> Tensor:
        """Losses of both cycles; their terms are logged.

        Parameters
        ----------
        batch : dict
            ``image`` (sets, size, C, H, W) uint8, or float in [0, 1], of two sets or more and an even size: images 0
            and 1 of a set are a pair, 2 and 3 the next, and so on; ``mask`` (sets, size) bool.

        Returns
        -------
        () float32

        Raises
        ------
        DataError
            When images are not such pairs.

        """
        first, second = pair_images(batch)
        return self._forward_loss(first, second) + self._reverse_loss(first, second)

    def training_step(self, batch: Batch, batch_idx: int) -> None:
        """A step of each optimiser; their losses are logged as ``loss`` and ``cycle``."""
        first, second = pair_images(batch)
        optimisers: Any = self.optimizers()
        together, encoding = optimisers
        loss = self._forward_loss(first, second)
        minimise(self, together, loss)
        minimise(self, encoding, self._reverse_loss(first, second))
        self.log("loss", loss)
        schedulers: Any = self.lr_schedulers() or []
        for scheduler in schedulers:
            scheduler.step()

    def configure_optimizers(self) -> Any:
        """Adam for encoder and decoder, and for the encoder."""
        together = [*self.encoder.parameters(), *self.decoder.parameters()]
        settings = self.settings
        adams = [fuse(torch.optim.Adam(some, settings.rate)) for some in (together, self.encoder.parameters())]
        if settings.decay_every is None:
            return adams
        return adams, [torch.optim.lr_scheduler.StepLR(adam, settings.decay_every, settings.decay) for adam in adams]

    def _forward_loss(self, first: Tensor, second: Tensor) -> Tensor:
        """Each image from its own unspecified code and the other's specified one."""
        (own, shared), (own_of_other, shared_of_other) = self.encoder(first), self.encoder(second)
        divergence = (gaussian_divergence(*own).mean() + gaussian_divergence(*own_of_other).mean()) / first[0].numel()
        error = functional.mse_loss(self.decoder(own.sample(), shared_of_other), first)
        error = error + functional.mse_loss(self.decoder(own_of_other.sample(), shared), second)
        self.log("divergence", divergence)
        self.log("reconstruction", error)
        return self.settings.divergence * divergence + self.settings.reconstruction * error

    def _reverse_loss(self, first: Tensor, second: Tensor) -> Tensor:
        """Two images of one unspecified code, with specified ones of different sets, should have it in common."""
        # nothing but the encoder's second pass has a gradient: codes that are decoded are constants, as published
        with torch.no_grad():
            others = self.encoder(first)[1], self.encoder(second.roll(-1, 0))[1]
            noise = torch.randn_like(self.encoder.unspecified_mean.bias.expand(len(first), -1))
            decoded = [self.decoder(noise, specified) for specified in others]
        code1, code2 = (self.encoder(images)[0].mean for images in decoded)
        error = functional.l1_loss(code1, code2)
        self.log("cycle", error)
        return self.settings.cycle * error
