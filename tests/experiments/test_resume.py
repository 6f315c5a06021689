"""A run that is killed at any moment and resumed equals the uninterrupted one, bit for bit on the CPU."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.experiments import Preset, Run, open_run  # noqa: E402
from tests.experiments.children import STOPPED  # noqa: E402
from tests.experiments.resumable import METHODS  # noqa: E402
from tests.experiments.small import AUGMENTED, DROPOUT, HALVED, PLAIN  # noqa: E402
from tests.experiments.validated import VALIDATED  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
KILLED = -signal.SIGKILL


class Children:
    """The script of `children.py`: each order is a training in a process of its own."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self.script = subprocess.Popen(
            [sys.executable, "-m", "tests.experiments.children"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, preset: Preset, folder: Path, **order: Any) -> int:
        """Train; how the process ended."""
        assert self.script.stdin is not None
        assert self.script.stdout is not None
        print(json.dumps({"preset": preset.name, "folder": str(folder), **order}), file=self.script.stdin, flush=True)
        return int(self.script.stdout.readline())

    def close(self) -> None:
        """Let the script end."""
        self.script.communicate()
        assert self.script.returncode == 0


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    script = Children()
    yield script
    script.close()


@pytest.fixture(scope="module")
def whole(children: Children, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Runs that were never stopped, of processes of the same kind: sums over other numbers of threads differ."""
    kept: dict[tuple[str, str], Run] = {}

    def run(preset: Preset, **order: Any) -> Run:
        key = preset.name, str(order)
        if key not in kept:
            folder = tmp_path_factory.mktemp("whole")
            assert children(preset, folder, **order) == 0
            kept[key] = open_run(folder, preset)
        return kept[key]

    return run


def parts(state: Any) -> Any:
    """A checkpoint's parts, tensors as their bytes."""
    if isinstance(state, dict):
        return {key: parts(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [parts(value) for value in state]
    return (state.dtype, state.shape, state.numpy().tobytes()) if isinstance(state, torch.Tensor) else state


def checked_equal(run: Path, whole: Run) -> None:
    """Bit for bit: metrics, weights, states of optimisers, schedules and callbacks, and the position in the draws."""
    for name in ("metrics.jsonl", "metrics.csv"):
        assert (run / name).read_bytes() == (whole.folder / name).read_bytes()
    state, expected = (torch.load(at / "last.ckpt", weights_only=True) for at in (run, whole.folder))
    for found in (state, expected):
        del found["callbacks"]["CheckpointCallback"]["seconds"]
    for key in ("state_dict", "optimizer_states", "lr_schedulers", "callbacks", "LightningBatches", "global_step"):
        assert parts(state[key]) == parts(expected[key])
    assert parts(state.get("current_model_state")) == parts(expected.get("current_model_state")), "averaged weights"
    names = {path.name for path in run.iterdir()}
    left = {"run.json", "config.yaml", "factors.parquet", "first-batch.png"}
    left |= {"metrics.jsonl", "metrics.csv", "last.ckpt"}
    assert names == left, "nothing half-written is left"


def steps_of(folder: Path) -> int:
    """Steps of the checkpoint."""
    checkpoint = folder / "last.ckpt"
    return torch.load(checkpoint, weights_only=True)["callbacks"]["StepCounter"]["steps"] if checkpoint.exists() else 0


@pytest.mark.long("kills and interruptions")
def test_a_run_killed_at_each_moment_is_the_run_that_was_not(
    children: Children, whole: Callable[..., Run], tmp_path: Path
) -> None:
    """What a run writes, and when, is no matter of its method."""
    folder, preset, order = tmp_path / "run", METHODS[0], {"brief": True}
    assert children(preset, folder, send=[2, [signal.SIGKILL]], **order) == KILLED  # before the first checkpoint
    assert steps_of(folder) == 0
    assert children(preset, folder, send=[4, [signal.SIGKILL]], flush=1, **order) == KILLED  # in a step after one
    assert steps_of(folder) == 2
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 3
    with (folder / "metrics.jsonl").open("a") as lines:
        lines.write('{"step": 4, "lo')  # the disk took half a line
    assert children(preset, folder, cut_off=[1, 0.5], **order) == KILLED  # while the next is written
    assert steps_of(folder) == 2
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 4
    assert children(preset, folder, cut_off=[1, 1.0], **order) == KILLED  # when it was just renamed
    assert steps_of(folder) == 4
    assert children(preset, folder, cut_off=[1, 0.0], **order) == KILLED  # at the end, before the last one
    assert steps_of(folder) == 4
    assert children(preset, folder, cut_off=[1, 1.0], **order) == KILLED  # when the last one was just renamed
    assert steps_of(folder) == 6
    for _ in range(2):  # what is finished stays
        assert children(preset, folder, **order) == 0
        checked_equal(folder, whole(preset, **order))


@pytest.mark.long("trainings")
@pytest.mark.parametrize("preset", METHODS[1:], ids=lambda preset: preset.name)
def test_a_run_of_any_method_that_is_killed_is_the_run_that_was_not(
    children: Children, whole: Callable[..., Run], tmp_path: Path, preset: Preset
) -> None:
    """The contract of all methods, which `resumable.py` lists: of six steps, the last two are taken again."""
    folder, order = tmp_path / "run", {"brief": True}
    if preset.initial_run:
        first = next(other for other in METHODS if other.name == preset.initial_run)
        order["first"] = str(whole(first, **order).folder)
    assert children(preset, folder, send=[6, [signal.SIGKILL]], flush=1, **order) == KILLED
    assert steps_of(folder) == 4  # rates that halve every 3 steps, and state by step, have changed by then
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 5
    assert children(preset, folder, **order) == 0
    checked_equal(folder, whole(preset, **order))


@pytest.mark.long("kills and interruptions")
def test_a_run_killed_at_random_moments_is_the_run_that_was_not(
    children: Children, whole: Callable[..., Run], tmp_path: Path
) -> None:
    dice = random.Random()
    folder, ends = tmp_path / "run", []
    while len(ends) < 8 and 0 not in ends:
        ends.append(children(HALVED, folder, seconds=dice.uniform(0.02, 0.3), flush=dice.randint(1, 5)))
    assert set(ends) <= {KILLED, 0}
    assert children(HALVED, folder) == 0
    checked_equal(folder, whole(HALVED))


@pytest.mark.long("kills and interruptions")
def test_a_run_killed_during_validation_is_the_run_that_was_not(
    children: Children, whole: Callable[..., Run], tmp_path: Path
) -> None:
    folder = tmp_path / "worst"
    for number, steps in ((1, 0), (3, 14), (1, 14), (2, 14)):
        assert children(VALIDATED, folder, validate=number, flush=1) == KILLED
        assert steps_of(folder) == steps
    assert children(VALIDATED, folder, send=[20, [signal.SIGTERM]]) == STOPPED
    assert steps_of(folder) == 20
    assert "validation/loss" in (folder / "metrics.jsonl").read_text().splitlines()[19]
    assert children(VALIDATED, folder) == 0
    checked_equal(folder, whole(VALIDATED))
    dice, kills, number = random.Random(), 0, 0
    while kills < 3:
        folder = tmp_path / f"random-{number}"
        end = children(VALIDATED, folder, seconds=dice.uniform(0.1, 0.5), flush=dice.randint(1, 5))
        assert end in (KILLED, 0)
        kills, number = kills + (end == KILLED), number + (end == 0)
    assert children(VALIDATED, folder) == 0
    checked_equal(folder, whole(VALIDATED))


@pytest.mark.smoke
def test_a_run_killed_on_two_threads_is_the_run_that_was_not(tmp_path: Path) -> None:
    """In interpreters of their own: a fork of a process that computed on several threads cannot do so."""
    code = "import json, sys; from tests.experiments import children; sys.exit(children.work(json.loads(sys.argv[1])))"
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)}

    def trained(name: str, **order: Any) -> int:
        order |= {"preset": VALIDATED.name, "folder": str(tmp_path / name)}
        return subprocess.run([sys.executable, "-c", code, json.dumps(order)], cwd=ROOT, env=environment).returncode

    assert trained("whole") == 0
    assert trained("killed", validate=3, flush=1) == KILLED
    assert steps_of(tmp_path / "killed") == 14
    assert trained("killed") == 0
    checked_equal(tmp_path / "killed", open_run(tmp_path / "whole", VALIDATED))


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_run_asked_to_stop_ends_its_step_and_goes_on_there(
    children: Children, whole: Callable[..., Run], tmp_path: Path, number: int
) -> None:
    folder = tmp_path / "run"
    for step in (1, 11, 14, 20):  # 14 has a checkpoint anyhow
        assert children(HALVED, folder, send=[step, [number]]) == STOPPED
        assert steps_of(folder) == step
        lines = (folder / "metrics.csv").read_text().splitlines()
        assert len(lines) == 1 + step, "a run that was stopped can be looked at"
    assert children(HALVED, folder, send=[30, [number]]) == 0, "after the last step there is nothing to stop"
    checked_equal(folder, whole(HALVED))


@pytest.mark.long("kills and interruptions")
def test_a_second_signal_does_not_wait(children: Children, whole: Callable[..., Run], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert children(DROPOUT, folder, send=[10, [signal.SIGINT, signal.SIGINT]]) == STOPPED
    assert steps_of(folder) == 7
    assert children(DROPOUT, folder) == 0
    checked_equal(folder, whole(DROPOUT))


@pytest.mark.long("kills and interruptions")
def test_workers_do_not_change_a_run(children: Children, whole: Callable[..., Run], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert children(AUGMENTED, folder, workers="thread", send=[10, [signal.SIGKILL]]) == KILLED
    assert children(AUGMENTED, folder, workers=1) == 0
    checked_equal(folder, whole(AUGMENTED))


@pytest.mark.long("trainings")
def test_another_seed_is_another_run(children: Children, whole: Callable[..., Run], tmp_path: Path) -> None:
    assert children(PLAIN, tmp_path, seed=1) == 0
    other = open_run(tmp_path, PLAIN)
    assert (other.folder / "metrics.jsonl").read_text() != (whole(PLAIN).folder / "metrics.jsonl").read_text()
    state, expected = (run.state()["state_dict"] for run in (other, whole(PLAIN)))
    assert not torch.equal(state["encoder.1.weight"], expected["encoder.1.weight"])


def kept(folder: Path) -> dict[str, bytes]:
    """Results of evaluations, and their parts."""
    files = [folder / "evaluation.json", *folder.glob("evaluation/*/*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def checked_whole(folder: Path, whole: Path) -> None:
    """Equal bytes of metrics, weights, positions and evaluations."""
    for name in ("metrics.jsonl", "metrics.csv"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    state, expected = (torch.load(at / "last.ckpt", weights_only=True) for at in (folder, whole))
    for key in ("state_dict", "optimizer_states", "LightningBatches", "global_step"):
        assert parts(state[key]) == parts(expected[key])
    assert kept(folder) == kept(whole)


@pytest.mark.smoke
def test_twenty_kills_in_training_validation_and_evaluation(children: Children, tmp_path: Path) -> None:
    assert children(VALIDATED, tmp_path / "whole", measured=True) == 0
    dice, folder, kills = random.Random(3), tmp_path / "killed", 0
    while kills < 20:
        end = children(VALIDATED, folder, seconds=dice.uniform(0.05, 1.5), flush=dice.randint(1, 5), measured=True)
        kills += end == KILLED
        if end == 0:  # another kill would meet nothing
            checked_whole(folder, tmp_path / "whole")
            shutil.rmtree(folder)
    assert children(VALIDATED, folder, measured=True) == 0
    checked_whole(folder, tmp_path / "whole")
