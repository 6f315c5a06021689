"""A run trains exactly its steps, however many optimisers a method has and draws a step, and ends with whole ones."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import Callback  # noqa: E402
from torch import nn  # noqa: E402

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Preset, Run, RunConfig, load_trained, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.training.checkpointing import CheckpointCallback  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from tests.experiments.adversarial import Adversarial, AdversarialSettings  # noqa: E402
from tests.experiments.by_hand import draws, looped  # noqa: E402
from tests.experiments.resumable import AVERAGED, MOMENTUM  # noqa: E402
from tests.experiments.small import ACCUMULATED, FEW, PLAIN, Tiny  # noqa: E402

SHAPES = setsup.load("shapes3d-procedural")
HERE = RunConfig(workers=0)
SETS = setsup.SetSampler(SHAPES.factors, inactive=["wall_hue"], size=4, sets=2, where=FEW)
TWO = replace(PLAIN, name="small/adversarial", method=AdversarialSettings(), steps=7, checkpoint_every=3)
THREE = replace(ACCUMULATED, steps=5, checkpoint_every=2)


def long(value: Any) -> Any:
    """A value whose test takes long."""
    return pytest.param(value, marks=pytest.mark.long("trainings"))


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]


def assert_same(run: Run, expected: Run) -> None:
    """Bit for bit: metrics, weights, optimisers, schedules, positions."""
    assert run.finished
    assert (run.folder / "metrics.jsonl").read_bytes() == (expected.folder / "metrics.jsonl").read_bytes()
    state, other = run.state(), expected.state()
    for part in ("state_dict", "optimizer_states", "lr_schedulers", "LightningBatches", "global_step"):
        assert repr(state[part]) == repr(other[part])
        torch.testing.assert_close(state[part], other[part], rtol=0, atol=0)
    assert run.progress()[::2] == expected.progress()[::2]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The adversarial method, trained without interruption."""
    Adversarial.seen.clear()
    return train(TWO, tmp_path_factory.mktemp("two"), config=HERE)


