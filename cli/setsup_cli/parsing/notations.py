"""How the command line writes the types of samplers' arguments, and what reads them.

The types are annotations as they stand in the samplers' signatures.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from setsup.errors import FactorError, SamplerError, did_you_mean
from setsup.files.expand_user import expanded
from setsup_cli.parsing.source import assignments, numbers

if TYPE_CHECKING:
    from setsup.factors import Factor, FactorTable
    from setsup.factors.factor import Level

__all__ = ["NOTATIONS", "Notation", "choose_from", "find_levels"]

Words = tuple[str, ...]

_LEVEL = re.compile(r"[^=!<>]*=(?!=)")
"""A level such as ``camera=051``, and no comparison of an expression."""

_BY_STEP = re.compile(r"(\d+):(.+)")
"""A file from a step on, such as ``100:second.npy``."""


def _as_given(value: Any, option: str) -> Any:
    return value


def _no_names(value: Any) -> Iterable[str]:
    return ()


class Notation(NamedTuple):
    """How a type is written.

    ``read`` makes the value of an argument from that of the option, of the type ``kind``, and the option's name;
    ``factors`` gives the factors that the value names. ``note`` adds to what the option's help says.
    """

    metavar: str
    kind: Any
    read: Callable[[Any, str], Any] = _as_given
    factors: Callable[[Any], Iterable[str]] = _no_names
    note: str = ""


def choose_from(choices: tuple[str, ...]) -> Notation:
    """The notation of a ``Literal``."""
    return Notation("|".join(choices), Literal[choices])


def _read_names(words: Words, option: str) -> list[str]:
    return list(words)


def _read_scheduled(word: int | str, option: str) -> int | dict[int, int] | list[int]:
    """Read ``8``, a number for each set, ``4,12``, or one from each of some steps on, ``0:4,100:8``."""
    if isinstance(word, int):
        return word
    parts = [part.split(":") for part in word.split(",")]
    if len(parts) == 1 and len(parts[0]) == 1:
        raise SamplerError(f"{option} must be an integer, not {word!r}")
    lengths = {len(part) for part in parts}
    if lengths not in ({1}, {2}) or not all(digits.isascii() and digits.isdigit() for part in parts for digits in part):
        raise SamplerError(
            f"{option} must be an integer, one for each set, such as 4,12, or one from each of some steps on, such "
            f"as 0:4,100:8, not {word!r}"
        )
    if lengths == {1}:
        return [int(digits) for (digits,) in parts]
    by_step = {int(step): int(digits) for step, digits in parts}
    if len(by_step) < len(parts):
        raise SamplerError(f"{option} {word} names a step twice")
    return by_step


def _read_numbers(words: Words, option: str) -> dict[str, float]:
    return numbers(assignments(words, option, "number"), option)


def _read_steps(words: Words, option: str) -> Any:
    """Read ``2``, or a number of steps for each of some factors, ``scale=1``."""
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    steps = numbers(assignments(words, option, "number of steps"), option)
    return {name: int(step) if step == int(step) else step for name, step in steps.items()}


def _read_counts(words: Words, option: str) -> dict[str, int]:
    """Read how many groups of each level of a hierarchy are drawn, such as ``subject=4``."""
    counts = _read_numbers(words, option)
    for name, count in counts.items():
        if not count.is_integer():
            raise SamplerError(f"{option} {name}={count:g}: expected an integer after the =")
    return {name: int(count) for name, count in counts.items()}


def _read_number_of_factors(word: str, option: str) -> Any:
    """Read ``2``, ``1-3``, ``any``, or one of these from each of some steps on, ``0:1,100:1-3``."""
    low, _, high = word.partition("-")
    if ":" in word:
        parts = [part.partition(":") for part in word.split(",")]
        by_step = {
            int(step): _read_number_of_factors(count, option)
            for step, _, count in parts
            if step.isdecimal() and ":" not in count
        }
        if len(by_step) < len(parts):
            raise SamplerError(f"{option} by step is such as 0:1,100:1-3, with each step once, not {word!r}")
        return by_step
    if word == "any":
        return None
    if not low.isdecimal() or ("-" in word and not high.isdecimal()):
        raise SamplerError(
            f"{option} must be a number of factors, such as 2, a range, such as 1-3, or any, not {word!r}"
        )
    return [int(low), int(high)] if high else int(low)


def _read_tables(words: Words, option: str) -> dict[int, str]:
    """Read the file of a neighbour table, or files from each of some steps on."""
    by_step: dict[int, str] = {}
    for word in words:
        step, path = match.groups() if (match := _BY_STEP.match(word)) else ("0", word)
        if int(step) in by_step:
            raise SamplerError(f"{option} has two tables for step {step}: write 0:FILE 100:FILE, or one FILE")
        by_step[int(step)] = str(expanded(Path(path)))
    return by_step


def _read_ranks(words: Words, option: str) -> list[int] | dict[str, list[int]]:
    """Read ``1-20``, or ranks by position, ``negative=1-20``."""

    def read(word: str) -> list[int]:
        low, _, high = word.partition("-")
        if not (low.isdecimal() and high.isdecimal()):
            raise SamplerError(f"{option} must be the first and the last rank, such as 1-20, not {word!r}")
        return [int(low), int(high)]

    if len(words) == 1 and "=" not in words[0]:
        return read(words[0])
    return {position: read(word) for position, word in assignments(words, option, "1-20").items()}


def _read_canonical(words: Words, option: str) -> str | dict[str, str]:
    """Read ``first``, ``argmin:FACTOR``, an expression, or levels such as ``camera=051``."""
    return words[0] if len(words) == 1 and not _LEVEL.match(words[0]) else assignments(words, option, "level")


def _factors_of_canonical(canonical: str | Mapping[str, str]) -> Iterable[str]:
    if not isinstance(canonical, str):
        return canonical
    name = canonical.removeprefix("argmin:")
    return [name] if name != canonical else []


def find_levels(words: Mapping[str, str], table: "FactorTable", option: str) -> "dict[str, Level]":
    """The levels of factors that words name."""
    return {name: _find_level(table[name], word, option) for name, word in words.items()}


def _find_level(factor: "Factor", word: str, option: str) -> "Level":
    for level in factor.levels or ():
        if str(level) == word or (not isinstance(level, str) and _is_number(level, word)):
            return level
    if factor.levels is None:
        raise FactorError(
            f'factor {factor.name!r} is continuous: use {option} "{factor.name} == {word}", the first row of an '
            f"orbit that satisfies it, or {option} argmin:{factor.name}"
        )
    known = did_you_mean(word, [str(level) for level in factor.levels])
    raise FactorError(f"factor {factor.name!r} has no level {word!r}{known}")


def _is_number(level: float, word: str) -> bool:
    try:
        return float(word) == float(level)
    except ValueError:
        return False


_FACTORS = Notation("FACTOR ...", Words, _read_names, list)
_SCHEDULED = Notation("N", int | str, _read_scheduled, note="0:4,100:8 gives 8 from step 100 on.")
_FACTOR = Notation("FACTOR", str, factors=lambda name: [name])

NOTATIONS: Mapping[str, Notation] = {
    "int": Notation("N", int),
    "float": Notation("NUMBER", float),
    "bool": Notation("yes|no", Literal["yes", "no"], lambda word, option: word == "yes"),
    "str": Notation("CONSTRAINT", str),
    "Lists": _FACTORS,
    "Sequence[str]": _FACTORS,
    "str | Sequence[str]": _FACTORS,
    "Scheduled": _SCHEDULED,
    "Scheduled | Sequence[Scheduled]": _SCHEDULED._replace(note=f"4,12 gives each set its own; {_SCHEDULED.note}"),
    "Weights": _FACTOR,
    "Weights | Sequence[Weights | None]": _FACTOR,
    "Where": Notation("EXPRESSION", str),
    "Where | Sequence[Where | None]": Notation("EXPRESSION", str),
    "Mapping[str, float]": Notation("FACTOR=NUMBER ...", Words, _read_numbers, list),
    "int | Mapping[str, int]": Notation(
        "FACTOR=N ...", Words, _read_steps, lambda steps: steps if isinstance(steps, dict) else ()
    ),
    "Sequence[str | Sequence[str]]": Notation("FACTOR=N ...", Words, _read_counts, list),
    "int | tuple[int, int] | Mapping[int, int | tuple[int, int] | None]": Notation("K", str, _read_number_of_factors),
    "Neighbours": Notation("FILE ...", Words, _read_tables),
    "Sequence[int] | Mapping[str, Sequence[int]]": Notation("R-R", Words, _read_ranks),
    "str | Mapping[str, Level]": Notation("MEMBER ...", Words, _read_canonical, _factors_of_canonical),
    "factor": _FACTOR,
    "sampler": Notation("FILE.py:CLASS", str),
    "argument": Notation("NAME=VALUE ...", Words),
}
"""Notations by types; a ``factor`` is a string that names one, a ``sampler`` one that says where its class is."""
