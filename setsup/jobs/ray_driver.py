"""The process that is connected to a Ray cluster, on behalf of another one.

Ray takes over the signals, standard output and environment of its process, and ends it when the cluster is gone. So it
has a process of its own, which submits units and reports their results. It ends with the process that started it, and
then has the cluster end what still runs.
"""

import logging
import os
import pickle
import queue
import re
import socket
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from setsup.errors import DataError, SetsupError, advice, imported
from setsup.jobs.ray_options import Ray
from setsup.jobs.ray_worker import DONE, task
from setsup.jobs.sending import describe

__all__ = ["ENDS", "needs", "serve"]

_LOCAL = "local"
_ADDRESS = re.compile(r"(?:ray://)?\[?(?P<host>[\w.:-]+?)\]?:(?P<port>\d{1,5})")
_ANSWERS = 10.0  # seconds that a machine has to answer
_STORE = 128 << 20  # bytes of memory that processes of a cluster of this machine share
_AHEAD = 2  # units submitted for each that can run, so that the next one is there when one ends
_LOOK = 5.0  # seconds between two checks of the size of the cluster
_TURN = 0.1  # seconds between two checks for requests
_PATIENCE = 2.0  # seconds that units have to end by themselves
_KILLED = 5.0  # seconds to wait for units that were killed

ENDS = 15.0
"""Seconds within which the process ends once it is shut down."""


def serve(number: int) -> None:
    """Serve a cluster until the other end of a socket closes."""
    end = Connection(number)
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    driver = _Driver(end, asked)

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                asked.put(pickle.loads(end.recv_bytes()))  # noqa: S301 - who started this process wrote it
        asked.put(None)
        time.sleep(ENDS - 2 if driver.connected else _PATIENCE)  # what Ray is at may take longer
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    with suppress(OSError):  # the other end is gone
        driver.run()


class _Driver:
    """Handles requests."""

    connected = False

    def __init__(self, end: Connection, asked: "queue.SimpleQueue[Any]") -> None:
        self._end, self._asked = end, asked
        self._ray: Any = None
        self._on: Any = None
        self._task: Any = None
        self._sent: Any = None
        self._about = b""
        self._running: dict[Any, int] = {}
        self._looked, self._room, self._warned = 0.0, 0, False

    def run(self) -> None:
        """Connect, and run units until the other end closes."""
        on = self._asked.get()
        if on is None:
            return
        address = on.address or os.environ.get("RAY_ADDRESS") or _LOCAL
        try:
            self._ray = _connected(address)
        except SetsupError as error:
            self._tell("refused", error)
            return
        self.connected = True
        try:
            self._prepare(on)
            most = self._most()
            if address == _LOCAL and not most.fitting:  # no machine can join it
                self._tell("refused", _too_small(on, most))
                return
            self._tell("ready")
            while self._turn():
                pass
        finally:
            self._stop()
            self._ray.shutdown()

    def _prepare(self, on: Ray) -> None:
        self._on = on
        self._task = self._ray.remote(
            num_cpus=on.cpus,
            num_gpus=on.gpus,
            max_retries=0,  # which unit was lost, and how often, is reported
            max_calls=0,  # a process keeps what it has opened, a GL context too, for the next unit
        )(task([entry for entry in sys.path if isinstance(entry, str)]))

    def _turn(self) -> bool:
        """Handle requests and finished units; returns whether there may be more."""
        self._look()
        wait = not self._running
        while wait or not self._asked.empty():
            try:
                asked = self._asked.get(timeout=_LOOK)
            except queue.Empty:
                return True
            if asked is None:
                return False
            self._begin(*asked)
            wait = False
        done: list[Any] = []
        if self._running:
            done = self._ray.wait(list(self._running), timeout=_TURN)[0]
        for reference in done:
            self._hear(reference)
        return True

    def _begin(self, kind: str, *asked: Any) -> None:
        if kind == "work":
            function, self._about = asked
            self._sent = [self._ray.put(function)]  # in a list, since Ray would fetch it again for each unit
        else:
            number, name, data = asked
            self._running[self._task.options(name=name).remote(self._sent, self._about, data)] = number

    def _hear(self, reference: Any) -> None:
        """Report the result of a unit."""
        number = self._running.pop(reference)
        try:
            kind, result = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            self._tell("amiss", number, f"the cluster cannot run it ({_line(error.cause or error)})")
        except self._ray.exceptions.RayError as error:
            self._tell("lost", number, _line(error))
        else:
            self._tell("done" if kind == DONE else "amiss", number, result)

    def _look(self) -> None:
        """Report how many units the cluster can run at a time; it may grow and shrink."""
        now = time.monotonic()
        if self._room and now - self._looked < _LOOK:
            return
        most = self._most()
        room, self._looked = max(1, _AHEAD * most.fitting), now
        if room != self._room:
            self._room = room
            self._tell("room", room)
        if not most.fitting and not self._warned:
            self._warned = True
            self._tell("none", most.cores, most.gpus)

    def _most(self) -> "_Most":
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        cores, gpus = (max((node.get(name, 0) for node in nodes), default=0) for name in ("CPU", "GPU"))
        return _Most(sum(_fitting(node, self._on) for node in nodes), cores, gpus)

    def _stop(self) -> None:
        """Cancel all units and wait for them; Ray kills what still runs when this process ends."""
        left = list(self._running)
        for force, seconds in ((False, _PATIENCE), (True, _KILLED)):
            for reference in left:
                with suppress(Exception):
                    self._ray.cancel(reference, force=force)
            if left:
                left = self._ray.wait(left, num_returns=len(left), timeout=seconds)[1]

    def _tell(self, *what: Any) -> None:
        self._end.send_bytes(pickle.dumps(what))


