"""The dataset protocol: a factor table plus a fetch.

Convention
----------
Images are uint8 (height, width, channels), row 0 at the top, with 1 (grey), 2 (red and green), 3 (sRGB) or 4 (sRGB and
alpha) channels as their modality declares.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.checks import check_arguments, check_instance, check_mapping, check_strings
from setsup.datasets.copying import check_out
from setsup.datasets.display import dataset_html
from setsup.datasets.modality import Modality
from setsup.errors import DataError, RowError, UsageError, did_you_mean
from setsup.factors.column_storage import check_rows, freeze
from setsup.factors.table import FactorTable
from setsup.html import never_raises

__all__ = ["Dataset", "Modality", "Selection", "check_modalities", "fetch_request", "is_cpu_bound", "of_row"]

F = TypeVar("F", bound=Callable[..., Any])


@runtime_checkable
class Dataset(Protocol):
    """Factors of every sample, and arrays of any samples.

    Any class with these members is a dataset. A class that derives from this one inherits ``where``, ``select``,
    ``rename``, ``with_factors`` and ``len``; one that derives from :class:`BaseDataset` writes a single method instead
    of ``fetch`` and ``fetch_into``. Several threads may call ``fetch`` and ``fetch_into`` at once, so shared state (an
    open file, a cache) needs a lock. So may forked processes and those that received the dataset by pickle: each
    process opens its files on first use.

    Attributes
    ----------
    name : str
        Name in messages, captions and reports.
    factors : FactorTable
        The value of every factor for every row.
    modalities : mapping of str to Modality
        The arrays that ``fetch`` can return.

    Notes
    -----
    A dataset whose ``fetch`` decodes or renders, rather than copies, sets the attribute ``cpu_bound = True``: a loader
    then uses worker processes, which do not pay off for copies.

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
            Row numbers, in any order; they may repeat.
        modalities : iterable of str, optional
            Names of modalities; all by default.

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
        """Write modalities of the given rows into existing arrays, so that batches reuse their memory.

        Parameters
        ----------
        indices : integer array of any shape
            Row numbers.
        out : mapping of str to array
            For each modality to fetch, an array of shape ``indices.shape + modality.shape``.

        """
        for name, array in self.fetch(indices, tuple(out)).items():
            out[name][...] = array

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.factors)

    def __getitem__(self, index: Any) -> Any:
        """Refuse ``dataset[0]``, and so torch's DataLoader, and say how rows are read."""
        raise UsageError(
            f"{self.name} does not support indexing; read many rows at once with dataset.fetch([0, 1]) or "
            "setsup.loader(dataset, sampler), or row by row with setsup.loading.as_torch(dataset), which torch's "
            "DataLoader accepts"
        )

    def where(self, expression: str) -> "Selection":
        """Select the rows for which an expression such as ``"digit != 9"`` is true, renumbered from 0."""
        return Selection(self, self.factors.rows(expression))

    def select(self, rows: npt.ArrayLike) -> "Selection":
        """Select rows, in the given order and renumbered from 0.

        Parameters
        ----------
        rows : (n,) integer array
            Row numbers; they may repeat.

        """
        return Selection(self, rows)

    def rename(self, names: Mapping[str, str]) -> "Selection":
        """Rename factors.

        Parameters
        ----------
        names : mapping of str to str
            New names by old ones: ``{"age (years)": "age"}``.

        """
        return self.with_factors(self.factors.rename(names))

    def with_factors(self, table: FactorTable) -> "Selection":
        """Replace the factor table, for example by one with derived factors: a split, bins, joined columns, new names.

        Samplers over the table, and a loader, then take this dataset: ``setsup.loader(dataset.with_factors(table),
        sampler)``.

        Parameters
        ----------
        table : FactorTable
            Table of the same rows in the same order.

        Raises
        ------
        DataError
            When the table has a different number of rows.

        Examples
        --------
        >>> import setsup
        >>> shapes = setsup.load("shapes3d-procedural")
        >>> table = setsup.factors.split(shapes.factors, {"train": 0.7, "test": 0.3}, seed=0)
        >>> parted = shapes.with_factors(table)
        >>> parted.where("split == 'train'").factors.names[-1], parted.fetch([5, 7])["image"].shape
        ('split', (2, 64, 64, 3))

        """
        return Selection(self, None, check_instance(table, FactorTable, "the table of a dataset", DataError))


