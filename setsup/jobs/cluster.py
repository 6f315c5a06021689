"""Units of work on the machines of a Ray cluster.

Ray knows of each unit no more than what it needs, and chooses the machine. Only so many units are handed over as the
cluster can soon begin. A process of its own speaks with Ray.
"""

import logging
import math
import os
import pickle
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from setsup.errors import DataError, SetsupError, brief
from setsup.files import disk_errors
from setsup.files.atomic import beside
from setsup.jobs.process import Process
from setsup.jobs.ray_driver import ENDS, needs
from setsup.jobs.ray_worker import About
from setsup.jobs.sending import outcome, packed
from setsup.jobs.units import Unit
from setsup.progress import Advance

__all__ = ["Cluster", "Ray"]

_TRIES = 3  # machines of a cluster come and go

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class Ray:
    """Where units are done: on a Ray cluster, which schedules them.

    Parameters
    ----------
    address : str, optional
        ``"host:port"`` of the cluster's head, ``"ray://host:port"`` of its client server, or ``"auto"`` for the cluster
        that this machine belongs to. By default that of ``RAY_ADDRESS``, or else a cluster of this machine alone, which
        is started and stopped with the work.
    gpus : float
        GPUs a unit needs: a part of one, such as 0.25 where four units may share it, or a whole number.
    cpus : float
        CPU cores a unit needs, likewise.

    Raises
    ------
    SetsupError
        When the numbers are none that Ray knows.

    Examples
    --------
    >>> Ray("10.0.0.1:6379", gpus=0.25)
    Ray(address='10.0.0.1:6379', gpus=0.25, cpus=1.0)

    """

    address: str | None = None
    gpus: float = 0.0
    cpus: float = 1.0

    def __post_init__(self) -> None:
        for name in ("gpus", "cpus"):
            number = getattr(self, name)
            if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < math.inf:
                raise SetsupError(f"{name} of a unit must be a number from 0 on, not {brief(number)}")
            if number > 1 and number != int(number):
                raise SetsupError(f"{name} of a unit must be a part of one or a whole number, not {number}")
        if not self.cpus:
            raise SetsupError("a unit needs some of a core, or a machine would be given all units at once: cpus=0.1")


class Cluster:
    """A cluster that is connected, as a context manager; with its end, what was begun there ends."""

    def __init__(self, on: Ray) -> None:
        self.on = on
        self._room = 1
        self._driver = Process("setsup.jobs.ray_driver", quiet=True)

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
        self._driver.ended(ENDS)

    def results(
        self, function: Callable[[Any], Any], units: Sequence[Unit[Any]], advance: Advance, folder: Path | None
    ) -> list[Any]:
        """Do units; see :func:`setsup.jobs.run`."""
        sent = packed(function)
        try:
            with _token(folder) as token:
                about = About(secrets.token_hex(8), version("setsup"), token, os.getcwd())
                self._ask("work", sent, pickle.dumps(about))
                return self._done(units, advance)
        except BaseException:
            self.close()  # at once: whoever waits for the folder must find nobody at work
            raise

    def _done(self, units: Sequence[Unit[Any]], advance: Advance) -> list[Any]:
        waiting, running, left = deque(range(len(units))), 0, len(units)
        tries, results = [0] * len(units), [None] * len(units)
        while left:
            while waiting and running < self._room:
                number = waiting.popleft()
                tries[number] += 1
                running += 1
                self._ask("unit", number, units[number].name, packed(units[number].data))
            kind, *told = self._told()
            if kind == "room":
                self._room = told[0]
                continue
            if kind == "none":
                self._wait_for_machines(*told)
                continue
            running -= 1
            number, found = told
            unit = units[number]
            if kind == "amiss":
                raise DataError(f"{unit.name}: {found}")
            if kind == "lost":
                _lost(unit.name, tries[number], found)
                waiting.appendleft(number)
                continue
            results[number] = outcome(found, unit.name)
            left -= 1
            advance(unit.size)
        return results

    def _wait_for_machines(self, cores: float, gpus: float) -> None:
        _log.warning(
            "a unit needs %s, and no machine of the cluster has more than %s: waiting for one to join",
            needs(self.on.cpus, self.on.gpus),
            needs(cores, gpus),
        )

    def _ask(self, *what: Any) -> None:
        self._driver.send(pickle.dumps(what))

    def _told(self) -> tuple[Any, ...]:
        try:
            found: tuple[Any, ...] = pickle.loads(self._driver.end.recv_bytes())  # noqa: S301 - our own process
        except (EOFError, OSError):
            raise DataError(
                f"the connection to the Ray cluster is lost (its process ended {self._driver.ended()}): begin the "
                "same work again once the cluster is back, or see Ray's logs"
            ) from None
        return found


def _lost(unit: str, times: int, why: str) -> None:
    """Say that a unit is begun anew, or that this has happened too often."""
    if times == _TRIES:
        raise SetsupError(
            f"the cluster lost {unit}, {times} times over ({why}): perhaps for lack of memory, so let fewer units "
            "share a machine by giving each more cores; or do it without the cluster to see the error itself"
        )
    _log.warning("the cluster lost %s (%s), which is begun again", unit, why)


@contextmanager
def _token(folder: Path | None) -> Iterator[Path | None]:
    """A file by whose name other machines tell that they see the same folder."""
    if folder is None:
        yield None
        return
    # named as what `written` leaves where it is killed, so that the same hands take it away
    path = beside(folder.absolute() / "setsup")
    with disk_errors(path):
        path.touch()
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink()
