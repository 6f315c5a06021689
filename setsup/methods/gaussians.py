"""Normal distributions with independent dimensions: codes of variational autoencoders.

References
----------
.. [1] D. Bouchacourt, R. Tomioka, S. Nowozin, "Multi-level variational autoencoder: learning disentangled
   representations from grouped observations", AAAI 2018 (arXiv 1705.08841).

"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from setsup.errors import DataError

__all__ = ["Gaussian", "gaussian_divergence", "gaussian_product"]


class Gaussian(NamedTuple):
    """Normal distributions with independent dimensions.

    Attributes
    ----------
    mean, log_variance : (n, d) float
        One row for each.

    """

    mean: Tensor
    log_variance: Tensor

    def sample(self, noise: float = 1.0) -> Tensor:
        """A sample of each, (n, d), with gradients for both; `noise` is in units of the standard deviation."""
        return self.mean + (self.log_variance / 2).exp() * noise * torch.randn_like(self.mean)


def gaussian_divergence(means: Tensor, log_variances: Tensor) -> Tensor:
    """Kullback-Leibler divergence of normal distributions with independent dimensions from the standard one.

    Parameters
    ----------
    means, log_variances : (..., d) float
        Of the distributions.

    Returns
    -------
    (...) float
        Nats.

    Examples
    --------
    >>> gaussian_divergence(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([12.5000])

    """
    return (means.square() + log_variances.exp() - 1 - log_variances).sum(-1) / 2


def gaussian_product(means: Tensor, log_variances: Tensor, groups: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Normal distribution of each group that is proportional to the product of its members' densities [1]_.

    Its precision is the sum of the members' precisions, and its mean their average weighted by precision.

    Parameters
    ----------
    means, log_variances : (n, d) float
        Of normal distributions with independent dimensions.
    groups : (n,) integers
        Group of each, from 0 to below `count`.
    count : int
        Groups, each of one member or more.

    Returns
    -------
    two of (count, d) float
        Means and log-variances.

    Raises
    ------
    DataError
        When the shapes disagree.

    Examples
    --------
    >>> means, variances = torch.tensor([[0.0], [4.0], [7.0]]), torch.tensor([[1.0], [3.0], [2.0]])
    >>> mean, log_variance = gaussian_product(means, variances.log(), torch.tensor([0, 0, 1]), 2)
    >>> mean.T, log_variance.exp().T
    (tensor([[1., 7.]]), tensor([[0.7500, 2.0000]]))

    """
    if means.ndim != 2 or means.shape != log_variances.shape or groups.shape != means.shape[:1]:
        raise DataError(
            "means and log-variances must have the shape (n, d), and groups the shape (n,), not "
            f"{tuple(means.shape)}, {tuple(log_variances.shape)} and {tuple(groups.shape)}"
        )
    member = groups == torch.arange(count, device=groups.device)[:, None]
    log_precision = torch.where(member[:, :, None], -log_variances, -math.inf).logsumexp(1)
    shares = (-log_variances - log_precision[groups]).exp()
    # as a product of matrices, since sums by index are not reproducible on a GPU
    return member.to(means.dtype) @ (shares * means), -log_precision
