"""Values of fields: columns of tables, parts of the names of files, and parts of JSON."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from setsup.datasets.formats.json_text import read_json
from setsup.datasets.own.croissant.files import Files
from setsup.datasets.own.croissant.nodes import Column, FileObject, FileSet
from setsup.errors import DamagedFile, DataError, SetsupError, abbreviate, did_you_mean
from setsup.factors.io.text_file import arrow_source

__all__ = ["Tables", "name_values", "transformed"]

_LARGEST_JSON = 1 << 30
_LONGEST_PATTERN = 1000
_RATIO, _MOST = 100, 1 << 28  # bytes of a table for each of its file, and beside
_ROWS = 1 << 14  # that are read at once
_NULLS = ["", "NA", "NaN", "nan", "null"]
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?:'(?P<quoted>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<all>\*)|(?P<at>\d+))\]")


@dataclass
class Tables:
    """Tables of a description, each read once: by identifier, the files of a set one after the other."""

    files: Files
    _read: dict[str, list[Any]] = field(default_factory=dict)

    def rows(self, node: str) -> int:
        """Rows of a table."""
        return sum(len(table) for table in self.tables(node))

    def column(self, source: Column, label: str) -> Any:
        """Values of a column of a table, a pyarrow array."""
        import pyarrow as pa

        if source.how == "jsonPath":
            return pa.array(_follow(self._document(source.node), source.what, label))
        chunks = []
        for table in self.tables(source.node):
            if source.what not in table.column_names:
                raise DataError(
                    f"{self.files.label}: {label} is the column {source.what!r} of {source.node!r}, which has none of "
                    f"that name{did_you_mean(source.what, table.column_names)}"
                )
            chunks += table.column(source.what).chunks
        return _joined(chunks)

    def tables(self, node: str) -> list[Any]:
        """Tables of a file or a set of files, a ``pyarrow.Table`` for each file."""
        if node not in self._read:
            self._read[node] = [self._table(node, place) for place in self._places(node)]
        return self._read[node]

    def names(self, node: str) -> list[tuple[str, int]]:
        """For each table of a set its name, and its rows."""
        chosen = self.files.described.files.get(node)
        if isinstance(chosen, FileObject):
            names = [chosen.url]
        else:
            names = [name for part in self.files.parts(node) for name in part.names()]
        return list(zip(names, map(len, self.tables(node)), strict=True))

    def _places(self, node: str) -> Sequence[Path | bytes]:
        chosen = self.files.described.files.get(node)
        if not isinstance(chosen, FileSet):
            return [self.files.content(node)]
        found: list[Path | bytes] = []
        for part in self.files.parts(node):
            for place in part.places.tolist():
                path = part.members.path(place)
                found.append(part.members.read(place) if path is None else path)
        return found

    def _table(self, node: str, place: Path | bytes) -> Any:
        chosen = self.files.described.files[node]
        label = str(place) if isinstance(place, Path) else f"{node!r} of {self.files.label}"
        kinds = " ".join(chosen.formats).lower()
        name = place.name.lower() if isinstance(place, Path) else ""
        with _readable(label):
            if "parquet" in kinds or name.endswith((".parquet", ".pq")):
                return _parquet(place, self._columns(node))
            if "arrow" in kinds or name.endswith(".arrow"):
                return _arrow(place)
            if "csv" in kinds or "tab-separated" in kinds or "tsv" in kinds or name.endswith((".csv", ".tsv")):
                tabs = "csv" not in kinds and ("tab" in kinds or "tsv" in kinds or name.endswith(".tsv"))
                return _csv(place, "\t" if tabs else ",", self._texts(node))
            if "jsonl" in kinds or "json-lines" in kinds or "ndjson" in kinds or name.endswith((".jsonl", ".ndjson")):
                return _json_lines(place)
        raise DataError(
            f"{label} has the format {kinds or 'none'}; setsup reads Parquet, Arrow, CSV, TSV and JSON lines of a "
            "description; convert the file, or open another record set"
        )

    def _columns(self, node: str) -> set[str]:
        """Columns of a table that some field names."""
        fields = [field for one in self.files.described.records.values() for field in one.fields]
        sources = [source for field in fields for source in (field.source, field.references) if source is not None]
        return {source.what for source in sources if source.node == node and source.how == "column"}

    def _texts(self, node: str) -> set[str]:
        """Columns of a table that are texts, whatever they look like: keys, and those of fields of that type."""
        fields = [field for one in self.files.described.records.values() for field in one.fields]
        keys = {field.references for field in fields if field.references is not None}
        keys |= {field.source for field in fields if field.source is not None and "Text" in field.types}
        return {source.what for source in keys if source.node == node and source.how == "column"}

    def _document(self, node: str) -> Any:
        if node not in self._read:
            place = self.files.content(node)
            if isinstance(place, Path) and place.stat().st_size > _LARGEST_JSON:
                raise DataError(f"{place} has more bytes than the limit of {_LARGEST_JSON:,} for a JSON file")
            content = place.read_bytes() if isinstance(place, Path) else place
            self._read[node] = [read_json(content, f"{node!r} of {self.files.label}")]
        return self._read[node][0]


def name_values(names: Sequence[str], source: Column, label: str) -> list[str | None]:
    """Values of files by their names: the whole one or the last part, as transforms leave them."""
    if source.what not in ("fullpath", "filename"):
        raise DataError(
            f"{label} is the {source.what!r} of files; expected their fullpath or filename, or the content of images"
        )
    texts = [PurePosixPath(name).name if source.what == "filename" else name for name in names]
    return transformed(texts, source, label)


def transformed(texts: Sequence[Any], source: Column, label: str) -> list[Any]:
    """Texts after the regular expressions of a source: their first group; those that do not match are unknown."""
    values = list(texts)
    for kind, pattern in source.transforms:
        if kind != "regex":
            raise DataError(f"{label} is transformed by {kind}, which setsup does not do; choose another record set")
        values = _first_groups(values, pattern, label)
    return values


def _first_groups(values: list[Any], pattern: str, label: str) -> list[str | None]:
    """First group of an expression that matches where each text begins; by RE2, whose time is linear."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        groups = re.compile(pattern).groups if len(pattern) <= _LONGEST_PATTERN else 0
        texts = pa.array([None if value is None else str(value) for value in values], pa.large_string())
        matching = pc.match_substring_regex(texts, f"^(?:{pattern})")
        first = pc.replace_substring_regex(
            texts, f"^(?:{pattern})(?s:.*)$", "".join(f"\\{group}" for group in range(1, min(groups, 9) + 1))
        )
    except (re.error, RecursionError, OverflowError, pa.ArrowException) as error:
        why = " ".join(str(error).split())[:200]
        raise DataError(f"{label}: the regular expression {abbreviate(pattern)} cannot be used: {why}") from None
    if not groups:
        raise DataError(
            f"{label}: the regular expression {abbreviate(pattern)} has no group of a value, or is too long"
        )
    return [value if matches else None for value, matches in zip(first.to_pylist(), matching.to_pylist(), strict=True)]


