"""A fresh Python process that this one starts, and that ends with it.

No fork, which would inherit threads' locks, open files and GL contexts. Nor does it import the user's script, which so
needs no ``if __name__ == "__main__":``. It is tied to this process by one socket, and ends when that closes, however
this process ends; nothing else could be left behind, no named semaphore and no shared memory.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import IO, Any

__all__ = ["Process", "cause", "ended", "serve", "started"]

_PATIENCE = 1.0  # seconds that a process has to end by itself


class Process:
    """A process that serves this one by messages."""

    def __init__(self, module: str, quiet: bool = False) -> None:
        self._socket, self._process = started(module, quiet=quiet)
        self.end = Connection(os.dup(self._socket.fileno()))

    def send(self, message: bytes) -> None:
        """Send it a message; that it is gone is noticed where its answer is waited for."""
        with suppress(OSError):
            self.end.send_bytes(message)

    def let_go(self) -> None:
        """Have it end, whatever it is at."""
        with suppress(OSError):  # it may have ended by itself
            self._socket.shutdown(socket.SHUT_RDWR)

    def ended(self, patience: float = _PATIENCE) -> str:
        """Have it end, and wait for so many seconds until it is killed; how it ended, see :func:`ended`."""
        self.let_go()
        self.end.close()
        self._socket.close()
        return ended(self._process, patience)


def started(module: str, *files: IO[bytes], quiet: bool = False) -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    """Start a process.

    Returns (socket.socket, subprocess.Popen).
    """
    ours, theirs = socket.socketpair()
    with theirs, _passed(theirs, *files) as numbers:
        path = [entry for entry in sys.path if isinstance(entry, str)]  # others mean nothing to imports
        code = (
            f"import sys; sys.path[:] = {path!r}; from setsup.jobs.process import serve; serve({module!r}, {numbers})"
        )
        try:
            # a process group of its own: Ctrl-C in a terminal reaches this process alone
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if quiet else None,
                stderr=subprocess.DEVNULL if quiet else None,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                process_group=0,
            )
        except BaseException:
            ours.close()
            raise
    return ours, process


def ended(process: "subprocess.Popen[bytes]", patience: float = _PATIENCE) -> str:
    """Wait for the end of a process, for so many seconds until it is killed: ``by SIGKILL``, ``with exit code 1``."""
    try:
        code = process.wait(patience)
    except subprocess.TimeoutExpired:  # an interpreter that is busy in compiled code notices nothing
        process.kill()
        code = process.wait()
    try:
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    except ValueError:  # one without a name
        return f"by signal {-code}"


def cause(how: str, advice: str) -> str:
    """Say what most likely ended a process, and what to do."""
    if how == "by SIGBUS":
        return (
            "most likely because a file that it had mapped into memory was cut off or could not be read just then: see "
            "that nothing writes to the files of the dataset, put them back whole, and start again"
        )
    return f"perhaps for lack of memory: {advice}"


def serve(module: str, numbers: Sequence[int]) -> None:
    """Do in a process that was started what it is for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the affair of who started this, and then lets go
    for number in numbers:
        os.set_inheritable(number, False)  # a child of this process would keep it open after the end of this one
    import_module(module).serve(*numbers)


@contextmanager
def _passed(*files: socket.socket | IO[bytes]) -> Iterator[list[int]]:
    """Numbers under which a child may have open files: not those of standard streams, which are free where closed."""
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    numbers: list[Any] = []
    try:
        numbers += (fcntl(file.fileno(), F_DUPFD_CLOEXEC, 3) for file in files)
        yield numbers
    finally:
        for number in numbers:
            os.close(number)
