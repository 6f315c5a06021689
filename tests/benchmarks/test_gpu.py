"""The benchmarks of a GPU: all of them shrunk on the processor, and how several short stays on a machine add up."""

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch._C._autograd import DeviceType

from benchmarks import __main__ as command
from benchmarks import devices, gpu_pixels, gpu_tests
from benchmarks.devices import attempt, need_none
from benchmarks.limit import limited
from benchmarks.measure import SHRINK, Spread
from benchmarks.rows import Row, at_most
from benchmarks.run import Run, Unfinished
from setsup.experiments import open_run
from tests.experiments.small import PLAIN

ROOT = Path(__file__).resolve().parents[2]


def row(topic: str, what: str = "one", figure: float = 2.0) -> Row:
    return Row(topic, what, "1 s", "a peer", "2 s", Spread(figure, figure, figure), "s", at_most(3))


@pytest.fixture
def modules() -> Iterator[None]:
    """Topics are imported anew, since their sizes are chosen then, and again by tests to come."""
    before = {name: module for name, module in sys.modules.items() if name.startswith("benchmarks.")}
    for name in before.keys() - {"benchmarks.__main__"}:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if name.startswith("benchmarks.")]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.long("benchmarks")
@pytest.mark.usefixtures("modules")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("topic", command.GPU)
def test_each_step_runs_shrunk_on_the_processor(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHRINK, "1")
    monkeypatch.chdir(ROOT)
    kept = tmp_path / "kept.json"
    assert command.main([topic, "--shrink", "--json", str(kept), "--resume"]) == 0
    found = json.loads(kept.read_text(encoding="utf-8"))
    assert found["failed"] == {}
    assert {one["topic"] for one in found["rows"]} == {topic}
    assert found["seconds"].keys() == {topic}


