"""Learning-rate schedules as settings: pure functions of a step, whose values are shares of the optimiser's rate."""

import math
from dataclasses import asdict, dataclass
from typing import Protocol

from setsup.errors import SetsupError
from setsup.experiments.settings import check

__all__ = ["Constant", "OneCycle", "Schedule", "StepDecay", "WarmupCosine"]


class Schedule(Protocol):
    """A learning-rate schedule as settings; another one is any frozen dataclass with these members.

    Steps are counted from 0.
    """

    @property
    def needs_total(self) -> bool:
        """Whether its values depend on the total number of steps, so that a longer run is another one."""

    def scale_at(self, step: int, total: int) -> float:
        """Learning rate of a step, as a share of the optimiser's; `total` is 0 where unknown and not needed."""

    def momentum_at(self, step: int, total: int) -> float | None:
        """Momentum of a step, the first β of Adam; None where the optimiser's is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A constant learning rate."""

    @property
    def needs_total(self) -> bool:
        """False."""
        return False

    def scale_at(self, step: int, total: int) -> float:
        """1."""
        return 1.0

    def momentum_at(self, step: int, total: int) -> float | None:
        """None: the optimiser's is kept."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecay:
    """Multiplies the learning rate by a factor, at regular or given steps.

    Attributes
    ----------
    factor : float
        Factor of each decay; above 0.
    every : int, optional
        Number of steps between decays, as in :class:`torch.optim.lr_scheduler.StepLR`.
    at : tuple of int
        Steps at which the rate decays, as in :class:`torch.optim.lr_scheduler.MultiStepLR`; instead of `every`.

    Raises
    ------
    SetsupError
        When a value is out of range, or not exactly one of `every` and `at` is given.

    Examples
    --------
    >>> from setsup.experiments.optimisation import StepDecay
    >>> halved = StepDecay(factor=0.5, every=10)
    >>> [halved.scale_at(step, 0) for step in (9, 10, 25)]
    [1.0, 0.5, 0.25]

    """

    factor: float = 0.1
    every: int | None = None
    at: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check them."""
        check(self, asdict(self))
        if not (math.isfinite(self.factor) and self.factor > 0):
            raise SetsupError(f"factor of StepDecay must be above 0, not {self.factor}")
        if (self.every is None) is (not self.at):
            raise SetsupError("StepDecay requires either every=N or at=(N, …), the steps at which the rate decays")
        if any(step < 1 for step in (*self.at, *(() if self.every is None else (self.every,)))):
            raise SetsupError(f"StepDecay must decay at step 1 or later, not at {self.at or self.every}")

    @property
    def needs_total(self) -> bool:
        """False."""
        return False

    def scale_at(self, step: int, total: int) -> float:
        """The factor to the power of the decays so far."""
        decays = sum(step >= boundary for boundary in self.at) if self.every is None else step // self.every
        return float(self.factor**decays)

    def momentum_at(self, step: int, total: int) -> float | None:
        """None: the optimiser's is kept."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupCosine:
    """Raises the learning rate linearly, then lowers it along half a cosine.

    These are :class:`torch.optim.lr_scheduler.LinearLR` and ``CosineAnnealingLR``, one after the other.

    Attributes
    ----------
    warmup : float
        Share of all steps, from 0 to below 1, in which the rate rises; 0 for a cosine without warm-up.
    start, end : float
        First and last rate, as shares of the optimiser's.

    Raises
    ------
    SetsupError
        When a value is out of range.

    Examples
    --------
    >>> from setsup.experiments.optimisation import WarmupCosine
    >>> schedule = WarmupCosine(warmup=0.1, start=0.0)
    >>> [round(schedule.scale_at(step, 100), 3) for step in (0, 5, 10, 55, 99)]
    [0.0, 0.5, 1.0, 0.5, 0.0]

    """

    warmup: float = 0.0
    start: float = 0.01
    end: float = 0.0

    def __post_init__(self) -> None:
        """Check them."""
        check(self, asdict(self))
        _need_shares(type(self).__name__, self.warmup, self.start, self.end)

    @property
    def needs_total(self) -> bool:
        """True."""
        return True

    def scale_at(self, step: int, total: int) -> float:
        """Along a line, then along half a cosine."""
        peak = self.warmup * total
        if step < peak:
            return self.start + (1 - self.start) * step / peak
        return _cosine(1.0, self.end, _share(step, peak, total))

    def momentum_at(self, step: int, total: int) -> float | None:
        """None: the optimiser's is kept."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCycle:
    """Raises the learning rate to the optimiser's and lowers it, while the momentum does the opposite.

    Both follow cosines, as in :class:`torch.optim.lr_scheduler.OneCycleLR`, whose ``max_lr`` is here the optimiser's
    rate. The momentum is the first β of Adam; it is cycled too, unless ``momentum=()``, and the optimiser's is then not
    used.

    Attributes
    ----------
    warmup : float
        Share of all steps, from 0 to below 1, in which the rate rises.
    start, end : float
        First and last rate, as shares of the optimiser's.
    momentum : (float, float) or ()
        Momentum at the highest rate, and at the first and last step; empty to keep the optimiser's.

    Raises
    ------
    SetsupError
        When a value is out of range.

    Examples
    --------
    >>> from setsup.experiments.optimisation import OneCycle
    >>> schedule = OneCycle(warmup=0.1)
    >>> [round(schedule.scale_at(step, 1_000), 2) for step in (0, 99, 500, 999)]
    [0.04, 1.0, 0.59, 0.0]
    >>> [round(schedule.momentum_at(step, 1_000), 2) for step in (0, 99, 999)]
    [0.95, 0.85, 0.95]

    """

    warmup: float = 0.3
    start: float = 0.04
    end: float = 4e-6
    momentum: tuple[float, ...] = (0.85, 0.95)

    def __post_init__(self) -> None:
        """Check them."""
        check(self, asdict(self))
        _need_shares(type(self).__name__, self.warmup, self.start, self.end)
        if len(self.momentum) not in (0, 2) or not all(0 <= bound < 1 for bound in self.momentum):
            raise SetsupError(
                f"momentum of OneCycle must be () or two numbers, at least 0 and below 1, not {self.momentum}"
            )

    @property
    def needs_total(self) -> bool:
        """True."""
        return True

    def scale_at(self, step: int, total: int) -> float:
        """Along a cosine up, and along one down."""
        return self._at(step, total, self.start, 1.0, self.end)

    def momentum_at(self, step: int, total: int) -> float | None:
        """Along a cosine down, and along one up."""
        if not self.momentum:
            return None
        least, most = self.momentum
        return self._at(step, total, most, least, most)

    def _at(self, step: int, total: int, first: float, middle: float, last: float) -> float:
        turn = self.warmup * total - 1  # as torch has it
        if step < turn:
            return _cosine(first, middle, step / turn)
        return _cosine(middle, last, _share(step, turn, total - 1))


def _cosine(first: float, last: float, share: float) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * share)) / 2


def _share(step: float, first: float, last: float) -> float:
    """How far a step is between two, at most 1."""
    return min(1.0, (step - first) / (last - first)) if last > first else 1.0


def _need_shares(name: str, warmup: float, *rates: float) -> None:
    if not 0 <= warmup < 1:
        raise SetsupError(f"warmup of {name} must be a fraction of all steps, at least 0 and below 1, not {warmup}")
    if not all(math.isfinite(rate) and rate >= 0 for rate in rates):
        raise SetsupError(
            f"the first and last rates of {name} must be fractions of the optimiser's rate, 0 or more, not {rates}"
        )
