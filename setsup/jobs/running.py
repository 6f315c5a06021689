"""Run units of work: in this process, in several processes, or on a cluster."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from setsup.checks import check_arguments, check_integer
from setsup.errors import SetsupError, advice
from setsup.jobs.cluster import Cluster
from setsup.jobs.local import LocalPool
from setsup.jobs.ray_options import Ray
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
    """Run units of work and return their results in order.

    A unit whose process is killed (by the system, for lack of memory, or by a crash of a driver) runs once more in a
    new process. The first exception ends the work, as does Ctrl-C; all processes exit. Files of finished units are
    kept, so a function that skips existing files resumes interrupted work.

    On a cluster, every machine needs this version of setsup in the same version of Python, and reads and writes the
    same paths: on a shared file system, or in a store.

    Parameters
    ----------
    function : callable
        Called with the data of a unit. For several processes it must pickle; functions of scripts and notebooks do.
    units : iterable of Unit
        Units of work, in the order in which they start.
    processes : int
        Number of processes; 1 runs the units in this process.
    on : Ray or Cluster, optional
        A cluster that runs the units instead of processes of this machine: its address, or a connected one. A unit is
        tried three times there, since machines may join and leave a cluster.
    folder : Path, optional
        An existing folder that the function reads or writes. It is an error if machines of the cluster cannot access
        it under the same path, which is checked with a hidden file that is removed at the end.
    what, counted : str
        Names of the work and of the unit of sizes, for the progress bar.

    Returns
    -------
    list
        Results of the function, in the order of the units.

    Raises
    ------
    SetsupError
        When the function cannot be pickled, or processes are killed repeatedly while they run the same unit.
    DataError
        When the cluster cannot be reached, or lacks what the work needs.
    Exception
        Any exception of the function. From another process, all but a SetsupError have a note that names the unit.

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
            return [_run_here(function, unit, advance) for unit in listed]
        return LocalPool(function, listed, min(processes, len(listed)), advance).results()


def check_processes(processes: int, on: Ray | Cluster | None = None) -> None:
    """Refuse an invalid number of processes, and any but 1 together with a cluster."""
    name = advice("processes", "--processes")
    check_integer(processes, name, SetsupError, 1)
    if on is not None and processes != 1:
        raise SetsupError(f"{name} must be 1 on a cluster, which schedules the units itself, not {processes}")


def _run_here(function: Callable[[Data], Result], unit: Unit[Data], advance: Advance) -> Result:
    result = function(unit.data)
    advance(unit.size)
    return result
