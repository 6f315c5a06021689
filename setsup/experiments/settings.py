"""Settings as flat names and values: what is stored, compared, and put back into a preset."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from setsup.errors import DataError, SetsupError, near

__all__ = ["about", "changes", "check", "filled", "flat", "learned", "put"]

_WORDS = ("name", "shows", "evaluations", "shrunk", "digest")
"""Fields of a preset that do not change what is trained."""

_IDLE = ("seeds", "checkpoint_every", "eval_transform")
"""Settings of a preset of which nothing depends that one run learns; so are settings within them."""


def flat(settings: Any) -> dict[str, Any]:
    """What a preset trains, as JSON values by dotted names; nested settings name their class."""
    found: dict[str, Any] = {}
    for name in _names(settings):
        value = getattr(settings, name)
        if _has_settings(value):
            found[name] = type(value).__qualname__
            found |= {f"{name}.{inner}": one for inner, one in flat(value).items()}
        else:
            found[name] = _plain(value, name)
    return found


def about(evaluation: Any) -> dict[str, Any]:
    """What an evaluation measures with: its class, under a name that no setting of it can have, and its settings."""
    return {"measure": type(evaluation).__qualname__, **flat(evaluation)}


def filled(settings: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Flat values, as an earlier version kept them, and the defaults of those settings that it did not have yet.

    Without a default there is nothing to fill in. A class that was not kept is taken to be that of the settings.
    """
    return dict(values) | {name: value for name, value in _defaults(settings).items() if name not in values}


def learned(values: Mapping[str, Any], stand_in: bool) -> dict[str, Any]:
    """Those of a preset's flat settings that what a run learns depends on, on the stand-in or on the published data.

    Options of the data set that say where files lie are none of them, as the root is none.
    """
    idle = _IDLE if stand_in else (*_IDLE, "data.stand_in")
    found = {name: value for name, value in values.items() if not {name, name.partition(".")[0]} & set(idle)}
    options = found.get("data.options")
    if isinstance(options, list) and options:  # as run.json has them, which may be damaged
        places = _places(found.get("data.name"))
        found["data.options"] = [one for one in options if not (isinstance(one, list) and one and one[0] in places)]
    return found


def _places(name: Any) -> list[str]:
    """Options of a dataset that are paths; none of one that is not known here."""
    from setsup.datasets import names
    from setsup.opening import path_options

    try:
        return sorted(path_options(name)) if name in names() else []
    except DataError:  # what opens it cannot be imported here
        return []


def put(settings: Any, values: Mapping[str, Any]) -> Any:
    """The settings with some values changed, by the names of :func:`flat`."""
    known = flat(settings)
    inner: dict[str, dict[str, Any]] = {}
    changed: dict[str, Any] = {}
    for name, value in values.items():
        head, dot, rest = name.partition(".")
        if name not in known:
            raise SetsupError(f"there is no setting {name!r}{near(name, known)}")
        if dot:
            inner.setdefault(head, {})[rest] = value
        elif _has_settings(getattr(settings, name)):
            if value != known[name]:
                raise SetsupError(f"the setting {name} is a {known[name]} here, not {value!r}")
        else:
            changed[head] = _as_before(value)
    check(settings, changed)
    changed |= {head: put(getattr(settings, head), given) for head, given in inner.items()}
    return replace(settings, **changed)


def check(settings: Any, values: Mapping[str, Any]) -> None:
    """Raise SetsupError unless values are what the fields of some settings are declared as, by their names."""
    try:
        types = get_type_hints(type(settings))
    except NameError:  # a name that is imported for type checkers only
        return
    for name, value in values.items():
        if not _fits(value, types[name]):
            raise SetsupError(f"the setting {name} takes {_word(types[name])}, not {value!r}")


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs between two sets of flat settings: name → (before, after), None where there is none."""
    names = [*before, *(name for name in after if name not in before)]
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _names(settings: Any) -> list[str]:
    from setsup.experiments.preset import Preset

    words = _WORDS if isinstance(settings, Preset) else ()
    return [member.name for member in fields(settings) if member.name not in words]


def _has_settings(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _defaults(settings: Any) -> dict[str, Any]:
    """Flat values of the defaults that the classes of some settings declare."""
    found: dict[str, Any] = {}
    declared = {member.name: member for member in fields(settings)}
    for name in _names(settings):
        value, member = getattr(settings, name), declared[name]
        if _has_settings(value):
            found[name] = type(value).__qualname__
            found |= {f"{name}.{inner}": one for inner, one in _defaults(value).items()}
        elif member.default_factory is not MISSING or member.default is not MISSING:
            usual = member.default if member.default_factory is MISSING else member.default_factory()
            if not _has_settings(usual):
                found[name] = _plain(usual, name)
    return found


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
    if getattr(hint, "_is_protocol", False):
        return _has_settings(value)
    return isinstance(value, hint) if hint in (bool, str, NoneType) else True


def _word(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")
