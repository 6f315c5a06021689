"""``--encoder``: any encoder in place of a run, on any source."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from setsup.factors import FactorTable

Run = Callable[..., Any]

FEW = ["--factors", "digit", "--only", "probes", "--probes.samples", 300]


@pytest.mark.long("processes")
@pytest.mark.parametrize("option", [["--table"], []])
def test_embeddings_of_a_table_are_its_pixels(setsup: Run, photos: Path, option: list[str]) -> None:
    found = setsup("embed", "--encoder", "pixels", *option, photos, "--out", "here")
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[0] == "pixels, weights: none"
    names = ("embeddings.npy", "factors.parquet", "rows.npy")
    assert found.out.splitlines()[-3:] == [f"here/{name}" for name in names]
    vectors = np.load("here/embeddings.npy")
    files = sorted((photos.parent / "pictures").iterdir())
    expected = np.stack([np.asarray(Image.open(file)).transpose(2, 0, 1).reshape(-1) for file in files]) / 255
    assert np.abs(vectors - expected).max() < 1e-6
    assert vectors.dtype == np.float32
    subjects = FactorTable.from_parquet("here/factors.parquet").values("subject")
    assert [subjects[row] for row in range(0, 48, 12)] == ["Ada", "Łucja", "Chidi", "Mei"]
    assert np.load("here/rows.npy").tolist() == list(range(48))


def test_folders_are_by_encoder_and_data(setsup: Run, digits: Path) -> None:
    words = ["embed", "--encoder", "pixels:4", "mnist", "--root", digits]
    found = setsup(*words, "--split", "test", "--json")
    folder = "encoders/pixels-4/embeddings-mnist-test"
    assert found.json["files"]["embeddings"] == f"{folder}/embeddings.npy"
    about = {"encoder": "pixels:4", "random_weights": False, "weights": "none", "dataset": "mnist", "split": "test"}
    assert {**found.json, **about, "rows": 200, "dimensions": 48} == found.json
    part = setsup(*words, "--where", "digit == 3", "--rows", 5, "--json").json
    assert part["files"]["rows"] == "encoders/pixels-4/embeddings-mnist-part/rows.npy"
    assert part["rows"] == 5
    other = setsup(*words, "--where", "digit == 4", "--rows", 5)
    assert other.code == 2
    assert "contains embeddings of other rows" in other.err


@pytest.mark.long("fits")
def test_standard_evaluations_are_kept_with_what_they_are_of(setsup: Run, digits: Path) -> None:
    words = ["eval", "--encoder", "pixels:4", "mnist", "--root", digits]
    found = setsup(*words, *FEW)
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert lines[:2] == ["pixels:4, weights: none", "mnist: 400 rows"]
    assert any(line.startswith("measuring probes, 1 of 1: Probes, factors digit, samples 300") for line in lines)
    assert lines[-1] == "encoders/pixels-4/mnist/evaluation.json"
    kept = json.loads(Path(lines[-1]).read_text())
    assert kept["probes"]["about"]["samples"] == 300
    assert kept["probes"]["values"].keys() == {"accuracy: digit", "majority: digit"}
    about = json.loads(Path("encoders/pixels-4/mnist/encoder.json").read_text())
    assert (about["encoder"], about["source"], about["split"], about["seed"]) == ("pixels:4", "mnist", None, 0)
    again = setsup(*words, *FEW, "--seed", 1)
    assert again.code == 2
    assert (
        "contains results with a different value of seed (existing: 0, requested: 1); choose another folder"
        in again.err
    )
    other = setsup(*words, *FEW, "--seed", 1, "--out", "there", "--json").json
    assert other["folder"] == "there"
    assert list(other["evaluations"]) == ["probes"]


def test_help_has_the_settings_of_the_evaluations(setsup: Run, digits: Path) -> None:
    found = setsup("eval", "--encoder", "pixels", "mnist", "--root", digits, "--help")
    assert found.code == 0
    for option in ("--encoder ENCODER", "--factors NAME", "--probes.samples N", "--information.steps", "--batch N"):
        assert option in found.out
    assert "[pca|tsne|umap" in found.out  # choices are no markup
    assert "--encoder ENCODER" in setsup("eval", "--help").out
    assert "--where EXPRESSION" in setsup("embed", "--encoder", "pixels", "--help").out


@pytest.mark.parametrize("subcommand", ["embed", "eval"])
def test_the_dataset_of_an_encoder_is_required_and_its_help_is_not(setsup: Run, subcommand: str) -> None:
    found = setsup(subcommand, "--encoder", "pixels", "--help")
    assert (found.code, found.err) == (0, "")
    shown = " ".join(found.out.replace("│", " ").split())
    assert "Required unless --table is given." in shown
    assert "default: shapes3d-procedural" not in shown
    refused = setsup(subcommand, "--encoder", "pixels")
    assert (refused.code, refused.out) == (2, "")
    assert "--encoder requires the argument DATASET" in refused.err


@pytest.mark.long("fits")
def test_the_report_on_factors_compares_encoders(setsup: Run, digits: Path) -> None:
    words = ["report", "factors", "mnist", "--root", digits, "--encoder", "pixels:4", "--encoder", "pixels:1"]
    found = setsup(*words, "--factors", "digit", "--rows", 300, "--out", "chart.png")
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[-1] == "chart.png"
    with Image.open("chart.png") as chart:
        assert chart.size[0] > 500
    names = ["linear probe", "nearest neighbours", "information", "average precision", "within-set variance"]
    data = setsup(*words, "--factors", "digit", "--rows", 300, "--json").json
    assert list(data["encoders"]) == ["pixels:4", "pixels:1"]
    assert (data["factors"], data["rows"], data["picture"]) == (["digit"], 300, None)
    lines = [line.split() for line in found.out.splitlines()]
    for place, label in enumerate(data["encoders"]):
        cells = [f"{data['encoders'][label][f'{name}: digit']:.3f}" for name in names]
        assert [label, *cells] in lines, place
    chance = [f"{data['encoders']['pixels:4'][f'chance: {name}: digit']:.3f}" for name in names]
    assert ["digit", "chance", *chance] in lines


@pytest.mark.long("trainings")
def test_the_report_on_factors_has_runs_beside_encoders(setsup: Run, digits: Path) -> None:
    own = Path(__file__).parent / "own_method.py"
    assert setsup("train", f"{own}:own/mean", "--root", digits, "--steps", 3).code == 0
    run = "runs/own/mean/seed-0"
    words = ["report", "factors", "mnist", run, "--preset", f"{own}:own/mean", "--root", digits]
    found = setsup(*words, "--encoder", "random:resnet18", "--factors", "digit", "--rows", 60, "--json")
    assert list(found.json["encoders"]) == ["random:resnet18 (RANDOM WEIGHTS)", run]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["embed", "--encoder", "resnet", "mnist"], "unknown encoder 'resnet'; pass one of hf:NAME"),
        (["embed", "--encoder", "pixels", "mnist", "--batch", "0"], "batch"),
        (["embed", "--encoder", "pixels", "mnist", "--preset", "x.py"], "unknown option '--preset'"),
        (["embed", "--encoder"], "--encoder requires a value"),
        (["eval", "--encoder", "pixels", "mnist", "--factors", "digits"], "did you mean 'digit'"),
        (["eval", "--encoder", "pixels", "mnist", "--only", "prob"], "unknown evaluation 'prob'"),
        (["eval", "--encoder", "hf:a/b", "mnist"], "fetch the repository with `hf download a/b`"),
        (["report", "factors", "mnist"], "pass folders of runs, or --encoder ENCODER"),
        (["report", "factors", "mnist", "--encoder", "pixels", "--out", "a.jpg"], "must be a file with the suffix"),
        (["report", "factors", "mnist", "nothing", "--encoder", "pixels:2"], "nothing"),
    ],
)
def test_mistakes_are_one_sentence(setsup: Run, digits: Path, words: list[str], sentence: str) -> None:
    found = setsup(*words, *(["--root", digits] if "mnist" in words else []))
    assert found.code == 2
    assert sentence in found.err
    assert found.err.count("\n") == 1
    assert "Traceback" not in found.err
