"""Settings as flat names and values: what is stored, compared, and put back into a preset."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from setsup.errors import SetsupError, near

__all__ = ["changes", "flat", "put"]

_WORDS = ("name", "shows", "evaluations", "shrunk")
"""Fields of a preset that do not change what is trained."""


def flat(settings: Any) -> dict[str, Any]:
    """What a preset trains, as values that JSON keeps, by dotted names.

    Examples
    --------
    >>> from setsup.experiments.preset import Data
    >>> flat(Data("mnist", "train"))
    {'name': 'mnist', 'split': 'train', 'stand_in': None}

    """
    from setsup.experiments.preset import Preset

    found: dict[str, Any] = {}
    for member in fields(settings):
        if isinstance(settings, Preset) and member.name in _WORDS:
            continue
        value = getattr(settings, member.name)
        if is_dataclass(value):
            found |= {f"{member.name}.{name}": inner for name, inner in flat(value).items()}
        else:
            found[member.name] = _plain(value)
    return found


def put(settings: Any, values: Mapping[str, Any]) -> Any:
    """The settings with some values changed, by the names of :func:`flat`.

    Raises
    ------
    SetsupError
        When there is no such setting.

    Examples
    --------
    >>> from setsup.experiments.preset import Data
    >>> put(Data("mnist"), {"split": "test"})
    Data(name='mnist', split='test', stand_in=None)

    """
    known = {member.name for member in fields(settings)}
    inner: dict[str, dict[str, Any]] = {}
    changed: dict[str, Any] = {}
    for name, value in values.items():
        head, dot, rest = name.partition(".")
        if head not in known:
            raise SetsupError(f"there is no setting {name!r}{near(name, flat(settings))}")
        if dot:
            inner.setdefault(head, {})[rest] = value
        else:
            changed[head] = _as_before(value)
    changed |= {head: put(getattr(settings, head), given) for head, given in inner.items()}
    return replace(settings, **changed)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs between two sets of flat settings: name → (before, after), None where there is none.

    Examples
    --------
    >>> changes({"steps": 4, "seeds": 1}, {"steps": 8, "seeds": 1})
    {'steps': (4, 8)}

    """
    names = [*before, *(name for name in after if name not in before)]
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _as_before(value: Any) -> Any:
    """Lists of JSON are tuples in settings, which are frozen."""
    return tuple(_as_before(part) for part in value) if isinstance(value, list) else value
