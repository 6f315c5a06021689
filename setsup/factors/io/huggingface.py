"""Factor tables from and to Hugging Face ``datasets``.

Convention
----------
Class labels are nominal factors with their names, values are inferred; the fields of a struct are factors named after
both, ``label.wall_hue`` for ``wall_hue`` in ``label``. What a feature has no place for (kind, unit, period, nesting,
role, levels in their order) is kept in its ``id``, as the word setsup and JSON; it stays there in saved datasets, in
Parquet files, and in the features of a card.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from setsup.arrays import Rows
from setsup.checks import check_mapping
from setsup.errors import FactorError, imported
from setsup.factors.columns import FactorColumns
from setsup.factors.factor import Factor, Kind, check_factors
from setsup.factors.histograms import count_joint
from setsup.factors.io.arrow import say_left_out, to_arrow
from setsup.factors.io.distinct import is_usable
from setsup.factors.io.frames import ROWS
from setsup.factors.io.infer import from_blocks
from setsup.factors.io.nested import flat_name, is_encoded_file

__all__ = [
    "Leaf",
    "columns_and_features",
    "data_rows",
    "from_huggingface",
    "is_factor",
    "leaf_column",
    "leaves",
    "read_note",
    "to_huggingface",
    "write_note",
]

Leaf = tuple[tuple[str, ...], Any]
"""A feature and where it lies: the name of a column and of the fields in it."""

_MARK = "setsup "
_MANY = 4096
"""String levels from which a factor is written as strings: a class label lists its names in every header."""


def from_huggingface(
    dataset: Any,
    factors: Sequence[Factor] = (),
    kinds: Mapping[str, Kind | str] | None = None,
    quiet: bool = False,
) -> FactorColumns:
    """Table from a Hugging Face ``datasets.Dataset``.

    Class labels become nominal factors with their names, values are inferred, structs one factor per field; images,
    lists, arrays and other features are left out, lists with a warning unless `quiet`. Factors that
    :func:`to_huggingface` wrote come back as they were.
    """
    datasets = imported("datasets", "hf")
    if not isinstance(dataset, datasets.Dataset):
        fix = "choose a split, such as dataset['train']" if isinstance(dataset, dict) else "load it without streaming"
        raise FactorError(f"from_huggingface expects a datasets.Dataset, not {type(dataset).__name__}; {fix}")
    found = leaves(dataset.features)
    columns = {name: leaf for name, leaf in found.items() if is_factor(name, leaf[1])}
    lists = {name: _inner(feature) for name, (_, feature) in found.items() if _inner(feature) is not None}
    if lists and not quiet:
        say_left_out("the dataset", {name: f"list of {inner}" for name, inner in lists.items()})
    kinds = {} if kinds is None else check_mapping(kinds, "kinds", FactorError)
    declared = {factor.name for factor in check_factors(factors)} | kinds.keys()
    labels = {
        name: {"kind": Kind.NOMINAL, "levels": feature.names}
        for name, (_, feature) in columns.items()
        if isinstance(feature, datasets.ClassLabel)
    }
    known = {
        name: {**labels.get(name, {}), **(read_note(name, feature) or {})}
        for name, (_, feature) in columns.items()
        if name not in declared
    }
    described = {name: _describe(name, about, columns) for name, about in known.items() if about}
    whole = [factor for factor in described.values() if isinstance(factor, Factor)]
    # levels that a note leaves out: sorted strings
    short = {name: about for name, about in described.items() if not isinstance(about, Factor)}

    def blocks() -> Iterator[Any]:
        import pyarrow as pa

        for arrays in _leaf_blocks(dataset, [path for path, _ in columns.values()]):
            spelled = [_decode_labels(array, leaf[1]) for array, leaf in zip(arrays, columns.values(), strict=True)]
            yield pa.RecordBatch.from_arrays(spelled, names=list(columns))

    # sorted strings, nominal until the note gives their kind
    kinds = {**dict.fromkeys(short, Kind.NOMINAL), **kinds}
    table = from_blocks(blocks, list(columns), [*factors, *whole], kinds)
    if not short:
        return table
    levels = {name: list(table[name].levels or ()) for name in short}
    settled = [
        Factor.from_dict({**short[factor.name], "levels": levels[factor.name]}) if factor.name in short else factor
        for factor in table.factors
    ]
    return FactorColumns(settled, {name: table.column(name) for name in table.names})


def to_huggingface(table: FactorColumns) -> Any:
    """Give a ``datasets.Dataset``: class labels for strings, values for numbers and booleans.

    ``FactorTable.from_huggingface(dataset)`` gives the table back.
    """
    datasets = imported("datasets", "hf")
    columns, features = columns_and_features(table)
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def columns_and_features(table: FactorColumns) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrow arrays of all factors as Hugging Face stores them, null where unknown, and their features."""
    import pyarrow as pa

    datasets = imported("datasets", "hf")
    try:
        arrow = to_arrow(table)
    except (pa.ArrowException, OverflowError) as error:
        raise FactorError(f"the factors cannot be written as Arrow: {error}") from None
    columns, features = {}, {}
    for factor in table.factors:
        column = arrow.column(factor.name).combine_chunks()
        about = factor.to_dict()
        del about["name"]
        if factor.levels is None:
            feature = datasets.Value("float32", id=write_note(about))
        elif not isinstance(factor.levels[0], str):
            column = column.dictionary_decode()
            feature = datasets.Value(str(column.type).replace("double", "float64"), id=write_note(about))
        elif len(factor) > _MANY:
            if _implied(factor, table):
                del about["levels"]
            column = column.dictionary_decode()
            feature = datasets.Value("string", id=write_note(about))
        else:
            column = column.indices.cast("int64")
            del about["levels"]
            feature = datasets.ClassLabel(
                names=list(factor.levels), id=None if about == {"kind": Kind.NOMINAL} else write_note(about)
            )
        columns[factor.name], features[factor.name] = column, feature
    return columns, features


