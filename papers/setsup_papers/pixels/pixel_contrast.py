"""Stable single-pixel contrast: a network that gives every pixel a feature [1]_.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), and its published code.

"""

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from setsup.checks import check_number, check_rates
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.minimise import log_loss
from setsup.methods.networks.images import unit_range
from setsup_papers.pixels.losses import between_loss, within_loss
from setsup_papers.pixels.settings import PixelContrastSettings

__all__ = ["PixelContrast"]

_VIEWS = ("view_1", "view_2", "partner", "positive", "valid")


class PixelContrast(LightningModule):
    """Trains λ · :func:`~setsup_papers.pixels.within_loss` + (1 - λ) · :func:`~setsup_papers.pixels.between_loss` [1]_.

    Parameters
    ----------
    settings : PixelContrastSettings
        What is minimised, and how; those of the network are not read.
    network : nn.Module
        From images (n, C, h, w) float in [0, 1] to features (n, D, h, w).

    Raises
    ------
    SetsupError
        When λ is not in [0, 1], or another number is out of range.

    """

    def __init__(self, settings: PixelContrastSettings, network: nn.Module) -> None:
        super().__init__()
        if not 0 <= settings.within <= 1:
            raise SetsupError(
                f"within, the weight λ of the loss within pairs, must be in [0, 1], not {settings.within}"
            )
        check_rates(rate=settings.rate)
        check_number(settings.warmup, "warmup, a share of the steps,", SetsupError, 0, 1)
        check_number(settings.weight_decay, "the weight decay", SetsupError, 0)
        self.settings = settings
        # the memory layout of a loader's images
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def embed(self, batch: Batch) -> Tensor:
        """Features of all pixels, (sets, size, h, w, D) float32."""
        images = batch["image"]
        features = self._features(images).movedim(1, -1)
        return features.reshape(*images.shape[:-3], *features.shape[1:])

    def loss(self, batch: Batch) -> Tensor:
        """The weighted sum; both losses are logged.

        Parameters
        ----------
        batch : dict
            What :class:`~setsup.loading.views.PlanarPairs` or :class:`~setsup.loading.views.SpatialPairs`
            adds: ``view_1`` and ``view_2``, (..., C, h, w), uint8 or float in [0, 1]; ``partner``, ``positive`` and
            ``valid``, (..., h·w).

        Returns
        -------
        () float32

        Raises
        ------
        SetsupError
            When the batch has no views.

        """
        missing = [name for name in _VIEWS if name not in batch]
        if missing:
            raise SetsupError(
                f"single-pixel contrast compares pixels of two views, but the batch has no {', '.join(missing)}; set "
                "the augmentation to PlanarPairs or SpatialPairs"
            )
        partner, positive, valid = (batch[name].reshape(-1, batch[name].shape[-1]) for name in _VIEWS[2:])
        # one pass: no layer mixes images
        first, second = self._features(torch.stack([batch["view_1"], batch["view_2"]])).flatten(2).chunk(2)
        settings, loss = self.settings, first.new_zeros(())
        norm, weight = settings.norm, settings.within
        if weight > 0:
            within = within_loss(first, second, partner, positive, valid, norm=norm, balance=settings.balance)
            self.log("within", within)
            loss = loss + weight * within
        if weight < 1:
            between = between_loss(first, second, partner, valid, norm=norm)
            self.log("between", between)
            loss = loss + (1 - weight) * between
        return loss

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """AdamW whose rate, and first β from .95 to .85 and back, go through one cycle."""
        settings, steps = self.settings, int(self.trainer.estimated_stepping_batches)
        decay = settings.weight_decay
        adam = torch.optim.AdamW(self.parameters(), settings.rate, betas=(0.9, 0.99), weight_decay=decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(fuse(adam), settings.rate, steps, pct_start=settings.warmup)
        return {"optimizer": adam, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _features(self, images: Tensor) -> Tensor:
        """Features (n, D, h, w) float32 of images with any leading axes."""
        features: Tensor = self.network(unit_range(images.reshape(-1, *images.shape[-3:])))
        return features.float()
