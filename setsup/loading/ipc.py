"""Messages between the loader and its worker processes: pickles whose large arrays travel beside them, not inside.

What is defined in a script or a notebook is written by value, and is the same class again when it comes back.
Only processes that the loader started itself are at the other end. Arrays are received into buffers that are used
again, and what all workers need is written once, into a file without a name that each of them maps.
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

__all__ = ["Parts", "load", "packed", "receive", "send", "store"]

Parts = list[memoryview]

_LARGE = 1 << 15  # bytes from which an array travels beside the pickle
_ALIGNED = 64
_LENGTH = struct.Struct("<Q")


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Lays arrays of any order out in one piece, and sends tensors as the arrays they share their memory with."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray) and thing.ndim > 1 and not thing.flags.c_contiguous:
            axes = np.argsort([-stride for stride in thing.strides], kind="stable")
            if (laid := thing.transpose(axes)).flags.c_contiguous:
                return np.transpose, (laid, tuple(np.argsort(axes).tolist()))
        torch = sys.modules.get("torch")
        if torch is not None and type(thing) is torch.Tensor:
            with suppress(TypeError, RuntimeError):  # what numpy does not know goes torch's own way
                return _tensor, (thing.numpy(),)
        return super().reducer_override(thing)


def _tensor(array: npt.NDArray[Any]) -> Any:
    import torch

    return torch.from_numpy(array)


def packed(thing: Any) -> Parts:
    """Pickle anything: how many parts there are and their sizes, the pickle, and the arrays beside it."""
    beside: Parts = []

    def inside(buffer: pickle.PickleBuffer) -> bool:
        small = buffer.raw().nbytes < _LARGE
        if not small:
            beside.append(buffer.raw())
        return small

    body = BytesIO()
    _Pickler(body, protocol=5, buffer_callback=inside).dump(thing)
    parts = [body.getbuffer(), *beside]
    head = struct.pack(f"<{1 + len(parts)}Q", len(parts), *(part.nbytes for part in parts))
    return [memoryview(head), *parts]


def send(end: socket.socket, parts: Parts) -> None:
    """Send what was packed."""
    for part in parts:
        end.sendall(part)


def receive(end: socket.socket, allocate: Allocate = np.empty) -> Any:
    """Receive what the other end sent."""
    (count,) = _LENGTH.unpack(_filled(end, memoryview(bytearray(_LENGTH.size))))
    sizes = struct.unpack(f"<{count}Q", _filled(end, memoryview(bytearray(count * _LENGTH.size))))
    body = _filled(end, memoryview(bytearray(sizes[0])))
    large = [_filled(end, allocate((size,), np.dtype(np.uint8)).data) for size in sizes[1:]]
    return pickle.loads(body, buffers=large)  # noqa: S301 - our own process wrote it


def store(things: Any) -> IO[bytes]:
    """Write things once for several processes, into a file that has no name and goes away with the last of them."""
    head, *parts = packed(things)
    file = os.fdopen(os.memfd_create("setsup"), "w+b") if hasattr(os, "memfd_create") else tempfile.TemporaryFile()
    file.write(head)
    for part in parts:
        file.write(b"\0" * (-file.tell() % _ALIGNED))
        file.write(part)
    file.flush()
    return file


def load(number: int) -> Any:
    """Read what :func:`store` wrote, from the number of its file; large arrays are copied when they are written to."""
    memory = memoryview(mmap.mmap(number, 0, access=mmap.ACCESS_COPY))
    (count,) = _LENGTH.unpack_from(memory)
    place, parts = _LENGTH.size * (1 + count), []
    for size in struct.unpack_from(f"<{count}Q", memory, _LENGTH.size):
        place += -place % _ALIGNED
        parts.append(memory[place : place + size])
        place += size
    return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - our own process wrote it


def _filled(end: socket.socket, place: memoryview) -> memoryview:
    filled = 0
    while filled < len(place):
        received = end.recv_into(place[filled:], 0, socket.MSG_WAITALL)
        if received == 0:
            raise EOFError
        filled += received
    return place
