"""Values of a manifest's keys: expressions, columns, paths, conditions and codes, read or refused."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from setsup.errors import did_you_mean
from setsup.factors.factor import Level
from setsup.files.manifests import validators

__all__ = [
    "Type",
    "codes_reader",
    "column_reader",
    "list_reader",
    "lists_reader",
    "named_groups",
    "order_reader",
    "read_condition",
    "read_constants",
    "read_expression",
    "read_forms",
    "read_part",
    "rules_reader",
    "spellings_reader",
    "template_reader",
    "times_reader",
    "types_reader",
]

_LONGEST = 1000  # characters of an expression
_FIELD = re.compile(r"\{([^{}]+)\}")
_GROUP = re.compile(r"\(\?P?<")

Type = Literal["integer", "number"]
_TIME_PARTS = ("year", "month", "day", "hour")


def named_groups(pattern: str | None) -> list[str]:
    """Names of the groups of an expression; ValueError where it is none, or has groups without names, too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pattern is None:
        return []
    text = pa.array([""], pa.large_string())
    # twice, since it is also compiled within others, which have a size that RE2 allows
    for whole in (pattern, f"^(?:{pattern})$", f"(?:{pattern})(?:{pattern})"):
        pc.match_substring_regex(text, whole)
    if not _GROUP.search(pattern):
        return []
    names = [group.name for group in pc.extract_regex(text, f"^(?:{pattern})$").type]
    if len(set(names)) < len(names):
        raise ValueError("two groups have the same name")
    return names


def read_expression(value: Any) -> str:
    """A regular expression whose groups all have names, or none has."""
    if not isinstance(value, str) or not value or len(value) > _LONGEST or not value.isprintable():
        raise ValueError(f"a regular expression of at most {_LONGEST:,} characters")
    try:
        named_groups(value)
    except ValueError as error:  # ArrowInvalid is one
        why = str(error).removeprefix("Invalid regular expression: ")
        raise ValueError(f"a valid RE2 regular expression ({why})") from None
    return value


def read_part(value: Any) -> str:
    """A regular expression with one group, which is what it takes out of a text."""
    if not isinstance(value, str) or not value or len(value) > _LONGEST:
        raise ValueError(f"a regular expression of at most {_LONGEST:,} characters")
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.array([""], pa.large_string())
    try:
        for whole in (value, f"(?:{value})"):
            pc.replace_substring_regex(text, whole, r"\1")
    except ValueError as error:
        raise ValueError(f"a valid RE2 regular expression with a group in parentheses ({error})") from None
    return value


def list_reader(read: Callable[[Any], str]) -> Callable[[Any], tuple[str, ...]]:
    """Make a reader of one value, or of a list of them."""

    def listed(value: Any) -> tuple[str, ...]:
        values = value if isinstance(value, list) else [value]
        if not values:
            raise ValueError("a string or a non-empty list of strings")
        return tuple(read(each) for each in values)

    return listed


def template_reader(columns: list[str], fixed: bool = False) -> Callable[[Any], str]:
    """Make a reader of paths with ``{column}`` in them, or also without, which stay inside the release."""

    def read(value: Any) -> str:
        text = validators.text(value)
        fields = _FIELD.findall(text)
        plain = _FIELD.sub("x", text)
        if unknown := [name for name in fields if name not in columns]:
            raise ValueError("a path with columns in braces", did_you_mean(unknown[0], columns))
        if not (fields or fixed) or "{" in plain or "}" in plain:
            raise ValueError("a path with columns in braces, such as images/{path}")
        validators.relative(plain)
        return text

    return read


def read_forms(value: Any) -> dict[str, str | None]:
    """Names of columns, with the expression that their values match."""
    if isinstance(value, list):
        value = dict.fromkeys(value) if all(isinstance(name, str) for name in value) else None
    if not isinstance(value, dict) or not value or not all(isinstance(name, str) and name for name in value):
        raise ValueError(
            "a non-empty list of column names, or a mapping of column names to regular expressions or null"
        )
    return {name: None if form is None else read_expression(form) for name, form in value.items()}


def read_constants(value: Any) -> dict[str, str]:
    """Names of columns, with the text that all rows have."""
    if not isinstance(value, dict) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise ValueError("a mapping of column names to strings")
    return value


def column_reader(columns: list[str]) -> Callable[[Any], str]:
    """Make a reader of the name of a column."""

    def read(value: Any) -> str:
        if value not in columns:
            raise ValueError("the name of a column", did_you_mean(value, columns))
        return str(value)

    return read


def order_reader(groups: Iterable[str]) -> Callable[[Any], dict[str, tuple[str, ...] | None]]:
    """Make a reader of groups by which images are sorted, with their values in order or null for their own order."""
    known = list(groups)

    def read(value: Any) -> dict[str, tuple[str, ...] | None]:
        if not isinstance(value, dict) or not value or not set(value) <= set(known):
            raise ValueError(f"a mapping of named groups of images ({', '.join(known)}) to lists of values or null")
        return {name: None if values is None else validators.words(values) for name, values in value.items()}

    return read


