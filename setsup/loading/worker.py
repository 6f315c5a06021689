"""A worker process of the loader: makes the batches that it is asked for until the loader lets go of it."""

import os
import queue
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from setsup.errors import SetsupError
from setsup.jobs.sending import describe, to_portable
from setsup.loading import ipc
from setsup.loading.batch import Finish
from setsup.loading.stream import Maker, Request

__all__ = ["serve"]

_WHERE = "a worker process of the loader"


def serve(end: int, things: int) -> None:
    """Make batches until the other end closes."""
    loader = socket.socket(fileno=end)
    asked: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(loader, asked), daemon=True).start()
    make = _opened(things)
    with suppress(ConnectionError):  # the loader let go while a batch was on its way
        while True:
            ipc.send(loader, make(asked.get()))


def _listen(loader: socket.socket, asked: "queue.SimpleQueue[Request]") -> None:
    """Take requests in, so that the loader never waits to send one, and end with the loader, even amid a slow fetch."""
    try:
        while True:
            asked.put(ipc.receive(loader))
    finally:
        os._exit(0)


def _opened(things: int) -> Callable[[Request], ipc.Parts]:
    """What makes batches, or exceptions, of requests, ready to be sent."""
    maker: Maker
    finish: Finish | None
    try:
        maker, finish = ipc.load(things)
        os.close(things)
        _one_thread()
    except Exception as error:
        failed = SetsupError(f"{_WHERE} cannot open what it was sent: {describe(error)}")
        return lambda request: ipc.packed(failed)

    def make(request: Request) -> ipc.Parts:
        try:
            batch = maker.make(request)
            return ipc.packed(batch if finish is None else finish(batch))
        except Exception as error:
            return ipc.packed(to_portable(error, _WHERE))

    return make


def _one_thread() -> None:
    """Leave the other cores to the other workers."""
    from setsup.datasets import images

    images.threads = 1
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
