"""No cycles of imports: those in functions and under TYPE_CHECKING count, and those through an `__init__`.

import-linter's `acyclic_siblings` finds cycles of siblings, also of folders; this finds those through an `__init__`.
"""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "setsup": ROOT / "setsup",
    "setsup_cli": ROOT / "cli" / "setsup_cli",
    "setsup_renderers": ROOT / "renderers" / "setsup_renderers",
}
NOT_YET = (  # packages whose own cycles are still to be broken
    *("setsup.loading", "setsup.shards", "setsup.rendered", "setsup.experiments", "setsup.jobs", "setsup.datasets"),
    "setsup_cli",
)


def modules(packages: Mapping[str, Path]) -> dict[str, ast.Module]:
    """Syntax tree of every module, packages by the names of their folders."""
    found = {}
    for package, folder in packages.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def named(tree: ast.Module) -> Iterator[str]:
    """Names of modules, or of what is imported from them, anywhere in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def graph(packages: Mapping[str, Path]) -> dict[str, set[str]]:
    """Modules that each module imports."""
    trees = modules(packages)
    found: dict[str, set[str]] = {name: set() for name in trees}
    for module, tree in trees.items():
        for name in named(tree):
            while name and name not in trees:  # an attribute, or not of these packages
                name = name.rpartition(".")[0]
            if name and name != module:
                found[module].add(name)
    return found


def cycle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules of one cycle, each imported by the next; none where there is no cycle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def inside(package: str, module: str) -> bool:
    return module == package or module.startswith(package + ".")


def test_there_is_no_cycle() -> None:
    imports = graph(PACKAGES)
    assert len(imports) > 400
    for module, names in imports.items():
        for package in NOT_YET:
            if inside(package, module):
                imports[module] = names = {name for name in names if not inside(package, name)}
    assert not cycle(imports), " <- ".join(cycle(imports))


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"a": "", "b": "import house.a"}, []),
        ({"a": "import os\nfrom house.b import f", "b": "from json import loads"}, []),
        ({"a": "from house.b import f", "b": "def f():\n    from house import a"}, ["house.a", "house.b"]),
        (
            {"a": "from house.b import f", "b": "if TYPE_CHECKING:\n    from house.a import T"},
            ["house.a", "house.b"],
        ),
        ({"__init__": "from house.a import f", "a": "def f():\n    from house import f"}, ["house", "house.a"]),
        ({"a": "import house.b", "b": "import house.c", "c": "import house.a"}, ["house.a", "house.b", "house.c"]),
    ],
)
def test_cycles_that_are_found(tmp_path: Path, files: dict[str, str], found: list[str]) -> None:
    for name, text in {"__init__": "", **files}.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert sorted(set(cycle(graph({"house": tmp_path})))) == found
