"""Factors of a torch dataset: from its attributes, as in torchvision, otherwise from its items."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.datasets.own.factor_sources import Kinds, plain_column, read_factors
from setsup.datasets.own.torch.fields import Items, field_keys, is_value, pick, plain_value, read_item
from setsup.errors import DataError, did_you_mean
from setsup.factors import Factor, FactorTable, Kind
from setsup.progress import progress

__all__ = ["find_factors", "innermost"]

_TARGETS = ("targets", "labels")  # torchvision's STL10 and SVHN have the second


@dataclass(frozen=True, slots=True)
class Column:
    """Values of a factor, and the names of the classes if the values number them."""

    values: Array
    classes: tuple[str, ...] = ()

    def take(self, rows: Any) -> "Column":
        """Values of some rows."""
        return Column(self.values[np.asarray(rows, np.int64)], self.classes)

    def named(self) -> list[Any]:
        """Names of the classes; None for −1, torchvision's value for unlabelled items."""
        return [self.classes[code] if code >= 0 else None for code in self.values.tolist()]


Columns = dict[str, Column]


def innermost(dataset: Any) -> Any:
    """The dataset that this is a subset of."""
    while _is_subset(dataset):
        dataset = dataset.dataset
    return dataset


def find_factors(
    dataset: Items, factors: Any, name: str, first: Any, kinds: Kinds
) -> tuple[FactorTable, frozenset[str]]:
    """Factor table, and the fields of items that it was read from.

    `first` is the first item.
    """
    keys = field_keys(first)
    fields = _named_fields(factors, keys, name)
    if factors is not None and fields is None:
        return read_factors(factors, len(dataset), name, kinds), frozenset()
    if fields is None:
        columns = _stored(dataset)
        if columns:
            return _table(columns, kinds), frozenset(columns)
        fields = {field: field for field, key in keys.items() if is_value(pick(first, key, name, 0))}
    if not fields:
        raise DataError(
            f"{name} has no targets, and its items contain no values that can be used as factors; pass "
            "factors={'name': values}"
        )
    values = _read_items(dataset, {label: keys[field] for label, field in fields.items()}, name)
    return FactorTable.from_values(values, kinds=kinds), frozenset(fields.values())


# -- of items ----------------------------------------------------------------------------------------------------------


def _named_fields(factors: Any, keys: Mapping[str, Any], name: str) -> dict[str, str] | None:
    """Fields by the names of factors; None if `factors` contains values, or is None."""
    if isinstance(factors, str | int) and not isinstance(factors, bool):
        factors = [factors]
    if isinstance(factors, Mapping) and factors and all(isinstance(field, str | int) for field in factors.values()):
        return {str(label): _field(field, keys, name) for label, field in factors.items()}
    if isinstance(factors, Sequence) and factors and all(isinstance(field, str | int) for field in factors):
        fields = [_field(field, keys, name) for field in factors]
        return dict(zip(fields, fields, strict=True))
    return None


def _field(wanted: str | int, keys: Mapping[str, Any], name: str) -> str:
    for field, key in keys.items():
        if wanted == field or (isinstance(wanted, int) and wanted == key):
            return field
    raise DataError(f"items of {name} have no field {wanted!r}{did_you_mean(wanted, keys)}")


def _read_items(dataset: Items, keys: Mapping[str, Any], name: str) -> dict[str, list[Any]]:
    """Read values of all items, in one pass."""
    values: dict[str, list[Any]] = {label: [] for label in keys}
    with progress(len(dataset), f"reading the factors of {name}", "items") as advance:
        for row in range(len(dataset)):
            item = read_item(dataset, row, name)
            for label, key in keys.items():
                value = pick(item, key, name, row)
                if not is_value(value):
                    raise DataError(
                        f"{label} of item {row} of {name} is a {type(value).__name__}; expected a single value; "
                        "leave it out of factors="
                    )
                values[label].append(plain_value(value))
            advance()
    return values


