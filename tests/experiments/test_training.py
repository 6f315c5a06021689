"""`train` does what a loop written by hand does, in every way of running it; and what does not fit is refused early."""

import json
import random
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch import nn  # noqa: E402

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Data, How, Run, load_trained, train  # noqa: E402
from setsup.experiments.drawing import Sets  # noqa: E402
from setsup.experiments.training import fresh_method  # noqa: E402
from setsup.methods.abc import ABC  # noqa: E402
from tests.experiments.by_hand import draws, looped  # noqa: E402
from tests.experiments.small import DROPOUT, FEW, HALVED, PLAIN, Pooled  # noqa: E402

SHAPES = setsup.load("shapes3d-procedural")
HERE = How(workers=0)
SHORT = replace(PLAIN, steps=6)


def losses(run: Run) -> list[float]:
    """The loss of every step."""
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, run.preset.steps + 1))
    return [line["loss"] for line in lines]


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_training_is_a_loop_of_adam_over_the_draws(tmp_path: Path, seed: int) -> None:
    run = train(SHORT, tmp_path, seed=seed, how=HERE)
    sets = setsup.SetSampler(SHAPES.factors, inactive=["wall_hue"], size=4, sets=2, where=FEW, seed=seed)
    encoder = fresh_method(SHORT, seed).encoder
    np.testing.assert_allclose(losses(run), looped(encoder, draws(SHAPES, sets), 6), rtol=2e-6)
    trained = load_trained(run, device="cpu").method.encoder
    for weight, expected in zip(trained.parameters(), encoder.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-6)


def test_the_rate_is_halved_every_so_many_steps(tmp_path: Path) -> None:
    run = train(replace(HALVED, steps=9), tmp_path, how=HERE)
    (group,) = run.state()["optimizer_states"][0]["param_groups"]
    assert group["lr"] == pytest.approx(1e-3 / 4)  # after steps 4 and 8
    assert (group["eps"], group["betas"]) == (1e-7, (0.9, 0.999))


def test_a_finished_run_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = train(SHORT, tmp_path, how=HERE)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert before.keys() == {"run.json", "metrics.jsonl", "metrics.csv", "last.ckpt"}
    monkeypatch.setattr(ABC, "training_step", None)  # nothing is trained
    again = train(SHORT, tmp_path, how=HERE)
    assert again.finished
    assert again.steps_done() == run.steps_done() == 6
    assert 0 < run.seconds() == again.seconds()
    assert before == {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}


def test_two_trainings_of_a_folder_are_refused(tmp_path: Path) -> None:
    def second(_: Run) -> None:
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        for seed in (0, 1):
            with pytest.raises(SetsupError, match=r"^another process trains in .*: let it end, or give another --out$"):
                train(SHORT, tmp_path, seed=seed, how=HERE)
        assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert train(SHORT, tmp_path, how=HERE, begun=second).finished
    assert not list(tmp_path.glob("*.lock"))


def test_under_slurm_lightning_keeps_no_checkpoints_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = {"JOB_NAME": "train", "JOB_ID": "7", "NTASKS": "1", "PROCID": "0", "LOCALID": "0", "NODEID": "0"}
    for name, value in slurm.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    before, seen, whole = signal.getsignal(signal.SIGUSR1), [], ABC.training_step

    def training_step(self: ABC, batch: Any, batch_idx: int) -> torch.Tensor:
        seen.append(signal.getsignal(signal.SIGUSR1))  # SLURM's warning, at which Lightning would keep one
        return whole(self, batch, batch_idx)

    monkeypatch.setattr(ABC, "training_step", training_step)
    train(SHORT, tmp_path, how=HERE)
    assert seen == [before] * SHORT.steps


def test_the_table_of_metrics_has_what_the_lines_have(tmp_path: Path) -> None:
    run = train(SHORT, tmp_path, how=HERE)
    names, *rows = [line.split(",") for line in (tmp_path / "metrics.csv").read_text().splitlines()]
    assert names == ["step", "loss"]
    assert [float(loss) for _, loss in rows] == losses(run)


def test_bfloat16_stays_close_to_float32(tmp_path: Path) -> None:
    plain = train(SHORT, tmp_path / "32", how=HERE)
    half = train(SHORT, tmp_path / "16", how=How(workers=0, precision="bf16"))
    assert losses(half) != losses(plain)
    np.testing.assert_allclose(losses(half), losses(plain), rtol=0.1)
    weights = half.state()["state_dict"]
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    rows = np.arange(0, 40_000, 4_001)
    there, here = (load_trained(run, device="cpu").embed(rows=rows) for run in (half, plain))
    assert there.dtype == np.float32
    np.testing.assert_allclose(there, here, atol=0.03 * np.abs(here).max())
    assert not np.array_equal(there, here)
    with pytest.raises(SetsupError, match="precision 'bf16' there, 'float32' asked"):
        train(SHORT, tmp_path / "16", how=HERE)


def checked_compiled(folder: Path) -> None:
    """A compiled run finds what one finds that is not, and its checkpoint has the same names."""
    plain = train(SHORT, folder / "plain", how=HERE)
    compiled = train(SHORT, folder / "compiled", how=How(workers=0, compile=True))
    np.testing.assert_allclose(losses(compiled), losses(plain), rtol=1e-4)
    assert compiled.state()["state_dict"].keys() == plain.state()["state_dict"].keys()
    rows = np.arange(0, 40_000, 4_001)
    there, here = (load_trained(run, device="cpu").embed(rows=rows) for run in (compiled, plain))
    np.testing.assert_allclose(there, here, atol=1e-4)


