"""The peers of the audit: the modules that have their samplers, each loaded alone, and the versions of their libraries.

What a package imports beside its samplers (models, losses, torchvision) asks for more than the audit needs. So the
packages around a module are entered without running them, and forgotten again.
"""

import importlib
import importlib.metadata
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["OLDER", "OLDER_VERSION", "alone", "older_sentence_transformers", "sentence_transformers", "version"]

OLDER, OLDER_VERSION = "sentence-transformers-5.2.3", "5.2.3"
"""Folder of an older release beside the packages of the environment, see peers.txt."""
_UTIL = {"is_datasets_available": lambda: False}  # the type of a dataset is named in annotations alone


def alone(
    name: str, stand_ins: Mapping[str, Mapping[str, Any]] | None = None, entered: Sequence[str] = ()
) -> ModuleType:
    """Import a module without running the packages around it, and with stand-ins for modules of which it uses little.

    ``entered`` names further packages that are not run, those of modules that it imports.

    Raises
    ------
    ImportError
        If it is not installed, or what it imports itself is not.

    """
    top, *below = name.split(".")
    if top in sys.modules:
        return importlib.import_module(name)
    spec = PathFinder.find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {top!r}", name=top)
    with _forgotten(top, *(stand_ins or {})):
        for package in [below[:depth] for depth in range(len(below))] + [other.split(".")[1:] for other in entered]:
            _enter(spec.submodule_search_locations, top, package)
        for module, names in (stand_ins or {}).items():
            sys.modules[module] = ModuleType(module)
            vars(sys.modules[module]).update(names)
        return importlib.import_module(name)


def _enter(folders: Any, top: str, below: list[str]) -> None:
    """Stand in for a package, so that the modules in it can be imported."""
    package = ModuleType(".".join([top, *below]))
    package.__path__ = ["/".join([folder, *below]) for folder in folders]
    sys.modules[package.__name__] = package


@contextmanager
def _forgotten(*tops: str) -> Iterator[None]:
    """Take what was imported below these names out of ``sys.modules`` again."""
    names = {top.partition(".")[0] for top in tops}
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in names}
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in names]:
            del sys.modules[name]
        sys.modules.update(before)


@cache
def sentence_transformers() -> ModuleType:
    """Samplers of the installed release."""
    return alone("sentence_transformers.base.sampler", {"sentence_transformers.util": _UTIL})


@cache
def older_sentence_transformers() -> ModuleType:
    """Samplers of an older release, in a folder of its own."""
    path = Path(sysconfig.get_path("data")) / OLDER / "sentence_transformers" / "sampler.py"
    if not path.is_file():
        raise ModuleNotFoundError(f"{OLDER} is not in the environment's folder")
    spec = importlib.util.spec_from_file_location("older_sampler", path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{path} is not a module")
    module = importlib.util.module_from_spec(spec)
    with _forgotten("sentence_transformers"):
        for name, names in (("sentence_transformers", {}), ("sentence_transformers.util", _UTIL)):
            sys.modules[name] = ModuleType(name)
            vars(sys.modules[name]).update(names)
        spec.loader.exec_module(module)
    return module


def version(distribution: str) -> str:
    """Name and version of a library."""
    return f"{distribution} {importlib.metadata.version(distribution)}"
