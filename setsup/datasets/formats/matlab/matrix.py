"""Check the matrices of a MAT file of version 5: whether their parts match their headers, without reading values.

Convention
----------
A matrix is a sequence of elements: flags, dimensions, name, and further elements of its class. Positions count from the
start of the variable's content.
"""

import math
import struct

from setsup.errors import DamagedFile, DataError

__all__ = ["COMPRESSED", "MATRIX", "check_matrix", "matrix_name"]

MATRIX, COMPRESSED = 14, 15

_INT8, _INT32, _UINT32, _UTF8 = 1, 5, 6, 16
# bytes of an element of each type
_NUMBERS = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
_TEXTS = {1: 1, 2: 1, 4: 2, 16: 1, 17: 2, 18: 4}
_CELL, _STRUCT, _CHAR = 1, 2, 4
_FIRST_NUMERIC, _LAST_NUMERIC = 6, 15
_REFUSED = {3: "an object", 5: "a sparse matrix", 16: "a function", 17: "an object of a MATLAB class"}
_DEEPEST = 32
_MOST_AXES = 32
_MOST_FIELDS = 4096
_LONGEST = 1 << 16  # an axis of an array without elements, or text without content, that costs memory all the same
_COMPLEX = 8


def matrix_name(content: memoryview, order: str, label: str) -> str:
    """Return the name of a variable from the first bytes of its content; "" for parts of functions and objects."""
    walk = _Walk(content, order, f"{label}: a variable")
    kind, _ = walk.flags()
    if kind != 17:
        walk.dimensions()
    return walk.text("name")


def check_matrix(content: memoryview, order: str, label: str) -> None:
    """Check that a matrix, with all nested ones, matches its headers."""
    walk = _Walk(content, order, label)
    try:
        walk.matrix(len(content), 0)
    finally:
        walk.view.release()


