"""How a preset is run: clipped gradients, precision, strategies, profilers; each does what it says, or is refused."""

import json
import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402
from lightning.pytorch.plugins import MixedPrecision  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Preset, RunConfig, open_run, smoke, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.training.callbacks import ClipCallback  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from setsup_papers.abc.settings import ABCObjective  # noqa: E402
from tests.experiments.by_hand import abc_loss, draws  # noqa: E402
from tests.experiments.ranks import LEFT  # noqa: E402
from tests.experiments.small import FEW, PLAIN, Tiny  # noqa: E402

SHAPES = setsup.load("shapes3d-procedural")
HERE = RunConfig(workers=0)
SHORT = replace(PLAIN, steps=4, checkpoint_every=2)


class Descending(ABC):
    """Trained by SGD, whose steps are as long as its gradients, in automatic or manual optimisation."""

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = super().training_step(batch, batch_idx)
        if not self.automatic_optimization:
            optimiser = self.optimizers()
            optimiser.zero_grad()
            self.manual_backward(loss)
            optimiser.step()
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)


@dataclass(frozen=True)
class DescendingSettings:
    """Of :class:`Descending`."""

    manual: bool = False

    def build(self, table: Any, generator: torch.Generator) -> Descending:
        method = Descending(ABCObjective(), Tiny().build(table, generator).encoder)
        method.automatic_optimization = not self.manual
        return method


CLIPPED = replace(SHORT, name="small/clipped", method=DescendingSettings())


def by_hand(preset: Preset) -> tuple[list[torch.Tensor], list[float]]:
    """The weights that a loop over the draws ends with, and the norms of its gradients before they are clipped."""
    encoder, norms = build_method(preset.method, SHAPES.factors, 0).encoder, []
    sets = setsup.SetSampler(SHAPES.factors, inactive=["wall_hue"], size=4, sets=2, where=FEW)
    images, weights = draws(SHAPES, sets), list(encoder.parameters())
    optimiser = torch.optim.SGD(weights, 0.05, momentum=0.9)
    for _ in range(preset.steps):
        optimiser.zero_grad()
        torch.stack([abc_loss(*encoder(next(images))) for _ in range(preset.accumulate)]).mean().backward()
        norm = torch.cat([weight.grad.flatten() for weight in weights]).norm()
        norms.append(norm.item())
        for weight in weights:
            if preset.clip_norm is not None and norm > preset.clip_norm:
                weight.grad *= preset.clip_norm / norm
            if preset.clip_value is not None:
                weight.grad.clamp_(-preset.clip_value, preset.clip_value)
        optimiser.step()
    return [weight.detach() for weight in weights], norms


@pytest.mark.parametrize(
    ("changed", "manual"),
    [
        ({"clip_norm": 0.2}, False),
        ({"clip_norm": 0.2}, True),
        ({"clip_value": 0.01}, False),
        ({"clip_value": 0.01}, True),
        pytest.param({"clip_norm": 0.2, "accumulate": 2}, False, marks=pytest.mark.long("trainings")),
        pytest.param({}, True, marks=pytest.mark.long("trainings")),
    ],
)
def test_gradients_are_clipped_as_by_hand(tmp_path: Path, changed: dict[str, Any], manual: bool) -> None:
    preset = replace(CLIPPED, method=DescendingSettings(manual), **changed)
    expected, norms = by_hand(preset)
    assert min(norms) > 0.2, "all of them are clipped"
    found = train(preset, tmp_path, config=HERE).state()["state_dict"]
    for weight, one in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(weight, one, rtol=1e-5, atol=1e-5)


