"""`train` does what a loop written by hand does, in every way of running it; and what does not fit is refused early."""

import io
import json
import logging
import math
import random
import re
import shutil
import signal
import sys
import time
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402
from torch import nn  # noqa: E402

import setsup  # noqa: E402
from setsup.datasets import Dataset  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import (  # noqa: E402
    Data,
    Run,
    RunConfig,
    embed,
    load_trained,
    open_run,
    smoke,
    train,
)
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.sets import Sets  # noqa: E402
from setsup.experiments.training import checkpointing  # noqa: E402
from setsup.factors import FactorTable  # noqa: E402
from setsup_papers.abc import mnist_encoder  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from setsup_papers.abc.settings import ABCObjective  # noqa: E402
from tests.experiments.by_hand import draws, looped  # noqa: E402
from tests.experiments.small import AUGMENTED, DROPOUT, FEW, HALVED, PLAIN, Pooled, Tiny  # noqa: E402

SHAPES = setsup.load("shapes3d-procedural")
HERE = RunConfig(workers=0)
SHORT = replace(PLAIN, steps=6)
DROPOUT_SHORT = replace(DROPOUT, steps=6)


def losses(run: Run) -> list[float]:
    """The loss of every step."""
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, run.preset.steps + 1))
    return [line["loss"] for line in lines]


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_training_is_a_loop_of_adam_over_the_draws(tmp_path: Path, seed: int) -> None:
    run = train(SHORT, tmp_path, seed=seed, config=HERE)
    sets = setsup.SetSampler(SHAPES.factors, inactive=["wall_hue"], size=4, sets=2, where=FEW, seed=seed)
    encoder = build_method(SHORT.method, SHAPES.factors, seed).encoder
    np.testing.assert_allclose(losses(run), looped(encoder, draws(SHAPES, sets), 6), rtol=2e-6)
    trained = load_trained(run, device="cpu").method.encoder
    for weight, expected in zip(trained.parameters(), encoder.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-6)


def test_the_rate_is_halved_every_so_many_steps(tmp_path: Path) -> None:
    run = train(replace(HALVED, steps=9), tmp_path, config=HERE)
    (group,) = run.state()["optimizer_states"][0]["param_groups"]
    assert group["lr"] == pytest.approx(1e-3 / 4)  # after steps 4 and 8
    assert (group["eps"], group["betas"]) == (1e-7, (0.9, 0.999))


def test_a_finished_run_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = train(SHORT, tmp_path, config=HERE)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert before.keys() == {
        "run.json",
        "config.yaml",
        "factors.parquet",
        "first-batch.png",
        "metrics.jsonl",
        "metrics.csv",
        "last.ckpt",
    }
    monkeypatch.setattr(ABC, "training_step", None)  # nothing is trained
    again = train(SHORT, tmp_path, config=HERE)
    assert again.finished
    assert again.progress().steps == run.progress().steps == 6
    assert 0 < run.progress().seconds == again.progress().seconds
    assert before == {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}


def test_two_trainings_of_a_folder_are_refused(tmp_path: Path) -> None:
    def second(_: Run) -> None:
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        for seed in (0, 1):
            with pytest.raises(
                SetsupError, match=r"^another process is training in .*; wait until it ends, or choose another --out$"
            ):
                train(SHORT, tmp_path, seed=seed, config=HERE)
        assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert train(SHORT, tmp_path, config=HERE, on_start=second).finished
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
    train(SHORT, tmp_path, config=HERE)
    assert seen == [before] * SHORT.steps


def test_the_table_of_metrics_has_what_the_lines_have(tmp_path: Path) -> None:
    run = train(SHORT, tmp_path, config=HERE)
    names, *rows = [line.split(",") for line in (tmp_path / "metrics.csv").read_text().splitlines()]
    assert names == ["step", "loss"]
    assert [float(loss) for _, loss in rows] == losses(run)


