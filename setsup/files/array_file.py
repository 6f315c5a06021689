"""Files of arrays: a line of JSON, then arrays that are mapped, and a digest of all of it.

The file begins with eight bytes that name the format and the length of the JSON as an unsigned 64-bit integer. Arrays
begin at multiples of 64 bytes.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.errors import DamagedFile
from setsup.files import need_readable
from setsup.files.atomic import written
from setsup.files.disk import need_regular, read_errors
from setsup.files.mapped import MappedFile

__all__ = ["digest_of", "read", "write"]

_MAGIC = b"setsupO1"
_HEAD = struct.Struct("<8sQ")
_ALIGNED = 64
_LARGEST = 1 << 24  # bytes of JSON
_BLOCK = 1 << 24  # bytes looked at together


def digest_of(about: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """Digest of a file, 32 hexadecimal digits: a function of its content alone."""
    digest = hashlib.blake2b(_words(about).encode(), digest_size=16)
    for name, array in arrays.items():
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        flat = np.ascontiguousarray(array).reshape(-1)
        step = max(_BLOCK // array.dtype.itemsize, 1)
        for start in range(0, len(flat), step):
            digest.update(flat[start : start + step].tobytes())
    return digest.hexdigest()


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a file, atomically."""
    shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    head = _words({"about": dict(about), "arrays": shapes, "digest": digest_of(about, arrays)}).encode()
    with written(path) as part, part.open("wb") as file:
        file.write(_HEAD.pack(_MAGIC, len(head)) + head)
        for array in arrays.values():
            file.write(bytes(-file.tell() % _ALIGNED))
            file.write(np.ascontiguousarray(array).data)


def read(path: Path, dtypes: Mapping[str, str], what: str, fix: str) -> tuple[dict[str, Any], dict[str, Array], str]:
    """Read what was written about arrays, these, mapped, and the digest; a DataError unless they are intact.

    `what` the file is, such as ``an overlap table``, and what to do with a damaged one, for messages.
    """
    need_readable(path, what)
    need_regular(path)
    with read_errors(path):
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(_HEAD.size)
            magic, length = _HEAD.unpack(start) if len(start) == _HEAD.size else (b"", 0)
            if magic != _MAGIC:
                raise DamagedFile(f"{path} is not {what}", f"pass the path of {what}", file=path)
            if length > min(_LARGEST, size - _HEAD.size):
                raise DamagedFile(f"{path} is truncated or damaged", fix, file=path)
            text = file.read(length)
        mapped = MappedFile.open(path)
    try:
        head = json.loads(text)
        about, shapes, digest = head["about"], head["arrays"], head["digest"]
        sound = isinstance(about, dict) and {name: one[0] for name, one in shapes.items()} == dict(dtypes)
        sizes = [tuple(map(_side, one[1])) for one in shapes.values()]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        sound, sizes = False, []
    arrays: dict[str, Array] = {}
    at = _HEAD.size + length
    for name, shape in zip(dtypes, sizes, strict=False):
        dtype, begin = np.dtype(dtypes[name]), at
        at += -at % _ALIGNED
        sound = sound and not any(mapped[begin:at])
        count = 1
        for side in shape:
            count *= side
        if at + count * dtype.itemsize > size:
            raise DamagedFile(f"{path} is truncated: {name} ends beyond its {size:,} bytes", fix, file=path)
        arrays[name] = np.frombuffer(mapped, dtype, count, at).reshape(shape)
        at += count * dtype.itemsize
    if not sound or at != size or list(shapes) != list(dtypes) or digest_of(about, arrays) != digest:
        raise DamagedFile(f"{path} is damaged: its content does not match its digest", fix, file=path)
    return about, arrays, str(digest)


def _side(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


def _words(content: Mapping[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)
