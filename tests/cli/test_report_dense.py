"""``setsup report dense``: features of encoders and runs on pairs of views."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cli.refusals import refused

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
pytest.importorskip("embreex", reason="embreex is not installed")

from setsup.correspondence import RenderedPairs, pair_table
from setsup.rendered.writing import render
from setsup.scenes.recipes import Shapes3D

Run = Callable[..., Any]

MODALITIES = ["image", "depth", "instances", "partners", "status"]


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six pairs of views with their partners."""
    folder = tmp_path_factory.mktemp("dense") / "views"
    recipe = Shapes3D(size=(48, 64))
    render(RenderedPairs(recipe, pair_table(recipe, 6, seed=0), "embree"), folder, MODALITIES)
    return folder


@pytest.fixture
def homographies(tmp_path: Path) -> Path:
    """Photographs of two scenes, of which each second one is the first one moved by 6 pixels to the left."""
    folder = tmp_path / "photographs"
    dice = np.random.default_rng(0)
    for scene in ("a", "b"):
        (folder / scene).mkdir(parents=True)
        whole = dice.integers(0, 256, (10, 16, 3), dtype=np.uint8).repeat(4, 0).repeat(4, 1)
        whole = whole // 2 + dice.integers(0, 128, whole.shape, dtype=np.uint8)
        Image.fromarray(whole[:, :48]).save(folder / scene / "1.png")
        Image.fromarray(whole[:, 6:54]).save(folder / scene / "2.png")
        (folder / scene / "H_1_2").write_text("1 0 -6\n0 1 0\n0 0 1\n")
    return folder


@pytest.mark.long("renderings")
def test_colors_and_a_random_network_on_a_rendering(setsup: Run, views: Path, tmp_path: Path) -> None:
    words = ("report", "dense", views, "--encoder", "colors", "--encoder", "random", "-n", 3, "--queries", 100)
    out = tmp_path / "out"
    found = setsup(*words, "--out", out)
    assert found.code == 0, found.err
    assert "protocol visible" in found.out
    assert "protocol ratio" in found.out
    files = {path.name for path in out.iterdir() if path.is_file()}
    assert files >= {"index.html", "results.csv", "results.json", "sheet-colors.png", "sheet-random.png"}
    plain = json.loads((out / "results.json").read_text())
    assert list(plain["encoders"]) == ["colors", "random"]
    assert len(plain["pairs"]) == 3
    assert all(0 < pair["angle"] < 180 for pair in plain["pairs"])
    for encoder in plain["encoders"].values():
        values = encoder["values"]
        limits = [values[f"visible: within {limit} px"]["mean"] for limit in (1, 3, 5, 25, 50)]
        assert limits == sorted(limits)
        for name in ("ratio: within 2 cm", "visible, mutual: within 5 px", "rejection", "instances", "edges"):
            assert 0 <= values[name]["mean"] <= 1
        assert encoder["by_angle"]["ratio: within 2 cm"]
    lines = list(csv.DictReader(io.StringIO((out / "results.csv").read_text())))
    (line,) = (
        row for row in lines if (row["encoder"], row["value"], row["bin"]) == ("colors", "visible: within 5 px", "all")
    )
    assert float(line["mean"]) == plain["encoders"]["colors"]["values"]["visible: within 5 px"]["mean"]
    page = (out / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "<script" not in page
    again = setsup(*words, "--encoder", "sift", "--json", "--out", out)
    assert again.code == 0, again.err
    assert list(again.json["encoders"]) == ["colors", "random", "sift"]
    assert again.json["encoders"]["colors"] == plain["encoders"]["colors"]


@pytest.mark.long("networks")
def test_kept_values_are_not_computed_again(
    setsup: Run, views: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("report", "dense", views, "--encoder", "colors", "-n", 2, "--queries", 20, "--json", "--out", tmp_path)
    first = setsup(*words)
    assert first.code == 0, first.err

    def fail(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("setsup.experiments.evaluations.dense._measured", fail)
    assert setsup(*words).json["encoders"] == first.json["encoders"]
    with pytest.raises(AssertionError, match="measured again"):
        setsup(*words, "--seed", 1)


@pytest.mark.long("networks")
def test_a_tiny_transformer_at_its_patches(setsup: Run, views: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.Dinov2Config(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8, mlp_ratio=2
    )
    folder = tmp_path / "vit"
    transformers.Dinov2Model(config).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        '{"image_processor_type": "BitImageProcessor", "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.2, 0.3]}'
    )
    words = ("report", "dense", views, "--encoder", f"hf:{folder}", "--encoder", f"hf:{folder}@1,2", "-n", 2)
    for features in ("grid", "pixels"):
        found = setsup(*words, "--features", features, "--queries", "all", "--json")
        assert found.code == 0, found.err
        one, both = found.json["encoders"].values()
        assert one["weights"].startswith("model.safetensors sha256")
        assert one["by_pair"] != both["by_pair"]
        matches = one["values"]["ratio: matches"]["mean"]  # some pixels show no surface
        assert (24 if features == "grid" else 96) < matches <= (48 if features == "grid" else 192)
    wrong = setsup(*words[:3], "--encoder", f"hf:{folder}@3", "-n", 1)
    refused(wrong, "has no block 3; pass numbers from 1 to 2")


@pytest.mark.long("networks")
def test_photographs_of_planes_are_measured_as_hpatches_is(setsup: Run, homographies: Path) -> None:
    pytest.importorskip("cv2")
    found = setsup("report", "dense", homographies, "--encoder", "colors", "--step", 12, "--json")
    assert found.code == 0, found.err
    assert (found.json["benchmark"], found.json["pairs"]) == ("planes", 2)
    (encoder,) = found.json["encoders"].values()
    values = {(one["value"], one["group"]): one["number"] for one in encoder["values"]}
    assert {group for _, group in values} == {"all"}
    assert values["MMA: 1 px", "all"] > 0.9
    assert values["homography accuracy: 1 px", "all"] == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["shapes3d-procedural"], "pass folders of runs, or --encoder ENCODER"),
        (["shapes3d-procedural", "--encoder", "colors"], "has no pixel correspondences"),
        (["shapes3d-procedural", "--encoder", "colors", "--spread", "shap"], "did you mean 'shape'"),
        (["shapes3d-procedural", "--encoder", "colors", "-n", 0], "--pairs must be 1 or more, not 0"),
        (["shapes3d-procedural", "--encoder", "colors", "--queries", "many"], "--queries must be a number of pixels"),
    ],
)
def test_mistakes_are_one_sentence(setsup: Run, words: list[object], sentence: str) -> None:
    refused(setsup("report", "dense", *words), sentence)


@pytest.mark.long("renderings")
def test_an_unknown_encoder_is_one_sentence(setsup: Run, views: Path) -> None:
    refused(setsup("report", "dense", views, "--encoder", "dasy"), "unknown encoder of pixels 'dasy'")
