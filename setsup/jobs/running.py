"""Do units of work, here, in several processes, or on a cluster."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from setsup.checks import check_arguments, check_integer
from setsup.errors import SetsupError
from setsup.jobs.cluster import Cluster, Ray
from setsup.jobs.local import LocalPool
from setsup.jobs.units import Data, Unit
from setsup.progress import Advance, progress

__all__ = ["check_processes", "run"]

Result = TypeVar("Result")


def run(
    function: Callable[[Data], Result],
    units: Iterable[Unit[Data]],
    *,
    processes: int = 1,
    on: Ray | Cluster | None = None,
    folder: Path | None = None,
    what: str = "working",
    counted: str = "units",
) -> list[Result]:
    """Do units of work, each exactly once as far as its result goes.

    A unit whose process is killed (by the system, for lack of memory, or by a driver that crashes) is done once more in
    a fresh process. The first exception ends the work, as Ctrl-C does; nothing is left running. What other units have
    made by then stays, so that a function which skips what is there goes on where the work was left.

    On a cluster, setsup of this version is installed on every machine, in the same Python; and each reads and writes
    what the function does under the same paths: on a file system that all share, or in a store.

    Parameters
    ----------
    function : callable
        Called with the data of a unit. For several processes it must pickle, as what scripts and notebooks define does.
    units : iterable of Unit
        In the order in which they are begun.
    processes : int
        1 works in this process.
    on : Ray or Cluster, optional
        A cluster that does the units in place of processes of this machine; one that is connected already, or that is
        for this work. A unit is tried three times there, since machines of a cluster come and go.
    folder : Path, optional
        One that the function reads or writes, and which is there. A cluster whose machines have another under that
        path, or none, is refused; a hidden file tells, which is there during the work.
    what, counted : str
        Name of the work and of what sizes count, for the progress bar.

    Returns
    -------
    list
        What the function gave, in the order of the units.

    Raises
    ------
    SetsupError
        When the function cannot be sent, or a process is killed again and again over one unit, which is named.
    DataError
        When the cluster cannot be reached, or has not what the work needs.
    Exception
        Whatever the function raises; from another process, unless it is a SetsupError, with a note that names the unit.

    Examples
    --------
    >>> squares = [Unit(f"number {number}", number) for number in range(4)]
    >>> run(lambda number: number**2, squares, processes=2)
    [0, 1, 4, 9]

    """
    check_processes(processes, on)
    check_arguments(run, locals())
    listed = list(units)
    with progress(sum(unit.size for unit in listed), what, counted) as advance:
        if isinstance(on, Cluster):
            return on.results(function, listed, advance, folder)
        if on is not None:
            with Cluster(on) as cluster:
                return cluster.results(function, listed, advance, folder)
        if processes == 1 or len(listed) < 2:
            return [_done_here(function, unit, advance) for unit in listed]
        return LocalPool(function, listed, min(processes, len(listed)), advance).results()


def check_processes(processes: int, on: Ray | Cluster | None = None) -> None:
    """Refuse what is no number of processes, and any but 1 beside a cluster."""
    check_integer(processes, "processes", SetsupError, 1)
    if on is not None and processes != 1:
        raise SetsupError(f"a cluster itself decides how many units run at a time: leave out processes, {processes}")


def _done_here(function: Callable[[Data], Result], unit: Unit[Data], advance: Advance) -> Result:
    found = function(unit.data)
    advance(unit.size)
    return found
