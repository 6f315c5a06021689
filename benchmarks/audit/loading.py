"""The peers of the audit: the modules that have their samplers, each loaded alone, and the versions of their libraries.

What a package imports beside its samplers (models, losses, torchvision) asks for more than the audit needs. So the
packages around a module are entered without running them, and forgotten again.
"""

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.peers import peer

__all__ = ["OLDER", "SAMPLERS", "alone", "installed", "version"]

SAMPLERS, OLDER = (Path(sys.prefix) / name for name in ("samplers", "older-samplers"))
"""Folders of the environment that have peers of which single modules are loaded, see peers.txt."""


def alone(
    name: str,
    stand_ins: Mapping[str, Mapping[str, Any]] | None = None,
    entered: Sequence[str] = (),
    folder: Path | None = None,
) -> ModuleType:
    """Import a module without running the packages around it, or modules of which it uses little.

    Parameters
    ----------
    name : str
        The module.
    stand_ins : mapping, optional
        Modules that are not run, and the names that they have in their place.
    entered : list of str
        Further packages that are not run, around modules that this one imports.
    folder : Path, optional
        Where its package is, if not in the environment.

    Raises
    ------
    ImportError
        If it is not there, or something that it imports is not installed.

    """
    top, *below = name.split(".")
    spec = PathFinder.find_spec(top, None if folder is None else [str(folder)])
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {top!r}", name=top)
    with _forgotten(top, *(stand_ins or {})):
        for package in [below[:depth] for depth in range(len(below))] + [other.split(".")[1:] for other in entered]:
            _enter(spec.submodule_search_locations, top, package)
        for module, names in (stand_ins or {}).items():
            sys.modules[module] = ModuleType(module)
            vars(sys.modules[module]).update(names)
        return importlib.import_module(name)


def installed(name: str) -> Any:
    """The measured module of a peer that imports as a whole."""
    module = peer(name)
    if module is None:
        raise ModuleNotFoundError(f"{name} is not installed")
    return module


def _enter(folders: Any, top: str, below: list[str]) -> None:
    """Stand in for a package, so that the modules in it can be imported."""
    package = ModuleType(".".join([top, *below]))
    package.__path__ = ["/".join([folder, *below]) for folder in folders]
    sys.modules[package.__name__] = package


@contextmanager
def _forgotten(*modules: str) -> Iterator[None]:
    """Hide packages that are imported already, and forget what is imported in their place."""
    tops = {module.partition(".")[0] for module in modules}

    def found() -> dict[str, ModuleType]:
        return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in tops}

    before = found()
    for name in before:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in found():
            del sys.modules[name]
        sys.modules.update(before)


def version(distribution: str, folder: Path | None = None) -> str:
    """Name and version of a library, of the environment or of a folder."""
    where = {} if folder is None else {"path": [str(folder)]}
    found = next(iter(importlib.metadata.distributions(name=distribution, **where)))
    return f"{distribution} {found.version}"
