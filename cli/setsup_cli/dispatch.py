"""Finds the subcommand, parses its words, runs it, and turns what goes wrong into one sentence.

A package offers a subcommand through the entry-point group ``setsup.commands``: a module like those of
:mod:`setsup_cli.commands`, the first line of whose docstring is its line of help.
"""

import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from types import ModuleType

from setsup.errors import SetsupError, advised_for_command, did_you_mean
from setsup.packages import load_entry, other_entries, own_entries
from setsup_cli.encoding import replace_unencodable
from setsup_cli.failures import say_error
from setsup_cli.output import output_errors, write

__all__ = ["find_module", "run", "subcommands"]

_GROUP = "setsup.commands"

_LINES = {
    "datasets": "list the datasets: rows, factors, licence, and whether their files are on this machine",
    "info": "show a dataset: its factors with levels and counts, its splits, a row, licence and citation",
    "fetch": "download and verify a dataset, or show how to get it if a licence must be signed; an interrupted "
    "download resumes",
    "prepare": "convert slow-to-read files to memory-mapped arrays",
    "sample": "draw sets, print what is fixed and what varies, and write a contact sheet and replayable draws",
    "render": "render images, depth, normals and instance masks of scenes to a folder; an interrupted run resumes",
    "pairs": "plot pixel correspondences between two views of a scene, rendered by a recipe or from a dataset",
    "overlap": "measure which views of a scene show the same surfaces; an interrupted run resumes",
    "shard": "write a dataset as WebDataset tars with a factor index; an interrupted run resumes",
    "index": "index existing WebDataset tars, so that they can be sampled by their factors",
    "train": "train a method from one of the supported papers, or your own; an interrupted run resumes",
    "embed": "compute embeddings of a dataset with a trained method, and save them with the factors",
    "eval": "run a paper's evaluations on trained methods",
    "export": "export a trained method as a program or weights, or renders as COCO, BOP, transforms.json, TAP-Vid or "
    "flow, for use without setsup",
    "report": "compare the results of your runs with the paper's",
    "explore": "view datasets and draws on a page in the browser, or export the page as files",
    "bench": "measure throughput on this machine: draws and images per second",
    "doctor": "check what works on this machine: packages, torch, GL and disk",
    "cache": "list the contents and size of the cache, or clear it",
}
"""Lines of help of the modules of :mod:`setsup_cli.commands`."""

_ABOUT = "Sample sets, domains, orbits and triplets of images, for weakly supervised representation learning."

_EXAMPLES = {
    "setsup sample --inactive wall_hue": "two sets of images, each with a fixed wall hue",
    "setsup sample photos.csv --inactive subject": "your own images, listed in a table with their factors",
    "setsup datasets": "the benchmarks that setsup reads",
}

_OPTIONS = {
    "--help, -h": "show this help; `setsup help SUBCOMMAND` shows the help of a subcommand",
    "--version, -V": "show the version",
    "--install-completion": "show what installing shell completion would write; with --yes, write it",
}
_COMMON = (
    "All subcommands accept --json (output JSON), --quiet or -q (hide progress and advice on standard error) and "
    "--verbose or -v (log details to standard error)."
)
_BESIDE = 60
"""Columns from which a description stands beside its name."""


@cache
def subcommands() -> dict[str, str]:
    """Lines of help by the names of the subcommands: the command's, and those that packages offer."""
    return _LINES | {name: _line(entry) for name, entry in _offered().items()}


def find_module(name: str) -> ModuleType:
    """The module of a subcommand; only this one is imported.

    SetsupError where it is of another package and cannot be imported, or is no module of a subcommand.
    """
    if name in _LINES:
        return import_module(f"setsup_cli.commands.{name}")
    entry = _offered()[name]
    module: ModuleType = load_entry(entry, "the subcommand")
    if missing := [part for part in ("Options", "HELP", "run") if not hasattr(module, part)]:
        raise SetsupError(
            f"subcommand {name!r} cannot run: {entry.value} does not define {missing[0]}; define Options, HELP and run "
            "as in setsup_cli.commands"
        )
    return module


@cache
def _offered() -> dict[str, EntryPoint]:
    """Subcommands of packages, setsup's own papers first."""
    entries = (*own_entries(_GROUP), *other_entries(_GROUP))
    return {entry.name: entry for entry in reversed(entries) if entry.name not in _LINES}


def _line(entry: EntryPoint) -> str:
    """The first line of a module's docstring; the module is not imported, which would make the help slow."""
    from importlib.util import find_spec
    from pydoc import synopsis

    try:
        spec = find_spec(entry.module)
    except Exception:  # its packages are imported, and one that is broken in any way must not end the help
        spec = None
    synopsis_line = synopsis(spec.origin) if spec is not None and spec.origin is not None else None
    return f"{synopsis_line[0].lower()}{synopsis_line[1:].rstrip('.')}" if synopsis_line else entry.value


