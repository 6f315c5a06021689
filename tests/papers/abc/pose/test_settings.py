"""The pose methods and baselines as experiments: they build, train, resume bit for bit, and embed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Data, Preset, Run, RunConfig, load_trained, open_run, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.sets import Sets  # noqa: E402
from setsup_papers.abc import pose_encoder  # noqa: E402
from setsup_papers.abc.pose.baseline_settings import (  # noqa: E402
    CCVAESettings,
    ExclusiveInformationSettings,
    SharedInformationSettings,
)
from setsup_papers.abc.pose.settings import (  # noqa: E402
    PoseABCSettings,
    PoseFeaturesSettings,
    SphericalRegressionSettings,
)
from tests.methods.networks import keras_weights  # noqa: E402

HERE = RunConfig(workers=0)
FEW = "orientation == 0 and scale == 0.75 and floor_hue == 0"
PAIRS = Sets(inactive=("shape",), sets=4, size=2)
NARROW: dict[str, Any] = {"shared": 6, "filters": 2, "convolutions": 4, "width": 8}


def _preset(name: str, method: Any, sampler: Any = PAIRS, **others: Any) -> Preset:
    data = Data("shapes3d-procedural", where=FEW)
    parts: dict[str, Any] = {"shows": "nothing", "steps": 4, "checkpoint_every": 2} | others
    return Preset(name=name, data=data, sampler=sampler, method=method, **parts)


CC_VAE = _preset("small/cc-vae", CCVAESettings(channels=(4, 4, 8, 8), decay_every=3))
SHARED = _preset("small/shared", SharedInformationSettings(**NARROW))
EXCLUSIVE = _preset("small/exclusive", ExclusiveInformationSettings(exclusive=5, **NARROW), initial_run="small/shared")
SINGLE = _preset("small/tcc", PoseABCSettings(encoder="small", objective="correspondence", halve_every=3))


def trained(preset: Preset, folder: Path) -> Run:
    """Train, in a folder below which runs have their usual places; a second stage after its first."""
    if preset.initial_run == SHARED.name:
        train(replace(SHARED, steps=preset.steps), folder / SHARED.name / "seed-0", config=HERE)
    return train(preset, folder / preset.name / "seed-0", config=HERE)


def losses(run: Run, name: str = "loss") -> list[float]:
    return [json.loads(line)[name] for line in (run.folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.long("trainings")
@pytest.mark.parametrize("preset", [CC_VAE, SHARED, EXCLUSIVE, SINGLE], ids=lambda preset: preset.name)
def test_a_run_that_fails_resumes_bit_for_bit(preset: Preset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained(preset, tmp_path / "whole")
    method = type(build_method(preset.method, whole.factors(), 0))
    own = method.training_step

    def training_step(self: Any, batch: Any, batch_idx: int) -> Any:
        if batch_idx == 3:
            raise ConnectionError("the machine goes down")
        return own(self, batch, batch_idx)

    if preset is EXCLUSIVE:
        trained(SHARED, tmp_path / "stopped")
    monkeypatch.setattr(method, "training_step", training_step)
    folder = tmp_path / "stopped" / preset.name / "seed-0"
    with pytest.raises(ConnectionError):
        train(preset, folder, config=HERE)
    monkeypatch.setattr(method, "training_step", own)
    assert open_run(folder, preset).progress().steps == 2
    run = train(preset, folder, config=HERE)
    assert run.finished
    assert (run.folder / "metrics.jsonl").read_bytes() == (whole.folder / "metrics.jsonl").read_bytes()
    found, expected = run.state(), whole.state()
    for part in ("state_dict", "optimizer_states", "lr_schedulers"):
        assert repr(found[part]) == repr(expected[part])
        torch.testing.assert_close(found[part], expected[part], rtol=0, atol=0)


@pytest.mark.long("trainings")
def test_a_few_steps_lower_the_error_of_reconstructions(tmp_path: Path) -> None:
    method = replace(CC_VAE.method, rate=3e-3, decay_every=None)
    run = trained(replace(CC_VAE, method=method, steps=40, checkpoint_every=40), tmp_path)
    found = losses(run, "reconstruction")
    assert np.mean(found[-10:]) < 0.8 * np.mean(found[:5])


@pytest.mark.long("trainings")
def test_features_start_from_a_published_file_and_stay(tmp_path: Path) -> None:
    weights = keras_weights.random_weights()
    path = keras_weights.write(tmp_path / "notop.h5", weights)
    method = PoseFeaturesSettings(image=(64, 64))
    preset = _preset("small/features", method, Sets(inactive=(), sets=1, size=2), steps=1, initial_run=str(path))
    run = train(preset, tmp_path / "run", config=HERE)
    assert run.finished
    assert run.description["initial_weights_sha256"]
    loaded = load_trained(run, device="cpu")
    kernel = torch.from_numpy(weights["conv1_conv/kernel"]).permute(3, 2, 0, 1)
    assert torch.equal(loaded.method.encoder.layers[0].conv1.weight, kernel)
    assert loaded.embed(rows=np.arange(2)).shape == (2, 4 * 1024)
    random = train(replace(preset, initial_run=None), tmp_path / "random", config=HERE)
    assert random.description.get("initial_weights_sha256") is None


def test_the_second_stage_needs_the_first(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match="name its run, as --initial-run"):
        train(replace(EXCLUSIVE, initial_run=None), tmp_path / "run", config=HERE)
    assert not (tmp_path / "run").exists()


def test_regression_has_the_angles_of_its_settings(tmp_path: Path) -> None:
    table = setsup.load("shapes3d-procedural").factors
    with pytest.raises(SetsupError, match="'azimuth'"):
        build_method(SphericalRegressionSettings(encoder="small"), table, 0)


@pytest.mark.long("a network of the paper's size")
def test_settings_of_the_paper() -> None:
    """What section 1.6 of the specification says, and a network that a seed determines."""
    look_up, regression = PoseABCSettings(), SphericalRegressionSettings()
    assert (look_up.temperature, look_up.halve_every, regression.temperature, regression.halve_every) == (
        0.1,
        10_000,
        0.05,
        20_000,
    )
    assert (look_up.similarity, look_up.objective, look_up.rate) == ("cosine", "double", 1e-4)
    table = setsup.load("shapes3d-procedural").factors
    method: Any = build_method(look_up, table, 3)
    expected = pose_encoder(torch.Generator())
    found = {name: tuple(one.shape) for name, one in method.encoder.state_dict().items()}
    assert found == {name: tuple(one.shape) for name, one in expected.state_dict().items()}
    again: Any = build_method(look_up, table, 3)
    assert all(torch.equal(one, other) for one, other in zip(method.parameters(), again.parameters(), strict=True))