def test_a_step_is_a_draw_whatever_the_optimisers_do(two: Run) -> None:
    assert two.progress().steps == 7
    assert two.progress().images == 7 * 8
    np.testing.assert_array_equal(Adversarial.seen, SETS.block(0, 7).indices)
    assert [line["step"] for line in lines(two)] == [1, 2, 3, 4, 5, 6, 7]
    assert ["encoder" in line for line in lines(two)] == [True, False] * 3 + [True]
    assert two.state()["global_step"] == 4 * 3 + 3 * 1, "Lightning's count is another one"
    reader, encoder = two.state()["optimizer_states"]
    assert {int(state["step"]) for state in encoder["state"].values()} == {4}
    assert reader["param_groups"][0]["lr"] == pytest.approx(0.1 / 4)  # after steps 3 and 6


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three draws per step, trained without interruption."""
    return train(THREE, tmp_path_factory.mktemp("three"), config=HERE)


def test_accumulated_gradients_are_those_of_the_mean_loss_of_the_draws(tmp_path: Path) -> None:
    run = train(replace(PLAIN, accumulate=3, steps=6), tmp_path, config=HERE)
    encoder = build_method(run.preset.method, SHAPES.factors, 0).encoder
    found = looped(encoder, draws(SHAPES, SETS), 6, ranks=3)
    assert [line["step"] for line in lines(run)] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose([line["loss"] for line in lines(run)], found, rtol=2e-6)
    trained = load_trained(run, device="cpu").method.encoder
    for weight, expected in zip(trained.parameters(), encoder.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-6)
    assert run.progress().images == 6 * 3 * 8


@pytest.mark.long("trainings")
def test_schedules_and_noise_of_accumulated_steps(three: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (group,) = three.state()["optimizer_states"][0]["param_groups"]
    assert group["lr"] == pytest.approx(1e-3 / 2)  # halved after step 4, not draw 4
    states, whole = [], ABC.training_step

    def training_step(self: ABC, batch: Any, batch_idx: int) -> Any:
        states.append(torch.initial_seed())
        return whole(self, batch, batch_idx)

    monkeypatch.setattr(ABC, "training_step", training_step)
    train(replace(THREE, steps=2), tmp_path / "three", config=HERE)
    train(replace(THREE, accumulate=1, steps=6), tmp_path / "one", config=HERE)
    assert states[:6] == states[6:], "the noise of a draw does not depend on the draws of a step"
    assert len(set(states)) == 6


@pytest.mark.parametrize("draw", [long(7), 8, long(9)])
def test_a_signal_lets_the_accumulated_step_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, three: Run, draw: int
) -> None:
    count, whole = [0], ABC.training_step

    def training_step(self: ABC, batch: Any, batch_idx: int) -> Any:
        count[0] += 1
        if count[0] == draw:
            os.kill(os.getpid(), signal.SIGTERM)
        return whole(self, batch, batch_idx)

    monkeypatch.setattr(ABC, "training_step", training_step)
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        train(THREE, tmp_path, config=HERE)
    assert count == [9]
    assert Run(tmp_path, THREE, 0, {}).progress().steps == 3
    assert_same(train(THREE, tmp_path, config=HERE), three)


class Stopping(Callback):
    """Asks Lightning to stop in the middle of a step."""

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if batch_idx == 6:
            trainer.should_stop = True


@pytest.mark.long("trainings")
def test_a_callback_of_the_method_that_stops_lets_the_step_end_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, three: Run
) -> None:
    monkeypatch.setattr(ABC, "configure_callbacks", lambda self: [Stopping()])
    run = train(THREE, tmp_path, config=HERE)
    assert run.progress().steps == 3
    monkeypatch.undo()
    assert_same(train(THREE, tmp_path, config=HERE), three)


def test_a_method_that_steps_by_itself_cannot_accumulate(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match=r"^Adversarial steps its optimisers itself .* --accumulate 1") as caught:
        train(replace(TWO, accumulate=2), tmp_path / "run", config=HERE)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_frequency_that_lightning_counts_in_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def configured(self: ABC) -> Any:
        optimiser = torch.optim.SGD(self.parameters(), 1.0)
        rate = torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.5)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": rate, "interval": "step", "frequency": 2}}

    monkeypatch.setattr(ABC, "configure_optimizers", configured)
    with pytest.raises(
        SetsupError, match="the scheduler StepLR of ABC would step at the wrong times with --accumulate"
    ):
        train(THREE, tmp_path, config=HERE)


@pytest.mark.long("trainings")
def test_draws_that_end_within_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "setsup.experiments.sets.SetSampler",
        lambda table, **options: setsup.EpochSampler(table, 4, epochs=1, seed=0),
    )
    data = replace(PLAIN.data, where=f"{FEW} and wall_hue == 0 and floor_hue == 0")  # 40 rows
    preset = replace(PLAIN, data=data, method=Tiny(objective="augmentation"), augmentation="abc-shapes3d", accumulate=3)
    with pytest.raises(SetsupError, match="the sampler of small/plain ended after 3 of 4 draws"):
        train(replace(preset, steps=4), tmp_path / "four", config=HERE)
    assert train(replace(preset, steps=3), tmp_path / "three", config=HERE).finished


def old(run: Run, optimisers: int, steps: int = 4) -> None:
    """Make a checkpoint one of an earlier version."""
    state = torch.load(run.folder / "last.ckpt", weights_only=True) | {"global_step": steps}
    del state["callbacks"]["StepCounter"]
    assert len(state["optimizer_states"]) == optimisers
    torch.save(state, run.folder / "last.ckpt")


@pytest.mark.long("trainings")
def test_checkpoints_of_earlier_versions(tmp_path: Path, two: Run) -> None:
    preset = replace(PLAIN, steps=6, checkpoint_every=2)
    whole = train(preset, tmp_path / "whole", config=HERE)
    run = interrupted(preset, tmp_path / "run")
    old(run, 1)
    assert run.progress().steps == 4
    assert_same(train(preset, run.folder, config=HERE), whole)
    other = interrupted(TWO, tmp_path / "two")
    old(other, 2, steps=5)
    with pytest.raises(SetsupError, match="counted the steps of each optimiser; train again in another folder"):
        train(TWO, other.folder, config=HERE)


def interrupted(preset: Preset, folder: Path) -> Run:
    """A run that fails after its second checkpoint."""
    whole, saved = CheckpointCallback._save, []

    def save(self: CheckpointCallback, trainer: Any, last: bool) -> None:
        whole(self, trainer, last)
        saved.append(trainer)
        if len(saved) == 2:
            raise ConnectionError("the machine goes down")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointCallback, "_save", save)
        with pytest.raises(ConnectionError):
            train(preset, folder, config=HERE)
    return Run(folder, preset, 0, {})


@pytest.mark.parametrize("accumulate", [long(1), long(2)])
def test_weights_that_a_callback_averages_are_those_that_are_evaluated(tmp_path: Path, accumulate: int) -> None:
    preset = replace(AVERAGED, steps=6, accumulate=accumulate)
    run = train(preset, tmp_path, config=HERE)
    assert len(run.state()["callbacks"]["Counting"]["bright"]) == 6 * accumulate
    encoder = build_method(preset.method, SHAPES.factors, 0).encoder
    averaged: list[torch.Tensor] = []

    def average(network: nn.Module) -> None:
        weights = [weight.detach().clone() for weight in network.parameters()]
        averaged[:] = [mean.lerp(weight, 0.3) for mean, weight in zip(averaged or weights, weights, strict=True)]

    looped(encoder, draws(SHAPES, SETS), 6, ranks=accumulate, after=average)
    trained = load_trained(run, device="cpu").method.encoder
    for weight, mean in zip(trained.parameters(), averaged, strict=True):
        torch.testing.assert_close(weight, mean, rtol=1e-5, atol=1e-6)


def test_what_a_method_changes_at_the_end_of_a_step_is_in_the_checkpoint(tmp_path: Path) -> None:
    preset = replace(MOMENTUM, steps=6)
    whole = train(preset, tmp_path, config=HERE)
    assert [line.keys() for line in lines(whole)] == [{"step", "loss", "spread"}] * 6
    encoder = build_method(preset.method, SHAPES.factors, 0).encoder
    teacher = encoder[1].weight.detach().clone()
    looped(encoder, draws(SHAPES, SETS), 6, after=lambda network: teacher.lerp_(network[1].weight.detach(), 0.3))
    torch.testing.assert_close(whole.state()["state_dict"]["teacher"], teacher, rtol=1e-5, atol=1e-6)