def spellings_reader(groups: Iterable[str]) -> Callable[[Any], dict[str, dict[str, str]]]:
    """Make a reader of groups, each with strings and the expression of what they may be written as."""
    known = list(groups)

    def read(value: Any) -> dict[str, dict[str, str]]:
        if not _are_named(value) or not set(value) <= set(known) or not all(map(_are_named, value.values())):
            raise ValueError(
                f"a mapping of named groups of images ({', '.join(known)}) to mappings of strings to regular "
                "expressions"
            )
        return {group: {text: read_expression(form) for text, form in forms.items()} for group, forms in value.items()}

    return read


def lists_reader(groups: list[str]) -> Callable[[Any], dict[str, dict[str, tuple[str, ...]]]]:
    """Make a reader of columns, each with its strings and the lists of the images that have them."""
    files = list_reader(template_reader(groups, fixed=True))

    def read(value: Any) -> dict[str, dict[str, tuple[str, ...]]]:
        if not _are_named(value) or set(value) & set(groups) or not all(map(_are_named, value.values())):
            raise ValueError(
                "a mapping of new column names (not names of groups of images) to mappings of strings to list files"
            )
        return {column: {text: files(names) for text, names in lists.items()} for column, lists in value.items()}

    return read


def _are_named(value: Any) -> bool:
    """Whether a value is a mapping of names."""
    return isinstance(value, dict) and bool(value) and all(isinstance(name, str) and name for name in value)


def types_reader(columns: list[str]) -> Callable[[Any], dict[str, Type]]:
    """Make a reader of columns with what their texts are read as."""

    def read(value: Any) -> dict[str, Type]:
        if not isinstance(value, dict) or any(each not in ("integer", "number") for each in value.values()):
            raise ValueError("a mapping of column names to 'integer' or 'number'")
        if unknown := [name for name in value if name not in columns]:
            raise ValueError("columns", did_you_mean(unknown[0], columns))
        return value

    return read


def times_reader(columns: list[str]) -> Callable[[Any], dict[str, tuple[str, ...]]]:
    """Make a reader of columns of times, with the parts of them that are columns, too."""

    def read(value: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            raise ValueError(f"a mapping of column names to parts of a time ({', '.join(_TIME_PARTS)})")
        if unknown := [name for name in value if name not in columns]:
            raise ValueError("columns", did_you_mean(unknown[0], columns))
        times = {name: validators.words(parts) for name, parts in value.items()}
        named = [part for parts in times.values() for part in parts]
        if wrong := [part for part in named if part not in _TIME_PARTS]:
            raise ValueError("a mapping of column names to parts of a time", did_you_mean(wrong[0], _TIME_PARTS))
        if len(set(named)) < len(named) or set(named) & set(columns):
            raise ValueError("a mapping of column names to distinct parts of a time that are not names of columns")
        return times

    return read


def read_condition(value: Any) -> str:
    """Read a condition, which is parsed when all columns are known."""
    text = validators.text(value)
    if len(text) > _LONGEST:
        raise ValueError(f"a condition of at most {_LONGEST:,} characters")
    return text


def codes_reader(levels: tuple[Level, ...] | None) -> Callable[[Any], dict[str, Level | None]]:
    """Make a reader of what each text stands for: a level, or null for unknown; a list of levels that are the texts."""

    def read(value: Any) -> dict[str, Level | None]:
        if levels is None:
            raise ValueError("omitted unless levels is a list")
        if isinstance(value, list):
            named = value and all(isinstance(each, str | int) for each in value)
            value = dict(zip(value, value, strict=True)) if named else None
        if not isinstance(value, dict) or not all(
            isinstance(key, str | int) and not isinstance(key, bool) for key in value
        ):
            raise ValueError("a mapping of strings, quoted where necessary, to levels or null")
        for level in value.values():
            if level is not None and not _is_level(level, levels):
                raise ValueError("a mapping to levels of the factor", did_you_mean(level, levels))
        return {str(key): level for key, level in value.items()}

    return read


def rules_reader(levels: tuple[Level, ...] | None) -> Callable[[Any], tuple[tuple[str, Level], ...]]:
    """Make a reader of pairs of a condition and the level of the rows for which it is the first that holds."""

    def read(value: Any) -> tuple[tuple[str, Level], ...]:
        if levels is None:
            raise ValueError("omitted unless levels is a list")
        if not isinstance(value, list) or not all(isinstance(rule, list) and len(rule) == 2 for rule in value):
            raise ValueError("a list of [condition, level]")
        for _, level in value:
            if not _is_level(level, levels):
                raise ValueError(
                    "a list of [condition, level] pairs with levels of the factor",
                    did_you_mean(level, levels),
                )
        return tuple((read_condition(condition), level) for condition, level in value)

    return read


def _is_level(value: Any, levels: tuple[Level, ...]) -> bool:
    """Whether a value is one of the levels, true and 1 told apart."""
    return any(type(level) is type(value) and level == value for level in levels)
