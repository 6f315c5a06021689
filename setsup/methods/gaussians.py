"""Normal distributions with independent dimensions: codes of variational autoencoders."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Gaussian", "gaussian_divergence"]


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
