"""What is called while Python ends needs no module, since all may be gone: else each call prints a warning."""

import ast
import builtins
import symtable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FINALIZERS = [
    pytest.param(path, node, id=f"{path.relative_to(ROOT)}:{node.lineno}")
    for folder in ("setsup", "renderers", "cli")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "__del__" in (text := path.read_text("utf-8"))
    for node in ast.walk(ast.parse(text))
    if isinstance(node, ast.FunctionDef) and node.name == "__del__"
]


@pytest.mark.parametrize(("path", "node"), FINALIZERS)
def test_a_finalizer_needs_no_module(path: Path, node: ast.FunctionDef) -> None:
    node.args.defaults, node.decorator_list, node.returns = [ast.Constant(None) for _ in node.args.defaults], [], None
    for argument in node.args.args:
        argument.annotation = None
    (scope,) = symtable.symtable(ast.unparse(node), str(path), "exec").get_children()
    names = {one.get_name() for one in scope.get_symbols() if one.is_global() or one.is_free()}
    assert names <= set(dir(builtins)), names