class Selection(Dataset):
    """Some rows of a dataset, renumbered; a selection of a selection refers to the original dataset.

    Other attributes of the dataset, such as ``classes`` or ``mesh(row)``, are those of the selection, too; methods
    marked by :func:`of_row` take its row numbers.

    Parameters
    ----------
    source : Dataset
        The dataset to select from.
    rows : (n,) integer array, optional
        Row numbers of the source, in any order; they may repeat. None for all rows.
    factors : FactorTable, optional
        Table of these rows to use instead of the source's, such as one with another split.

    Attributes
    ----------
    source : Dataset
        The dataset that the rows are read from, never itself a selection.

    Raises
    ------
    RowError
        When a row number is out of range, or the rows are not a plain list of integers.

    """

    def __init__(self, source: Dataset, rows: npt.ArrayLike | None, factors: FactorTable | None = None) -> None:
        check_arguments(Selection.__init__, locals(), DataError)
        index = None if rows is None else check_rows(rows, len(source))
        if index is not None and index.ndim != 1:
            raise RowError(f"rows to select must be one-dimensional, not of shape {index.shape}")
        count = len(source) if index is None else len(index)
        if factors is not None and len(factors) != count:
            raise DataError(
                f"the table has {len(factors):,} rows, but {source.name} has {count:,}; pass a table with the same "
                "rows in the same order"
            )
        self.name = source.name
        self.factors = _table(source, index) if factors is None else factors
        self.modalities = source.modalities
        self.cpu_bound: bool = is_cpu_bound(source)
        self.source: Dataset = source.source if isinstance(source, Selection) else source
        # None for all rows of the source: a grid of any size is then kept, and sent to workers, in a few bytes
        self._index = _chain(source, index)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Number of each row in ``source``, (n,) int64, read-only."""
        if self._index is not None:
            return self._index
        return freeze(np.arange(len(self), dtype=np.int64))

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`Dataset.fetch`."""
        index, names = fetch_request(self, indices, modalities)
        return self.source.fetch(self._origin(index), names)

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Write rows into arrays; see :meth:`Dataset.fetch_into`."""
        index, _ = fetch_request(self, indices, tuple(check_mapping(out, "out", DataError)))
        check_out(self.modalities, out, index)
        self.source.fetch_into(self._origin(index), out)

    def _origin(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return rows if self._index is None else self._index[rows]

    def __getattr__(self, name: str) -> Any:
        """Get an attribute of the source; methods of rows take the rows of this selection."""
        if name.startswith("_") or "source" not in self.__dict__:
            raise AttributeError(name)
        attribute = getattr(self.source, name)
        if not getattr(attribute, "of_row", False):
            return attribute

        @wraps(attribute)
        def renumbered(row: npt.ArrayLike, *rest: Any, **options: Any) -> Any:
            rows = self._origin(check_rows(row, len(self)))
            return attribute(int(rows) if rows.ndim == 0 else rows, *rest, **options)

        return renumbered

    def __repr__(self) -> str:
        """Show the source and the number of rows."""
        return f"Selection({self.source!r}, {len(self):,} rows)"

    @never_raises
    def _repr_html_(self) -> str:
        """Show the factors and a few images of these rows in a notebook."""
        return dataset_html(self, getattr(self.source, "previews", True))


def _table(source: Dataset, index: npt.NDArray[np.int64] | None) -> FactorTable:
    return source.factors if index is None else source.factors.select(index)


def _chain(source: Dataset, index: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64] | None:
    """Rows of the dataset that is no selection itself; None for all of them."""
    if isinstance(source, Selection) and source._index is not None:
        return source._index if index is None else freeze(source._index[index])
    return None if index is None else freeze(index.copy())


def is_cpu_bound(dataset: Dataset) -> bool:
    """Whether a dataset decodes or renders its rows, so that a loader uses worker processes.

    Raises
    ------
    UsageError
        When it sets the former name of the attribute, ``computes``.

    """
    cpu_bound = bool(getattr(dataset, "cpu_bound", False))
    if not cpu_bound and getattr(dataset, "computes", None) is True:
        raise UsageError(
            f"{dataset.name} has the attribute computes, which was renamed to cpu_bound; set cpu_bound = True instead"
        )
    return cpu_bound


def of_row(method: F) -> F:
    """Mark a method of a dataset whose first argument is a row or rows, so that selections translate its row numbers.

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
    """Check the arguments of ``fetch``.

    Parameters
    ----------
    dataset : Dataset
        The dataset whose ``fetch`` was called.
    indices : integer array of any shape
        Row numbers.
    modalities : iterable of str or None
        Names of modalities; None for all.

    Returns
    -------
    rows : int64, same shape
        The row numbers, each in 0 … len(dataset) − 1.
    names : tuple of str
        The modalities to fetch, without duplicates.

    Raises
    ------
    RowError
        When a row number is out of range or not an integer.
    DataError
        When the dataset has no such modality.

    """
    return check_rows(indices, len(dataset)), check_modalities(dataset, modalities)


def check_modalities(
    dataset: Dataset, modalities: Iterable[str] | None, among: Collection[str] | None = None
) -> tuple[str, ...]:
    """Names of modalities that a dataset has, without duplicates; of all by default. DataError for others.

    `among`: those to choose from, where these are others than the dataset's.
    """
    if modalities is None:
        return tuple(dataset.modalities if among is None else among)
    if isinstance(modalities, str):
        raise DataError(f"modalities must be a list of names, such as [{modalities!r}], not the string {modalities!r}")
    names = tuple(dict.fromkeys(check_strings(modalities, "modalities", DataError)))
    for name in names:  # a dataset may be asked for paths alone before it has modalities
        known = dataset.modalities if among is None else among
        if name not in known and name in getattr(dataset, "available", ()):
            raise DataError(
                f"{dataset.name} was created without the modality {name!r}; create it with modalities="
                f"{[*dataset.modalities, name]}"
            )
        if name not in known:
            raise DataError(f"{dataset.name} has no modality {name!r}{did_you_mean(name, known)}")
    return names
