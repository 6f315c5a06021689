"""Settings as flat names and values, to store, to compare, and to put back into a preset."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from setsup.errors import DataError, SetsupError, did_you_mean

__all__ = [
    "check",
    "describe",
    "difference",
    "drop_added",
    "fill_defaults",
    "fit",
    "flatten",
    "nest",
    "put",
    "training_settings",
    "unnest",
]

_IDLE = ("seeds", "checkpoint_every", "eval_transform", "validation", "datasets", "initial_run")
"""Settings of a preset that do not affect the weights of a run; nor do settings within them.

Of an initial run, the weights count and not where they lie: `run.json` has their digest.
"""

_CLASS = "class"
"""Under which nested settings have their class: a keyword of Python, so that no setting has this name."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")


def flatten(settings: Any) -> dict[str, Any]:
    """Settings as JSON values by dotted names; nested settings name their class."""
    flat: dict[str, Any] = {}
    for name in _names(settings):
        parts = _parts(name, getattr(settings, name))
        if parts is None:
            flat[name] = _plain(getattr(settings, name), name)
            continue
        for part, value in parts.items():
            flat[part] = type(value).__qualname__
            flat |= {f"{part}.{inner}": plain for inner, plain in flatten(value).items()}
    return flat


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flat values as mappings within mappings; a class is under the name ``class``."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        *heads, last = name.split(".")
        level = nested
        for head in heads:
            if not isinstance(level.get(head), dict):
                level[head] = {_CLASS: level[head]} if head in level else {}
            level = level[head]
        level[last] = value
    return nested


def unnest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings within mappings as flat values: the inverse of :func:`nest`."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if not isinstance(value, Mapping):
            flat[name] = value
            continue
        inner = unnest(value)
        if _CLASS in inner:
            flat[name] = inner.pop(_CLASS)
        flat |= {f"{name}.{key}": inner_value for key, inner_value in inner.items()}
    return flat


def describe(evaluation: Any) -> dict[str, Any]:
    """Class and settings of an evaluation; the class is under a name that no setting can have."""
    return {"measure": type(evaluation).__qualname__, **flatten(evaluation)}


