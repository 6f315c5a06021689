"""Signatures of samplers as their source has them: importing them would import numpy, which makes help slow."""

import ast
import inspect
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import setsup
from setsup_cli.parsing.settings import described

__all__ = ["Argument", "read_arguments", "read_constant"]


class Argument(NamedTuple):
    """An argument of a constructor.

    ``annotation`` is its type as written, without None; ``default`` its default value, None where there is none;
    ``text`` what the docstring says of it.
    """

    annotation: str
    default: object
    text: str

    @property
    def choices(self) -> tuple[str, ...]:
        """Members of a ``Literal``; none of another type."""
        listed = self.annotation.removeprefix("Literal")
        return tuple(ast.literal_eval(listed)) if listed != self.annotation else ()


@cache
def read_arguments(module: str, sampler: str) -> dict[str, Argument]:
    """Arguments of a sampler's constructor by name, without the table."""
    classes = (node for node in _parse(module).body if isinstance(node, ast.ClassDef))
    found = next(node for node in classes if node.name == sampler)
    constructor = next(node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    texts = described(inspect.cleandoc(ast.get_docstring(found) or ""))
    given = constructor.args
    missing = [None] * (len(given.args) - len(given.defaults))
    arguments, defaults = [*given.args, *given.kwonlyargs], [*missing, *given.defaults, *given.kw_defaults]
    return {
        argument.arg: Argument(
            _annotation(argument),
            None if default is None else ast.literal_eval(default),
            texts.get(argument.arg, ""),
        )
        for argument, default in zip(arguments, defaults, strict=True)
        if argument.arg not in ("self", "table")
    }


def read_constant(module: str, name: str) -> Any:
    """A constant of a module of the samplers."""
    assignments = (node for node in _parse(module).body if isinstance(node, ast.Assign))
    found = next(node for node in assignments if name in map(ast.unparse, node.targets))
    return ast.literal_eval(found.value)


def _parse(module: str) -> ast.Module:
    source = Path(setsup.__file__).with_name("samplers") / f"{module}.py"
    return ast.parse(source.read_text(encoding="utf-8"))


def _annotation(argument: ast.arg) -> str:
    return "" if argument.annotation is None else ast.unparse(argument.annotation).removesuffix(" | None")
