"""Processes of a training that outlive the first."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from tests.experiments.ranks import LEFT
from tests.kills import lasting

ROOT = Path(__file__).resolve().parents[2]

# the first process ends where it is told, and the other one is on its way to a meeting that never takes place
SCRIPT = """
import os, signal, subprocess, sys
from dataclasses import replace
from setsup.experiments import RunConfig, train
from setsup.methods.abc import ABC
from tests.experiments.small import PLAIN

number, moment = int(sys.argv[1]), sys.argv[2]
if os.environ.get("LOCAL_RANK", "0") == "0":
    if moment == "started":
        start = subprocess.Popen.__init__
        def started(self, *words, **more):
            start(self, *words, **more)
            os.kill(os.getpid(), number)
        subprocess.Popen.__init__ = started
    else:
        ABC.on_fit_start = lambda self: os.kill(os.getpid(), number)
elif moment != "started":
    import time
    ABC.on_fit_start = lambda self: time.sleep(3600)
train(replace(PLAIN, steps=4), "run", config=RunConfig(accelerator="cpu", devices=2, strategy="ddp"))
"""


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        pytest.param(signal.SIGKILL, "started", marks=pytest.mark.long("kills and interruptions")),
        pytest.param(signal.SIGTERM, "started", marks=pytest.mark.smoke),
        pytest.param(signal.SIGKILL, "fit", marks=pytest.mark.smoke),
    ],
)
def test_no_process_of_a_training_outlives_the_first(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    inherited = {name: value for name, value in os.environ.items() if name not in LEFT}
    first = subprocess.Popen(
        [sys.executable, "script.py", str(int(number)), moment],
        cwd=tmp_path,
        env={**inherited, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert first.wait(120) == -number
        end = time.monotonic() + 60  # imports of the other take their time
        while left := lasting(first.pid):
            assert time.monotonic() < end, f"{left} outlive the first process"
    finally:
        for each in lasting(first.pid):
            os.kill(each, signal.SIGKILL)
