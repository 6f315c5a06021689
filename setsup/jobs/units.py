"""A unit of work: what to do, not where."""

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Data", "Unit"]

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class Unit(Generic[Data]):
    """One piece of the work.

    Parameters
    ----------
    name : str
        Its name in messages, such as ``"rows 0 … 63"``.
    data : any
        The argument of the function; must be picklable.
    size : int
        Its share of the work, for the progress bar.

    """

    name: str
    data: Data
    size: int = 1