@pytest.mark.long("trainings")
def test_bfloat16_stays_close_to_float32(tmp_path: Path) -> None:
    plain = train(SHORT, tmp_path / "32", config=HERE)
    half = train(SHORT, tmp_path / "16", config=RunConfig(workers=0, precision="bf16"))
    assert losses(half) != losses(plain)
    np.testing.assert_allclose(losses(half), losses(plain), rtol=0.1)
    weights = half.state()["state_dict"]
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    rows = np.arange(0, 40_000, 4_001)
    there, here = (load_trained(run, device="cpu").embed(rows=rows) for run in (half, plain))
    assert there.dtype == np.float32
    np.testing.assert_allclose(there, here, atol=0.03 * np.abs(here).max())
    assert not np.array_equal(there, here)
    with pytest.raises(SetsupError, match="precision is 'bf16' in that run, not 'float32'"):
        train(SHORT, tmp_path / "16", config=HERE)


def checked_compiled(folder: Path) -> None:
    """A compiled run finds what one finds that is not, and its checkpoint has the same names."""
    plain = train(SHORT, folder / "plain", config=HERE)
    compiled = train(SHORT, folder / "compiled", config=RunConfig(workers=0, compile=True))
    np.testing.assert_allclose(losses(compiled), losses(plain), rtol=1e-4)
    assert compiled.state()["state_dict"].keys() == plain.state()["state_dict"].keys()
    rows = np.arange(0, 40_000, 4_001)
    there, here = (load_trained(run, device="cpu").embed(rows=rows) for run in (compiled, plain))
    np.testing.assert_allclose(there, here, atol=1e-4)


@pytest.mark.long("trainings")
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
    from tensorboard.plugins.hparams import metadata

    run = train(SHORT, tmp_path, config=RunConfig(workers=0, log=("tensorboard",)))
    logs = EventAccumulator(str(tmp_path / "tensorboard"))
    logs.Reload()
    np.testing.assert_allclose([event.value for event in logs.Scalars("loss")], losses(run), rtol=1e-7)
    told = yaml.safe_load((tmp_path / "tensorboard" / "hparams.yaml").read_text())
    assert (told["preset"], told["seed"], told["method.rate"], told["sampler.size"]) == ("small/plain", 0, 1e-3, 4)
    # what the table of runs is made of
    (last,) = logs.Scalars("last/loss")
    assert (last.value, last.step) == (pytest.approx(losses(run)[-1]), 6)
    kept = {tag: one.plugin_data.content for tag, one in logs.summary_metadata.items()}
    row = metadata.parse_session_start_info_plugin_data(kept[metadata.SESSION_START_INFO_TAG]).hparams
    assert (row["preset"].string_value, row["method.rate"].number_value) == ("small/plain", 1e-3)
    (column,) = metadata.parse_experiment_plugin_data(kept[metadata.EXPERIMENT_TAG]).metric_infos
    assert column.name.tag == "last/loss"


def scalars(folder: Path, name: str = "loss") -> list[tuple[int, float]]:
    """Steps and values that TensorBoard shows."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logs = EventAccumulator(str(folder / "tensorboard"))
    logs.Reload()
    return [(event.step, event.value) for event in logs.Scalars(name)]


@pytest.mark.parametrize("fails_at", [3, 6])
def test_tensorboard_counts_the_steps_of_the_metrics_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    config, preset = RunConfig(workers=0, log=("tensorboard",)), replace(LOGGING, checkpoint_every=4)
    monkeypatch.setattr(checkpointing, "_FLUSH", 1)  # all steps were logged before the run was gone
    monkeypatch.setattr(Logging, "fails_at", fails_at)
    with pytest.raises(ConnectionError):
        train(preset, tmp_path, config=config)
    monkeypatch.setattr(Logging, "fails_at", None)
    found = losses(train(preset, tmp_path, config=config))
    shown = scalars(tmp_path)
    assert [step for step, _ in shown] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose([value for _, value in shown], found, rtol=1e-7)
    assert [step for step, _ in scalars(tmp_path, "rare")] == [4]


def test_two_optimisers_count_alike_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    preset = replace(SHORT, name="small/two", method=AlternatingSettings())
    train(preset, tmp_path, config=RunConfig(workers=0, log=("tensorboard",)))
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [step for step, _ in scalars(tmp_path)] == [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]


class FakeRun:
    """A run of wandb, as far as Lightning asks for one."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked, self.id, self.name = asked, asked["id"], asked["name"]
        self.logged: list[dict[str, Any]] = []
        self.config: dict[str, Any] = {}
        FakeRun.begun.append(self)

    def log(self, values: dict[str, Any]) -> None:
        assert wandb().run is self, "it has ended"
        self.logged.append(values)

    def finish(self, exit_code: int | None = None) -> None:
        self.exit_code = exit_code
        wandb().run = None

    begun: ClassVar[list["FakeRun"]] = []


