"""A finished run that is trained longer equals one that was trained so long from the start; or it is refused."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch.optim import lr_scheduler  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Run, RunConfig, open_run, train  # noqa: E402
from setsup.experiments.runs.extension import _schedulers_with_total  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from setsup_papers.abc.settings import ABCObjective  # noqa: E402
from tests.experiments.small import DROPOUT, HALVED, PLAIN, Tiny  # noqa: E402
from tests.experiments.test_resume import checked_equal  # noqa: E402

HERE = RunConfig(workers=0)
SHORT = replace(PLAIN, steps=4, checkpoint_every=3)


@pytest.mark.parametrize(
    "preset",
    [pytest.param(DROPOUT, id="dropout", marks=pytest.mark.long("trainings")), pytest.param(HALVED, id="halved")],
)
def test_a_longer_run_is_one_trained_so_long_from_the_start(tmp_path: Path, preset: Any) -> None:
    longer = replace(preset, steps=9)
    for steps in (4, 5, 9):
        run = train(replace(preset, steps=steps), tmp_path / "longer", config=HERE)
        assert (run.finished, run.progress().steps) == (True, steps)
    checked_equal(run.folder, train(longer, tmp_path / "whole", config=HERE))
    assert open_run(run.folder, preset).preset == longer


def test_fewer_steps_than_trained_are_refused(tmp_path: Path) -> None:
    train(SHORT, tmp_path, config=HERE)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(
        SetsupError,
        match=r"has been trained for 4 steps, more than the requested 3; pass --steps 4 or more, or another --out$",
    ):
        train(replace(SHORT, steps=3), tmp_path, config=HERE)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.long("trainings")
def test_a_stopped_run_may_have_fewer_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ABC.training_step

    def training_step(self: ABC, batch: Any, batch_idx: int) -> Any:
        if self.global_step == 3:
            raise MemoryError
        return whole(self, batch, batch_idx)

    monkeypatch.setattr(ABC, "training_step", training_step)
    with pytest.raises(MemoryError):
        train(replace(SHORT, steps=9), tmp_path / "run", config=HERE)
    monkeypatch.setattr(ABC, "training_step", whole)
    run = train(SHORT, tmp_path / "run", config=HERE)
    checked_equal(run.folder, train(SHORT, tmp_path / "whole", config=HERE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule as a setting, which may depend on the number of steps."""

    total: bool = True

    @property
    def needs_total(self) -> bool:
        return self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled(Tiny):
    schedule: Schedule = Schedule()


class Cosine(ABC):
    def configure_optimizers(self) -> Any:
        optimiser = torch.optim.SGD(self.parameters(), 0.1)
        warm = lr_scheduler.LinearLR(optimiser, 0.1, total_iters=2)
        cosine = lr_scheduler.CosineAnnealingLR(optimiser, 2)
        schedule = lr_scheduler.SequentialLR(optimiser, [warm, cosine], [2])
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class CosineSettings(Tiny):
    def build(self, table: Any, generator: Any) -> ABC:
        return Cosine(ABCObjective(), Tiny.build(self, table, generator).encoder)


@pytest.mark.parametrize(
    ("method", "what"),
    [
        (Scheduled(), r"method\.schedule \(Schedule\)"),
        (CosineSettings(), "the scheduler CosineAnnealingLR of the method"),
    ],
)
def test_a_schedule_that_depends_on_the_number_of_steps_is_refused(tmp_path: Path, method: Any, what: str) -> None:
    preset = replace(SHORT, method=method)
    train(preset, tmp_path, config=HERE)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(
        SetsupError, match=rf"was started with steps=4 and cannot continue with steps=6, because {what} depends on"
    ):
        train(replace(preset, steps=6), tmp_path, config=HERE)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert train(preset, tmp_path, config=HERE).finished


def test_a_schedule_that_does_not_is_continued(tmp_path: Path) -> None:
    preset = replace(SHORT, method=Scheduled(schedule=Schedule(total=False)))
    run: Run = train(preset, tmp_path, config=HERE)
    assert train(replace(preset, steps=6), tmp_path, config=HERE).progress().steps == 6 > run.preset.steps


def test_schedulers_of_torch() -> None:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    with_total = [
        lr_scheduler.OneCycleLR(optimiser, 0.1, 10),
        lr_scheduler.CosineAnnealingLR(optimiser, 10),
        lr_scheduler.PolynomialLR(optimiser, 10),
        lr_scheduler.LinearLR(optimiser, 1.0, 0.0, 10),
        lr_scheduler.ChainedScheduler([lr_scheduler.CosineAnnealingLR(optimiser, 10)]),
    ]
    without = [
        lr_scheduler.StepLR(optimiser, 3),
        lr_scheduler.ExponentialLR(optimiser, 0.9),
        lr_scheduler.MultiStepLR(optimiser, [3]),
        lr_scheduler.ConstantLR(optimiser, 0.5),
        lr_scheduler.LinearLR(optimiser, 0.1, 1.0, 3),
        lr_scheduler.CosineAnnealingWarmRestarts(optimiser, 3),
        lr_scheduler.CyclicLR(optimiser, 0.1, 1.0),
        lr_scheduler.LambdaLR(optimiser, lambda step: 1 / (1 + step)),
    ]
    for scheduler in with_total:
        assert list(_schedulers_with_total([scheduler.state_dict()])), scheduler
    for scheduler in without:
        assert not list(_schedulers_with_total([scheduler.state_dict()])), scheduler
