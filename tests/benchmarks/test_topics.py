"""Benchmarks run by hand: that each imports where no peer is installed, and calls what setsup has, as it is called."""

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from benchmarks.__main__ import TOPICS
from benchmarks.peers import MODULES

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in ("__init__", "__main__"))

WITHOUT_PEERS = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for topic in {topics!r}:
    module = importlib.import_module(f"benchmarks.{topic}")
    assert callable(module.rows), topic
from benchmarks.peers import MODULES, peer
assert all(peer(name) is None for name in MODULES)
"""


@pytest.mark.long("subprocesses")
def test_every_topic_imports_where_no_peer_is_installed() -> None:
    absent = {module.partition(".")[0] for module in MODULES.values()}
    script = WITHOUT_PEERS.replace("{absent!r}", repr(absent)).replace("{topics!r}", repr(TOPICS))
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def imported(tree: ast.AST) -> Iterator[tuple[str, str, str | None, int]]:
    """What is imported of setsup and of the benchmarks: by which name, module, name there, line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("setsup", "benchmarks"):
            yield from ((one.asname or one.name, node.module or "", one.name, node.lineno) for one in node.names)
        elif isinstance(node, ast.Import):
            for one in node.names:
                if one.name.partition(".")[0] == "setsup":
                    yield one.asname or "setsup", one.name if one.asname else "setsup", None, node.lineno


def held(module: str, name: str | None) -> Any:
    found = importlib.import_module(module)
    if name is None or hasattr(found, name):
        return found if name is None else getattr(found, name)
    return importlib.import_module(f"{module}.{name}")


def called(node: ast.expr, known: dict[str, Any]) -> Any:
    """What an expression such as ``setsup.load`` stands for; None where that is not said by imports."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and (inner := called(node.value, known)) is not None:
        return getattr(inner, node.attr) if inspect.ismodule(inner) or inspect.isclass(inner) else None
    return None


def misfits(source: str) -> list[str]:
    """Calls that what they call does not take, as far as that can be known without running them."""
    tree, known, found = ast.parse(source), {}, []
    for name, module, there, line in imported(tree):
        try:
            known[name] = held(module, there)
        except ImportError as error:
            found.append(f"{line}: {error}")
    # a name that is given anew somewhere, or to some function, is not known to be what was imported
    given = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    given |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    given |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    known = {name: value for name, value in known.items() if name not in given}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        try:
            function = called(node.func, known)
            if not callable(function):
                continue
            starred = any(isinstance(one, ast.Starred) for one in node.args) or any(
                k.arg is None for k in node.keywords
            )
            takes = inspect.signature(function)
            words = {one.arg: None for one in node.keywords if one.arg is not None}
            if starred:
                takes.bind_partial(**words)
            else:
                takes.bind(*node.args, **words)
        except ValueError:
            continue  # of a built-in that says nothing of its arguments
        except (AttributeError, TypeError) as error:
            found.append(f"{node.lineno}: {ast.unparse(node)}: {error}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_calls_what_is_there(path: Path) -> None:
    assert misfits(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("from setsup.experiments.configs import build_method\nbuild_method(preset.method, 0)", "'seed'"),
        ("from setsup.experiments.configs import stale_method", "stale_method"),
        ("import setsup\nsetsup.laod('mnist')", "laod"),
        ("import setsup\nsetsup.load('mnist', **more, rot=3)", None),
        ("from setsup.loading import Loader\nLoader(*both, to='numpy', world=2, workres=1)", "workres"),
        ("from setsup.loading import Loader\nLoader(data, sampler, to='numpy')", None),
        ("from setsup.nowhere import x", "setsup.nowhere"),
    ],
)
def test_a_call_that_does_not_fit_is_found(source: str, said: str | None) -> None:
    found = misfits(source)
    assert len(found) == (said is not None)
    assert said is None or said in found[0]
