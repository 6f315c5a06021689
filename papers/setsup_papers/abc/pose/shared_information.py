"""Shared representations by mutual information: the first stage of Sanchez et al.

References
----------
.. [1] E. H. Sanchez, M. Serrurier, M. Ortner, "Learning disentangled representations via mutual information
   estimation", ECCV 2020 (arXiv 1912.03915), and a public reimplementation,
   github.com/MehdiZouitine/Learning-Disentangled-Representations-via-Mutual-Information-Estimation.

"""

from collections.abc import Sequence
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional

from setsup.checks import check_rates
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.minimise import log_loss
from setsup.methods.networks.images import encode_images
from setsup_papers.abc.pose.baseline_settings import SharedInformationSettings
from setsup_papers.abc.pose.information_networks import MapEncoder, StatisticsNetworks
from setsup_papers.abc.pose.mutual_information import check_networks, choose_network, information_losses
from setsup_papers.abc.pose.pairs import pair_images

__all__ = ["SharedInformation"]


class SharedInformation(LightningModule):
    """The first stage: codes of what the two images of a pair share [1]_.

    For a pair x, y of images of one set with codes s and maps m of the encoder, the loss is a sum over both images of
    the losses of cross mutual information I(m(x); s(y)), global (of whole maps) and local (place by place), and of the
    mean absolute difference of their codes. The product of marginals has maps of another pair. The embedding is the
    shared code.

    Parameters
    ----------
    settings : SharedInformationSettings
        Weights of the losses, and the learning rate; those of networks are not read.
    encoders : one or two MapEncoder
        For both images of a pair, or one for each, where pairs are of two domains; embeddings are those of the first.
    statistics : as many StatisticsNetworks
        For maps and codes of the encoders.

    Raises
    ------
    SetsupError
        When there is another number of networks, or the rate is not above 0.

    """

    def __init__(
        self,
        settings: SharedInformationSettings,
        encoders: Sequence[MapEncoder],
        statistics: Sequence[StatisticsNetworks],
    ) -> None:
        super().__init__()
        check_rates(rate=settings.rate)
        check_networks(encoders, statistics)
        self.encoders, self.statistics = nn.ModuleList(encoders), nn.ModuleList(statistics)
        self.settings = settings

    def embed(self, batch: Batch) -> Tensor:
        """Shared codes of a batch's images, (sets, size, d) float32."""
        return encode_images(lambda images: self.encoders[0](images)[0], batch["image"])

    def loss(self, batch: Batch) -> Tensor:
        """The losses of a batch's pairs; its terms are logged.

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
        encoded = [choose_network(self.encoders, which)(images) for which, images in enumerate(pair_images(batch))]
        codes, maps = zip(*encoded, strict=True)
        whole, places = information_losses(self.statistics, maps, codes[::-1])
        distance = functional.l1_loss(codes[0].float(), codes[1].float())
        for name, term in (("global", whole), ("local", places), ("distance", distance)):
            self.log(name, term)
        settings = self.settings
        information = settings.global_weight * whole + settings.local_weight * places
        return information + settings.distance_weight * distance

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """Adam with a constant rate."""
        return fuse(torch.optim.Adam(self.parameters(), self.settings.rate))