class FakeConfig(dict[str, Any]):
    """Its `update` takes an option."""

    def update(self, values: dict[str, Any], allow_val_change: bool) -> None:
        super().update(values)


def wandb() -> Any:
    return sys.modules["wandb"]


@pytest.fixture
def fake_wandb(monkeypatch: pytest.MonkeyPatch) -> list[FakeRun]:
    """A module that keeps what it is told; no network is asked."""

    def init(**asked: Any) -> FakeRun:
        module.run = FakeRun(asked)
        module.run.config = FakeConfig()
        return module.run

    module = ModuleType("wandb")
    module.run, module.init, module.__spec__ = None, init, ModuleSpec("wandb", None)
    for name, held in (("wandb.sdk", {}), ("wandb.sdk.lib", {"RunDisabled": str}), ("wandb.wandb_run", {"Run": str})):
        part = ModuleType(name)
        part.__dict__.update(held)
        monkeypatch.setitem(sys.modules, name, part)
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.setattr("lightning.pytorch.loggers.wandb._WANDB_AVAILABLE", True)
    monkeypatch.setattr(FakeRun, "begun", [])
    return FakeRun.begun


@pytest.mark.long("trainings")
def test_wandb_goes_on_in_the_run_that_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_wandb: list[FakeRun]
) -> None:
    config, preset = RunConfig(workers=0, log=("wandb",)), replace(LOGGING, checkpoint_every=2)
    monkeypatch.setattr(Logging, "fails_at", 4)
    with pytest.raises(ConnectionError):
        train(preset, tmp_path / "a", config=config)
    assert wandb().run is None, "another run of this process would be logged to it"
    monkeypatch.setattr(Logging, "fails_at", None)
    whole = train(preset, tmp_path / "a", config=config)
    for folder, seed, given in (("b", 0, {}), ("c", 1, {}), ("d", 0, {"checkpoint_every": 3}), ("e", 0, {"steps": 7})):
        train(replace(preset, **given), tmp_path / folder, seed=seed, config=config)
    first, again, *others = fake_wandb
    assert [run.exit_code for run in fake_wandb] == [1, 0, 0, 0, 0, 0]
    assert first.id == again.id
    assert {run.asked["resume"] for run in fake_wandb} == {"allow"}
    assert len({run.id for run in (first, *others)}) == 5
    assert [line["loss"] for line in again.logged if "loss" in line] == pytest.approx(losses(whole)[2:])
    assert (first.config["preset"], first.config["method"], first.config["steps"]) == (
        "small/logging",
        "LoggingSettings",
        6,
    )
    assert first.config["precision"] == "float32"
    assert [run.config["seed"] for run in others] == [0, 1, 0, 0]


def test_a_logger_that_is_not_installed_is_said_before_data_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setsup.errors.installed", lambda module: module != "wandb")
    monkeypatch.setattr(Data, "open", lambda *_, **__: pytest.fail("the data were opened"))
    with pytest.raises(SetsupError, match=r"^--log wandb needs wandb, which is not installed: pip install wandb$"):
        train(SHORT, tmp_path / "run", config=RunConfig(workers=0, log=("wandb",)))
    assert not (tmp_path / "run").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_steps_images_a_second_and_the_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, whole, terminal = [0.0], ABC.training_step, Terminal()

    def training_step(self: ABC, batch: Any, batch_idx: int) -> torch.Tensor:
        clock[0] += 2.0
        return whole(self, batch, batch_idx)

    hues = ("wall_hue", "floor_hue", "object_hue")
    sampler = Sets(inactive=hues, size=6, where=FEW)  # two sets of six, and only four shapes have all the same hues
    monkeypatch.setattr(ABC, "training_step", training_step)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    run = train(replace(SHORT, sampler=sampler), tmp_path, config=HERE)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "6/6" in shown
    assert "4 images/s" in shown  # 8 in 2 s
    assert all(f"loss {loss:.4g}" in shown for loss in losses(run)[-1:])
    assert re.search(r"\d:\d\d:\d\d", shown)


