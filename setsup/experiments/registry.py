"""Find a preset by its name: those of the papers, those of other packages, and those in a file of the user's own.

Another package offers presets through the entry-point group ``setsup.experiments``: a module with ``PRESETS``, a
sequence of :class:`Preset`. A file is named in place of a preset, as ``my_method.py:mine/first`` or, where it holds one
preset only, ``my_method.py``.
"""

import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from setsup.errors import DataError, SetsupError, near
from setsup.experiments.preset import Preset

__all__ = ["find_preset", "presets"]

_GROUP = "setsup.experiments"
_OWN = ("setsup.experiments.abc",)


def presets() -> dict[str, Preset]:
    """All presets of installed packages by name, those of setsup first.

    Examples
    --------
    >>> "abc/fig3a" in presets()
    True

    """
    found = {preset.name: preset for module in _OWN for preset in import_module(module).PRESETS}
    for entry in entry_points(group=_GROUP):
        try:
            theirs = _checked(getattr(entry.load(), "PRESETS", None), entry.value)
        except (ImportError, AttributeError) as error:
            raise SetsupError(f"the experiments {entry.name!r} ({entry.value}) cannot be loaded: {error}") from error
        found |= {preset.name: preset for preset in theirs}
    return found


def find_preset(name: str) -> Preset:
    """The preset of a name.

    Parameters
    ----------
    name : str
        A key of :func:`presets`, or a Python file: it is run.

    Raises
    ------
    SetsupError, DataError
        When there is none.

    Examples
    --------
    >>> find_preset("abc/mnist").steps
    500

    """
    file, _, inside = name.partition(".py")
    if (inside == "" and name.endswith(".py")) or inside.startswith(":"):
        return _of_file(Path(f"{file}.py"), inside[1:])
    known = presets()
    if name not in known:
        raise SetsupError(f"there is no preset {name!r}{near(name, known)} (`setsup train --help` lists them)")
    return known[name]


def _of_file(path: Path, name: str) -> Preset:
    held = _presets_in(path.expanduser().resolve())
    if not name and len(held) == 1:
        return next(iter(held.values()))
    if name not in held:
        raise SetsupError(f"{path} holds {', '.join(held)}: name one as {path}:{next(iter(held))}")
    return held[name]


@cache
def _presets_in(path: Path) -> dict[str, Preset]:
    spec = spec_from_file_location(f"setsup_preset_{path.stem}", path)
    if not path.exists() or spec is None or spec.loader is None:
        raise DataError(f"there is no file {path}: name a preset, or a Python file that holds PRESETS")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    found = {}
    for preset in _checked(getattr(module, "PRESETS", None), str(path)):
        found[preset.name] = preset
    return found


def _checked(found: object, where: str) -> list[Preset]:
    listed = list(found) if isinstance(found, Iterable) else []
    if not listed or not all(isinstance(preset, Preset) for preset in listed):
        raise SetsupError(f"{where} holds no presets: give it PRESETS = [Preset(…), …]")
    return listed
