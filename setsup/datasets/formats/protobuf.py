"""The wire format of protocol buffers: positions of the fields of a message.

References
----------
.. [1] protobuf.dev/programming-guides/encoding.

"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError

__all__ = [
    "EIGHT",
    "FOUR",
    "LENGTH",
    "VARINT",
    "Refuse",
    "packed_ends",
    "packed_integers",
    "read_fields",
    "read_floats",
    "read_varint",
]

VARINT, EIGHT, LENGTH, FOUR = 0, 1, 2, 5
"""Wire types that are read; groups are refused."""

Refuse = Callable[[int, str], DataError]
"""``refuse(byte, why)`` makes the error of a damaged message."""

_FIXED = MappingProxyType({EIGHT: 8, FOUR: 4})
_NONE: Mapping[int, tuple[int, ...]] = MappingProxyType({})


def read_fields(
    content: bytes | memoryview, at: int, end: int, refuse: Refuse, known: Mapping[int, tuple[int, ...]] = _NONE
) -> Iterator[tuple[int, int, int]]:
    """Return the number and position of the value of each field; known fields are checked to have a valid wire type."""
    while at < end:
        begin = at
        tag, at = read_varint(content, at, end, refuse)
        number, wire = tag >> 3, tag & 7
        if wire == LENGTH:
            length, at = read_varint(content, at, end, refuse)
            stop = at + length
        elif wire == VARINT:
            _, stop = read_varint(content, at, end, refuse)
        elif wire in _FIXED:
            stop = at + _FIXED[wire]
        else:
            raise refuse(begin, f"a field has the unsupported wire type {wire}")
        if not 0 < number < 1 << 29:
            raise refuse(begin, f"a field has the invalid number {number}")
        if stop > end:
            raise refuse(begin, f"a field specifies {stop - at:,} bytes, but only {end - at:,} follow")
        if number in known and wire not in known[number]:
            raise refuse(begin, f"field {number} has the unexpected wire type {wire}")
        yield number, at, stop
        at = stop


def read_varint(content: bytes | memoryview, at: int, end: int, refuse: Refuse) -> tuple[int, int]:
    """Return the value of a varint, and the position after it."""
    if at < end and content[at] < 128:
        return content[at], at + 1
    value = 0
    for index in range(at, min(end, at + 10)):
        value |= (content[index] & 127) << 7 * (index - at)
        if content[index] < 128:
            if value >> 64:
                break
            return value, index + 1
    raise refuse(at, "a varint is incomplete, or has more than 64 bits")


def read_floats(content: bytes | memoryview, spans: list[tuple[int, int]]) -> npt.NDArray[np.float32]:
    """Values of a repeated float, packed or one by one, from the places of its fields.

    Examples
    --------
    >>> read_floats(np.float32([1, 2, 0.5]).tobytes(), [(0, 8), (8, 12)]).tolist()
    [1.0, 2.0, 0.5]

    """
    joined = b"".join(bytes(content[at:end]) for at, end in spans)
    return np.frombuffer(joined[: len(joined) // 4 * 4], "<f4").astype(np.float32)


def packed_ends(content: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Find the positions after each varint of a packed list; bytes after the last whole varint are left out.

    Examples
    --------
    >>> packed_ends(np.array([5, 0x80, 1, 0x80], np.uint8)).tolist()
    [1, 3]

    """
    ends: npt.NDArray[np.int64] = np.flatnonzero(content < 128) + 1
    return ends


def packed_integers(content: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Values of a packed list of varints, together; a varint of more than four bytes becomes −1.

    Examples
    --------
    >>> packed_integers(np.array([5, 0x80, 1, 0xFF, 0xFF, 3], np.uint8)).tolist()
    [5, 128, 65535]

    """
    ends = packed_ends(content)
    starts = np.append(0, ends[:-1])
    lengths = ends - starts
    low = (content & 127).astype(np.int64)
    values = np.zeros(len(ends), np.int64)
    for place in range(min(4, int(lengths.max(initial=0)))):
        longer = lengths > place
        values[longer] |= low[starts[longer] + place] << 7 * place
    values[lengths > 4] = -1
    return values
