"""Nodes of a Croissant document, as it was written: untrusted, bounded, and checked one by one."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from setsup.datasets.formats.json_text import read_json
from setsup.errors import DataError, abbreviate, did_you_mean

__all__ = ["Column", "Described", "Field", "FileObject", "FileSet", "RecordSet", "parse"]

LARGEST = 1 << 28
"""Bytes of a document."""

_MOST_FIELDS = 10_000
_MOST_FILES = 1_000_000
_VERSION = re.compile(r"https?://mlcommons\.org/croissant/1\.\d+/?")
_PREFIXES = ("cr:", "ml:", "sc:", "dct:", "rai:", "https://schema.org/", "http://mlcommons.org/croissant/")


@dataclass(frozen=True, slots=True)
class FileObject:
    """A file: its address, absolute or relative, and the file that contains it, if one does."""

    name: str
    url: str
    formats: tuple[str, ...]
    within: tuple[str, ...]
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files of folders or archives whose names match patterns."""

    name: str
    formats: tuple[str, ...]
    within: tuple[str, ...]
    includes: tuple[str, ...]
    excludes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """Where values come from: a node, what is extracted of it, and what is done to that.

    `how` is ``column``, ``fileProperty``, ``jsonPath`` or nothing, where the node is a field.
    """

    node: str
    how: str = ""
    what: str = ""
    transforms: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field; `name` is that of a factor, `about` its annotations with constant values by their property."""

    node: str
    name: str
    types: tuple[str, ...]
    source: Column | None
    references: Column | None
    about: Mapping[str, Any]
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
    types: tuple[str, ...]
    data: tuple[Mapping[str, Any], ...]
    arrays: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A document."""

    name: str
    files: Mapping[str, FileObject | FileSet]
    records: Mapping[str, RecordSet]


def parse(content: bytes, label: str) -> Described:
    """Read a document.

    Raises
    ------
    DataError
        When it is no Croissant of version 1, or a node is not as expected.

    """
    document = read_json(content, label)
    if not isinstance(document, dict) or not isinstance(document.get("@context"), dict | list | str):
        raise DataError(f"{label} is not JSON-LD: expected a mapping with @context; pass a Croissant description")
    reader = _Reader(label)
    top = reader.plain(document, "the document")
    versions = [str(one) for one in reader.many(top.get("conformsTo"))]
    if not any(_VERSION.fullmatch(one) for one in versions):
        raise DataError(
            f"{label} conforms to {', '.join(map(abbreviate, versions)) or 'nothing'}; expected Croissant 1.0 or 1.1, "
            "http://mlcommons.org/croissant/1.1; convert the description"
        )
    listed = reader.many(top.get("distribution"))
    if len(listed) > _MOST_FILES:
        raise DataError(f"{label} lists {len(listed):,} files; expected at most {_MOST_FILES:,}")
    files = [reader.file(one) for one in listed]
    records = [reader.record_set(one) for one in reader.many(top.get("recordSet"))]
    name = reader.text(top.get("name"), "name") or "croissant"
    return Described(name, reader.by_name(files), {one.node: one for one in records})


