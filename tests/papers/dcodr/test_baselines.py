"""LORD, DRNET and ML-VAE as experiments: they learn, and build from their settings."""

import itertools
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
from setsup_papers.dcodr.baseline_settings import (  # noqa: E402
    AmortisedLORDSettings,
    DRNETSettings,
    LORDSettings,
    MLVAESettings,
)
from tests.experiments.resumable import CHANNELS, DENSE, DOMAIN, DRNET, LATENT, LORD  # noqa: E402

HERE = RunConfig(workers=0)
CONVOLUTIONAL = replace(
    DENSE,
    name="small/ml-vae-convolutional",
    method=MLVAESettings(domain=DOMAIN, networks="convolutional", channels=CHANNELS, likelihood="bernoulli", hidden=32),
)


def trained(preset: Preset, folder: Path) -> Run:
    """Train, in a folder below which runs have their usual places; a second stage after a few steps of its first."""
    if preset.initial_run == LATENT.name:
        train(LATENT, folder / LATENT.name / "seed-0", config=HERE)
    return train(preset, folder / preset.name / "seed-0", config=HERE)


def losses(run: Run, name: str = "loss") -> list[float]:
    return [json.loads(line)[name] for line in (run.folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    ("preset", "name", "factor"),
    [
        (replace(LATENT, method=replace(LATENT.method, rate=3e-3, latent_rate=3e-2, noise=0.1)), "distance", 0.8),
        (replace(LORD, method=replace(LORD.method, rate=1e-3)), "loss", 0.95),
        (DRNET, "reconstruction", 0.7),
        (DENSE, "loss", 0.95),
        (CONVOLUTIONAL, "loss", 0.95),
    ],
    ids=lambda value: value.name if isinstance(value, Preset) else "",
)
def test_a_few_steps_lower_the_loss(preset: Preset, name: str, factor: float, tmp_path: Path) -> None:
    run = trained(replace(preset, steps=60, checkpoint_every=60), tmp_path)
    found = losses(run, name)
    assert np.isfinite(found).all()
    assert np.mean(found[-10:]) < factor * np.mean(found[:5])


@pytest.mark.long("trainings")
def test_the_second_stage_of_lord_embeds_images_that_were_not_trained_on(tmp_path: Path) -> None:
    run = trained(LORD, tmp_path)
    other = setsup.load("shapes3d-procedural", where="orientation == 0 and scale == 1.25 and floor_hue == 0.5")
    for device in ("cpu",):
        found = load_trained(run, device=device).embed(other, rows=np.arange(10))
        assert found.shape == (10, 12)
        assert np.isfinite(found).all()


def test_the_second_stage_needs_the_first(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match="pass a run of that stage as --initial-run"):
        train(replace(LORD, initial_run=None), tmp_path / "run", config=HERE)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("preset", [LATENT, LORD, DRNET, DENSE], ids=lambda preset: preset.name)
def test_the_images_of_the_data_are_the_size_of_the_networks(preset: Preset) -> None:
    assert preset.method is not None
    batch = {"image": torch.zeros(2, 3, 1, 32, 48)}
    assert preset.method.fit_to(batch).image == (1, 32, 48)  # type: ignore[attr-defined]
    fixed = replace(preset.method, image=(1, 32, 48))  # type: ignore[type-var]
    assert fixed.fit_to(batch) == fixed  # type: ignore[attr-defined]
    with pytest.raises(
        SetsupError, match=r"^the setting image is 3 × 64 × 64, but the images of the first draw are 1 × 32 × 48"
    ):
        replace(preset.method, image=(3, 64, 64)).fit_to(batch)  # type: ignore[attr-defined, type-var]


def count(method: Any) -> int:
    return sum(one.numel() for one in method.parameters())


def test_default_networks_have_the_published_numbers_of_parameters() -> None:
    table = setsup.load("shapes3d-procedural").factors
    generator = torch.Generator().manual_seed(0)
    lord = LORDSettings(domain=DOMAIN).build(table, generator)
    assert count(lord) == 7_569_155 + 526_336 + 4 * 256
    assert lord.codes.codes.shape == (128,)
    widths = (3, 64, 128, 256, 512)
    stages = sum(16 * a * b + 3 * b for a, b in itertools.pairwise(widths))
    encoders = [stages + 16 * 512 * size + 3 * size for size in (128, 10)]
    decoder = 16 * 138 * 512 + 3 * 512 + sum(16 * a * b + 3 * a for a, b in itertools.pairwise(widths)) - 2 * 3
    drnet = DRNETSettings(domain=DOMAIN).build(table, generator)
    assert count(drnet) == sum(encoders) + decoder + 21 * 100 + 101 * 100 + 101
    pixels = 3 * 64 * 64
    vae = MLVAESettings(domain=DOMAIN).build(table, generator)
    assert count(vae) == (pixels + 1) * 500 + 501 * 40 + 21 * 500 + 501 * 2 * pixels


@pytest.mark.long("trainings")
def test_the_encoders_of_lord_are_those_of_dcodr() -> None:
    table = setsup.load("shapes3d-procedural").factors
    method = AmortisedLORDSettings(domain=DOMAIN).build(table, torch.Generator())
    assert count(method.content) == 27_966_656
    assert count(method.style) == 27_966_656 + 2049 * 128
    images = torch.zeros(1, 1, 3, 64, 64, dtype=torch.uint8)
    assert method.eval().embed({"image": images}).shape == (1, 1, 128)
