"""No cycles of imports: those in functions and under TYPE_CHECKING count, and those through an `__init__`.

import-linter's `acyclic_siblings` finds cycles of modules or folders side by side, but none through an `__init__`.
"""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest


def imports(*packages: str) -> dict[str, set[str]]:
    """Modules of packages, and the other modules of them that each imports anywhere."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) - {module} for module in graph.modules}


def cycle(imported: Mapping[str, set[str]]) -> list[str]:
    """Modules of a cycle, each imported by the next; none where there is no cycle."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.long("subprocesses")
def test_there_is_no_cycle() -> None:
    found = imports("setsup", "setsup_cli", "setsup_renderers")
    assert len(found) > 400
    assert not cycle(found), " <- ".join(cycle(found))


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"a": "", "b": "import package.a"}, []),
        ({"a": "import os\nfrom package.b import f", "b": "from json import loads"}, []),
        ({"a": "from package.b import f", "b": "def f():\n    from package import a"}, ["package.a", "package.b"]),
        (
            {"a": "from package.b import f", "b": "if TYPE_CHECKING:\n    from package.a import T"},
            ["package.a", "package.b"],
        ),
        ({"__init__": "from package.a import f", "a": "def f():\n    from package import f"}, ["package", "package.a"]),
        (
            {"a": "import package.b", "b": "import package.c", "c": "import package.a"},
            ["package.a", "package.b", "package.c"],
        ),
    ],
)
def test_cycles_that_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], found: list[str]
) -> None:
    (tmp_path / "package").mkdir()
    for name, text in {"__init__": "", **files}.items():
        (tmp_path / "package" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert sorted(set(cycle(imports("package")))) == found
