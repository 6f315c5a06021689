"""Strict YAML: values are read by key and type, and errors name the file, the line and the key."""

import re
import reprlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from setsup.errors import DataError, did_you_mean
from setsup.files.disk import need_regular, read_errors

__all__ = ["Fields", "read_yaml"]

T = TypeVar("T")
_LARGEST = 256 * 1024
_DEEPEST = 32
_MOST_ALIASES = 64


class Fields:
    """A mapping out of a YAML file, whose keys are taken one by one; :meth:`done` refuses those that are left.

    A reader is a function from a value to what is wanted of it, which raises ValueError with what it expected, and
    with a hint such as that of ``did_you_mean`` where it has one.
    """

    __slots__ = ("_file", "_left", "_seen", "_where")

    def __init__(self, value: object, file: Path | str, where: str = "") -> None:
        self._file = file
        self._where = where
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise self.wrong("", "a mapping of names to values", value)
        self._left: dict[str, Any] = dict(value)
        self._seen: list[str] = []

    @property
    def file(self) -> Path | str:
        """The file that errors name."""
        return self._file

    def need(self, key: str, read: Callable[[Any], T]) -> T:
        """Take a value that must be there."""
        value = self._take(key)
        if value is None:
            raise DataError(f"{self._file}{self._line(key)}: {self._place(key)} is missing")
        return self._read(key, read, value)

    def get(self, key: str, read: Callable[[Any], T]) -> T | None:
        """Take a value, None where it is absent or null."""
        value = self._take(key)
        return None if value is None else self._read(key, read, value)

    def each(self, key: str, read: Callable[[Any], T]) -> tuple[T, ...]:
        """Take a list, empty where it is absent or null."""
        return tuple(self._read(f"{key}[{i}]", read, item) for i, item in enumerate(self._list(key)))

    def part(self, key: str) -> "Fields":
        """Take a mapping that must be there."""
        return Fields(self._take(key), self._file, self._place(key))

    def optional_part(self, key: str) -> "Fields | None":
        """Take a mapping, None where it is absent or null."""
        value = self._take(key)
        return None if value is None else Fields(value, self._file, self._place(key))

    def parts(self, key: str) -> list["Fields"]:
        """Take a list of mappings, empty where it is absent or null."""
        return [Fields(item, self._file, self._place(f"{key}[{i}]")) for i, item in enumerate(self._list(key))]

    def named(self, key: str) -> dict[str, "Fields"]:
        """Take a mapping of names to mappings, empty where it is absent or null."""
        value = self._take(key)
        place = self._place(key)
        names = Fields({} if value is None else value, self._file, place)._left
        return {name: Fields(item, self._file, f"{place}.{name}") for name, item in names.items()}

    def done(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._left:
            line = self._line(key)
            raise DataError(
                f"{self._file}{line}: unknown key {reprlib.repr(self._place(key))}{did_you_mean(key, self._seen)}"
            )

    def wrong(self, key: str, expected: str, value: object, hint: str = "") -> DataError:
        """Make the error for a value that is not as expected; the hint ends it, and begins with a semicolon."""
        place = self._place(key) or "the file"
        # reprlib, since YAML aliases can make a small file a huge value
        return DataError(f"{self._file}{self._line(key)}: {place} must be {expected}, not {reprlib.repr(value)}{hint}")

    def problem(self, key: str, what: str) -> DataError:
        """Make the error for a key that other keys exclude or require; `what` follows its name."""
        return DataError(f"{self._file}{self._line(key)}: {self._place(key) or 'the file'} {what}")

    def _line(self, key: str) -> str:
        """The line of a key, or of what it lacks in; nothing where that is not known."""
        with suppress(Exception):  # the file may be gone, or what is read no file
            return f", line {_find_line(Path(self._file), self._place(key))}"
        return ""

    def _take(self, key: str) -> Any:
        self._seen.append(key)
        return self._left.pop(key, None)

    def _list(self, key: str) -> list[Any]:
        value = self._take(key)
        if value is not None and not isinstance(value, list):
            raise self.wrong(key, "a list", value)
        return value or []

    def _read(self, key: str, read: Callable[[Any], T], value: object) -> T:
        try:
            return read(value)
        except ValueError as error:
            # errors of libraries have other arguments
            has_hint = type(error) is ValueError and len(error.args) == 2
            expected, hint = error.args if has_hint else (str(error), "")
            raise self.wrong(key, expected, value, hint) from None

    def _place(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where and key else self._where or key


def read_yaml(file: Path, what: str = "manifest") -> Fields:
    """Read a YAML file as plain values; tags, repeated keys and great depth are refused."""
    import yaml

    need_regular(file)
    with read_errors(file), file.open("rb") as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise DataError(f"{file} has more bytes than the limit of {_LARGEST:,} for a {what}")
    try:
        text = data.decode("utf-8")
        _refuse_depth(text, file, what)
        value = yaml.load(text, _loader())
    except DataError:
        raise
    except yaml.YAMLError as error:
        raise DataError(f"{file} could not be parsed as YAML: {' '.join(str(error).split())}") from error
    except Exception as error:  # PyYAML's constructors let KeyError, AttributeError and more through
        raise DataError(f"{file} could not be parsed as YAML: {type(error).__name__}: {error}") from error
    return Fields(value, file)


def _find_line(file: Path, place: str) -> int:
    """Line of a value such as ``layout.tables[0].file``, counted from 1; of the last part of the way that is there."""
    import yaml

    with file.open("rb") as stream:
        node = yaml.compose(stream.read(_LARGEST).decode("utf-8"), _base())
    line = 0
    while place:
        step = re.match(r"\.?([^.\[]+)|\[([0-9]+)\]", place)
        if isinstance(node, yaml.MappingNode):
            # a key may have dots, such as the name of a file
            keys = {key.value: (key, value) for key, value in node.value}
            key = next(
                (key for key in sorted(keys, key=len, reverse=True) if place.removeprefix(".").startswith(key)), None
            )
            if key is None:
                break
            head, node = keys[key]
            line, place = head.start_mark.line, place.removeprefix(".")[len(key) :]
        elif isinstance(node, yaml.SequenceNode) and step is not None and step[2] and int(step[2]) < len(node.value):
            node = node.value[int(step[2])]
            line, place = node.start_mark.line, place[step.end() :]
        else:
            break
    return line + 1


def _base() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times faster


def _refuse_depth(text: str, file: Path, what: str) -> None:
    """Look at the nesting without recursion: the C loader overflows the stack on a deep file."""
    import yaml

    depth = aliases = 0
    for event in yaml.parse(text, _base()):
        aliases += isinstance(event, yaml.AliasEvent)
        if aliases > _MOST_ALIASES:  # lists of lists by name make a small file a huge one
            raise DataError(f"{file} has more YAML aliases than the limit of {_MOST_ALIASES} for a {what}")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise DataError(f"{file} is nested deeper than the limit of {_DEEPEST} levels for a {what}")


def _loader() -> Any:
    """Make a safe loader that refuses a key given twice, where YAML would silently take the last."""
    import yaml

    class Loader(_base()):  # type: ignore[misc]
        """Safe loader with unique keys."""

    def unique(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
        mapping = dict(loader.construct_pairs(node, deep=True))
        if len(mapping) != len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "duplicate key", node.start_mark)
        return mapping

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, unique)
    return Loader