def run(words: list[str]) -> int:
    """Run the command to an exit code, with one sentence for what goes wrong."""
    with replace_unencodable(), advised_for_command():
        try:
            code = _run(words)
            write("")  # flush
        except (SetsupError, MemoryError) as error:
            say_error(error, as_json="--json" in words)
            return 2
        except BrokenPipeError:
            return 141
        return code


def _run(words: list[str]) -> int:
    if not words:
        write(_first_screen())
        return 0
    name, rest = words[0], words[1:]
    if name == "help" and rest and not rest[0].startswith("-"):
        return _run([*rest, "--help"])
    if name in ("--help", "-h", "help"):
        write(_help())
    elif name in ("--version", "-V"):
        import setsup

        write(f"setsup {setsup.__version__}\n")
    elif name in ("--install-completion", "__complete"):
        return _complete(words)
    elif name.startswith("-"):
        example = f"setsup {rest[0] if rest and rest[0] in subcommands() else 'sample'} {name}"
        raise SetsupError(f"options follow the subcommand, as in `{example}` (`setsup --help` lists the subcommands)")
    elif name not in _LINES and name not in subcommands():
        raise SetsupError(
            f"unknown subcommand {name!r}{did_you_mean(name, subcommands())} (`setsup --help` lists them)"
        )
    else:
        return _run_subcommand(name, rest)
    return 0


def _run_subcommand(name: str, words: list[str]) -> int:
    # only the module of the subcommand is imported
    from setsup_cli.parsing.parser import Subcommand, option_names, parse, print_help

    module = find_module(name)
    subcommand = Subcommand(name, module.Options, module.HELP)
    if hasattr(module, "resolve_options"):
        subcommand = module.resolve_options(subcommand, words)
    if {"-h", "--help"} & set(words):
        with output_errors():
            print_help(subcommand, f"{(line := subcommand.summary or subcommands()[name])[0].upper()}{line[1:]}.")
        return 0
    parsed = parse(subcommand, words)
    if parsed.quiet and parsed.verbose:
        raise SetsupError("--quiet and --verbose are mutually exclusive; use only one of them")
    level = "DEBUG" if parsed.verbose else "WARNING" if parsed.quiet else "INFO"
    with _log_to_stderr(level), advised_for_command(option_names(type(parsed))):
        code: int = module.run(parsed)
    return code


def _complete(words: list[str]) -> int:
    """Install shell completion, or complete words for an installed one."""
    from setsup_cli.parsing.parser import Subcommand, complete

    offered = []
    for name, line in subcommands().items():
        with suppress(SetsupError):  # of a broken package
            offered.append(Subcommand(name, find_module(name).Options, line))
    complete(offered, words)
    return 0


@contextmanager
def _log_to_stderr(least: str) -> Iterator[None]:
    """Show on standard error what the library logs from a level on; a level above INFO turns off progress."""
    import logging

    log, handler = logging.getLogger("setsup"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("setsup: %(message)s"))
    level, propagate = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(least)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagate


def _first_screen() -> str:
    """What the command prints without arguments: what it is, and three commands to try."""
    examples = "\n".join(["Try:", *(_entry(command, line) for command, line in _EXAMPLES.items())])
    return "\n\n".join([_wrap(_ABOUT), examples, _wrap("`setsup --help` lists the subcommands.")]) + "\n"


def _help() -> str:
    parts = [
        _wrap("Usage: setsup SUBCOMMAND [OPTIONS]"),
        _wrap(_ABOUT),
        "\n".join(["Subcommands:", *(_entry(name, line, 10) for name, line in subcommands().items())]),
        "\n".join(["Options:", *(_entry(name, line, 21) for name, line in _OPTIONS.items())]),
        _wrap(_COMMON),
        "\n".join(["Examples:", *(_entry(command, line) for command, line in _EXAMPLES.items())]),
    ]
    return "\n\n".join(parts) + "\n"


def _entry(name: str, line: str, column: int | None = None) -> str:
    """A name and a line about it: beside the name from a column on, or below it."""
    if column is None or _width() < _BESIDE:
        return f"{_wrap(name, '  ', 6)}\n{_wrap(line, ' ' * 6, 6)}"
    return _wrap(line, f"  {name:<{column}} ", column + 3)


def _wrap(text: str, first: str = "", indent: int = 0) -> str:
    return textwrap.fill(
        text,
        max(_width(), indent + 1),
        initial_indent=first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns - 1
