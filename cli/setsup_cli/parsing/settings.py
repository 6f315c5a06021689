"""Settings of presets, evaluations and recipes as options: names, types, defaults and help are their dataclasses'."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, field, fields, is_dataclass, make_dataclass
from functools import partial
from inspect import getdoc
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter

from setsup.errors import SetsupError
from setsup_cli.parsing.arguments import option
from setsup_cli.parsing.values import alternatives, convert_words, metavar, write_value

__all__ = [
    "NOT_GIVEN",
    "changed",
    "described",
    "explain_marks",
    "helps",
    "name_options",
    "nested",
    "setting_fields",
    "short_fields",
    "short_names",
    "typed_settings",
]

_SETTINGS = Group("Settings", sort_key=1.5)
_WORDS = (int, float, str, NoneType)
"""Types that one word gives."""
_DESCRIBED = re.compile(r"^(?:Attributes|Parameters)\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : .*\n((?: {4}.*\n?|\n)*)", re.MULTILINE)
_ARGUMENT = re.compile(r"`(\w+)`")
_MARKUP = re.compile(r":[a-z]+:`(?:~[\w.]*\.(?=\w+`))?([^`]+)`|`{2}([^`]+)`{2}| \[\d\]_")

_MARKS = {
    "[unclear]": "the paper does not state this clearly",
    "[our choice]": "neither the paper nor its published code states this",
}
"""Marks in docstrings of papers' settings, and what they mean."""

NOT_GIVEN: Any = object()
"""Value of a short name that is not given: None may be a value."""

Setting = tuple[str, Any, "Field[Any]"]
"""A field as :func:`dataclasses.make_dataclass` takes it."""


def setting_fields(
    settings: Any,
    leave_out: Collection[str] = (),
    group: Group = _SETTINGS,
    aliases: Mapping[str, str] = {},
    head: str = "",
) -> list[Setting]:
    """Fields of a class of options, one for each setting; the names of the options begin with `head`."""
    declared = []
    hints, described = _hints(type(settings)), helps(type(settings))
    options = _options_of(settings, head)
    for member in fields(settings):
        name, value = member.name, as_settings(getattr(settings, member.name))
        if name in leave_out:
            continue
        if is_dataclass(value):
            declared += nested(name, value, head)
        elif (kind := _readable(hints.get(name, type(value)))) is not None:
            about = option(
                metavar(kind),
                name_options(described.get(name, ""), options),
                write_value(value) or "empty",
                group=group,
                converter=partial(_convert, kind),
                alias=aliases.get(name),
            )
            declared.append((name, Annotated[kind, about], field(default=value)))
    return declared


def _options_of(settings: Any, head: str) -> dict[str, str]:
    """Options by the settings that they set; none for settings that words cannot give."""
    hints = _hints(type(settings))
    return {
        name: f"--{head}{name}".replace("_", "-")
        for name in (member.name for member in fields(settings))
        if _readable(hints.get(name, type(getattr(settings, name)))) is not None
    }


def name_options(text: str, options: Mapping[str, str]) -> str:
    """Write the option in place of an argument in backticks, such as ``--clip-norm`` for clip_norm."""
    return _ARGUMENT.sub(lambda argument: options.get(argument[1], argument[0]), text)


def explain_marks(declared: Iterable[Setting]) -> str:
    """What the marks mean that texts of settings have, such as ``[unclear]``; empty where they have none."""
    texts = " ".join(_texts(declared))
    return " ".join(f"{mark}: {meaning}." for mark, meaning in _MARKS.items() if mark in texts)


def _texts(declared: Iterable[Setting]) -> Iterator[str]:
    for _, annotated, _ in declared:
        kind, about = get_args(annotated)
        if is_dataclass(kind):
            yield from _texts((member.name, member.type, member) for member in fields(kind))
        else:
            yield about.help or ""


def _convert(kind: Any, given: Any, words: Sequence[Any]) -> Any:
    """Convert words to the type of a setting; cyclopts gives the type without None."""
    return convert_words(kind, words)


def nested(name: str, settings: Any, head: str = "") -> list[Setting]:
    """The field of settings whose options begin with a name and a dot; none where there is nothing to set."""
    head = f"{head}{name}."
    about = name_options(_about(type(settings)), _options_of(settings, head))
    title = f"{name.capitalize().replace('_', '-')} settings"
    inner = setting_fields(settings, group=Group(title, about, sort_key=1.5), head=head)
    if not inner:
        return []
    # cyclopts takes the classes of the module `types`, the default, for builtin ones
    namespace = {"__module__": __name__}
    kind = make_dataclass(type(settings).__name__, inner, frozen=True, kw_only=True, namespace=namespace)
    return [(name, Annotated[kind, Parameter()], field(default_factory=kind))]


def short_names(settings: Any, leave_out: Collection[str] = ()) -> dict[str, list[str]]:
    """Dotted names of the settings that each short name sets: fields with ``metadata={"option": "orbit"}``."""
    names: dict[str, list[str]] = {}
    for name, _, member in _members(settings, leave_out):
        if (short := member.metadata.get("option")) is not None:
            names.setdefault(short, []).append(name)
    return names


