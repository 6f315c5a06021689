"""Further processes of a training, which Lightning starts by the script's own command, and which end with the first.

One that waits for a first process which was killed would wait for ever, since neither may have opened a connection yet.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["launching", "own_process_group", "watch_launcher"]

_LAUNCHER = "SETSUP_LAUNCHER"  # the number of the first process, in the environment of the others
_PAUSE = 0.2  # seconds between two looks
# what Lightning notes in the environment when it starts processes, and takes as the work of a launcher when it is there
_NOTED = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")


@contextmanager
def launching() -> Iterator[None]:
    """Tell processes that are started in the body which process they belong to."""
    before = os.environ.get(_LAUNCHER)
    os.environ[_LAUNCHER] = str(os.getpid())
    try:
        yield
    finally:
        if before is None:
            del os.environ[_LAUNCHER]
        else:
            os.environ[_LAUNCHER] = before


@contextmanager
def own_process_group() -> Iterator[None]:
    """Destroy the process group that Lightning makes in the body and would leave, so that later trainings have none.

    A group of several processes stays until they end: the others run the same script, and their next training may
    already wait in it for this process.
    """
    before = {name: os.environ.get(name) for name in _NOTED}
    given = _has_process_group()
    try:
        yield
    finally:
        if not given and _has_process_group() and torch.distributed.get_world_size() == 1:
            torch.distributed.destroy_process_group()
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _has_process_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def watch_launcher() -> None:
    """In a process that Lightning started for a training: end it as soon as the process that started it has ended."""
    launcher = os.environ.pop(_LAUNCHER, "")
    # one that a callback of the first process starts has the rank of that one
    if launcher.isdecimal() and os.environ.get("LOCAL_RANK", "0") != "0":
        threading.Thread(target=_end_with, args=(int(launcher),), name="launcher", daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when another becomes its parent; a number is asked for, since a signal would need Linux."""
    while os.getppid() == parent:
        time.sleep(_PAUSE)
    # no cleanup: it may wait for the process that has ended
    os.kill(os.getpid(), signal.SIGKILL)
