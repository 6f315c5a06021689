"""Columns of one tar that others wrote: the fields of its json members, and its class members.

Convention
----------
Each field of ``KEY.json`` is a column, those of an object within it ``object.field``; the fields of ``KEY.meta.json``
are ``meta.field``. ``KEY.cls`` (``cls2``, ``class``, ``id``) is a column of that name, ``KEY.color.cls`` one named
``color``. NaN and the empty text are unknown. Lists, objects further within, and numbers that no factor can have are
left out.
"""

import json
import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from setsup.errors import DamagedFile, DataError
from setsup.files.archives.names import shown

__all__ = ["CLASSES", "FRACTIONS", "JSON", "NUMBERS", "TEXTS", "ColumnSample", "ColumnScan", "read_columns"]

JSON = "json"
CLASSES = ("cls", "cls2", "class", "id")
"""Last parts of extensions whose members hold a class as text."""

TEXTS, NUMBERS, FRACTIONS = "texts", "numbers", "fractions"
_FAMILIES = {str: TEXTS, bool: "booleans", int: NUMBERS, float: NUMBERS, dict: "objects", list: "lists"}

_FIELDS, _INNER = 1024, 128  # at most, in all and of one object within
_LONGEST = 4096  # bytes of a class
_FLOAT32 = float(np.finfo(np.float32).max)
_FIX = "replace the tar, or pack it again without that sample"


class ColumnSample(NamedTuple):
    """A value that was seen, for messages."""

    source: str
    key: str
    value: Any

    def __str__(self) -> str:
        """Say the value and where it stands."""
        return f"{shown(reprlib.repr(self.value))} of {shown(self.key)} in {self.source}"


