"""Optimisers as settings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from setsup.errors import SetsupError
from setsup.experiments.settings import check

if TYPE_CHECKING:
    import torch

__all__ = ["SGD", "Adam", "AdamW", "Optimiser"]


class Optimiser(Protocol):
    """An optimiser as settings; another one is any frozen dataclass with these two methods."""

    def options(self) -> Mapping[str, Any]:
        """Options of a parameter group, by torch's names; ``lr`` is the learning rate that schedules scale."""

    def build(self, groups: Sequence[Mapping[str, Any]]) -> "torch.optim.Optimizer":
        """Build torch's optimiser of some parameter groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adam:
    """Adam; see :class:`torch.optim.Adam`.

    Attributes
    ----------
    rate : float
        Learning rate, 0 or more; a schedule scales it.
    betas : (float, float)
        Decay rates of the running averages of the gradient and of its square.
    eps : float
        Term added to the denominator for numerical stability.
    weight_decay : float
        Coefficient of the weight decay (L2 penalty).

    Raises
    ------
    SetsupError
        When a value is out of range.

    Examples
    --------
    >>> from setsup.experiments.optimisation import Adam
    >>> Adam(rate=3e-5, eps=1e-7).options()
    {'lr': 3e-05, 'betas': (0.9, 0.999), 'eps': 1e-07, 'weight_decay': 0.0}

    """

    rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Check them."""
        check(self, asdict(self))
        _need_positive(self, "rate", "eps", "weight_decay")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise SetsupError(f"betas of {type(self).__name__} must be at least 0 and below 1, not {self.betas}")

    def options(self) -> dict[str, Any]:
        """Options of a parameter group, by torch's names."""
        return {"lr": self.rate, "betas": self.betas, "eps": self.eps, "weight_decay": self.weight_decay}

    def build(self, groups: Sequence[Mapping[str, Any]]) -> "torch.optim.Optimizer":
        """Build torch's Adam."""
        from torch.optim import Adam as Built

        from setsup.methods.fused import fuse

        return fuse(Built(list(map(dict, groups))))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW(Adam):
    """Adam with decoupled weight decay; see :class:`torch.optim.AdamW`.

    Attributes
    ----------
    weight_decay : float
        Coefficient of the decoupled weight decay, which is multiplied by the learning rate.

    """

    weight_decay: float = 0.01

    def build(self, groups: Sequence[Mapping[str, Any]]) -> "torch.optim.Optimizer":
        """Build torch's AdamW."""
        from torch.optim import AdamW as Built

        from setsup.methods.fused import fuse

        return fuse(Built(list(map(dict, groups))))


@dataclass(frozen=True, slots=True, kw_only=True)
class SGD:
    """Stochastic gradient descent; see :class:`torch.optim.SGD`.

    Attributes
    ----------
    rate : float
        Learning rate, 0 or more; a schedule scales it.
    momentum : float
        Momentum, at least 0 and below 1.
    nesterov : bool
        Whether to use Nesterov momentum.
    weight_decay : float
        Coefficient of the weight decay (L2 penalty).

    Raises
    ------
    SetsupError
        When a value is out of range.

    """

    rate: float
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Check them."""
        check(self, asdict(self))
        _need_positive(self, "rate", "weight_decay")
        if not 0 <= self.momentum < 1:
            raise SetsupError(f"momentum of SGD must be at least 0 and below 1, not {self.momentum}")
        if self.nesterov and self.momentum == 0:
            raise SetsupError("Nesterov momentum requires momentum > 0; set momentum, or nesterov=False")

    def options(self) -> dict[str, Any]:
        """Options of a parameter group, by torch's names."""
        return {
            "lr": self.rate,
            "momentum": self.momentum,
            "nesterov": self.nesterov,
            "weight_decay": self.weight_decay,
        }

    def build(self, groups: Sequence[Mapping[str, Any]]) -> "torch.optim.Optimizer":
        """Build torch's SGD."""
        from torch.optim import SGD as Built

        from setsup.methods.fused import fuse

        return fuse(Built(list(map(dict, groups))))


def _need_positive(settings: Any, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if not (math.isfinite(value) and value >= 0):
            raise SetsupError(f"{name} of {type(settings).__name__} must be 0 or more, not {value}")
