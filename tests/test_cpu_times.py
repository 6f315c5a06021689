"""A run names the unmarked tests that take too much CPU time: pytest runs pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist", reason="pytest-xdist is not installed")
pytestmark = pytest.mark.long("subprocesses")

CONFTEST = """
from tests import cpu_times

cpu_times.RULE, cpu_times.MOST = 0.1, 0.3


def pytest_configure(config):
    config.addinivalue_line("markers", "long(kind)")
    config.pluginmanager.register(cpu_times)
"""
TESTS = """
import subprocess, sys, time
import pytest

BURN = "import time\\nwhile time.process_time() < 0.8: pass"


@pytest.fixture(scope="module")
def shared():
    burn()


def burn():
    until = time.process_time() + 0.8
    while time.process_time() < until:
        pass


def test_quick(shared): pass
def test_waits(): time.sleep(1)
def test_imports():
    import xml.dom.pulldom
    burn()
@pytest.mark.long("burning")
def test_marked(): burn()
"""
SLOW = "def test_burns(): burn()\ndef test_of_a_process(): subprocess.run([sys.executable, '-c', BURN])\n"


@pytest.mark.parametrize(("slow", "workers"), [(False, 0), (True, 2)])
def test_unmarked_tests_that_burn_are_named(tmp_path: Path, slow: bool, workers: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS + SLOW * slow)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(workers), tmp_path],
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        | {"PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    told = [line.rpartition("::")[2] for line in done.stdout.splitlines() if "without a mark" in line]
    assert sorted(told) == ["test_burns", "test_of_a_process"] * slow
    assert "failed" not in done.stdout
