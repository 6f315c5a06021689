"""Which dataset a subcommand opens: the name of a benchmark, a path, an address, or a table."""

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.checks import check_choice
from setsup.errors import DataError, FactorError, advised_for_command, did_you_mean
from setsup_cli.parsing.arguments import DEFAULT, Named
from setsup_cli.parsing.values import is_readable, read_options, write_literal

if TYPE_CHECKING:
    from setsup.arrays import Rows
    from setsup.datasets import Dataset
    from setsup.factors import FactorTable
    from setsup.opening import SourceKind

__all__ = [
    "assignments",
    "card_command",
    "check_benchmark",
    "check_factors",
    "check_root",
    "find_source",
    "given_words",
    "open_arguments",
    "open_call",
    "open_source",
    "read_source_options",
    "rows_where",
    "source_words",
    "word_options",
]

_ARCHIVES = (".zip", ".tar", ".gz", ".tgz")

_IMAGES = "a folder or archive of images"
_GO_WITH = {
    "index": "shards, given by their folder or address",
    "image": "a table (--table FILE)",
    "kinds": f"a table (--table FILE), or {_IMAGES}",
    "pattern": _IMAGES,
    "relist": _IMAGES,
}
"""Options of the command line that only some sources take."""

_OWN = {name: f"--{name}" for name in ("root", "split", *_GO_WITH)}
"""Arguments of :func:`setsup.open` that are options of their own."""

_WORDS = ("pattern", "relist")
"""Those of them that ``--option`` takes too, for subcommands without them."""

_KIND = "kind="
"""Chooses, as a word of ``--option``, among what a folder holds."""


def find_source(options: Named) -> "tuple[str | Path, SourceKind]":
    """The source that the options of a subcommand name, and its kind."""
    from setsup.opening import KINDS, find_kind

    table: Path | None = getattr(options, "table", None)
    if table is None:
        source = options.dataset or DEFAULT
        chosen = next((word.removeprefix(_KIND) for word in options.option or () if word.startswith(_KIND)), None)
        if chosen is not None:
            check_choice(chosen, tuple(KINDS), "--option kind", DataError)
        return source, next((kind for kind in KINDS if kind == chosen), None) or find_kind(source)
    if options.dataset is not None:
        raise DataError(f"specify either a dataset or --table, not both: {options.dataset!r} and {str(table)!r}")
    return table, "table"


def open_source(options: Named) -> "Dataset":
    """Open the source that the options of a subcommand name; errors name these options, or ``--option``."""
    from setsup.opening import open

    source, kind, given = _asked(options)
    with advised_for_command({name: f"--option {name}" for name in given} | _OWN):
        return open(source, options.root, options.split, kind=kind, **given)


def rows_where(table: "FactorTable", where: str) -> "Rows":
    """Rows that ``--where`` selects; FactorError where there are none."""
    rows = table.rows(where)
    if not len(rows):
        raise FactorError(f"--where {where!r} selects no rows; change the expression")
    return rows


def source_words(options: Named) -> list[str]:
    """Words of the options, besides the name, that open the same source."""
    words: list[str] = []
    for name in ("root", "split", "index", "image", "pattern"):
        if (value := getattr(options, name, None)) is not None:
            words += [f"--{name}", str(value)]
    for name in ("kinds", "option"):
        if value := getattr(options, name, None):
            words += [f"--{name}", *value]
    return words


def open_arguments(options: Named) -> dict[str, Any]:
    """Arguments of :func:`setsup.open` that open the same source, without it."""
    _, kind, given = _asked(options)
    chosen = any(word.startswith(_KIND) for word in options.option or ())
    asked = {"root": options.root, "split": options.split, "kind": kind if chosen else None, **given, "relist": None}
    return {
        name: str(value) if isinstance(value, Path) else value for name, value in asked.items() if value is not None
    }


def open_call(options: Named) -> str:
    """The expression of Python that opens the same source."""
    words = [f"{name}={write_literal(value)}" for name, value in open_arguments(options).items()]
    return f"setsup.open({', '.join([write_literal(str(find_source(options)[0])), *words])})"


