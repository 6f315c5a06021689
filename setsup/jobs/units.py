"""A unit of work: what is to be done, not where."""

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
        What messages call it, such as ``"rows 0 … 63"``.
    data : any
        What the function is given; it can be pickled.
    size : int
        How much of the work it is, for the progress bar.

    """

    name: str
    data: Data
    size: int = 1
