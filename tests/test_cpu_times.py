"""A run names the unmarked tests that take too much CPU time, and fails in CI: pytest runs pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist", reason="pytest-xdist is not installed")
pytestmark = pytest.mark.long("subprocesses")

CONFTEST = """
from tests import cpu_times

cpu_times.RULE, cpu_times.MOST = 0.05, 0.15


def pytest_configure(config):
    config.addinivalue_line("markers", "long(kind)")
    config.pluginmanager.register(cpu_times)
"""
TESTS = """
import subprocess, sys, time
from pathlib import Path
import pytest

BURN = "import time\\nwhile time.process_time() < 0.3: pass"


@pytest.fixture(scope="module")
def shared():
    burn()


def burn():
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass


def test_quick(shared): pass
def test_waits(): time.sleep(0.3)
def test_imports():
    import xml.dom.pulldom
    burn()
@pytest.mark.long("burning")
def test_marked(): burn()
def test_burns_once(): Path("burned").exists() or burn() or Path("burned").touch()
"""
SLOW = "def test_burns(): burn()\ndef test_of_a_process(): subprocess.run([sys.executable, '-c', BURN])\n"


@pytest.mark.parametrize(("slow", "workers", "ci"), [(False, 0, True), (True, 2, True), (True, 0, False)])
def test_unmarked_tests_that_burn_are_named(tmp_path: Path, slow: bool, workers: int, ci: bool) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS + SLOW * slow)
    left_out = ("PYTEST_", "CI")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(workers), tmp_path],
        env={key: value for key, value in os.environ.items() if not key.startswith(left_out)}
        | {"PYTHONPATH": str(Path(__file__).parents[1])}
        | ({"CI": "true"} if ci else {}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == (slow and ci), done.stdout
    told = [line for line in done.stdout.splitlines() if "without a mark" in line]
    names = ["test_burns", "test_burns_once", "test_of_a_process"] if slow else ["test_burns_once"]
    assert sorted(line.rpartition("::")[2] for line in told) == names
    assert all(("s alone" in line) == ci for line in told)
    assert " failed" not in done.stdout
    assert ("the run fails: make these cheaper" in done.stdout) == (slow and ci)
