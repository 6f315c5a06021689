"""Messages between the loader and its worker processes: pickles with large arrays out of band.

Classes of a script or notebook are pickled by value, and are the same classes again on the way back. The other end is
always a process that the loader started. Arrays are received into reusable buffers; what all workers need is written
once, into an unnamed file that each of them maps.
"""

import mmap
import os
import pickle
import socket
import struct
import sys
import tempfile
from contextlib import suppress
from io import BytesIO
from typing import IO, Any

import cloudpickle
import numpy as np
import numpy.typing as npt

from setsup.loading.ring import Allocate

__all__ = ["Parts", "load", "pack", "receive", "send", "store"]

Parts = list[memoryview]

_LARGE = 1 << 15  # bytes from which an array is sent out of band
_ALIGNED = 64
_LENGTH = struct.Struct("<Q")


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Sends arrays of any memory order in one piece, and tensors as the arrays that share their memory."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray) and thing.ndim > 1 and not thing.flags.c_contiguous:
            axes = np.argsort([-stride for stride in thing.strides], kind="stable")
            if (laid := thing.transpose(axes)).flags.c_contiguous:
                return np.transpose, (laid, tuple(np.argsort(axes).tolist()))
        torch = sys.modules.get("torch")
        if torch is not None and type(thing) is torch.Tensor:
            with suppress(TypeError, RuntimeError):  # types unknown to numpy are pickled by torch
                return _tensor, (thing.numpy(),)
        return super().reducer_override(thing)


def _tensor(array: npt.NDArray[Any]) -> Any:
    import torch

    return torch.from_numpy(array)


def pack(thing: Any) -> Parts:
    """Pickle an object: a header with the number and sizes of the parts, the pickle, and the large arrays."""
    large: Parts = []

    def inside(buffer: pickle.PickleBuffer) -> bool:
        small = buffer.raw().nbytes < _LARGE
        if not small:
            large.append(buffer.raw())
        return small

    body = BytesIO()
    _Pickler(body, protocol=5, buffer_callback=inside).dump(thing)
    parts = [memoryview(body.getvalue()), *large]  # no copy, and no export that a BytesIO in a cycle could not free
    head = struct.pack(f"<{1 + len(parts)}Q", len(parts), *(part.nbytes for part in parts))
    return [memoryview(head), *parts]


def send(end: socket.socket, parts: Parts) -> None:
    """Send the parts of :func:`pack`."""
    for part in parts:
        end.sendall(part)


def receive(end: socket.socket, allocate: Allocate = np.empty) -> Any:
    """Receive an object."""
    (count,) = _LENGTH.unpack(_filled(end, memoryview(bytearray(_LENGTH.size))))
    sizes = struct.unpack(f"<{count}Q", _filled(end, memoryview(bytearray(count * _LENGTH.size))))
    body = _filled(end, memoryview(bytearray(sizes[0])))
    large = [_filled(end, allocate((size,), np.dtype(np.uint8)).data) for size in sizes[1:]]
    return pickle.loads(body, buffers=large)  # noqa: S301 - written by our own process


def store(things: Any) -> IO[bytes]:
    """Write objects once for several processes, into an unnamed file that vanishes with the last of them."""
    head, *parts = pack(things)
    file = os.fdopen(os.memfd_create("setsup"), "w+b") if hasattr(os, "memfd_create") else tempfile.TemporaryFile()
    file.write(head)
    for part in parts:
        file.write(b"\0" * (-file.tell() % _ALIGNED))
        file.write(part)
    file.flush()
    return file


def load(number: int) -> Any:
    """Read what :func:`store` wrote, by its file descriptor; large arrays are copy-on-write."""
    memory = memoryview(mmap.mmap(number, 0, access=mmap.ACCESS_COPY))
    (count,) = _LENGTH.unpack_from(memory)
    start, parts = _LENGTH.size * (1 + count), []
    for size in struct.unpack_from(f"<{count}Q", memory, _LENGTH.size):
        start += -start % _ALIGNED
        parts.append(memory[start : start + size])
        start += size
    return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - written by our own process


def _filled(end: socket.socket, part: memoryview) -> memoryview:
    filled = 0
    while filled < len(part):
        received = end.recv_into(part[filled:], 0, socket.MSG_WAITALL)
        if received == 0:
            raise EOFError
        filled += received
    return part
