"""A run that is killed on one machine and resumed on another, from its folder alone."""

import multiprocessing
import os
import platform
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import RunConfig, open_run, train  # noqa: E402
from setsup.experiments.runs.checkpoint import trained_steps  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from tests.experiments.small import DROPOUT  # noqa: E402

PRESET = replace(DROPOUT, steps=8, checkpoint_every=100)
EVERY_STEP = 1e-9  # minutes


def on_machine(name: str, home: Path, die_at: int | None = None) -> None:
    """Train in a folder of this machine; at a step, the machine goes down."""
    torch.set_num_threads(1)  # of a forked process: the other threads of its parent are not there
    os.chdir(home)
    socket.gethostname = lambda: name
    platform.node = lambda: name
    step, begun = ABC.training_step, []

    def training_step(self: ABC, batch: Any, batch_idx: int) -> Any:
        begun.append(batch_idx)
        if len(begun) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, batch, batch_idx)

    ABC.training_step = training_step  # type: ignore[method-assign]
    minutes = EVERY_STEP if die_at else None
    train(PRESET, Path("runs", "seed-0"), config=RunConfig(workers=0, accelerator="cpu", checkpoint_minutes=minutes))


def started(*given: Any) -> int | None:
    process = multiprocessing.get_context("fork").Process(target=on_machine, args=given, daemon=True)
    process.start()
    process.join(120)
    return process.exitcode


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.long("trainings")
def test_a_run_resumes_on_another_machine_from_the_step_it_was_killed_at(tmp_path: Path) -> None:
    first, second, whole = (tmp_path / name for name in ("first", "second", "whole"))
    for home in (first, second, whole):
        home.mkdir()
    assert started("first", first, 6) == -signal.SIGKILL
    assert trained_steps(open_run(first / "runs" / "seed-0", PRESET).state()) == 5, "one checkpoint per EVERY_STEP"
    (first / "runs").rename(second / "runs")
    assert started("second", second) == 0
    assert started("third", whole) == 0
    resumed, unbroken = (open_run(home / "runs" / "seed-0", PRESET) for home in (second, whole))
    weights = unbroken.state()["state_dict"]
    assert all(torch.equal(value, weights[name]) for name, value in resumed.state()["state_dict"].items())
    lines = (resumed.folder / "metrics.jsonl").read_text()
    assert lines == (unbroken.folder / "metrics.jsonl").read_text()
    assert resumed.finished


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("nan"), float("inf")])
def test_minutes_that_are_none(minutes: float) -> None:
    with pytest.raises(SetsupError, match="checkpoint_minutes must be above 0"):
        RunConfig(checkpoint_minutes=minutes)