def fill_defaults(settings: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Flat values that an earlier version wrote, with the defaults of settings that it did not have yet.

    A setting without a default stays absent. A class that was not written is taken to be that of the settings.
    """
    return dict(values) | {name: value for name, value in _defaults(settings).items() if name not in values}


def drop_added(settings: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Flat values without settings that a later version added, where these have their default.

    A field says so by ``metadata={"added": True}``. Its default is the earlier behaviour, so that what was computed
    before it was there has the same key.
    """
    added = _added(settings)
    return {name: value for name, value in values.items() if name not in added or added[name] != value}


def training_settings(values: Mapping[str, Any], substitute: bool) -> dict[str, Any]:
    """Those of a preset's flat settings that affect the weights of a run, on the substitute or the published data.

    Options that say where files lie do not, nor does the root.
    """
    idle = _IDLE if substitute else (*_IDLE, "data.substitute")
    kept = {name: value for name, value in values.items() if not {name, name.partition(".")[0]} & set(idle)}
    options = kept.get("data.options")
    if isinstance(options, list) and options:  # as run.json has them, which may be damaged
        places = _places(kept.get("data.name"))
        kept["data.options"] = [
            option for option in options if not (isinstance(option, list) and option and option[0] in places)
        ]
    return kept


def _places(name: Any) -> list[str]:
    """Options of a dataset that are paths; none of one that is not known here."""
    from setsup.datasets import names
    from setsup.opening import path_options

    try:
        return sorted(path_options(name)) if name in names() else []
    except DataError:  # what opens it cannot be imported here
        return []


def put(settings: Any, values: Mapping[str, Any]) -> Any:
    """The settings with some values changed, by the names of :func:`flatten`."""
    known, parts = flatten(settings), _all_parts(settings)
    inner: dict[str, dict[str, Any]] = {}
    changed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise SetsupError(f"unknown setting {name!r}{did_you_mean(name, known)}")
        part = next((part for part in parts if name.startswith(f"{part}.")), None)
        if part is not None:
            inner.setdefault(part, {})[name.removeprefix(f"{part}.")] = value
        elif name not in parts:
            changed[name] = _freeze(value)
        elif value != known[name]:
            raise SetsupError(f"setting {name} must be a {known[name]}, not {value!r}")
    check(settings, changed)
    for part, given in inner.items():
        head, dot, key = part.partition(".")
        if dot:
            changed[head] = {**changed.get(head, getattr(settings, head)), key: put(parts[part], given)}
        else:
            changed[head] = put(parts[part], given)
    return replace(settings, **changed)


def fit(settings: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as :func:`put` takes them, by flat names; SetsupError names the one that does not fit.

    YAML reads 1e-3 as a string, so a string that is a number is taken for one where a number is asked for.
    """
    known = flatten(settings)
    fitted: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise SetsupError(f"unknown setting {name!r}{did_you_mean(name, known)}")
        fitted[name] = value
        if (owned := _find_field(settings, name)) is not None:
            owner, last = owned
            try:
                check(owner, {last: _freeze(value)})
            except SetsupError as error:
                fitted[name] = _as_numbers(value)
                try:
                    check(owner, {last: _freeze(fitted[name])})
                except SetsupError:
                    raise SetsupError(str(error).replace(f"setting {last}", f"setting {name}", 1)) from None
        elif value != known[name]:
            raise SetsupError(f"setting {name} must be a {known[name]}, not {value!r}")
    return fitted


def check(settings: Any, values: Mapping[str, Any]) -> None:
    """Raise SetsupError unless values, by name, have the declared types of settings."""
    try:
        types = get_type_hints(type(settings))
    except NameError:  # a name that is imported for type checkers only
        return
    for name, value in values.items():
        if not _fits(value, types[name]):
            raise SetsupError(f"setting {name} must be {_word(types[name])}, not {value!r}")


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Differences between two sets of flat settings: name → (before, after), None where absent."""
    names = [*before, *(name for name in after if name not in before)]
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _names(settings: Any) -> list[str]:
    return [member.name for member in fields(settings) if member.metadata.get("setting", True)]


def _parts(name: str, value: Any) -> dict[str, Any] | None:
    """Settings within a setting, by dotted names: itself, or those of a mapping; None for a plain value."""
    if isinstance(value, Mapping) and all(map(_has_settings, value.values())):
        return {f"{name}.{key}": part for key, part in value.items()}
    return {name: value} if _has_settings(value) else None


def _all_parts(settings: Any) -> dict[str, Any]:
    """All settings directly within settings, by dotted names."""
    listed = (_parts(name, getattr(settings, name)) or {} for name in _names(settings))
    return {part: part_settings for parts in listed for part, part_settings in parts.items()}


def _find_field(settings: Any, name: str) -> tuple[Any, str] | None:
    """The settings that have a flat name, within others or in a mapping, and its field; None where it names a class."""
    parts = _all_parts(settings)
    if name in parts:
        return None
    for part, part_settings in parts.items():
        if name.startswith(f"{part}."):
            return _find_field(part_settings, name.removeprefix(f"{part}."))
    return settings, name


def _has_settings(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _defaults(settings: Any) -> dict[str, Any]:
    """Flat values of the defaults that the classes of some settings declare."""
    flat: dict[str, Any] = {}
    declared = {member.name: member for member in fields(settings)}
    for name in _names(settings):
        member, parts = declared[name], _parts(name, getattr(settings, name))
        for part, value in (parts or {}).items():
            flat[part] = type(value).__qualname__
            flat |= {f"{part}.{inner}": default for inner, default in _defaults(value).items()}
        if parts is None and (member.default_factory is not MISSING or member.default is not MISSING):
            usual = member.default if member.default_factory is MISSING else member.default_factory()
            if not _has_settings(usual):
                flat[name] = _plain(usual, name)
    return flat


def _added(settings: Any) -> dict[str, Any]:
    """Defaults of settings that a later version added, by flat names."""
    flat: dict[str, Any] = {}
    for member in fields(settings):
        for part, value in (_parts(member.name, getattr(settings, member.name)) or {}).items():
            flat |= {f"{part}.{inner}": default for inner, default in _added(value).items()}
        if member.metadata.get("added"):
            flat[member.name] = _plain(member.default, member.name)
    return flat


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part, name) for part in value]
    if isinstance(value, bool | int | float | str | None):
        return value
    raise SetsupError(
        f"setting {name} must be a number, a string, a tuple of these or a frozen dataclass, so that run.json can "
        f"store it, not a {type(value).__name__}"
    )


def _freeze(value: Any) -> Any:
    """Lists of JSON as tuples."""
    return tuple(_freeze(part) for part in value) if isinstance(value, list) else value


def _as_numbers(value: Any) -> Any:
    """Strings such as 1e-3 as numbers, within lists too."""
    if isinstance(value, list):
        return [_as_numbers(part) for part in value]
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, as far as settings have such types."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in inner)
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in inner)
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
