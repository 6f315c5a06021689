"""A fresh Python process that this one starts, and that ends with it.

No fork, which would inherit threads' locks and GL contexts. Nor does it import the user's script, which so needs no
``if __name__ == "__main__":``. It is tied to this process by one socket, and ends when that closes, however this
process ends.
"""

import os
import socket
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

__all__ = ["Process"]

_PATIENCE = 1.0  # seconds that a process has to end by itself


class Process:
    """A process that serves this one.

    Parameters
    ----------
    module : str
        Of this package; its function ``serve`` is called with the number of the socket.
    quiet : bool
        Whether what it writes to standard output and standard error is dropped.

    """

    def __init__(self, module: str, quiet: bool = False) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # a process group of its own: Ctrl-C in a terminal reaches this process alone
            self._process = subprocess.Popen(
                _command(module, theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if quiet else None,
                stderr=subprocess.DEVNULL if quiet else None,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                process_group=0,
            )
        self.end = Connection(ours.detach())

    def send(self, message: bytes) -> None:
        """Send it a message; that it is gone is noticed where its answer is waited for."""
        with suppress(OSError):
            self.end.send_bytes(message)

    def let_go(self) -> None:
        """Have it end, whatever it is at."""
        self.end.close()

    def ended(self, patience: float = _PATIENCE) -> int:
        """Wait for its end, for so many seconds until it is killed; its exit code."""
        self.end.close()
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:  # an interpreter that is busy in compiled code notices nothing
            self._process.kill()
            return self._process.wait()


def _command(module: str, end: int) -> list[str]:
    """Command line of a process: it imports what it needs, not the user's script."""
    path = [entry for entry in sys.path if isinstance(entry, str)]  # others mean nothing to imports
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; from {module} import serve; serve({end})"]
