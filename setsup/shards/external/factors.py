"""Factors of a set of tars that others wrote, from the columns of each.

Convention
----------
Kinds and levels are those that :mod:`setsup.factors.io.infer` finds; classes (``KEY.cls``) are nominal, numbers among
them are read off their text. A factor that an older catalogue describes stays as it is, as long as it has all values.

Left out, each with its reason, are fields that are never known and such as mix types. A column of texts or whole
numbers of which more than half differ names samples, and is no factor that sets could share: with up to :data:`FEW`
values, texts become a factor of the role ``key``; beyond, the column is left out, since every value would be a level,
and ten million captions a catalogue of a gigabyte. For the same reason one whose different texts are long is left out.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from setsup.errors import DataError, FactorError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.columns import FactorColumns
from setsup.factors.io.infer import from_blocks
from setsup.files import readable_size
from setsup.shards.external.columns import FRACTIONS, NUMBERS, TEXTS, ColumnSample, ColumnScan

__all__ = ["FEW", "FOLDER", "SHARD", "Columns"]

FOLDER, SHARD = "folder", "shard"
"""Factors from the folders in keys, and of a set without any other."""

FEW = 4096
"""Different values of a column that names samples, up to which it is kept, as a key."""

_LEVELS = 32 << 20  # bytes of the values of a column, up to which they are levels: the catalogue has all of them
_NAMES = 32  # different values up to which nobody can tell whether they name samples
_COUNTED = {TEXTS, NUMBERS}
_log = logging.getLogger("setsup")


class Columns:
    """What the tars of a set have shown so far.

    Attributes
    ----------
    left_out : dict of str to str
        Why a field is no factor.

    """

    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}
        self._fields: dict[str, None] = {}
        self._classes: dict[str, None] = {}
        self._sights: dict[str, dict[str, ColumnSample]] = {}
        self._documents: dict[str, dict[bool, ColumnSample]] = {}
        self._folders: set[str] = set()
        self._role_key: set[str] = set()

    def add(self, scan: ColumnScan, folders: Any) -> dict[str, Any]:
        """Take note of the columns of the next tar; gives those to be kept for :meth:`table`.

        `folders` (n,) pyarrow array of texts.
        """
        for extension, kinds in scan.documents.items():
            known = self._documents.setdefault(extension, {})
            for kind, sight in kinds.items():
                known.setdefault(kind, sight)
            if len(known) > 1:
                raise DataError(
                    f"{known[False].source}: the {extension} of {known[False].key!r} must be an object with fields, "
                    f"like the {extension} of {known[True].key!r} in {known[True].source}; replace the tar, or pack "
                    "it without that sample"
                )
        for name, sights in scan.sights.items():
            self._sights[name] = sights | self._sights.get(name, {})
        for name, why in scan.left_out.items():
            self.left_out.setdefault(name, why)
        self._fields |= dict.fromkeys(scan.arrays)
        self._classes |= dict.fromkeys(scan.classes)
        folders = folders.dictionary_encode()
        if len(self._folders) < 2:
            self._folders |= set(folders.dictionary.to_pylist())
        return {
            **{f"json {name}": array for name, array in scan.arrays.items()},
            **{f"class {name}": array.dictionary_encode() for name, array in scan.classes.items()},
            FOLDER: folders,
        }

    def table(
        self,
        blocks: Iterable[Any],
        rows: Sequence[int],
        tars: Sequence[str],
        described: Mapping[str, Factor],
        taken: Callable[[str], bool],
    ) -> FactorTable:
        """Make the factor table."""
        chosen = self._chosen(blocks, sum(rows), described, taken)
        fields = {name: column for name, column in chosen.items() if not column.startswith("class ")}
        classes = {name: column for name, column in chosen.items() if column.startswith("class ")}
        try:
            tables = []
            if fields:
                tables.append(_table(blocks, fields, described))
            if classes:
                tables.append(_table(blocks, classes, described, written=True))
            return _joined(tables, self._role_key) if tables else _by_shard(rows, tars)
        except FactorError as error:
            raise DataError(f"the json members cannot be read as factors: {error}") from error

    def _chosen(
        self, blocks: Iterable[Any], rows: int, described: Mapping[str, Factor], taken: Callable[[str], bool]
    ) -> dict[str, str]:
        """Columns that become factors, by the factors' names."""
        for extension, kinds in self._documents.items():
            if True not in kinds:
                self.left_out[f".{extension}"] = f"it contains {kinds[False]} instead of objects with fields"
        chosen: dict[str, str] = {}
        for name, sights in self._sights.items():
            families = {family: sight for family, sight in sights.items() if family != FRACTIONS}
            if name in self.left_out:
                continue
            if len(families) > 1:
                samples = ", ".join(f"{family} ({sight})" for family, sight in families.items())
                self.left_out[name] = f"it mixes types: {samples}"
            elif not families and name not in described:
                self.left_out[name] = "all of its values are unknown"
            elif name in self._fields:  # others hold objects only, whose fields are columns
                chosen[name] = f"json {name}"
        for name in self._classes:
            if name in chosen:
                self.left_out[f".{name}"] = f"a field of the json members is also named {name!r}"
            elif f".{name}" not in self.left_out:
                chosen[name] = f"class {name}"
        if len(self._folders) > 1 and FOLDER not in chosen:
            chosen[FOLDER] = FOLDER
        for name in [name for name in chosen if taken(name)]:
            self.left_out[name] = "the index uses this name for a column of its own"
            del chosen[name]
        self._leave_names(blocks, chosen, rows, described)
        return chosen

    def _leave_names(
        self, blocks: Iterable[Any], chosen: dict[str, str], rows: int, described: Mapping[str, Factor]
    ) -> None:
        """Leave out columns that name samples."""
        import pyarrow.compute as pc

        seen: dict[str, set[Any]] = {}
        for name in [name for name in chosen if name not in described]:
            sights = self._sights.get(name, {TEXTS: None}) if chosen[name].startswith("json ") else {TEXTS: None}
            if FRACTIONS not in sights and sights.keys() & _COUNTED:
                seen[name] = set()
        for block in blocks:
            for name in list(seen):
                if (column := chosen[name]) in block.schema.names:
                    array = block.column(column)
                    array = array.dictionary if hasattr(array, "dictionary") else pc.unique(array.drop_null())
                    seen[name].update(array.to_pylist())
                    if len(seen[name]) > FEW and 2 * len(seen[name]) > rows:
                        values = f"such as {next(iter(sorted(seen.pop(name), key=str)))!r}"
                        self.left_out[name] = f"more than half of its values are distinct, {values}"
                        del chosen[name]
        for name, known in seen.items():
            size = sum(len(value) for value in known if isinstance(value, str))
            if size > _LEVELS:
                self.left_out[name] = f"its {len(known):,} values have {readable_size(size)}, too much for levels"
                del chosen[name]
                continue
            many = len(known) > _NAMES and 2 * len(known) > rows
            if many and chosen[name].startswith("json ") and all(isinstance(value, str) for value in known):
                self._role_key.add(name)


