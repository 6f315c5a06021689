"""Waiting for what other processes do."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def until(true: Callable[[], Any], seconds: float = 30) -> bool:
    """Whether something becomes true; patient, because machines are busy."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(true())


def die(folder: Path, times: int, number: int) -> int:
    """Kill the process at number 3, so many times."""
    if number == 3:
        died = len(list(folder.iterdir()))
        if died < times:
            (folder / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return number
