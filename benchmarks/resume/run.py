"""Start the processes of a cell, kill them, and start those that resume."""

import multiprocessing
import os
import signal
import socket
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.resume.count import Seen, announced_copies, compare, compare_passes, read_logs
from benchmarks.resume.data import truth
from benchmarks.resume.job import Job, saved_step
from benchmarks.resume.plan import DRAWS, PASSES, Cell
from setsup.files import written

__all__ = ["Peer", "Way", "run_cell", "run_peer"]

FOLDER = "SETSUP_RESUME_FOLDER"
LIMIT = 300  # seconds for each part of a cell
_CONTEXT = multiprocessing.get_context("fork")  # what is imported already need not be imported by every process

Way = Callable[[Job], None]


@dataclass(frozen=True)
class Peer:
    """Another library: the data that it writes, its loop, and what its documentation does not offer.

    Attributes
    ----------
    module : str
        What is imported of it.
    write : callable
        Writes the rows below a folder.
    loop : callable or None
        A training loop; None where the library has no state to resume from.
    state, ranks, images : str
        Why it offers no state at all, no resuming on other numbers of ranks and workers, or no equal images. Empty
        where it does.

    """

    module: str
    write: Callable[[Path], None]
    loop: Way | None = None
    state: str = ""
    ranks: str = ""
    images: str = ""


def run_cell(cell: Cell, way: Way, to: str = "torch") -> dict[str, Any]:
    """Counts of a cell, or why it has none: ``{"failed": …}``."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="resume-") as name:
        folder = Path(name)
        try:
            _part(way, [Job(folder, 0, rank, cell.ranks, cell.workers, cell.stop) for rank in range(cell.ranks)])
            _part(way, [Job(folder, 1, rank, cell.to_ranks, cell.to_workers, None) for rank in range(cell.to_ranks)])
        except RuntimeError as error:
            return {"failed": str(error)[-2000:]}
        if cell.line == "rows":
            wanted = truth("rows")
            copies = announced_copies(cell, wanted)
        else:  # an endless stream: each rank trains equally many draws, the last round included
            rest = -(-(DRAWS * PASSES - cell.draw) // cell.to_ranks) * cell.to_ranks
            wanted, copies = truth("bytes", cell.draw + rest, to), []
        return {**compare(wanted, read_logs(folder, cell), copies), "seconds": round(time.monotonic() - started, 1)}


_WHOLE: dict[tuple[str, int, int], list[Seen]] = {}  # what runs that nothing interrupts saw


def run_peer(cell: Cell, peer: Peer) -> dict[str, Any]:
    """Counts of a cell of another library, ``{"failed": …}``, or ``{"not offered": …}`` with what it documents."""
    if why := peer.state or (peer.ranks if cell.line == "changed" else ""):
        return {"not offered": why}
    assert peer.loop is not None
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="resume-") as name:
        folder = Path(name)
        try:
            _part(lambda job: peer.write(folder), [Job(folder, 2, 0, 1, 0, None)])
            _part(peer.loop, [Job(folder, 0, rank, cell.ranks, cell.workers, cell.stop) for rank in range(cell.ranks)])
            _part(
                peer.loop, [Job(folder, 1, rank, cell.to_ranks, cell.to_workers, None) for rank in range(cell.to_ranks)]
            )
            whole = None if peer.images else _whole(cell, peer.loop, folder)
        except RuntimeError as error:
            return {"failed": str(error)[-2000:]}
        counts: dict[str, Any] = compare_passes(chain.from_iterable(read_logs(folder, cell)), whole)
        if whole is None:
            counts["differ"] = {"not offered": peer.images}
        return {**counts, "seconds": round(time.monotonic() - started, 1)}


def _whole(cell: Cell, loop: Way, folder: Path) -> list[Seen]:
    """What nothing interrupted: of one process, or of the ranks and workers of the cell where they stay the same."""
    ranks, workers = (1, 0) if cell.line == "changed" else (cell.ranks, cell.workers)
    key = cell.way, ranks, workers
    if key not in _WHOLE:
        _part(loop, [Job(folder, 2, rank, ranks, workers, None) for rank in range(ranks)])
        _WHOLE[key] = list(chain.from_iterable(read_logs(folder, cell, ranks)))
    return _WHOLE[key]


def _part(way: Way, jobs: list[Job]) -> None:
    """Run the processes of one part to their end, or until the moment of the kill."""
    port, barrier = _free_port(), _CONTEXT.Barrier(len(jobs))
    for job in jobs:
        job.port, job.barrier = port, barrier
    processes = [_CONTEXT.Process(target=_enter, args=(way, job)) for job in jobs]
    for process in processes:
        process.start()
    try:
        _wait(jobs, processes)
    finally:
        for process in processes:
            _kill(process)
        _kill_heirs(jobs[0].folder)
    ends = (0,) if jobs[0].stop is None else (0, -signal.SIGKILL)  # the resumed part is killed by nobody
    crashed = [job.rank for job, process in zip(jobs, processes, strict=True) if process.exitcode not in ends]
    for job in jobs:
        complaint = job.folder / f"failed-{job.part}-{job.rank}"
        if complaint.exists():
            raise RuntimeError(complaint.read_text(encoding="utf-8"))
    if crashed:
        raise RuntimeError(f"part {jobs[0].part}: rank {crashed[0]} crashed without an exception")


def _enter(way: Way, job: Job) -> None:
    os.setsid()  # its workers are killed with it
    os.environ[FOLDER] = str(job.folder)
    job.announce()
    try:
        way(job)
    except BaseException:  # whatever it is, the cell says so
        with written(job.folder / f"failed-{job.part}-{job.rank}") as part:
            part.write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(0)


def _wait(jobs: list[Job], processes: list[Any]) -> None:
    folder, part, stop = jobs[0].folder, jobs[0].part, jobs[0].stop
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if any((folder / f"failed-{part}-{job.rank}").exists() for job in jobs):
            return
        if stop is None:
            if not any(process.is_alive() for process in processes):
                return
        elif all(_lines(folder / f"saw-0-{job.rank}.jsonl") > stop for job in jobs):
            if (done := saved_step(folder)) != stop:
                raise RuntimeError(f"the checkpoint has step {done}, not {stop}")
            return
        elif not any(process.is_alive() for process in processes):
            raise RuntimeError("the run ended before it was killed")
        time.sleep(0.02)
    raise RuntimeError(f"part {part} did not end within {LIMIT} s")


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _kill(process: Any) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.join()


def _kill_heirs(folder: Path) -> None:
    """Kill programs that a process started in sessions of their own, as Ray does: they have its variables."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{FOLDER}={folder}".encode() in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue  # of another user, or gone


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