def _asked(options: Named) -> "tuple[str | Path, SourceKind, dict[str, Any]]":
    """Source, kind and options of the dataset that the options of a subcommand name."""
    from setsup.opening import KINDS, options_of

    source, kind = find_source(options)
    check_root(options.root)
    for name, where in _GO_WITH.items():
        if getattr(options, name, None) and name not in options_of(source, kind):
            raise DataError(f"--{name} requires {where}, but {source} is {KINDS[kind]}; omit --{name}")
    given = given_words(options, source, kind)
    given |= {name: value for name in ("index", "image") if (value := getattr(options, name, None)) is not None}
    if kinds := getattr(options, "kinds", None):
        given["kinds"] = assignments(kinds, "--kinds", "kind")
    return source, kind, given


def given_words(options: Named, source: str | Path, kind: "SourceKind | None" = None) -> dict[str, Any]:
    """Values of ``--option`` for a source, with those of ``--pattern`` and ``--relist``."""
    given = read_source_options(options.option or (), source, kind)
    for name in _WORDS:
        if value := getattr(options, name):
            if name in given:
                raise DataError(f"--{name} and --option {name}=… set the same option; use only one of them")
            given[name] = value
    return given


def read_source_options(words: Sequence[str], source: str | Path, kind: "SourceKind | None" = None) -> dict[str, Any]:
    """Read options of a source from words such as ``size=64,64``."""
    words = [word for word in words if not word.startswith(_KIND)]
    return read_options(words, word_options(source, kind), str(source)) if words else {}


def word_options(source: str | Path, kind: "SourceKind | None" = None) -> dict[str, Parameter]:
    """Options of a source that ``--option`` takes: those that words can write."""
    from setsup.opening import options_of

    known = options_of(source, kind).items()
    return {
        name: parameter
        for name, parameter in known
        if (name in _WORDS or name not in _GO_WITH) and is_readable(parameter)
    }


def card_command(options: Named) -> str:
    """The command that lists the factors of the source that options name."""
    table = getattr(options, "table", None)
    return f"`setsup info {f'--table {table}' if table else options.dataset or DEFAULT}`"


def check_benchmark(name: str, what: str) -> None:
    """Refuse a file or folder of one's own where only benchmarks have something to do."""
    if Path(name).suffix and Path(name).exists():
        raise DataError(f"{name} is your own file and requires no {what}; view it with `setsup info {name}`")


def check_root(root: Path | str | None) -> None:
    """Refuse a file where a folder, or an archive of one, is expected."""
    if root is not None and Path(root).is_file() and Path(root).suffix.lower() not in _ARCHIVES:
        raise DataError(
            "--root must be the folder that contains the files, or an archive of it (.zip, .tar, .tar.gz), not "
            f"the file {root}; pass the folder of the file: `--root {Path(root).parent}`"
        )


def assignments(words: Iterable[str], option: str, what: str, read: Callable[[str], Any] = str) -> dict[str, Any]:
    """Read words such as ``name=value``; `read` raises ValueError for a value that is not `what`."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            of = "NAME" if what == "value" else "FACTOR"
            raise DataError(f"{option} must be {of}={what.upper()}, as in `{option} name={what}`, not {word!r}")
        if name in values:
            raise DataError(f"{option} {name}=… is specified twice; specify it once")
        try:
            values[name] = read(value)
        except ValueError:
            expected = {"number": "a number", "integer": "an integer"}.get(what, what.upper())
            raise DataError(f"{option} {word}: expected {expected} after the =") from None
    return values


def check_factors(names: Iterable[str], table: "FactorTable", card: str) -> None:
    """Refuse names that are no factors, and name the command that lists those."""
    for name in names:
        if name in table:
            continue
        parts = [part for part in name.split(",") if part]
        if len(parts) > 1 and all(part in table for part in parts):
            raise FactorError(f"{name!r} is not a factor; put spaces between factors: {' '.join(parts)}")
        raise FactorError(f"unknown factor {name!r}{did_you_mean(name, table.names)} ({card} lists the factors)")