class _Most(NamedTuple):
    """How many units the machines of a cluster can run at a time, and the most that one of them has."""

    fitting: int
    cores: float
    gpus: float


def needs(cores: float, gpus: float) -> str:
    """Cores and GPUs in words."""
    number = f"{gpus:g} GPU{'s' * (gpus != 1)}" if gpus else "no GPU"
    return f"{cores:g} core{'s' * (cores != 1)} and {number}"


def _too_small(on: Ray, most: _Most) -> DataError:
    return DataError(
        f"a unit requires {needs(on.cpus, on.gpus)}, but the Ray cluster of this machine has only "
        f"{needs(most.cores, most.gpus)}; request less, or pass the address of a cluster that has them "
        f"({advice('address=', '--ray-address')})"
    )


def _fitting(node: dict[str, float], on: Ray) -> int:
    """How many units a machine can run at a time."""
    run = node.get("CPU", 0) // on.cpus
    return int(min(run, node.get("GPU", 0) // on.gpus) if on.gpus else run)


def _line(error: BaseException) -> str:
    """First sentence of an exception; those of Ray have many."""
    return describe(error).strip().partition("\n")[0].partition(". ")[0].rstrip(" .:")


# -- connecting --------------------------------------------------------------------------------------------------------


def _connected(address: str) -> Any:
    """Connect to a cluster, or start one; :mod:`ray`."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == _LOCAL:
        options |= {"include_dashboard": False, "object_store_memory": _STORE}
    elif address != "auto":
        _reach(address)
    ray = imported("ray", "ray")
    try:
        ray.init(address, **options)
    except Exception as error:
        raise _refused(address, " ".join(str(error).split())) from None
    return ray


def _refused(address: str, why: str) -> DataError:
    if "ersion mismatch" in why:
        return DataError(
            f"the Ray cluster at {address} runs other versions: {why}; install the same versions on both sides"
        )
    if address == "auto":
        return DataError(
            f"this machine does not belong to a Ray cluster ({why:.200}); pass the address of one, HOST:PORT, or "
            "start one with `ray start --head`"
        )
    if address == _LOCAL:
        return DataError(f"Ray cannot be started on this machine: {why:.400}")
    return DataError(
        f"cannot connect to a Ray cluster at {address} ({why:.400}); make sure that it runs the same version of Ray; "
        "if it requires a token, set RAY_AUTH_MODE=token and the token on this machine, too"
    )


def _reach(address: str) -> None:
    """Refuse an address at which nothing answers: Ray itself would try for long."""
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise DataError(f"the address of a Ray cluster must be HOST:PORT, ray://HOST:PORT or auto, not {address!r}")
    try:
        socket.create_connection((parts["host"], int(parts["port"])), _ANSWERS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise DataError(
            f"no response from {address} ({getattr(error, 'strerror', None) or error}); make sure that the cluster is "
            "running (`ray status` on its head), and that this machine can reach it"
        ) from None
