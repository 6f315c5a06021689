"""No cycles of imports: those in functions and under TYPE_CHECKING count, and those through an `__init__`.

import-linter's `acyclic_siblings` finds cycles of modules or folders side by side, but none through an `__init__`.
"""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

NOT_YET = (  # packages whose own cycles are still to be broken
    *("setsup.loading", "setsup.shards", "setsup.rendered", "setsup.experiments", "setsup.jobs", "setsup.datasets"),
)


def imports(*packages: str) -> dict[str, set[str]]:
    """Modules of packages, and the modules of them that each imports anywhere."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def cycle(imported: Mapping[str, set[str]]) -> list[str]:
    """Modules of a cycle, each imported by the next; none where there is no cycle."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def inside(package: str, module: str) -> bool:
    return module == package or module.startswith(package + ".")


def test_there_is_no_cycle() -> None:
    found = imports("setsup", "setsup_cli", "setsup_renderers")
    assert len(found) > 400
    for module, names in found.items():
        own = [package for package in NOT_YET if inside(package, module)]
        found[module] = {name for name in names if not any(inside(package, name) for package in own)}
    assert not cycle(found), " <- ".join(cycle(found))


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"a": "", "b": "import house.a"}, []),
        ({"a": "import os\nfrom house.b import f", "b": "from json import loads"}, []),
        ({"a": "from house.b import f", "b": "def f():\n    from house import a"}, ["house.a", "house.b"]),
        ({"a": "from house.b import f", "b": "if TYPE_CHECKING:\n    from house.a import T"}, ["house.a", "house.b"]),
        ({"__init__": "from house.a import f", "a": "def f():\n    from house import f"}, ["house", "house.a"]),
        ({"a": "import house.b", "b": "import house.c", "c": "import house.a"}, ["house.a", "house.b", "house.c"]),
    ],
)
def test_cycles_that_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], found: list[str]
) -> None:
    (tmp_path / "house").mkdir()
    for name, text in {"__init__": "", **files}.items():
        (tmp_path / "house" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert sorted(set(cycle(imports("house")))) == found