def short_fields(settings: Any, leave_out: Collection[str], taken: Collection[str]) -> list[Setting]:
    """Fields of a class of options, one for each short name; SetsupError for one that cannot be an option.

    `taken` has the names of other options.
    """
    owners = {name: (owner, member) for name, owner, member in _members(settings, leave_out)}
    declared: list[Setting] = []
    for short, names in short_names(settings, leave_out).items():
        kinds = [_readable(_hints(type(owner)).get(member.name)) for owner, member in map(owners.__getitem__, names)]
        listed = " and ".join(names)
        if not (isinstance(short, str) and short.isidentifier()) or short in taken:
            why = "is another option" if short in taken else "must consist of letters, digits and _"
            raise SetsupError(f"{listed} cannot have the short name {short!r}, which {why}; choose another short name")
        if kinds[0] is None or any(kind != kinds[0] for kind in kinds):
            why = "its type cannot be written as an option" if kinds[0] is None else "their types differ"
            raise SetsupError(
                f"{listed} cannot have the short name {short!r}: {why}; declare the same simple type for each of "
                "them, such as int or str"
            )
        owner, member = owners[names[0]]
        values = [write_value(getattr(part, field.name)) for part, field in map(owners.__getitem__, names)]
        default = (values[0] or "empty") if len(set(values)) == 1 else "the value of each setting"
        head = names[0].removesuffix(member.name)
        text = name_options(helps(type(owner)).get(member.name, ""), _options_of(owner, head)).rstrip(".")
        sets = f"sets {' and '.join(f'--{name}' for name in names)}".replace("_", "-")
        about = option(
            metavar(kinds[0]),
            f"{text}; {sets}." if text else f"{sets[0].upper()}{sets[1:]}.",
            default,
            group=_SETTINGS,
            converter=partial(_convert, kinds[0]),
        )
        declared.append((short, Annotated[kinds[0], about], field(default=NOT_GIVEN)))
    return declared


def _members(settings: Any, leave_out: Collection[str] = (), head: str = "") -> Iterator[tuple[str, Any, "Field[Any]"]]:
    """Dotted names of plain settings, those within others too, with the settings and the field that each is in."""
    for member in fields(settings):
        name, value = f"{head}{member.name}", as_settings(getattr(settings, member.name))
        if member.name in leave_out:
            continue
        if is_dataclass(value):
            yield from _members(value, head=f"{name}.")
        else:
            yield name, settings, member


def changed(options: Any, settings: Any, leave_out: Collection[str] = ()) -> dict[str, Any]:
    """What options ask for otherwise than settings have it, by dotted names."""
    values: dict[str, Any] = {}
    for member in fields(settings):
        name, before = member.name, as_settings(getattr(settings, member.name))
        if name in leave_out or not hasattr(options, name):
            continue
        value = getattr(options, name)
        if is_dataclass(before):
            values |= {f"{name}.{inner}": asked for inner, asked in changed(value, before).items()}
        elif value != before:
            values[name] = value
    return values


def as_settings(value: Any) -> Any:
    """Settings by name as settings with these names; any other value as it is."""
    if not isinstance(value, Mapping) or not value or not all(map(is_dataclass, value.values())):
        return value
    kinds = [(name, type(part)) for name, part in value.items()]
    return make_dataclass("Parts", kinds, frozen=True, namespace={"__module__": __name__})(**value)


def typed_settings(words: Sequence[str]) -> frozenset[str]:
    """Dotted names that were given as options, such as ``information.steps``."""
    names = (word.partition("=")[0] for word in words if word.startswith("--"))
    return frozenset(name.removeprefix("--").replace("-", "_") for name in names if "." in name)


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # a name that is imported for type checkers only
        return {member.name: member.type for member in fields(kind) if not isinstance(member.type, str)}


def _readable(kind: Any) -> Any:
    """The type as words give it: booleans by their names, None first; None for what no word can give."""
    if kind is bool:
        return Literal[True, False]
    if kind in _WORDS or get_origin(kind) is Literal:
        return kind
    if get_origin(kind) is tuple:
        inner = [part if part is Ellipsis else _readable(part) for part in get_args(kind)]
        if not inner or any(part is None or get_origin(part) is tuple for part in inner):
            return None
        return tuple[tuple(inner)]  # type: ignore[misc]
    parts = alternatives(kind)
    # of a string or settings, as of an augmentation, words give the string
    words = [word for word in map(_readable, parts) if word is not None] if len(parts) > 1 else []
    if not {*words} - {NoneType}:
        return None
    return Union[tuple(sorted(words, key=lambda part: part is not NoneType))]  # noqa: UP007


def _about(kind: type) -> str:
    """First paragraph of a docstring that somebody wrote."""
    text = getdoc(kind) or ""
    return "" if text.startswith(f"{kind.__name__}(") else _plain(text.partition("\n\n")[0])


def helps(kind: type) -> dict[str, str]:
    """Descriptions of attributes or parameters in numpydoc, by name."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        texts |= described((base.__doc__ and getdoc(base)) or "")
    return texts


def described(docstring: str) -> dict[str, str]:
    """Descriptions in one docstring, by name."""
    texts: dict[str, str] = {}
    section = _DESCRIBED.search(docstring)
    for names, text in _entries(section.group(1) if section else ""):
        texts |= dict.fromkeys(names.split(", "), _plain(text))
    return texts


def _entries(section: str) -> Iterator[tuple[str, str]]:
    for entry in _ENTRY.finditer(section):
        yield entry.group(1), entry.group(2)


def _plain(text: str) -> str:
    """One line without the markup of documentation."""
    return " ".join(_MARKUP.sub(lambda mark: mark.group(1) or mark.group(2) or "", text).split())
