"""Progress of long work: a bar on a terminal or in a notebook, elsewhere one line per minute through logging."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from setsup.html import text

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

__all__ = ["Advance", "progress"]

_EVERY = 60.0  # seconds between two lines
_GLANCE = 0.5  # seconds between two readings of a note, which may have to wait for a GPU
_LOG = logging.getLogger(__name__)
_BAR = threading.Lock()
"""Held by the bar on the terminal."""


class Advance(Protocol):
    """Advances a progress bar; a negative count takes it back (work that starts again)."""

    def __call__(self, n: int = 1, /) -> None:
        """Advance by `n` units."""


@contextmanager
def progress(
    total: int | None, what: str, unit: str = "it", note: Callable[[], str] | None = None
) -> Iterator[Advance]:
    """Show the progress of long work, its speed and the time left.

    On a terminal (not a dumb one) and in a notebook this is a bar, which disappears when the work ends; work within
    that has no bar of its own on a terminal. Elsewhere one line per minute is logged at INFO, and rich is not imported;
    work of less than a minute logs nothing. A level above INFO of the logger ``setsup``, as ``-q`` sets it, silences
    all of them.
    """
    if logging.getLogger("setsup").level > logging.INFO:
        yield _silent
        return
    if _in_notebook():
        bar = _NotebookBar(total, what, unit, note)
        try:
            yield bar
        finally:
            bar.clear()
        return
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _Lines(total, what, unit, note)
        return
    from rich.console import Console
    from rich.progress import Progress

    if not _BAR.acquire(blocking=False):  # a second bar, of a part of the work, is an error of rich before 14.1
        yield _silent
        return
    try:
        with Progress(*_columns(unit), console=Console(stderr=True), transient=True) as bars:
            task, looked = bars.add_task(what, total=total, note=""), time.perf_counter()

            def advance(n: int = 1, /) -> None:
                nonlocal looked
                bars.advance(task, n)
                if note is not None and time.perf_counter() - looked >= _GLANCE:
                    bars.update(task, note=note())
                    looked = time.perf_counter()

            yield advance
    finally:
        _BAR.release()


def _silent(n: int = 1, /) -> None:
    """Show nothing."""


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook; its workers, and IPython on a terminal, are not."""
    if "ipykernel" not in sys.modules or "IPython" not in sys.modules:
        return False
    from multiprocessing import parent_process

    shell = sys.modules["IPython"].get_ipython()
    return getattr(shell, "kernel", None) is not None and parent_process() is None


class _Lines:
    """Logs progress once a minute."""

    def __init__(self, total: int | None, what: str, unit: str, note: Callable[[], str] | None) -> None:
        self._total, self._what, self._unit, self._note = total, what, unit, note
        self._done, self._lock = 0, threading.Lock()
        self._started = self._said = time.perf_counter()

    def __call__(self, n: int = 1, /) -> None:
        with self._lock:
            self._done += n
            now = time.perf_counter()
            if now - self._said < self._pause():
                return
            self._said = now
        self._say(now - self._started)

    def _pause(self) -> float:
        return _EVERY

    def _say(self, seconds: float) -> None:
        if _LOG.isEnabledFor(logging.INFO):
            _LOG.info("%s: %s", self._what, ", ".join(self._parts(seconds)))

    def _parts(self, seconds: float) -> Iterator[str]:
        done, unit, rate = float(self._done), self._unit, self._done / seconds
        total = None if self._total is None else float(self._total)
        if unit == "B":
            done, unit, rate = done / 1e6, "MB", rate / 1e6
            total = None if total is None else total / 1e6
        yield f"{done:,.0f} {unit}" if total is None else f"{done:,.0f} of {total:,.0f} {unit}"
        yield f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s"
        if self._note is not None and (said := self._note()):
            yield said
        if total is not None and 0 < done <= total:
            yield f"{timedelta(seconds=round((total - done) / rate))} left"


class _NotebookBar(_Lines):
    """Shows progress in the output of a cell, from half a second on: plain HTML, which needs no widgets."""

    _handle: Any = None

    def _pause(self) -> float:
        return _GLANCE

    def _say(self, seconds: float) -> None:
        said = f"{self._what}: {', '.join(self._parts(seconds))}"
        share = "" if self._total is None else f' value="{self._done}" max="{self._total}"'
        self._show({"text/plain": said, "text/html": f"<progress{share}></progress> {text(said, 200)}"})

    def _show(self, content: dict[str, str]) -> None:
        if self._handle is not None:
            self._handle.update(content, raw=True)
            return
        self._handle = import_module("IPython.display").display(content, raw=True, display_id=True)

    def clear(self) -> None:
        """Leave nothing of the bar."""
        if self._handle is not None:
            self._show({"text/plain": "", "text/html": ""})


def _columns(unit: str) -> "list[ProgressColumn]":
    from rich import progress as bars
    from rich.text import Text

    class Rate(bars.ProgressColumn):
        """Units per second."""

        def render(self, task: bars.Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.{0 if speed >= 10 else 1}f} {unit}/s")

    # markup=False: a name with brackets is no style
    name, note = (bars.TextColumn(f"{{task.{of}}}", markup=False) for of in ("description", "fields[note]"))
    if unit == "B":
        return [
            name,
            bars.BarColumn(),
            bars.DownloadColumn(),
            bars.TransferSpeedColumn(),
            note,
            bars.TimeRemainingColumn(),
        ]
    return [name, bars.BarColumn(), bars.MofNCompleteColumn(), Rate(), note, bars.TimeRemainingColumn()]