class _Reader:
    """Reads nodes; errors name the document."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._fields = 0

    def plain(self, value: Any, what: str) -> dict[str, Any]:
        """A mapping, its keys without prefixes."""
        if not isinstance(value, dict):
            raise DataError(f"{self._label}: {what} must be a mapping, not {abbreviate(value)}")
        return {_short(key): each for key, each in value.items()}

    def many(self, value: Any) -> list[Any]:
        """A value as a list: nothing, one, or several."""
        return [] if value is None else value if isinstance(value, list) else [value]

    def text(self, value: Any, what: str) -> str:
        """A text, of the first language where there are several."""
        if isinstance(value, dict):
            value = value.get("@value", next(iter(value.values()), None))
        if value is None:
            return ""
        if not isinstance(value, str | int | float):
            raise DataError(f"{self._label}: {what} must be a string, not {abbreviate(value)}")
        return str(value)

    def texts(self, value: Any, what: str) -> tuple[str, ...]:
        """Texts, one or several."""
        return tuple(self.text(one, what) for one in self.many(value))

    def reference(self, value: Any, what: str) -> str:
        """Identifier that a reference names."""
        node = value if isinstance(value, str) else self.plain(value, what).get("@id")
        if not isinstance(node, str) or not node:
            raise DataError(
                f"{self._label}: {what} must be a reference, as in {{'@id': 'NAME'}}, not {abbreviate(value)}"
            )
        return node

    def by_name(self, files: list[FileObject | FileSet]) -> dict[str, FileObject | FileSet]:
        """Files by identifier; each is contained in known ones, and in no cycle."""
        known = {one.name: one for one in files}
        if len(known) < len(files):
            raise DataError(f"{self._label} has two files with the same @id; identifiers must be distinct")
        for one in files:
            seen, left = {one.name}, list(one.within)
            while left:
                outer = left.pop()
                if outer not in known:
                    raise DataError(f"{self._label}: {one.name!r} is contained in {outer!r}, which is not listed")
                if outer == one.name:
                    raise DataError(f"{self._label}: {one.name!r} is contained in itself")
                if outer not in seen:
                    seen.add(outer)
                    left += known[outer].within
        return known

    def file(self, value: Any) -> FileObject | FileSet:
        node = self.plain(value, "a file of distribution")
        name = self.reference(node, "a file of distribution")
        formats = self.texts(node.get("encodingFormat"), f"the encodingFormat of {name!r}")
        within = tuple(self._container(one, name) for one in self.many(node.get("containedIn")))
        if _short(str(node.get("@type"))) == "FileSet":
            includes, excludes = (self.texts(node.get(key), f"{key} of {name!r}") for key in ("includes", "excludes"))
            return FileSet(name, formats, within, includes, excludes)
        size = re.fullmatch(r"(\d{1,18})(?: ?B)?", self.text(node.get("contentSize"), "contentSize").strip())
        digests = {key: self.text(node.get(key), key).lower() for key in ("sha256", "md5")}
        return FileObject(
            name,
            self.text(node.get("contentUrl"), f"the contentUrl of {name!r}"),
            formats,
            within,
            int(size[1]) if size else None,
            digests["sha256"] if re.fullmatch("[0-9a-f]{64}", digests["sha256"]) else None,
            digests["md5"] if re.fullmatch("[0-9a-f]{32}", digests["md5"]) else None,
        )

    def _container(self, value: Any, name: str) -> str:
        node = {"@id": value} if isinstance(value, str) else self.plain(value, f"containedIn of {name!r}")
        if "transform" in node:
            raise DataError(
                f"{self._label}: {name!r} is a list of files in another file, which setsup does not read; list the "
                "files in a table, and open that"
            )
        return self.reference(node.get("fileObject", node.get("fileSet", node)), f"containedIn of {name!r}")

    def record_set(self, value: Any) -> RecordSet:
        node = self.plain(value, "a record set")
        name = self.reference(node, "a record set")
        fields = tuple(self._all_fields(node.get("field"), name, ""))
        data = tuple(self.plain_data(one, name) for one in self.many(node.get("data")))
        types = tuple(_short(one) for one in self.texts(node.get("dataType"), f"the dataType of {name!r}"))
        arrays = tuple(self.plain(one, f"setsup:arrays of {name!r}") for one in self.many(node.get("setsup:arrays")))
        return RecordSet(name, fields, types, data, arrays)

    def plain_data(self, value: Any, name: str) -> Mapping[str, Any]:
        """A record that is inline."""
        if not isinstance(value, dict):
            raise DataError(f"{self._label}: data of {name!r} must be a list of mappings, not {abbreviate(value)}")
        return value

    def _all_fields(self, value: Any, record_set: str, outer: str) -> Iterator[Field]:
        for one in self.many(value):
            self._fields += 1
            if self._fields > _MOST_FIELDS:
                raise DataError(
                    f"{self._label} has more than {_MOST_FIELDS:,} fields; expected a description of a table"
                )
            node = self.plain(one, f"a field of {record_set!r}")
            place = self.reference(node, f"a field of {record_set!r}")
            name = self.text(node.get("name"), f"the name of {place!r}") or place
            name = f"{outer}{name.removeprefix(record_set + '/')}"
            if node.get("subField") is not None:
                yield from self._all_fields(node["subField"], record_set, f"{name}_")
                continue
            yield Field(
                place,
                name,
                tuple(_short(one) for one in self._types(node.get("dataType"), place)),
                self._source(node.get("source"), place),
                self._source(node.get("references"), place),
                dict(self._annotations(node.get("annotation"), place)),
                bool(node.get("isArray") or node.get("repeated")),
            )

    def _types(self, value: Any, place: str) -> tuple[str, ...]:
        nodes = [one.get("@id", "") if isinstance(one, dict) else one for one in self.many(value)]
        return self.texts(nodes, f"the dataType of {place!r}")

    def _annotations(self, value: Any, place: str) -> Iterator[tuple[str, Any]]:
        for one in self.many(value):
            node = self.plain(one, f"an annotation of {place!r}")
            term, known = node.get("equivalentProperty"), node.get("value")
            if isinstance(term, str) and isinstance(known, str | int | float):
                yield term, known

    def _source(self, value: Any, place: str) -> Column | None:
        if value is None or value == {}:
            return None
        what = f"the source of {place!r}"
        node = self.plain(value, what)
        inner = next((node[key] for key in ("fileObject", "fileSet", "field", "recordSet") if key in node), node)
        extract = self.plain(node.get("extract", {}), what)
        chosen = [(key, extract[key]) for key in ("column", "fileProperty", "jsonPath") if extract.get(key) is not None]
        if len(chosen) > 1:
            raise DataError(
                f"{self._label}: {what} extracts {' and '.join(key for key, _ in chosen)}; expected one of them"
            )
        [(how, wanted)] = chosen or [("", "")]
        return Column(self.reference(inner, what), how, self.text(wanted, what), tuple(self._transforms(node, what)))

    def _transforms(self, node: Mapping[str, Any], what: str) -> Iterator[tuple[str, str]]:
        for one in self.many(node.get("transform")):
            for key, each in self.plain(one, f"a transform of {what}").items():
                if key in ("regex", "jsonPath", "separator", "format", "replace"):
                    yield key, self.text(each, what)


def _short(key: Any) -> str:
    """A term without the prefix of its vocabulary."""
    text = str(key)
    return next((text.removeprefix(prefix) for prefix in _PREFIXES if text.startswith(prefix)), text)


def find(records: Mapping[str, Any], name: str, label: str, what: str) -> Any:
    """A node by its identifier; DataError with similar ones where there is none."""
    if name not in records:
        raise DataError(f"{label} has no {what} {name!r}{did_you_mean(name, records)}")
    return records[name]
