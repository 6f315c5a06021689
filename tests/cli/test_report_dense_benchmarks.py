"""``setsup report dense`` on benchmarks with protocols of their own."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

from tests.cli.refusals import refused
from tests.cli.test_pixel_matches import METHOD
from tests.true_files import mnist
from tests.true_files import spair_71k as true

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

Run = Callable[..., Any]

SAME = """
import torch

class Colors(torch.nn.Module):
    def forward(self, images):
        # as an image that was resized to multiples of 32 pixels
        sizes = [max(1, round(side / 32)) * 32 for side in images.shape[2:]]
        from PIL import Image
        import numpy as np
        image = Image.fromarray((images[0] * 255).round().byte().movedim(0, -1).numpy())
        resized = np.asarray(image.resize((sizes[1], sizes[0]), Image.Resampling.BICUBIC))
        return torch.from_numpy(resized.copy()).float().movedim(-1, 0)[None]

def build():
    return Colors()
"""


@pytest.fixture(scope="module")
def spair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spair")
    true.write(folder)
    return folder


def test_kept_values_are_those_of_the_same_files(setsup: Run, tmp_path: Path) -> None:
    """A folder whose images or keypoints changed, with equal factors, is measured again."""
    folder = tmp_path / "spair"
    true.write(folder)
    words = ("report", "dense", "spair-71k", "--root", folder, "--encoder", "colors", "--pairs", 4, "--longest", 40)
    words += ("--json", "--force", "--out", tmp_path / "kept")

    def values() -> Any:
        return [one["number"] for one in json.loads(setsup(*words).out)["encoders"]["colors"]["values"]]

    first = values()
    for file in sorted(folder.rglob("ImageAnnotation/*/*.json")):
        about = json.loads(file.read_text())
        about["kps"] = {key: point and [point[0] // 2, point[1] // 2] for key, point in about["kps"].items()}
        file.write_text(json.dumps(about))
    moved = values()
    for file in sorted(folder.rglob("*.jpg")):
        with Image.open(file) as image:
            ImageOps.mirror(image).save(file)
    mirrored = values()
    assert first != moved != mirrored
    shutil.rmtree(tmp_path / "kept")
    assert values() == mirrored


@pytest.mark.long("networks")
def test_encoders_and_their_files(setsup: Run, spair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("report", "dense", "spair-71k", "--root", spair, "--encoder", "colors", "--encoder", "random")
    out = tmp_path / "out"
    found = setsup(*words, "--pairs", 8, "--longest", 80, "--out", out)
    assert found.code == 0, found.err
    assert "8 (drawn by --seed) of 36 published pairs of images of the split test" in found.out
    assert "resized (bicubic) to 80 pixels along their longer side" in found.out
    assert "PCK bbox, per image: α 0.1, by category" in found.out
    files = {path.name for path in out.iterdir() if path.is_file()}
    assert files >= {"index.html", "results.csv", "results.json", "sheet-colors.png", "sheet-random.png"}
    plain = json.loads((out / "results.json").read_text())
    assert [plain[key] for key in ("benchmark", "dataset", "pairs", "longest")] == ["keypoints", "spair-71k", 8, 80]
    values = {(one["value"], one["group"]): one["number"] for one in plain["encoders"]["random"]["values"]}
    line = next(
        row
        for row in csv.DictReader(io.StringIO((out / "results.csv").read_text()))
        if (row["encoder"], row["value"], row["group"]) == ("random", "PCK img, per point: α 0.15", "all")
    )
    assert float(line["number"]) == values["PCK img, per point: α 0.15", "all"]
    page = (out / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "by occlusion" in page

    def fail(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("setsup.experiments.evaluations.keypoint_transfer.measure", fail)
    again = setsup(*words, "--pairs", 8, "--longest", 80, "--out", out, "--json")
    assert again.code == 0, again.err
    assert again.json["encoders"] == plain["encoders"]
    for more in ([], ["--longest", 80, "--option", "size=64,64"]):
        with pytest.raises(AssertionError, match="measured again"):
            setsup(*words, "--pairs", 8, "--out", out, *more)


@pytest.mark.long("networks")
def test_patches_and_expressions(setsup: Run, spair: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.Dinov2Config(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8, mlp_ratio=2
    )
    folder = tmp_path / "vit"
    transformers.Dinov2Model(config).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        '{"image_processor_type": "BitImageProcessor", "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.2, 0.3]}'
    )
    words = ("report", "dense", "spair-71k", "--root", spair, "--encoder", f"hf:{folder}", "--json")
    found = {}
    for features in ("pixels", "grid"):
        one = setsup(*words, "--features", features, "--where", "split == 'val' and category != 'car'")
        assert one.code == 0, one.err
        assert one.json["pairs"] == 4
        (values,) = (encoder["values"] for encoder in one.json["encoders"].values())
        assert {value["group"] for value in values} >= {"all", "category aeroplane", "category chair"}
        found[features] = values
    assert found["pixels"] != found["grid"]
    split = setsup(*words, "--split", "val", "--where", "category != 'car'")
    assert split.json["encoders"] == {
        next(iter(split.json["encoders"])): {**next(iter(split.json["encoders"].values()))}
    }
    (values,) = (encoder["values"] for encoder in split.json["encoders"].values())
    assert values == found["pixels"]


@pytest.mark.long("training")
def test_runs_are_measured_as_encoders_are(
    setsup: Run, spair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose features are the colours, of images that it takes in multiples of 32 pixels."""
    monkeypatch.chdir(tmp_path)
    mnist.write(tmp_path / "release")
    (tmp_path / "colors.py").write_text(METHOD)
    trained = setsup("train", "colors.py", "--out", "maps", "--root", "release", "--accelerator", "cpu")
    assert trained.code == 0, trained.err
    (tmp_path / "same.py").write_text(SAME)
    words = ("report", "dense", "spair-71k", "maps/seed-0", "--preset", "colors.py", "--encoder", "same.py")
    found = setsup(*words, "--root", spair, "--json", "--where", "split == 'val'")
    assert found.code == 0, found.err
    run, same = (encoder["values"] for encoder in found.json["encoders"].values())
    assert run == same


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--queries", 5], "--queries does not apply to spair-71k, which is measured by its own protocol"),
        (["--scene", "category"], "--scene does not apply to spair-71k"),
        (["--longest", 0], "--longest must be 1 or more, not 0"),
        (["--where", "scale == 'huge'"], "huge"),
    ],
)
def test_mistakes_are_one_sentence(setsup: Run, spair: Path, words: list[object], sentence: str) -> None:
    refused(setsup("report", "dense", "spair-71k", "--root", spair, "--encoder", "colors", *words), sentence)


def test_views_of_scenes_have_no_longest(setsup: Run) -> None:
    found = setsup("report", "dense", "shapes3d-procedural", "--encoder", "colors", "--longest", 99)
    refused(found, "--longest applies only to benchmarks with their own protocol")


def test_pairs_of_keypoints_are_drawn(setsup: Run, spair: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.png"
    found = setsup("pairs", "spair-71k", "--root", spair, "--draws", 2, "--out", out, "--json")
    assert found.code == 0, found.err
    assert found.json["matched_by"] == "its keypoints"
    assert all(pair["visible"] > 3 and pair["occluded"] == 0 for pair in found.json["pairs"])
    assert out.stat().st_size > 5000
