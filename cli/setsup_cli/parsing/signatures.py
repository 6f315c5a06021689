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
    default: Any = None
    text: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """Members of a ``Literal``; none of another type."""
        members = self.annotation.removeprefix("Literal")
        return tuple(ast.literal_eval(members)) if members != self.annotation else ()


@cache
def read_arguments(module: str, sampler: str) -> dict[str, Argument]:
    """Arguments of a sampler's constructor by name, without the table."""
    classes = {node.name: node for node in _parse(module).body if isinstance(node, ast.ClassDef)}
    texts = described(inspect.cleandoc(ast.get_docstring(classes[sampler]) or ""))
    functions = {node.name: node for node in classes[sampler].body if isinstance(node, ast.FunctionDef)}
    signature = functions["__init__"].args
    required = [None] * (len(signature.args) - len(signature.defaults))
    defaults = [*required, *signature.defaults, *signature.kw_defaults]
    return {
        argument.arg: Argument(
            ast.unparse(argument.annotation).removesuffix(" | None"),
            None if default is None else ast.literal_eval(default),
            texts.get(argument.arg, ""),
        )
        for argument, default in zip([*signature.args, *signature.kwonlyargs], defaults, strict=True)
        if argument.annotation is not None and argument.arg != "table"
    }


def read_constant(module: str, name: str) -> Any:
    """A constant of a module of the samplers."""
    assignments = (node for node in _parse(module).body if isinstance(node, ast.Assign))
    return next(ast.literal_eval(node.value) for node in assignments if name in map(ast.unparse, node.targets))


def _parse(module: str) -> ast.Module:
    source = Path(setsup.__file__).with_name("samplers") / f"{module}.py"
    return ast.parse(source.read_text(encoding="utf-8"))
