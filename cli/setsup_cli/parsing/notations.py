"""How the command line writes the types of samplers' arguments, and what reads them.

The types are annotations as they stand in the samplers' signatures.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from setsup.errors import FactorError, SamplerError, did_you_mean
from setsup.files.expand_user import expanded
from setsup_cli.parsing.source import assignments

if TYPE_CHECKING:
    from setsup.factors import Factor, FactorTable
    from setsup.factors.factor import Level

__all__ = ["NOTATIONS", "Notation", "choose_from", "find_levels", "read_band"]

Words = tuple[str, ...]

_LEVEL = re.compile(r"[^=!<>]*=(?!=)")
"""A level such as ``camera=051``, and no comparison of an expression."""

_FROM_STEP = re.compile(r"(\d+):(.+)", re.ASCII)
"""A value from a step on, such as ``100:8``."""


class Notation(NamedTuple):
    """How a type is written.

    ``convert`` makes the value of an argument from that of the option, of the type ``kind``, and the option's name; it
    raises ValueError unless the option has what is ``expected``. ``note`` adds to what the option's help says.
    ``factors`` returns the names of factors in such a value.
    """

    metavar: str
    kind: Any
    convert: Callable[[Any, str], Any] = lambda value, option: value
    note: str = ""
    expected: str = ""
    factors: Callable[[Any], list[str]] = lambda value: []

    def read(self, value: Any, option: str) -> Any:
        """Convert the value of an option."""
        try:
            return self.convert(value, option)
        except ValueError:
            written = value if isinstance(value, str) else " ".join(value)
            raise SamplerError(f"{option} must be {self.expected}, not {written!r}") from None


def choose_from(choices: tuple[str, ...]) -> Notation:
    """The notation of a ``Literal``."""
    return Notation("|".join(choices), Literal[choices])


# -- values by step and by name ----------------------------------------------------------------------------------------


def _by_step(parts: Sequence[str], option: str, read: Callable[[str], Any]) -> dict[int, Any]:
    """Read ``0:4`` and ``100:8``, values from each of some steps on."""
    matches = [_FROM_STEP.fullmatch(part) for part in parts]
    if None in matches:
        raise ValueError
    by_step = {int(match[1]): read(match[2]) for match in matches if match}
    if len(by_step) < len(parts):
        raise SamplerError(
            f"{option} {','.join(parts)} specifies two values for the same step; specify one value per step"
        )
    return by_step


def _scheduled(word: str, option: str) -> int | list[int] | dict[int, int]:
    """Read ``8``, a number for each set, ``4,12``, or one from each of some steps on, ``0:4,100:8``."""
    parts = word.split(",")
    if ":" in word:
        return _by_step(parts, option, int)
    if len(parts) > 1:
        return [int(part) for part in parts]
    try:
        return int(word)
    except ValueError:
        raise SamplerError(f"{option} must be an integer, not {word!r}") from None


def _range(word: str) -> list[int]:
    """Read ``1-20``."""
    low, high = word.split("-")
    return [int(low), int(high)]


def _factor_number(word: str) -> int | list[int] | None:
    """Read ``2``, ``1-3`` or ``any``."""
    if word == "any":
        return None
    return _range(word) if "-" in word else int(word)


def _factor_numbers(word: str, option: str) -> Any:
    """Read a number of factors, or one from each of some steps on, ``0:1,100:1-3``."""
    return _by_step(word.split(","), option, _factor_number) if ":" in word else _factor_number(word)


def _tables(words: Words, option: str) -> dict[int, str]:
    """Read the file of a neighbour table, which holds from step 0 on, or files from each of some steps on."""
    parts = [word if _FROM_STEP.fullmatch(word) else f"0:{word}" for word in words]
    return _by_step(parts, option, lambda path: str(expanded(Path(path))))


def read_band(word: str) -> tuple[float, float]:
    """Read ``.3-.8``, the ends of a band."""
    low, high = word.split("-")
    return float(low), float(high)


def _overlaps(word: str, option: str) -> tuple[str, tuple[float, float]]:
    """Read the file of an overlap table and a band, ``FILE:.3-.8``."""
    file, _, band = word.rpartition(":")
    if not file:
        raise ValueError
    return str(expanded(Path(file))), read_band(band)


def _by_name(what: str, read: Callable[[str], Any], alone: Callable[[str], bool] = lambda word: False) -> Any:
    """A reader of ``NAME=VALUE ...``, or of one value where that can stand alone."""

    def convert(words: Words, option: str) -> Any:
        if len(words) == 1 and alone(words[0]):
            return read(words[0])
        return assignments(words, option, what, read)

    return convert


# -- levels of factors -------------------------------------------------------------------------------------------------


def find_levels(words: Mapping[str, str], table: "FactorTable", option: str) -> "dict[str, Level]":
    """The levels of factors that words name."""
    return {name: _find_level(table[name], word, option) for name, word in words.items()}


def _find_level(factor: "Factor", word: str, option: str) -> "Level":
    if factor.levels is None:
        raise FactorError(
            f"factor {factor.name!r} is continuous and has no levels; use {option} "
            f'"{factor.name} == {word}" for the first row of an orbit that satisfies it, or {option} '
            f"argmin:{factor.name}"
        )
    written = [str(level) for level in factor.levels]
    if word in written:
        return factor.levels[written.index(word)]
    with suppress(ValueError, StopIteration):  # 1 for 1.0
        return next(level for level in factor.levels if not isinstance(level, str) and level == float(word))
    raise FactorError(f"factor {factor.name!r} has no level {word!r}{did_you_mean(word, written)}")


def _factors_of_member(value: str | Mapping[str, str]) -> list[str]:
    """Factors that ``argmin:FACTOR`` or ``FACTOR=LEVEL ...`` name; an expression is checked where it is evaluated."""
    if isinstance(value, str):
        return [value.removeprefix("argmin:")] if value.startswith("argmin:") else []
    return list(value)


_FACTOR = Notation("FACTOR", str, factors=lambda name: [name])
_FACTORS = Notation("FACTOR ...", Words, lambda words, option: list(words), factors=list)
_EXPRESSION = Notation("EXPRESSION", str)
_SCHEDULED = Notation(
    "N", str, _scheduled, "0:4,100:8 means 4, then 8 from step 100.",
    "an integer, one for each set, such as 4,12, or one from each of some steps on, such as 0:4,100:8",
)  # fmt: skip

NOTATIONS: Mapping[str, Notation] = {
    "int": Notation("N", int),
    "float": Notation("NUMBER", float),
    "bool": Notation("yes|no", Literal["yes", "no"], lambda word, option: word == "yes"),
    "str": Notation("CONSTRAINT", str),
    "time": _FACTOR,
    "Weights": _FACTOR,
    "Weights | Sequence[Weights | None]": _FACTOR,
    "Lists": _FACTORS,
    "Sequence[str]": _FACTORS,
    "str | Sequence[str]": _FACTORS,
    "Where": _EXPRESSION,
    "Where | Sequence[Where | None]": _EXPRESSION,
    "Scheduled": _SCHEDULED,
    "Scheduled | Sequence[Scheduled]": _SCHEDULED._replace(
        note=f"4,12 means 4 for the first set and 12 for the second; {_SCHEDULED.note}"
    ),
    "Mapping[str, float]": Notation("FACTOR=NUMBER ...", Words, _by_name("number", float), factors=list),
    "int | Mapping[str, int]": Notation(
        "FACTOR=N ...", Words, _by_name("integer", int, alone=str.isdecimal), "N alone applies to all of them.",
        factors=lambda value: [] if isinstance(value, int) else list(value),
    ),
    "Sequence[str | Sequence[str]]": Notation(
        "FACTOR=N ...", Words, _by_name("integer", int),
        "N values of each factor are drawn within each value of the previous one.", factors=list,
    ),
    "int | tuple[int, int] | Mapping[int, int | tuple[int, int] | None]": Notation(
        "K", str, _factor_numbers,
        "0:1,100:1-3 means 1, then 1 to 3 from step 100.",
        "a number of factors, such as 2, a range, such as 1-3, or any, or one from each of some steps on, such as "
        "0:1,100:1-3",
    ),
    "Neighbours": Notation(
        "FILE ...", Words, _tables, "FILE is a table written by `setsup embed --neighbours`; 0:FILE 100:FILE uses one "
        "table from step 0 and another from step 100.",
    ),
    "Overlaps": Notation(
        "FILE:LOW-HIGH", str, _overlaps, "FILE:.3-.8 draws pairs of views with an overlap from 0.3 to 0.8.",
        "a file of overlaps and a band, such as views.overlap:.3-.8",
    ),
    "Band": Notation(
        "LOW-HIGH", str, lambda word, option: read_band(word), expected="the ends of a band, such as 5-45",
    ),
    "Sequence[int] | Mapping[str, Sequence[int]]": Notation(
        "R-R", Words, _by_name("1-20", _range, alone=lambda word: "=" not in word),
        "negative=1-20 limits only the negative; the positive is drawn from all rows that satisfy --positive.",
        "the first and the last rank, such as 1-20",
    ),
    "str | Mapping[str, Level]": Notation(
        "MEMBER ...", Words, _by_name("level", str, alone=lambda word: not _LEVEL.match(word)),
        "first: the first row, in the order of the table; argmin:FACTOR: the row with the smallest value; FACTOR=LEVEL "
        "...: the first row with these levels; any other word: the first row that satisfies this expression.",
        factors=_factors_of_member,
    ),
    "sampler": Notation("FILE.py:CLASS", str),
    "argument": Notation("NAME=VALUE ...", Words),
}  # fmt: skip
"""Notations by types, and of options whose type does not tell by the option."""
