"""The pose methods and baselines as experiments: they build, train, and embed."""

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
from setsup.experiments import Preset, Run, RunConfig, load_trained, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.sets import Sets  # noqa: E402
from setsup_papers.abc import pose_encoder  # noqa: E402
from setsup_papers.abc.pose.settings import (  # noqa: E402
    PoseABCSettings,
    PoseFeaturesSettings,
    SphericalRegressionSettings,
)
from tests.experiments.resumable import CC_VAE, EXCLUSIVE, SHARED  # noqa: E402
from tests.methods.networks import keras_weights  # noqa: E402

HERE = RunConfig(workers=0)


def trained(preset: Preset, folder: Path) -> Run:
    """Train, in a folder below which runs have their usual places; a second stage after its first."""
    if preset.initial_run == SHARED.name:
        train(replace(SHARED, steps=preset.steps), folder / SHARED.name / "seed-0", config=HERE)
    return train(preset, folder / preset.name / "seed-0", config=HERE)


def losses(run: Run, name: str = "loss") -> list[float]:
    return [json.loads(line)[name] for line in (run.folder / "metrics.jsonl").read_text().splitlines()]


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
    sampler = Sets(inactive=(), sets=1, size=2)
    preset = replace(CC_VAE, name="small/features", method=method, sampler=sampler, steps=1, initial_run=str(path))
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
    with pytest.raises(SetsupError, match="pass a run of that stage as --initial-run"):
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
