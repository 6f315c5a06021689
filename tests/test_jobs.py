import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from setsup.errors import DataError, SetsupError, advice, advised_for_command
from setsup.jobs import Unit, run
from setsup.samplers.spelling import spell
from tests.waiting import die, until

CHECKOUT = Path(__file__).resolve().parents[1]
linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="/proc tells about processes on Linux only")


def units(count: int) -> list[Unit[int]]:
    return [Unit(f"number {number}", number) for number in range(count)]


def square(number: int) -> int:
    return number * number


def process(number: int) -> int:
    time.sleep(0.02)
    return os.getpid()


def workers() -> list[int]:
    """Workers of jobs among the children of this process."""
    tasks = Path("/proc/self/task").iterdir()
    found = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    return [pid for pid in found if b"setsup.jobs" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("processes", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 23])
def test_results_come_in_the_order_of_the_units(processes: int, count: int) -> None:
    assert run(square, units(count), processes=processes) == [number**2 for number in range(count)]


def advised(number: int) -> str:
    return f"{advice('pass root=', 'give --root')}, or {spell(size=number)}"


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("start", ["jobs", "fork", "spawn"])
def test_errors_in_worker_processes_name_options_of_the_command(start: str) -> None:
    def told() -> list[str]:
        if start == "jobs":
            return run(advised, units(2), processes=2)
        with multiprocessing.get_context(start).Pool(1) as pool:
            return pool.map(advised, range(2))

    with advised_for_command(), advised_for_command({"size": "--size"}):
        assert told() == ["give --root, or --size 0", "give --root, or --size 1"]
    assert told() == ["pass root=, or size=0", "pass root=, or size=1"]


@pytest.mark.long("worker processes")
def test_several_processes_work_and_this_one_does_not() -> None:
    found = run(process, units(60), processes=2)
    assert len(set(found)) == 2
    assert os.getpid() not in found
    assert set(run(process, units(3), processes=1)) == {os.getpid()}


def test_functions_of_scripts_travel_with_what_they_hold() -> None:
    offset = 1000
    assert run(lambda number: number + offset, units(4), processes=2) == [1000, 1001, 1002, 1003]


