"""Features of a pretrained network as embeddings, without training.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, table 1.

"""

from collections.abc import Mapping

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from setsup.loading.batch import Batch
from setsup.methods.networks.images import OverImages
from setsup_papers.abc.resnet_v2 import load_trunk

__all__ = ["PretrainedFeatures"]


class PretrainedFeatures(LightningModule):
    """A frozen encoder: the only step of a run stores its initial weights [1]_.

    Parameters
    ----------
    encoder : OverImages
        (..., C, H, W) uint8 or float in [0, 1] → (..., d) float.

    """

    def __init__(self, encoder: OverImages) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.encoder = encoder.requires_grad_(False)

    def embed(self, batch: Batch) -> Tensor:
        """Features of a batch's images, (sets, size, d) float32."""
        features: Tensor = self.encoder(batch["image"])
        return features.float()

    def training_step(self, batch: Batch, batch_idx: int) -> None:
        """Train nothing."""
        self.log("loss", torch.zeros(()))

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """No optimiser."""
        return []

    def load_initial(self, weights: Mapping[str, Tensor]) -> None:
        """Start from weights of Keras' ResNet50V2, where the encoder has one, or from all of this method's weights."""
        load_trunk(self, weights)
