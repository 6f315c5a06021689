"""What a dataset is: a factor table plus a fetch.

Convention
----------
Images are uint8 (height, width, channels), row 0 at the top, with 1 (grey), 2 (red and green), 3 (sRGB) or 4 (sRGB and
alpha) channels as their modality declares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from setsup.checks import check_string, check_strings
from setsup.errors import DataError, brief, near
from setsup.factors.stored import check_rows
from setsup.factors.table import FactorTable
from setsup.files.mapped import check_mapped

if TYPE_CHECKING:
    from setsup.datasets.selections import Selection

__all__ = ["Dataset", "Modality", "fetch_request", "gather", "of_row"]

Array = npt.NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Modality:
    """One kind of array that a dataset fetches, described for a single row.

    Parameters
    ----------
    shape : tuple of int or None
        Shape of one row's array; None for a length that differs between rows.
    dtype : str
        Name that numpy knows: ``"uint8"``, ``"float32"``.
    unit : str
        ``"m"``, ``"rad"`` or nothing.
    color : str
        ``"srgb"``, ``"grey"``, ``"red-green"`` for pictures of two channels, or nothing for what is no picture.

    Raises
    ------
    DataError
        When numpy knows no such dtype, or a length is not positive.

    Examples
    --------
    >>> Modality((64, 64, 3), "uint8", color="srgb").shape
    (64, 64, 3)

    """

    shape: tuple[int | None, ...]
    dtype: str
    unit: str = ""
    color: str = ""

    def __post_init__(self) -> None:
        """Check the description and bring it into its one form, so that equal ones compare equal."""
        if not isinstance(self.shape, Sequence) or isinstance(self.shape, str | bytes):
            raise DataError(f"the shape of a modality must be a tuple, not {brief(self.shape)}")
        check_string(self.unit, "the unit of a modality", DataError)
        check_string(self.color, "the colour of a modality", DataError)
        shape = tuple(self.shape)
        if not all(size is None or (isinstance(size, int | np.integer) and size > 0) for size in shape):
            raise DataError(f"the shape of a modality must hold positive integers or None, not {shape}")
        object.__setattr__(self, "shape", tuple(None if size is None else int(size) for size in shape))
        try:
            object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        except (TypeError, ValueError):
            raise DataError(f"a modality's dtype must be a name that numpy knows, not {brief(self.dtype)}") from None


@runtime_checkable
class Dataset(Protocol):
    """Factors of every sample, and arrays of any samples.

    A class that names this one as its base inherits ``where``, ``select`` and ``len``; any other class with the same
    members is a dataset as well. ``fetch`` and ``fetch_into`` may be called from several threads at once, a loader's
    thread and whoever waits for it, so what they share (an open file, a cache) needs a lock. They may be called in
    processes that were forked or that received the dataset by pickle: files are opened on first use, in each process
    anew.

    Attributes
    ----------
    name : str
        What it is called in messages, captions and reports.
    factors : FactorTable
        The value of every factor for every row.
    modalities : mapping of str to Modality
        What ``fetch`` can give.

    Notes
    -----
    A dataset whose ``fetch`` decodes or renders, rather than copies, may say so with an attribute ``computes = True``:
    a loader then gives it worker processes, which for copies would cost more than they bring.

    Examples
    --------
    >>> from setsup.factors import Factor, FactorTable, Kind
    >>> class Sums(Dataset):
    ...     name = "sums"
    ...     factors = FactorTable([Factor("a", Kind.ORDINAL, (0, 1)), Factor("b", Kind.ORDINAL, (0, 1, 2))])
    ...     modalities = {"sum": Modality((), "int64")}
    ...     def fetch(self, indices, modalities=None):
    ...         rows, names = fetch_request(self, indices, modalities)
    ...         return {name: self.factors.values("a", rows) + self.factors.values("b", rows) for name in names}
    >>> sums = Sums()
    >>> sums.fetch([[0, 1], [4, 5]])["sum"].tolist()
    [[0, 1], [2, 3]]
    >>> odd = sums.select([5, 3, 1])
    >>> len(odd), odd.fetch(0)["sum"].item(), odd.factors.row(0)
    (3, 3, {'a': 1, 'b': 2})

    """

    name: str
    factors: FactorTable
    modalities: Mapping[str, Modality]

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows.

        Parameters
        ----------
        indices : integer array of any shape
            Row numbers; they may repeat and come in any order.
        modalities : iterable of str, optional
            Which modalities to give; all by default.

        Returns
        -------
        dict of str to array of shape ``indices.shape + modality.shape``

        Raises
        ------
        RowError
            When a row number is out of range.
        DataError
            When there is no such modality, or a file is damaged.

        """
        ...

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Write modalities of the given rows into arrays, which spares fresh memory for every batch.

        Several threads at once may call it, each with arrays of its own.

        Parameters
        ----------
        indices : integer array of any shape
            Row numbers.
        out : mapping of str to array
            For each wanted modality where its rows go, of the shape ``indices.shape + modality.shape``.

        """
        for name, array in self.fetch(indices, tuple(out)).items():
            out[name][...] = array

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.factors)

    def where(self, expression: str) -> "Selection":
        """Rows for which an expression such as ``"digit != 9"`` holds, as a dataset numbered from 0."""
        from setsup.datasets.selections import Selection

        return Selection(self, self.factors.rows(expression))

    def select(self, rows: npt.ArrayLike) -> "Selection":
        """Make a dataset of the given rows, in their order and numbered from 0.

        Parameters
        ----------
        rows : (n,) integer array
            Row numbers; they may repeat.

        """
        from setsup.datasets.selections import Selection

        return Selection(self, rows)

    def rename(self, names: Mapping[str, str]) -> "Selection":
        """Make a dataset of the same rows in which some factors have other names.

        Parameters
        ----------
        names : mapping of str to str
            New names by old ones: ``{"age (years)": "age"}``.

        """
        from setsup.datasets.selections import Selection

        return Selection(self, np.arange(len(self)), self.factors.rename(names))


def of_row(method: F) -> F:
    """Mark a method of a dataset whose first argument is a row or rows, so that selections renumber it.

    Examples
    --------
    >>> from setsup.factors import FactorTable
    >>> class Words(Dataset):
    ...     name, modalities = "words", {}
    ...     factors = FactorTable.from_values({"word": ["one", "two", "three"]})
    ...     def fetch(self, indices, modalities=None):
    ...         return {}
    ...     @of_row
    ...     def length(self, row):
    ...         return len(self.factors.values("word", row).item())
    >>> Words().where("word == 'three'").length(0)
    5

    """
    method.of_row = True  # type: ignore[attr-defined]
    return method


def fetch_request(
    dataset: Dataset, indices: npt.ArrayLike, modalities: Iterable[str] | None
) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Check the arguments of a ``fetch``.

    Parameters
    ----------
    dataset : Dataset
        Whose ``fetch`` was called.
    indices : integer array of any shape
        Row numbers.
    modalities : iterable of str or None
        Names of modalities; None for all.

    Returns
    -------
    rows : int64, same shape
        The row numbers, each in 0 … len(dataset) − 1.
    names : tuple of str
        The modalities to give, without repeats.

    Raises
    ------
    RowError
        When a row number is out of range, or no integer.
    DataError
        When the dataset has no such modality.

    """
    rows = check_rows(indices, len(dataset))
    if modalities is None:
        return rows, tuple(dataset.modalities)
    if isinstance(modalities, str):
        raise DataError(f"modalities must be a list of names, such as [{modalities!r}], not the text {modalities!r}")
    names = tuple(dict.fromkeys(check_strings(modalities, "modalities", DataError)))
    for name in names:
        if name not in dataset.modalities:
            raise DataError(f"{dataset.name} has no modality {name!r}{near(name, dataset.modalities)}")
    return rows, names


def gather(array: Array, rows: npt.NDArray[np.int64], out: Array | None = None) -> Array:
    """Copy rows out of an array in memory or mapped from a file.

    Parameters
    ----------
    array : (n, ...) array
        Where the rows lie.
    rows : integer array of any shape
        Row numbers that :func:`fetch_request` has checked.
    out : array, optional
        Where to put the copies, of the result's shape and dtype.

    Returns
    -------
    array of shape ``rows.shape + array.shape[1:]`` and the dtype of ``array``

    Raises
    ------
    DataError
        When the file was cut off since it was mapped.

    Examples
    --------
    >>> gather(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]

    """
    check_mapped(array)
    # the rows are in range already; "clip" spares numpy a second look at them
    return np.asarray(np.asarray(array).take(rows, axis=0, out=out, mode="clip"))
