"""Questions that a page asks, and the answers: JSON, or the bytes of an image."""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, SetsupError, abbreviate

__all__ = [
    "Answer",
    "DamagedRows",
    "Query",
    "Source",
    "digest",
    "error_answer",
    "error_content",
    "json_answer",
    "key_of",
    "packed",
]

_LONGEST = 1 << 14  # letters of a question
_DEEPEST = 64  # lists and mappings within each other
_LISTED = 8  # rows that an error names


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: JSON, or an image."""

    content: bytes
    media: str


class Source(Protocol):
    """A source of a page: a dataset, a sampler of it, or a run."""

    def answer(self, query: "Query") -> Answer:
        """Answer a question; SetsupError where there is none."""

    def about(self) -> Mapping[str, Any]:
        """Return the initial content of the page."""


def json_answer(value: Any) -> Answer:
    """Answer of plain data; numbers that are not finite are null."""
    return Answer(json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":")).encode(), "application/json")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def packed(values: npt.NDArray[np.generic], kind: type[np.number]) -> dict[str, str]:
    """Numbers as JSON has them: the name of a type, and base64 of its little-endian bytes."""
    dtype = np.dtype(kind)
    content = np.ascontiguousarray(values, dtype=dtype.newbyteorder("<")).tobytes()
    return {"type": dtype.name, "data": base64.b64encode(content).decode()}


def key_of(question: Mapping[str, str]) -> str:
    """The one key of a question: its words in the order of their names, as in an address."""
    return urlencode(sorted(question.items()))


def digest(key: str) -> str:
    """Short name of a key, for files: FNV-1a [1]_ of 64 bits, which the page computes too.

    References
    ----------
    .. [1] D. Eastlake and others, "The FNV non-cryptographic hash algorithm", Internet-Draft (2012).

    """
    hashed = 0xCBF29CE484222325
    for byte in key.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return f"{hashed:016x}"


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of a request, with checks; DataError for those that are missing or invalid.

    Examples
    --------
    >>> query = Query.parse("q=row&row=7&s=d0")
    >>> query.choice("q", ["row", "rows"]), query.integer("row", 0, 99)
    ('row', 7)

    """

    words: Mapping[str, str]

    @classmethod
    def parse(cls, key: str) -> "Query":
        """Read a key."""
        if len(key) > _LONGEST:
            raise DataError(f"a request must have at most {_LONGEST:,} characters")
        try:
            pairs = parse_qsl(key, keep_blank_values=True, strict_parsing=bool(key), max_num_fields=16)
        except ValueError:
            raise DataError("a request must consist of name=value pairs that are joined by &") from None
        if len({name for name, _ in pairs}) < len(pairs):
            raise DataError("a request must contain each parameter only once")
        return cls(dict(pairs))

    def text(self, name: str, longest: int = 2000, default: str | None = None) -> str:
        """A string parameter."""
        value = self.words.get(name, default)
        if value is None:
            raise DataError(f"the request has no parameter {name}")
        if len(value) > longest:
            raise DataError(f"{name} has more than {longest:,} characters")
        return value

    def choice(self, name: str, known: Sequence[str], default: str | None = None) -> str:
        """One of some words."""
        value = self.text(name, 200, default)
        if value not in known:
            raise DataError(f"{name} must be one of {', '.join(known)}")
        return value

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """An integer in a range, written in decimals, so that no browser rounds it."""
        given = self.text(name, 20, None if default is None else str(default))
        if not (given.isascii() and given.isdigit()) or not low <= int(given) <= high:
            raise DataError(f"{name} must be an integer from {low:,} to {high:,}, not {given[:20]!r}")
        return int(given)

    def integers(self, name: str, most: int, high: int) -> list[int]:
        """Integers from 0 to a highest one, separated by commas."""
        given = self.text(name, 24 * most).split(",")
        if len(given) > most or not all(part.isascii() and part.isdigit() and int(part) <= high for part in given):
            raise DataError(f"{name} must be up to {most} integers from 0 to {high:,}, separated by commas")
        return [int(part) for part in given]

    def data(self, name: str, longest: int = 8000) -> Any:
        """JSON."""
        try:
            content = json.loads(self.text(name, longest))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name} is not valid JSON: {str(error)[:200]}") from None
        _check_json(content, name)
        return content


def _check_json(value: Any, name: str) -> None:
    """Refuse JSON that answers could not repeat: nested too deep for Python, or half of a surrogate pair."""
    level, depth = [value], 0
    while level:
        if depth > _DEEPEST:
            raise DataError(f"{name} is nested more than {_DEEPEST} levels deep")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, Mapping):
                inner += [*item, *item.values()]
            elif isinstance(item, list):
                inner += item
            elif isinstance(item, str) and any("\ud800" <= letter <= "\udfff" for letter in item):
                raise DataError(
                    f"{name} contains half of a surrogate pair, which is not a character: {abbreviate(item)}"
                )
        level, depth = inner, depth + 1


class DamagedRows(DataError):
    """Images of some rows cannot be read.

    Parameters
    ----------
    rows : mapping of int to str
        Why, by row.

    """

    def __init__(self, rows: Mapping[int, str]) -> None:
        first = next(iter(rows))
        listed = ", ".join(map(str, [*rows][:_LISTED])) + (", …" if len(rows) > _LISTED else "")
        several = (
            f"{len(rows):,} rows have no image ({listed}); row {first}"
            if len(rows) > 1
            else f"row {first} has no image"
        )
        super().__init__(f"{several}: {rows[first]}")
        self.rows = dict(rows)


def error_answer(error: SetsupError) -> Answer:
    """An error as the page shows it."""
    return json_answer(error_content(error))


def error_content(error: SetsupError, sentence: str = "") -> dict[str, Any]:
    """An error as data: its sentence, or another one for it, and the rows that are at fault."""
    content = {"error": sentence or str(error)}
    return {**content, "rows": list(error.rows)} if isinstance(error, DamagedRows) else content
