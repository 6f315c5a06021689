"""What a Ray cluster runs: one unit at a time, in a process that keeps the function open for the next unit."""

import os
import socket
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from setsup.errors import advised_for_command
from setsup.jobs.sending import load_function, run_unit

__all__ = ["About", "do_unit", "task"]

DONE, AMISS = "done", "amiss"


@dataclass(frozen=True, slots=True)
class About:
    """What must be the same wherever units run."""

    work: str
    version: str
    token: Path | None
    folder: str
    options: dict[str, str] | None = None
    """Options of the command by names of arguments, which errors name; None in Python."""


def task(path: list[str]) -> Callable[[Any, bytes, bytes], tuple[str, Any]]:
    """Make the function that Ray is given."""

    def do(sent: Any, about: bytes, data: bytes) -> tuple[str, Any]:
        # what is defined within a function travels as code: so a missing setsup can be reported
        import os
        import sys

        sys.path.extend(entry for entry in path if entry not in sys.path and os.path.exists(entry))
        try:
            from setsup.jobs.ray_worker import do_unit
        except ImportError as error:
            return "amiss", (
                f"{os.uname().nodename}, a machine of the cluster, cannot import setsup ({error}); "
                "install the same version on all machines, for the Python that runs Ray"
            )
        return do_unit(sent, about, data)

    return do


_held: tuple[bytes, Callable[[Any], Any], dict[str, str] | None] | None = None


def do_unit(sent: Any, about: bytes, data: bytes) -> tuple[str, Any]:
    """Run a unit.

    Returns (str, any).
    """
    global _held
    if _held is None or _held[0] != about:
        import pickle

        import ray

        try:
            told: About = pickle.loads(about)  # noqa: S301 - our own process wrote it
            other = told.version != version("setsup")
        except Exception:  # a version that knows nothing of this
            other = True
        here = f"{socket.gethostname()}, a machine of the cluster,"
        if other:
            return (
                AMISS,
                f"{here} has setsup {version('setsup')}; install the same version on all machines",
            )
        if told.token is not None and not _seen(told.token):
            return AMISS, (
                f"{here} cannot access {told.token.parent} of the machine that started the work; choose a folder on a "
                "shared file system"
            )
        with suppress(OSError):
            os.chdir(told.folder)
        _held = about, load_function(ray.get(sent[0])), told.options
    _, function, options = _held
    with nullcontext() if options is None else advised_for_command(options):
        return DONE, run_unit(function, data)


def _seen(token: Path) -> bool:
    """Whether a file exists, or appears soon: some network file systems are slow."""
    for _ in range(10):
        if token.exists():
            return True
        time.sleep(0.2)
    return False
