"""Units of work that are functions of their data alone, done here or by several processes of this machine.

A unit says what is to be done, not where: whoever does it, and however often, the outcome is the same. What a unit
makes goes to files; what it gives back is small.

Worker processes are fresh ones, not forks: a fork would inherit threads' locks and GL contexts. Nor do they import the
user's script, so it needs no ``if __name__ == "__main__":``. Each is tied to this process by one socket, and ends when
that closes, however this process ends.
"""

import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

import cloudpickle

from setsup.errors import SetsupError
from setsup.progress import Advance, progress

__all__ = ["Unit", "check_processes", "run"]

Data = TypeVar("Data")
Result = TypeVar("Result")

_TRIES = 2  # a process may be killed for what others do, such as for their memory
_NONE = -1  # no unit
_PATIENCE = 1.0  # seconds that a worker has to end by itself

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class Unit(Generic[Data]):
    """One piece of the work.

    Parameters
    ----------
    name : str
        What messages call it, such as ``"rows 0 … 63"``.
    data : any
        What the function is given; it can be pickled.
    size : int
        How much of the work it is, for the progress bar.

    """

    name: str
    data: Data
    size: int = 1


def run(
    function: Callable[[Data], Result],
    units: Iterable[Unit[Data]],
    *,
    processes: int = 1,
    what: str = "working",
    counted: str = "units",
) -> list[Result]:
    """Do units of work, each exactly once as far as its result goes.

    A unit whose process is killed (by the system, for lack of memory, or by a driver that crashes) is done once more in
    a fresh process. The first exception ends the work, as Ctrl-C does; nothing is left running. What other units have
    made by then stays, so that a function which skips what is there goes on where the work was left.

    Parameters
    ----------
    function : callable
        Called with the data of a unit. For several processes it must pickle, as what scripts and notebooks define does.
    units : iterable of Unit
        In the order in which they are begun.
    processes : int
        1 works in this process.
    what, counted : str
        Name of the work and of what sizes count, for the progress bar.

    Returns
    -------
    list
        What the function gave, in the order of the units.

    Raises
    ------
    SetsupError
        When the function cannot be sent, or a process is killed twice over one unit, which is named.
    Exception
        Whatever the function raises; from another process, unless it is a SetsupError, with a note that names the unit.

    Examples
    --------
    >>> squares = [Unit(f"number {number}", number) for number in range(4)]
    >>> run(lambda number: number**2, squares, processes=2)
    [0, 1, 4, 9]

    """
    check_processes(processes)
    listed = list(units)
    with progress(sum(unit.size for unit in listed), what, counted) as advance:
        if processes == 1 or len(listed) < 2:
            return [_done_here(function, unit, advance) for unit in listed]
        return _Crew(function, listed, min(processes, len(listed)), advance).results()


def check_processes(processes: int) -> None:
    """Refuse what is no number of processes.

    Raises
    ------
    SetsupError
        When it is no whole number from 1 on.

    """
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise SetsupError(f"processes must be a whole number from 1 on, not {processes!r}")


def _done_here(function: Callable[[Data], Result], unit: Unit[Data], advance: Advance) -> Result:
    found = function(unit.data)
    advance(unit.size)
    return found


class _Crew:
    """Worker processes that take units as they come free."""

    def __init__(
        self, function: Callable[[Any], Any], units: Sequence[Unit[Any]], processes: int, advance: Advance
    ) -> None:
        try:
            self._sent = cloudpickle.dumps(function)
        except Exception as error:
            raise SetsupError(
                f"the work cannot be sent to other processes ({_said(error)}): leave out what it holds open (files, "
                "locks, generators), or use one process"
            ) from None
        self._units, self._processes, self._advance = units, processes, advance
        self._waiting = deque(range(len(units)))
        self._tries = [0] * len(units)
        self._results: list[Any] = [None] * len(units)
        self._left = len(units)
        self._workers: dict[Connection, _Worker] = {}

    def results(self) -> list[Any]:
        """Do all units."""
        try:
            while len(self._workers) < self._processes:
                self._start()
            while self._left:
                for end in wait(list(self._workers)):
                    self._hear(self._workers[end])  # type: ignore[index]
        finally:
            for worker in self._workers.values():
                worker.let_go()
            for worker in self._workers.values():
                worker.ended()
        return self._results

    def _start(self) -> None:
        worker = _Worker(self._sent)
        self._workers[worker.end] = worker
        self._give(worker)

    def _give(self, worker: "_Worker") -> None:
        """Hand a free worker its next unit."""
        if self._waiting:
            number = self._waiting.popleft()
            self._tries[number] += 1
            worker.do(number, self._units[number].data)

    def _hear(self, worker: "_Worker") -> None:
        """Take what a worker has done, or do without it."""
        try:
            failed, found = worker.answer()
        except (EOFError, OSError):
            self._replace(worker)
            return
        number, worker.number = worker.number, _NONE
        if failed:
            if not isinstance(found, SetsupError):  # whose sentence says it all
                found.add_note(f"in {self._units[number].name}, in a worker process")
            raise found
        self._results[number] = found
        self._left -= 1
        self._advance(self._units[number].size)
        self._give(worker)

    def _replace(self, worker: "_Worker") -> None:
        """Begin its unit again, in a fresh process, unless that is killed a second time."""
        del self._workers[worker.end]
        code, number = worker.ended(), worker.number
        if number == _NONE:  # it had nothing to do any more
            return
        unit = self._units[number].name
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        if self._tries[number] == _TRIES:
            raise SetsupError(
                f"a worker process ended {how} while it worked on {unit}, as one did before it: perhaps for lack of "
                "memory, so use fewer processes; or use one process to see the error itself"
            )
        _log.warning("a worker process ended %s while it worked on %s, which is begun again", how, unit)
        self._waiting.appendleft(number)
        self._start()


