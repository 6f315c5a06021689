"""The methods of the other papers, sketched in a file each that uses the training frame as a user would."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.experiments import Data, Preset, RunConfig, evaluate, find_preset, train  # noqa: E402

HERE = RunConfig(workers=0)
FOLDER = Path(__file__).parent / "sketches"
pytestmark = pytest.mark.long("trainings")


def trained(preset: Preset, folder: Path) -> dict[str, float]:
    """Train and evaluate; the values of all evaluations."""
    run = train(preset, folder, config=HERE)
    assert run.finished
    values = {name: value for found in evaluate(run, preset).values() for name, value in found.values.items()}
    assert values
    assert all(map(math.isfinite, values.values()))
    return values


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_sketch_is_short_and_uses_public_names_only(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= 150
    assert not [line for line in lines if line.startswith("from setsup") and "._" in line]


def test_orbit_triplets(tmp_path: Path) -> None:
    assert trained(find_preset(f"{FOLDER}/orbit_triplets.py"), tmp_path)["one-shot accuracy"] > 0.2  # of ten hues


def test_dense_pixels(tmp_path: Path) -> None:
    pytest.importorskip("embreex", reason="Embree is not installed")
    rooms = tmp_path / "rooms"
    words = ["render", "room", "--renderer", "embree", "--size", "48", "64", "--rooms", "4", "--pairs", "2"]
    subprocess.run([Path(sys.executable).with_name("setsup"), *words, "--out", rooms], check=True, capture_output=True)
    preset = find_preset(f"{FOLDER}/dense_pixels.py")
    found = trained(replace(preset, data=Data(str(rooms), modalities=("image",))), tmp_path / "run")
    assert found["nearest feature: mean error"] < found["chance: mean error"]


def test_two_stages(tmp_path: Path) -> None:
    file = f"{FOLDER}/two_stages.py"
    encoder, generator = (find_preset(f"{file}:sketch/{name}") for name in ("encoder", "generator"))
    trained(encoder, tmp_path / "encoder")
    weights = torch.load(tmp_path / "encoder/last.ckpt", weights_only=True)["state_dict"]
    generator = replace(generator, initial_run=str(tmp_path / "encoder"))
    trained(generator, tmp_path / "generator")
    found = torch.load(tmp_path / "generator/last.ckpt", weights_only=True)["state_dict"]
    assert all(torch.equal(found[name], weight) for name, weight in weights.items()), "the encoder is frozen"
