"""Checkpoints that are kept next to the last one: which, when a run is killed, and what is measured on them."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import Measured, Preset, RunConfig, load_trained, open_run, train  # noqa: E402
from setsup.experiments.training import checkpoint_retention  # noqa: E402
from setsup.experiments.training.checkpoint_retention import split_metric  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from tests.experiments.small import PLAIN  # noqa: E402

PRESET = replace(PLAIN, steps=9, checkpoint_every=4)


def keeping_run(folder: Path, preset: Preset = PRESET, **kept: Any) -> Any:
    return train(preset, folder, config=RunConfig(workers=0, **kept))


def checkpoints(folder: Path) -> dict[str, int]:
    """Steps of all checkpoints by name."""
    return {path.stem: torch.load(path, weights_only=True)["global_step"] for path in sorted(folder.glob("*.ckpt"))}


def weights(path: Path) -> bytes:
    return b"".join(value.numpy().tobytes() for value in torch.load(path, weights_only=True)["state_dict"].values())


def losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.long("trainings")
def test_every_third_step_is_kept_as_if_the_run_had_ended_there(tmp_path: Path) -> None:
    keeping_run(tmp_path / "kept", keep_every=3)
    assert checkpoints(tmp_path / "kept") == {"last": 9, "step-000003": 3, "step-000006": 6, "step-000009": 9}
    keeping_run(tmp_path / "short", replace(PRESET, steps=6))
    assert weights(tmp_path / "kept" / "step-000006.ckpt") == weights(tmp_path / "short" / "last.ckpt")
    keeping_run(tmp_path / "none")
    assert weights(tmp_path / "kept" / "last.ckpt") == weights(tmp_path / "none" / "last.ckpt"), "nothing else changes"


@pytest.mark.parametrize(
    ("asked", "sign"), [("loss", 1), pytest.param("loss:max", -1, marks=pytest.mark.long("trainings"))]
)
def test_the_best_is_that_of_the_mean_since_the_checkpoint_before(tmp_path: Path, asked: str, sign: int) -> None:
    keeping_run(tmp_path, keep_best=asked)
    means = [sign * np.mean(losses(tmp_path)[start:end]) for start, end in ((0, 4), (4, 8), (8, 9))]
    assert checkpoints(tmp_path) == {"best": (4, 8, 9)[int(np.argmin(means))], "last": 9}


def test_metrics_and_their_directions() -> None:
    asked = ("loss", "loss:min", "accuracy:max", "knn/shape:max", "a:b:max")
    found = [split_metric(one) for one in asked]
    assert found == [("loss", 1), ("loss", 1), ("accuracy", -1), ("knn/shape", -1), ("a:b", -1)]
    with pytest.raises(SetsupError, match="must be METRIC, METRIC:min or METRIC:max, not 'loss:median'"):
        RunConfig(keep_best="loss:median")


class TestNowAndThen:
    """A metric that is logged at some steps, as by validation, has a checkpoint at each of these."""

    @pytest.fixture(autouse=True)
    def _logs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        values, whole = {2: 3.0, 5: 1.0, 7: float("nan"), 8: 2.0}, ABC.training_step

        def training_step(self: ABC, batch: Any, batch_idx: int) -> Any:
            if (step := self.global_step + 1) in values:
                self.log("validation/loss", values[step])
            return whole(self, batch, batch_idx)

        monkeypatch.setattr(ABC, "training_step", training_step)

    def test_the_best_is_of_its_step(self, tmp_path: Path) -> None:
        keeping_run(tmp_path, keep_best="validation/loss")
        assert checkpoints(tmp_path) == {"best": 5, "last": 9}

    @pytest.mark.parametrize("steps", [9, 5])  # the last one of the run, too
    def test_a_run_killed_before_a_checkpoint_got_its_name_gives_it_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
    ) -> None:
        preset = replace(PRESET, steps=steps)
        keep_as = checkpoint_retention.keep_as

        def killed(source: Path, name: str) -> None:
            if checkpoints(tmp_path)["last"] == 5:
                raise MemoryError
            keep_as(source, name)

        monkeypatch.setattr(checkpoint_retention, "keep_as", killed)
        with pytest.raises(MemoryError):
            keeping_run(tmp_path, preset, keep_best="validation/loss", keep_every=5)
        assert checkpoints(tmp_path) == {"best": 2, "last": 5, "previous": 2}
        monkeypatch.setattr(checkpoint_retention, "keep_as", keep_as)
        keeping_run(tmp_path, preset, keep_best="validation/loss", keep_every=5)
        assert checkpoints(tmp_path) == {"best": 5, "last": steps, "step-000005": 5}

    @pytest.mark.long("trainings")
    def test_a_resumed_run_compares_with_the_best_before(self, tmp_path: Path) -> None:
        keeping_run(tmp_path, replace(PRESET, steps=6), keep_best="validation/loss")
        keeping_run(tmp_path, keep_best="validation/loss")
        assert checkpoints(tmp_path) == {"best": 5, "last": 9}


def test_a_metric_that_is_never_logged_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keeping_run(tmp_path, keep_best="los")
    assert [record.getMessage() for record in caplog.records if "keep-best" in record.getMessage()] == [
        "--keep-best: the metric 'los' was not logged by step 4 (logged: loss)"
    ]
    with pytest.raises(
        DataError,
        match=r"has no checkpoint 'best' \(none was kept\); to keep more checkpoints, run `setsup train` with",
    ):
        open_run(tmp_path, PRESET, checkpoint="best").state()


@pytest.mark.long("trainings")
def test_a_disk_without_links_keeps_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError))
    keeping_run(tmp_path, keep_every=4)
    assert checkpoints(tmp_path) == {"last": 9, "step-000004": 4, "step-000008": 8}
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    keeping_run(folder, keep_every=3)
    return folder


class TestMeasured:
    @pytest.fixture
    def folder(self, whole: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(whole, tmp_path / "run"))

    def test_its_weights_are_loaded(self, folder: Path) -> None:
        run = open_run(folder, PRESET, checkpoint="step-6")
        assert (run.progress().steps, run.finished, run.checkpoint.name) == (6, True, "step-000006.ckpt")
        found = load_trained(run, device="cpu").method.state_dict()
        expected = torch.load(folder / "step-000006.ckpt", weights_only=True)["state_dict"]
        assert all(torch.equal(found[name], expected[name]) for name in expected)

    def test_its_results_have_its_name(self, folder: Path) -> None:
        last, kept = open_run(folder, PRESET), open_run(folder, PRESET, checkpoint="step-3")
        last.save("mine", Measured({"a": 1.0}), {})
        kept.save("mine", Measured({"a": 2.0}), {})
        results = [json.loads((folder / f"evaluation{end}.json").read_text())["mine"] for end in ("", "-step-000003")]
        assert [(entry["steps"], entry["values"]["a"]) for entry in results] == [(9, 1.0), (3, 2.0)]
        assert (last.results()["mine"]["values"], kept.results()["mine"]["values"]) == ({"a": 1.0}, {"a": 2.0})

    def test_a_damaged_one_is_refused(self, folder: Path) -> None:
        path = folder / "step-000003.ckpt"
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(DataError, match=r"step-000003.ckpt is damaged"):
            load_trained(open_run(folder, PRESET, checkpoint="step-3"))

    def test_one_that_is_not_there(self, folder: Path) -> None:
        with pytest.raises(DataError, match=r"no checkpoint 'step-000004' \(available: step-000003, step-000006, "):
            open_run(folder, PRESET, checkpoint="step-4").weights()
        with pytest.raises(SetsupError, match=r"named last, best or step-N, for example step-500, not 'first'"):
            open_run(folder, PRESET, checkpoint="first")
