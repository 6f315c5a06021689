"""Metadata that setsup cannot know of a dataset: limits, biases, uses and social impact, in a YAML file."""

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from setsup.checks import check_path
from setsup.datasets.croissant.vocabulary import RAI
from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup.files.manifests.strict_yaml import read_yaml

__all__ = ["REQUIRED_BY_TRACKS", "missing_properties", "read_rai"]

REQUIRED_BY_TRACKS = (
    "dataLimitations",
    "dataBiases",
    "personalSensitiveInformation",
    "dataUseCases",
    "dataSocialImpact",
)
"""Properties of RAI that dataset tracks of conferences ask for, and that no program can know."""

_GENERAL = {"creator": True, "publisher": True, "keywords": True, "license": True}
_GENERAL |= {"url": False, "version": False, "datePublished": False}


def read_rai(file: Path | str | None) -> dict[str, Any]:
    """Properties of a document from a YAML file, nothing where there is none.

    Keys are those of the RAI vocabulary, such as ``dataLimitations``, and ``creator``, ``publisher``,
    ``datePublished``, ``version``, ``url``, ``license`` and ``keywords``. Values are strings, or lists of strings where
    a property may have several values.

    Raises
    ------
    DataError
        When the file cannot be read, has another key, or a value that is neither.

    """
    if file is None:
        return {}
    fields = read_yaml(expanded(check_path(file, "rai", DataError)), "file of RAI properties")
    found: dict[str, Any] = {}
    for name, several in {**RAI, **_GENERAL}.items():
        value = fields.get(name, _many if several else _one)
        if value is not None:
            found[name if name in _GENERAL else f"rai:{name}"] = value
    fields.done()
    for name in ("creator", "publisher"):
        if name in found:
            people = [found[name]] if isinstance(found[name], str) else found[name]
            found[name] = [
                {"@type": "sc:Person" if name == "creator" else "sc:Organization", "name": one} for one in people
            ]
    if not found:
        raise DataError(f"{file} has no properties; expected some of {', '.join(REQUIRED_BY_TRACKS)}")
    return found


def missing_properties(described: Mapping[str, Any]) -> list[str]:
    """Names of the properties of :data:`REQUIRED_BY_TRACKS` that a document lacks."""
    return [name for name in REQUIRED_BY_TRACKS if f"rai:{name}" not in described]


def _one(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float | date | datetime) or not str(value).strip():
        raise ValueError("a string")
    return value.isoformat() if isinstance(value, date) else " ".join(str(value).split())


def _many(value: Any) -> str | list[str]:
    if not isinstance(value, list):
        return _one(value)
    if not value:
        raise ValueError("a string, or a list of strings")
    return [_one(each) for each in value]