def _follow(document: Any, path: str, label: str) -> list[Any]:
    """Values at a path of names, numbers and ``[*]``, such as ``$.images[*].id``."""
    text = path.removeprefix("$")
    steps = list(_STEP.finditer(text))
    if "".join(step[0] for step in steps) != text:
        raise DataError(f"{label} has the JSON path {path!r}; setsup reads names and [*], as in $.images[*].id")
    values = [document]
    for step in steps:
        name = step["name"] or step["quoted"] or step["double"]
        found: list[Any] = []
        for value in values:
            if step["all"] and isinstance(value, list):
                found += value
            elif step["at"] and isinstance(value, list) and int(step["at"]) < len(value):
                found.append(value[int(step["at"])])
            elif name is not None and isinstance(value, Mapping):
                found.append(value.get(name))
            else:
                raise DataError(f"{label}: {path!r} leads to {abbreviate(value)}, which has no {step[0]}")
        values = found
    return [value if isinstance(value, str | int | float | bool) else None for value in values]


def _joined(chunks: Sequence[Any]) -> Any:
    import pyarrow as pa

    plain = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]
    if not plain:
        return pa.array([], pa.large_string())
    return (
        pa.concat_arrays(plain)
        if len({str(one.type) for one in plain}) == 1
        else pa.chunked_array(plain).combine_chunks()
    )


@contextmanager
def _readable(label: str) -> Iterator[None]:
    """Say in one sentence that a table is damaged: Arrow's readers raise whatever they come across."""
    try:
        yield
    except SetsupError:
        raise
    except Exception as error:
        raise DamagedFile(
            f"{label} could not be read: {' '.join(str(error).split())[:200]}", "fetch it again"
        ) from None


def _opened(place: Path | bytes) -> Any:
    import pyarrow as pa

    return pa.BufferReader(place) if isinstance(place, bytes) else pa.memory_map(str(place))


def _parquet(place: Path | bytes, columns: set[str]) -> Any:
    """Columns of a Parquet file, of which a few bytes may hold any number of equal rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = len(place) if isinstance(place, bytes) else place.stat().st_size
    limit = _RATIO * size + _MOST
    with nullcontext(_opened(place)) if isinstance(place, bytes) else arrow_source(place) as source:
        file = pq.ParquetFile(source)
        chosen = [name for name in file.schema_arrow.names if name in columns]
        batches, total = [], 0
        for batch in file.iter_batches(_ROWS, columns=chosen):
            total += batch.nbytes
            if total > limit:
                raise ValueError(f"its columns need more memory than the limit of {limit:,} bytes")
            batches.append(batch)
        return pa.Table.from_batches(batches, None if batches else file.schema_arrow)


def _arrow(place: Path | bytes) -> Any:
    import pyarrow as pa

    with _opened(place) as source:
        try:
            return pa.ipc.open_stream(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_file(source).read_all()


def _csv(place: Path | bytes, separator: str, texts: set[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    content = io.BytesIO(place) if isinstance(place, bytes) else str(place)
    return csv.read_csv(
        content,
        parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(texts, pa.large_string()), strings_can_be_null=True, null_values=_NULLS
        ),
    )


def _json_lines(place: Path | bytes) -> Any:
    from pyarrow import json

    return json.read_json(io.BytesIO(place) if isinstance(place, bytes) else str(place))
