"""Arrays of numbers in a pickle, located without unpickling: nothing in the file is imported or called.

A pickle is a program for a stack machine. This module executes its instructions for plain values; for numpy arrays, it
records only dtype, shape and the position of the elements. Protocols 3 to 5 are supported, and protocol 2 as Python 2
wrote it, whose strings are bytes. Other protocols and other objects are refused, also arrays that Python 3 wrote with
protocol 2: their elements are encoded as UTF-8, so that they cannot be mapped.
"""

import re
import struct
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from setsup.arrays import Array
from setsup.errors import DamagedFile, DataError

__all__ = ["PickledArray", "read_pickle"]

_TYPE = re.compile(r"[biuf][1-8]")
_ORDERS = ("<", ">", "|", "=")
_RECONSTRUCT = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
_FROM_BUFFER = ("numpy.core.numeric _frombuffer", "numpy._core.numeric _frombuffer")  # of protocol 5
_LONGEST_LINE = 256


class PickledArray:
    """Position of the elements of an array: offset in bytes, shape, dtype, and their order."""

    def __init__(self) -> None:
        # what numpy makes, before the state is known
        self.start, self.shape, self.dtype, self.order = 0, (0,), np.dtype(np.int8), "C"

    start: int
    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    order: Literal["C", "F"]

    def view(self, content: Any) -> Array:
        """The array, without copying its elements; `content` is the file, as for :func:`read_pickle`."""
        flat: Array = np.frombuffer(content, self.dtype, prod(self.shape), self.start)
        return flat.reshape(self.shape, order=self.order)


class _Type:
    """A type of numpy's: its letter and size, and its byte order."""

    def __init__(self, told: str) -> None:
        self.told, self.order = told, "="


class _Bytes(NamedTuple):
    start: int
    length: int


class _ShortBytes(str):
    """Up to 255 bytes, which are a string of Python 2, the content of a small array, or a key; and where they start."""

    __slots__ = ("start",)
    start: int


class _Name(NamedTuple):
    """What the file would import: module and name."""

    name: str


class _Refused(Exception):
    """A reason."""


def read_pickle(content: Any, path: Path, *, fortran: bool = False) -> Any:
    """Read the content of a pickle: dictionaries, lists, tuples, strings, numbers, and arrays as :class:`PickledArray`.

    `content` is the file, as bytes or mapped into memory. Arrays in Fortran order are refused unless `fortran`.

    Raises
    ------
    DataError
        When the file is not a pickle, is damaged, or contains anything else, such as an array of objects.

    """
    machine = _Machine(content, fortran)
    try:
        return machine.run()
    except _Refused as error:
        raise DataError(
            f"{path} {error}; setsup only reads arrays of numbers from a pickle, and never unpickles it"
        ) from None
    except (struct.error, IndexError, KeyError, ValueError, TypeError) as error:
        raise DamagedFile(f"{path} is not a pickle, or is damaged at byte {machine.at:,}") from error


