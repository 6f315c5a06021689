"""The line on what to do next that ends a result."""

import shlex
import sys
from collections.abc import Sequence
from inspect import getfile, signature
from typing import TYPE_CHECKING

from setsup_cli.parsing.arguments import Common
from setsup_cli.parsing.values import write_literal

if TYPE_CHECKING:
    from setsup.factors import FactorTable
    from setsup.samplers import Sampler

__all__ = ["advise", "advise_command", "is_watched", "python_command", "sample_command", "sampler_call"]


def advise(options: Common, command: str) -> None:
    """Name a command for the shell on standard error, where a person reads both streams."""
    if not (options.json or options.quiet) and is_watched():
        sys.stderr.write(f"next: {command}\n")


def is_watched() -> bool:
    """Whether a person reads both streams."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def advise_command(options: Common, words: Sequence[object]) -> None:
    """Name the command of some words, quoted for the shell."""
    advise(options, shlex.join(map(str, words)))


def python_command(*statements: str) -> str:
    """A command that runs statements and stays in Python."""
    return shlex.join(["python", "-i", "-c", "; ".join(statements)])


def sampler_call(sampler: "Sampler", table: str) -> str:
    """An expression of Python that makes a sampler, without arguments that have their defaults."""
    if any(name in sampler.arguments for name in ("base", "samplers")):  # made of other samplers
        return f"setsup.samplers.from_dict({write_literal(sampler.to_dict())}, {table})"
    kind = type(sampler)
    usual = {name: parameter.default for name, parameter in signature(kind).parameters.items()}
    given = {name: value for name, value in sampler.arguments.items() if value != usual.get(name)}
    if given.get("stream") == kind.__name__:
        del given["stream"]
    words = [table, *(f"{name}={write_literal(value)}" for name, value in given.items())]
    return f"{_class_expression(kind)}({', '.join(words)})"


def _class_expression(kind: "type[Sampler]") -> str:
    """An expression of Python that gives the class of a sampler, which may lie in the user's own file."""
    package, _, module = kind.__module__.partition(".")
    if package == "setsup":
        return f"setsup.{kind.__name__}"
    if module:
        return f"__import__('importlib').import_module({kind.__module__!r}).{kind.__name__}"
    return f"__import__('runpy').run_path({getfile(kind)!r})[{kind.__name__!r}]"


def sample_command(
    source: str,
    table: "FactorTable",
    preferred: Sequence[str] = (),
    index: str | None = None,
    words: Sequence[str] = (),
) -> str:
    """A command that draws sets from a folder: by factors of which every group has two rows; else one that shows it."""
    source_words, more = ([], words) if "--table" in words else ([source], words)
    discrete = [factor.name for factor in table.factors if not factor.continuous and factor.role == "variation"]
    varied = [name for name in discrete if (table.counts(name) > 1).sum() > 1]
    for fixed in (preferred, *([name] for name in (*varied, *discrete))):
        if fixed and not any(table[name].continuous for name in fixed):
            counts = table.joint_counts(fixed)
            if counts[counts > 0].min(initial=len(table)) > 1:
                command = ["sample", *source_words, "--inactive", *fixed]
                break
    else:
        command = ["info", *source_words]
    return shlex.join(["setsup", *command, *(["--index", index] if index else []), *more])