class Recorded(Callback):
    """The gradients that an optimiser steps with."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[torch.Tensor] = []

    @property
    def state_key(self) -> str:
        return self.name

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.found.append(pl_module.layer.weight.grad.clone())


class Scaled(LightningModule):
    """One layer."""

    def __init__(self, manual: bool, fused: bool = False) -> None:
        super().__init__()
        self.automatic_optimization, self.fused = not manual, fused
        self.layer = nn.Linear(2, 1, bias=False)
        nn.init.ones_(self.layer.weight)

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = self.layer(batch).float().mean()
        if not self.automatic_optimization:
            self.manual_backward(loss)
            self.optimizers().step()
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 1.0, fused=self.fused)


def fitted(method: LightningModule, *callbacks: Callback) -> None:
    """Train one step in float16 with scaled gradients, on the CPU, as `build_trainer` does on a GPU."""
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    plugins = MixedPrecision("16-mixed", "cpu", scaler)
    trainer = Trainer(max_steps=1, accelerator="cpu", plugins=plugins, callbacks=list(callbacks), **quiet)
    trainer.fit(method, DataLoader(torch.tensor([[3.0, 4.0]])))


@pytest.mark.filterwarnings("ignore:.*(does not have many workers|smaller than the logging interval).*:UserWarning")
@pytest.mark.parametrize("manual", [False, True])
def test_gradients_are_clipped_after_they_are_unscaled(manual: bool) -> None:
    before, after, method = Recorded("before"), Recorded("after"), Scaled(manual)
    fitted(method, before, ClipCallback("small/plain", norm=1.0), after)
    torch.testing.assert_close(before.found, [torch.tensor([[3.0, 4.0]])])
    torch.testing.assert_close(after.found, [torch.tensor([[0.6, 0.8]])])
    torch.testing.assert_close(method.layer.weight.detach(), torch.tensor([[0.4, 0.2]]))
    with pytest.raises(SetsupError, match="small/plain: a fused SGD unscales its gradients within the step"):
        fitted(Scaled(manual, fused=True), ClipCallback("small/plain", norm=1.0))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"clip_norm": 0.0}, "small/plain: clip_norm must be above 0, or None to leave gradients unchanged, not 0.0"),
        ({"clip_value": float("inf")}, "small/plain: clip_value must be above 0, .* not inf"),
        ({"clip_norm": 1.0, "clip_value": 1.0}, "set clip_norm or clip_value"),
        ({"accumulate": 0}, "small/plain: accumulate must be 1 or more .* not 0"),
    ],
)
def test_optimisation_that_there_is_not(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence):
        replace(PLAIN, **changed)


def test_a_shrunk_preset_accumulates_two_draws() -> None:
    assert [smoke(replace(PLAIN, accumulate=draws)).accumulate for draws in (1, 2, 64)] == [1, 2, 2]


def test_a_run_of_an_earlier_version_has_the_defaults(tmp_path: Path) -> None:
    train(SHORT, tmp_path, config=HERE)
    path = tmp_path / "run.json"
    kept = json.loads(path.read_text())
    for name in ("accumulate", "clip_norm", "clip_value"):
        del kept["settings"][name]
    for name in ("strategy", "sync_batchnorm", "profiler", "checkpoint_minutes"):
        del kept["config"][name]
    path.write_text(json.dumps(kept))
    assert open_run(tmp_path, PLAIN).preset == SHORT
    assert train(SHORT, tmp_path, config=HERE).finished
    for name, value in (("accumulate", 2), ("clip_norm", 1.0), ("clip_value", 1.0)):
        with pytest.raises(SetsupError, match=f"contains another run: {name} is (1|None) in that run, not {value}"):
            train(replace(SHORT, **{name: value}), tmp_path, config=HERE)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("accelerator", ["auto", "cpu"])
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"precision": "fp16"},
            "^precision fp16 requires a GPU, but this training runs on the CPU; use bf16 or float32",
        ),
        ({"sync_batchnorm": True}, "^sync_batchnorm requires GPUs, but this training runs on the CPU"),
    ],
)
def test_what_needs_a_gpu(tmp_path: Path, changed: dict[str, Any], sentence: str, accelerator: Any) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        train(SHORT, tmp_path / "run", config=RunConfig(workers=0, accelerator=accelerator, **changed))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_float16_stays_close_to_float32(tmp_path: Path) -> None:
    found = [
        train(replace(SHORT, clip_norm=1.0), tmp_path / precision, config=replace(HERE, precision=precision)).metrics()
        for precision in ("float32", "fp16")
    ]
    np.testing.assert_allclose(found[1]["loss"], found[0]["loss"], rtol=0.05)


@pytest.mark.parametrize(
    ("profiler", "said"),
    [
        ("simple", "run_training_batch"),
        pytest.param("advanced", "training_step", marks=pytest.mark.long("trainings")),
        pytest.param("pytorch", "aten::", marks=pytest.mark.long("trainings")),
    ],
)
def test_a_profile_is_in_the_folder_of_the_run(tmp_path: Path, profiler: Any, said: str) -> None:
    plain = train(replace(SHORT, steps=6), tmp_path / "plain", config=HERE)
    run = train(replace(SHORT, steps=6), tmp_path / "run", config=replace(HERE, profiler=profiler))
    assert said in (run.folder / "profile" / f"fit-{profiler}.txt").read_text()
    assert run.metrics() == plain.metrics()
    assert run.description["config"]["profiler"] == profiler


@pytest.mark.long("trainings")
def test_one_device_trains_alike_with_ddp(tmp_path: Path) -> None:
    plain = train(SHORT, tmp_path / "plain", config=HERE)
    ddp = train(SHORT, tmp_path / "ddp", config=replace(HERE, strategy="ddp", accelerator="cpu"))
    assert ddp.metrics() == plain.metrics()


def fail(self: ABC, batch: Any, batch_idx: int) -> torch.Tensor:
    raise SetsupError("this loss fails")


@pytest.mark.long("trainings")
@pytest.mark.parametrize("fails", [False, True])
def test_a_training_leaves_no_process_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """A later training of one device is not told that it is distributed, nor one of two that both were started."""
    for name in LEFT:
        monkeypatch.delenv(name, raising=False)
    environment = dict(os.environ)
    if fails:
        monkeypatch.setattr(ABC, "training_step", fail)
    with pytest.raises(SetsupError, match="this loss fails") if fails else nullcontext():
        train(SHORT, tmp_path / "ddp", config=replace(HERE, strategy="ddp", accelerator="cpu"))
    assert not torch.distributed.is_initialized()
    assert dict(os.environ) == environment


@pytest.mark.long("trainings")
def test_a_process_group_of_the_user_stays(tmp_path: Path) -> None:
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        train(SHORT, tmp_path / "ddp", config=replace(HERE, strategy="ddp", accelerator="cpu"))
        assert torch.distributed.is_initialized()
    finally:
        torch.distributed.destroy_process_group()