def test_without_a_terminal_there_is_a_line_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, whole = [0.0], ABC.training_step

    def training_step(self: ABC, batch: Any, batch_idx: int) -> torch.Tensor:
        clock[0] += 40.0
        return whole(self, batch, batch_idx)

    monkeypatch.setattr(ABC, "training_step", training_step)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    caplog.set_level(logging.INFO, "setsup")
    found = losses(train(SHORT, tmp_path, config=HERE))
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    # a draw is two sets of four, in 40 seconds
    assert said == [
        f"training: {step} of 6 steps, 0.0 steps/s, 0 images/s, loss {found[step - 1]:.4g}, {left} left"
        for step, left in ((2, "0:02:40"), (4, "0:01:20"), (6, "0:00:00"))
    ]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"precision": "fp8"}, "^setting precision must be 'float32' or 'bf16' or 'fp16', not 'fp8'$"),
        ({"strategy": "fsdp"}, "^setting strategy must be 'auto' or 'ddp' or 'ddp-unused', not 'fsdp'$"),
        ({"profiler": "xla"}, "^setting profiler must be .*, not 'xla'$"),
        ({"accelerator": "tpu"}, "^setting accelerator must be 'auto' or 'cpu' or 'gpu', not 'tpu'$"),
        ({"log": ("csv",)}, r"^setting log must be .* not \('csv',\)$"),
        ({"devices": 0}, "^devices must be 1 or more, not 0$"),
        ({"nodes": -1}, "^nodes must be 1 or more, not -1$"),
        ({"devices": "auto"}, "^setting devices must be int, not 'auto'$"),
    ],
)
def test_a_way_to_run_that_there_is_not(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence):
        RunConfig(**changed)


@dataclass(frozen=True)
class Blind:
    """A method that embeds nothing."""

    def build(self, table: Any, generator: torch.Generator) -> Any:
        from lightning import LightningModule

        return LightningModule()


