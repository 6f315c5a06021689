"""The methods of the other papers, sketched in a file each that uses the training frame as a user would."""

import math
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import (  # noqa: E402
    Data,
    Preset,
    RunConfig,
    evaluate,
    find_preset,
    load_trained,
    open_run,
    train,
)
from setsup.samplers import Draw, Sampler  # noqa: E402
from tests.experiments.ranks import run_ranks  # noqa: E402

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


def test_dense_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("embreex", reason="Embree is not installed")
    rooms = tmp_path / "rooms"
    words = ["render", "room", "--renderer", "embree", "--size", "48", "64", "--matches", "8"]
    subprocess.run([Path(sys.executable).with_name("setsup"), *words, "--out", rooms], check=True, capture_output=True)
    preset = find_preset(f"{FOLDER}/dense_pixels.py")
    preset = replace(preset, data=Data(str(rooms), modalities=("image",)))
    method = sys.modules[type(preset.method).__module__].Pixels
    keys, own = set(), method.loss
    monkeypatch.setattr(method, "loss", lambda self, batch: (keys.update(batch), own(self, batch))[1])
    found = trained(preset, tmp_path / "run")
    assert keys & set(preset.data.open().modalities) == {"image"}, "others are not fetched"
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


def test_a_memory_bank(tmp_path: Path) -> None:
    assert trained(find_preset(f"{FOLDER}/memory_bank.py"), tmp_path)["precision: wall_hue"] > 0.2


def test_codes_of_rows(tmp_path: Path) -> None:
    preset = find_preset(f"{FOLDER}/row_codes.py")
    trained(replace(preset, steps=30), tmp_path)  # rows of the 400 are drawn once or twice
    run = open_run(tmp_path, replace(preset, steps=30))
    other = setsup.open("shapes3d-procedural", where="scale == 1.25 and floor_hue == 0 and orientation == 0")
    with pytest.raises(SetsupError, match=r"^Lord has no values for 256 of 256 rows \(not in the training data: 256\)"):
        load_trained(run, preset=preset).embed(other)


@dataclass(frozen=True)
class Both:
    """The draws of two processes as one batch."""

    one: Any

    def build(self, dataset: Any, seed: int) -> Sampler:
        return Pairs(self.one.build(dataset, seed))


class Pairs(Sampler):
    """Two draws of a sampler as the sets of one."""

    def __init__(self, one: Sampler) -> None:
        self.table, self.length, self.arguments = one.table, one.length, {}
        self.one = one

    def draws(self, steps: Any) -> Draw:
        found = self.one.draws((2 * steps[:, None] + np.arange(2)).ravel()).indices
        return Draw(found.reshape(len(steps), -1, found.shape[-1]))

    def report(self) -> Any:
        return self.one.report()


SCRIPT = """
import sys
from setsup.experiments import RunConfig, find_preset, train

if __name__ == "__main__":
    train(find_preset(sys.argv[1]), sys.argv[2], config=RunConfig(devices=2, accelerator="cpu", workers=0))
"""


@pytest.mark.smoke
def test_a_bank_of_two_processes_is_that_of_one_with_both_draws(tmp_path: Path) -> None:
    preset = find_preset(f"{FOLDER}/memory_bank.py")
    (tmp_path / "script.py").write_text(SCRIPT)
    run_ranks(tmp_path, str(FOLDER / "memory_bank.py"), str(tmp_path / "two"))
    train(replace(preset, sampler=Both(preset.sampler)), tmp_path / "one", config=HERE)
    two, one = (torch.load(tmp_path / name / "last.ckpt", weights_only=True)["state_dict"] for name in ("two", "one"))
    assert two.keys() == one.keys()
    assert {"banks.L.values", "banks.ab.values", "normalisers"} <= one.keys()
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-3, atol=1e-5, msg=name)
