"""Units of work on the machines of a Ray cluster.

Ray knows of each unit only what it needs, and chooses the machine. Units are submitted as the cluster can start them.
A process of its own is connected to Ray (:mod:`setsup.jobs.ray_driver`).
"""

import logging
import os
import pickle
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from setsup.errors import DataError, SetsupError, command_options
from setsup.files import disk_errors
from setsup.files.atomic import beside
from setsup.jobs.process import MessageProcess
from setsup.jobs.ray_driver import ENDS, needs
from setsup.jobs.ray_options import Ray
from setsup.jobs.ray_worker import About
from setsup.jobs.sending import open_result, pack
from setsup.jobs.units import Unit
from setsup.progress import Advance

__all__ = ["Cluster"]

_TRIES = 3  # machines of a cluster come and go

_log = logging.getLogger("setsup")


class Cluster:
    """A connected cluster, as a context manager; at its end, what was started there ends."""

    def __init__(self, on: Ray) -> None:
        self.on = on
        self._room = 1
        self._driver = MessageProcess("setsup.jobs.ray_driver", quiet=True)

    def __enter__(self) -> "Cluster":
        """Wait until it is connected."""
        try:
            self._driver.send(pickle.dumps(self.on))
            kind, *told = self._told()
            if kind == "refused":
                raise told[0]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """End what runs, and leave the cluster."""
        self.close()

    def close(self) -> None:
        """End what runs, and leave the cluster."""
        self._driver.end(ENDS)

    def results(
        self, function: Callable[[Any], Any], units: Sequence[Unit[Any]], advance: Advance, folder: Path | None
    ) -> list[Any]:
        """Run units; see :func:`setsup.jobs.run`."""
        sent = pack(function)
        try:
            with _token(folder) as token:
                about = About(secrets.token_hex(8), version("setsup"), token, os.getcwd(), command_options())
                self._ask("work", sent, pickle.dumps(about))
                return self._done(units, advance)
        except BaseException:
            self.close()  # at once: who waits for the folder must find nobody at work
            raise

    def _done(self, units: Sequence[Unit[Any]], advance: Advance) -> list[Any]:
        waiting, running, left = deque(range(len(units))), 0, len(units)
        tries, results = [0] * len(units), [None] * len(units)
        while left:
            while waiting and running < self._room:
                number = waiting.popleft()
                tries[number] += 1
                running += 1
                self._ask("unit", number, units[number].name, pack(units[number].data))
            kind, *told = self._told()
            if kind == "room":
                self._room = told[0]
                continue
            if kind == "none":
                self._wait_for_machines(*told)
                continue
            running -= 1
            number, answer = told
            unit = units[number]
            if kind == "amiss":
                raise DataError(f"{unit.name}: {answer}")
            if kind == "lost":
                _lost(unit.name, tries[number], answer)
                waiting.appendleft(number)
                continue
            results[number] = open_result(answer, unit.name)
            left -= 1
            advance(unit.size)
        return results

    def _wait_for_machines(self, cores: float, gpus: float) -> None:
        _log.warning(
            "a unit requires %s, but no machine of the cluster has more than %s; waiting for one to join",
            needs(self.on.cpus, self.on.gpus),
            needs(cores, gpus),
        )

    def _ask(self, *what: Any) -> None:
        self._driver.send(pickle.dumps(what))

    def _told(self) -> tuple[Any, ...]:
        try:
            message: tuple[Any, ...] = pickle.loads(self._driver.connection.recv_bytes())  # noqa: S301 - our own process
        except (EOFError, OSError):
            raise DataError(
                f"the connection to the Ray cluster was lost (its process ended {self._driver.end()}); run the same "
                "work again when the cluster is available, or see Ray's logs"
            ) from None
        return message


def _lost(unit: str, times: int, why: str) -> None:
    """Warn that a unit starts again, or raise where that has happened too often."""
    if times == _TRIES:
        raise SetsupError(
            f"the cluster lost {unit} {times} times ({why}), possibly because a machine ran out of memory; request "
            "more cores per unit, so that fewer units share a machine, or run without the cluster to see the original "
            "error"
        )
    _log.warning("the cluster lost %s (%s); starting it again", unit, why)


@contextmanager
def _token(folder: Path | None) -> Iterator[Path | None]:
    """Put a file into a folder, by which other machines tell that they see the same folder."""
    if folder is None:
        yield None
        return
    # named like a temporary file of `written`, so that it is removed like one
    path = beside(folder.absolute() / "setsup")
    with disk_errors(path):
        path.touch()
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink()
