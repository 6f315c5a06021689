"""Contrast of views that share a subset of latents, in one block of the embedding for each subset.

References
----------
.. [1] D. Yao, D. Xu, S. Lachapelle, S. Magliacane, P. Taslakian, G. Martius, J. von Kügelgen, F. Locatello,
   "Multi-view causal representation learning with partial observability", ICLR 2024 (arXiv 2311.04056), section 3.

"""

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.methods.embeddings import check_temperature
from setsup.methods.networks import convolutional
from setsup_papers.multiview.settings import BlockContrastSettings

__all__ = ["BlockContrast"]


class BlockContrast(LightningModule):
    """Learns one block of dimensions for each subset of latents that pairs of views share [1]_.

    The sets of a step are pairs: first those of the first block's subset, then those of the next, equally many of each.
    The loss of a block is the cross-entropy of finding, among the views of all its pairs, the other view of one's own
    pair, by cosine similarity over τ, in both directions; that of a step is the mean over blocks. The minimum aligns
    the views of a pair and spreads pairs over the sphere, so that a block identifies the latents that its views share,
    up to an invertible function, and none of the others.

    Parameters
    ----------
    settings : BlockContrastSettings
        All settings; its image is that of the training.
    generator : torch.Generator
        Of the initial weights.

    """

    def __init__(self, settings: BlockContrastSettings, generator: torch.Generator) -> None:
        super().__init__()
        check_temperature(settings.temperature)
        if settings.image is None or not settings.blocks:
            raise SetsupError("BlockContrast requires the shape of images (image) and the names of blocks (blocks)")
        self.settings = settings
        outputs = [settings.dense, len(settings.blocks) * settings.width]
        self.encoder = convolutional(settings.image, settings.convolutions, outputs, generator)

    def embed(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Blocks by name, (sets, size, width) float32 of unit length."""
        blocks = self.encoder(batch["image"]).unflatten(-1, (len(self.settings.blocks), -1))
        return dict(zip(self.settings.blocks, functional.normalize(blocks, dim=-1).unbind(-2), strict=True))

    def loss(self, batch: dict[str, Any]) -> Tensor:
        """Mean over blocks of the contrast of their own pairs."""
        count = len(self.settings.blocks)
        sets, size = batch["image"].shape[:2]
        if size != 2 or sets % count:
            raise SetsupError(
                f"BlockContrast requires equally many pairs for each of {count} blocks, not {sets} sets of {size}; use "
                "the sampler SharedFactors, with a subset for each block"
            )
        views = torch.stack([block.chunk(count)[k] for k, block in enumerate(self.embed(batch).values())])
        first, second = views.unbind(2)  # (blocks, pairs, width) each
        logits = first @ second.mT / self.settings.temperature
        own = torch.arange(logits.shape[1], device=logits.device).expand(count, -1)
        losses = [functional.cross_entropy(some.flatten(0, 1), own.flatten()) for some in (logits, logits.mT)]
        return torch.stack(losses).mean()

    def training_step(self, batch: dict[str, Any], number: int) -> Tensor:
        """The loss of a draw."""
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), self.settings.rate)
