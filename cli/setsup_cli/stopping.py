"""How long work ends when it is stopped."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["terminated"]


@contextmanager
def terminated() -> Iterator[None]:
    """Take SIGTERM, as schedulers of clusters send it, for Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