class Embedding(LightningModule):
    """Embeds, and has a network of that name for its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.loss = mnist_encoder(torch.Generator().manual_seed(0)), nn.MSELoss()

    def embed(self, batch: Any) -> torch.Tensor:
        found: torch.Tensor = self.encoder(batch["image"])
        return found


@dataclass(frozen=True)
class Digits:
    """A network for images of another size."""

    loss: bool = True

    def build(self, table: Any, generator: torch.Generator) -> Any:
        return ABC(ABCObjective(), mnist_encoder(generator)) if self.loss else Embedding()


@pytest.mark.parametrize(
    ("changed", "options", "sentence"),
    [
        ({"method": Blind()}, {}, r"LightningModule has no embed\(batch\)"),
        ({"sampler": Sets(inactive=("wall_heu",))}, {}, "wall_heu"),
        ({"augmentation": "abc-shapes4d"}, {}, "did you mean 'abc-shapes3d'"),
        ({"data": Data("mnist")}, {}, "setsup fetch mnist"),
        ({}, {"substitute": True}, "shapes3d-procedural has no substitute"),
        ({}, {"seed": -1}, "the seed must be an integer"),
        ({}, {"config": RunConfig(workers=-1)}, "workers must be"),
        (
            {"sampler": Sets(inactive=("wall_hue",), sets=3, size=4)},
            {},
            r"objective 'correspondence' requires images of shape \(sets, size, C, H, W\) with an even",
        ),
        ({"method": Tiny(objective="double")}, {}, r"objective 'double' requires images of shape \(sets, size, 2, C"),
        ({"method": Digits()}, {}, "for this network"),
        ({"method": Digits(loss=False)}, {}, "for this network"),
    ],
)
def test_what_does_not_fit_leaves_no_folder(
    tmp_path: Path, changed: dict[str, Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        train(replace(SHORT, **changed), tmp_path / "run", **{"config": HERE} | options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.long("trainings")
def test_what_is_tried_before_changes_nothing_and_its_own_errors_are_left_to_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []

    def loss(self: ABC, batch: Any) -> torch.Tensor:
        tried.append((self.training, torch.is_grad_enabled(), tuple(batch["image"].shape)))
        if not self.training:
            nn.init.zeros_(self.encoder[1].weight)
            raise RuntimeError("there is no kernel for this device")
        return whole(self, batch)

    expected, whole = losses(train(DROPOUT_SHORT, tmp_path / "plain", config=HERE)), ABC.loss
    monkeypatch.setattr(ABC, "loss", loss)
    assert losses(train(DROPOUT_SHORT, tmp_path / "tried", config=HERE)) == expected
    assert tried == [(False, False, (2, 4, 3, 64, 64)), *[(True, True, (2, 4, 3, 64, 64))] * 6]
    tried.clear()
    train(DROPOUT_SHORT, tmp_path / "tried", config=HERE)
    assert tried == [], "a resumed run was tried before"


class Picky(ABC):
    """Takes sets of so many and more, or none, with a weight for its loss."""

    least = 0

    def loss(self, batch: Any, weight: float = 1.0) -> torch.Tensor:
        Picky.tried.append(batch["image"].shape[1])
        if batch["image"].shape[1] < Picky.least:
            raise SetsupError(f"sets of {Picky.least} and more are learned from")
        return weight * super().loss(batch)

    tried: ClassVar[list[int]] = []


@dataclass(frozen=True)
class PickySettings:
    """No settings."""

    def build(self, table: Any, generator: torch.Generator) -> Picky:
        return Picky(ABCObjective(), nn.Sequential(Pooled(), nn.Linear(192, 2)))


@pytest.mark.parametrize(("least", "tried"), [(0, [8]), (12, [8, 12]), (13, [8, 12])])
def test_a_small_draw_is_tried_and_the_whole_one_where_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, tried: list[int]
) -> None:
    sampler = Sets(inactive=("wall_hue",), size=12, where=FEW)
    preset = replace(SHORT, name="small/picky", method=PickySettings(), sampler=sampler, steps=1)
    monkeypatch.setattr(Picky, "least", least)
    monkeypatch.setattr(Picky, "tried", [])
    if least > 12:
        with pytest.raises(SetsupError, match="sets of 13 and more"):
            train(preset, tmp_path / "run", config=HERE)
        assert Picky.tried == tried
        assert not (tmp_path / "run").exists()
    else:
        assert train(preset, tmp_path / "run", config=HERE).finished
        assert Picky.tried == [*tried, 12]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match=r"^Lightning cannot train with accelerator gpu"):
        train(SHORT, tmp_path, config=RunConfig(accelerator="gpu", workers=0))
    assert train(SHORT, tmp_path, config=HERE).finished, "nothing was trained, so that the folder may be overwritten"


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

    def build(self, table: Any, generator: torch.Generator) -> Logging:
        return Logging(ABCObjective(rate=1e-5), nn.Sequential(Pooled(), nn.Linear(192, 2)))


LOGGING = replace(SHORT, name="small/logging", method=LoggingSettings())


def test_all_that_a_method_logs_is_kept(tmp_path: Path) -> None:
    run = train(LOGGING, tmp_path, config=HERE)
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert all(line["twice"] == pytest.approx(2 * line["loss"]) and line["count"] == 4 for line in lines)
    assert ["rare" in line for line in lines] == [False, False, False, True, False, False]
    assert lines[3]["rare"] == pytest.approx(0.1)
    names, *rows = [line.split(",") for line in (tmp_path / "metrics.csv").read_text().splitlines()]
    assert sorted(names) == ["count", "loss", "rare", "step", "twice"]
    assert [row[names.index("rare")] != "" for row in rows] == ["rare" in line for line in lines]


@pytest.mark.long("trainings")
def test_an_error_passes_through_and_the_run_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(replace(LOGGING, checkpoint_every=2), tmp_path / "whole", config=HERE)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(Logging, "fails_at", 6)
    with pytest.raises(ConnectionError, match="the machine goes down"):
        train(whole.preset, tmp_path / "failed", config=HERE)
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(Logging, "fails_at", None)
    again = train(whole.preset, tmp_path / "failed", config=HERE)
    assert (again.folder / "metrics.jsonl").read_text() == (whole.folder / "metrics.jsonl").read_text()


def test_training_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    torch.manual_seed(3)
    state, numbers = torch.get_rng_state(), random.getstate()
    train(replace(DROPOUT, steps=2), tmp_path, config=HERE)
    assert torch.equal(torch.get_rng_state(), state)
    assert random.getstate() == numbers
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_initial_weights_are_those_of_the_seed_whoever_draws_them() -> None:
    first, again, other = (build_method(LOGGING.method, SHAPES.factors, seed).encoder[1].weight for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


class Alternating(LightningModule):
    """Two networks with an optimiser each, stepped by hand; one embeds, the other reads how bright the embedded was."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.encoder, self.reader = nn.Sequential(Pooled(), nn.Linear(192, 4)), nn.Linear(4, 1)

    def embed(self, batch: Any) -> torch.Tensor:
        found: torch.Tensor = self.encoder(batch["image"])
        return found

    def training_step(self, batch: Any, batch_idx: int) -> None:
        if self.global_step == Alternating.at:
            sys.exit(3)
        brightness = batch["image"].float().mean((-1, -2, -3))[..., None] / 255
        for optimiser in self.optimizers():
            loss = ((self.reader(nn.functional.dropout(self.embed(batch))) - brightness) ** 2).mean()
            optimiser.zero_grad()
            self.manual_backward(loss)
            optimiser.step()
        self.log("loss", loss)

    def configure_optimizers(self) -> Any:
        return [torch.optim.Adam(part.parameters(), 1e-3) for part in (self.encoder, self.reader)]

    at: int | None = None
    """Steps after which the program is left."""


