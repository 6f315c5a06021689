"""The Ray cluster that runs units, and what a unit needs there."""

import math
from dataclasses import dataclass

from setsup.errors import SetsupError, abbreviate, advice

__all__ = ["Ray"]


@dataclass(frozen=True, slots=True)
class Ray:
    """A Ray cluster that runs and schedules units of work.

    Parameters
    ----------
    address : str, optional
        ``"host:port"`` of the cluster's head, ``"ray://host:port"`` of its client server, or ``"auto"`` for the cluster
        that this machine belongs to. By default ``RAY_ADDRESS`` if it is set, else a cluster of this machine alone,
        which starts and stops with the work.
    gpus : float
        GPUs per unit: a fraction such as 0.25, so that four units share one, or an integer.
    cpus : float
        CPU cores per unit, likewise.

    Raises
    ------
    SetsupError
        When a number is invalid.

    Examples
    --------
    >>> Ray("10.0.0.1:6379", gpus=0.25)
    Ray(address='10.0.0.1:6379', gpus=0.25, cpus=1.0)

    """

    address: str | None = None
    gpus: float = 0.0
    cpus: float = 1.0

    def __post_init__(self) -> None:
        for name in ("gpus", "cpus"):
            number = getattr(self, name)
            if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < math.inf:
                raise SetsupError(
                    f"{advice(name, f'--ray-{name}')} must be a finite, non-negative number, not {abbreviate(number)}"
                )
            if number > 1 and number != int(number):
                raise SetsupError(f"{advice(name, f'--ray-{name}')} must be below 1 or an integer, not {number}")
        if not self.cpus:
            raise SetsupError(
                f"{advice('cpus', '--ray-cpus')} must be above 0, because one machine would otherwise run all units "
                "at once; pass a small number, such as 0.1"
            )