class _Walk:
    """A position in the content of one variable, advanced element by element."""

    def __init__(self, content: memoryview, order: str, label: str) -> None:
        self.view = content[:]
        self.label = label
        self.order = order
        self.position = 0
        self.words = struct.Struct(f"{order}II")

    def wrong(self, what: str) -> DataError:
        return DamagedFile(f"{self.label} is damaged at byte {self.position:,}: {what}")

    def element(self, what: str) -> tuple[int, int, int]:
        """Skip the next element, and return its type, first byte and length."""
        start = self.position + 8
        if start > len(self.view):
            raise self.wrong(f"the element {what!r} is missing")
        kind, size = self.words.unpack_from(self.view, self.position)
        if kind >> 16:  # four bytes at most stand in the header itself
            kind, size, start = kind & 0xFFFF, kind >> 16, start - 4
            if size > 4:
                raise self.wrong(f"the element {what!r} specifies {size} bytes, but its header has room for 4")
            self.position += 8
            return kind, start, size
        if size > len(self.view) - start:
            raise self.wrong(
                f"the element {what!r} specifies {size:,} bytes, but only {len(self.view) - start:,} follow"
            )
        # the last element of a file may lack the bytes that fill it up
        self.position = min(start + size + -size % 8, len(self.view))
        return kind, start, size

    def flags(self) -> tuple[int, int]:
        """Class and flags."""
        kind, start, size = self.element("flags")
        if (kind, size, start) != (_UINT32, 8, self.position - 8):
            raise self.wrong(f"its flags have {size} bytes of type {kind}; expected 8 bytes of type {_UINT32}")
        flags, _ = self.words.unpack_from(self.view, start)
        return flags & 0xFF, flags >> 8 & 0xFF

    def dimensions(self) -> tuple[int, ...]:
        kind, start, size = self.element("dimensions")
        if kind not in (_INT32, _UINT32) or size % 4 or not 2 <= size // 4 <= _MOST_AXES:
            raise self.wrong(
                f"its dimensions have {size} bytes of type {kind}; expected 2 to {_MOST_AXES} 32-bit integers"
            )
        lengths = struct.unpack_from(f"{self.order}{size // 4}i", self.view, start)
        if min(lengths) < 0:
            raise self.wrong(f"its dimensions are {lengths}; expected integers of at least 0")
        return lengths

    def text(self, what: str) -> str:
        kind, start, size = self.element(what)
        content = bytes(self.view[start : start + size])
        if kind not in (_INT8, _UTF8) or not content.isascii() or b"\n" in content:
            raise self.wrong(f"the element {what!r} is not plain ASCII text")
        return content.decode("ascii")

    def numbers(self, what: str, count: int) -> None:
        """Skip an element of ``count`` numbers."""
        kind, _, size = self.element(what)
        width = _NUMBERS.get(kind)
        if width is None:
            raise self.wrong(f"the element {what!r} is of type {kind}, which is not a numeric type")
        if size != count * width:
            raise self.wrong(f"the element {what!r} has {size:,} bytes; expected {count:,} numbers of {width} bytes")

    def matrix(self, end: int, depth: int) -> None:
        """Skip a matrix that ends at byte ``end``, and check all its parts."""
        if depth > _DEEPEST:
            raise self.wrong(f"its arrays are nested more than {_DEEPEST} levels deep")
        kind, flags = self.flags()
        if kind in _REFUSED:
            raise DataError(
                f"{self.label} contains {_REFUSED[kind]}, which setsup cannot read; save it as a struct or an array"
            )
        shape = self.dimensions()
        self.text("name")
        count = math.prod(shape)
        if not count and max(shape) > (_LONGEST if kind < _FIRST_NUMERIC else 1 << 31):
            raise self.wrong(f"its dimensions are {shape}")
        if kind == _CELL:
            self.nested(count, end, depth)
        elif kind == _STRUCT:
            self.nested(count * self.fields(count), end, depth)
        elif kind == _CHAR:
            self.characters(count)
        elif _FIRST_NUMERIC <= kind <= _LAST_NUMERIC:
            for part in ("numbers", "imaginary parts")[: 2 if flags & _COMPLEX else 1]:
                self.numbers(part, count)
        else:
            raise self.wrong(f"it has the unknown class {kind}")
        if self.position != end:
            raise self.wrong(f"its parts end here, but its header specifies byte {end:,} as the end")

    def nested(self, count: int, end: int, depth: int) -> None:
        if count > (end - self.position) // 8:
            raise self.wrong(f"it specifies {count:,} parts, more than its {end - self.position:,} bytes can contain")
        for _ in range(count):
            begin = self.position
            kind, start, size = self.element("part")
            if kind != MATRIX or start != begin + 8:
                raise self.wrong(f"one of its parts has type {kind}; expected type {MATRIX} (matrix)")
            if size:
                passed, self.position = self.position, start
                if passed != start + size:
                    raise self.wrong(f"one of its parts has {size:,} bytes, which is not a multiple of 8")
                self.matrix(start + size, depth + 1)

    def fields(self, count: int) -> int:
        """Skip the field names of a struct; return their number."""
        kind, start, size = self.element("length of field names")
        length = struct.unpack_from(f"{self.order}i", self.view, start)[0] if size == 4 else 0
        if kind != _INT32 or length < 1:
            raise self.wrong("the length of its field names is invalid")
        text = self.text("field names")
        names = [text[i : i + length] for i in range(0, len(text), length)]
        plain = [name.partition("\0")[0] for name in names]
        if len(text) % length or not all("\0" in name for name in names) or not all(plain):
            raise self.wrong("its field names are malformed")
        if len(set(plain)) != len(plain) or len(plain) > _MOST_FIELDS:
            raise self.wrong(f"its {len(plain):,} field names repeat, or exceed the limit of {_MOST_FIELDS:,}")
        if not plain and count > _LONGEST:
            raise self.wrong(f"it specifies {count:,} structs without fields")
        return len(plain)

    def characters(self, count: int) -> None:
        kind, _, size = self.element("text")
        if kind not in _TEXTS or size % _TEXTS[kind]:
            raise self.wrong(f"its text has {size:,} bytes of type {kind}, which is not a valid text")
        if count > (size or _LONGEST):
            raise self.wrong(f"it specifies {count:,} characters, but has {size:,} bytes of text")
