"""Counts the modules that read or pass on the options of ``setsup sample``, and those that do so with a preset.

One rule for both. A module counts where its code

- has a parameter or a field that is annotated with a class of the thing (``Options``, ``Source``, ...; ``Preset``); or
- has a parameter, a field or a variable that is called as the thing (``options``; ``preset``, ``presets``), with no
  annotation or ``Any``; or
- has two names or more of the fields of the options that nothing else is called.

Looked at are the dispatch of the command and the module of the subcommand, and what they import, directly or through
others, also within functions: modules of the command for the options, of the command and of ``setsup`` for a preset.
Papers are not imported by the command: their presets are values, and not counted.

    python tests/architecture/count_passers.py [COMMIT ...]

prints both for commits, and for the files as they are without one.
"""

import ast
import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_FOLDERS = ("cli/setsup_cli", "setsup")


class Thing(NamedTuple):
    """What is passed on: where its way begins, in which packages it is followed, and how it is told."""

    starts: tuple[str, ...]
    packages: tuple[str, ...]
    names: frozenset[str]
    classes: frozenset[str]
    fields: frozenset[str] = frozenset()


THINGS = {
    "sample's options": Thing(
        ("setsup_cli.dispatch", "setsup_cli.commands.sample"),
        ("setsup_cli",),
        frozenset({"options"}),
        frozenset({"Options", "OutputOptions", "Source", "Named", "Common", "Given"}),
        frozenset(
            "inactive active unconstrained choose tolerance canonical among radius ways shots queries across small "
            "on_small_group differ must_differ num_fixed".split()
        ),
    ),
    "a preset": Thing(
        ("setsup_cli.dispatch", "setsup_cli.commands.train"),
        ("setsup_cli", "setsup"),
        frozenset({"preset", "presets"}),
        frozenset({"Preset"}),
    ),
}


def read_modules(commit: str | None) -> dict[str, ast.Module]:
    """Modules of the command and of the toolkit by their names, parsed."""
    if commit is None:
        listed = subprocess.run(["git", "ls-files", *_FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True)
        texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in listed.stdout.split() if _is_python(path)}
    else:
        packed = subprocess.run(["git", "archive", commit, *_FOLDERS], cwd=ROOT, check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
            files = ((member.name, tar.extractfile(member)) for member in tar if _is_python(member.name))
            texts = {path: file.read().decode() for path, file in files if file is not None}
    return {_name(path): ast.parse(text) for path, text in texts.items()}


def _is_python(path: str) -> bool:
    return path.endswith(".py")


def _name(path: str) -> str:
    return path.removeprefix("cli/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def find_imported(tree: ast.Module, known: Mapping[str, ast.Module]) -> set[str]:
    """Modules that a module imports, also within functions and for annotations."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & known.keys()


def reach(thing: Thing, modules: Mapping[str, ast.Module]) -> set[str]:
    """Modules that are imported from the first ones on."""
    reached, waiting = {*thing.starts}, [*thing.starts]
    while waiting:
        fresh = find_imported(modules[waiting.pop()], modules) - reached
        fresh = {name for name in fresh if name.split(".")[0] in thing.packages}
        reached |= fresh
        waiting += fresh
    return reached


def has(thing: Thing, tree: ast.Module) -> bool:
    """Whether a module reads a thing, or passes it on."""
    fields: set[str] = set()
    annotated = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    for node in ast.walk(tree):
        match node:
            case (
                ast.arg(arg=name, annotation=annotation)
                | ast.AnnAssign(target=ast.Name(id=name), annotation=annotation)
            ):
                words = set() if annotation is None else set(re.findall(r"\w+", ast.unparse(annotation)))
                if words & thing.classes or (name in thing.names and words <= {"Any"}):
                    return True
            case ast.Name(id=name, ctx=ast.Store()) if name in thing.names and id(node) not in annotated:
                return True
        match node:
            case ast.arg(arg=str(name)) | ast.keyword(arg=str(name)) | ast.Attribute(attr=name):
                fields.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Constant(value=str(name)):
                fields.add(name)
    return len(fields & thing.fields) > 1


def count(commit: str | None) -> dict[str, list[str]]:
    """Modules that pass on each thing."""
    modules = read_modules(commit)
    return {
        what: sorted(name for name in reach(thing, modules) if has(thing, modules[name]))
        for what, thing in THINGS.items()
    }


if __name__ == "__main__":
    commits: list[str | None] = [*sys.argv[1:]] or [None]
    for commit in commits:
        for what, names in count(commit).items():
            print(f"{commit or 'files'}: {what}: {len(names)}")  # noqa: T201
            print("".join(f"  {name}\n" for name in names), end="")  # noqa: T201
