"""Find a preset by its name: presets of the papers, of other packages, and in a file of the user's own.

Another package offers presets through the entry-point group ``setsup.experiments``: a module with ``PRESETS``, a
sequence of :class:`Preset`. A file may be named instead, as ``my_method.py:mine/first`` or, if it has one preset only,
``my_method.py``. While it runs, it may import modules in its folder, as a script may.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.experiments.preset import Preset
from setsup.files.expand_user import expanded
from setsup.packages import offered_modules

__all__ = [
    "experiment_modules",
    "find_named",
    "find_preset",
    "import_file",
    "need_own_name",
    "presets",
    "split_file_name",
]

_GROUP = "setsup.experiments"


def presets() -> dict[str, Preset]:
    """Return the presets of all installed packages by name, setsup's first.

    Examples
    --------
    >>> "abc/fig3a" in presets()
    True

    """
    by_name: dict[str, Preset] = {}
    for preset in _offered():
        by_name.setdefault(preset.name, preset)
    return by_name


def find_preset(name: str) -> Preset:
    """Find a preset by name, or in a Python file.

    Parameters
    ----------
    name : str
        A key of :func:`presets`, or a Python file, which is run.

    Raises
    ------
    SetsupError, DataError
        When there is none.

    Examples
    --------
    >>> find_preset("abc/mnist").steps
    500

    """
    check_arguments(find_preset, locals(), DataError)
    if (file := split_file_name(name)) is not None:
        return _find_in_file(*file)
    if (preset := find_named(name)) is None:
        group = [known for known in presets() if known.startswith(f"{name.rstrip('/')}/")]
        raise SetsupError(
            f"unknown preset {name!r}{did_you_mean(name, group or presets())} (`setsup train --help` lists them)"
        )
    return preset


def find_named(name: str) -> Preset | None:
    """The preset of a name among :func:`presets`, if any; a broken package does not hide setsup's own."""
    return next((preset for preset in _offered() if preset.name == name), None)


def need_own_name(preset: Preset) -> None:
    """Raise SetsupError for a preset of a user's own file whose name an installed one has: runs are told by names."""
    if preset.file is None:
        return
    taken = None
    with suppress(SetsupError):  # a broken package
        taken = find_named(preset.name)
    if taken is not None:
        raise SetsupError(
            f"{preset.file} defines the preset {preset.name!r}, but an installed preset has the same name, and "
            f"names identify runs; rename yours, for example 'mine/{preset.name.rpartition('/')[2]}'"
        )


def experiment_modules() -> Iterator[tuple[ModuleType, str]]:
    """Modules with presets and reports, with their names: setsup's own, then those of other packages."""
    yield from offered_modules(_GROUP, "the experiments")


def _offered() -> Iterator[Preset]:
    """Presets of all packages; others are imported only after setsup's own."""
    for module, where in experiment_modules():
        yield from _check_presets(getattr(module, "PRESETS", None), where)


def split_file_name(name: str) -> tuple[Path, str] | None:
    """Split ``my_method.py:mine/first`` into the file and the name in it (may be empty); None for other names."""
    match = re.fullmatch(r"(.+\.py)(?::(.*))?", name)
    return None if match is None else (Path(match[1]), match[2] or "")


def _find_in_file(path: Path, name: str) -> Preset:
    file = expanded(path).resolve()
    module, digest = _run(file)
    presets = {preset.name: preset for preset in _check_presets(getattr(module, "PRESETS", None), str(path))}
    if not name and len(presets) == 1:
        name = next(iter(presets))
    if name not in presets:
        raise SetsupError(
            f"{path} defines several presets ({', '.join(presets)}); choose one, for example "
            f"{path}:{next(iter(presets))}"
        )
    return replace(presets[name], digest=digest, file=str(file))


def import_file(path: Path) -> ModuleType:
    """Import a Python file by its path; a file runs once."""
    if not expanded(path).exists():
        raise DataError(f"{path} does not exist; check the path")
    return _run(expanded(path).resolve())[0]


@cache
def _run(path: Path) -> tuple[ModuleType, str]:
    """The module, and the SHA-256 of its file."""
    name = f"setsup_preset_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"  # two files may have one stem
    spec = spec_from_file_location(name, path)
    if not path.exists() or spec is None or spec.loader is None:
        raise DataError(f"{path} does not exist; pass the name of a preset, or a Python file with PRESETS")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        digest = sha256(path.read_bytes()).hexdigest()
        with _importable(path):
            spec.loader.exec_module(module)
    except SetsupError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"{path}, line {lines[-1]}" if lines else path
        raise SetsupError(f"{where} failed with {type(error).__name__}: {error}") from error
    return module, digest


@contextmanager
def _importable(path: Path) -> Iterator[None]:
    """Make modules in the folder of a file importable."""
    folder = str(path.parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _check_presets(offered: object, where: str) -> list[Preset]:
    listed = list(offered) if isinstance(offered, Iterable) else []
    if not listed or not all(isinstance(preset, Preset) for preset in listed):
        raise SetsupError(f"{where} defines no presets; add PRESETS = [Preset(…), …]")
    names: set[str] = set()
    for preset in listed:
        if preset.name in names:
            raise SetsupError(f"{where} defines two presets named {preset.name!r}; rename one")
        names.add(preset.name)
    return listed
