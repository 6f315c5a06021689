"""What is wrong with the words of a verb, in one plain sentence; tyro, which reads them next, would speak of types."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tyro.conf import Positional

from setsup.errors import SetsupError, near

__all__ = ["alternatives", "check_words", "words_given"]

_ALONE = {
    "dataset": ("a data set", "mnist", "`setsup datasets` lists them"),
    "run": ("a run", "runs/abc/fig3a/seed-0", "`setsup train` makes them"),
    "runs": ("a run", "runs/abc/fig3a/seed-0", "`setsup train` makes them"),
    "preset": ("a preset", "abc/fig3a", "`setsup train` lists them"),
}
"""Fields whose values stand without an option: what they are, an example, and where to find one."""

_POSITIONAL = get_args(Annotated[Positional[str], None])[1]


@dataclass(frozen=True, slots=True)
class _Option:
    """What stands behind an option, or alone.

    Attributes
    ----------
    kinds : tuple
        Types of a word, of which one must do; literals are themselves.
    many : int, optional
        Words it takes: 0 for a switch, None for any number.
    metavar : str
        What stands for the value in the help.

    """

    kinds: tuple[Any, ...]
    many: int | None
    metavar: str

    @classmethod
    def of(cls, field: "Field[Any]") -> "_Option":
        """Read a type such as ``Annotated[Union[None, int], option(...)]``."""
        inner, *notes = get_args(field.type)
        metavar = next((note.metavar for note in notes if getattr(note, "metavar", None)), "")
        kinds = alternatives(inner)
        many: int | None = 0 if inner is bool else 1
        # a missing value cannot be asked for, unless the help says so
        kinds = tuple(kind for kind in kinds if kind is not NoneType or "None" in metavar.split("|"))
        listed = next((kind for kind in kinds if get_origin(kind) is tuple), None)
        if listed is not None:
            parts = get_args(listed)
            many = None if parts[-1] is Ellipsis else len(parts)
            kinds = (*(kind for kind in kinds if kind is not listed), *alternatives(parts[0]))
        return cls(kinds, many, metavar)


def check_words(verb: str, options: type, words: Sequence[str]) -> None:
    """Refuse words that are no options of a verb, and values that do not suit theirs."""
    if {"-h", "--help", "--"} & set(words):
        return
    alone, known = _alone(options), _known(options)
    seen: dict[str, list[str]] = {}
    for name, values in _parted(words, known):
        if not name:
            seen[""] = [*seen.get("", []), *values]
            _check_alone(verb, seen[""], alone)
        elif name not in known:
            help_of = " ".join(["setsup", verb, *_decides(options, words, known), "--help"])
            raise SetsupError(f"unknown option {name!r}{near(name, known)} (`{help_of}` explains them)")
        elif name in seen:
            once = " ".join([name, *seen[name], *values] if known[name].many is None else [name, *values])
            raise SetsupError(f"{name} is given twice; give it once, as in `{once}`")
        else:
            _check_values(name, known[name], values)
            seen[name] = values
    needed = [field.name for field in alone if field.default is MISSING and field.default_factory is MISSING]
    if len(seen.get("", [])) < len(needed):
        what, example, where = _about(needed[len(seen.get("", []))])
        raise SetsupError(f"name {what}, as in `setsup {verb} {example}` ({where})")


def words_given(options: type, words: Sequence[str]) -> dict[str, list[str]]:
    """Words behind each option, and under an empty name those that stand alone; nothing is checked."""
    given: dict[str, list[str]] = {"": []}
    for name, values in _parted(words, _known(options), guess=True):
        given.setdefault(name, []).extend(values)
    return given


def _about(name: str) -> tuple[str, str, str]:
    return _ALONE.get(name, (f"a {name}", name.upper(), "see its --help"))


def _decides(options: type, words: Sequence[str], known: Mapping[str, _Option]) -> list[str]:
    """Give the word on which it depends what is known: settings are those of what is named first."""
    return words_given(options, words)[""][:1] if any("." in name for name in known) else []


def _alone(options: type) -> "list[Field[Any]]":
    """Fields whose values stand without an option, in order."""
    return [field for field in fields(options) if _POSITIONAL in get_args(field.type)]


def _known(options: type, before: str = "--") -> dict[str, _Option]:
    """Options by name, as they stand in the help."""
    known: dict[str, _Option] = {}
    for field in fields(options):
        inner, name = get_args(field.type)[0], before + field.name.replace("_", "-")
        if is_dataclass(inner):
            known |= _known(inner, f"{name}.")  # type: ignore[arg-type]
        elif _POSITIONAL not in get_args(field.type):
            known[name] = _Option.of(field)
    return known


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Types of which a union is made; any other type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _parted(words: Sequence[str], known: Mapping[str, _Option], guess: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Options with the words behind them; a word that stands alone comes with an empty name."""
    rest = list(words)
    unknown: int | None = 1 if guess else 0
    while rest:
        word = rest.pop(0)
        if not _is_option(word):
            unknown = None if guess else 0
            yield "", [word]
            continue
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        many = known[name].many if name in known else unknown
        values = [value] if equals else []
        while rest and not _is_option(rest[0]) and (many is None or len(values) < many):
            values.append(rest.pop(0))
        yield name, values


def _is_option(word: str) -> bool:
    """Whether a word is meant as an option: numbers such as -1 are not."""
    return word.startswith("--") or (word.startswith("-") and word[1:2].isalpha())


def _check_alone(verb: str, words: Sequence[str], alone: "Sequence[Field[Any]]") -> None:
    if not alone:
        raise SetsupError(f"`setsup {verb}` takes no {words[0]!r}: it takes options alone (`setsup {verb} --help`)")
    most = [_Option.of(field).many for field in alone]
    if None not in most and len(words) > len(alone):
        taken = " and ".join(
            f"{word!r} was taken for the {_about(field.name)[0].removeprefix('a ')}"
            for word, field in zip(words, alone, strict=False)
        )
        raise SetsupError(
            f"{words[-1]!r} is one word too many: {taken}, and all other words stand behind an option "
            f"(`setsup {verb} --help`)"
        )


def _check_values(name: str, option: _Option, values: Sequence[str]) -> None:
    if option.many == 0:
        if values:
            raise SetsupError(f"{name} takes no value, so leave out {'='.join(['', *values])!r}")
        return
    if not values and not option.metavar.startswith("["):
        raise SetsupError(f"nothing stands behind {name}: give it as `{name} {option.metavar}`")
    if option.many is not None and len(values) < option.many and values != ["None"]:
        raise SetsupError(f"{name} takes {option.many} values, not {len(values)}: give it as `{name} {option.metavar}`")
    for value in values:
        _check_value(name, option, value)


def _check_value(name: str, option: _Option, value: str) -> None:
    choices = [str(choice) for kind in option.kinds for choice in get_args(kind) if get_origin(kind) is Literal]
    if value in choices or any(_suits(kind, value) for kind in option.kinds):
        return
    words = [words for kind, words in _WORDS.items() if kind in option.kinds]
    words += [f"one of {', '.join(choices)}"] if choices else []
    words += ["None"] if NoneType in option.kinds else []
    raise SetsupError(f"{name} must be {' or '.join(words)}, not {value!r}")


_WORDS = {int: "a whole number", float: "a number"}


def _suits(kind: Any, value: str) -> bool:
    if kind is NoneType:
        return value == "None"
    if get_origin(kind) is Literal:
        return False
    try:
        return kind not in (int, float) or isfinite(kind(value))
    except ValueError:
        return False