class _Machine:
    def __init__(self, content: Any, fortran: bool) -> None:
        self.content = content
        self._fortran = fortran
        self.at = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Execute all instructions, and return the top of the stack."""
        while True:
            code = self._take(1)
            if code == b".":
                return self._stack.pop()
            step = _STEPS.get(code)
            if step is None:
                raise _Refused(f"contains the unsupported instruction {code!r} at byte {self.at - 1:,}")
            step(self)

    def _take(self, count: int) -> bytes:
        taken = self.content[self.at : self.at + count]
        if len(taken) != count:
            raise IndexError
        self.at += count
        return bytes(taken)

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self) -> str:
        end = self.content.find(b"\n", self.at, self.at + _LONGEST_LINE)
        if not 0 <= end - self.at < _LONGEST_LINE:
            raise ValueError
        return self._take(end + 1 - self.at)[:-1].decode()

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _text(self, form: str) -> None:
        self._push(self._take(self._number(form)).decode("utf-8", "surrogatepass"))

    def _bytes(self, form: str) -> None:
        length = self._number(form)
        self._push(_Bytes(self.at, length))
        self.at += length

    def _short_bytes(self) -> None:
        length = self._number("<B")
        text = _ShortBytes(self._take(length).decode("latin-1"))
        text.start = self.at - length
        self._push(text)

    def _long(self) -> None:
        self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def _mark(self) -> None:
        self._marks.append(len(self._stack))

    def _marked(self) -> list[Any]:
        """What is above the last mark."""
        last = self._marks.pop()
        above = self._stack[last:]
        del self._stack[last:]
        return above

    def _popped(self, count: int) -> list[Any]:
        popped = self._stack[-count:]
        if len(popped) != count:
            raise IndexError
        del self._stack[-count:]
        return popped

    def _append(self, values: list[Any]) -> None:
        into = self._stack[-1]
        if type(into) is not list:
            raise TypeError
        into.extend(values)

    def _set(self, values: list[Any]) -> None:
        into = self._stack[-1]
        if type(into) is not dict or len(values) % 2 or not all(isinstance(key, str) for key in values[::2]):
            raise TypeError
        into.update(zip(values[::2], values[1::2], strict=True))

    def _import(self, names: list[Any]) -> None:
        self._push(_Name(" ".join(names)))

    def _reduce(self) -> None:
        function, arguments = self._popped(2)
        name = function.name if type(function) is _Name else "an object"
        if name in _RECONSTRUCT:
            self._push(PickledArray())
        elif name == "numpy dtype" and type(arguments) is tuple and arguments and isinstance(arguments[0], str):
            self._push(_Type(arguments[0]))
        elif name in _FROM_BUFFER and type(arguments) is tuple and len(arguments) == 4:
            content, of, shape, order = arguments
            self._push(PickledArray())
            _fill(self._stack[-1], shape, of, order == "F", content, self._fortran)
        elif name == "_codecs encode":
            raise _Refused("contains bytes that Python 3 wrote with protocol 2; write the file again with protocol 4")
        else:
            raise _Refused(f"contains a call of {name!r}")

    def _build(self) -> None:
        [state], made = self._popped(1), self._stack[-1]
        if type(state) is not tuple:
            raise TypeError
        if type(made) is _Type:
            made.order = state[1]
        elif type(made) is PickledArray:
            shape, of, by_columns, content = state[1:5]
            _fill(made, shape, of, by_columns, content, self._fortran)
        else:
            raise TypeError

    def _put(self, form: str) -> None:
        self._memo[self._number(form)] = self._stack[-1]

    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _get(self, form: str) -> None:
        self._push(self._memo[self._number(form)])


def _fill(array: PickledArray, shape: Any, of: Any, by_columns: Any, content: Any, fortran: bool) -> None:
    """Record the state of a numpy array."""
    if type(of) is not _Type or type(shape) is not tuple or not all(type(length) is int for length in shape):
        raise TypeError
    if not _TYPE.fullmatch(of.told):
        raise _Refused(f"contains an array of type {of.told!r}")
    if by_columns and len(shape) > 1 and not fortran:
        raise _Refused("contains an array in Fortran order; expected C order, as numpy.ascontiguousarray returns")
    if type(content) is _ShortBytes:
        content = _Bytes(content.start, len(content))
    if of.order not in _ORDERS or type(content) is not _Bytes or min(shape, default=0) < 0:
        raise ValueError
    dtype = np.dtype(of.order + of.told)
    if prod(shape) * dtype.itemsize != content.length:
        raise ValueError
    array.start, array.shape, array.dtype, array.order = content.start, shape, dtype, "F" if by_columns else "C"


_STEPS: dict[bytes, Callable[[_Machine], object]] = {
    b"\x80": lambda machine: machine._take(1),
    b"\x95": lambda machine: machine._take(8),  # a frame, which only tells how much to read at once
    b"}": lambda machine: machine._push({}),
    b"]": lambda machine: machine._push([]),
    b")": lambda machine: machine._push(()),
    b"(": _Machine._mark,
    b"N": lambda machine: machine._push(None),
    b"\x88": lambda machine: machine._push(True),
    b"\x89": lambda machine: machine._push(False),
    b"K": lambda machine: machine._push(machine._number("<B")),
    b"M": lambda machine: machine._push(machine._number("<H")),
    b"J": lambda machine: machine._push(machine._number("<i")),
    b"G": lambda machine: machine._push(machine._number(">d")),
    b"\x8a": _Machine._long,
    b"X": lambda machine: machine._text("<I"),
    b"\x8c": lambda machine: machine._text("<B"),
    b"C": _Machine._short_bytes,
    b"U": _Machine._short_bytes,
    b"T": lambda machine: machine._bytes("<I"),
    b"B": lambda machine: machine._bytes("<I"),
    b"\x8e": lambda machine: machine._bytes("<Q"),
    b"\x96": lambda machine: machine._bytes("<Q"),  # a bytearray, of protocol 5
    b"t": lambda machine: machine._push(tuple(machine._marked())),
    b"\x85": lambda machine: machine._push(tuple(machine._popped(1))),
    b"\x86": lambda machine: machine._push(tuple(machine._popped(2))),
    b"\x87": lambda machine: machine._push(tuple(machine._popped(3))),
    b"a": lambda machine: machine._append(machine._popped(1)),
    b"e": lambda machine: machine._append(machine._marked()),
    b"s": lambda machine: machine._set(machine._popped(2)),
    b"u": lambda machine: machine._set(machine._marked()),
    b"c": lambda machine: machine._import([machine._line(), machine._line()]),
    b"\x93": lambda machine: machine._import(machine._popped(2)),
    b"R": _Machine._reduce,
    b"b": _Machine._build,
    b"q": lambda machine: machine._put("<B"),
    b"r": lambda machine: machine._put("<I"),
    b"\x94": _Machine._memoize,
    b"h": lambda machine: machine._get("<B"),
    b"j": lambda machine: machine._get("<I"),
}
