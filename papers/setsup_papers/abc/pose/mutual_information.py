"""Losses of mutual information, which both stages of Sanchez et al. minimise.

References
----------
.. [1] E. H. Sanchez, M. Serrurier, M. Ortner, "Learning disentangled representations via mutual information
   estimation", ECCV 2020 (arXiv 1912.03915), and a public reimplementation,
   github.com/MehdiZouitine/Learning-Disentangled-Representations-via-Mutual-Information-Estimation.

"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import DataError, SetsupError

__all__ = ["check_networks", "choose_network", "information_losses", "jensen_shannon_loss"]


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
        raise DataError("joint and marginal must each contain at least one statistic")
    return functional.softplus(-joint).mean() + functional.softplus(marginal).mean()


def information_losses(
    statistics: nn.ModuleList, maps: Sequence[Tensor], codes: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Losses of mutual information of whole maps and of places, each summed over both images of pairs."""
    whole, places = [], []
    for which, (own, code) in enumerate(zip(maps, codes, strict=True)):
        joint = choose_network(statistics, which)(own, code)
        marginal = choose_network(statistics, which)(own.roll(-1, 0), code)
        whole.append(jensen_shannon_loss(joint[0], marginal[0]))
        places.append(jensen_shannon_loss(joint[1], marginal[1]))
    return torch.stack(whole).sum(), torch.stack(places).sum()


def choose_network(networks: nn.ModuleList, place: int) -> nn.Module:
    """The network for the first or the second image of pairs, which may be one."""
    return networks[place % len(networks)]


def check_networks(*networks: Sequence[nn.Module]) -> None:
    """Check that there are as many networks of every kind, one or two."""
    counts = [len(some) for some in networks]
    if counts[0] not in (1, 2) or len(set(counts)) > 1:
        raise SetsupError(
            "the lists of networks must have the same length, either 1 (for both images of a pair) or 2 (one per "
            f"image), not {' and '.join(map(str, counts))}"
        )
