"""Read a Croissant document: untrusted, bounded, and checked node by node."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from setsup.datasets.formats.json_text import read_json
from setsup.datasets.own.croissant.nodes import Column, Described, Field, FileObject, FileSet, RecordSet
from setsup.errors import DataError, abbreviate
from setsup.factors.io.nested import flat_name

__all__ = ["parse"]

_MOST_FIELDS = 10_000
_MOST_FILES = 1_000_000
_VERSION = re.compile(r"https?://mlcommons\.org/croissant/1\.\d+/?")
_SIZE = re.compile(r"(\d{1,18})(\.\d{1,18})? ?([kmgtp]?)(?:i?b|bytes?)?", re.IGNORECASE)
_UNITS = "kmgtp"
_DATES = {"Date", "DateTime", "Time"}
_LONGEST_NAME = 255  # bytes that file systems allow
_PREFIXES = ("cr:", "ml:", "sc:", "dct:", "rai:", "https://schema.org/", "http://mlcommons.org/croissant/")


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
    name = reader.string(top.get("name"), "name") or "croissant"
    fields = [field for one in records for field in one.fields]
    reader.by_node(fields, "fields")
    return Described(name, reader.containing(files), reader.by_node(records, "record sets"))


Node = TypeVar("Node", "FileObject | FileSet", RecordSet, Field)


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

    def string(self, value: Any, what: str) -> str:
        """A string, of the first language where there are several."""
        if isinstance(value, dict):
            value = value.get("@value", next(iter(value.values()), None))
        if value is None:
            return ""
        if not isinstance(value, str | int | float):
            raise DataError(f"{self._label}: {what} must be a string, not {abbreviate(value)}")
        return str(value)

    def strings(self, value: Any, what: str) -> tuple[str, ...]:
        """Strings, one or several."""
        return tuple(self.string(one, what) for one in self.many(value))

    def reference(self, value: Any, what: str) -> str:
        """Identifier that a reference names."""
        node = value if isinstance(value, str) else self.plain(value, what).get("@id")
        if not isinstance(node, str) or not node:
            raise DataError(
                f"{self._label}: {what} must be a reference, as in {{'@id': 'NAME'}}, not {abbreviate(value)}"
            )
        return node

    def by_node(self, nodes: list[Node], what: str) -> dict[str, Node]:
        """Nodes by identifier, which must be distinct."""
        known: dict[str, Node] = {}
        for one in nodes:
            if one.node in known:
                raise DataError(f"{self._label} has two {what} with the @id {one.node!r}; identifiers must be distinct")
            known[one.node] = one
        return known

    def containing(self, files: list[FileObject | FileSet]) -> dict[str, FileObject | FileSet]:
        """Files by identifier; each is contained in known ones, and in no cycle."""
        known = self.by_node(files, "files")
        for one in files:
            seen, left = {one.node}, list(one.within)
            while left:
                outer = left.pop()
                if outer not in known:
                    raise DataError(f"{self._label}: {one.node!r} is contained in {outer!r}, which is not listed")
                if outer == one.node:
                    raise DataError(f"{self._label}: {one.node!r} is contained in itself")
                if outer not in seen:
                    seen.add(outer)
                    left += known[outer].within
        return known

    def file(self, value: Any) -> FileObject | FileSet:
        node = self.plain(value, "a file of distribution")
        name = self.reference(node, "a file of distribution")
        formats = self.strings(node.get("encodingFormat"), f"the encodingFormat of {name!r}")
        within = tuple(self._container(one, name) for one in self.many(node.get("containedIn")))
        if _short(str(node.get("@type"))) == "FileSet":
            includes, excludes = (self.strings(node.get(key), f"{key} of {name!r}") for key in ("includes", "excludes"))
            return FileSet(name, formats, within, includes, excludes)
        size, limit = _content_size(self.string(node.get("contentSize"), f"the contentSize of {name!r}"))
        digests = {key: self.string(node.get(key), key).lower() for key in ("sha256", "md5")}
        return FileObject(
            name,
            self.address(node.get("contentUrl"), f"the contentUrl of {name!r}"),
            formats,
            within,
            size,
            limit,
            digests["sha256"] if re.fullmatch("[0-9a-f]{64}", digests["sha256"]) else None,
            digests["md5"] if re.fullmatch("[0-9a-f]{32}", digests["md5"]) else None,
        )

    def address(self, value: Any, what: str) -> str:
        """A path or an address, of which each part can be the name of a file."""
        text = self.string(value, what)
        try:
            parts = urlsplit(text)
            longest = max(len(unquote(part).encode()) for part in parts.path.split("/"))
            parts.port  # noqa: B018  raises where it is no number
        except ValueError as error:  # also of what is not Unicode
            raise DataError(
                f"{self._label}: {what} is {abbreviate(text)}, which is not an address: {error}; expected a path, or "
                "an address of http or https"
            ) from None
        if longest > _LONGEST_NAME:
            raise DataError(
                f"{self._label}: {what} has a name of {longest:,} bytes; expected at most {_LONGEST_NAME}, as file "
                "systems allow"
            )
        return text

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
        fields = tuple(self._all_fields(node.get("field"), name))
        data = tuple(self.plain_data(one, name) for one in self.many(node.get("data")))
        arrays = tuple(self.plain(one, f"setsup:arrays of {name!r}") for one in self.many(node.get("setsup:arrays")))
        return RecordSet(name, fields, data, arrays)

    def plain_data(self, value: Any, name: str) -> Mapping[str, Any]:
        """A record that is inline."""
        if not isinstance(value, dict):
            raise DataError(f"{self._label}: data of {name!r} must be a list of mappings, not {abbreviate(value)}")
        return value

    def _all_fields(self, value: Any, record_set: str, outer: tuple[str, ...] = ()) -> Iterator[Field]:
        for one in self.many(value):
            self._fields += 1
            if self._fields > _MOST_FIELDS:
                raise DataError(
                    f"{self._label} has more than {_MOST_FIELDS:,} fields, which is the limit; split the description"
                )
            node = self.plain(one, f"a field of {record_set!r}")
            place = self.reference(node, f"a field of {record_set!r}")
            name = self.string(node.get("name"), f"the name of {place!r}") or place
            # most publishers repeat the identifier as the name
            name = flat_name((*outer, place.removeprefix(record_set + "/") if name == place else name))
            if node.get("subField") is not None:
                yield from self._all_fields(node["subField"], record_set, (name,))
                continue
            types = tuple(_short(one) for one in self._types(node.get("dataType"), place))
            source = self._source(node.get("source"), place)
            if source is not None and not _DATES.isdisjoint(types):
                # it says how a string is read as a date, and dates are strings here
                kept = tuple((kind, value) for kind, value in source.transforms if kind != "format")
                source = replace(source, transforms=kept)
            yield Field(
                place,
                name,
                types,
                source,
                self._source(node.get("references"), place),
                dict(self._annotations(node.get("annotation"), place)),
                bool(node.get("isArray") or node.get("repeated")),
            )

    def _types(self, value: Any, place: str) -> tuple[str, ...]:
        nodes = [one.get("@id", "") if isinstance(one, dict) else one for one in self.many(value)]
        return self.strings(nodes, f"the dataType of {place!r}")

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
        [(key, name)] = chosen or [("", "")]
        return Column(self.reference(inner, what), key, self.string(name, what), tuple(self._transforms(node, what)))

    def _transforms(self, node: Mapping[str, Any], what: str) -> Iterator[tuple[str, str]]:
        for one in self.many(node.get("transform")):
            for key, each in self.plain(one, f"a transform of {what}").items():
                if not key.startswith("@"):
                    yield key, self.string(each, what)


def _short(key: Any) -> str:
    """A term without the prefix of its vocabulary."""
    text = str(key)
    return next((text.removeprefix(prefix) for prefix in _PREFIXES if text.startswith(prefix)), text)


def _content_size(text: str) -> tuple[int | None, int | None]:
    """Bytes of a file, None where they are rounded as in ``12.5 MB``, and at most how many it has.

    Examples
    --------
    >>> _content_size("512 B"), _content_size("1.5 kB"), _content_size("large")
    ((512, 512), (None, 2048), (None, None))

    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None, None
    whole, fraction, unit = found.groups()
    power = _UNITS.index(unit.lower()) + 1 if unit else 0
    if not power and not fraction:
        return int(whole), int(whole)
    return None, (int(whole) + 1) * 1024**power
