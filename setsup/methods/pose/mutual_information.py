"""Shared and exclusive representations by mutual information, in two stages (Sanchez et al.).

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
from setsup.errors import DataError, SetsupError
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.networks.images import unit_range
from setsup.methods.networks.mutual_information import MapEncoder, StatisticsNetworks
from setsup.methods.pose.pairs import pair_images

__all__ = ["ExclusiveInformation", "SharedInformation", "jensen_shannon_loss"]

_SHARED = "encoders."


def jensen_shannon_loss(joint: Tensor, marginal: Tensor) -> Tensor:
    """Negative Jensen-Shannon estimate of mutual information: mean softplus(−T) + mean softplus(T') [1]_.

    Parameters
    ----------
    joint, marginal : (...) float
        Statistics T of samples of the joint distribution, and T' of the product of its marginals.

    Returns
    -------
    () float, nats
        2 ln 2 where nothing is told apart; its minimum over T is 2 ln 2 − 2 JSD.

    Raises
    ------
    DataError
        When there are none.

    Examples
    --------
    >>> jensen_shannon_loss(torch.zeros(3), torch.zeros(5))
    tensor(1.3863)

    """
    if not joint.numel() or not marginal.numel():
        raise DataError("mutual information is estimated from one statistic or more of each kind, and there are none")
    return functional.softplus(-joint).mean() + functional.softplus(marginal).mean()


class SharedInformation(LightningModule):
    """The first stage: codes of what the two images of a pair share [1]_.

    For a pair x, y of images of one set with codes s and maps m of the encoder, the loss is a sum over both images of
    the losses of cross mutual information I(m(x); s(y)), global (of whole maps) and local (place by place), and of the
    mean absolute difference of their codes. The product of marginals has maps of another pair. The embedding is the
    shared code.

    Parameters
    ----------
    encoders : one or two MapEncoder
        For both images of a pair, or one for each, where pairs are of two domains; embeddings are those of the first.
    statistics : as many StatisticsNetworks
        For maps and codes of the encoders.
    global_weight, local_weight, distance_weight : float
        Of the three losses.
    rate : float
        Learning rate of Adam.

    Raises
    ------
    SetsupError
        When there is another number of networks, or the rate is not above 0.

    """

    def __init__(
        self,
        encoders: Sequence[MapEncoder],
        statistics: Sequence[StatisticsNetworks],
        *,
        global_weight: float = 0.5,
        local_weight: float = 1.0,
        distance_weight: float = 0.1,
        rate: float = 1e-4,
    ) -> None:
        super().__init__()
        check_rates(rate=rate)
        _check_networks(encoders, statistics)
        self.encoders, self.statistics = nn.ModuleList(encoders), nn.ModuleList(statistics)
        self.global_weight, self.local_weight, self.distance_weight = global_weight, local_weight, distance_weight
        self.rate = rate

    def embed(self, batch: Batch) -> Tensor:
        """Shared codes of a batch's images, (sets, size, d) float32."""
        return _embed(self.encoders[0], batch)

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
            When images are no such pairs.

        """
        encoded = [_of(self.encoders, place)(images) for place, images in enumerate(pair_images(batch))]
        codes, maps = zip(*encoded, strict=True)
        whole, places = _information(self.statistics, maps, codes[::-1])
        distance = functional.l1_loss(codes[0].float(), codes[1].float())
        for name, term in (("global", whole), ("local", places), ("distance", distance)):
            self.log(name, term)
        return self.global_weight * whole + self.local_weight * places + self.distance_weight * distance

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a step, logged as ``loss``."""
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        """Adam with a constant rate."""
        return fuse(torch.optim.Adam(self.parameters(), self.rate))


class ExclusiveInformation(LightningModule):
    """The second stage: codes of what an image has on its own, with the first stage's encoders as they are [1]_.

    For a pair x, y with shared codes s, exclusive codes e, and maps m of both encoders together, encoders and
    statistics networks minimise a sum over both images of the losses of I(m(x); s(y), e(x)), of whole maps and place by
    place, and of −log σ(D(s(y), e(x))). The discriminator D tells these from shared codes of another pair:
    −log(1 − σ(D(s(y), e(x)))) − log σ(D(s(y'), e(x))). A step trains the former, then D, each by Adam. The embedding is
    the exclusive code.

    Parameters
    ----------
    shared : one or two MapEncoder
        Of a run of :class:`SharedInformation`, which `load_initial` loads; they are not trained.
    encoders : as many MapEncoder
        Of exclusive codes.
    statistics : as many StatisticsNetworks
        For maps and codes of both.
    discriminators : as many nn.Module
        (n, shared + exclusive) float → (n, 1) logits.
    global_weight, local_weight, independence_weight : float
        Of the three losses.
    rate : float
        Learning rate.

    Raises
    ------
    SetsupError
        When there is another number of networks, or the rate is not above 0.

    """

    started: Tensor

    def __init__(
        self,
        shared: Sequence[MapEncoder],
        encoders: Sequence[MapEncoder],
        statistics: Sequence[StatisticsNetworks],
        discriminators: Sequence[nn.Module],
        *,
        global_weight: float = 0.5,
        local_weight: float = 1.0,
        independence_weight: float = 0.1,
        rate: float = 1e-4,
    ) -> None:
        super().__init__()
        check_rates(rate=rate)
        _check_networks(shared, encoders, statistics, discriminators)
        self.automatic_optimization = False
        self.shared = nn.ModuleList(shared).requires_grad_(False)
        self.encoders, self.statistics = nn.ModuleList(encoders), nn.ModuleList(statistics)
        self.discriminators = nn.ModuleList(discriminators)
        self.global_weight, self.local_weight = global_weight, local_weight
        self.independence_weight, self.rate = independence_weight, rate
        self.register_buffer("started", torch.tensor(False))

    def embed(self, batch: Batch) -> Tensor:
        """Exclusive codes of a batch's images, (sets, size, d) float32."""
        return _embed(self.encoders[0], batch)

    def loss(self, batch: Batch) -> Tensor:
        """What encoders and statistics networks minimise; its terms are logged.

        Parameters
        ----------
        batch : dict
            As for :meth:`SharedInformation.loss`.

        Returns
        -------
        () float32

        Raises
        ------
        DataError
            When images are no such pairs.
        SetsupError
            Before :meth:`load_initial`.

        """
        return self._main_loss(*self._encode(batch))

    def training_step(self, batch: Batch, batch_idx: int) -> None:
        """A step of each optimiser; the losses are logged as ``loss`` and ``discriminator``."""
        maps, shared, exclusive = self._encode(batch)
        optimisers: Any = self.optimizers()
        training, discriminating = optimisers
        training.zero_grad()
        loss = self._main_loss(maps, shared, exclusive)
        self.manual_backward(loss)
        training.step()
        discriminating.zero_grad()
        found = self._discriminator_loss(shared, [one.detach() for one in exclusive])
        self.manual_backward(found)
        discriminating.step()
        self.log("loss", loss)
        self.log("discriminator", found)

    def configure_optimizers(self) -> Any:
        """Adam for encoders and statistics networks, and for discriminators; rates are constant."""
        training = [*self.encoders.parameters(), *self.statistics.parameters()]
        return [fuse(torch.optim.Adam(some, self.rate)) for some in (training, self.discriminators.parameters())]

    def load_initial(self, weights: Mapping[str, Tensor]) -> None:
        """Take the encoders of a run of :class:`SharedInformation`, or all weights of a run of this method."""
        if not any(name.startswith("shared.") for name in weights):
            found = {name.removeprefix(_SHARED): one for name, one in weights.items() if name.startswith(_SHARED)}
            if not found:
                raise SetsupError(
                    "the weights have no shared encoders: name a run of the first stage, of the same settings, as "
                    "--initial-run"
                )
            self.shared.load_state_dict(found)
            self.started.fill_(True)
            return
        self.load_state_dict(weights)

    def _encode(self, batch: Batch) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Maps of both encoders together, shared and exclusive codes, of each image of pairs."""
        if not bool(self.started):
            raise SetsupError(
                "exclusive codes are trained beside the shared ones of a first stage: name its run, as --initial-run"
            )
        self.shared.eval()  # in training too, as published: their batch norms stay as they are
        maps, shared, exclusive = [], [], []
        for place, images in enumerate(pair_images(batch)):
            code, of_shared = _of(self.shared, place)(images)
            own, of_exclusive = _of(self.encoders, place)(images)
            maps.append(torch.cat([of_shared, of_exclusive], 1))
            shared.append(code)
            exclusive.append(own)
        return maps, shared, exclusive

    def _main_loss(self, maps: list[Tensor], shared: list[Tensor], exclusive: list[Tensor]) -> Tensor:
        codes = [torch.cat(both, 1) for both in zip(shared[::-1], exclusive, strict=True)]
        whole, places = _information(self.statistics, maps, codes)
        logits = [_of(self.discriminators, place)(one).float() for place, one in enumerate(codes)]
        independence = torch.stack([functional.softplus(-one).mean() for one in logits]).sum()
        for name, term in (("global", whole), ("local", places), ("independence", independence)):
            self.log(name, term)
        return self.global_weight * whole + self.local_weight * places + self.independence_weight * independence

    def _discriminator_loss(self, shared: list[Tensor], exclusive: list[Tensor]) -> Tensor:
        terms = []
        for place, (code, own) in enumerate(zip(shared[::-1], exclusive, strict=True)):
            together = _of(self.discriminators, place)(torch.cat([code, own], 1)).float()
            apart = _of(self.discriminators, place)(torch.cat([code.roll(-1, 0), own], 1)).float()
            # softplus(x) and softplus(-x) are the cross-entropies with 0 and 1
            terms.append(functional.softplus(together).mean() + functional.softplus(-apart).mean())
        return self.independence_weight * torch.stack(terms).sum()


def _information(statistics: nn.ModuleList, maps: Sequence[Tensor], codes: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Losses of mutual information of whole maps and of places, each summed over both images of pairs."""
    whole, places = [], []
    for place, (own, code) in enumerate(zip(maps, codes, strict=True)):
        joint = _of(statistics, place)(own, code)
        marginal = _of(statistics, place)(own.roll(-1, 0), code)
        whole.append(jensen_shannon_loss(joint[0], marginal[0]))
        places.append(jensen_shannon_loss(joint[1], marginal[1]))
    return torch.stack(whole).sum(), torch.stack(places).sum()


def _of(networks: nn.ModuleList, place: int) -> nn.Module:
    """The network for the first or the second image of pairs, which may be one."""
    return networks[place % len(networks)]


def _embed(encoder: nn.Module, batch: Batch) -> Tensor:
    images = batch["image"]
    found: Tensor = encoder(unit_range(images.reshape(-1, *images.shape[-3:])))[0]
    return found.float().reshape(*images.shape[:-3], -1)


def _check_networks(*networks: Sequence[Any]) -> None:
    counts = [len(some) for some in networks]
    if counts[0] not in (1, 2) or len(set(counts)) > 1:
        raise SetsupError(f"networks are one for both images of a pair, or one for each, of every kind, not {counts}")
