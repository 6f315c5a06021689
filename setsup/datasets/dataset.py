"""What a dataset is: a factor table plus a fetch; and the two ways to make one of others, choosing rows and joining.

Convention
----------
Images are uint8 (height, width, channels), row 0 at the top, with 1 (grey), 3 (sRGB) or 4 (sRGB and alpha) channels
as their modality declares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, RowError, near
from setsup.factors.stored import check_rows
from setsup.factors.table import FactorTable

__all__ = ["Concat", "Dataset", "Modality", "Selection", "concat", "fetch_request", "gather", "of_row"]

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
        ``"srgb"``, ``"grey"``, or nothing for what is no picture.

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
        shape = tuple(self.shape)
        if not all(size is None or (isinstance(size, int | np.integer) and size > 0) for size in shape):
            raise DataError(f"the shape of a modality must hold positive integers or None, not {shape}")
        object.__setattr__(self, "shape", tuple(None if size is None else int(size) for size in shape))
        try:
            object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        except TypeError:
            raise DataError(f"a modality's dtype must be a name that numpy knows, not {self.dtype!r}") from None


@runtime_checkable
class Dataset(Protocol):
    """Factors of every sample, and arrays of any samples.

    A class that names this one as its base inherits ``where``, ``select`` and ``len``; any other class with the same
    members is a dataset as well. ``fetch`` may be called from several threads at once, and in processes that were
    forked or that received the dataset by pickle: files are opened on first use, in each process anew.

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
        return Selection(self, self.factors.rows(expression))

    def select(self, rows: npt.ArrayLike) -> "Selection":
        """Make a dataset of the given rows, in their order and numbered from 0.

        Parameters
        ----------
        rows : (n,) integer array
            Row numbers; they may repeat.

        """
        return Selection(self, rows)


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


class Selection(Dataset):
    """Some rows of a dataset, renumbered; a selection of a selection refers to the first dataset directly.

    What the dataset has beside the protocol, such as ``mesh(row)`` or ``classes``, a selection has as well; methods
    that :func:`of_row` marks take the row numbers of the selection.

    Parameters
    ----------
    source : Dataset
        Where the rows come from.
    rows : (n,) integer array
        Row numbers of the source, in any order; they may repeat.
    factors : FactorTable, optional
        Table of these rows in place of the source's own, such as one with another split.

    Attributes
    ----------
    source : Dataset
        The dataset that holds the rows, never itself a selection.
    rows : (n,) int64
        For each row here its number in ``source``.

    Raises
    ------
    RowError
        When a row number is out of range, or the rows are not a plain list of integers.

    """

    def __init__(self, source: Dataset, rows: npt.ArrayLike, factors: FactorTable | None = None) -> None:
        index = check_rows(rows, len(source))
        if index.ndim != 1:
            raise RowError(f"rows to select must have one axis, not the shape {index.shape}")
        if factors is not None and len(factors) != len(index):
            raise DataError(f"the table of a selection of {len(index):,} rows has {len(factors):,}")
        self.name = source.name
        self.factors = source.factors.select(index) if factors is None else factors
        self.modalities = source.modalities
        self.computes: bool = getattr(source, "computes", False)
        self.source: Dataset = source.source if isinstance(source, Selection) else source
        self.rows: npt.NDArray[np.int64] = source.rows[index] if isinstance(source, Selection) else index.copy()
        self.rows.flags.writeable = False

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`Dataset.fetch`."""
        index, names = fetch_request(self, indices, modalities)
        return self.source.fetch(self.rows[index], names)

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Write rows into arrays; see :meth:`Dataset.fetch_into`."""
        index, _ = fetch_request(self, indices, tuple(out))
        self.source.fetch_into(self.rows[index], out)

    def __getattr__(self, name: str) -> Any:
        """What only the source has, with the rows of this selection."""
        if name.startswith("_") or "source" not in self.__dict__:
            raise AttributeError(name)
        found = getattr(self.source, name)
        if not getattr(found, "of_row", False):
            return found

        @wraps(found)
        def renumbered(row: npt.ArrayLike, *rest: Any, **options: Any) -> Any:
            rows = self.rows[check_rows(row, len(self))]
            return found(int(rows) if rows.ndim == 0 else rows, *rest, **options)

        return renumbered

    def __repr__(self) -> str:
        """Show the source and the number of rows."""
        return f"Selection({self.source!r}, {len(self):,} rows)"


