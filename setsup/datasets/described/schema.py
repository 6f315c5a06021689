"""The part of a manifest that describes images: ``layout`` and the sources of factors, checked before any file is read.

A manifest may be anybody's. Regular expressions are RE2's, which take time in proportion to the text and refuse counts
beyond a thousand; names of files stay below the root; conditions are the expressions of ``where``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from setsup.datasets.described.conditions import check_conditions
from setsup.datasets.described.values import (
    Type,
    codes_reader,
    column_reader,
    list_reader,
    lists_reader,
    named_groups,
    order_reader,
    read_condition,
    read_constants,
    read_expression,
    read_forms,
    read_part,
    rules_reader,
    spellings_reader,
    template_reader,
    times_reader,
    types_reader,
)
from setsup.errors import FactorError, did_you_mean
from setsup.factors.factor import Level
from setsup.files import Manifest, ManifestFactor
from setsup.files.manifests import validators
from setsup.files.manifests.strict_yaml import Fields

__all__ = ["Layout", "Source", "Table", "read_layout"]

_MOST_TABLES = 16
_COMMA_ENDINGS = (".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Table:
    """A text of the release, a row a line: its names, of which the first that is there counts, and its columns.

    `columns`: names, with the expression that each value matches as a whole, or None. `comma`: whether commas separate
    them; else white space does, and the last column takes the rest of the line. `counted`: whether the first line is
    the number of the rows. `number` is a column with the number of each row. `incomplete`: whether rows of other tables
    may have a key that is not there. `line` describes a line in messages.
    """

    files: tuple[str, ...]
    columns: Mapping[str, str | None]
    comma: bool
    header: bool
    counted: bool = False
    key: str | None = None
    number: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    incomplete: bool = False
    line: str = ""

    @property
    def names(self) -> list[str]:
        """Names of all columns: those of the text, those within them, and the constants."""
        inner = [group for form in self.columns.values() for group in named_groups(form)]
        return [*self.columns, *inner, *self.constants, *([] if self.number is None else [self.number])]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a factor is read from: columns, the part that matches, codes of its values; or rules.

    Of several columns, the first that a row has a value of counts.
    """

    factor: ManifestFactor
    columns: tuple[str, ...]
    match: str | None = None
    codes: Mapping[str, Level | None] | None = None
    rules: tuple[tuple[str, Level], ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where rows and factors come from; docs/datasets/described.md explains the keys.

    `columns` are those that there may be: those of optional tables and of lists are not there where the file is not.
    """

    images: str | None
    example: str
    archives: tuple[str, ...]
    parts: str | None
    others: str | None
    tables: tuple[Table, ...]
    columns: tuple[str, ...]
    paths: tuple[str, ...]
    spellings: Mapping[str, Mapping[str, str]]
    order: Mapping[str, tuple[str, ...] | None]
    lists: Mapping[str, Mapping[str, tuple[str, ...]]]
    types: Mapping[str, Type]
    times: Mapping[str, tuple[str, ...]]
    without: str | None
    checks: tuple[str, ...]
    unique: bool
    sources: tuple[Source, ...]

    @property
    def parts_of_times(self) -> tuple[str, ...]:
        """Columns that are made of times."""
        return tuple(part for parts in self.times.values() for part in parts)

    @property
    def holds(self) -> dict[str, str]:
        """Expressions that names of files match by which the release is known, and what they are called."""
        needed = [table for table in self.tables if not table.optional]
        expressions = {f"(?:{'|'.join(map(_escaped, table.files))})$": table.files[0] for table in needed}
        if self.images is not None:
            expressions[f"(?:{self.images})$"] = self.example or self.images
        return expressions


def read_layout(manifest: Manifest) -> Layout:
    """Check the layout of a manifest.

    Raises
    ------
    DataError
        When a key is unknown, missing, of the wrong kind, or refers to something that does not exist; the message
        contains the file, the line and the key.

    """
    file = manifest.file or manifest.name
    fields = Fields(manifest.layout, file, "layout")
    tables = tuple(_table(part) for part in fields.parts("tables"))
    images = fields.get("images", read_expression)
    groups = named_groups(images)
    lists = fields.get("lists", lists_reader(groups)) or {}
    columns = [*_columns_of(fields, images, tables), *lists]
    times = fields.get("times", times_reader(columns)) or {}
    parts = [part for parts in times.values() for part in parts]
    layout = Layout(
        images=images,
        example=fields.get("example", validators.text) or "",
        archives=fields.each("archives", validators.relative),
        parts=fields.get("parts", read_expression),
        others=fields.get("others", read_expression),
        tables=tables,
        columns=tuple(columns),
        paths=fields.get("path", list_reader(template_reader(columns))) or (),
        spellings=fields.get("spellings", spellings_reader(groups)) or {},
        order=fields.get("order", order_reader(groups)) or {},
        lists=lists,
        types=(fields.get("types", types_reader(columns)) or {}) | dict.fromkeys(parts, "integer"),
        times=times,
        without=fields.get("without", read_condition),
        checks=fields.get("checks", list_reader(read_condition)) or (),
        unique=fields.get("unique", validators.yes) or False,
        sources=tuple(
            _source(Fields(written, file, f"factors[{number}]"), factor, [*columns, *parts])
            for number, (factor, written) in enumerate(zip(manifest.factors, manifest.columns, strict=True))
            if manifest.adapter is None or written or factor.name in columns  # the adapter adds the others
        ),
    )
    fields.done()
    _check_whole(fields, layout)
    return layout


def _columns_of(fields: Fields, images: str | None, tables: tuple[Table, ...]) -> list[str]:
    """Names of the columns that there are, each once but for those by which tables are joined."""
    if images is None and not tables:
        raise fields.problem("", "requires images, tables or both; add one of them")
    if tables and tables[0].optional:
        raise fields.problem(
            "tables[0].optional", "must not be set, because the first table defines the rows; remove it"
        )
    if len(tables) > _MOST_TABLES:
        raise fields.wrong("tables", f"a list of at most {_MOST_TABLES} tables", len(tables))
    if not tables:
        return named_groups(images)
    names = dict.fromkeys(tables[0].names)
    for number, table in enumerate(tables):
        if len(set(table.names)) < len(table.names):
            raise fields.wrong(f"tables[{number}].columns", "columns and groups with distinct names", table.names)
        if number and table.key is None and set(table.names) != set(tables[0].names):
            expected = f"the columns of the first table ({', '.join(tables[0].names)}) unless key is given"
            raise fields.wrong(f"tables[{number}].columns", expected, table.names)
        if number and table.key is not None:
            if table.key not in names:
                raise fields.wrong(f"tables[{number}].key", "a column of this table and of a table above", table.key)
            if twice := (set(table.names) & set(names)) - {table.key}:
                raise fields.problem(
                    f"tables[{number}].columns", f"repeats {min(twice)!r}, a column of a table above; rename it"
                )
            names |= dict.fromkeys(table.names)
    return list(names)


def _check_whole(fields: Fields, layout: Layout) -> None:
    """Refuse keys that need others, and conditions that cannot be looked up."""
    if layout.tables and not layout.paths:
        raise fields.problem("path", "is missing; add the paths of the images in the tables")
    if layout.paths and not layout.tables:
        raise fields.problem("path", "requires tables; add tables, or remove path")
    for key in ("others", "spellings", "order", "lists") if layout.tables else ():
        if getattr(layout, key):
            raise fields.problem(key, "cannot be combined with tables; remove one of them")
    further, groups = named_groups(layout.others), named_groups(layout.images)
    if layout.others is not None and not (further and set(further) <= set(groups)):
        expected = f"a regular expression with only named groups of images ({', '.join(groups)})"
        raise fields.wrong("others", expected, layout.others)
    known = {source.factor.name for source in layout.sources}
    if not known:
        raise fields.problem("", "requires a list of factors; add factors")
    for number, source in enumerate(layout.sources):
        factor = source.factor
        if any(factor.name == above.factor.name for above in layout.sources[:number]):
            raise _factor_error(fields, number, "name", "different from the names of the factors above", factor.name)
        if factor.within is not None and factor.within not in known:
            hint = did_you_mean(factor.within, known)
            raise _factor_error(fields, number, "within", "the name of another factor", factor.within, hint)
        numeric = len(source.columns) == 1 and source.columns[0] in layout.types
        if factor.kind == "continuous" and (source.rules or source.codes or not numeric):
            key = "name" if source.columns == (factor.name,) else "from"
            raise _factor_error(fields, number, key, "a single column listed in types", ", ".join(source.columns))
    conditions: list[tuple[str, str, int | None]] = [
        (f"checks[{number}]", check, None) for number, check in enumerate(layout.checks)
    ]
    if layout.without is not None:
        conditions.append(("without", layout.without, None))
    conditions += [
        (f"rules[{turn}]", rule, number)
        for number, source in enumerate(layout.sources)
        for turn, (rule, _) in enumerate(source.rules)
    ]
    for key, condition, at in conditions:
        try:
            # rules of factors alone may name parts of times, which are made of the rows that are kept; checks come
            # before lists
            names = (*layout.columns, *(() if at is None else layout.parts_of_times))
            names = tuple(name for name in names if key[:6] != "checks" or name not in layout.lists)
            check_conditions([condition], {name: layout.types.get(name) for name in names})
        except FactorError as error:
            expected = f"a valid condition on columns ({' '.join(str(error).split())})"
            if at is None:
                raise fields.wrong(key, expected, condition) from None
            raise _factor_error(fields, at, key, expected, condition) from None


def _factor_error(fields: Fields, number: int, key: str, expected: str, value: object, hint: str = "") -> Exception:
    return Fields({}, fields.file, f"factors[{number}]").wrong(key, expected, value, hint)


def _table(fields: Fields) -> Table:
    files = fields.need("file", list_reader(validators.relative))
    separator = fields.get("separator", validators.one_of(("comma", "space")))
    comma = files[0].lower().endswith(_COMMA_ENDINGS) if separator is None else separator == "comma"
    header = fields.get("header", validators.yes)
    table = Table(
        files=files,
        columns=fields.need("columns", read_forms),
        comma=comma,
        header=comma if header is None else header,
        counted=fields.get("counted", validators.yes) or False,
        key=fields.get("key", validators.text),
        number=fields.get("number", validators.text),
        constants=fields.get("constants", read_constants) or {},
        optional=fields.get("optional", validators.yes) or False,
        incomplete=fields.get("incomplete", validators.yes) or False,
        line=fields.get("what", validators.text) or "",
    )
    fields.done()
    if table.counted and table.comma:
        raise fields.problem("counted", "is only allowed in a table separated by spaces; remove it")
    if table.key is not None and table.key not in table.names:
        raise fields.wrong("key", f"one of the columns ({', '.join(table.names)})", table.key)
    if table.incomplete and table.key is None:
        raise fields.problem("incomplete", "requires key; add key, or remove incomplete")
    return table


def _source(fields: Fields, factor: ManifestFactor, columns: list[str]) -> Source:
    levels = factor.levels if isinstance(factor.levels, tuple) else None
    source = Source(
        factor=factor,
        columns=fields.get("from", list_reader(column_reader(columns))) or (factor.name,),
        match=fields.get("match", read_part),
        codes=fields.get("codes", codes_reader(levels)),
        rules=fields.get("rules", rules_reader(levels)) or (),
    )
    if source.rules and (source.match or source.codes):
        raise fields.problem("rules", "cannot be combined with match or codes; remove one of them")
    if len(source.columns) > 1 and (source.rules or source.match or source.codes):
        raise fields.wrong("from", "a single column if rules, match or codes is given", list(source.columns))
    if not source.rules and source.columns == (factor.name,) and factor.name not in columns:
        expected = "the name of a column if from is omitted"
        raise fields.wrong("name", expected, factor.name, did_you_mean(factor.name, columns))
    return source


def _escaped(name: str) -> str:
    return re.sub(r"([\\^$.|?*+(){}\[\]])", r"\\\1", name)