def test_gpu_stands_for_its_topics_and_is_not_among_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert command._options(["gpu"]).topics == [*command.GPU]
    assert command._options(["gpu_runs", "gpu"]).topics[0] == "gpu_runs"
    assert not {*command._options([]).topics} & {*command.GPU}
    assert all(seconds <= command.STEP for seconds in command.GPU.values())
    with pytest.raises(SystemExit):
        command._options(["gpu", "--resume"])
    assert "--resume needs --json" in capsys.readouterr().err


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run topics of these tests in place of those of a GPU; the exit code, and what was kept."""
    monkeypatch.setenv(SHRINK, "0")
    monkeypatch.setattr(command, "accelerator", lambda: "a GPU")

    def run(*words: str, **topics: Any) -> tuple[int, Any]:
        monkeypatch.setattr(command, "GPU", dict.fromkeys(topics, 60))
        for name, rows in topics.items():
            module = ModuleType(f"benchmarks.{name}")
            module.rows = rows  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, module.__name__, module)
        kept = tmp_path / "kept.json"
        code = command.main(["gpu", "--json", str(kept), *words])
        return code, json.loads(kept.read_text(encoding="utf-8"))

    return run


def test_stays_add_up(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def first(full: bool) -> Iterator[Row]:
        asked.append("first")
        yield row("first")

    def second(full: bool) -> Iterator[Row]:
        asked.append("second")
        yield row("second", figure=float(len(asked)))
        if len(asked) < 4:
            raise Unfinished("at step 5 of 9")
        yield row("second", "two")

    monkeypatch.setattr(command, "machine", lambda: "machine A")
    code, kept = run("--resume", first=first, second=second)
    assert (code, kept["unfinished"]) == (1, {"second": "at step 5 of 9"})
    monkeypatch.setattr(command, "machine", lambda: "machine B")
    run("--resume", first=first, second=second)
    code, kept = run("--resume", first=first, second=second)
    assert asked == ["first", "second", "second", "second"]
    assert (code, kept["failed"], "unfinished" in kept) == (0, {}, False)
    assert [(one["topic"], one["what"], one["figure"]["median"]) for one in kept["rows"]] == [
        ("first", "one", 2.0),
        ("second", "one", 4.0),
        ("second", "two", 2.0),
    ], "a row that is measured again takes the place of the earlier one"
    assert kept["about"][0] == "machine A"
    assert [(one["topics"], one["on"][:9], one["on"][-5:]) for one in kept["later"]] == 2 * [
        ("second", "machine B", "a GPU")
    ]
    assert kept["rows"][0]["bound"] == "≤ 3"
    run(first=first, second=second)
    assert asked.count("first") == 2, "without --resume all is measured"


def test_a_topic_that_failed_or_was_killed_is_measured_again(run: Any, tmp_path: Path) -> None:
    def failing(full: bool) -> Iterator[Row]:
        yield row("failing")
        raise ValueError("no driver")

    code, kept = run("--resume", failing=failing)
    assert (code, kept["failed"]) == (1, {"failing": "ValueError: no driver"})
    again = Run(tmp_path / "kept.json", ["now"], resume=True)
    assert not again.done("failing")
    again.begin("failing")
    again.keep(row("failing"))  # and the machine goes away
    assert not Run(tmp_path / "kept.json", ["later"], resume=True).done("failing")


def test_what_always_fails_keeps_no_other_from_its_turn(run: Any) -> None:
    asked: list[str] = []

    def rows_of(name: str) -> Any:
        def rows(full: bool) -> Iterator[Row]:
            asked.append(name)
            failed: list[str] = []
            for part in ("one", "two"):
                with attempt(part, failed):
                    if (name, part) == ("first", "one"):
                        raise ValueError("no compiler")
                    yield row(name, part)
            if asked.count("second") == 1:
                raise KeyboardInterrupt  # the stay ends
            need_none(failed)

        return rows

    code, kept = run("--resume", first=rows_of("first"), second=rows_of("second"))
    assert (code, kept["failed"]) == (130, {"first": "RuntimeError: one: ValueError: no compiler"})
    assert (kept["rows"][0]["topic"], kept["rows"][0]["what"]) == ("first", "two")
    run("--resume", first=rows_of("first"), second=rows_of("second"))
    assert asked == ["first", "second", "second", "first"]


def test_an_attempt_does_not_outlast_the_time() -> None:
    with pytest.raises(TimeoutError), attempt("one", []):
        raise TimeoutError


def test_rows_that_a_topic_no_longer_has_are_dropped_when_it_is_done(tmp_path: Path) -> None:
    first = Run(tmp_path / "kept.json", ["now"])
    for what in ("aten::mm", "aten::add"):
        first.keep(row("gpu_pixels", what))
    first.fail("gpu_pixels", "no compiler")
    again = Run(tmp_path / "kept.json", ["later"], resume=True)
    again.begin("gpu_pixels")
    again.keep(row("gpu_pixels", "aten::mm"))
    assert len(again.rows) == 2
    again.took("gpu_pixels", 1.0)
    assert [one.what for one in again.rows] == ["aten::mm"]


def test_rows_of_other_options_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.json"
    Run(kept, ["now"], shrunk=True)
    before = kept.read_bytes()
    assert command.main(["gpu", "--resume", "--json", str(kept)]) == 2
    assert "is of a run with other options" in capsys.readouterr().err
    assert kept.read_bytes() == before


def test_tests_that_crash_are_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crashing = tmp_path / "tests" / "gpu" / "test_crash.py"
    crashing.parent.mkdir(parents=True)
    crashing.write_text(
        "import os\nimport pytest\npytestmark = pytest.mark.gpu\n"
        "def test_first(): pass\ndef test_driver(): os._exit(11)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    monkeypatch.setattr(gpu_tests, "CHECKOUT", tmp_path)
    monkeypatch.setattr(gpu_tests, "FILES", ("tests/gpu",))
    monkeypatch.setattr(gpu_tests, "device", lambda: "cpu")
    found: list[Row] = []
    with pytest.raises(RuntimeError, match="pytest ended with exit code 11"):
        found.extend(gpu_tests.rows(False))
    assert [one.ours for one in found] == ["1 passed"]


def test_the_profile_counts_a_kernel_once_with_the_operator_that_launched_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def event(key: str, on: Any, gpu: float, processor: float) -> Any:
        times = {"self_device_time_total": gpu, "self_cpu_time_total": processor}
        return SimpleNamespace(key=key, device_type=on, count=gpu_pixels.PROFILED, **times)

    events = [
        event("aten::mm", DeviceType.CPU, 300, 60),
        event("aten::add", DeviceType.CPU, 100, 40),
        event("void gemm_kernel<128>(float*)", DeviceType.CUDA, 300, 0),
        event("void add_kernel(float*)", DeviceType.CUDA, 100, 0),
    ]
    profiler = nullcontext(SimpleNamespace(key_averages=lambda: events))
    monkeypatch.setattr("torch.profiler.profile", lambda **options: profiler)
    shares = {one.what.rpartition("profile, bf16")[2]: one.figure.median for one in gpu_pixels._profile(int, "cuda:0")}
    assert shares == {
        ": operators of a step": 2,
        ", by the GPU's time: aten::mm": 75,
        ", by the GPU's time: aten::add": 25,
        ", by the processor's time: aten::mm": 60,
        ", by the processor's time: aten::add": 40,
    }


def test_published_files_are_found_in_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mnist").mkdir()
    monkeypatch.setattr(devices, "USER_CACHE", tmp_path)
    monkeypatch.setenv("SETSUP_CACHE", "that of a run of the benchmarks")
    assert devices.published("mnist") == tmp_path / "mnist"


def test_a_topic_that_takes_too_long_keeps_its_rows(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(full: bool) -> Iterator[Row]:
        yield row("slow")
        time.sleep(60)

    monkeypatch.setattr(command, "STEP", 0.05)
    code, kept = run(slow=slow)
    assert code == 1
    assert kept["failed"]["slow"].startswith("TimeoutError: it was stopped after 0.05 s")
    assert len(kept["rows"]) == 1
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with limited(60):
        pass
    assert signal.getsignal(signal.SIGALRM) == before


@pytest.mark.long("trainings")
def test_runs_stop_after_the_time_of_a_stay_and_go_on_in_the_next(tmp_path: Path) -> None:
    from benchmarks.gpu_runs import stay

    long, folder = replace(PLAIN, steps=100_000), tmp_path / "seed-0"
    assert stay(long, folder, 0.0) == (None, False)
    steps = [0]
    for turn in range(1, 30):  # a busy machine may train nothing in a short stay
        run, done = stay(long, folder, 0.3 * turn)
        assert not done
        if run is not None and run.progress().steps > steps[-1]:
            steps.append(run.progress().steps)
        if len(steps) == 3:
            break
    assert 0 < steps[1] < steps[2] < 100_000
    run, done = stay(replace(PLAIN, steps=steps[2]), folder, 60)
    assert done
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["steps"] == steps[2] == open_run(folder, PLAIN).progress().steps
    assert len(summary["weights_sha256"]) == 64
    assert summary["metrics"].keys() >= {"loss"}
    assert summary["run"]["config"]["checkpoint_minutes"] == 1
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
