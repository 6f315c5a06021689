"""Factors from columns: codes, matching parts, rules, or the values themselves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.described.columns import Columns
from setsup.datasets.described.conditions import Encoded, condition_table, lacks, names_in
from setsup.datasets.described.schema import Layout, Source
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.factor import Level
from setsup.files.roots import some

__all__ = ["factor_table"]

_MANY = 50  # strings that a message does not list


def factor_table(columns: Columns, layout: Layout) -> FactorTable:
    """Make the table; factors of missing optional tables are left out."""
    known = list(columns.values)
    sources = [source for source in layout.sources if _is_there(source, columns, layout)]
    if not sources:
        optional = ", ".join(table.files[0] for table in layout.tables if table.optional)
        raise DataError(
            f"no factor can be read, because the tables of all factors are missing ({optional}); add at least one of "
            "them"
        )
    names = {source.factor.name for source in sources}
    codes = []
    for source in sources:
        factor, column = _from_rules(source, columns, known) if source.rules else _from_column(source, columns)
        codes.append((factor if factor.within in names else replace(factor, within=None), column))
    return table_of(codes)


def _is_there(source: Source, columns: Columns, layout: Layout) -> bool:
    """Whether one of the columns of a factor is there, or all that its rules name."""
    if not source.rules:
        return any(name in columns for name in source.columns)
    known = [*layout.columns, *layout.parts_of_times]
    return all(name in columns for rule, _ in source.rules for name in names_in(rule, known))


def _from_rules(source: Source, columns: Columns, known: Sequence[str]) -> tuple[Factor, Array]:
    """Level of the first rule that holds; rows of none are unknown."""
    rules = [rule for rule, _ in source.rules]
    names = dict.fromkeys(name for rule in rules for name in names_in(rule, known))
    table = condition_table({name: columns.encode(name) for name in names}, rules)
    levels = _levels(source)
    codes = np.select([table.mask(rule) for rule in rules], [levels.index(level) for _, level in source.rules], -1)
    return _discrete(source, levels), codes


def _from_column(source: Source, columns: Columns) -> tuple[Factor, Array]:
    values, places = _first_values(source, columns)
    if source.match is not None:
        values = _matched(source, columns, (values, places))
    if source.codes is not None:
        return _coded(source, columns, (values, places))
    if source.factor.kind == "continuous":
        numbers = np.array(values or [0], np.float32)[places]
        return Factor(source.factor.name, Kind.CONTINUOUS, None, *_how(source)), numbers
    different = {value for value in values if value != "" and not lacks(value)}
    levels = tuple(sorted(different, key=lambda level: (str(type(level)), level))) or ("unknown",)
    code = {level: number for number, level in enumerate(levels)}
    codes = np.array([code.get(value, -1) for value in values] or [0], np.int64)
    return _discrete(source, levels), codes[places]


def _first_values(source: Source, columns: Columns) -> Encoded:
    """Different values, and which each row has: of the first of the columns that is there and has one."""
    first, *others = [columns.encode(name) for name in source.columns if name in columns]
    values, places = first
    for more, at in others:
        empty = np.array([value == "" or lacks(value) for value in values] or [True])[places]
        used, at = np.unique(np.where(empty, at + len(values), places), return_inverse=True)
        both = [*values, *more]
        values, places = [both[number] for number in used.tolist()], at.astype(np.int64)
    if others and len({isinstance(value, str) for value in values if value != "" and not lacks(value)}) > 1:
        values = [value if lacks(value) else str(value) for value in values]  # names, and numbers in place of others
    return values, places


def _matched(source: Source, columns: Columns, encoded: Encoded) -> list[Any]:
    """What the group of an expression matches, of each different value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values, places = encoded
    texts = pa.array((None if lacks(value) else str(value) for value in values), pa.large_string())
    wrong = np.flatnonzero(~np.asarray(pc.match_substring_regex(texts, source.match).fill_null(True)))
    if len(wrong):
        row = int(np.argmax(np.isin(places, wrong)))
        raise columns.wrong(
            source.columns[0], row, f"expected a match of {source.match!r}, which defines {source.factor.name}"
        )
    parts: list[Any] = pc.replace_substring_regex(texts, rf"^[\s\S]*?(?:{source.match})[\s\S]*$", r"\1").to_pylist()
    return parts


def _coded(source: Source, columns: Columns, encoded: Encoded) -> tuple[Factor, Array]:
    """Codes of what the texts of a column stand for, null for unknown."""
    values, places = encoded
    meant, levels = source.codes or {}, _levels(source)
    wrong = [at for at, value in enumerate(values) if not lacks(value) and str(value) not in meant]
    if wrong:
        row = int(np.argmax(np.isin(places, wrong)))
        expected = f"expected one of {', '.join(meant) if len(meant) < _MANY else some(list(meant))}"
        if source.match is None:
            raise columns.wrong(source.columns[0], row, expected)
        label, spot = columns.spot(source.columns[0], row)
        raise DamagedFile(f"{label}: {source.factor.name} of {spot} is {values[places[row]]!r:.40}; {expected}")
    named = [None if lacks(value) else meant[str(value)] for value in values]
    codes = np.array([-1 if level is None else levels.index(level) for level in named] or [0], np.int64)
    return _discrete(source, levels), codes[places]


def _levels(source: Source) -> tuple[Level, ...]:
    levels = source.factor.levels
    return levels if isinstance(levels, tuple) else ()


def _discrete(source: Source, levels: tuple[Level, ...]) -> Factor:
    return Factor(source.factor.name, Kind(source.factor.kind), levels, *_how(source))


def _how(source: Source) -> tuple[str, float | None, str | None, str]:
    """Unit, period, nesting and role."""
    factor = source.factor
    return factor.unit, factor.period, factor.within, factor.role