class Concat(Dataset):
    """Datasets one after the other; made by :func:`concat`.

    Parameters
    ----------
    datasets : sequence of Dataset
        At least one.
    parts : sequence of str, optional
        Level of the factor ``part`` for each dataset.

    Attributes
    ----------
    datasets : tuple of Dataset
        What was joined.
    offsets : (datasets + 1,) int64
        Number of the first row of each dataset, and at the end the number of all rows.

    """

    def __init__(self, datasets: Sequence[Dataset], parts: Sequence[str] | None = None) -> None:
        from setsup.factors.combine import concat as concat_tables

        if not datasets:
            raise DataError("concat needs at least one dataset")
        self.datasets = tuple(datasets)
        self.modalities = _common_modalities(self.datasets)
        self.factors = concat_tables([dataset.factors for dataset in self.datasets], parts)
        self.name = " + ".join(dataset.name for dataset in self.datasets)
        self.computes = any(getattr(dataset, "computes", False) for dataset in self.datasets)
        self.offsets: npt.NDArray[np.int64] = np.cumsum([0, *(len(dataset) for dataset in self.datasets)])

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`Dataset.fetch`."""
        index, names = fetch_request(self, indices, modalities)
        rows = index.reshape(-1)
        origin = np.searchsorted(self.offsets, rows, side="right") - 1
        found: dict[str, Array] = {}
        # no row at all still has shapes and dtypes, which the first dataset knows
        for part in np.unique(origin) if rows.size else [0]:
            slots = np.flatnonzero(origin == part)
            arrays = self.datasets[part].fetch(rows[slots] - self.offsets[part], names)
            for name in names:
                _scatter(found, name, slots, arrays[name], rows.size)
        return {name: array.reshape(index.shape + array.shape[1:]) for name, array in found.items()}

    def __repr__(self) -> str:
        """Show the joined datasets."""
        return f"Concat({', '.join(repr(dataset) for dataset in self.datasets)})"


def concat(*datasets: Dataset, parts: Sequence[str] | None = None) -> Concat:
    """Join datasets, rows one after the other.

    The joined table has the union of the factors, unknown where a dataset lacks one, and the factor ``part``, which
    tells where a row came from. Modalities are those that all datasets have.

    Parameters
    ----------
    *datasets : Dataset
        At least one; the rows keep their order.
    parts : sequence of str, optional
        Levels of the factor ``part``, one a dataset; "a", "b", … by default.

    Returns
    -------
    Concat

    Raises
    ------
    DataError
        When no modality is common to all, or one differs in shape, dtype, unit or colour space.
    FactorError
        When a factor of one name differs in kind or unit between the datasets.

    """
    return Concat(datasets, parts)


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
    names = tuple(dict.fromkeys(modalities))
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

    Examples
    --------
    >>> gather(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]

    """
    # the rows are in range already; "clip" spares numpy a second look at them
    return np.asarray(np.asarray(array).take(rows, axis=0, out=out, mode="clip"))


def _common_modalities(datasets: Sequence[Dataset]) -> dict[str, Modality]:
    first, *others = datasets
    common = [name for name in first.modalities if all(name in other.modalities for other in others)]
    if not common:
        had = "; ".join(f"{dataset.name} has {', '.join(dataset.modalities) or 'none'}" for dataset in datasets)
        raise DataError(f"the datasets to concatenate have no modality in common: {had}")
    for name in common:
        for other in others:
            if other.modalities[name] != first.modalities[name]:
                here, there = _described(first.modalities[name]), _described(other.modalities[name])
                raise DataError(
                    f"the modality {name!r} differs: {first.name} has {here}, {other.name} has {there}; only datasets "
                    "whose arrays can be stacked can be concatenated"
                )
    return {name: first.modalities[name] for name in common}


def _described(modality: Modality) -> str:
    return " ".join(filter(None, [str(modality.shape), modality.dtype, modality.unit, modality.color]))


def _scatter(found: dict[str, Array], name: str, slots: npt.NDArray[np.int64], values: Array, length: int) -> None:
    """Put one dataset's arrays where they belong in the joined one, which the first of them shapes."""
    if len(slots) == length:
        found[name] = values
        return
    if name not in found:
        found[name] = np.empty((length, *values.shape[1:]), values.dtype)
    joined = found[name]
    if joined.shape[1:] != values.shape[1:] or joined.dtype != values.dtype:
        raise DataError(
            f"the rows of modality {name!r} cannot be stacked: some are {joined.dtype} {joined.shape[1:]}, others "
            f"{values.dtype} {values.shape[1:]}"
        )
    joined[slots] = values
