"""What a Croissant document describes: its files, its record sets and their fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Column", "Described", "Field", "FileObject", "FileSet", "RecordSet"]


@dataclass(frozen=True, slots=True)
class FileObject:
    """A file: its address, absolute or relative, and the file that contains it, if one does.

    `size` is its number of bytes, None where that is unknown or rounded; it has at most `limit`, None where that is
    unknown.
    """

    node: str
    url: str
    formats: tuple[str, ...]
    within: tuple[str, ...]
    size: int | None = None
    limit: int | None = None
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files of folders or archives whose names match patterns."""

    node: str
    formats: tuple[str, ...]
    within: tuple[str, ...]
    includes: tuple[str, ...]
    excludes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """Where values come from: a node, what is extracted from it, and the transforms of that.

    `extract` is ``column``, ``fileProperty``, ``jsonPath`` or nothing, where the node is a field; `name` says which.
    """

    node: str
    extract: str = ""
    name: str = ""
    transforms: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field; `name` is that of a factor, `annotations` has those with constant values by their property."""

    node: str
    name: str
    types: tuple[str, ...]
    source: Column | None
    references: Column | None
    annotations: Mapping[str, Any]
    is_array: bool

    @property
    def is_image(self) -> bool:
        """Whether its values are images."""
        return "ImageObject" in self.types


@dataclass(frozen=True, slots=True)
class RecordSet:
    """Records: their fields, those nested in others too, and their data where it is inline."""

    node: str
    fields: tuple[Field, ...]
    data: tuple[Mapping[str, Any], ...]
    arrays: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A document."""

    name: str
    files: Mapping[str, FileObject | FileSet]
    records: Mapping[str, RecordSet]
