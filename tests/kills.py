"""Kill a command at any moment, start it again until it ends, and compare what it leaves with an uninterrupted run.

A command runs in a session of its own, in the folder ``now``, which begins with the same files each time; its home, its
cache and its temporary files lie there too, so that whatever it leaves behind is found.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

State = dict[str, bytes | str | None]
"""Content of files, targets of links, and None for folders, by relative path."""

COMMAND = "import sys; from setsup_cli.main import main; sys.exit(main())"
"""What runs, as the argument of ``python -c``; the words of the command stand behind it."""

PATIENCE = 120.0
"""Seconds after which a run hangs."""

# Python announces what it is about to do to the file system; from the n-th time on, nothing comes of it any more
AT_A_STEP = """
import atexit, os, signal, sys
_left = int(os.environ.pop("KILL_AT"))
_signal = int(os.environ.pop("SIGNAL", signal.SIGKILL))
_top = os.path.realpath(os.getcwd())
_done = 0
def _hear(event, given):
    global _done
    if event == "open":
        path, _, flags = given
        if isinstance(path, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        if not os.path.abspath(os.fsdecode(path)).startswith(_top):
            return
    elif event not in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"):
        return
    _done += 1
    if _done == _left:
        os.kill(os.getpid(), _signal)
sys.addaudithook(_hear)
atexit.register(lambda: print(f"steps: {_done}", file=sys.stderr))
"""


@dataclass(frozen=True, slots=True)
class Work:
    """A command that is killed.

    Parameters
    ----------
    words : sequence of sequences of str
        The command and others that mean the same, such as one for two processes; they are taken in turn.
    begin : callable of (folder), optional
        Puts what the command needs into an empty folder.
    code : str
        What runs it.
    settled : callable of (folder) -> paths, optional
        Files that are finished and must not be made again.

    """

    words: Sequence[Sequence[object]]
    begin: Callable[[Path], object] = lambda folder: None
    code: str = COMMAND
    settled: Callable[[Path], Sequence[Path]] = lambda folder: ()


@dataclass(slots=True)
class Figures:
    """What kills hit."""

    seconds: float
    kills: int = 0
    before: int = 0
    within: int = 0
    after: int = 0
    restarts: int = 0
    settled: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        """Figures in a line."""
        kept = f", {sum(self.settled):,} finished files kept" if any(self.settled) else ""
        hit = f"{self.before} before the first file, {self.within} until the last, {self.after} later"
        return f"{self.kills} kills ({hit}), {self.restarts} restarts, {self.seconds:.1f} s a run{kept}"


class Sandbox:
    """The folder ``now``, and how an uninterrupted run leaves it."""

    def __init__(self, root: Path, work: Work) -> None:
        self.work, self.now, self._root, self._first = work, root / "now", root, root / "first"
        self._first.mkdir(parents=True)
        work.begin(self._first)
        for path in self._first.rglob("*"):
            os.utime(path, (1_600_000_000, 1_600_000_000))  # what is brand-new is not trusted by some caches
        self._turn = 0
        self.fresh()
        self.before = state(self.now)
        start = time.monotonic()
        self.finish()
        self.seconds = time.monotonic() - start
        self.whole = state(self.now)
        assert self.whole != self.before, "the command leaves nothing"

    def fresh(self) -> None:
        """Begin anew, with files of the same age, for some caches go by it."""
        shutil.rmtree(self.now, ignore_errors=True)
        shutil.copytree(self._first, self.now, symlinks=True)
        for name in ("home", "tmp"):
            (self.now / ".around" / name).mkdir(parents=True)

    def start(self, words: Sequence[object] | None = None, **environment: str) -> "subprocess.Popen[bytes]":
        """Start the command; the next of those that mean the same, unless words are given."""
        if words is None:
            words = self.work.words[self._turn % len(self.work.words)]
        around = self.now / ".around"
        places = {"HOME": around / "home", "TMPDIR": around / "tmp", "SETSUP_CACHE": around / "cache"}
        code = (AT_A_STEP if "KILL_AT" in environment else "") + self.work.code
        self._turn += 1
        with (self._root / "said.txt").open("wb") as said:
            child = subprocess.Popen(
                [sys.executable, "-c", code, *map(str, words)],
                cwd=self.now,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={
                    **{name: value for name, value in os.environ.items() if not name.startswith("SETSUP_")},
                    **{name: str(path) for name, path in places.items()},
                    "PYTHONDONTWRITEBYTECODE": "1",
                    **environment,
                },
            )
        (self._root / "said.txt").rename(self._root / f"said-{child.pid}.txt")
        return child

    def said(self, child: "subprocess.Popen[bytes]") -> str:
        """What a command printed."""
        return (self._root / f"said-{child.pid}.txt").read_text("utf-8", "replace")

    def finish(self, **environment: str) -> str:
        """Run the command to its end; what it printed."""
        child = self.start(**environment)
        assert child.wait(PATIENCE) == 0, self.said(child)
        assert not lasting(child.pid), f"processes are left of {child.args!r}"
        return self.said(child)

    def check(self, what: str) -> None:
        """Compare what is there with what an uninterrupted run leaves."""
        found = state(self.now)
        left, missing = sorted(found.keys() - self.whole.keys()), sorted(self.whole.keys() - found.keys())
        assert not left, f"{what}: {left} are left over"
        assert not missing, f"{what}: {missing} are missing"
        other = [name for name in found if found[name] != self.whole[name]]
        assert not other, f"{what}: {other} have other bytes"


def kill_at_moments(root: Path, work: Work, kills: int, seed: int = 0) -> Figures:
    """Kill a command at random moments, evenly over its time and somewhat beyond, and see that it ends the same.

    Parameters
    ----------
    root : Path
        A folder that is not there yet.
    work : Work
        The command.
    kills : int
        So many, of which a third hit a run that goes on after an earlier kill.
    seed : int
        Of the moments.

    Raises
    ------
    AssertionError
        A run fails or hangs, leaves other bytes, files or processes, or makes again what was finished.

    """
    dice, sandbox = random.Random(seed), Sandbox(root, work)
    # the first run warmed the disk's cache
    sandbox.fresh()
    start = time.monotonic()
    sandbox.finish()
    figures = Figures(time.monotonic() - start)
    sandbox.check("a second uninterrupted run")
    moments = [(place + dice.random()) / kills * 1.15 for place in range(kills)]  # in runs
    dice.shuffle(moments)
    while moments:
        sandbox.fresh()
        told, dead, kept = [], [], dict[Path, tuple[int, int]]()
        while moments and (not told or dice.random() < 1 / 3):
            moment = moments.pop() * figures.seconds
            child = sandbox.start()
            start = time.monotonic()
            with suppress(subprocess.TimeoutExpired):
                child.wait(moment)
                if not told:
                    figures.seconds = time.monotonic() - start
            # half of them with their workers, as where a machine or a job ends; the others leave theirs behind
            kill(child, together=dice.random() < 0.5)
            assert child.returncode in (0, -signal.SIGKILL), sandbox.said(child)
            dead.append(child.pid)
            told.append(f"{moment:.3f} s")
            figures.kills += 1
            _count(figures, child.returncode, sandbox)
            for path, mark in kept.items():
                assert _mark(path) == mark, f"killed after {', '.join(told)}: {path.name} was made again"
            kept |= {path: _mark(path) for path in work.settled(sandbox.now)}
        figures.restarts += 1
        nothing, start = state(sandbox.now) == sandbox.before, time.monotonic()
        sandbox.finish()
        if nothing:  # a run from the start: the machine may have more or less time for us than it had
            figures.seconds = time.monotonic() - start
        what = f"killed after {', '.join(told)}"
        sandbox.check(what)
        assert not any(map(lasting, dead)), f"{what}: processes outlive it"
        for path, mark in kept.items():
            assert _mark(path) == mark, f"{what}: {path.name} was made again"
        figures.settled.append(len(kept))
    figures.restarts += figures.kills - len(figures.settled)
    return figures


def kill_at_steps(root: Path, work: Work, most: int) -> Figures:
    """Kill a command right before it opens, renames or removes a file, at each such step or so many of them.

    Parameters
    ----------
    root : Path
        A folder that is not there yet.
    work : Work
        The command; what it does in its own process counts.
    most : int
        How many steps, evenly chosen.

    Raises
    ------
    AssertionError
        As :func:`kill_at_moments`.

    """
    sandbox = Sandbox(root, work)
    sandbox.fresh()
    steps = int(sandbox.finish(KILL_AT="0").rpartition("steps: ")[2])
    assert steps, "nothing is written by Python"
    figures = Figures(sandbox.seconds)
    for number in sorted({1 + place * steps // most for place in range(most)} | {steps}):
        sandbox.fresh()
        child = sandbox.start(KILL_AT=str(number))
        child.wait(PATIENCE)
        assert child.returncode == -signal.SIGKILL, sandbox.said(child)
        figures.kills += 1
        _count(figures, child.returncode, sandbox)
        kept = {path: _mark(path) for path in work.settled(sandbox.now)}
        figures.restarts += 1
        sandbox.finish()
        what = f"killed before step {number} of {steps}"
        sandbox.check(what)
        for path, mark in kept.items():
            assert _mark(path) == mark, f"{what}: {path.name} was made again"
        figures.settled.append(len(kept))
    return figures


def kill(child: "subprocess.Popen[bytes]", *, together: bool) -> None:
    """Kill the process group of a command, and with `together` all processes of its session."""
    targets = [child.pid, *lasting(child.pid)] if together else [child.pid]
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    for target in targets[1:]:
        with suppress(ProcessLookupError):
            os.kill(target, signal.SIGKILL)
    child.wait(PATIENCE)


def lasting(session: int) -> list[int]:
    """Processes of a session that are alive; after a moment in which those that were left notice it."""
    end = time.monotonic() + 5
    while (found := _members(session)) and time.monotonic() < end:
        if session in found:  # its first process is alive: nothing has ended yet
            return found
        time.sleep(0.02)
    return found


def state(folder: Path) -> State:
    """All that lies in a folder; of the cache, whose names may tell of times, what has no business to stay."""
    found: State = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith(".around/cache") and not re.search(r"\.(tmp|part|journal)", path.name):
            continue
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def _count(figures: Figures, code: int | None, sandbox: Sandbox) -> None:
    found = state(sandbox.now)
    if code == 0 or found == sandbox.whole:
        figures.after += 1
    elif found == sandbox.before:
        figures.before += 1
    else:
        figures.within += 1


def _mark(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_ino, about.st_mtime_ns


def _members(session: int) -> list[int]:
    """Processes of a session but for those that only wait to be forgotten."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            letter, _, _, number = stat.read_text().rpartition(")")[2].split()[:4]
            if int(number) == session and letter != "Z":
                found.append(int(stat.parent.name))
    return sorted(found)
