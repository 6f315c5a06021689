"""What is wrong with the words of a verb, in one plain sentence; tyro, which reads them next, would speak of types."""

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from types import NoneType
from typing import Any, get_args, get_origin

from setsup.errors import SetsupError, near

__all__ = ["check_words"]

_POSITIONAL = "dataset"
"""The field whose value stands without an option."""


@dataclass(frozen=True, slots=True)
class _Option:
    """What stands behind an option: a ``kind`` of bool takes nothing, of tuple several words, any other one word."""

    kind: type
    metavar: str


def check_words(verb: str, options: type, words: Sequence[str]) -> None:
    """Refuse words that are no options of a verb, and values that do not suit theirs.

    Parameters
    ----------
    verb : str
        For messages.
    options : type
        Dataclass of the verb's options.
    words : sequence of str
        What stands behind the verb.

    Raises
    ------
    SetsupError
        When an option is unknown or comes twice, a value is ill-formed or missing, or a word is one too many.

    """
    if {"-h", "--help", "--"} & set(words):
        return
    dataset = next((field for field in fields(options) if field.name == _POSITIONAL), None)
    known = {f"--{field.name}": _option(field) for field in fields(options) if field.name != _POSITIONAL}
    seen: dict[str, list[str]] = {}
    for name, values in _parted(words, known):
        if not name:
            _check_alone(verb, values[0], seen.get(""), dataset is not None)
        elif name not in known:
            raise SetsupError(f"unknown option {name!r}{near(name, known)} (`setsup {verb} --help` explains them)")
        elif name in seen:
            once = " ".join([name, *seen[name], *values] if known[name].kind is tuple else [name, *values])
            raise SetsupError(f"{name} is given twice; give it once, as in `{once}`")
        else:
            _check_values(name, known[name], values)
        seen[name] = values
    if dataset is not None and dataset.default is MISSING and "" not in seen:
        raise SetsupError(f"name a data set, as in `setsup {verb} mnist` (`setsup datasets` lists them)")


def _option(field: "Field[Any]") -> _Option:
    """Read a type such as ``Annotated[Union[None, int], option(...)]``."""
    inner, *notes = get_args(field.type)
    kind = next((part for part in get_args(inner) if part is not NoneType), inner)
    metavars = [note.metavar for note in notes if getattr(note, "metavar", None)]
    return _Option(get_origin(kind) or kind, metavars[0] if metavars else "")


def _parted(words: Sequence[str], known: dict[str, _Option]) -> Iterator[tuple[str, list[str]]]:
    """Options with the words behind them; a word that stands alone comes with an empty name."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not _is_option(word):
            yield "", [word]
            continue
        name, equals, value = word.partition("=")
        kind = known[name].kind if name in known else bool
        values = [value] if equals else []
        while rest and not _is_option(rest[0]) and kind is not bool and (kind is tuple or not values):
            values.append(rest.pop(0))
        yield name, values


def _is_option(word: str) -> bool:
    """Whether a word is meant as an option: numbers such as -1 are not."""
    return word.startswith("--") or (word.startswith("-") and word[1:2].isalpha())


def _check_alone(verb: str, word: str, before: list[str] | None, takes: bool) -> None:
    if not takes:
        raise SetsupError(f"`setsup {verb}` takes no {word!r}: it takes options alone (`setsup {verb} --help`)")
    if before:
        raise SetsupError(
            f"{word!r} is one word too many: {before[0]!r} was taken for the data set, and all other words stand "
            f"behind an option (`setsup {verb} --help`)"
        )


def _check_values(name: str, option: _Option, values: Sequence[str]) -> None:
    if option.kind is bool:
        if values:
            raise SetsupError(f"{name} takes no value, so leave out {'='.join(['', *values])!r}")
        return
    if not values and not option.metavar.startswith("["):
        raise SetsupError(f"nothing stands behind {name}: give it as `{name} {option.metavar}`")
    if option.kind is int:
        try:
            int(values[0])
        except ValueError:
            raise SetsupError(f"{name} must be a whole number, not {values[0]!r}") from None
