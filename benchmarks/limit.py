"""Stop what takes too long, where the system has an alarm (not Windows)."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["limited"]


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError within the block after so many seconds."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it was stopped after {seconds:g} s; the rows before are kept")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