def leaves(features: Mapping[str, Any]) -> dict[str, Leaf]:
    """Features by name, those of structs by the names of column and fields joined by a dot.

    A struct of ``bytes`` and ``path`` is one feature: an encoded file, as Hugging Face keeps images.
    """
    by_name: dict[str, Leaf] = {}
    for path, feature in _walk(features):
        name = flat_name(path)
        if name in by_name:
            raise FactorError(
                f"{'.'.join(by_name[name][0])} and {'.'.join(path)} would both be called {name!r}; rename a column "
                "(dataset.rename_column)"
            )
        by_name[name] = path, feature
    return by_name


def leaf_column(part: Any, path: Sequence[str]) -> Any:
    """Chunked array of a leaf of a ``pyarrow.Table``, nothing copied: null where the leaf is, or a struct around it."""
    import pyarrow.compute as pc

    column = part.column(path[0])
    return pc.struct_field(column, list(path[1:])) if path[1:] else column


def data_rows(dataset: Any) -> Rows | None:
    """Number in ``dataset.data`` of every row of a dataset; None for all rows in order.

    ``select``, ``shuffle`` and ``filter`` leave the data as it is and keep such numbers.

    Returns (rows,) int64 or None.
    """
    indices = dataset._indices  # there is no public name; gathering rows to avoid it takes minutes for some millions
    return None if indices is None else np.asarray(indices.column(0)).astype(np.int64)


def is_factor(name: str, feature: Any) -> bool:
    """Whether a feature is a class label or a value that a factor can have."""
    datasets = imported("datasets", "hf")
    if isinstance(feature, datasets.ClassLabel):
        return True
    return (
        isinstance(feature, datasets.Value)
        and is_usable(feature.pa_type)
        and "modality" not in (read_note(name, feature) or {})
    )


def _inner(feature: Any) -> Any:
    """Feature of the items of a list; None for another feature."""
    return feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)


def write_note(about: Mapping[str, Any]) -> str:
    """What is kept in the ``id`` of a feature."""
    return _MARK + json.dumps(about, ensure_ascii=False)


def read_note(name: str, feature: Any) -> dict[str, Any] | None:
    """What :func:`write_note` kept in the ``id`` of a feature; None where that is something else."""
    text = getattr(feature, "id", None)
    if not isinstance(text, str) or not text.startswith(_MARK):
        return None
    try:
        about = json.loads(text.removeprefix(_MARK))
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise FactorError(f"the id of the feature {name!r} was not written by setsup: {text[:80]!r}")
    return about


def _leaf_blocks(dataset: Any, paths: Sequence[Sequence[str]]) -> Iterator[list[Any]]:
    """Arrow arrays of leaves, some rows at a time."""
    rows = data_rows(dataset)
    columns = [leaf_column(dataset.data, path) for path in paths]
    if rows is not None:
        columns = [column.combine_chunks() for column in columns]
    for first in range(0, len(dataset), ROWS):
        if rows is None:
            yield [column.slice(first, ROWS).combine_chunks() for column in columns]
        else:
            yield [column.take(rows[first : first + ROWS]) for column in columns]


def _walk(features: Mapping[str, Any], outer: tuple[str, ...] = ()) -> Iterator[Leaf]:
    for name, feature in features.items():
        path = (*outer, name)
        if isinstance(feature, dict) and not is_encoded_file(feature.keys()):
            yield from _walk(feature, path)
        else:
            yield path, feature


def _describe(name: str, about: Mapping[str, Any], names: Mapping[str, Any]) -> Factor | dict[str, Any]:
    """Factor that a note describes, or the description where the levels are left to be found."""
    about = {**about, "name": name}
    if about.get("within") not in names:
        about.pop("within", None)  # the column of the factor around it was taken out
    if "levels" not in about and about.get("kind") in tuple(Kind) and about["kind"] != Kind.CONTINUOUS:
        return about
    try:
        return Factor.from_dict(about)
    except (FactorError, TypeError) as error:
        raise FactorError(f"the id of the feature {name!r} does not describe a factor: {error}") from None


def _implied(factor: Factor, table: FactorColumns) -> bool:
    """Whether the levels would be found as they are: sorted, all there, and none empty."""
    levels = list(factor.levels or ())
    return (
        "" not in levels and levels == sorted(map(str, levels)) and bool(count_joint(table, [factor.name], None).all())
    )


def _decode_labels(column: Any, feature: Any) -> Any:
    """Class labels by their names; -1 is unknown. Anything else as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = getattr(feature, "names", None)
    if names is None:
        return column
    codes = pc.if_else(pc.less(column, 0), pa.scalar(None, column.type), column)
    largest = pc.max(codes).as_py()
    if largest is not None and largest >= len(names):
        raise FactorError(
            f"class label {largest} has no name, because its feature has only {len(names)} names; correct the labels, "
            "or add the missing names"
        )
    return pa.DictionaryArray.from_arrays(codes, pa.array(list(names), pa.string()))
