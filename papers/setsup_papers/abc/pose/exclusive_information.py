"""Exclusive representations by mutual information: the second stage of Sanchez et al.

References
----------
.. [1] E. H. Sanchez, M. Serrurier, M. Ortner, "Learning disentangled representations via mutual information
   estimation", ECCV 2020 (arXiv 1912.03915), and a public reimplementation,
   github.com/MehdiZouitine/Learning-Disentangled-Representations-via-Mutual-Information-Estimation.

"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional

from setsup.checks import check_rates
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.minimise import minimise
from setsup.methods.networks.images import encode_images
from setsup_papers.abc.pose.baseline_settings import ExclusiveInformationSettings
from setsup_papers.abc.pose.information_networks import MapEncoder, StatisticsNetworks
from setsup_papers.abc.pose.mutual_information import check_networks, choose_network, information_losses
from setsup_papers.abc.pose.pairs import pair_images

__all__ = ["ExclusiveInformation"]

_SHARED = "encoders."
"""Prefix of the weights of a first stage's encoders."""


class ExclusiveInformation(LightningModule):
    """The second stage: codes of what an image has on its own, with the first stage's encoders as they are [1]_.

    For a pair x, y with shared codes s, exclusive codes e, and maps m of both encoders together, encoders and
    statistics networks minimise a sum over both images of the losses of I(m(x); s(y), e(x)), of whole maps and place by
    place, and of −log σ(D(s(y), e(x))). The discriminator D tells these from shared codes of another pair:
    −log(1 − σ(D(s(y), e(x)))) − log σ(D(s(y'), e(x))). A step trains the former, then D, each by Adam. The embedding is
    the exclusive code.

    Parameters
    ----------
    settings : ExclusiveInformationSettings
        Weights of the losses, and the learning rate; those of networks are not read.
    shared : one or two MapEncoder
        Of a run of :class:`~setsup_papers.abc.pose.SharedInformation`, which `load_initial` loads; they are not
        trained.
    encoders : as many MapEncoder
        Of exclusive codes.
    statistics : as many StatisticsNetworks
        For maps and codes of both.
    discriminators : as many nn.Module
        (n, shared + exclusive) float → (n, 1) logits.

    Raises
    ------
    SetsupError
        When there is another number of networks, or the rate is not above 0.

    """

    started: Tensor

    def __init__(
        self,
        settings: ExclusiveInformationSettings,
        shared: Sequence[MapEncoder],
        encoders: Sequence[MapEncoder],
        statistics: Sequence[StatisticsNetworks],
        discriminators: Sequence[nn.Module],
    ) -> None:
        super().__init__()
        check_rates(rate=settings.rate)
        check_networks(shared, encoders, statistics, discriminators)
        self.automatic_optimization = False
        self.shared = nn.ModuleList(shared).requires_grad_(False)
        self.encoders, self.statistics = nn.ModuleList(encoders), nn.ModuleList(statistics)
        self.discriminators = nn.ModuleList(discriminators)
        self.settings = settings
        self.register_buffer("started", torch.tensor(False))

    def embed(self, batch: Batch) -> Tensor:
        """Exclusive codes of a batch's images, (sets, size, d) float32."""
        return encode_images(lambda images: self.encoders[0](images)[0], batch["image"])

    def loss(self, batch: Batch) -> Tensor:
        """Compute the loss of encoders and statistics networks; its terms are logged.

        Parameters
        ----------
        batch : dict
            As for :meth:`setsup_papers.abc.pose.SharedInformation.loss`.

        Returns
        -------
        () float32

        Raises
        ------
        DataError
            When images are not such pairs.
        SetsupError
            Before :meth:`load_initial`.

        """
        return self._main_loss(*self._encode(batch))

    def training_step(self, batch: Batch, batch_idx: int) -> None:
        """A step of each optimiser; the losses are logged as ``loss`` and ``discriminator``."""
        maps, shared, exclusive = self._encode(batch)
        optimisers: Any = self.optimizers()
        training, discriminating = optimisers
        loss = self._main_loss(maps, shared, exclusive)
        minimise(self, training, loss)
        discriminator_loss = self._discriminator_loss(shared, [code.detach() for code in exclusive])
        minimise(self, discriminating, discriminator_loss)
        self.log("loss", loss)
        self.log("discriminator", discriminator_loss)

    def configure_optimizers(self) -> Any:
        """Adam for encoders and statistics networks, and for discriminators; rates are constant."""
        training = [*self.encoders.parameters(), *self.statistics.parameters()]
        discriminating = self.discriminators.parameters()
        return [fuse(torch.optim.Adam(weights, self.settings.rate)) for weights in (training, discriminating)]

    def load_initial(self, weights: Mapping[str, Tensor]) -> None:
        """Take the encoders of a run of the first stage, or all weights of a run of this method."""
        if any(name.startswith("shared.") for name in weights):
            self.load_state_dict(weights)
            return
        encoders = {name.removeprefix(_SHARED): value for name, value in weights.items() if name.startswith(_SHARED)}
        if not encoders:
            raise SetsupError(
                "the initial weights contain no shared encoders; pass --initial-run with a run of the first stage "
                "that has the same settings"
            )
        self.shared.load_state_dict(encoders)
        self.started.fill_(True)

    def _encode(self, batch: Batch) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Maps of both encoders together, shared and exclusive codes, of each image of pairs."""
        if not bool(self.started):
            raise SetsupError(
                "exclusive codes require the shared codes of a first stage; pass a run of that stage as --initial-run"
            )
        self.shared.eval()  # in training too, as published: their batch norms stay as they are
        maps, shared, exclusive = [], [], []
        for which, images in enumerate(pair_images(batch)):
            code, of_shared = choose_network(self.shared, which)(images)
            own, of_exclusive = choose_network(self.encoders, which)(images)
            maps.append(torch.cat([of_shared, of_exclusive], 1))
            shared.append(code)
            exclusive.append(own)
        return maps, shared, exclusive

    def _main_loss(self, maps: list[Tensor], shared: list[Tensor], exclusive: list[Tensor]) -> Tensor:
        codes = [torch.cat(both, 1) for both in zip(shared[::-1], exclusive, strict=True)]
        whole, places = information_losses(self.statistics, maps, codes)
        logits = [choose_network(self.discriminators, which)(code).float() for which, code in enumerate(codes)]
        independence = torch.stack([functional.softplus(-logit).mean() for logit in logits]).sum()
        for name, term in (("global", whole), ("local", places), ("independence", independence)):
            self.log(name, term)
        settings = self.settings
        information = settings.global_weight * whole + settings.local_weight * places
        return information + settings.independence_weight * independence

    def _discriminator_loss(self, shared: list[Tensor], exclusive: list[Tensor]) -> Tensor:
        terms = []
        for which, (code, own) in enumerate(zip(shared[::-1], exclusive, strict=True)):
            together = choose_network(self.discriminators, which)(torch.cat([code, own], 1)).float()
            apart = choose_network(self.discriminators, which)(torch.cat([code.roll(-1, 0), own], 1)).float()
            # softplus(x) and softplus(-x) are the cross-entropies with 0 and 1
            terms.append(functional.softplus(together).mean() + functional.softplus(-apart).mean())
        return self.settings.independence_weight * torch.stack(terms).sum()
