"""Counts the modules that read or pass on the options of ``setsup sample``, and those that do so with a preset.

One rule: a module counts where its code has a name of the thing as a parameter, a keyword of a call, an attribute, a
field of a class or a string alone. The options of ``sample`` are told by two names or more of those in ``OPTIONS``,
which nothing else is called so, in modules of the command; a preset by the name ``preset``, in the command and in
``setsup.experiments``.

    python tests/architecture/count_passers.py [COMMIT ...]

prints both for commits, and for the files as they are without one.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

OPTIONS = {
    *("inactive", "active", "unconstrained", "choose", "tolerance", "canonical", "among", "radius", "ways", "shots"),
    *("queries", "across", "small", "on_small_group", "differ", "must_differ", "num_fixed"),
}


def names(tree: ast.AST) -> Iterator[str]:
    """Names that code reads or passes on."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=str(name)) | ast.keyword(arg=str(name)) | ast.Attribute(attr=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Constant(value=str(name)):
                yield name


def sources(commit: str | None) -> Iterator[tuple[str, str]]:
    """Python modules and their text."""
    command = ["git", "ls-files"] if commit is None else ["git", "ls-tree", "-r", "--name-only", commit]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    for path in listed:
        if path.endswith(".py") and path.startswith(("cli/", "setsup/experiments/")):
            if commit is None:
                yield path, (ROOT / path).read_text(encoding="utf-8")
                continue
            shown = ["git", "show", f"{commit}:{path}"]
            yield path, subprocess.run(shown, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def count(commit: str | None) -> dict[str, list[str]]:
    """Modules that pass on each thing."""
    found: dict[str, list[str]] = {"sample's options": [], "a preset": []}
    for path, text in sources(commit):
        known = {*names(ast.parse(text))}
        if path.startswith("cli/") and len(known & OPTIONS) > 1:
            found["sample's options"].append(path)
        if "preset" in known:
            found["a preset"].append(path)
    return found


if __name__ == "__main__":
    for commit in sys.argv[1:] or [None]:
        for what, modules in count(commit).items():
            print(f"{commit or 'files'}: {what}: {len(modules)}")  # noqa: T201
            print("".join(f"  {module}\n" for module in modules), end="")  # noqa: T201
