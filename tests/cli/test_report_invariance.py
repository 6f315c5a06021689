"""``setsup train dcodr`` on a domain of one's own, and ``setsup report invariance``, before and after."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.refusals import refused

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

Run = Callable[..., Any]

SHAPES = ["report", "invariance", "shapes3d-procedural", "--domain", "shape", "--factors", "wall_hue", "scale"]


def test_a_short_name_sets_the_domain_of_sampler_and_method(setsup: Run) -> None:
    found = setsup("train", "dcodr", "--domain", "wall_hue", "shape", "--print-config", "--json")
    assert found.code == 0, found.err
    settings = found.json["settings"]
    assert settings["sampler"]["domain"] == settings["method"]["domain"] == ["wall_hue", "shape"]


@pytest.mark.smoke
def test_before_and_after_beside_the_ideal_and_permuted_labels(setsup: Run, photos: Path) -> None:
    data = ("--data.name", photos, "--option", "size=32,32")
    words = ("--domain", "subject", "--smoke", "--accelerator", "cpu", "--out", "run")
    assert setsup("train", "dcodr", *data, *words).code == 0
    kept = json.loads(Path("run/seed-0/run.json").read_text())["settings"]
    assert kept["sampler.domain"] == kept["method.domain"] == ["subject"]
    assert kept["method.image"] == [3, 32, 32]
    report = ("report", "invariance", photos, "run/seed-0", "--option", "size=32,32", "--domain", "subject")
    found = setsup(*report, "--factors", "light", "age", "--encoder", "pixels:4")
    assert found.code == 0, found.err
    data = setsup(*report, "--factors", "light", "age", "--json").json
    assert data["domain"] == ["subject"]
    assert list(data["encoders"]) == [f"before: {label}" for label in [*data["encoders"]][1:]] + [*data["encoders"]][1:]
    for values in data["encoders"].values():
        assert set(values["accuracy"]) == set(values["permuted"]) == {"domain", "light", "age"}
        assert all(np.isfinite(one) for one in values["accuracy"].values())
    assert data["ideal"]["light"] == 1
    heads = next(line for line in found.out.splitlines() if "ideal" in line)
    assert "permuted" in heads
    assert "before" in found.out


@pytest.mark.long("probes")
def test_what_pixels_tell_of_shapes(setsup: Run) -> None:
    found = setsup(*SHAPES, "--encoder", "pixels:8", "-n", 600, "--json")
    assert found.code == 0, found.err
    (values,) = found.json["encoders"].values()
    assert values["accuracy"]["wall_hue"] > 0.9 > 0.3 > values["permuted"]["wall_hue"]
    assert 0.2 < found.json["ideal"]["domain"] < 0.4
    assert list(found.json["ideal"]) == ["domain", "wall_hue", "scale"]


@pytest.mark.long("probes")
def test_a_domain_that_is_there_is_read_from_few_rows(setsup: Run) -> None:
    found = setsup(
        *SHAPES[:3], "--domain", "wall_hue", "--factors", "floor_hue", "--encoder", "pixels:8", "-n", 240, "--json"
    )
    assert found.code == 0, found.err
    (values,) = found.json["encoders"].values()
    assert values["accuracy"]["domain"] > 0.8 > 0.4 > values["permuted"]["domain"]
    lines = setsup(
        *SHAPES[:3], "--domain", "wall_hue", "--encoder", "pixels:8", "-n", 60, "--factors", "shape"
    ).out.splitlines()
    assert any(line.startswith("domain: wall_hue ") for line in lines)


@pytest.mark.long("probes")
def test_a_factor_called_domain_and_one_with_a_plus_are_read_apart(setsup: Run, tmp_path: Path) -> None:
    pixels, rows = np.random.default_rng(0).integers(0, 60, (60, 8, 8, 3), dtype=np.uint8), np.arange(60)
    pixels[rows, :, :, rows % 3] += 180  # a colour for each level
    factors = {"scanner": rows % 2, "domain": rows % 3, "a+b": rows % 3}
    np.savez(tmp_path / "own.npz", image=pixels, **factors)
    report = ("report", "invariance", tmp_path / "own.npz", "--domain", "scanner", "--encoder", "pixels:2", "--json")
    found = setsup(*report)
    assert found.code == 0, found.err
    (values,) = found.json["encoders"].values()
    assert set(values["accuracy"]) == {"domain", "factor domain", "a+b"}
    assert values["accuracy"]["factor domain"] == values["accuracy"]["a+b"] == 1 > values["accuracy"]["domain"]
    both = setsup(*report, "--factors", "scanner+domain", "a+b").json
    assert list(both["ideal"]) == ["domain", "scanner+domain", "a+b"]
    wrong = setsup(*report, "--factors", "scanner+domino")
    assert (wrong.code, "did you mean 'domain'" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (SHAPES, "pass folders of runs, or --encoder ENCODER"),
        (["report", "invariance", "shapes3d-procedural", "--encoder", "pixels"], "--domain"),
        ([*SHAPES[:3], "--domain", "shap", "--encoder", "pixels"], "did you mean 'shape'"),
        ([*SHAPES, "--encoder", "pixel"], "unknown encoder 'pixel'"),
    ],
)
def test_mistakes_are_one_sentence(setsup: Run, words: list[object], sentence: str) -> None:
    refused(setsup(*words), sentence)
