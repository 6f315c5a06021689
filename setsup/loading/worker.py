"""A worker process of the loader: makes batches on request until the loader closes the connection."""

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
from setsup.loading.postprocess import Finish
from setsup.loading.stream import BatchBuilder, Request

__all__ = ["serve"]

_WHERE = "a worker process of the loader"


def serve(end: int, things: int) -> None:
    """Make batches until the other end closes."""
    loader = socket.socket(fileno=end)
    requested: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(loader, requested), daemon=True).start()
    make = _opened(things)
    with suppress(ConnectionError):  # the loader closed while a batch was being sent
        while True:
            ipc.send(loader, make(requested.get()))


def _listen(loader: socket.socket, requested: "queue.SimpleQueue[Request]") -> None:
    """Receive requests, so that the loader never waits to send one, and exit with the loader, even during a fetch."""
    try:
        while True:
            requested.put(ipc.receive(loader))
    finally:
        os._exit(0)


def _opened(things: int) -> Callable[[Request], ipc.Parts]:
    """Return a function from requests to packed batches or exceptions."""
    maker: BatchBuilder
    finish: Finish | None
    try:
        maker, finish = ipc.load(things)
        os.close(things)
        _one_thread()
    except Exception as error:
        failed = SetsupError(f"{_WHERE} cannot unpickle the dataset and transform: {describe(error)}")
        return lambda request: ipc.pack(failed)

    def make(request: Request) -> ipc.Parts:
        try:
            batch = maker.make(request)
            return ipc.pack(batch if finish is None else finish(batch))
        except Exception as error:
            return ipc.pack(to_portable(error, _WHERE))

    return make


def _one_thread() -> None:
    """Leave other cores to other workers."""
    from setsup.datasets import images

    images.threads = 1
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
