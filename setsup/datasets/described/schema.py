"""What a manifest says of its images: ``layout``, and where each factor is read from; checked before a file is read.

A manifest may be anybody's. Regular expressions are RE2's, which take time in proportion to the text and refuse counts
beyond a thousand; names of files stay below the root; conditions are the expressions of ``where``.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from setsup.datasets.described.conditions import check_conditions
from setsup.errors import FactorError, did_you_mean
from setsup.factors.factor import Level
from setsup.files import Manifest, ManifestFactor
from setsup.files.manifests import validators
from setsup.files.manifests.strict_yaml import Fields

__all__ = ["Layout", "Source", "Table", "named_groups", "read_layout"]

_LONGEST = 1000  # characters of an expression
_MOST_TABLES = 16
_COMMA_ENDINGS = (".csv", ".tsv")
_FIELD = re.compile(r"\{([^{}]+)\}")
_GROUP = re.compile(r"\(\?P?<")

Type = Literal["integer", "number"]


@dataclass(frozen=True, slots=True)
class Table:
    """A text of the release, a row a line: its names, of which the first that is there counts, and its columns.

    `columns`: names, with the expression that each value matches as a whole, or None. `comma`: whether commas separate
    them; else white space does, and the last column takes the rest of the line. `counted`: whether the first line is
    the number of the rows. `line` describes a line in messages.
    """

    files: tuple[str, ...]
    columns: Mapping[str, str | None]
    comma: bool
    header: bool
    counted: bool = False
    key: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    line: str = ""

    @property
    def names(self) -> list[str]:
        """Names of all columns: those of the text, those within them, and the constants."""
        inner = [group for form in self.columns.values() for group in named_groups(form)]
        return [*self.columns, *inner, *self.constants]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a factor is read from: a column, the part of it that matches, codes of its values; or rules."""

    factor: ManifestFactor
    column: str
    match: str | None = None
    codes: Mapping[str, Level | None] | None = None
    rules: tuple[tuple[str, Level], ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where rows and factors come from; docs/datasets/described.md explains the keys."""

    images: str | None
    example: str
    archives: tuple[str, ...]
    parts: str | None
    tables: tuple[Table, ...]
    paths: tuple[str, ...]
    order: Mapping[str, tuple[str, ...] | None]
    types: Mapping[str, Type]
    checks: tuple[str, ...]
    unique: bool
    sources: tuple[Source, ...]

    @property
    def holds(self) -> dict[str, str]:
        """Expressions that names of files match by which the release is known, and what they are called."""
        needed = [table for table in self.tables if not table.optional]
        found = {f"(?:{'|'.join(map(_escaped, table.files))})$": table.files[0] for table in needed}
        if self.images is not None:
            found[f"(?:{self.images})$"] = self.example or self.images
        return found


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
        raise ValueError("two groups have one name")
    return names


def read_layout(manifest: Manifest) -> Layout:
    """Check what a manifest says of its images.

    Raises
    ------
    DataError
        A key is unknown, missing or of the wrong kind, or names what there is not; the message names the file, the line
        and the key.

    """
    file = manifest.file or manifest.name
    fields = Fields(manifest.layout, file, "layout")
    tables = tuple(_table(part) for part in fields.parts("tables"))
    images = fields.get("images", _expression)
    columns = _columns_of(fields, images, tables)
    layout = Layout(
        images=images,
        example=fields.get("example", validators.text) or "",
        archives=fields.each("archives", validators.relative),
        parts=fields.get("parts", _expression),
        tables=tables,
        paths=fields.get("path", _list_of(_template(columns))) or (),
        order=fields.get("order", _order(named_groups(images))) or {},
        types=fields.get("types", _types(columns)) or {},
        checks=fields.get("checks", _list_of(_condition)) or (),
        unique=fields.get("unique", validators.yes) or False,
        sources=tuple(
            _source(Fields(written, file, f"factors[{place}]"), factor, columns)
            for place, (factor, written) in enumerate(zip(manifest.factors, manifest.columns, strict=True))
        ),
    )
    fields.done()
    _check_whole(fields, layout)
    return layout


def _columns_of(fields: Fields, images: str | None, tables: tuple[Table, ...]) -> list[str]:
    """Names of the columns that there are, each once but for those by which tables are joined."""
    if images is None and not tables:
        raise fields.wrong("", "given images, tables or both", None)
    if tables and tables[0].optional:
        raise fields.wrong("tables[0].optional", "left out of the first table, which the rows are of", True)
    if len(tables) > _MOST_TABLES:
        raise fields.wrong("tables", f"at most {_MOST_TABLES} tables", len(tables))
    if not tables:
        return named_groups(images)
    names = dict.fromkeys(tables[0].names)
    for number, table in enumerate(tables):
        if len(set(table.names)) < len(table.names):
            raise fields.wrong(f"tables[{number}].columns", "columns and groups with names that differ", table.names)
        if number and table.key is None and set(table.names) != set(tables[0].names):
            expected = f"those of the first table ({', '.join(tables[0].names)}), or a key"
            raise fields.wrong(f"tables[{number}].columns", expected, table.names)
        if number and table.key is not None:
            if table.key not in names:
                raise fields.wrong(f"tables[{number}].key", "a column of the tables above, too", table.key)
            if twice := (set(table.names) & set(names)) - {table.key}:
                raise fields.wrong(f"tables[{number}].columns", "without those of the tables above", min(twice))
            names |= dict.fromkeys(table.names)
    return list(names)


def _check_whole(fields: Fields, layout: Layout) -> None:
    """Refuse keys that need others, and conditions that cannot be looked up."""
    if bool(layout.tables) != bool(layout.paths):
        raise fields.wrong("path", "given where there are tables, and only there", list(layout.paths) or None)
    if layout.order and layout.tables:
        raise fields.wrong("order", "left out where there are tables, whose lines are the order", dict(layout.order))
    known = {source.factor.name for source in layout.sources}
    if not known:
        raise fields.wrong("", "beside a list of factors", None)
    for place, source in enumerate(layout.sources):
        factor = source.factor
        if factor.within is not None and factor.within not in known:
            raise _factor_error(
                fields, place, "within", f"another factor{did_you_mean(factor.within, known)}", factor.within
            )
        if factor.kind == "continuous" and (source.rules or source.codes or source.column not in layout.types):
            raise _factor_error(fields, place, "from", "a column that types makes a number", source.column)
    columns = _columns_of(fields, layout.images, layout.tables)
    conditions: list[tuple[str, str, int | None]] = [
        (f"checks[{place}]", check, None) for place, check in enumerate(layout.checks)
    ]
    conditions += [
        (f"rules[{turn}]", rule, place)
        for place, source in enumerate(layout.sources)
        for turn, (rule, _) in enumerate(source.rules)
    ]
    for key, condition, at in conditions:
        try:
            check_conditions([condition], {name: layout.types.get(name) for name in columns})
        except FactorError as error:
            said = f"a condition on columns ({' '.join(str(error).split())})"
            if at is None:
                raise fields.wrong(key, said, condition) from None
            raise _factor_error(fields, at, key, said, condition) from None


def _factor_error(fields: Fields, place: int, key: str, expected: str, value: object) -> Exception:
    return Fields({}, fields.file, f"factors[{place}]").wrong(key, expected, value)


# -- parts of a layout -------------------------------------------------------------------------------------------------


def _table(fields: Fields) -> Table:
    files = fields.need("file", _list_of(validators.relative))
    separator = fields.get("separator", validators.one_of(("comma", "space")))
    comma = files[0].lower().endswith(_COMMA_ENDINGS) if separator is None else separator == "comma"
    header = fields.get("header", validators.yes)
    table = Table(
        files=files,
        columns=fields.need("columns", _forms),
        comma=comma,
        header=comma if header is None else header,
        counted=fields.get("counted", validators.yes) or False,
        key=fields.get("key", validators.text),
        constants=fields.get("constants", _constants) or {},
        optional=fields.get("optional", validators.yes) or False,
        line=fields.get("what", validators.text) or "",
    )
    fields.done()
    if table.counted and table.comma:
        raise fields.wrong("counted", "left out of a table between commas", True)
    if table.key is not None and table.key not in table.columns:
        raise fields.wrong("key", f"one of the columns ({', '.join(table.columns)})", table.key)
    return table


def _source(fields: Fields, factor: ManifestFactor, columns: list[str]) -> Source:
    levels = factor.levels if isinstance(factor.levels, tuple) else None
    source = Source(
        factor=factor,
        column=fields.get("from", _one_of(columns)) or factor.name,
        match=fields.get("match", _part),
        codes=fields.get("codes", _codes(levels)),
        rules=fields.get("rules", _rules(levels)) or (),
    )
    if source.rules and (source.match or source.codes):
        raise fields.wrong("rules", "alone, without match and codes", list(source.rules))
    if not source.rules and source.column not in columns:
        raise fields.wrong("from", f"one of the columns{did_you_mean(source.column, columns)}", source.column)
    return source


# -- readers of values -------------------------------------------------------------------------------------------------


def _expression(value: Any) -> str:
    """A regular expression whose groups all have names, or none has."""
    if not isinstance(value, str) or not value or len(value) > _LONGEST or not value.isprintable():
        raise ValueError(f"a regular expression of at most {_LONGEST:,} characters")
    try:
        named_groups(value)
    except ValueError as error:  # ArrowInvalid is one
        why = str(error).removeprefix("Invalid regular expression: ")
        raise ValueError(f"a regular expression of RE2 ({why})") from None
    return value


def _part(value: Any) -> str:
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
        raise ValueError(f"a regular expression of RE2 with a group in parentheses ({error})") from None
    return value


def _list_of(read: Callable[[Any], str]) -> Callable[[Any], tuple[str, ...]]:
    """Make a reader of one value, or of a list of them."""

    def listed(value: Any) -> tuple[str, ...]:
        values = value if isinstance(value, list) else [value]
        if not values:
            raise ValueError("a text or a list of them")
        return tuple(read(each) for each in values)

    return listed


def _template(columns: list[str]) -> Callable[[Any], str]:
    """Make a reader of paths with ``{column}`` in them, which stay inside the release."""

    def read(value: Any) -> str:
        text = validators.text(value)
        fields = _FIELD.findall(text)
        plain = _FIELD.sub("x", text)
        if unknown := [name for name in fields if name not in columns]:
            raise ValueError(f"a path with columns in braces{did_you_mean(unknown[0], columns)}")
        if not fields or "{" in plain or "}" in plain:
            raise ValueError("a path with columns in braces, such as images/{path}")
        validators.relative(plain)
        return text

    return read


def _forms(value: Any) -> dict[str, str | None]:
    """Names of columns, with the expression that their values match."""
    if isinstance(value, list):
        value = dict.fromkeys(value) if all(isinstance(name, str) for name in value) else None
    if not isinstance(value, dict) or not value or not all(isinstance(name, str) and name for name in value):
        raise ValueError("a list of columns, or their names with regular expressions that their values match")
    return {name: None if form is None else _expression(form) for name, form in value.items()}


def _constants(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise ValueError("names of columns with the text that all rows have")
    return value


def _one_of(columns: list[str]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in columns:
            raise ValueError(f"one of the columns{did_you_mean(value, columns)}")
        return str(value)

    return read


def _order(groups: Iterable[str]) -> Callable[[Any], dict[str, tuple[str, ...] | None]]:
    """Make a reader of groups by which images are sorted, with their values in order or null for their own order."""
    known = list(groups)

    def read(value: Any) -> dict[str, tuple[str, ...] | None]:
        if not isinstance(value, dict) or not value or not set(value) <= set(known):
            raise ValueError(f"named groups of images ({', '.join(known)}), each with its values in order, or null")
        return {name: None if values is None else validators.words(values) for name, values in value.items()}

    return read


def _types(columns: list[str]) -> Callable[[Any], dict[str, Type]]:
    def read(value: Any) -> dict[str, Type]:
        if not isinstance(value, dict) or any(each not in ("integer", "number") for each in value.values()):
            raise ValueError("columns, each with integer or number")
        if unknown := [name for name in value if name not in columns]:
            raise ValueError(f"columns{did_you_mean(unknown[0], columns)}")
        return value

    return read


def _condition(value: Any) -> str:
    text = validators.text(value)
    if len(text) > _LONGEST:
        raise ValueError(f"a condition of at most {_LONGEST:,} characters")
    return text


def _codes(levels: tuple[Level, ...] | None) -> Callable[[Any], dict[str, Level | None]]:
    """Make a reader of what each text stands for: a level, or null for unknown; a list of levels that are the texts."""

    def read(value: Any) -> dict[str, Level | None]:
        if levels is None:
            raise ValueError("left out where levels is no list")
        if isinstance(value, list):
            value = {each: each for each in value if isinstance(each, str)} if len(value) else None
        if not isinstance(value, dict) or not all(
            isinstance(key, str | int) and not isinstance(key, bool) for key in value
        ):
            raise ValueError("texts, in quotes where they are no words, each with a level")
        for level in value.values():
            if level is not None and not _is_level(level, levels):
                raise ValueError(f"levels of the factor{did_you_mean(level, levels)}")
        return {str(key): level for key, level in value.items()}

    return read


def _rules(levels: tuple[Level, ...] | None) -> Callable[[Any], tuple[tuple[str, Level], ...]]:
    """Make a reader of pairs of a condition and the level of the rows for which it is the first that holds."""

    def read(value: Any) -> tuple[tuple[str, Level], ...]:
        if levels is None:
            raise ValueError("left out where levels is no list")
        if not isinstance(value, list) or not all(isinstance(rule, list) and len(rule) == 2 for rule in value):
            raise ValueError("a list of [condition, level]")
        for _, level in value:
            if not _is_level(level, levels):
                raise ValueError(f"levels of the factor{did_you_mean(level, levels)}")
        return tuple((_condition(condition), level) for condition, level in value)

    return read


def _is_level(value: Any, levels: tuple[Level, ...]) -> bool:
    """Whether a value is one of the levels, true and 1 told apart."""
    return any(type(level) is type(value) and level == value for level in levels)


def _escaped(name: str) -> str:
    return re.sub(r"([\\^$.|?*+(){}\[\]])", r"\\\1", name)
