"""Worker processes of this machine that take units as they come free."""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from setsup.errors import SetsupError
from setsup.jobs.process import MessageProcess, cause
from setsup.jobs.sending import load_function, open_result, pack, run_unit
from setsup.jobs.units import Unit
from setsup.progress import Advance

__all__ = ["LocalPool", "serve"]

_TRIES = 2  # a process may be killed because others take too much memory
_NONE = -1  # no unit

_log = logging.getLogger("setsup")


class LocalPool:
    """Worker processes that take units as they come free."""

    def __init__(
        self, function: Callable[[Any], Any], units: Sequence[Unit[Any]], processes: int, advance: Advance
    ) -> None:
        self._sent = pack(function)
        self._units, self._processes, self._advance = units, processes, advance
        self._waiting = deque(range(len(units)))
        self._tries = [0] * len(units)
        self._results: list[Any] = [None] * len(units)
        self._left = len(units)
        self._workers: dict[Connection, _Worker] = {}

    def results(self) -> list[Any]:
        """Run all units."""
        try:
            while len(self._workers) < self._processes:
                self._start()
            while self._left:
                for connection in wait(list(self._workers)):
                    self._hear(self._workers[connection])  # type: ignore[index]
        finally:
            for worker in self._workers.values():
                worker.shutdown()
            for worker in self._workers.values():
                worker.end()
        return self._results

    def _start(self) -> None:
        worker = _Worker(self._sent)
        self._workers[worker.connection] = worker
        self._give(worker)

    def _give(self, worker: "_Worker") -> None:
        """Hand a free worker its next unit."""
        if self._waiting:
            number = self._waiting.popleft()
            self._tries[number] += 1
            worker.do(number, self._units[number].data)

    def _hear(self, worker: "_Worker") -> None:
        """Take the result of a worker, or replace the worker."""
        try:
            sent = worker.connection.recv_bytes()
        except (EOFError, OSError):
            self._replace(worker)
            return
        number, worker.number = worker.number, _NONE
        self._results[number] = open_result(sent, self._units[number].name)
        self._left -= 1
        self._advance(self._units[number].size)
        self._give(worker)

    def _replace(self, worker: "_Worker") -> None:
        """Start its unit again, in a fresh process, unless that is killed a second time."""
        del self._workers[worker.connection]
        how, number = worker.end(), worker.number
        if number == _NONE:  # it was idle
            return
        unit = self._units[number].name
        if self._tries[number] == _TRIES:
            raise SetsupError(
                f"a worker process ended {how} for the second time while it was working on {unit}, "
                + cause(how, "use fewer processes, or one process to see the original error")
            )
        again = cause(how, "starting it again")
        _log.warning("a worker process ended %s while it was working on %s, %s", how, unit, again)
        self._waiting.appendleft(number)
        self._start()


class _Worker(MessageProcess):
    """One worker process, seen from here."""

    number = _NONE
    """The unit that it runs, if any."""

    def __init__(self, function: bytes) -> None:
        super().__init__("setsup.jobs.local")
        self.send(function)

    def do(self, number: int, data: Any) -> None:
        """Start a unit."""
        self.number = number
        self.send(pack(data))


# -- in a worker process -----------------------------------------------------------------------------------------------


def serve(number: int) -> None:
    """Run units until the other end of a socket closes."""
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
    function = load_function(asked.popleft())
    while True:
        there.acquire()
        with suppress(OSError):  # the other end is gone; the listener ends this
            end.send_bytes(run_unit(function, asked.popleft()))
