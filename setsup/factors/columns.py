"""Rows and the values of their factors: what groups, expressions and file formats build on.

Two layouts, one meaning. A *grid* is the full product of its factors' levels in C order (the last factor changes
fastest) and stores nothing but the factors. *Columns* store one narrow array per factor: unsigned level codes, whose
largest representable number means *unknown*, or float32, where NaN does.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.checks import check_instance, check_integer, check_mapping, check_memory, check_strings
from setsup.errors import FactorError, RowError, abbreviate, did_you_mean
from setsup.factors.column_storage import check_rows, code_dtype, freeze, stored_column
from setsup.factors.factor import Factor, Level, check_factors, level_array
from setsup.factors.fingerprint import digest
from setsup.files.mapped import check_mapped

__all__ = ["FactorColumns"]

_SIGNED = np.append(np.arange(255, dtype=np.int64), -1)
"""Codes of narrow factors as they are returned: the largest number stands for unknown."""


class FactorColumns:
    """Rows × factors, columnar and read-only; :class:`~setsup.factors.FactorTable` adds reading, writing and groups."""

    path: Path | None = None
    """Arrow file that the columns are mapped from, if any."""

    def __init__(self, factors: Sequence[Factor], columns: Mapping[str, npt.ArrayLike] | None = None) -> None:
        _refuse_values(factors)
        self.factors: tuple[Factor, ...] = check_factors(factors)
        self._by_name = {factor.name: factor for factor in self.factors}
        if len(self._by_name) != len(self.factors):
            raise FactorError(
                f"factor names must be unique, not {[factor.name for factor in self.factors]}; rename one"
            )
        self._check_nesting()
        self._columns: dict[str, Array] | None = None
        if columns is None:
            self._length = self._grid_length()
        else:
            self._columns, self._length = self._check_columns(columns)

    def _check_nesting(self) -> None:
        for factor in self.factors:
            seen = {factor.name}
            outer = factor.within
            while outer is not None:
                if outer in seen:
                    raise FactorError(
                        f"the nesting of factor {factor.name!r} is circular, through {sorted(seen)}; remove within= "
                        "from one of these factors"
                    )
                seen.add(outer)
                if self[outer].continuous:
                    raise FactorError(
                        f"factor {factor.name!r} cannot be nested within {outer!r}, which is continuous and has no "
                        "levels; nest it within the bins that table.binned adds"
                    )
                outer = self[outer].within

    def _grid_length(self) -> int:
        for factor in self.factors:
            if factor.continuous:
                raise FactorError(
                    f"a grid cannot contain the continuous factor {factor.name!r}, which has no levels; pass the "
                    "values of all factors as columns"
                )
        length = math.prod(map(len, self.factors))
        if not self.factors or length >= 2**62:
            raise FactorError(
                f"a grid must have at least one factor and fewer than 2**62 rows, not {len(self.factors)} factors and "
                f"{length} rows"
            )
        return length

    def _check_columns(self, columns: Mapping[str, npt.ArrayLike]) -> tuple[dict[str, Array], int]:
        if set(check_mapping(columns, "columns", FactorError)) != set(self._by_name):
            raise FactorError(
                f"columns must have the names of the factors, {sorted(self._by_name)}, not {sorted(columns)}"
            )
        stored = {factor.name: stored_column(factor, columns[factor.name]) for factor in self.factors}
        lengths = {name: len(column) for name, column in stored.items()}
        if len(set(lengths.values())) > 1:
            raise FactorError(f"columns must have the same length, not {lengths}")
        return stored, next(iter(lengths.values()), 0)

    def __len__(self) -> int:
        """Count the rows."""
        return self._length

    def __getitem__(self, name: str) -> Factor:
        """Look up the factor of a name; FactorError with near matches where there is none."""
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            if (alike := self._alike(name)) is not None:
                return alike
            raise FactorError(f"unknown factor {abbreviate(name)}{did_you_mean(name, self._by_name)}") from None

    def __contains__(self, name: object) -> bool:
        """Whether a factor of this name exists."""
        return isinstance(name, str) and (name in self._by_name or self._alike(name) is not None)

    def _alike(self, name: object) -> Factor | None:
        """The only factor whose name is the same to Python: µ (U+00B5) and μ (U+03BC) are one identifier."""
        if not isinstance(name, str):
            return None
        alike = [factor for factor in self.factors if normalize("NFKC", factor.name) == normalize("NFKC", name)]
        return alike[0] if len(alike) == 1 else None

    def __repr__(self) -> str:
        """Show names and sizes."""
        sizes = ", ".join(f"{factor.name} {len(factor) or '~'}" for factor in self.factors)
        return f"{type(self).__name__}({self._length:,} rows{' as a grid' if self.is_grid else ''}: {sizes})"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the factors in table order."""
        return tuple(self._by_name)

    def outer(self, name: str) -> list[str]:
        """Return the names of the factors in which a factor is nested, from the inside out."""
        names: list[str] = []
        within = self[name].within
        while within is not None:
            names.append(self[within].name)
            within = self[within].within
        return names

    @property
    def is_grid(self) -> bool:
        """Whether the table is an implicit full product of its levels in C order."""
        return self._columns is None

    @cached_property
    def strides(self) -> dict[str, int]:
        """Rows between neighbouring levels of each factor in a grid."""
        strides, stride = {}, 1
        for factor in reversed(self.factors):
            strides[factor.name] = stride
            stride *= max(len(factor), 1)
        return strides

    # -- reading ---------------------------------------------------------------------------------------------------

    def column(self, name: str) -> Array:
        """Return a whole column as stored.

        Returns
        -------
        (rows,) unsigned integer, where the largest number of the dtype is unknown, or float32 with NaN

        """
        factor = self[name]
        if self._columns is not None:
            check_mapped(self._columns[factor.name])
            return self._columns[factor.name]
        codes = np.arange(len(factor), dtype=code_dtype(len(factor)))
        needed = self._length * codes.itemsize
        check_memory(needed, f"a column of {self._length:,} rows", "the rows or levels of the grid", FactorError)
        stride = self.strides[factor.name]
        return np.tile(np.repeat(codes, stride), self._length // (stride * len(factor)))

    def codes(self, name: str, rows: npt.ArrayLike | None = None) -> Array:
        """Return level codes, or the numbers of a continuous factor.

        Parameters
        ----------
        name : str
            A factor.
        rows : integer array of any shape, optional
            Row numbers; all rows by default.

        Returns
        -------
        array of the shape of ``rows``: int64 with -1 for unknown, or float32 with NaN

        Raises
        ------
        RowError
            If a row number is out of range.

        """
        if rows is None:
            return self._signed(self[name], self.column(name))
        return self._codes(self[name], check_rows(rows, self._length))

    def all_codes(self, rows: npt.ArrayLike) -> dict[str, Array]:
        """Return the codes of every factor for some rows, as :meth:`codes` does, with one check of the row numbers.

        Raises
        ------
        RowError
            If a row number is out of range.

        """
        index = check_rows(rows, self._length)
        return {factor.name: self._codes(factor, index) for factor in self.factors}

    def _codes(self, factor: Factor, index: npt.NDArray[np.int64]) -> Array:
        if self._columns is None:
            return index // self.strides[factor.name] % len(factor)
        column = self._columns[factor.name]
        check_mapped(column)
        # the rows are in range already; "clip" spares numpy a second look at them
        return self._signed(factor, np.asarray(column.take(index, mode="clip")))

    @staticmethod
    def _signed(factor: Factor, stored: Array) -> Array:
        """Codes with -1 for unknown, of codes as they are stored, with the largest number for it."""
        if factor.continuous:
            return stored
        if stored.dtype == np.uint8:
            return np.asarray(_SIGNED.take(stored))  # one pass over a small table, where the rest takes three
        codes = stored.astype(np.int64)
        codes[stored == np.iinfo(stored.dtype).max] = -1
        return codes

    def values(self, name: str, rows: npt.ArrayLike | None = None) -> Array:
        """Return the levels themselves, or the numbers of a continuous factor.

        Returns
        -------
        array of the shape of ``rows``, of the levels' own type, or of objects with None where a value is unknown

        """
        factor, codes = self[name], self.codes(name, rows)
        if factor.levels is None:
            return codes
        if (codes < 0).any():
            return np.array([*factor.levels, None], dtype=object)[codes]
        return level_array(factor.levels)[codes]

    def row(self, row: int) -> dict[str, Level | None]:
        """Return all values of one row, by factor; None if unknown."""
        values: dict[str, Level | None] = {}
        row = check_integer(row, "the number of a row", RowError)
        for factor in self.factors:
            code = self.codes(factor.name, row)
            if factor.levels is None:
                values[factor.name] = None if np.isnan(code) else float(code)
            else:
                values[factor.name] = None if code < 0 else factor.levels[int(code)]
        return values

    # -- derived tables ----------------------------------------------------------------------------------------

    def select(self, rows: npt.ArrayLike) -> Self:
        """Return the sub-table of the given rows, in their order, renumbered from 0."""
        index = np.atleast_1d(check_rows(rows, self._length))
        if self._columns is not None:
            return type(self)(self.factors, {name: freeze(self.column(name)[index]) for name in self.names})
        return type(self)(self.factors, {name: self.codes(name, index) for name in self.names})

    def with_factor(self, factor: Factor, column: npt.ArrayLike) -> Self:
        """Return a table with one more factor, or with the factor of that name replaced."""
        check_instance(factor, Factor, "the new factor", FactorError)
        columns = {name: self.column(name) for name in self.names if name != factor.name}
        remaining = [known for known in self.factors if known.name != factor.name]
        return type(self)([*remaining, factor], {**columns, factor.name: column})

    def without(self, names: Iterable[str]) -> Self:
        """Return a table without some factors, with the same rows."""
        gone = {self[name].name for name in check_strings(names, "the factors to leave out", FactorError)}
        remaining = [factor for factor in self.factors if factor.name not in gone]
        if not remaining:
            raise FactorError("cannot remove all factors of a table; keep at least one")
        return type(self)(remaining, {factor.name: self.column(factor.name) for factor in remaining})

    def rename(self, names: Mapping[str, str]) -> Self:
        """Return a table with some factors renamed; rows, levels, nesting and splits stay the same.

        Parameters
        ----------
        names : mapping of str to str
            New names by old names; two factors may swap their names.

        Raises
        ------
        FactorError
            If a factor is unknown, or a new name is taken or not a string.

        Examples
        --------
        >>> from setsup.factors import FactorTable
        >>> table = FactorTable.from_values({"age (years)": [41, 38], "class": ["a", "b"]})
        >>> table.rename({"age (years)": "age", "class": "category"}).rows("age > 40 and category == 'a'")
        array([0])

        """
        if not isinstance(names, Mapping):
            raise FactorError(f"rename expects a mapping such as {{'old': 'new'}}, not {abbreviate(names)}")
        new = {self[old].name: name for old, name in names.items()}
        after = [new.get(name, name) for name in self.names]
        if taken := [name for index, name in enumerate(after) if name in after[:index]]:
            raise FactorError(
                f"two factors would have the name {taken[0]!r} after renaming; choose another name, or rename both"
            )
        factors = [
            replace(
                factor,
                name=new.get(factor.name, factor.name),
                within=None if factor.within is None else new.get(self[factor.within].name, factor.within),
            )
            for factor in self.factors
        ]
        if self._columns is None:
            return type(self)(factors)
        return type(self)(factors, {new.get(name, name): column for name, column in self._columns.items()})

    # -- identity --------------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest of the content: equal for tables with equal factors and rows, however they are stored."""
        return self._digest(signs=False)

    def has_fingerprint(self, fingerprint: str) -> bool:
        """Whether a fingerprint is this table's, also one from when the signs of NaN and of zero counted in it.

        Whatever keeps a fingerprint (draws, renders) is compared by this, so that older ones stay readable.
        """
        if not isinstance(fingerprint, str):
            return False
        if fingerprint == self.fingerprint:
            return True
        signed = any(factor.continuous or float in map(type, factor.levels or ()) for factor in self.factors)
        # both, for the fingerprint of a saved table, which is read from its file, may be an older one
        return signed and fingerprint in (self._digest(signs=False), self._digest(signs=True))

    def _digest(self, signs: bool) -> str:
        columns = {} if self._columns is None or self._is_full_product() else self._columns
        return digest(self.factors, [columns[name] for name in self.names if name in columns], signs)

    def _is_full_product(self) -> bool:
        """Whether the columns list a full grid in C order, and so equal the implicit one."""
        sizes = [len(factor) for factor in self.factors]
        if 0 in sizes or self._length != np.prod(sizes, dtype=object):
            return False
        grid = FactorColumns(self.factors)
        return all(np.array_equal(self.column(name), grid.column(name)) for name in self.names)


def _refuse_values(factors: object) -> None:
    """Refuse values in place of factors, and say what makes a table of them."""
    module = type(factors).__module__.partition(".")[0]
    makers = {"pandas": "from_pandas(frame)", "pyarrow": "from_arrow(table)"}
    if isinstance(factors, Mapping):
        raise FactorError(
            "FactorTable expects a list of Factor objects; to create a table from values, use "
            "FactorTable.from_values({…})"
        )
    if module in makers:
        raise FactorError(
            f"FactorTable expects a list of Factor objects; to convert this object, use FactorTable.{makers[module]}"
        )
    if isinstance(factors, str | Path):
        raise FactorError(
            "FactorTable expects a list of Factor objects; to read a file, use FactorTable.from_csv(path) or "
            "from_parquet(path)"
        )
