"""Factors as Croissant describes them: fields with annotations, and record sets of their levels."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from setsup.datasets.croissant.vocabulary import MOST_LEVELS, TERMS
from setsup.datasets.modality import Modality
from setsup.factors import Factor
from setsup.factors.split_words import usual_split

__all__ = [
    "column_source",
    "describe_factor",
    "describe_modality",
    "enumerations",
    "factor_field",
    "modality_annotations",
    "node_id",
    "reference",
    "shape_text",
]

_SPLITS = {"train": "cr:TrainingSplit", "validation": "cr:ValidationSplit", "test": "cr:TestSplit"}


def node_id(place: str, *names: str) -> str:
    """Identifier of a node in a place: names behind it with ``/`` between them, of which each is valid in an IRI.

    Examples
    --------
    >>> node_id("samples", "größe / cm")
    'samples/gr%C3%B6%C3%9Fe%20%2F%20cm'

    """
    return "/".join((place, *(quote(name, safe="") for name in names)))


def reference(kind: str, node: str) -> dict[str, Any]:
    """A reference to a node: ``fileObject``, ``fileSet`` or ``field``."""
    return {kind: {"@id": node}}


def column_source(file: str, column: str) -> dict[str, Any]:
    """Source of a field: a column of a file."""
    return {**reference("fileObject", file), "extract": {"column": column}}


def shape_text(modality: Modality) -> str:
    """Shape of a modality; −1 is a length that differs."""
    return ",".join("-1" if length is None else str(length) for length in modality.shape)


def factor_field(factor: Factor, record_set: str, source: Mapping[str, Any], *, coded: bool = False) -> dict[str, Any]:
    """Field of a factor in a record set; `source` has its values, or if they are `coded`, the order of its levels."""
    place = node_id(record_set, factor.name)
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": place,
        "name": factor.name,
        "description": describe_factor(factor),
        "dataType": "sc:Integer" if coded else _data_type(factor),
        "source": dict(source),
    }
    if _is_listed(factor):
        field["references"] = reference("field", node_id("levels", factor.name, "order" if coded else "value"))
    about = factor.to_dict()
    field["annotation"] = [_annotation(place, name, term, about[name]) for name, term in TERMS.items() if name in about]
    return field


def modality_annotations(place: str, modality: Modality) -> list[dict[str, Any]]:
    """Shape, dtype, unit and color of a modality, as annotations of its field."""
    known = {"shape": shape_text(modality), "dtype": modality.dtype, "unit": modality.unit, "color": modality.color}
    return [
        _annotation(place, name, TERMS.get(name, f"setsup:{name}"), value)
        for name, value in known.items()
        if value or name == "shape"
    ]


def describe_modality(modality: Modality) -> str:
    """A sentence on a modality."""
    lengths = " × ".join("any" if length is None else str(length) for length in modality.shape) or "a number"
    unit = f"in {modality.unit}" if modality.unit else ""
    return ", ".join(filter(None, [f"{modality.dtype}, {lengths}", modality.color, unit])) + "."


def describe_factor(factor: Factor) -> str:
    """A sentence on a factor, with all that a reader who knows no annotations needs."""
    what = "Key" if factor.role == "key" else "Split" if factor.role == "split" else "Factor of variation"
    parts = [f"{what}: {factor.kind}", f"{len(factor):,} levels" if factor.levels is not None else ""]
    parts += [f"in {factor.unit}" if factor.unit else "", f"with period {factor.period:g}" if factor.period else ""]
    parts += [f"nested within {factor.within}" if factor.within else ""]
    return ", ".join(filter(None, parts)) + ". Unknown values are null."


def enumerations(factors: Sequence[Factor]) -> list[dict[str, Any]]:
    """Record sets of the levels of all factors that have at most :data:`MOST_LEVELS`."""
    return [_enumeration(factor) for factor in factors if _is_listed(factor)]


def _data_type(factor: Factor) -> str:
    """Type of a factor's values."""
    if factor.levels is None:
        return "sc:Float"
    first = factor.levels[0]
    if isinstance(first, str):
        return "sc:Text"
    if isinstance(first, bool):
        return "sc:Boolean"
    return "sc:Integer" if all(isinstance(level, int) for level in factor.levels) else "sc:Float"


def _is_listed(factor: Factor) -> bool:
    return factor.levels is not None and len(factor) <= MOST_LEVELS


def _enumeration(factor: Factor) -> dict[str, Any]:
    place = node_id("levels", factor.name)
    levels = factor.levels or ()
    kinds = {"name": "sc:Text", "value": _data_type(factor), "order": "sc:Integer"}
    rows = [
        {f"{place}/name": str(level), f"{place}/value": level, f"{place}/order": code}
        for code, level in enumerate(levels)
    ]
    types = ["sc:Enumeration"]
    if factor.role == "split":
        types.append("cr:Split")
        usual = [usual_split(str(level)) for level in levels]
        if None not in usual:
            kinds["url"] = "sc:URL"
            for row, split in zip(rows, usual, strict=True):
                row[f"{place}/url"] = _SPLITS[split or ""]
    return {
        "@type": "cr:RecordSet",
        "@id": place,
        "name": f"levels of {factor.name}",
        "description": f"Levels of {factor.name} in their order.",
        "dataType": types if len(types) > 1 else types[0],
        "key": {"@id": f"{place}/name"},
        "field": [
            {"@type": "cr:Field", "@id": f"{place}/{name}", "name": name, "dataType": kind}
            for name, kind in kinds.items()
        ],
        "data": rows,
    }


def _annotation(place: str, name: str, term: str, value: Any) -> dict[str, Any]:
    """A property of the field at a place, as an annotation with a constant value."""
    kind = "sc:Text" if isinstance(value, str) else "sc:Float"
    node = {"@type": "cr:Field", "@id": f"{place}/{name}", "name": name, "dataType": kind}
    return {**node, "equivalentProperty": term, "value": value}