@dataclass(frozen=True)
class AlternatingSettings:
    """No settings."""

    def build(self, table: Any, generator: torch.Generator) -> Alternating:
        return Alternating()


def test_a_program_that_is_left_resumes_from_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = replace(SHORT, name="small/two", method=AlternatingSettings(), checkpoint_every=2)
    run = train(preset, tmp_path / "whole", config=HERE)
    assert len((run.folder / "metrics.csv").read_text().splitlines()) == 1 + 6
    monkeypatch.setattr(Alternating, "at", 8)  # optimisers have made two steps for each draw
    with pytest.raises(SystemExit) as left:
        train(preset, tmp_path / "left", config=HERE)
    assert left.value.code == 3
    assert open_run(tmp_path / "left", preset).progress().steps == 4
    monkeypatch.setattr(Alternating, "at", None)
    again = train(preset, tmp_path / "left", config=HERE)
    assert (again.folder / "metrics.jsonl").read_text() == (run.folder / "metrics.jsonl").read_text()
    for name, weight in run.state()["state_dict"].items():
        assert torch.equal(again.state()["state_dict"][name], weight)
    monkeypatch.setattr(Alternating, "training_step", None)
    assert train(preset, tmp_path / "left", config=HERE).finished, "nothing is left to be trained"


def test_slots_without_an_image_are_no_images(tmp_path: Path) -> None:
    hues = ("wall_hue", "floor_hue", "object_hue")
    sampler = Sets(inactive=hues, size=6, where=FEW)  # four shapes have all the same hues
    run = train(replace(SHORT, sampler=sampler), tmp_path, config=HERE)
    assert run.progress().images == SHORT.steps * 2 * 4


class Failing(ABC):
    """Logs what is not a number."""

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        self.log("score", torch.tensor([1.0, math.nan, math.inf][batch_idx % 3]))
        return super().training_step(batch, batch_idx)


@dataclass(frozen=True)
class FailingSettings:
    """No settings."""

    def build(self, table: Any, generator: torch.Generator) -> Failing:
        return Failing(ABCObjective(), nn.Sequential(Pooled(), nn.Linear(192, 2)))


def test_what_is_not_finite_is_null(tmp_path: Path) -> None:
    def refused(word: str) -> None:
        raise AssertionError(word)

    run = train(replace(SHORT, method=FailingSettings(), checkpoint_every=2), tmp_path, config=HERE)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(line, parse_constant=refused) for line in lines]
    assert [line["score"] for line in found] == [1, None, None, 1, None, None]
    assert run.metrics().keys() == {"loss", "score"}
    assert run.metrics()["score"] is None


@dataclass(frozen=True)
class Classes:
    """A head with an output for each level of a factor."""

    factor: str = "shape"

    def build(self, table: FactorTable, generator: torch.Generator) -> ABC:
        weights = torch.tensor(np.bincount(table.codes(self.factor)), dtype=torch.float32)
        method = ABC(ABCObjective(), nn.Sequential(Pooled(), nn.Linear(192, len(weights))))
        method.register_buffer("counts", weights)
        method.register_buffer("memory", torch.zeros(len(table), 1))
        return method


