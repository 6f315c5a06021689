"""A progress bar for long work: on standard error, and only where a person watches it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

__all__ = ["Advance", "progress"]


class Advance(Protocol):
    """Tells a progress bar how much was done; a negative count takes it back (work that starts anew)."""

    def __call__(self, n: int = 1, /) -> None:
        """Add `n` units to what was done."""


@contextmanager
def progress(total: int | None, what: str, unit: str = "it") -> Iterator[Advance]:
    """Show how far long work is, with its speed and the time left.

    Nothing is shown, and rich is not imported, where standard error is no terminal. The bar goes away when the work
    ends.

    Parameters
    ----------
    total : int or None
        Units of the whole work, None where that is not known.
    what : str
        Name of the work, as a person reads it.
    unit : str
        What is counted: ``"B"`` shows sizes and bytes a second, all else ``<unit>/s``.

    Yields
    ------
    Advance
        Function to call with the units done since its last call (1 by default).

    Examples
    --------
    >>> with progress(3, "counting") as advance:
    ...     for _ in range(3):
    ...         advance()

    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*_columns(unit), console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda n=1, /: bars.advance(task, n)


def _silent(n: int = 1, /) -> None:
    """Show nothing."""


def _columns(unit: str) -> "list[ProgressColumn]":
    from rich import progress as bars
    from rich.text import Text

    class Rate(bars.ProgressColumn):
        """Units done a second."""

        def render(self, task: bars.Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.{0 if speed >= 10 else 1}f} {unit}/s")

    # markup=False: a name with brackets is no style
    name = bars.TextColumn("{task.description}", markup=False)
    if unit == "B":
        return [
            name,
            bars.BarColumn(),
            bars.DownloadColumn(),
            bars.TransferSpeedColumn(),
            bars.TimeRemainingColumn(),
        ]
    return [name, bars.BarColumn(), bars.MofNCompleteColumn(), Rate(), bars.TimeRemainingColumn()]
