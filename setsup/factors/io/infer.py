"""Tables from plain values, whose kinds and levels are inferred where they are not given.

All sources (sequences, Arrow, pandas, CSV, Parquet, Hugging Face) are read as blocks of Arrow arrays, twice: first for
types and levels, then for codes. A source that fits into memory is one block, any other is read from its file twice;
both give the same table.

Convention
----------
Strings become a nominal factor with sorted levels, booleans a nominal one with the levels False and True, integers an
ordinal one with sorted levels, other numbers a continuous one; integers written as floats are integers if some values
are missing (as in pandas) and continuous otherwise. None, NaN and the empty string are unknown; a column in which all
values are unknown is continuous. Dates and times are strings. Columns named ``id`` or
``path`` have the role ``key``, ``split`` and ``part`` the roles of these names. In errors, rows count from 0.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_mapping
from setsup.errors import FactorError, abbreviate, did_you_mean
from setsup.factors.column_storage import as_array, freeze
from setsup.factors.columns import FactorColumns
from setsup.factors.factor import PLURAL, Factor, Kind, check_factors, level_sort
from setsup.factors.io.distinct import is_usable
from setsup.factors.io.encoding import ColumnEncoder, Commas
from setsup.factors.io.fields import ROLE_OF, Field, refuse_mixture

__all__ = ["Blocks", "Store", "arrow_array", "from_blocks", "from_values"]

Blocks = Callable[[], Iterable[Any]]
"""Reads a source from its start, as Arrow record batches."""

Store = Callable[[str, np.dtype[Any]], tuple[Callable[[Array], object], Callable[[], Array]]]
"""Makes the place of a column: a function that adds some rows, and one that gives all of them."""


def from_values(
    values: Mapping[str, Sequence[Any]],
    factors: Sequence[Factor] = (),
    kinds: Mapping[str, Kind | str] | None = None,
) -> FactorColumns:
    """Table from plain values, whose kinds and levels are inferred where no factor is given."""
    import pyarrow as pa

    check_mapping(values, "values", FactorError)
    arrays = {name: arrow_array(name, column) for name, column in values.items()}
    for name, array in arrays.items():
        if not is_usable(array.type):
            raise FactorError(
                f"column {name!r} has the type {array.type}; expected strings, booleans, numbers or dates"
            )
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise FactorError(f"columns must have the same length, not {lengths}")
    batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    return from_blocks(lambda: [batch], list(arrays), factors, kinds)


def from_blocks(
    blocks: Blocks,
    names: Sequence[str],
    factors: Sequence[Factor] = (),
    kinds: Mapping[str, Kind | str] | None = None,
    *,
    written: bool = False,
    commas: Commas = "text",
    store: Store | None = None,
) -> FactorColumns:
    """Table from Arrow record batches that can be read more than once; ``written``: its strings may be numbers."""
    import pyarrow as pa

    fields = _fields(names, factors, {} if kinds is None else kinds, written, commas)
    try:
        _see(blocks, [field for field in fields if not field.declared])
        _see(blocks, [field for field in fields if field.incomplete()])
        encoders = [field.encoder() for field in fields]
        columns = _encode(blocks, encoders, store or _in_memory)
        return FactorColumns([encoder.factor for encoder in encoders], columns)
    except pa.ArrowException as error:
        raise FactorError(f"the columns {list(names)} cannot be read as factors: {error}") from error


def _fields(
    names: Sequence[str], factors: Sequence[Factor], kinds: Mapping[str, Kind | str], written: bool, commas: Commas
) -> list[Field]:
    declared = {factor.name: factor for factor in check_factors(factors)}
    kinds = dict(check_mapping(kinds, "kinds", FactorError))
    for name, kind in list(kinds.items()):
        if isinstance(kind, str) and ":" in kind and name not in declared and name in names:
            declared[name] = _ordered(name, kind)
            del kinds[name]
    for name in [*declared, *kinds]:
        if name not in names:
            raise FactorError(f"factor {name!r} has no column of the same name{did_you_mean(name, names)}")
    if not names:
        raise FactorError(
            "none of the columns can be a factor; expected columns of strings, booleans, numbers or dates"
        )
    twice = declared.keys() & kinds.keys()
    if twice:
        raise FactorError(
            f"the kinds of {sorted(twice)} are already specified by factors; leave these columns out of kinds="
        )
    return [Field(name, declared.get(name), _kind(name, kinds), written, commas) for name in names]


def _ordered(name: str, kind: str) -> Factor:
    """Factor of a kind that comes with its levels in order: ``ordinal:low,mid,high``."""
    kind, _, listed = kind.partition(":")
    texts = [text.strip() for text in listed.split(",")]
    levels: list[Any] = texts
    for number in (int, float):
        with suppress(ValueError):
            if [str(number(text)) for text in texts] == texts:
                levels = list(map(number, texts))
    return Factor(name, kind, levels, role=ROLE_OF.get(name, "variation"))  # type: ignore[arg-type]  # made plain there


def _kind(name: str, kinds: Mapping[str, Kind | str]) -> Kind | None:
    try:
        return Kind(kinds[name]) if name in kinds else None
    except (ValueError, TypeError):
        raise FactorError(f"column {name!r}: unknown kind {kinds[name]!r}{did_you_mean(kinds[name], Kind)}") from None


def _see(blocks: Blocks, fields: Sequence[Field]) -> None:
    if not fields:
        return
    rows = 0
    for block in blocks():
        for field in fields:
            field.see(block.column(field.name))
        rows += block.num_rows
    if not rows:
        raise FactorError("kinds and levels cannot be inferred without rows; add rows, or declare the factors")


def _encode(blocks: Blocks, encoders: Sequence[ColumnEncoder], store: Store) -> dict[str, Array]:
    stores = {encoder.factor.name: store(encoder.factor.name, encoder.dtype) for encoder in encoders}
    for block in blocks():
        for encoder in encoders:
            add, _ = stores[encoder.factor.name]
            add(encoder.codes(block.column(encoder.factor.name)))
    return {name: whole() for name, (_, whole) in stores.items()}


def _in_memory(name: str, dtype: np.dtype[Any]) -> tuple[Callable[[Array], object], Callable[[], Array]]:
    parts: list[Array] = [np.empty(0, dtype=dtype)]
    return parts.append, lambda: freeze(parts[1] if len(parts) == 2 else np.concatenate(parts))


# -- plain values ------------------------------------------------------------------------------------------------------


def arrow_array(name: str, column: Any, first: int = 0) -> Any:
    """Arrow array of the plain values of a column; messages count its rows from ``first``."""
    import pyarrow as pa

    if hasattr(column, "detach"):  # a tensor
        column = as_array(column, f"column {name!r}")
    if isinstance(column, str | bytes | Mapping | Set) or not hasattr(column, "__len__"):
        raise FactorError(f"column {name!r} must be a sequence of values, not {abbreviate(column)}")
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise FactorError(f"column {name!r} must be 1-D, not of shape {column.shape}")
    try:
        array = pa.array(column, from_pandas=True)
    except OverflowError:
        raise FactorError(
            f"column {name!r} cannot be read as a factor: it contains an integer that does not fit into 64 bits; "
            "convert its values to strings"
        ) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        _refuse(name, column, error, first)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _refuse(name: str, column: Sequence[Any], error: Exception, first: int) -> NoReturn:
    firsts: dict[str, tuple[int, Any]] = {}
    for row, value in enumerate(column, first):
        if value is not None and value == value:
            firsts.setdefault(_family(value), (row, value))
    if len(firsts) > 1:
        refuse_mixture(name, firsts, "make them one type")
    raise FactorError(f"column {name!r} cannot be read as a factor: {error}") from None


def _family(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    known = isinstance(plain, str | int | float)
    return PLURAL[level_sort(plain)] if known else f"objects of type {type(value).__name__}"