def test_a_method_is_made_for_the_factors_of_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Data("shapes3d-procedural", where="scale == 0.75 and orientation < 0")
    sampler = Sets(inactive=("wall_hue",), size=4)
    run = train(replace(SHORT, data=data, sampler=sampler, method=Classes()), tmp_path, config=HERE)
    rows = 10**3 * 4 * 7  # of 15 orientations from −30° to 30°
    state = run.state()["state_dict"]
    assert state["counts"].tolist() == [rows / 4] * 4
    assert len(state["memory"]) == rows
    # where the data are no more, the method is there
    monkeypatch.setattr(Data, "open", lambda *_, **__: pytest.fail("the data were opened"))
    trained = load_trained(run, device="cpu")
    assert embed(trained.method, SHAPES, np.arange(3)).shape == (3, 4)
    assert run.factors().fingerprint == SHAPES.factors.where(data.where).fingerprint


def test_a_run_that_kept_no_factors_opens_its_data(tmp_path: Path) -> None:
    run = train(replace(SHORT, method=Classes()), tmp_path, config=HERE)
    (tmp_path / "factors.parquet").unlink()
    assert load_trained(run, device="cpu").method.memory.shape == (480_000, 1)


@dataclass(frozen=True)
class Turned:
    """Hues turned by a share of the circle, the same for all."""

    turn: float = 0.0
    small: bool = False

    def build(self, dataset: Any, seed: int) -> Any:
        from setsup.loading.transforms import Augment, Hue

        return Augment([Hue(self.turn, self.turn)], copies=2, seed=seed, stream="turned")

    def shrunk(self) -> "Turned":
        return replace(self, small=True)


@pytest.mark.long("trainings")
def test_an_augmentation_has_settings_of_its_own(tmp_path: Path) -> None:
    preset = replace(AUGMENTED, steps=2, augmentation=Turned(0.5))
    run = train(preset, tmp_path / "half", config=HERE)
    assert open_run(run.folder, preset).preset == preset
    assert json.loads((run.folder / "run.json").read_text())["settings"]["augmentation.turn"] == 0.5
    assert smoke(preset).augmentation == Turned(0.5, small=True)
    other = train(replace(preset, augmentation=Turned(0.0)), tmp_path / "none", config=HERE)
    assert losses(run) != losses(other)
    # two equal copies of each image, in floats from 0 to 1, as by hand
    encoder = build_method(preset.method, SHAPES.factors, 0).encoder
    sets = setsup.SetSampler(SHAPES.factors, inactive=[], size=4, sets=1, where=FEW, seed=0)
    (embedded,) = encoder(next(draws(SHAPES, sets)) / 255)
    scores = -(torch.cdist(embedded, embedded) ** 2)
    assert losses(other)[0] == pytest.approx((torch.logsumexp(scores, 1) - scores.diagonal()).mean().item(), rel=1e-5)
    with pytest.raises(SetsupError, match=r"augmentation.turn is 0\.5 in that run, not 0\.0"):
        train(replace(preset, augmentation=Turned(0.0)), run.folder, config=HERE)


@dataclass(frozen=True)
class Once:
    """Every row once."""

    size: int = 1

    def build(self, dataset: Dataset, seed: int) -> setsup.EpochSampler:
        return setsup.EpochSampler(dataset.factors, self.size, epochs=1, seed=seed)


@pytest.mark.long("trainings")
def test_draws_that_end_before_the_steps_do(tmp_path: Path) -> None:
    data = Data("shapes3d-procedural", where=f"{FEW} and wall_hue == 0 and floor_hue == 0")  # 10 hues, 4 shapes
    sampler = replace(Once(), size=8)
    preset = replace(AUGMENTED, data=data, sampler=sampler, steps=5)
    assert train(preset, tmp_path / "whole", config=HERE).finished
    for _ in range(2):
        with pytest.raises(
            SetsupError, match="the sampler of small/augmented ended after 5 of 6 draws; train for fewer"
        ):
            train(replace(preset, steps=6), tmp_path / "short", config=HERE)
