"""Settings as flat names and values: what is stored, compared, and put back into a preset."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from setsup.errors import SetsupError, near

__all__ = ["changes", "check", "flat", "learned", "put"]

_WORDS = ("name", "shows", "evaluations", "shrunk")
"""Fields of a preset that do not change what is trained."""

_IDLE = ("seeds", "checkpoint_every")
"""Settings of a preset of which nothing depends that one run learns."""


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
        if is_dataclass(value) and not isinstance(value, type):
            found |= {f"{member.name}.{name}": inner for name, inner in flat(value).items()}
        else:
            found[member.name] = _plain(value, member.name)
    return found


def learned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a preset's flat settings that what a run learns depends on.

    Examples
    --------
    >>> learned({"steps": 4, "seeds": 10, "checkpoint_every": 100})
    {'steps': 4}

    """
    return {name: value for name, value in values.items() if name not in _IDLE}


def put(settings: Any, values: Mapping[str, Any]) -> Any:
    """The settings with some values changed, by the names of :func:`flat`.

    Raises
    ------
    SetsupError
        When there is no such setting, or it is of another type.

    Examples
    --------
    >>> from setsup.experiments.preset import Data
    >>> put(Data("mnist"), {"split": "test"})
    Data(name='mnist', split='test', stand_in=None)

    """
    known = flat(settings)
    inner: dict[str, dict[str, Any]] = {}
    changed: dict[str, Any] = {}
    for name, value in values.items():
        head, dot, rest = name.partition(".")
        if name not in known:
            raise SetsupError(f"there is no setting {name!r}{near(name, known)}")
        if dot:
            inner.setdefault(head, {})[rest] = value
        else:
            changed[head] = _as_before(value)
    check(settings, changed)
    changed |= {head: put(getattr(settings, head), given) for head, given in inner.items()}
    return replace(settings, **changed)


def check(settings: Any, values: Mapping[str, Any]) -> None:
    """Raise SetsupError unless values are what the fields of some settings are declared as, by their names.

    Examples
    --------
    >>> from setsup.experiments.preset import Data
    >>> check(Data("mnist"), {"split": 3})
    Traceback (most recent call last):
    setsup.errors.SetsupError: the setting split takes str | None, not 3

    """
    try:
        types = get_type_hints(type(settings))
    except NameError:  # a name that is imported for type checkers only
        return
    for name, value in values.items():
        if not _fits(value, types[name]):
            raise SetsupError(f"the setting {name} takes {_word(types[name])}, not {value!r}")


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs between two sets of flat settings: name → (before, after), None where there is none.

    Examples
    --------
    >>> changes({"steps": 4, "seeds": 1}, {"steps": 8, "seeds": 1})
    {'steps': (4, 8)}

    """
    names = [*before, *(name for name in after if name not in before)]
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part, name) for part in value]
    if isinstance(value, bool | int | float | str | None):
        return value
    raise SetsupError(
        f"the setting {name} is a {type(value).__name__}, which run.json cannot keep: "
        "settings are numbers, texts, tuples of them, or frozen dataclasses"
    )


def _as_before(value: Any) -> Any:
    """Lists of JSON are tuples in settings, which are frozen."""
    return tuple(_as_before(part) for part in value) if isinstance(value, list) else value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, as far as settings have such types."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if hint is tuple or origin is tuple:
        if not isinstance(value, tuple):
            return False
        hints = inner[:1] * len(value) if inner[1:] == (...,) else inner
        return hint is tuple or (len(hints) == len(value) and all(map(_fits, value, hints)))
    if hint in (int, float):
        return isinstance(value, (int, float) if hint is float else int) and not isinstance(value, bool)
    return isinstance(value, hint) if hint in (bool, str, NoneType) else True


def _word(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")
