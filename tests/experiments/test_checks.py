"""A training that would be lost without a word stops with one sentence, and what it kept before is good."""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch import nn  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Preset, RunConfig, train  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from setsup_papers.abc.settings import ABCObjective  # noqa: E402
from tests.experiments.small import PLAIN, Pooled  # noqa: E402

HERE = RunConfig(workers=0)


class Told(ABC):
    """A method that does to its loss what a test wants."""

    told: Any = None

    def loss(self, batch: Any) -> torch.Tensor:
        loss = super().loss(batch)
        return self.told(self, self.global_step + 1, loss) if self.told else loss


@dataclass(frozen=True)
class ToldSettings:
    """No settings."""

    def build(self, table: Any, generator: torch.Generator) -> Told:
        return Told(ABCObjective(rate=1e-5), nn.Sequential(Pooled(), nn.Linear(192, 2)))


TOLD = replace(PLAIN, name="small/told", method=ToldSettings(), steps=9, checkpoint_every=2)


def one_sentence(preset: Preset, folder: Path, pattern: str, config: RunConfig = HERE) -> None:
    """Training is refused."""
    with pytest.raises(SetsupError, match=pattern) as caught:
        train(preset, folder, config=config)
    assert "\n" not in str(caught.value)


def steps(folder: Path, name: str = "last.ckpt") -> int:
    return int(torch.load(folder / name, weights_only=True)["global_step"])


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def spoil_loss(at: int, value: float) -> Any:
    return lambda method, step, loss: loss * value if step == at else loss


def spoil_weights(at: int) -> Any:
    """The loss is finite and its gradient is not, as that of a square root is at 0."""

    def told(method: Told, step: int, loss: torch.Tensor) -> torch.Tensor:
        weight = method.encoder[1].weight
        return loss + (weight - weight.detach()).square().sum().sqrt() if step == at else loss

    return told


@pytest.mark.long("trainings")
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("at", "kept"),
    [(1, "no checkpoint was saved"), (4, r"last\.ckpt of step 2 is"), (7, r"last\.ckpt of step 6 is")],
)
def test_the_first_loss_that_is_not_finite_ends_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, at: int, kept: str
) -> None:
    monkeypatch.setattr(Told, "told", staticmethod(spoil_loss(at, value)))
    one_sentence(TOLD, tmp_path, f"^the loss of step {at} of small/told is not finite: .*{kept}.*--allow-nonfinite$")
    assert [line["step"] for line in lines(tmp_path)] == list(range(1, at + 1))
    assert [line["loss"] is None for line in lines(tmp_path)] == [False] * (at - 1) + [True]
    # once the reason is gone it resumes from the last good checkpoint
    monkeypatch.setattr(Told, "told", None)
    assert train(TOLD, tmp_path, config=HERE).finished
    assert all(weight.isfinite().all() for weight in train(TOLD, tmp_path, config=HERE).state()["state_dict"].values())


@pytest.mark.parametrize("at", [3, 4])
def test_weights_that_are_not_finite_are_never_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(Told, "told", staticmethod(spoil_weights(at)))
    said = "the loss of step 4" if at == 3 else "after step 4 encoder.1.weight"
    one_sentence(TOLD, tmp_path, f"^{said} of small/told is not finite: .*last.ckpt of step 2 is the last good")
    assert steps(tmp_path) == 2
    assert all(weight.isfinite().all() for weight in torch.load(tmp_path / "last.ckpt")["state_dict"].values())


@pytest.mark.long("trainings")
def test_who_allows_it_trains_on_and_then_only_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = replace(HERE, allow_nonfinite=True)
    monkeypatch.setattr(Told, "told", staticmethod(spoil_weights(4)))
    assert train(TOLD, tmp_path, config=allowed).finished
    assert [line["loss"] is None for line in lines(tmp_path)] == [False] * 4 + [True] * 5
    longer = replace(TOLD, steps=11)
    one_sentence(longer, tmp_path / "other", "^after step 4 encoder.1.weight of")
    (tmp_path / "other" / "last.ckpt").write_bytes((tmp_path / "last.ckpt").read_bytes())
    one_sentence(longer, tmp_path / "other", r"last\.ckpt contains values .* not finite \(encoder\.1\.weight\); train")
    assert train(longer, tmp_path / "other", config=allowed).finished


def test_a_loss_that_a_step_only_logs_is_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Manual(Told):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:
            optimiser = self.optimizers()
            optimiser.zero_grad()
            self.manual_backward(self.loss(batch))
            optimiser.step()
            self.log("loss", torch.tensor(math.nan if batch_idx == 2 else 1.0))

    def build(*_: Any) -> Manual:
        return Manual(ABCObjective(), nn.Sequential(Pooled(), nn.Linear(192, 2)))

    monkeypatch.setattr(ToldSettings, "build", build)
    one_sentence(TOLD, tmp_path, "^the loss of step 3 of small/told is not finite")


@pytest.mark.parametrize(
    ("made", "refused"),
    [
        (lambda rate, optimiser: ([optimiser], [rate]), True),
        (lambda rate, optimiser: {"optimizer": optimiser, "lr_scheduler": {"scheduler": rate, "frequency": 2}}, True),
        (
            lambda rate, optimiser: {"optimizer": optimiser, "lr_scheduler": {"scheduler": rate, "interval": "step"}},
            False,
        ),
    ],
)
def test_a_schedule_that_waits_for_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any, refused: bool
) -> None:
    def configured(self: Told) -> Any:
        optimiser = torch.optim.SGD(self.parameters(), 1.0)
        return made(torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.5), optimiser)

    monkeypatch.setattr(Told, "configure_optimizers", configured)
    preset = replace(TOLD, steps=2)
    if refused:
        one_sentence(preset, tmp_path, "^the scheduler StepLR of Told would never step: its interval is 'epoch'")
        assert not (tmp_path / "last.ckpt").exists()
    else:
        (group,) = train(preset, tmp_path, config=HERE).state()["optimizer_states"][0]["param_groups"]
        assert group["lr"] == 0.25


def test_metrics_of_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(method: Told, step: int, loss: torch.Tensor) -> torch.Tensor:
        method.log("score", loss, batch_size=8, **how)
        return loss

    monkeypatch.setattr(Told, "told", staticmethod(told))
    how = {"on_step": False, "on_epoch": True}
    one_sentence(TOLD, tmp_path / "epoch", r"^Told logs 'score' with on_step=False, .*\('score', …, on_step=True\)$")
    how = {"on_step": True, "on_epoch": True}
    train(replace(TOLD, steps=2), tmp_path / "both", config=HERE)
    assert all(line["score_step"] == line["loss"] for line in lines(tmp_path / "both"))


def test_a_validation_step_would_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Told, "validation_step", lambda self, batch, batch_idx: None)
    one_sentence(TOLD, tmp_path / "run", r"^Told has a validation_step, which setsup does not call; .*loss\(batch\)")
    assert not (tmp_path / "run").exists()
