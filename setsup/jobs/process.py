"""A fresh Python process that this one starts, and that ends with it.

It is not forked, which would inherit threads' locks, open files and GL contexts, and it does not import the user's
script, which needs no ``if __name__ == "__main__":``. One socket ties it to this process: it ends when that closes,
however this process ends. There is no named semaphore and no shared memory that could be left behind.
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

__all__ = ["MessageProcess", "Process", "cause", "serve"]

_PATIENCE = 1.0  # seconds that a process has to end by itself


class Process:
    """A process that serves this one over a socket.

    It runs ``serve`` of a module, which is given the numbers of its end of the socket and of further open files.
    """

    def __init__(self, module: str, *files: IO[bytes], quiet: bool = False) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs, _passed(theirs, *files) as numbers:
            path = [entry for entry in sys.path if isinstance(entry, str)]  # others mean nothing to imports
            code = (
                f"import sys; sys.path[:] = {path!r}; "
                f"from setsup.jobs.process import serve; serve({module!r}, {numbers})"
            )
            try:
                # a process group of its own: Ctrl-C in a terminal reaches this process alone
                self._process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    pass_fds=numbers,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL if quiet else None,
                    stderr=subprocess.DEVNULL if quiet else None,
                    env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                    process_group=0,
                )
            except BaseException:
                self.socket.close()
                raise

    def shutdown(self) -> None:
        """Have it end, even amid its work."""
        with suppress(OSError):  # it may have ended by itself
            self.socket.shutdown(socket.SHUT_RDWR)

    def end(self, patience: float = _PATIENCE) -> str:
        """Wait for its end, and kill it after so many seconds; returns ``by SIGKILL`` or ``with exit code 1``."""
        self.shutdown()
        self.socket.close()
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:  # an interpreter that is busy in compiled code notices nothing
            self._process.kill()
            code = self._process.wait()
        try:
            return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        except ValueError:  # one without a name
            return f"by signal {-code}"


class MessageProcess(Process):
    """A process that serves this one by messages of bytes."""

    def __init__(self, module: str, quiet: bool = False) -> None:
        super().__init__(module, quiet=quiet)
        self.connection = Connection(os.dup(self.socket.fileno()))

    def send(self, message: bytes) -> None:
        """Send a message; that the process is gone is noticed where its answer is received."""
        with suppress(OSError):
            self.connection.send_bytes(message)

    def end(self, patience: float = _PATIENCE) -> str:
        """Wait for its end, as :meth:`Process.end` does."""
        self.shutdown()
        self.connection.close()
        return super().end(patience)


_CRASHES = ("by SIGSEGV", "by SIGABRT", "by SIGFPE", "by SIGILL")


def cause(how: str, advice: str) -> str:
    """Say what most likely ended a process, and what to do.

    Examples
    --------
    >>> cause("by SIGKILL", "use fewer processes")
    'most likely killed by the operating system because memory ran out; use fewer processes'

    """
    if how == "by SIGBUS":
        return (
            "most likely because a memory-mapped file was truncated or could not be read; make sure that nothing "
            "writes to the files of the dataset, restore them, and start again"
        )
    if how == "by SIGKILL":
        return f"most likely killed by the operating system because memory ran out; {advice}"
    if how in _CRASHES:
        return f"because compiled code in it crashed; {advice}"
    if how.startswith("by "):
        return f"possibly stopped by another program; {advice}"
    return f"possibly by code that it ran; {advice}"


def serve(module: str, numbers: Sequence[int]) -> None:
    """Run the ``serve`` of a module, in the process that was started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one handles it, and shuts this down
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