@dataclass(slots=True)
class ColumnScan:
    """Columns of one tar.

    Attributes
    ----------
    arrays, classes : dict of str to Arrow array
        One value a sample, by the columns' names: of json members, and texts of class members.
    sights : dict of str to dict of str to ColumnSample
        First value of each family that a field of the json members has: texts, numbers, fractions, objects ….
    documents : dict of str to dict of bool to ColumnSample
        By the extension: the first json member that is an object, and the first that is none.
    left_out : dict of str to str
        Why a field or member is no column.

    """

    arrays: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, Any] = field(default_factory=dict)
    sights: dict[str, dict[str, ColumnSample]] = field(default_factory=dict)
    documents: dict[str, dict[bool, ColumnSample]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def read_columns(members: dict[str, Sequence[bytes | None]], keys: Sequence[str], source: str) -> ColumnScan:
    """Read json and class members.

    Examples
    --------
    >>> scan = read_columns({"json": [b'{"size": 1, "at": {"x": 0.5}}', None]}, ["0", "1"], "a.tar")
    >>> {name: array.to_pylist() for name, array in scan.arrays.items()}
    {'size': [1, None], 'at.x': [0.5, None]}

    """
    reader = _Reader(keys, source)
    for extension, contents in members.items():
        stem, _, last = extension.rpartition(".")
        if last == JSON:
            reader.documents(extension, f"{stem}." if stem else "", contents)
        else:
            reader.classes(extension, stem or last, contents)
    return reader.scan


class _Reader:
    """Fills the columns of one tar."""

    def __init__(self, keys: Sequence[str], source: str) -> None:
        self.scan, self._keys, self._source = ColumnScan(), keys, source

    def documents(self, extension: str, prefix: str, contents: Sequence[bytes | None]) -> None:
        """Read json members."""
        values = [None if content is None else self._parsed(row, content) for row, content in enumerate(contents)]
        kinds = self.scan.documents.setdefault(extension, {})
        for row, content in enumerate(contents):
            if content is not None and (kind := type(values[row]) is dict) not in kinds:
                kinds[kind] = self._sight(row, values[row])
        self._fields([value if type(value) is dict else {} for value in values], prefix, _FIELDS)

    def classes(self, extension: str, name: str, contents: Sequence[bytes | None]) -> None:
        """Read members that hold a class as text."""
        import pyarrow as pa

        if name in self.scan.classes:
            self.scan.left_out[f".{extension}"] = f"another member already provides {name!r}"
            return
        longest = max((len(content), -row) for row, content in enumerate(contents) if content is not None)
        if longest[0] > _LONGEST:
            at = self._at(-longest[1])
            self.scan.left_out[f".{extension}"] = f"{at} has {longest[0]:,} bytes, too many for a class name"
            return
        try:
            texts = [None if content is None else content.decode().strip("\ufeff\0 \t\r\n") for content in contents]
        except UnicodeDecodeError:
            row = next(row for row, content in enumerate(contents) if content is not None and not _is_text(content))
            self.scan.left_out[f".{extension}"] = f"{self._at(row)} is not UTF-8 text"
            return
        self.scan.classes[name] = pa.array(texts, pa.large_string())

    def _parsed(self, row: int, content: bytes) -> Any:
        try:
            text = content.decode().strip("\ufeff \t\r\n")
            value, end = _DECODER.raw_decode(text)
            if end != len(text):
                raise ValueError("extra data after its end")
        except (ValueError, RecursionError) as error:
            why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else " ".join(str(error).split())
            raise DamagedFile(f"{self._source}: the json of {self._at(row)} is damaged ({why})", _FIX) from None
        return value

    def _fields(self, objects: Sequence[dict[str, Any]], prefix: str, most: int, within: bool = False) -> None:
        """Make the fields of objects columns."""
        names = dict.fromkeys(chain.from_iterable(objects))
        if len(names) > most:
            what = f"of {prefix.rstrip('.')!r} " if within else ""
            why = f"{len(names):,} different names, such as {shown(next(iter(names))[:40])!r}"
            if not within:
                raise DataError(
                    f"{self._source}: the fields {what}of its json members have {why}, too many for factors; index a "
                    "copy of the tars without these fields"
                )
            self.scan.left_out[prefix.rstrip(".")] = f"its fields have {why}"
            return
        for name in names:
            self._field(f"{prefix}{name}", [fields.get(name) for fields in objects], within)

    def _field(self, name: str, values: list[Any], within: bool) -> None:
        import pyarrow as pa

        if name in self.scan.arrays or not name.isprintable() or not name.strip("."):
            self.scan.left_out[shown(name) or "''"] = (
                "the name is used by another field" if name in self.scan.arrays else "no name"
            )
            return
        kinds = set(map(type, values)) - {type(None)}
        if str in kinds and "" in values:
            values = [None if value == "" else value for value in values]
            kinds = set(map(type, values)) - {type(None)}
        sights = self.scan.sights.setdefault(name, {})
        firsts = [next(row for row, value in enumerate(values) if type(value) is kind) for kind in kinds]
        for row, kind in sorted(zip(firsts, kinds, strict=True), key=lambda first: first[0]):
            family = _FAMILIES[kind]
            sights.setdefault(family, self._sight(row, values[row]))
        if kinds == {dict} and not within:
            self._fields([value or {} for value in values], f"{name}.", _INNER, within=True)
        elif kinds & {dict, list}:
            what = "lists" if list in kinds else "objects"
            self.scan.left_out[name] = f"it contains {what}, such as {sights[what]}"
        elif len(sights) < 2:
            try:
                array = self._numbers(name, values, kinds) if kinds & {int, float} else pa.array(values)
            except (OverflowError, UnicodeEncodeError, pa.ArrowException) as error:
                why = " ".join(str(error).split())[:100]
                self.scan.left_out[name] = (
                    f"its values cannot be those of a factor ({why}), such as {next(iter(sights.values()))}"
                )
            else:
                self.scan.arrays[name] = array

    def _numbers(self, name: str, values: list[Any], kinds: set[type]) -> Any:
        """Arrow array of numbers; what has fractions is noted."""
        import pyarrow as pa

        if float not in kinds:
            return pa.array(values)
        numbers = np.array([math.nan if value is None else value for value in values], np.float64)
        large = np.abs(numbers) > _FLOAT32
        if large.any():
            raise OverflowError(f"{self._at(int(np.argmax(large)))} has {numbers[np.argmax(large)]}")
        parted = numbers % 1 > 0
        if parted.any():
            row = int(np.argmax(parted))
            self.scan.sights[name][FRACTIONS] = self._sight(row, values[row])
        return pa.array(numbers, mask=np.isnan(numbers))

    def _sight(self, row: int, value: Any) -> ColumnSample:
        return ColumnSample(self._source, self._keys[row], value)

    def _at(self, row: int) -> str:
        return shown(self._keys[row])


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _constant(word: str) -> float | None:
    """What json has no words for, but Python writes: NaN is unknown."""
    return None if word == "NaN" else math.inf


_DECODER = json.JSONDecoder(parse_constant=_constant)
