"""Parts of example scripts, so that a page shows the very lines that run."""

import ast
from pathlib import Path


def part(path: Path, name: str) -> str:
    """Listing of a top-level class, function or variable of a script, or of its imports."""
    return f"```python\n{parts(path)[name]}\n```"


def parts(path: Path) -> dict[str, str]:
    """All top-level statements of a script but its docstring and what it runs, by name; its imports are one."""
    text = path.read_text(encoding="utf-8")
    lines, found = text.splitlines(), dict[str, list[str]]()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Expr | ast.If):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
        # with the empty lines above, which part groups of imports
        while lines[first - 2] == "" and _name(node) in found:
            first -= 1
        found.setdefault(_name(node), []).extend(lines[first - 1 : node.end_lineno])
    return {name: "\n".join(listed) for name, listed in found.items()}


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "imports"
    return node.targets[0].id if isinstance(node, ast.Assign) else node.name