class _Worker:
    """One worker process, seen from here."""

    number = _NONE
    """The unit at work, if any."""

    def __init__(self, function: bytes) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # a process group of its own: Ctrl-C in a terminal reaches this process alone
            self._process = subprocess.Popen(
                _command(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                process_group=0,
            )
        self.end = Connection(ours.detach())
        self._send(function)

    def do(self, number: int, data: Any) -> None:
        """Begin a unit."""
        self.number = number
        self._send(cloudpickle.dumps(data))

    def answer(self) -> tuple[bool, Any]:
        """Whether the unit failed, and what it gave or raised; EOFError where the process is gone."""
        found: tuple[bool, Any] = pickle.loads(self.end.recv_bytes())  # noqa: S301 - our own process wrote it
        return found

    def let_go(self) -> None:
        """Have the process end, whatever it is at."""
        self.end.close()

    def ended(self) -> int:
        """Wait for the end of the process; its exit code."""
        self.end.close()
        try:
            return self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:  # an interpreter that is busy in compiled code notices nothing
            self._process.kill()
            return self._process.wait()

    def _send(self, message: bytes) -> None:
        with suppress(OSError):  # a process that is gone is noticed where its answer is waited for
            self.end.send_bytes(message)


# -- in a worker process -----------------------------------------------------------------------------------------------


def _command(end: int) -> list[str]:
    """Command line of a worker: it imports what it needs, not the user's script."""
    path = [entry for entry in sys.path if isinstance(entry, str)]  # others mean nothing to imports
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; from setsup.jobs import _serve; _serve({end})"]


def _serve(number: int) -> None:
    """Do units until the other end of a socket closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the affair of who started this, and then lets go
    os.set_inheritable(number, False)  # a child of this process would keep it open after the end of this one
    end = Connection(number)
    asked: deque[bytes] = deque()
    there = threading.Semaphore(0)

    def listen() -> None:
        # ends with who started this, even amid a slow unit
        try:
            while True:
                asked.append(end.recv_bytes())
                there.release()
        finally:
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    there.acquire()
    function = _function(asked.popleft())
    while True:
        there.acquire()
        with suppress(OSError):  # the other end is gone; the listener ends this
            end.send_bytes(_answer(function, asked.popleft()))


def _function(sent: bytes) -> Callable[[Any], Any]:
    try:
        found: Callable[[Any], Any] = pickle.loads(sent)  # noqa: S301 - who started this process wrote it
    except Exception as error:
        failed = SetsupError(f"a worker process cannot open what it was sent: {_said(error)}")

        def fail(data: Any) -> Any:
            raise failed

        return fail
    return found


def _answer(function: Callable[[Any], Any], data: bytes) -> bytes:
    try:
        found: bytes = cloudpickle.dumps((False, function(pickle.loads(data))))  # noqa: S301
    except Exception as error:
        found = cloudpickle.dumps((True, _portable(error)))
    return found


def _portable(error: Exception) -> Exception:
    """The exception, or where that does not survive the journey one that says the same."""
    if not isinstance(error, SetsupError):
        error.add_note("".join(traceback.format_exception(error)).rstrip())
    try:
        pickle.loads(cloudpickle.dumps(error))  # noqa: S301
    except Exception:
        return SetsupError(f"a worker process failed: {_said(error)}")
    return error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
