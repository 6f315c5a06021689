"""The factor table: for every sample, the value of every factor."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from setsup.checks import check_instance, check_path
from setsup.errors import DataError, FactorError
from setsup.factors.bins import add_bins
from setsup.factors.columns import FactorColumns
from setsup.factors.factor import Factor, Kind
from setsup.factors.grouping import group_by
from setsup.factors.groups import Groups
from setsup.factors.histograms import Where, count_all, count_joint, count_values
from setsup.factors.io import arrow, frames, huggingface, infer
from setsup.factors.join import join
from setsup.factors.where import evaluate
from setsup.html import block, counted, never_raises, table

__all__ = ["FactorTable"]

Kinds = Mapping[str, Kind | str]

_SHOWN = 24  # factors in a notebook
_LEVELS = 6  # and levels of each


class FactorTable(FactorColumns):
    """Read-only table of the values of factors in all rows.

    Parameters
    ----------
    factors : sequence of Factor
        Factors in table order.
    columns : mapping of str to (rows,) array, optional
        Integer codes of each discrete factor, where -1 or the largest number of the narrowest unsigned type means
        unknown; float32 numbers of each continuous factor, where NaN means unknown. None makes a grid.

    Raises
    ------
    FactorError
        If columns and factors disagree, a code is not that of a level, or a factor is nested within an unknown one.

    Examples
    --------
    >>> from setsup.factors import Factor, FactorTable, Kind
    >>> grid = FactorTable([Factor("hue", Kind.NOMINAL, ("red", "blue")), Factor("size", Kind.ORDINAL, (1, 2, 3))])
    >>> len(grid), grid.row(4)
    (6, {'hue': 'blue', 'size': 2})
    >>> grid.rows("hue == 'blue' and size >= 2")
    array([4, 5])

    """

    @classmethod
    def _of(cls, columns: FactorColumns) -> Self:
        """Table of columns that are checked already; nothing is copied."""
        table = cls.__new__(cls)
        table.__dict__.update(columns.__dict__)
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a mapped table by its path, any other by its columns."""
        if self.path is not None:
            return FactorTable._reopen, (str(self.path), self.fingerprint)
        return FactorTable, (self.factors, self._columns)

    @classmethod
    def _reopen(cls, path: str, fingerprint: str) -> Self:
        table = cls.open(path)
        if table.fingerprint != fingerprint:
            raise DataError(
                f"{path} has changed since this table was sent from another process; open the table again in that "
                "process"
            )
        return table

    @never_raises
    def _repr_html_(self) -> str:
        """Show the factors with their first levels in a notebook."""
        rows = [_words(factor) for factor in self.factors[:_SHOWN]]
        heads = ("factor", "kind", "levels", "values")
        title = f"{counted(len(self), 'row')}{' as a grid' * self.is_grid}, {counted(len(self.factors), 'factor')}"
        return block(title, table(heads, rows, len(self.factors) - _SHOWN, "factors"))

    # -- rows, groups and more factors -----------------------------------------------------------------------------

    def mask(self, expression: str) -> npt.NDArray[np.bool_]:
        """Return the rows where an expression such as ``"digit != 9 and split == 'train'"`` is true, (rows,) bool."""
        return evaluate(expression, self)

    def rows(self, expression: str) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows for which an expression is true, ascending."""
        return np.flatnonzero(self.mask(expression))

    def where(self, expression: str) -> Self:
        """Return the sub-table of the rows for which an expression is true, renumbered from 0."""
        return self.select(self.rows(expression))

    def group_by(self, names: Iterable[str], where: str | None = None) -> Groups:
        """Partition the rows by the levels of the named factors and of those in which they are nested."""
        return group_by(self, names, where)

    def binned(self, name: str, width: float) -> Self:
        """Return a table with the factor ``<name>_bin``, a continuous factor in bins of equal width."""
        return add_bins(self, name, width)

    def join(self, other: "FactorTable", on: str) -> Self:
        """Return a table with the factors of ``other``, whose rows are matched by the levels of the factor ``on``."""
        return join(self, check_instance(other, FactorTable, "the table to join", FactorError), on)

    # -- counting ------------------------------------------------------------------------------------------------------

    def counts(self, name: str, where: Where | None = None) -> npt.NDArray[np.int64]:
        """Count the rows of each level, without rows with an unknown value.

        ``where``, an expression or (rows,) bool, counts the rows for which it is true.

        Returns
        -------
        (levels,) int64

        """
        return count_joint(self, [name], where)

    def all_counts(self, where: Where | None = None) -> dict[str, npt.NDArray[np.int64]]:
        """Count the rows of each level of every factor with levels, as :meth:`counts` does, in one pass.

        ``where``, an expression or (rows,) bool, counts the rows for which it is true.

        Returns
        -------
        mapping of str to (levels,) int64

        Examples
        --------
        >>> table = FactorTable.from_values({"hue": ["red", "blue", "red"], "size": [1, 2, 2]})
        >>> {name: counts.tolist() for name, counts in table.all_counts("hue == 'red'").items()}
        {'hue': [0, 2], 'size': [1, 1]}

        """
        return count_all(self, [factor.name for factor in self.factors if not factor.continuous], where)

    def joint_counts(self, names: Iterable[str], where: Where | None = None) -> npt.NDArray[np.int64]:
        """Count the rows of each combination of levels, block by block: memory does not grow with the rows.

        ``where``, an expression or (rows,) bool, counts the rows for which it is true.

        Returns
        -------
        int64 array with one axis per factor, in the order of ``names``

        Raises
        ------
        FactorError
            If a factor is continuous, or there are more than 2³⁰ combinations.

        Examples
        --------
        >>> table = FactorTable.from_values({"hue": ["red", "blue", "red"], "size": [1, 2, 2]})
        >>> table.joint_counts(["hue", "size"]).tolist()
        [[0, 1], [1, 1]]
        >>> table.counts("hue", where="size == 2").tolist()
        [1, 1]

        """
        return count_joint(self, names, where)

    def histogram(
        self, name: str, bins: int = 64, within: tuple[float, float] | None = None, where: Where | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Count the rows in bins of equal width of a continuous factor, without unknown values.

        Parameters
        ----------
        name : str
            A continuous factor.
        bins : int
            Number of bins.
        within : (float, float), optional
            Lower edge of the first bin and upper edge of the last one, which includes it; values outside are not
            counted. By default the least and the largest value of the whole table, also with ``where``, so that
            histograms are comparable; for a cyclic factor the period, into which values are wrapped. Edges are rounded
            to float32, so that expressions that compare with them count the same rows.
        where : str or (rows,) bool, optional
            Rows to count.

        Returns
        -------
        counts : (bins,) int64
        edges : (bins + 1,) float64

        Raises
        ------
        FactorError
            If the factor has levels, or there are no bins, or they are too narrow for float32.

        Examples
        --------
        >>> table = FactorTable.from_values({"yaw": [0.0, 0.5, 2.5, 4.0]}, kinds={"yaw": "continuous"})
        >>> counts, edges = table.histogram("yaw", bins=2)
        >>> counts.tolist(), edges.tolist()
        ([2, 2], [0.0, 2.0, 4.0])

        """
        return count_values(self, name, bins, within, where)

    # -- other formats ---------------------------------------------------------------------------------------------

    @classmethod
    def from_values(
        cls, values: Mapping[str, Sequence[Any]], factors: Sequence[Factor] = (), *, kinds: Kinds | None = None
    ) -> Self:
        """Make a table from plain values; kinds and levels are inferred where neither is given. None is unknown."""
        return cls._of(infer.from_values(values, factors, kinds))

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open an Arrow file written by :meth:`save`, memory-mapped."""
        return cls._of(arrow.open_table(check_path(path, "a saved table", FactorError)))

    def save(self, path: str | Path) -> None:
        """Write an uncompressed Arrow file that :meth:`open` maps into memory."""
        arrow.save_table(self, check_path(path, "the path to save a table to", FactorError))

    @classmethod
    def from_arrow(cls, table: Any, factors: Sequence[Factor] = (), *, kinds: Kinds | None = None) -> Self:
        """Make a table from a ``pyarrow.Table``, without binary columns and lists.

        The fields of a struct are columns of their own: ``label.digit`` for ``digit`` in ``label``. Factors are taken
        from ``factors``, else from the metadata that :meth:`to_arrow` writes, else inferred.
        """
        return cls._of(arrow.from_arrow(table, factors, kinds))

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table`` with dictionary-encoded levels and the factors in its metadata."""
        return arrow.to_arrow(self)

    @classmethod
    def from_csv(cls, path: str | Path, factors: Sequence[Factor] = (), *, kinds: Kinds | None = None) -> Self:
        r"""Make a table from a CSV file with a header line, or from JSON lines (``.jsonl``, ``.ndjson``).

        Fields are separated by commas, semicolons, tabs or bars, by whichever divides the first lines evenly; between
        all but commas, the comma of a number is decimal. Text is UTF-8 or UTF-16, and may be compressed by gzip.

        Parameters
        ----------
        path : str or Path
            The file.
        factors : sequence of Factor
            Known factors with their levels; others are inferred.
        kinds : mapping of str to Kind, optional
            Known kinds of factors whose levels are inferred; ``nominal`` takes strings as they are written.

        Raises
        ------
        DataError
            If the file cannot be read, is a spreadsheet, could be separated in two ways, or a column mixes types.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "poses.csv")
        >>> _ = path.write_text("subject;yaw\nann;0,5\nbob;-1,25\n")
        >>> FactorTable.from_csv(path).row(1)
        {'subject': 'bob', 'yaw': -1.25}

        """
        return cls._of(frames.from_csv(check_path(path, "a CSV file", FactorError), factors, kinds))

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        factors: Sequence[Factor] = (),
        *,
        kinds: Kinds | None = None,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Make a table from a Parquet file, of all columns that can be factors or of some.

        The fields of a struct are columns of their own: ``label.digit`` for ``digit`` in ``label``.
        """
        return cls._of(frames.from_parquet(check_path(path, "a Parquet file", FactorError), factors, kinds, columns))

    @classmethod
    def from_pandas(cls, frame: Any, factors: Sequence[Factor] = (), *, kinds: Kinds | None = None) -> Self:
        """Make a table from a ``pandas.DataFrame``, without its index, binary columns and lists.

        Categories keep their order as levels: ordinal where the categorical is ordered, else nominal.
        """
        return cls._of(frames.from_pandas(frame, factors, kinds))

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with categorical and float32 columns.

        ``FactorTable.from_pandas(frame, table.factors)`` gives the table back.
        """
        return frames.to_pandas(self)

    @classmethod
    def from_huggingface(cls, dataset: Any, factors: Sequence[Factor] = (), *, kinds: Kinds | None = None) -> Self:
        """Make a table from the columns of a Hugging Face ``datasets.Dataset`` that hold classes or values.

        The fields of a struct are columns of their own: ``label.digit`` for ``digit`` in ``label``; lists are left out,
        with a warning.
        """
        return cls._of(huggingface.from_huggingface(dataset, factors, kinds))

    def to_huggingface(self) -> Any:
        """Return a ``datasets.Dataset`` with class-label and value features."""
        return huggingface.to_huggingface(self)


def _words(factor: Factor) -> tuple[str, str, str, str]:
    """Name, kind, number of levels and first levels of a factor."""
    kind = str(factor.kind) if factor.role == "variation" else f"{factor.kind}, {factor.role}"
    kind += f", within {factor.within}" if factor.within else ""
    if factor.levels is None:
        return factor.name, kind, "", f"numbers, {factor.unit}" if factor.unit else "numbers"
    shown = [f"{level:.4g}" if isinstance(level, float) else str(level)[:40] for level in factor.levels[:_LEVELS]]
    more = ", …" if len(factor) > _LEVELS else ""
    return factor.name, kind, f"{len(factor):,}", f"{', '.join(shown)}{more}{f' {factor.unit}' if factor.unit else ''}"
