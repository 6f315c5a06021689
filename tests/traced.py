"""Memory that Python allocates in a block, by tracemalloc, in a process in which other threads may run."""

import faulthandler
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["traced"]


@contextmanager
def traced() -> Iterator[None]:
    """Trace memory in a block.

    Before Python 3.12.9, ``tracemalloc.stop()`` ends the process by a segmentation fault where a thread of a library,
    such as a reader of pyarrow or a Ray cluster, waits for the interpreter lock to have its allocation traced
    (python/cpython#128679). So it is called while no such thread waits.
    """
    tracemalloc.start()
    try:
        yield
    finally:
        with tempfile.TemporaryFile() as file:
            for _ in range(1_000):
                if not _waits(file):
                    break
                time.sleep(0.001)
            tracemalloc.stop()


def _waits(file: "tempfile._TemporaryFileWrapper[bytes]") -> bool:
    """Whether a thread that runs no Python has a state in the interpreter."""
    start = file.seek(0, 2)
    faulthandler.dump_traceback(file)
    file.seek(start)
    return b"<no Python frame>" in file.read()