@pytest.mark.long("worker processes")
def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """Nor does a worker import the script, whose other lines would run again."""
    (tmp_path / "script.py").write_text(
        textwrap.dedent("""
        from setsup.jobs import Unit, run
        print("once")
        class Held:
            def __init__(self, number): self.number = number
        def double(held): return Held(2 * held.number)
        found = run(double, [Unit(str(n), Held(n)) for n in range(5)], processes=2)
        print([held.number for held in found])
    """)
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    assert done.stdout == "once\n[0, 2, 4, 6, 8]\n"


def test_what_units_are_large_arrives() -> None:
    data = [Unit(str(number), bytes([number]) * 3_000_000) for number in range(4)]
    assert run(lambda data: data[:2] + data[-2:], data, processes=2) == [bytes([number]) * 4 for number in range(4)]


# -- failures ----------------------------------------------------------------------------------------------------------


def refuse(number: int) -> int:
    if number == 7:
        raise DataError("the seventh is missing")
    return number


def stumble(number: int) -> float:
    return 1 / (number - 7)


class Strange(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def surprise(number: int) -> None:
    raise Strange(number, 2)


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("processes", [1, 3])
def test_errors_keep_their_kind_and_message(processes: int) -> None:
    with pytest.raises(DataError, match=r"^the seventh is missing$"):
        run(refuse, units(30), processes=processes)
    with pytest.raises(ZeroDivisionError) as error:
        run(stumble, units(30), processes=processes)
    if processes > 1:
        notes = "\n".join(error.value.__notes__)
        assert "in stumble" in notes
        assert notes.endswith("in number 7, in a worker process")


@pytest.mark.long("worker processes")
def test_errors_that_do_not_travel_say_what_they_said() -> None:
    with pytest.raises(SetsupError, match=r"a worker process failed: Strange: \d and 2"):
        run(surprise, units(4), processes=2)


def test_what_does_not_pickle_is_said() -> None:
    lock = threading.Lock()
    with pytest.raises(SetsupError, match="the work cannot be sent to other processes"):
        run(lambda number: lock and number, units(4), processes=2)


def test_data_that_does_not_pickle_is_said() -> None:
    with pytest.raises(SetsupError, match="the work cannot be sent to other processes"):
        run(square, [Unit(str(number), threading.Lock()) for number in range(4)], processes=2)


def broken() -> Any:
    raise RuntimeError("no such thing here")


class Broken:
    def __reduce__(self) -> Any:
        return broken, ()

    def __call__(self, number: int) -> int:
        return number


@pytest.mark.long("worker processes")
def test_what_does_not_open_is_said() -> None:
    with pytest.raises(SetsupError, match="cannot unpickle the work: RuntimeError: no such thing here"):
        run(Broken(), units(4), processes=2)


@pytest.mark.parametrize("processes", [0, -1, True, 1.5, "2"])
def test_numbers_of_processes_that_are_none(processes: Any) -> None:
    with pytest.raises(SetsupError, match="processes must be an integer of at least 1"):
        run(square, units(3), processes=processes)


@pytest.mark.long("kills and interruptions")
def test_a_unit_whose_process_is_killed_is_begun_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run(functools.partial(die, tmp_path, 1), units(12), processes=2) == list(range(12))
    assert caplog.messages == [
        "a worker process ended by SIGKILL while it was working on number 3, most likely killed by the operating "
        "system because memory ran out; starting it again"
    ]


@pytest.mark.long("kills and interruptions")
def test_a_unit_that_kills_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        SetsupError,
        match=r"by SIGKILL for the second time while it was working on number 3, .* memory ran out; use fewer proc",
    ):
        run(functools.partial(die, tmp_path, 2), units(12), processes=2)
    assert len(list(tmp_path.iterdir())) == 2


def leave(number: int) -> int:
    os._exit(5)


@pytest.mark.long("worker processes")
def test_a_process_that_ends_by_itself_is_said() -> None:
    with pytest.raises(
        SetsupError, match=r"ended with exit code 5 for the second .* possibly by code that it ran; use"
    ):
        run(leave, units(3), processes=2)


def signalled(number: int) -> None:
    os.kill(os.getpid(), 40)


@pytest.mark.long("kills and interruptions")
@linux
def test_a_signal_without_a_name_is_said() -> None:
    with pytest.raises(
        SetsupError, match=r"ended by signal 40 for the second .*, possibly stopped by another program; use"
    ):
        run(signalled, units(3), processes=2)


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("closed", [(0, 1), (0, 1, 2)])
def test_standard_streams_may_be_closed(closed: tuple[int, ...], tmp_path: Path) -> None:
    """As those of daemons: their numbers are those of the next files that are opened."""
    code = f"""
    import os
    from setsup.jobs import Unit, run
    for number in {closed}:
        os.close(number)
    found = run(lambda number: print(number, flush=True) or number, [Unit("", n) for n in range(4)], processes=2)
    open({str(tmp_path / "found")!r}, "w").write(str(found))
    os._exit(0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=60, check=True, cwd=CHECKOUT)
    assert (tmp_path / "found").read_text() == "[0, 1, 2, 3]"


# -- nothing is left behind --------------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
@linux
def test_no_process_is_left_after_work_or_error() -> None:
    run(square, units(8), processes=3)
    assert not workers()
    with pytest.raises(DataError):
        run(refuse, units(30), processes=3)
    assert not workers()


LONG = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
from setsup.jobs import Unit, run
def wait(number):
    import time
    time.sleep(60)
print("ready", flush=True)
try:
    run(wait, [Unit(str(n), n) for n in range(8)], processes=3)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.long("worker processes")
@linux
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(how: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT
    )
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline() == "ready\n"
    tasks = Path(f"/proc/{child.pid}/task/{child.pid}/children")
    assert until(lambda: len(tasks.read_text().split()) == 3)
    time.sleep(0.5)  # so that they are at work
    pids = [int(pid) for pid in tasks.read_text().split()]
    child.send_signal(how)
    out, err = child.communicate(timeout=30)
    assert out == ("stopped\n" if how == signal.SIGINT else "")
    assert err == ""
    assert until(lambda: not any(map(alive, pids)))
