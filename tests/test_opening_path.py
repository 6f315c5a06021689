"""The way of the options of `setsup sample` to a dataset, followed in the code: few modules decide what is opened.

Run as a script, it prints the modules and their functions.
"""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

MOST = 12
"""Modules that may take part."""

_OURS = ("setsup.", "setsup_cli.")


class Trip(NamedTuple):
    """What was followed: functions by module, and which calls of them open a dataset."""

    functions: dict[str, set[str]]
    seen: dict[tuple[FunctionType, frozenset[str]], bool]

    def follow(self, function: FunctionType, taken: frozenset[str]) -> bool:
        """Follow parameters of a function, and what is taken from them; whether a dataset is opened on the way."""
        if (function, taken) in self.seen:
            return self.seen[function, taken]
        self.seen[function, taken] = False
        self.functions.setdefault(function.__module__, set()).add(function.__qualname__)
        body = parsed(function)
        names = spread(body, taken)
        for statement in statements(body):
            opened = False
            for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                given = [*enumerate(call.args), *((one.arg, one.value) for one in call.keywords)]
                passed = [place for place, value in given if names & mentioned(value)]
                if not passed:
                    continue
                callee = resolved(call.func, function, body)
                if callee is None:
                    # an opener that was looked up by the kind of source, or the name of a benchmark
                    opened |= isinstance(call.func, ast.Name) and call.func.id == "opener"
                elif callee.__module__.startswith(_OURS):
                    opened |= self.follow(callee, parameters(callee, passed))
            if opened:
                self.seen[function, taken] = True
                return True
        return False


def parsed(function: Callable[..., Any]) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


def statements(body: ast.AST) -> Iterator[ast.AST]:
    """Statements in order, of which those with a block of others are given without it; errors are left out."""
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.Raise | ast.arguments):
            continue
        blocks = [*getattr(node, "body", []), *getattr(node, "orelse", [])] if isinstance(node, ast.stmt) else []
        if not blocks:
            yield node
            continue
        for name, value in ast.iter_fields(node):
            if name not in ("body", "orelse", "handlers"):
                yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST))
        yield from statements(ast.Module(blocks, []))


def mentioned(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def spread(body: ast.FunctionDef, taken: frozenset[str]) -> set[str]:
    """Names of parameters and of all that is made from them."""
    names: set[str] = set()
    more = set(taken)
    while more - names:
        names |= more
        for node in ast.walk(body):
            value = getattr(node, "value", None) or getattr(node, "iter", None)
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if isinstance(value, ast.AST) and names & mentioned(value):
                more |= {name for target in targets if isinstance(target, ast.AST) for name in mentioned(target)}
    return names


@cache
def imports(function: FunctionType) -> dict[str, Any]:
    """What a function imports itself."""
    found = {}
    for node in ast.walk(parsed(function)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            found |= {one.asname or one.name: getattr(module, one.name) for one in node.names}
    return found


def resolved(called: ast.expr, function: FunctionType, body: ast.FunctionDef) -> FunctionType | None:
    """The function that an expression names; None for builtins, types without code and what only a run decides."""
    known = {**function.__globals__, **imports(function)}
    if isinstance(called, ast.Name):
        found = known.get(called.id)
    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        found = known.get(called.value.id)
        if not isinstance(found, ModuleType):
            found = made(called.value.id, body, known)
        found = getattr(found, called.attr, None)
    else:
        return None
    if isinstance(found, type):
        found = found.__dict__.get("__init__")
    found = inspect.unwrap(found) if callable(found) else None
    written = isinstance(found, FunctionType) and not found.__code__.co_filename.startswith("<")
    return found if written else None


def made(name: str, body: ast.FunctionDef, known: dict[str, Any]) -> Any:
    """The class of a local variable that is the result of a call."""
    for node in ast.walk(body):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            callee = known.get(node.value.func.id)
            if name in {one for target in node.targets for one in mentioned(target)} and isinstance(
                callee, FunctionType
            ):
                kind = callee.__annotations__.get("return")
                return callee.__globals__.get(kind) if isinstance(kind, str) else kind
    return None


def parameters(function: FunctionType, passed: list[int | str | None]) -> frozenset[str]:
    """Names of the parameters that positions and keywords of a call are."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    found = {names[min(one, len(names) - 1)] if isinstance(one, int) else one for one in passed}
    return frozenset(name if name in names else names[-1] for name in found)


def trip() -> dict[str, set[str]]:
    from setsup_cli.commands import sample

    found = Trip({}, {})
    assert found.follow(sample.run, frozenset({"options"})), "no dataset was opened"
    return found.functions


def test_few_modules_lead_from_options_to_a_dataset() -> None:
    found = trip()
    assert {"setsup_cli.commands.sample", "setsup.opening", "setsup.datasets.registry"} <= set(found)
    assert len(found) <= MOST, "\n".join(sorted(found))


if __name__ == "__main__":
    for number, (module, names) in enumerate(sorted(trip().items()), 1):
        print(f"{number:2} {module}: {', '.join(sorted(names))}")  # noqa: T201
