"""The checkpoint before the last one is kept until the run is finished, and used where the last one is damaged."""

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError  # noqa: E402
from setsup.experiments import RunConfig, load_trained, open_run, train  # noqa: E402
from setsup.experiments.training import checkpointing  # noqa: E402
from setsup.experiments.training.checkpointing import CheckpointCallback  # noqa: E402
from setsup.files import written  # noqa: E402
from tests.experiments.small import PLAIN  # noqa: E402

HERE = RunConfig(workers=0)
PRESET = replace(PLAIN, steps=9, checkpoint_every=3)


class Stopped(Exception):
    """The process is gone."""


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that ended right after its checkpoint of step 6."""
    whole = CheckpointCallback._save

    def save(self: CheckpointCallback, trainer: Any, last: bool) -> None:
        whole(self, trainer, last)
        if trainer.global_step == 6:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointCallback, "_save", save)
        with pytest.raises(Stopped):
            train(PRESET, tmp_path, config=HERE)
    assert (steps(tmp_path / "last.ckpt"), steps(tmp_path / "previous.ckpt")) == (6, 3)
    return tmp_path


def steps(path: Path) -> int:
    return int(torch.load(path, weights_only=True)["global_step"])


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path) -> None:
    """Weights are others, and nothing else tells of it than the checksums."""
    weight = torch.load(path, weights_only=True)["state_dict"]["encoder.1.weight"].numpy().tobytes()
    content = path.read_bytes()
    at = content.index(weight) + 5
    path.write_bytes(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])


@pytest.mark.long("trainings")
@pytest.mark.parametrize("damage", [truncated, emptied, flipped, Path.unlink])
def test_a_damaged_checkpoint_costs_the_steps_since_the_one_before(
    stopped: Path,
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[..., None],
) -> None:
    damage(stopped / "last.ckpt")
    with caplog.at_level(logging.WARNING, "setsup"):
        run = train(PRESET, stopped, config=HERE)
    assert run.finished
    said = [record.getMessage() for record in caplog.records]
    assert any("previous.ckpt, of step 3, instead" in message for message in said)
    whole = train(PRESET, tmp_path_factory.mktemp("whole"), config=HERE)
    assert (stopped / "metrics.jsonl").read_text() == (whole.folder / "metrics.jsonl").read_text()
    for name, weight in whole.state()["state_dict"].items():
        assert torch.equal(weight, run.state()["state_dict"][name])
    assert {path.name for path in stopped.iterdir()} == {path.name for path in whole.folder.iterdir()}


@pytest.mark.parametrize("damage", [truncated, emptied, flipped, Path.unlink])
def test_a_run_is_as_far_as_the_checkpoint_that_is_whole(stopped: Path, damage: Callable[..., None]) -> None:
    damage(stopped / "last.ckpt")
    run = open_run(stopped, PRESET)
    assert (run.progress().steps, run.finished, run.checkpoint.name) == (3, False, "previous.ckpt")
    expected = torch.load(stopped / "previous.ckpt", weights_only=True)["state_dict"]
    found = load_trained(run, device="cpu").method.state_dict()
    assert all(torch.equal(weight, found[name]) for name, weight in expected.items())


def test_two_damaged_checkpoints_are_the_end(stopped: Path) -> None:
    for name in ("last.ckpt", "previous.ckpt"):
        truncated(stopped / name)
    with pytest.raises(DataError, match=r"last\.ckpt is (damaged|not opened) .*remove the file and train again$"):
        train(PRESET, stopped, config=HERE)


def test_what_is_damaged_never_takes_the_place_of_the_one_that_is_whole(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run resumes from the previous checkpoint, and is killed again while it writes its next one."""

    @contextmanager
    def cut_off(path: Path) -> Iterator[Path]:
        with written(path) as part:
            yield part
            if path.suffix == ".ckpt":
                raise Stopped

    truncated(stopped / "last.ckpt")
    with monkeypatch.context() as patch:
        patch.setattr(checkpointing, "written", cut_off)
        with pytest.raises(Stopped):
            train(PRESET, stopped, config=HERE)
    assert steps(stopped / "previous.ckpt") == 3
    assert train(PRESET, stopped, config=HERE).finished


def test_a_disk_without_links_keeps_it_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refused)
    kept, whole = [], CheckpointCallback._save

    def save(self: CheckpointCallback, trainer: Any, last: bool) -> None:
        whole(self, trainer, last)
        kept.append({path.name: steps(path) for path in tmp_path.glob("*.ckpt")})

    monkeypatch.setattr(CheckpointCallback, "_save", save)
    train(PRESET, tmp_path, config=HERE)
    assert kept == [{"last.ckpt": 3}, {"last.ckpt": 6, "previous.ckpt": 3}, {"last.ckpt": 9}]
    assert len([json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]) == 9
