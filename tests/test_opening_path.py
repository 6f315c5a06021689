"""The way from the options of `setsup sample` to a dataset, followed in the code: few modules decide what is opened.

A module takes part when a function of it receives the options, or a value taken from them: an attribute, an item, the
same value in another type, or what a function made of them. Texts and paths that are put together are new values. The
way ends where the opener of a benchmark, or of another kind of source, is called. Run as a script, this prints the
modules.
"""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

MOST = 12
"""Modules that may take part."""

_NEW = (ast.BinOp, ast.Compare, ast.JoinedStr)

Functions = dict[str, set[str]]


def follow(function: FunctionType, taken: frozenset[str], found: Functions) -> bool:
    """Add the functions to which some parameters of a function lead; whether a dataset is opened on the way."""
    functions = found.setdefault(function.__module__, set())
    key = f"{function.__qualname__}({', '.join(sorted(taken))})"
    if key in functions:
        return function.__annotations__.get("return") in ("Dataset", "_Drawn")
    functions.add(key)
    body = parse(function)
    names = spread(body, taken)
    for statement in statements(body):
        opened = False
        for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
            given = [*enumerate(call.args), *((one.arg, one.value) for one in call.keywords)]
            passed = [place for place, value in given if names & set(mentioned(value))]
            if passed and isinstance(call.func, ast.Name) and call.func.id == "opener":
                opened = True
            elif passed and (callee := resolve(call.func, function)) is not None:
                opened |= follow(callee, parameters(callee, passed), found)
        if opened:
            return True
    return False


def parse(function: FunctionType) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]


def statements(body: ast.AST) -> Iterator[ast.AST]:
    """Statements in their order, and expressions of those that hold others; none that raise."""
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.If | ast.For | ast.With | ast.Try | ast.ExceptHandler):
            yield from statements(node)
        elif not isinstance(node, ast.Raise | ast.arguments):
            yield node


def mentioned(node: ast.AST) -> Iterator[str]:
    """Names in an expression, but for those of which new values are made."""
    if isinstance(node, ast.Name):
        yield node.id
    if not isinstance(node, _NEW):
        for inner in ast.iter_child_nodes(node):
            yield from mentioned(inner)


def spread(body: ast.AST, taken: frozenset[str]) -> set[str]:
    """Names of some parameters, and of the variables that hold what is taken from them."""
    names, more = set[str](), set(taken)
    while more - names:
        names |= more
        for node in ast.walk(body):
            value = getattr(node, "value", None) or getattr(node, "iter", None)
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if isinstance(value, ast.AST) and names & set(mentioned(value)):
                more |= {name for target in targets if target is not None for name in mentioned(target)}
    return names


@cache
def known(function: FunctionType) -> dict[str, Any]:
    """What the names in a function stand for: of its module, and imported by itself."""
    found = dict(function.__globals__)
    for node in ast.walk(parse(function)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            found |= {one.asname or one.name: getattr(module, one.name) for one in node.names}
        elif (
            isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        ):
            # a local variable stands for the class of which the function says that it returns it
            made = getattr(found.get(node.value.func.id), "__annotations__", {}).get("return")
            found |= {target.id: made for target in node.targets if isinstance(target, ast.Name)}
    return found


def resolve(called: ast.expr, function: FunctionType) -> FunctionType | None:
    """The function of setsup's that is called; None for any other, and for what only a run decides."""
    if isinstance(called, ast.Name):
        found = known(function).get(called.id)
    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        holder = known(function).get(called.value.id)
        found = getattr(holder, called.attr, None) if isinstance(holder, ModuleType | type) else None
    else:
        return None
    found = inspect.unwrap(found) if callable(found) else None
    ours = isinstance(found, FunctionType) and found.__module__.startswith(("setsup.", "setsup_cli."))
    return found if ours else None


def parameters(function: FunctionType, passed: list[Any]) -> frozenset[str]:
    """Names of the parameters that some positions and keywords of a call are."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    found = (names[min(one, len(names) - 1)] if isinstance(one, int) else one for one in passed)
    return frozenset(name if name in names else names[-1] for name in found)


def way() -> Functions:
    from setsup_cli.commands import sample

    found: Functions = {}
    follow(sample.run, frozenset({"options"}), found)
    return found


def test_few_modules_lead_from_options_to_a_dataset() -> None:
    found = way()
    assert {"setsup_cli.commands.sample", "setsup.opening", "setsup.datasets.registry"} <= set(found)
    assert len(found) <= MOST, "\n".join(sorted(found))


if __name__ == "__main__":
    for number, (module, functions) in enumerate(sorted(way().items()), 1):
        print(f"{number:2} {module}: {', '.join(sorted(functions))}")  # noqa: T201
