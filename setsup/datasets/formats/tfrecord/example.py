"""``tf.train.Example``: a map from names to lists of bytes, float32 or int64, in the wire format of protocol buffers.

It is read without ``protobuf``: the message has only three levels, long values are only located (``protobuf`` copies
them), and other packages often pin ``protobuf`` to incompatible versions.

Convention
----------
As in the wire format, unknown fields are skipped, and numbers may be packed or not. Unlike in the wire format, a known
field with another wire type, a duplicate name or list, and groups are refused.
"""

from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.protobuf import FOUR, LENGTH, VARINT, read_fields, read_varint
from setsup.errors import DamagedFile, DataError

__all__ = ["Feature", "read_example"]

_MANY = 64  # values of a list that is looked at as a whole
_KINDS = MappingProxyType({1: "bytes", 2: "float", 3: "int64"})

# wire types that known fields may have
_NESTED = MappingProxyType({1: (LENGTH,)})
_ENTRY = MappingProxyType({1: (LENGTH,), 2: (LENGTH,)})
_LISTS = MappingProxyType(dict.fromkeys(_KINDS, (LENGTH,)))
_FLOATS = MappingProxyType({1: (LENGTH, FOUR)})
_INTEGERS = MappingProxyType({1: (LENGTH, VARINT)})


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of an example: the values of one name.

    `values` array.
    """

    kind: str
    values: npt.NDArray[Any]


def read_example(
    content: bytes | memoryview,
    names: Collection[str],
    label: str,
    start: int = 0,
    stop: int | None = None,
    packed: Collection[str] = (),
) -> dict[str, Feature]:
    r"""Read some features of a serialised example.

    Integers of the features `packed` are only located: (lists, 2) int64, offset and length of each packed list.
    """
    stop = len(content) if stop is None else stop
    wanted = {name.encode(): name for name in names}
    features: dict[str, Feature] = {}
    for number, at, end in _fields(content, start, stop, label, _NESTED):
        if number != 1:
            continue
        for inner, entry, entry_end in _fields(content, at, end, label, _NESTED):
            if inner != 1:
                continue
            key, value = _entry(content, entry, entry_end, label)
            name = wanted.get(key)
            if name is None:
                continue
            if name in features:
                raise _refuse(label, entry, f"the feature {name!r} appears twice")
            features[name] = _feature(content, *value, label, name in packed)
    return features


def _entry(content: bytes | memoryview, at: int, end: int, label: str) -> tuple[bytes, tuple[int, int]]:
    """Name and place of the value of an entry of the map."""
    key: tuple[int, int] | None = None
    value: tuple[int, int] | None = None
    for number, start, stop in _fields(content, at, end, label, _ENTRY):
        if number == 1 and key is None:
            key = start, stop
        elif number == 2 and value is None:
            value = start, stop
        elif number in (1, 2):
            raise _refuse(label, start, "a feature has two names or two values")
    # what a writer leaves out is empty
    begin, past = key or (at, at)
    return bytes(content[begin:past]), value or (at, at)


def _feature(content: bytes | memoryview, at: int, end: int, label: str, packed: bool = False) -> Feature:
    kind, start, stop = "nothing", at, at
    for number, begin, past in _fields(content, at, end, label, _LISTS):
        if number in _KINDS:
            if kind != "nothing":
                raise _refuse(label, begin, "a feature has two lists")
            kind, start, stop = _KINDS[number], begin, past
    if kind == "float":
        return Feature(kind, _floats(content, start, stop, label))
    if kind == "int64" and packed:
        fields = _fields(content, start, stop, label, _ENTRY)
        lists = [(begin, past - begin) for number, begin, past in fields if number == 1]
        return Feature("packed int64", np.array(lists, np.int64).reshape(-1, 2))
    if kind == "int64":
        return Feature(kind, _integers(content, start, stop, label))
    return Feature(kind, _spans(content, start, stop, label))


def _spans(content: bytes | memoryview, at: int, end: int, label: str) -> npt.NDArray[np.int64]:
    single = _single_bytes(content, at, end)
    if single is not None:
        return single
    spans = array("q")
    for number, start, stop in _fields(content, at, end, label, _NESTED):
        if number == 1:
            spans.append(start)
            spans.append(stop - start)
    return np.frombuffer(spans, np.int64).reshape(-1, 2)


def _single_bytes(content: bytes | memoryview, at: int, end: int) -> npt.NDArray[np.int64] | None:
    """Spans of a list whose values have one byte each, as images that are written pixel by pixel; None for others."""
    if end - at < 3 * _MANY or (end - at) % 3:
        return None
    fields = np.frombuffer(content, np.uint8, end - at, at).reshape(-1, 3)
    if (fields[:, 0] != (1 << 3 | LENGTH)).any() or (fields[:, 1] != 1).any():
        return None
    starts = at + 2 + 3 * np.arange(len(fields), dtype=np.int64)
    return np.stack([starts, np.ones_like(starts)], axis=1)


def _floats(content: bytes | memoryview, at: int, end: int, label: str) -> npt.NDArray[np.float32]:
    # packed floats are one field, others one field each: bytes of either are put one after the other
    packed = bytearray()
    for number, start, stop in _fields(content, at, end, label, _FLOATS):
        if number == 1:
            if (stop - start) % 4:
                raise _refuse(label, start, f"{stop - start} bytes of floats are not a multiple of 4")
            packed += content[start:stop]
    return np.frombuffer(packed, "<f4").astype(np.float32, copy=False)


def _integers(content: bytes | memoryview, at: int, end: int, label: str) -> npt.NDArray[np.int64]:
    values = array("q")
    for number, start, stop in _fields(content, at, end, label, _INTEGERS):
        while number == 1 and start < stop:
            value, start = _varint(content, start, stop, label)
            values.append(value - (1 << 64) if value >> 63 else value)
    return np.frombuffer(values, np.int64)


def _fields(
    content: bytes | memoryview, at: int, end: int, label: str, known: Mapping[int, tuple[int, ...]]
) -> Iterator[tuple[int, int, int]]:
    return read_fields(content, at, end, partial(_refuse, label), known)


def _varint(content: bytes | memoryview, at: int, end: int, label: str) -> tuple[int, int]:
    return read_varint(content, at, end, partial(_refuse, label))


def _refuse(label: str, at: int, why: str) -> DataError:
    return DamagedFile(f"{label} could not be parsed as a tf.train.Example: {why} (byte {at:,})")