def _table(
    blocks: Iterable[Any], columns: Mapping[str, str], described: Mapping[str, Factor], written: bool = False
) -> FactorColumns:
    """Table of some columns; descriptions hold where they have all values."""
    given = [described[name] for name in columns if name in described]
    if given:
        try:
            return _inferred(blocks, columns, given, written)
        except FactorError:
            given = [factor for factor in given if _fits(blocks, columns[factor.name], factor, written)]
    return _inferred(blocks, columns, given, written)


def _fits(blocks: Iterable[Any], column: str, factor: Factor, written: bool) -> bool:
    try:
        _inferred(blocks, {factor.name: column}, [factor], written)
    except FactorError as error:
        _log.warning("replacing the description of the factor %r, which no longer applies: %s", factor.name, error)
        return False
    return True


def _inferred(
    blocks: Iterable[Any], columns: Mapping[str, str], given: Sequence[Factor], written: bool
) -> FactorColumns:
    import pyarrow as pa

    def renamed() -> Iterator[Any]:
        for block in blocks:
            there = set(block.schema.names)
            arrays = [block.column(column) if column in there else pa.nulls(len(block)) for column in columns.values()]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    known = {factor.name for factor in given}
    kinds = {name: Kind.NOMINAL for name in columns if name not in known} if written else None
    return from_blocks(renamed, list(columns), given, kinds, written=written)


def _joined(tables: Sequence[FactorColumns], keys: set[str]) -> FactorTable:
    factors = [factor for table in tables for factor in table.factors]
    return FactorTable(
        [
            replace(factor, role="key") if factor.name in keys and factor.role == "variation" else factor
            for factor in factors
        ],
        {name: table.column(name) for table in tables for name in table.names},
    )


def _by_shard(rows: Sequence[int], tars: Sequence[str]) -> FactorTable:
    """Table of samples of which nothing is known but their tar."""
    import numpy as np

    levels = [name for name, count in zip(tars, rows, strict=True) if count]
    factor = Factor(SHARD, Kind.NOMINAL, tuple(levels), role="part")
    return FactorTable([factor], {SHARD: np.repeat(np.arange(len(levels)), [count for count in rows if count])})