def test_a_compiled_run_opens_without_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, whole = [], nn.Module.compile

    def traced(self: nn.Module) -> None:
        compiled.append(self)
        whole(self, backend="eager")  # all but the generated code, which takes a minute

    monkeypatch.setattr(nn.Module, "compile", traced)
    checked_compiled(tmp_path)
    assert [type(network) for network in compiled] == [nn.Sequential]


@pytest.mark.smoke
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own
@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="there is no C++ compiler")
def test_a_compiled_run_with_generated_code(tmp_path: Path) -> None:
    checked_compiled(tmp_path)


def test_tensorboard_gets_every_metric(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(SHORT, tmp_path, how=How(workers=0, log=("tensorboard",)))
    logs = EventAccumulator(str(tmp_path / "tensorboard"))
    logs.Reload()
    np.testing.assert_allclose([event.value for event in logs.Scalars("loss")], losses(run), rtol=1e-7)


def test_a_logger_that_is_not_installed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup.experiments.training.find_spec", lambda name: None)
    with pytest.raises(SetsupError, match=r"^--log wandb needs wandb: pip install wandb$"):
        train(SHORT, tmp_path, how=How(workers=0, log=("wandb",)))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"precision": "fp16"}, "^the setting precision takes 'float32' or 'bf16', not 'fp16'$"),
        ({"accelerator": "tpu"}, "^the setting accelerator takes 'auto' or 'cpu' or 'gpu', not 'tpu'$"),
        ({"log": ("mlflow",)}, r"^the setting log takes .* not \('mlflow',\)$"),
        ({"devices": 0}, "^at least one device on one node trains, not 0 on 1$"),
        ({"nodes": -1}, "^at least one device on one node trains, not 1 on -1$"),
        ({"devices": "auto"}, "^the setting devices takes int, not 'auto'$"),
    ],
)
def test_a_way_to_run_that_there_is_not(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence):
        How(**changed)


@dataclass(frozen=True)
class Blind:
    """A method that embeds nothing."""

    def method(self, generator: torch.Generator) -> Any:
        from lightning import LightningModule

        return LightningModule()


@pytest.mark.parametrize(
    ("changed", "options", "sentence"),
    [
        ({"learning": Blind()}, {}, r"LightningModule has no embed\(batch\)"),
        ({"learning": None}, {}, "trains nothing"),
        ({"drawing": None}, {}, "draws nothing"),
        ({"drawing": Sets(inactive=("wall_heu",))}, {}, "wall_heu"),
        ({"augmentation": "abc-shapes4d"}, {}, "did you mean 'abc-shapes3d'"),
        ({"data": Data("mnist")}, {}, "setsup fetch mnist"),
        ({}, {"stand_in": True}, "nothing stands in for shapes3d-procedural"),
        ({}, {"seed": -1}, "the seed must be a whole number"),
        ({}, {"how": How(workers=-1)}, "workers must be"),
    ],
)
def test_what_does_not_fit_leaves_no_folder(
    tmp_path: Path, changed: dict[str, Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        train(replace(SHORT, **changed), tmp_path / "run", **{"how": HERE} | options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match=r"^Lightning cannot train with accelerator gpu"):
        train(SHORT, tmp_path, how=How(accelerator="gpu", workers=0))
    assert train(SHORT, tmp_path, how=HERE).finished, "nothing was trained, so that the folder is begun anew"


class Logging(ABC):
    """Logs more than its loss, some of it now and then, and fails at a step."""

    fails_at: int | None = None

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        if self.global_step + 1 == self.fails_at:
            raise ConnectionError("the machine goes down")
        loss = super().training_step(batch, batch_idx)
        self.log("twice", 2 * loss)
        self.log("count", batch["image"].shape[1])
        if batch_idx == 3:
            self.log("rare", torch.tensor(0.1, dtype=torch.float64))
        return loss


@dataclass(frozen=True)
class LoggingSettings:
    """Its layers initialise themselves."""

    def method(self, generator: torch.Generator) -> Logging:
        return Logging(nn.Sequential(Pooled(), nn.Linear(192, 2)), rate=1e-5)


LOGGING = replace(SHORT, name="small/logging", learning=LoggingSettings())


def test_all_that_a_method_logs_is_kept(tmp_path: Path) -> None:
    run = train(LOGGING, tmp_path, how=HERE)
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert all(line["twice"] == pytest.approx(2 * line["loss"]) and line["count"] == 4 for line in lines)
    assert ["rare" in line for line in lines] == [False, False, False, True, False, False]
    assert lines[3]["rare"] == pytest.approx(0.1)
    names, *rows = [line.split(",") for line in (tmp_path / "metrics.csv").read_text().splitlines()]
    assert sorted(names) == ["count", "loss", "rare", "step", "twice"]
    assert [row[names.index("rare")] != "" for row in rows] == ["rare" in line for line in lines]


def test_an_error_passes_through_and_the_run_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(replace(LOGGING, checkpoint_every=2), tmp_path / "whole", how=HERE)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(Logging, "fails_at", 6)
    with pytest.raises(ConnectionError, match="the machine goes down"):
        train(whole.preset, tmp_path / "failed", how=HERE)
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(Logging, "fails_at", None)
    again = train(whole.preset, tmp_path / "failed", how=HERE)
    assert (again.folder / "metrics.jsonl").read_text() == (whole.folder / "metrics.jsonl").read_text()


def test_training_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    torch.manual_seed(3)
    state, numbers = torch.get_rng_state(), random.getstate()
    train(replace(DROPOUT, steps=2), tmp_path, how=HERE)
    assert torch.equal(torch.get_rng_state(), state)
    assert random.getstate() == numbers
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_initial_weights_are_those_of_the_seed_whoever_draws_them() -> None:
    first, again, other = (fresh_method(LOGGING, seed).encoder[1].weight for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
