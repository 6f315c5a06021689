"""The factor table: for every sample, the value of every factor.

Two layouts, one meaning. A *grid* is the full product of its factors' levels in C order (the last factor changes
fastest) and stores nothing but the factors. *Columns* store one narrow array a factor: unsigned level codes, whose
largest representable number means *unknown*, or float32, where NaN does.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from setsup.checks import check_instance, check_integer, check_mapping, check_path, check_strings
from setsup.errors import FactorError, RowError, brief, near
from setsup.factors.factor import Factor, Kind, Level, checked_factors, level_array
from setsup.factors.stored import check_rows, code_dtype, owned, stored_column, without_signs
from setsup.files.mapped import check_mapped

if TYPE_CHECKING:
    from setsup.factors.groups import Groups

__all__ = ["FactorTable"]

Array = npt.NDArray[Any]
Kinds = Mapping[str, Kind | str]

_MOST_CELLS = 1 << 30  # combinations counted at once, 8 bytes each

_SIGNED = np.append(np.arange(255, dtype=np.int64), -1)
"""Codes of narrow factors as they are handed out: the largest number stands for unknown."""


class FactorTable:
    """Rows × factors, columnar and read-only.

    Parameters
    ----------
    factors : sequence of Factor
        What varies, in table order.
    columns : mapping of str to (rows,) array, optional
        For a discrete factor integer codes, where -1 or the largest number of the narrowest unsigned type means
        unknown; for a continuous one float32, where NaN does. None makes a grid.

    Raises
    ------
    FactorError
        When columns and factors disagree, a code is no level, or nesting leads nowhere.

    Examples
    --------
    >>> from setsup.factors import Factor, FactorTable, Kind
    >>> grid = FactorTable([Factor("hue", Kind.NOMINAL, ("red", "blue")), Factor("size", Kind.ORDINAL, (1, 2, 3))])
    >>> len(grid), grid.row(4)
    (6, {'hue': 'blue', 'size': 2})
    >>> grid.rows("hue == 'blue' and size >= 2")
    array([4, 5])

    """

    path: Path | None = None
    """The Arrow file that the columns are mapped from, where they are."""

    def __init__(self, factors: Sequence[Factor], columns: Mapping[str, npt.ArrayLike] | None = None) -> None:
        self.factors: tuple[Factor, ...] = checked_factors(factors)
        self._by_name = {factor.name: factor for factor in self.factors}
        if len(self._by_name) != len(self.factors):
            raise FactorError(f"two factors share a name in {[factor.name for factor in self.factors]}")
        self._check_nesting()
        self._columns: dict[str, Array] | None = None
        if columns is None:
            self._length = self._grid_length()
        else:
            self._columns, self._length = self._checked_columns(columns)

    def _check_nesting(self) -> None:
        for factor in self.factors:
            seen = {factor.name}
            outer = factor.within
            while outer is not None:
                if outer in seen:
                    raise FactorError(f"factor {factor.name!r} is nested in itself through {sorted(seen)}")
                seen.add(outer)
                if self[outer].continuous:
                    raise FactorError(
                        f"factor {factor.name!r} cannot be nested within {outer!r}, which is continuous and has no "
                        "levels; nest it within bins of that one, as table.binned makes them"
                    )
                outer = self[outer].within

    def _grid_length(self) -> int:
        for factor in self.factors:
            if factor.continuous:
                raise FactorError(f"a grid cannot have the continuous factor {factor.name!r}; give columns")
        length = 1
        for factor in self.factors:
            length *= len(factor)
        if not self.factors or length >= 2**62:
            raise FactorError(f"a grid needs at least one factor and fewer than 2**62 rows, not {length}")
        return length

    def _checked_columns(self, columns: Mapping[str, npt.ArrayLike]) -> tuple[dict[str, Array], int]:
        if set(check_mapping(columns, "columns", FactorError)) != set(self._by_name):
            raise FactorError(f"columns {sorted(columns)} and factors {sorted(self._by_name)} must have the same names")
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
            raise FactorError(f"unknown factor {brief(name)}{near(name, self._by_name)}") from None

    def __contains__(self, name: object) -> bool:
        """Whether a factor of this name exists."""
        return isinstance(name, str) and (name in self._by_name or self._alike(name) is not None)

    def _alike(self, name: object) -> Factor | None:
        """The only factor whose name is the same to Python: µ (U+00B5) and μ (U+03BC) are one identifier."""
        if not isinstance(name, str):
            return None
        found = [factor for factor in self.factors if normalize("NFKC", factor.name) == normalize("NFKC", name)]
        return found[0] if len(found) == 1 else None

    def __repr__(self) -> str:
        """Show names and sizes."""
        sizes = ", ".join(f"{factor.name} {len(factor) or '~'}" for factor in self.factors)
        return f"FactorTable({self._length:,} rows{' as a grid' if self.is_grid else ''}: {sizes})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a mapped table by its path, any other by its columns."""
        if self.path is not None:
            from setsup.factors.arrow import reopened

            return reopened, (str(self.path), self.fingerprint)
        return FactorTable, (self.factors, self._columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the factors in table order."""
        return tuple(self._by_name)

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
        """Whole column as stored.

        Returns
        -------
        (rows,) unsigned integer, where the largest number of the dtype is unknown, or float32 with NaN

        """
        factor = self[name]
        if self._columns is not None:
            check_mapped(self._columns[factor.name])
            return self._columns[factor.name]
        codes = np.arange(len(factor), dtype=code_dtype(len(factor)))
        stride = self.strides[factor.name]
        return np.tile(np.repeat(codes, stride), self._length // (stride * len(factor)))

    def codes(self, name: str, rows: npt.ArrayLike | None = None) -> Array:
        """Level codes, or numbers of a continuous factor.

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
            When a row number is out of range.

        """
        if rows is None:
            return self._signed(self[name], self.column(name))
        return self._codes(self[name], check_rows(rows, self._length))

    def all_codes(self, rows: npt.ArrayLike) -> dict[str, Array]:
        """Codes of every factor for some rows, as :meth:`codes` gives them, in one look at the row numbers.

        Raises
        ------
        RowError
            When a row number is out of range.

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
        """Levels themselves, or numbers of a continuous factor.

        Returns
        -------
        array of the shape of ``rows``: the levels' own type, or object with None where a value is unknown

        """
        factor, codes = self[name], self.codes(name, rows)
        if factor.levels is None:
            return codes
        if (codes < 0).any():
            return np.array([*factor.levels, None], dtype=object)[codes]
        return level_array(factor.levels)[codes]

    def row(self, row: int) -> dict[str, Level | None]:
        """All values of one row, by factor; None where unknown."""
        found: dict[str, Level | None] = {}
        row = check_integer(row, "the number of a row", RowError)
        for factor in self.factors:
            code = self.codes(factor.name, row)
            if factor.levels is None:
                found[factor.name] = None if np.isnan(code) else float(code)
            else:
                found[factor.name] = None if code < 0 else factor.levels[int(code)]
        return found

    def counts(self, name: str) -> npt.NDArray[np.int64]:
        """Rows of each level; rows with an unknown value are in none.

        Returns
        -------
        (levels,) int64

        """
        return self.joint_counts([name])

    def joint_counts(self, names: Iterable[str]) -> npt.NDArray[np.int64]:
        """Rows of each combination of levels.

        Returns
        -------
        int64, one axis a factor in the order of ``names``

        Raises
        ------
        FactorError
            When a factor is continuous, or there are more than 2³⁰ combinations.

        """
        names = check_strings(names, "the factors to count", FactorError)
        sizes = tuple(len(self[name]) for name in names)
        for name in names:
            if self[name].continuous:
                raise FactorError(f"factor {name!r} is continuous and cannot be counted; use table.binned({name!r}, …)")
        cells = math.prod(sizes)
        if cells > _MOST_CELLS:
            raise FactorError(
                f"{', '.join(names)} have {cells:,} combinations, too many to count each; group_by({names!r}).sizes "
                "counts those that occur"
            )
        if self.is_grid:
            return np.full(sizes, self._length // cells, dtype=np.int64)
        key = np.zeros(self._length, dtype=np.int64)
        known = np.ones(self._length, dtype=bool)
        for name, size in zip(names, sizes, strict=True):
            codes = self.codes(name)
            known &= codes >= 0
            key = key * size + codes
        return np.bincount(key[known], minlength=cells).reshape(sizes)

    # -- choosing and adding ---------------------------------------------------------------------------------------

    def mask(self, expression: str) -> npt.NDArray[np.bool_]:
        """Rows for which an expression such as ``"digit != 9 and split == 'train'"`` holds, as (rows,) bool."""
        from setsup.factors.where import evaluate

        return evaluate(expression, self)

    def rows(self, expression: str) -> npt.NDArray[np.int64]:
        """Numbers of the rows for which an expression holds, ascending."""
        return np.flatnonzero(self.mask(expression))

    def where(self, expression: str) -> "FactorTable":
        """Sub-table of the rows for which an expression holds, renumbered from 0."""
        return self.select(self.rows(expression))

    def select(self, rows: npt.ArrayLike) -> "FactorTable":
        """Sub-table of the given rows, in their order, renumbered from 0."""
        index = np.atleast_1d(check_rows(rows, self._length))
        if self._columns is not None:
            return FactorTable(self.factors, {name: owned(self.column(name)[index]) for name in self.names})
        return FactorTable(self.factors, {name: self.codes(name, index) for name in self.names})

    def with_factor(self, factor: Factor, column: npt.ArrayLike) -> "FactorTable":
        """Table with one more factor, or with the factor of that name replaced."""
        check_instance(factor, Factor, "the new factor", FactorError)
        columns = {name: self.column(name) for name in self.names if name != factor.name}
        kept = [known for known in self.factors if known.name != factor.name]
        return FactorTable([*kept, factor], {**columns, factor.name: column})

    def without(self, names: Iterable[str]) -> "FactorTable":
        """Table that lacks some factors, with the same rows."""
        gone = {self[name].name for name in check_strings(names, "the factors to leave out", FactorError)}
        kept = [factor for factor in self.factors if factor.name not in gone]
        if not kept:
            raise FactorError("a table needs at least one factor; all would be left out")
        return FactorTable(kept, {factor.name: self.column(factor.name) for factor in kept})

    def rename(self, names: Mapping[str, str]) -> "FactorTable":
        """Table in which some factors have other names; rows, levels, nesting and splits stay.

        Parameters
        ----------
        names : mapping of str to str
            New names by old ones; two factors may swap theirs.

        Raises
        ------
        FactorError
            When a factor is unknown, or a new name is taken or no text.

        Examples
        --------
        >>> table = FactorTable.from_values({"age (years)": [41, 38], "class": ["a", "b"]})
        >>> table.rename({"age (years)": "age", "class": "category"}).rows("age > 40 and category == 'a'")
        array([0])

        """
        if not isinstance(names, Mapping):
            raise FactorError(f"rename takes new names by old ones, as in {{'old': 'new'}}, not {brief(names)}")
        new = {self[old].name: name for old, name in names.items()}
        after = [new.get(name, name) for name in self.names]
        if taken := [name for place, name in enumerate(after) if name in after[:place]]:
            raise FactorError(f"two factors share a name, {taken[0]!r}, after renaming; choose another, or rename both")
        factors = [
            replace(
                factor,
                name=new.get(factor.name, factor.name),
                within=None if factor.within is None else new.get(self[factor.within].name, factor.within),
            )
            for factor in self.factors
        ]
        if self._columns is None:
            return FactorTable(factors)
        return FactorTable(factors, {new.get(name, name): column for name, column in self._columns.items()})

    def binned(self, name: str, width: float) -> "FactorTable":
        """Table with the factor ``<name>_bin``, a continuous factor cut in bins of equal width."""
        from setsup.factors.combine import binned

        return binned(self, name, width)

    def join(self, other: "FactorTable", on: str) -> "FactorTable":
        """Table with the factors of ``other``, whose rows are matched by the levels of the factor ``on``."""
        from setsup.factors.combine import join

        return join(self, other, on)

    def group_by(self, names: Iterable[str], where: str | None = None) -> "Groups":
        """Rows partitioned by the levels of the named factors and of those they are nested in."""
        from setsup.factors.groups import group_by

        return group_by(self, names, where)

    # -- identity --------------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the content: equal for tables with equal factors and rows, however they are stored."""
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
        """Digest of the content; with ``signs``, NaN and −NaN are two things, and so are 0.0 and −0.0."""
        about = [factor.to_dict() for factor in self.factors]
        if not signs:
            for factor in about:
                if "levels" in factor:
                    # −0.0 + 0.0 is 0.0
                    factor["levels"] = [level + 0.0 if type(level) is float else level for level in factor["levels"]]
        schema = json.dumps(about, sort_keys=True)
        digest = hashlib.blake2b(schema.encode(), digest_size=16)
        if self._columns is not None and not self._is_full_product():
            for name in self.names:
                column = self._columns[name]
                for part in [column] if signs or column.dtype.kind != "f" else without_signs(column):
                    little = part.astype(part.dtype.newbyteorder("<"), copy=False)
                    digest.update(np.ascontiguousarray(little).data)
        return digest.hexdigest()

    def _is_full_product(self) -> bool:
        """Whether the columns spell out a full grid in C order, and so equal the implicit one."""
        sizes = [len(factor) for factor in self.factors]
        if 0 in sizes or self._length != np.prod(sizes, dtype=object):
            return False
        grid = FactorTable(self.factors)
        return all(np.array_equal(self.column(name), grid.column(name)) for name in self.names)

    # -- other formats ---------------------------------------------------------------------------------------------

    @classmethod
    def from_values(
        cls, values: Mapping[str, Sequence[Any]], factors: Sequence[Factor] = (), *, kinds: Kinds | None = None
    ) -> "FactorTable":
        """Table from plain values; kinds and levels are inferred where neither is given. None is unknown."""
        from setsup.factors.infer import from_values

        return from_values(values, factors, kinds=kinds)

    @classmethod
    def open(cls, path: str | Path) -> "FactorTable":
        """Table of an Arrow file written by :meth:`save`, memory-mapped."""
        from setsup.factors.arrow import open_table

        return open_table(check_path(path, "a saved table", FactorError))

    def save(self, path: str | Path) -> None:
        """Write an uncompressed Arrow file that :meth:`open` maps into memory."""
        from setsup.factors.arrow import save_table

        save_table(self, check_path(path, "where a table is saved", FactorError))

    @classmethod
    def from_arrow(cls, table: Any, factors: Sequence[Factor] = (), *, kinds: Kinds | None = None) -> "FactorTable":
        """Table from a ``pyarrow.Table``."""
        from setsup.factors.arrow import from_arrow

        return from_arrow(table, factors, kinds=kinds)

    def to_arrow(self) -> Any:
        """Give a ``pyarrow.Table`` with dictionary-encoded levels and the factors in its metadata."""
        from setsup.factors.arrow import to_arrow

        return to_arrow(self)

    @classmethod
    def from_csv(cls, path: str | Path, factors: Sequence[Factor] = (), *, kinds: Kinds | None = None) -> "FactorTable":
        """Table from a CSV file with a header line."""
        from setsup.factors.frames import from_csv

        return from_csv(check_path(path, "a CSV file", FactorError), factors, kinds=kinds)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        factors: Sequence[Factor] = (),
        *,
        kinds: Kinds | None = None,
        columns: Sequence[str] | None = None,
    ) -> "FactorTable":
        """Table from a Parquet file, of all columns that can be factors or of some."""
        from setsup.factors.frames import from_parquet

        return from_parquet(check_path(path, "a Parquet file", FactorError), factors, kinds, columns)

    @classmethod
    def from_pandas(cls, frame: Any, factors: Sequence[Factor] = (), *, kinds: Kinds | None = None) -> "FactorTable":
        """Table from a ``pandas.DataFrame``; its index is left out."""
        from setsup.factors.frames import from_pandas

        return from_pandas(frame, factors, kinds=kinds)

    def to_pandas(self) -> Any:
        """Give a ``pandas.DataFrame`` with categorical and float32 columns."""
        from setsup.factors.frames import to_pandas

        return to_pandas(self)

    @classmethod
    def from_huggingface(
        cls, dataset: Any, factors: Sequence[Factor] = (), *, kinds: Kinds | None = None
    ) -> "FactorTable":
        """Table from the columns of a Hugging Face ``datasets.Dataset`` that hold classes or values."""
        from setsup.factors.huggingface import from_huggingface

        return from_huggingface(dataset, factors, kinds=kinds)

    def to_huggingface(self) -> Any:
        """Give a ``datasets.Dataset`` with class-label and value features."""
        from setsup.factors.huggingface import to_huggingface

        return to_huggingface(self)
