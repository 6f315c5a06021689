"""What becomes of a run whose worker crashes or is killed: pytest runs pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist", reason="pytest-xdist is not installed")
pytestmark = [
    pytest.mark.long("kills and interruptions"),
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
]

SEGFAULT = "ctypes.string_at(0)"
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
HELD_OPEN = f"os.fork() or time.sleep(100) or os._exit(0)\n    {KILLED}"  # a child holds the worker's pipe


@pytest.mark.parametrize("how", [
    pytest.param(SEGFAULT, id="segfault"),
    pytest.param(KILLED, id="killed"),
    pytest.param(HELD_OPEN, id="killed, pipe held open"),
])  # fmt: skip
def test_a_crashed_worker_ends_the_run_as_a_failure(how: str, tmp_path: Path) -> None:
    # the other worker has more to do than the run may take
    lines = ["import ctypes, os, signal, time", "def test_first(): pass", "def test_other(): time.sleep(300)"]
    (tmp_path / "conftest.py").write_text("from tests.crashes import pytest_testnodedown, pytest_testnodeready\n")
    (tmp_path / "test_a.py").write_text("\n".join([*lines, "def test_last(): pass"]))
    (tmp_path / "test_b.py").write_text(
        "\n".join([*lines[:2], f"def test_crash():\n    {how}", "def test_last(): pass"])
    )
    output = tmp_path / "output"
    with output.open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", tmp_path],
            env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
            | {"PYTHONPATH": str(Path(__file__).parents[1])},
            cwd=tmp_path,
            stdout=file,
            timeout=60,
            check=False,
        )
    said = output.read_text()
    assert done.returncode == 1, said
    assert "FAILED test_b.py::test_crash - worker 'gw" in said
    assert "crashed or was killed" in said