# -- of attributes -----------------------------------------------------------------------------------------------------


def _table(columns: Columns, kinds: Kinds) -> FactorTable:
    values: dict[str, Any] = {
        label: column.named() if column.classes else column.values for label, column in columns.items()
    }
    known = [
        Factor(label, Kind.NOMINAL, column.classes)
        for label, column in columns.items()
        if column.classes and label not in (kinds or {})
    ]
    return FactorTable.from_values(values, known, kinds=kinds)


def _stored(dataset: Any) -> Columns | None:
    """Columns that a dataset stores in addition to its items; None if there are none."""
    finders: tuple[Callable[[Any], Columns | None], ...] = (_of_subset, _of_parts, _of_tensors, _of_targets)
    return next((columns for find in finders if (columns := find(dataset))), None)


def _is_subset(dataset: Any) -> bool:
    return hasattr(dataset, "dataset") and hasattr(dataset, "indices")


def _of_subset(dataset: Any) -> Columns | None:
    if not _is_subset(dataset):
        return None
    whole = _stored(dataset.dataset)
    return whole and {label: column.take(dataset.indices) for label, column in whole.items()}


def _of_parts(dataset: Any) -> Columns | None:
    """Columns of a ``ConcatDataset``, whose parts all have them."""
    if not (hasattr(dataset, "datasets") and hasattr(dataset, "cumulative_sizes")):
        return None
    stored = [_stored(part) for part in dataset.datasets]
    parts = [part for part in stored if part]
    if not parts or len(parts) < len(stored) or len({frozenset(part) for part in parts}) > 1:
        return None
    return {label: _joined([part[label] for part in parts]) for label in parts[0]}


def _joined(columns: list[Column]) -> Column:
    if len({column.classes for column in columns}) > 1 and all(column.classes for column in columns):
        # one class may have different numbers in the parts
        classes = tuple(dict.fromkeys(name for column in columns for name in column.classes))
        code_by_name = {name: code for code, name in enumerate(classes)}
        codes = [code_by_name.get(name, -1) for column in columns for name in column.named()]
        return Column(np.asarray(codes, np.int64), classes)
    same = len({column.classes for column in columns}) == 1
    return Column(np.concatenate([column.values for column in columns]), columns[0].classes if same else ())


def _of_tensors(dataset: Any) -> Columns | None:
    """Columns of a ``TensorDataset``: its further tensors of one axis."""
    tensors = getattr(dataset, "tensors", None)
    if not isinstance(tensors, tuple) or not all(hasattr(tensor, "detach") for tensor in tensors):
        return None
    names = list(field_keys(tensors))
    further = {label: tensor for label, tensor in zip(names[1:], tensors[1:], strict=True) if tensor.ndim == 1}
    return {label: Column(np.asarray(plain_column(tensor))) for label, tensor in further.items()}


def _of_targets(dataset: Any) -> Columns | None:
    """The column ``target`` of torchvision's ``targets`` and ``classes``."""
    for attribute in _TARGETS:
        stored = getattr(dataset, attribute, None)
        if stored is None or isinstance(stored, str | Mapping) or not hasattr(stored, "__len__"):
            continue
        if len(stored) != len(dataset):
            continue
        values = np.asarray(plain_column(stored))
        if values.ndim == 1 and values.dtype.kind in "biufU":
            return {"target": Column(values, _classes(dataset, values))}
    return None


def _classes(dataset: Any, values: Array) -> tuple[str, ...]:
    """Names of the classes that the values number; empty if they do not number classes."""
    classes = getattr(dataset, "classes", None)
    if (
        not isinstance(classes, Sequence)
        or isinstance(classes, str)
        or values.dtype.kind not in "iu"
        or not len(values)
    ):
        return ()
    names = tuple(classes)
    plain = all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
    return names if plain and -1 <= values.min() and values.max() < len(names) else ()
