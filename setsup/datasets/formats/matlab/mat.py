"""MATLAB files of version 5 (and 6, 7), checked completely before scipy reads them.

Convention
----------
Variables are returned as by ``scipy.io.loadmat``: at least two axes, numbers in the type in which the file stores them,
text as str arrays, structs as structured arrays and cells as object arrays.
"""

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from setsup.datasets.formats.matlab.matrix import COMPRESSED, MATRIX, check_matrix, matrix_name
from setsup.errors import DamagedFile, DataError
from setsup.files import need_readable
from setsup.files.disk import read_errors

__all__ = ["read_mat"]

_HEADER = 128
_HDF5 = b"\x89HDF\r\n\x1a\n"
_START = 4096  # inflated bytes in which the name of a variable is sought
_PIECE = 1 << 16
_MOST_RATIO = 1032  # of deflate
_TEXT = b"MATLAB 5.0 MAT-file"


class _Element(NamedTuple):
    """An element of the file: its type (a matrix or a compressed one) and its content."""

    kind: int
    content: memoryview


def read_mat(source: Path | bytes, label: str, names: Sequence[str] | None, limit: int) -> dict[str, Any]:
    """Read variables of a MAT file of version 5.

    Every length, every product of dimensions and the type of every part is checked against the available bytes before
    memory is allocated; only then does scipy read them. Requested variables that are sparse matrices, functions or
    objects of MATLAB classes are refused.
    """
    import warnings

    from scipy.io import loadmat

    read: Any = loadmat  # its annotations know neither open files nor the codec
    content = _content(source, label, limit)
    order = _byte_order(content, label)
    plain, present = _plain(content, order, label, None if names is None else set(names), limit)
    missing = [name for name in names or () if name not in present]
    if missing:
        known = ", ".join(present[:12]) or "nothing"
        raise DataError(f"{label} has no variable {', '.join(missing)} (available: {known}); fetch the published file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            variables = read(plain, variable_names=names, uint16_codec="utf-16-le" if order == "<" else "utf-16-be")
    except Exception as error:  # scipy raises whatever it stumbles over
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise DamagedFile(f"{label} could not be read as a MAT file: {why[:200]}") from error
    return {name: variables[name] for name in (present if names is None else names)}


def _content(source: Path | bytes, label: str, limit: int) -> bytes:
    if isinstance(source, Path):
        need_readable(source, "a MAT file")
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if size > limit:
        raise DataError(
            f"{label} has {size:,} bytes, more than the limit of {limit:,}; replace it with the published file"
        )
    if isinstance(source, bytes):
        return source
    with read_errors(label):
        return source.read_bytes()


def _byte_order(content: bytes, label: str) -> str:
    """Byte order of the file's numbers for struct; refuses other versions."""
    head = content[:_HEADER]
    if content[:8] == _HDF5 or content[512:520] == _HDF5 or head[:10] == b"MATLAB 7.3":
        raise DataError(
            f"{label} is a MAT v7.3 file (HDF5); expected a MAT v5 file; fetch it again, or save it in MATLAB with -v7"
        )
    mark = head[126:128]
    # numbers of version 4 begin with their format code, of which a byte at least is zero
    if len(head) >= 20 and mark not in (b"IM", b"MI") and 0 in head[:4] and max(head[:4]) <= 52:
        raise DataError(
            f"{label} is a MAT v4 file, or not a MAT file; expected a MAT v5 file; fetch it again, or save it in "
            "MATLAB with -v7"
        )
    if len(head) < _HEADER or mark not in (b"IM", b"MI"):
        raise DamagedFile(
            f"{label} is not a MAT v5 file: it begins with {head[:16]!r}; expected 128 bytes that end in IM or MI"
        )
    order = "<" if mark == b"IM" else ">"
    version = struct.unpack(f"{order}H", head[124:126])[0]
    if version != 0x0100:
        raise DamagedFile(f"{label} has the MAT version {version:#06x} in its header; expected 0x0100")
    return order


def _plain(content: bytes, order: str, label: str, wanted: set[str] | None, limit: int) -> tuple[io.BytesIO, list[str]]:
    """Write the requested variables, inflated and checked, to a file that scipy can read; and list all variables."""
    plain = io.BytesIO()
    plain.write(_TEXT.ljust(124) + struct.pack(f"{order}H", 0x0100) + (b"IM" if order == "<" else b"MI"))
    there: list[str] = []
    for element in _elements(memoryview(content), order, label):
        start = plain.tell()
        plain.write(bytes(8))
        name = _copy(element, plain, order, label, wanted, limit)
        # what has no name holds what functions refer to, which nobody asks for
        if not name or (wanted is not None and name not in wanted):
            plain.seek(start)
            plain.truncate()
        else:
            size = plain.tell() - start - 8
            with plain.getbuffer() as whole, whole[start + 8 :] as matrix:
                check_matrix(matrix, order, f"{label}: the variable {name!r}")
            plain.write(bytes(-size % 8))
            plain.seek(start)
            plain.write(struct.pack(f"{order}II", MATRIX, size + -size % 8))
            plain.seek(0, io.SEEK_END)
        if name and name in there:
            raise DamagedFile(f"{label} has two variables named {name!r}")
        if name:
            there.append(name)
    plain.seek(0)
    return plain, there


def _elements(content: memoryview, order: str, label: str) -> Iterator[_Element]:
    position = _HEADER
    while position < len(content):
        if position + 8 > len(content):
            raise DamagedFile(f"{label} ends inside the header of an element, at byte {len(content):,}")
        kind, size = struct.unpack_from(f"{order}II", content, position)
        if kind not in (MATRIX, COMPRESSED):
            raise DataError(
                f"{label} has an element of type {kind} at byte {position:,}; expected type 14 (matrix) or 15 "
                "(compressed)"
            )
        position += 8
        if size > len(content) - position:
            raise DamagedFile(
                f"{label} is truncated or damaged: an element at byte {position - 8:,} specifies {size:,} bytes, but "
                f"only {len(content) - position:,} follow"
            )
        yield _Element(kind, content[position : position + size])
        position += size


def _copy(element: _Element, plain: io.BytesIO, order: str, label: str, wanted: set[str] | None, limit: int) -> str:
    """Append the content of a matrix if it is requested; return its name."""
    if element.kind == MATRIX:
        name = matrix_name(element.content, order, label)
        if wanted is None or name in wanted:
            plain.write(element.content)
        return name
    pieces = _inflate(element.content, label)
    start = bytearray()
    for piece in pieces:
        start += piece
        if len(start) >= _START:
            break
    if len(start) < 8:
        raise DamagedFile(f"{label}: a compressed variable ends after {len(start)} bytes")
    kind, size = struct.unpack_from(f"{order}II", start)
    if kind != MATRIX:
        raise DamagedFile(f"{label}: a compressed element is of type {kind}; expected {MATRIX}")
    room = limit + _HEADER - plain.tell()
    name = matrix_name(memoryview(start)[8 : 8 + size], order, label)
    if wanted is not None and name not in wanted:
        return name
    if size > min(room, _MOST_RATIO * len(element.content)):
        raise DamagedFile(
            f"{label}: the variable {name!r} specifies {size:,} bytes, more than "
            f"{'the limit for the file' if size > room else 'its compressed bytes can contain'}"
        )
    begun = plain.tell()
    plain.write(memoryview(start)[8:])
    for piece in pieces:
        plain.write(piece)
        if plain.tell() - begun > size:
            break
    if plain.tell() - begun != size:
        more = "more" if plain.tell() - begun > size else f"{plain.tell() - begun:,}"
        raise DamagedFile(f"{label}: the variable {name!r} specifies {size:,} bytes, but contains {more}")
    return name


def _inflate(packed: memoryview, label: str) -> Iterator[bytes]:
    """Inflate in pieces of at most 64 KiB."""
    stream = zlib.decompressobj()
    try:
        for start in range(0, len(packed), _PIECE):
            rest: bytes | memoryview = packed[start : start + _PIECE]
            while len(rest):
                yield stream.decompress(rest, _PIECE)
                rest = stream.unconsumed_tail
        while not stream.eof:
            piece = stream.decompress(b"", _PIECE)
            if not piece:
                break
            yield piece
    except zlib.error as error:
        raise DamagedFile(f"{label} is damaged: a compressed variable cannot be inflated ({error})") from error
    if not stream.eof:
        raise DamagedFile(f"{label} is truncated: a compressed variable ends before its last byte")
